//! Tests that `search` with hostile patterns and trees ends in time, is correct, and shows nothing outside the
//! workspace.

#![expect(clippy::disallowed_methods, reason = "the test makes trees from outside")]

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::support::LocalFixture;

/// The time limit of a search, long enough for a slow and busy machine.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn hostile_patterns_finish_in_time() {
    let fixture = LocalFixture::new();
    fixture.write_on_disk("a.txt", &format!("{}!\n", "a".repeat(60)).repeat(2_000));
    fixture.write_on_disk("line.txt", &"a".repeat(300_000));
    fixture.write_on_disk("words.txt", "word7 stands here\nand WORD9999 there\n");
    let words: Vec<String> = (0..10_000).map(|number| format!("word{number}")).collect();
    let alternation = words.join("|");
    let refused = None;
    for (query, total) in [
        (json!("(a+)+$"), Some(1)),
        (json!("(a|aa)+$"), Some(1)),
        (json!("(a|a?)+$"), Some(2_003)),
        (json!("(.*)*!"), Some(2_000)),
        (json!("(a*)*b$"), Some(0)),
        (json!("^(([a-z])+.)+[A-Z]([a-z])+$"), Some(0)),
        (json!("(?:a?){200}a{200}b"), Some(0)),
        (json!(alternation), Some(1)),
        (json!(format!("(?i)({alternation})")), Some(2)),
        (json!("a{1000}{1000}"), refused),
        (json!("((a{100}){100}){100}"), refused),
        (json!("\\w{5000}"), refused),
        (json!(format!("{}a{}", "(".repeat(5_000), ")".repeat(5_000))), refused),
        (json!("(?=a)"), refused),
    ] {
        let started = Instant::now();
        let answer = fixture.call("search", json!({ "query": query, "regex": true }));
        let shown: String = query.to_string().chars().take(40).collect();
        match (answer, total) {
            (Ok(answer), Some(total)) => assert_eq!(answer.json["total"], total, "{shown}"),
            (Err(error), None) => assert_eq!(error.kind.code(), "bad_request", "{shown}"),
            (answer, total) => panic!("{shown}: {answer:?}, not {total:?}"),
        }
        assert!(started.elapsed() < SEARCH_TIMEOUT, "{shown}: {:?}", started.elapsed());
    }
    for (word, ignore_case, total) in [(false, false, 1), (false, true, 2), (true, true, 2)] {
        let arguments = json!({ "query": words, "word": word, "ignore_case": ignore_case });
        assert_eq!(fixture.call_ok("search", arguments)["total"], total, "{word} {ignore_case}");
    }
}

#[test]
fn a_million_hits_are_counted() {
    let fixture = LocalFixture::new();
    fixture.write_on_disk("one.txt", &"needle\n".repeat(1_000_000));
    let search = fixture.call_ok("search", json!({ "query": "needle" }));
    assert_eq!((&search["total"], &search["truncated"]), (&json!(1_000_000), &json!(true)));
    fs::remove_file(fixture.path("one.txt")).unwrap();
    for number in 0..20 {
        fixture.write_on_disk(&format!("d{}/f{number}.txt", number % 5), &"a needle\n".repeat(50_000));
    }
    let answer = fixture.call("search", json!({ "query": "needle" })).unwrap();
    assert_eq!((&answer.json["total"], &answer.json["truncated"]), (&json!(1_000_000), &json!(true)));
    assert!(answer.text.to_string().starts_with("1000000 hits in 20 files"));
}

/// The threads that swap paths must stop even if the test fails.
struct PathSwapTestThreadStopGuard<'a>(&'a AtomicBool);

impl Drop for PathSwapTestThreadStopGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A path is replaced for a moment by a symlink to a directory outside the workspace, by a pipe, or by nothing.
fn swap_briefly(directory: &Path, aside: &Path, outside: &Path, round: usize) {
    if fs::rename(directory, aside).is_err() {
        return;
    }
    let made = match round % 4 {
        0 => symlink(outside, directory).is_ok(),
        1 => {
            let (mode, kind) = (rustix::fs::Mode::from_raw_mode(0o644), rustix::fs::FileType::Fifo);
            rustix::fs::mknodat(rustix::fs::CWD, directory, kind, mode, 0).is_ok()
        }
        2 => symlink(".", directory).is_ok(),
        _ => false,
    };
    thread::yield_now();
    if made {
        fs::remove_file(directory).unwrap();
    }
    fs::rename(aside, directory).unwrap();
}

