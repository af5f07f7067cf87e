//! Measures the server's peak memory while it searches files that are made to need much memory.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use serde_json::{Value, json};

use crate::cli_fixture::CliFixture;

const MIB: usize = 1 << 20;
const BASE_MEMORY_MB_MAX: u64 = 60;
const THREAD_MEMORY_MB_MAX: u64 = 60;
const THREADS_MAX: usize = 8;

struct RpcSearchMemoryTestProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl RpcSearchMemoryTestProcess {
    fn start(fixture: &CliFixture) -> Self {
        let mut command = fixture.command(&["rpc"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn search(&mut self, arguments: &Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "search", "params": arguments });
        writeln!(self.input, "{request}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let mut answer: Value = serde_json::from_str(&line).unwrap();
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    fn peak_memory_mb(self) -> u64 {
        let Self { mut child, input, output } = self;
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kilobytes: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
        drop((input, output));
        child.wait().unwrap();
        kilobytes / 1024
    }
}

fn search_within_memory_bound(fill: impl Fn(&CliFixture), arguments: &Value) -> Value {
    let fixture = CliFixture::new();
    fill(&fixture);
    let mut server = RpcSearchMemoryTestProcess::start(&fixture);
    let found = server.search(arguments);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX) as u64;
    let (peak, most) = (server.peak_memory_mb(), BASE_MEMORY_MB_MAX + threads * THREAD_MEMORY_MB_MAX);
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
