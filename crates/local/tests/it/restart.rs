//! Tests that approvals, sessions, leases and trash survive the end of a process and changes of the wall clock. After a
//! restart, no approval is used twice, and nothing is deleted too early.

use std::sync::Arc;
use testkit::ErrorDetailsJson;

use serde_json::{Value, json};
use stead_engine::{ApprovalState, Caller, CallerApproverStatus, ErrorKind, Principal, Workspace};
use tempfile::TempDir;

use crate::support::{LocalFixture, SettableClock, test_options};

const HOUR_MS: i64 = 60 * 60 * 1_000;

const APPROVAL_POLICY: &str =
    "[[system.rules]]\noperations = [\"append\"]\nprincipals = [\"agent:*\"]\ntier = \"approval_required\"\n";

fn open(directory: impl Into<Arc<TempDir>>, clocks: &SettableClock) -> LocalFixture {
    let directory = directory.into();
    let mut options = test_options(&directory);
    options.clock = Arc::new(clocks.clone());
    #[expect(clippy::disallowed_methods, reason = "the operator writes the policy")]
    {
        std::fs::create_dir_all(&options.state_path).unwrap();
        std::fs::write(options.state_path.join("policy.toml"), APPROVAL_POLICY).unwrap();
    }
    LocalFixture::open(directory, options)
}

fn person_caller() -> Caller {
    let mut caller = Caller::new(Principal::User("ann".into()), "u1", "library");
    caller.grants.approver = CallerApproverStatus::SecretVerified;
    caller
}

struct RestartTestOpenItems {
    waiting_approval: String,
    granted_approval: String,
    session: Value,
    trash: String,
}

fn append(content: &str) -> Value {
    json!({ "path": "log", "content": content })
}

fn request_approval(at: &LocalFixture, content: &str) -> String {
    let error = at.call("append", append(content)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ApprovalPending, "{error}");
    error.details_json()["approval"].as_str().unwrap().to_owned()
}

fn create_open_items(at: &LocalFixture) -> RestartTestOpenItems {
    at.write_on_disk("log", "");
    at.write_on_disk("gone", "precious");
    let asked = request_approval(at, "never");
    let approved = request_approval(at, "once");
    at.call_as(&person_caller(), "approve", json!({ "id": approved })).unwrap();
    let session = at.call_ok("session", json!({ "action": "begin" }))["session"].clone();
    at.call_ok("lock", json!({ "path": "held", "seconds": 600 }));
    let trash = at.call_ok("remove", json!({ "path": "gone" }))["trash"].as_str().unwrap().to_owned();
    RestartTestOpenItems { waiting_approval: asked, granted_approval: approved, session, trash }
}

fn open_item_states(
    at: &LocalFixture,
    left: &RestartTestOpenItems,
) -> (ApprovalState, ApprovalState, bool, bool, bool) {
    let workspace: &dyn Workspace = &*at.workspace;
    let state = |id: &str| workspace.approval(id).unwrap().unwrap().state;
    let session = workspace.session(left.session.as_str().unwrap()).unwrap().unwrap();
    let held = !workspace.leases(&[stead_path::RelPath::from_wire("held").unwrap()]).unwrap().is_empty();
    at.workspace.delete_expired_trash().unwrap();
    let there = at.workspace.trash_item(&left.trash).unwrap().is_some();
    (state(&left.waiting_approval), state(&left.granted_approval), session.ended_ms.is_none(), held, there)
}

#[test]
fn open_items_survive_restarts_and_clock_changes() {
    use ApprovalState::{Approved, Expired, Pending};
    type ClockSetting = fn(&SettableClock);
    let cases: [(&str, ClockSetting, _); 8] = [
        ("at once", |_| {}, (Pending, Approved, true, true, true)),
        ("a minute later", |clocks| clocks.advance_ms(60_000), (Pending, Approved, true, true, true)),
        (
            "the wall clock set forward",
            |clocks| clocks.set(|now| now.wall_ms += 48 * HOUR_MS),
            (Pending, Approved, true, true, true),
        ),
        (
            "the wall clock set back",
            |clocks| clocks.set(|now| now.wall_ms -= 48 * HOUR_MS),
            (Pending, Approved, true, true, true),
        ),
        (
            "set back, and a day passed",
            |clocks| {
                clocks.set(|now| now.wall_ms -= 48 * HOUR_MS);
                clocks.advance_ms(25 * HOUR_MS);
            },
            (Expired, Expired, true, false, true),
        ),
        ("nearly a day", |clocks| clocks.advance_ms(24 * HOUR_MS - 1), (Pending, Approved, true, false, true)),
        ("a day and a bit", |clocks| clocks.advance_ms(24 * HOUR_MS + 1), (Expired, Expired, true, false, false)),
        (
            "another start of the machine, five minutes later",
            |clocks| {
                clocks.set(|now| {
                    now.boot_id = "second".to_owned();
                    now.uptime_ms = 1_000;
                    now.wall_ms += 300_000;
                });
            },
            (Pending, Approved, true, true, true),
        ),
    ];
    for (title, set, expected) in cases {
        let (directory, clocks) = (Arc::new(tempfile::tempdir().unwrap()), SettableClock::new());
        let at = open(Arc::clone(&directory), &clocks);
        let left = create_open_items(&at);
        set(&clocks);
        // The running process and a new one see the same states.
        assert_eq!(open_item_states(&at, &left), expected, "{title}, running");
        drop(at);
        let at = open(directory, &clocks);
        assert_eq!(open_item_states(&at, &left), expected, "{title}, started again");
    }
}