#[test]
fn search_in_a_swapped_tree_shows_nothing_outside() {
    const ROUNDS: usize = 60;
    const SWAPS_MIN: usize = 2_000;
    let fixture = LocalFixture::new();
    let outside = fixture.directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    for number in 0..40 {
        fixture.write_on_disk(&format!("stays/f{number}.txt"), "needle inside\n");
        fixture.write_on_disk(&format!("d{}/e/f{number}.txt", number % 8), "needle inside\n");
        // A search that follows a swapped directory would find these files.
        fs::create_dir_all(outside.join("e")).unwrap();
        fs::write(outside.join(format!("e/f{number}.txt")), "needle outside\n").unwrap();
        fs::write(outside.join(format!("f{number}.txt")), "needle outside\n").unwrap();
    }
    let aside = fixture.directory.path().join("aside");
    fs::create_dir(&aside).unwrap();
    let (ended, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for attacker in 0..2 {
            let (fixture, outside, aside, ended, swaps) = (&fixture, &outside, &aside, &ended, &swaps);
            scope.spawn(move || {
                let mut round = 0;
                while !ended.load(Ordering::Relaxed) {
                    round += 1;
                    // Each thread has its own directories, so that none loses the other's.
                    let directory = 2 * (round % 4) + attacker;
                    let (place, from) = match round % 3 {
                        0 => (format!("d{directory}"), outside.clone()),
                        1 => (format!("d{directory}/e"), outside.join("e")),
                        _ => (format!("d{directory}/e/f{directory}.txt"), outside.join("f1.txt")),
                    };
                    swap_briefly(&fixture.path(&place), &aside.join(format!("a{attacker}")), &from, round / 3);
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _done = PathSwapTestThreadStopGuard(&ended);
        let (started, mut rounds) = (Instant::now(), 0);
        while rounds < ROUNDS || swaps.load(Ordering::Relaxed) < SWAPS_MIN {
            rounds += 1;
            let arguments = json!({ "query": "needle", "max": 1000, "budget": 40_000, "context": 1 });
            let answer = fixture.call("search", arguments).unwrap();
            let total = answer.json["total"].as_u64().unwrap();
            assert!((40..=80).contains(&total), "{total}");
            let text = answer.text.to_string();
            assert!(!text.contains("outside"), "{text}");
            let files = answer.json["files"].as_array().unwrap().iter();
            let kept = files.filter(|file| file["path"].as_str().unwrap().starts_with("stays/f")).count();
            assert_eq!(kept, 40, "{text}");
            assert!(started.elapsed() < SEARCH_TIMEOUT, "{rounds} rounds, {swaps:?} swaps");
        }
    });
}

const CHILD: &str = "LOCAL_TEST_CHILD";

#[test]
fn unreadable_files_and_directories_are_counted_for_unprivileged_processes() {
    let name = "hostile::unreadable_files_and_directories_are_counted_for_unprivileged_processes";
    if rustix::process::geteuid().is_root() {
        assert!(std::env::var_os(CHILD).is_none(), "the child still has rights");
        let binary = std::env::current_exe().unwrap();
        let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
        let mut command = Command::new("setpriv");
        command.args(user).arg(binary).args(["--exact", name, "--nocapture"]).env(CHILD, "1");
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{said}{error}");
        return;
    }
    let fixture = LocalFixture::new();
    for path in ["open/f.txt", "closed/f.txt", "listed/f.txt", "file.txt", "large.txt"] {
        fixture.write_on_disk(path, "needle\n");
    }
    fixture.write_on_disk("large.txt", &"needle\n".repeat(1 << 20));
    let bits = |path: &str, mode| fs::set_permissions(fixture.path(path), fs::Permissions::from_mode(mode)).unwrap();
    // One directory cannot be listed, one can be listed but not entered, and two files cannot be read.
    let closed = [("closed", 0), ("listed", 0o444), ("file.txt", 0), ("large.txt", 0o200)];
    closed.iter().for_each(|(path, mode)| bits(path, *mode));
    let search = fixture.call_ok("search", json!({ "query": "needle" }));
    closed.iter().for_each(|(path, _)| bits(path, 0o755));
    assert_eq!((&search["total"], &search["unreadable"]), (&json!(1), &json!(4)), "{search:?}");
    assert_eq!(search.get("large").and_then(Value::as_u64), None);
}
