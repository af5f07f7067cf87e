//! Tests how SQLite handles failed system calls. A tracer makes the system calls of SQLite fail, because the fault
//! injection of the process cannot reach them. A change that was not acknowledged is not visible while the workspace is
//! open. After a failed sync, nothing is written until the next open.

#![expect(clippy::disallowed_methods, reason = "the test needs a traced process")]

use std::{path::PathBuf, process::Command, sync::Arc};

use serde_json::json;

use super::rig::{check_journal, close, fast_temporary_directory, open};
use crate::support::{open_engine, test_options_at};

const CHILD_DIRECTORY_ENV: &str = "STEAD_TEST_STORE";
const TRACER: &str = "strace";

struct SyscallErrorInjection {
    calls: &'static str,
    error: &'static str,
    /// Whether the injected error must make the workspace read-only until the next open.
    is_final: bool,
}

const INJECTIONS: &[SyscallErrorInjection] = &[
    SyscallErrorInjection { calls: "fsync,fdatasync", error: "EIO", is_final: true },
    SyscallErrorInjection { calls: "fsync,fdatasync", error: "ENOSPC", is_final: true },
    SyscallErrorInjection { calls: "pwrite64", error: "EIO", is_final: false },
    SyscallErrorInjection { calls: "pwrite64", error: "ENOSPC", is_final: false },
    SyscallErrorInjection { calls: "ftruncate", error: "EIO", is_final: false },
];

struct FaultTestChildOutput(String);

impl FaultTestChildOutput {
    fn value_of(&self, word: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '))
    }
}

fn run_traced_child(
    directory: &std::path::Path,
    injection: &SyscallErrorInjection,
    at: u64,
) -> Option<FaultTestChildOutput> {
    let log = directory.join("trace");
    let SyscallErrorInjection { calls, error, .. } = injection;
    let output = Command::new(TRACER)
        .args(["-f", "-qq", "-o"])
        .arg(&log)
        .args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:error={error}:when={at}")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "faults::store::child_process", "--nocapture", "--test-threads=1"])
        .env(CHILD_DIRECTORY_ENV, directory)
        .output()
        .unwrap_or_else(|error| panic!("this test needs the package '{TRACER}': {error}"));
    let said = String::from_utf8(output.stdout).unwrap();
    let trace = std::fs::read_to_string(&log).unwrap();
    assert!(said.contains("end"), "{calls} {at}: {said} {}", String::from_utf8_lossy(&output.stderr));
    trace.contains("(INJECTED)").then_some(FaultTestChildOutput(said))
}

/// The test `child_process` does nothing unless an environment variable marks the process as a child.
#[test]
fn child_process() {
    let Ok(directory) = std::env::var(CHILD_DIRECTORY_ENV) else { return };
    match open_engine(test_options_at(&PathBuf::from(directory))) {
        Err(error) => println!("\nopened {}", error.kind.code()),
        Ok(fixture) => {
            println!("\nopened ok");
            let outcome = |answer: Result<testkit::native::RenderedOutcome, stead_engine::Error>| match answer {
                Ok(_) => "ok".to_owned(),
                Err(error) => error.kind.code().to_owned(),
            };
            let read = || match fixture.call("read", json!({ "path": "f" })) {
                Ok(answer) => answer.json["content"].as_str().unwrap().trim().to_owned(),
                Err(error) => error.kind.code().to_owned(),
            };
            let base = stead_engine::Version::hash_bytes(b"old").to_string();
            let replace = json!({ "path": "f", "content": "new", "base": base });
            println!("first {}", outcome(fixture.call("write", replace)));
            println!("then {}", read());
            println!("second {}", outcome(fixture.call("write", json!({ "path": "g", "content": "g" }))));
            println!("again {}", read());
            println!("end");
            // Nothing is closed, so that the store stays as it is.
            std::process::exit(0);
        }
    }
    println!("end");
    std::process::exit(0);
}

fn check_child_output(
    output: &FaultTestChildOutput,
    fixture: &crate::support::LocalFixture,
    injection: &SyscallErrorInjection,
    context: &str,
) {
    check_journal(fixture, context);
    let f = fixture.text_on_disk("f");
    let Some(first) = output.value_of("first") else {
        assert_eq!(f.as_deref(), Some("old"), "{context}");
        return;
    };
    let expected = if first == "ok" { "new" } else { "old" };
    assert_eq!((output.value_of("then"), output.value_of("again")), (Some(expected), Some(expected)), "{context}");
    if first == "ok" {
        assert_eq!(f.as_deref(), Some("new"), "{context}: an acknowledged change is lost");
    } else {
        assert!(matches!(first, "audit_unavailable" | "io_error" | "no_space"), "{context}: {first}");
        let second = output.value_of("second");
        if injection.is_final {
            assert_eq!(second, Some("audit_unavailable"), "{context}: written after a failed sync");
        }
    }
    let g = fixture.text_on_disk("g");
    assert!(output.value_of("second") != Some("ok") || g.is_some(), "{context}: an acknowledged change is lost");
}

#[test]
fn store_survives_a_failure_of_any_write_or_sync() {
    let template = Arc::new(fast_temporary_directory());
    let fixture = open(&template);
    fixture.call_ok("write", json!({ "path": "f", "content": "old" }));
    close(fixture);
    for injection in INJECTIONS {
        let mut at = 0;
        loop {
            at += 1;
            let copy = super::rig::copy_directory(&template);
            let Some(output) = run_traced_child(copy.path(), injection, at) else { break };
            let context = format!("{} {} at {at}: {:?}", injection.calls, injection.error, output.0);
            let fixture = open(&copy);
            check_child_output(&output, &fixture, injection, &context);
            fixture.call_ok("write", json!({ "path": "h", "content": "h" }));
            fixture.call_ok("undo", json!({}));
            check_journal(&fixture, &context);
            close(fixture);
        }
        assert!(at > 1 || injection.calls == "ftruncate", "{} never happened", injection.calls);
    }
}
