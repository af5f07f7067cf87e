//! The store's own system calls fail: those go through no gate of ours, so a tracer answers in the kernel's place.
//! A change that was not acknowledged is not there while the workspace is open; reading goes on; after a failed sync
//! nothing is written until the workspace is opened again; and then the journal tells what is on the disk.

#![expect(clippy::disallowed_methods, reason = "the test needs a traced process")]

use std::{path::PathBuf, process::Command, sync::Arc};

use engine::{Call, Caller, Engine, Principal};
use local::LocalWorkspace;
use serde_json::{Value, json};

use super::rig::{check_journal, close, open, place};
use crate::support::options_at;

const PLACE: &str = "STEAD_TEST_STORE";
const TRACER: &str = "strace";

/// What a tracer must be able to answer.
struct Injection {
    calls: &'static str,
    error: &'static str,
    /// Whether nothing may be written any more until the workspace is opened again.
    is_final: bool,
}

const INJECTIONS: &[Injection] = &[
    Injection { calls: "fsync,fdatasync", error: "EIO", is_final: true },
    Injection { calls: "fsync,fdatasync", error: "ENOSPC", is_final: true },
    Injection { calls: "pwrite64", error: "EIO", is_final: false },
    Injection { calls: "pwrite64", error: "ENOSPC", is_final: false },
    Injection { calls: "ftruncate", error: "EIO", is_final: false },
];

/// What the child said, line by line.
struct Said(String);

impl Said {
    fn of(&self, word: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '))
    }
}

/// Runs the child under the tracer, its n-th such call failing. Nothing when there is no n-th.
fn traced(place: &std::path::Path, injection: &Injection, at: u64) -> Option<Said> {
    let log = place.join("trace");
    let Injection { calls, error, .. } = injection;
    let output = Command::new(TRACER)
        .args(["-f", "-qq", "-o"])
        .arg(&log)
        .args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:error={error}:when={at}")])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "faults::store::child_process", "--nocapture", "--test-threads=1"])
        .env(PLACE, place)
        .output()
        .unwrap_or_else(|error| panic!("this test needs the package '{TRACER}': {error}"));
    let said = String::from_utf8(output.stdout).unwrap();
    let trace = std::fs::read_to_string(&log).unwrap();
    assert!(said.contains("end"), "{calls} {at}: {said} {}", String::from_utf8_lossy(&output.stderr));
    trace.contains("(INJECTED)").then_some(Said(said))
}

/// Runs in the child only.
#[test]
fn child_process() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let caller = Caller::new(Principal::Agent("tester".into()), "s1", "library");
    match LocalWorkspace::open(options_at(&PathBuf::from(place))) {
        Err(failure) => println!("\nopened {}", failure.kind.code()),
        Ok(workspace) => {
            println!("\nopened ok");
            let engine = Engine::new(workspace);
            let call = |operation: &str, arguments: Value| {
                let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
                engine.call(&Call::new(&caller, operation, arguments))
            };
            let outcome = |answer: Result<engine::Answer, engine::Failure>| match answer {
                Ok(_) => "ok".to_owned(),
                Err(failure) => failure.kind.code().to_owned(),
            };
            let read = || match call("read", json!({ "path": "f" })) {
                Ok(answer) => answer.json["content"].as_str().unwrap().trim().to_owned(),
                Err(failure) => failure.kind.code().to_owned(),
            };
            let base = engine::Version::of(b"old").to_string();
            let replace = json!({ "path": "f", "content": "new", "base": base });
            println!("first {}", outcome(call("write", replace)));
            println!("then {}", read());
            println!("second {}", outcome(call("write", json!({ "path": "g", "content": "g" }))));
            println!("again {}", read());
            println!("end");
            // Nothing is closed, so that the store is found as it was left.
            std::process::exit(0);
        }
    }
    println!("end");
    std::process::exit(0);
}

fn check(said: &Said, fixture: &crate::support::Fixture, injection: &Injection, context: &str) {
    check_journal(fixture, context);
    let f = fixture.text("f");
    let Some(first) = said.of("first") else {
        assert_eq!(f.as_deref(), Some("old"), "{context}");
        return;
    };
    let expected = if first == "ok" { "new" } else { "old" };
    assert_eq!((said.of("then"), said.of("again")), (Some(expected), Some(expected)), "{context}");
    if first == "ok" {
        assert_eq!(f.as_deref(), Some("new"), "{context}: an acknowledged change is lost");
    } else {
        assert!(matches!(first, "audit_unavailable" | "io_error" | "no_space"), "{context}: {first}");
        let second = said.of("second");
        if injection.is_final {
            assert_eq!(second, Some("audit_unavailable"), "{context}: written after a failed sync");
        }
    }
    let g = fixture.text("g");
    assert!(said.of("second") != Some("ok") || g.is_some(), "{context}: an acknowledged change is lost");
}

#[test]
fn the_store_may_fail_at_every_write_and_sync() {
    let template = Arc::new(place());
    let fixture = open(&template);
    fixture.ok("write", json!({ "path": "f", "content": "old" }));
    close(fixture);
    for injection in INJECTIONS {
        let mut at = 0;
        loop {
            at += 1;
            let copy = super::rig::copy_of(&template);
            let Some(said) = traced(copy.path(), injection, at) else { break };
            let context = format!("{} {} at {at}: {:?}", injection.calls, injection.error, said.0);
            let fixture = open(&copy);
            check(&said, &fixture, injection, &context);
            fixture.ok("write", json!({ "path": "h", "content": "h" }));
            fixture.ok("undo", json!({}));
            check_journal(&fixture, &context);
            close(fixture);
        }
        assert!(at > 1 || injection.calls == "ftruncate", "{} never happened", injection.calls);
    }
}