#[test]
fn approvals_are_used_once_across_restarts() {
    let (directory, clocks) = (Arc::new(tempfile::tempdir().unwrap()), SettableClock::new());
    let at = open(Arc::clone(&directory), &clocks);
    let left = create_open_items(&at);
    drop(at);
    let at = open(Arc::clone(&directory), &clocks);
    at.call_ok("append", append("once"));
    assert_eq!(at.text_on_disk("log").as_deref(), Some("once"));
    for shift_ms in [0, -48 * HOUR_MS, 96 * HOUR_MS] {
        clocks.set(|now| now.wall_ms += shift_ms);
        let at = open(Arc::clone(&directory), &clocks);
        let workspace: &dyn Workspace = &*at.workspace;
        assert_eq!(workspace.approval(&left.granted_approval).unwrap().unwrap().state, ApprovalState::Used);
        request_approval(&at, "once");
        let again = at.call_as(&person_caller(), "approve", json!({ "id": left.granted_approval })).unwrap_err();
        assert_eq!(again.kind, ErrorKind::Conflict, "{again}");
        assert_eq!(at.text_on_disk("log").as_deref(), Some("once"));
    }
}

#[test]
fn leases_keep_their_duration_and_fences_are_never_reused() {
    let (directory, clocks) = (Arc::new(tempfile::tempdir().unwrap()), SettableClock::new());
    let at = open(Arc::clone(&directory), &clocks);
    let first = at.call_ok("lock", json!({ "path": "f", "seconds": 600 }))["fence"].as_u64().unwrap();
    let other = Caller::new(Principal::Agent("other".into()), "s2", "library");
    let take = |at: &LocalFixture| at.call_as(&other, "lock", json!({ "path": "f" })).map_err(|error| error.kind);
    for shift_ms in [48 * HOUR_MS, -96 * HOUR_MS, 48 * HOUR_MS] {
        clocks.set(|now| now.wall_ms += shift_ms);
        assert_eq!(take(&at).map(|_| ()), Err(ErrorKind::Locked), "{shift_ms}");
        assert_eq!(take(&open(Arc::clone(&directory), &clocks)).map(|_| ()), Err(ErrorKind::Locked), "{shift_ms}");
    }
    clocks.set(|now| now.wall_ms -= 48 * HOUR_MS);
    clocks.advance_ms(600_000);
    let at = open(directory, &clocks);
    let second = take(&at).unwrap().json["fence"].as_u64().unwrap();
    assert!(second > first, "{first} {second}");
}

#[test]
fn clock_jumps_do_not_empty_the_trash() {
    let (directory, clocks) = (Arc::new(tempfile::tempdir().unwrap()), SettableClock::new());
    let at = open(Arc::clone(&directory), &clocks);
    let left = create_open_items(&at);
    clocks.set(|now| now.wall_ms += 48 * HOUR_MS);
    for _ in 0..3 {
        let at = open(Arc::clone(&directory), &clocks);
        assert_eq!(at.workspace.delete_expired_trash().unwrap(), 0);
        assert!(at.workspace.trash_item(&left.trash).unwrap().is_some());
    }
    // With the clock corrected, the trash item is valid again.
    clocks.set(|now| now.wall_ms -= 48 * HOUR_MS);
    at.call_ok("restore", json!({ "trash": left.trash }));
    assert_eq!(at.text_on_disk("gone").as_deref(), Some("precious"));
    let again = at.call_ok("remove", json!({ "path": "gone" }))["trash"].as_str().unwrap().to_owned();
    clocks.set(|now| now.wall_ms += 48 * HOUR_MS);
    at.workspace.accept_clock().unwrap();
    assert_eq!(at.workspace.delete_expired_trash().unwrap(), 1);
    assert!(at.workspace.trash_item(&again).unwrap().is_none());
}
