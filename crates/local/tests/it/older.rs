//! Tests that a state directory of version 0.1.0, the fixture, can still be opened. The fixture contains a change that
//! was recorded but not applied; `fixtures/0.1.0/README.md` describes its content and origin.

#![expect(clippy::disallowed_methods, reason = "the test copies a directory and looks at it from outside")]

use std::{os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use rusqlite::Connection;
use serde_json::{Value, json};
use stead_engine::{Caller, CallerApproverStatus, ErrorKind, Principal};
use stead_local::{Clock, ClockReading};
use testkit::engine_fixture::agent;

use crate::{
    faults::snapshot::copy_tree,
    support::{LocalFixture, test_options},
};

const MADE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/0.1.0");
const SECRET: &str = "a secret for tests";
const LATER_MS: i64 = 60_000;

/// The test clock reports another boot, because the copied files have new inode numbers.
struct TestClockAfterReboot(i64);

impl Clock for TestClockAfterReboot {
    fn now(&self) -> ClockReading {
        ClockReading { wall_ms: self.0, uptime_ms: 1_000, boot_id: "later".to_owned() }
    }
}

fn facts() -> Value {
    serde_json::from_str(&std::fs::read_to_string(format!("{MADE}/facts.json")).unwrap()).unwrap()
}

fn fact(name: &str) -> String {
    facts()[name].as_str().unwrap().to_owned()
}

pub(crate) fn database(directory: &Path) -> Connection {
    Connection::open(directory.join("state/stead.db")).unwrap()
}

pub(crate) fn opened() -> LocalFixture {
    let directory = tempfile::tempdir().unwrap();
    copy_tree(&Path::new(MADE).join("workspace"), &directory.path().join("ws"));
    copy_tree(&Path::new(MADE).join("state"), &directory.path().join("state"));
    let state = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(directory.path().join("state"), state).unwrap();
    let last_ms: i64 =
        database(directory.path()).query_row("SELECT max(time_ms) FROM entries", [], |row| row.get(0)).unwrap();
    let mut options = test_options(&directory);
    options.clock = Arc::new(TestClockAfterReboot(last_ms + LATER_MS));
    LocalFixture::open(directory, options)
}

fn writer() -> Caller {
    Caller::new(Principal::Agent("writer".into()), fact("session"), "rpc")
}

fn ann() -> Caller {
    let mut caller = Caller::new(Principal::User("ann".into()), "cli-1", "cli");
    caller.grants.approver = CallerApproverStatus::SecretVerified;
    caller
}

impl LocalFixture {
    #[track_caller]
    fn verifies(&self) {
        assert_eq!(self.workspace.verify_journal(None, &[]).unwrap().integrity_error, None);
    }
}

#[test]
fn pending_change_is_applied_and_the_journal_verifies() {
    let fixture = opened();
    let recovery = fixture.workspace.recovery();
    assert_eq!((recovery.entries, recovery.conflicts), (1, 0), "{recovery:?}");
    assert!(recovery.redone_steps > 0, "{recovery:?}");
    assert_eq!(fixture.text_on_disk("replaced.txt").as_deref(), Some("after\n"));
    assert_eq!(fixture.text_on_disk("pending/new.txt").as_deref(), Some("pending\n"));
    fixture.verifies();
    fixture.with_caller(&writer()).call_ok("undo", json!({}));
    assert_eq!(fixture.text_on_disk("replaced.txt").as_deref(), Some("before\n"));
    assert_eq!(fixture.text_on_disk("pending/new.txt"), None);
    fixture.verifies();
}

#[test]
fn old_changes_are_undone_and_removed_files_are_restored() {
    let fixture = opened();
    assert_eq!(fixture.text_on_disk("notes.txt").as_deref(), Some("one\n2\nthree\n"));
    fixture.with_caller(&writer()).call_ok("undo", json!({ "entry": facts()["first_edit"] }));
    assert_eq!(fixture.text_on_disk("notes.txt").as_deref(), Some("one\ntwo\nthree\n"));
    fixture.with_caller(&writer()).call_ok("undo", json!({ "entry": facts()["large_replaced"] }));
    assert_eq!(fixture.text_on_disk("made/large.txt").map(|text| text.len()), Some(72_001), "its bytes are a blob");
    fixture.with_caller(&writer()).call_ok("restore", json!({ "trash": fact("tree_in_trash") }));
    assert_eq!(fixture.text_on_disk("old/b.txt").as_deref(), Some("b\n"));
    fixture.with_caller(&writer()).call_ok("restore", json!({ "trash": fact("file_in_trash") }));
    assert_eq!(fixture.text_on_disk("made/copy.txt").as_deref(), Some("one\n2\nthree\n"));
    let shown = fixture.with_caller(&ann()).call_ok("history", json!({ "path": "notes.txt" }));
    assert!(shown["entries"].as_array().unwrap().len() >= 2, "{shown:?}");
    fixture.verifies();
}

#[test]
fn old_token_is_still_valid() {
    let fixture = opened();
    let token = fixture.workspace.authenticate_token(&fact("token")).unwrap().expect("it is known");
    assert_eq!((token.principal.as_str(), token.label.as_str()), ("agent:ci", "ci"));
    assert_eq!(token.grants().unwrap().writable, [stead_path::RelPath::from_wire("made").unwrap()]);
    assert!(fixture.workspace.authenticate_token("stead_0000000000000000_x").unwrap().is_none());
}

#[test]
fn pending_approval_is_answered_and_then_used() {
    let fixture = opened();
    let append = |text: &str| json!({ "path": "log.txt", "content": text });
    let done = fixture.with_caller(&writer()).call_ok("append", append("approved\n"));
    assert_eq!(fixture.text_on_disk("log.txt").as_deref(), Some("approved\n"));
    let used = fixture.engine.workspace().approval(&fact("approved")).unwrap().unwrap();
    assert_eq!((used.state.as_str(), used.used_by_entry), ("used", done["entry"].as_u64()));
    fixture.verifies();
}

#[test]
fn pending_approval_matches_the_same_call() {
    let fixture = opened();
    fixture.workspace.check_approver_secret(SECRET).unwrap();
    fixture.workspace.check_approver_secret("another secret").unwrap_err();
    fixture.with_caller(&ann()).call_ok("approve", json!({ "id": fact("waiting") }));
    fixture.with_caller(&writer()).call_ok("append", json!({ "path": "log.txt", "content": "waiting\n" }));
    assert_eq!(fixture.text_on_disk("log.txt").as_deref(), Some("waiting\n"));
    let used = fixture.engine.workspace().approval(&fact("waiting")).unwrap().unwrap();
    assert_eq!(used.state.as_str(), "used");
}

#[test]
fn old_policy_lease_session_alert_and_watch_are_still_valid() {
    let fixture = opened();
    let closed = json!({ "path": "closed/new.txt", "content": "x" });
    fixture.with_caller(&writer()).call_err("write", closed, ErrorKind::PolicyDenied);
    let held = json!({ "path": "held/x", "content": "x" });
    fixture.with_caller(&agent("other")).call_err("write", held, ErrorKind::Locked);
    let session = fixture.with_caller(&writer()).call_ok("session", json!({ "id": fact("session") }));
    assert!(session["calls"].as_u64().unwrap() > 10, "{session:?}");
    let alerts = fixture.with_caller(&ann()).call_ok("alerts", json!({}));
    assert_eq!(alerts["alerts"][0]["alert"], fact("alert").as_str(), "{alerts:?}");
    let review =
        json!(fixture.with_caller(&ann()).call_ok("review", json!({ "session": fact("session") }))).to_string();
    assert!(review.contains("made/new.txt") && !review.contains("notes.txt"), "{review}");
    fixture.with_caller(&writer()).call_ok("unwatch", json!({ "watch": fact("watch") }));
}

#[test]
fn newer_state_is_rejected_with_a_clear_error() {
    let fixture = opened();
    let directory = Arc::clone(&fixture.directory);
    let format = "SELECT value FROM meta WHERE name = 'format'";
    let read_format = |connection: &Connection| connection.query_row(format, [], |row| row.get::<_, i64>(0)).unwrap();
    // Version 0.1.0 opens formats up to 3. It rejects other formats as this version rejects format 5.
    assert_eq!(read_format(&database(directory.path())), 4);
    drop(fixture);
    database(directory.path()).execute("UPDATE meta SET value = 5 WHERE name = 'format'", []).unwrap();
    let error = stead_local::LocalWorkspace::open(test_options(&directory)).map(drop).unwrap_err();
    assert_eq!(error.kind, ErrorKind::AuditUnavailable);
    assert!(error.message.contains("written by a newer version of stead"), "{error:?}");
    assert_eq!(read_format(&database(directory.path())), 5, "a rejected state is not changed");
}
