//! Measures the server's peak memory while it searches files that are made to need much memory.

use std::{
    fs::{self, File},
    io::Write,
};

use serde_json::{Value, json};
use testkit::session_fixture::SessionFixture;

use crate::cli_fixture::CliFixture;

const MIB: usize = 1 << 20;
const BASE_MEMORY_MB_MAX: u64 = 60;
const THREAD_MEMORY_MB_MAX: u64 = 60;
const THREADS_MAX: usize = 8;

fn peak_memory_mb(session: &SessionFixture) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", session.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
    kilobytes / 1024
}

fn search_within_memory_bound(fill: impl Fn(&CliFixture), arguments: &Value) -> Value {
    let fixture = CliFixture::new();
    fill(&fixture);
    let mut session = fixture.connect(&["rpc"]);
    let found = session.request_ok("search", arguments);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX) as u64;
    let (peak, most) = (peak_memory_mb(&session), BASE_MEMORY_MB_MAX + threads * THREAD_MEMORY_MB_MAX);
    assert!(peak <= most, "{peak} MB of {most}: {arguments}");
    found
}

#[test]
fn search_does_not_hold_a_64_mib_line() {
    let fill = |fixture: &CliFixture| {
        let mut file = File::create(fixture.workspace().join("line.txt")).unwrap();
        let part = "words without an end ".repeat(MIB / 21);
        for _ in 0..64 {
            file.write_all(part.as_bytes()).unwrap();
        }
        file.write_all(b"\nneedle\n").unwrap();
    };
    let found = search_within_memory_bound(fill, &json!({ "query": "needle", "context": 2 }));
    assert_eq!((&found["total"], &found["left"][0]["why"]), (&json!(1), &json!("line")), "{found}");
}

#[test]
fn search_does_not_hold_a_million_hits() {
    let fill = |fixture: &CliFixture| {
        for number in 0..20 {
            let path = fixture.workspace().join(format!("f{number}.txt"));
            fs::write(path, "a needle in a line of some length, as lines are\n".repeat(50_000)).unwrap();
        }
    };
    let found = search_within_memory_bound(fill, &json!({ "query": "needle", "context": 20 }));
    assert_eq!(found["total"], 1_000_000, "{found}");
}

#[test]
fn large_regex_stays_within_memory_bound() {
    let fill = |fixture: &CliFixture| {
        let line: String = (0_u32..3_000)
            .map(|number| char::from(b'a' + (number.wrapping_mul(2_654_435_761) >> 24) as u8 % 20))
            .collect();
        fs::write(fixture.workspace().join("a.txt"), format!("{line}\n").repeat(40)).unwrap();
    };
    let found = search_within_memory_bound(fill, &json!({ "query": "[a-m][a-t]{2000}[A-Z]", "regex": true }));
    assert_eq!(found["total"], 0, "{found}");
}
