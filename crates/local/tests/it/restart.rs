//! What outlives a process and a clock that was set: questions, answers, sessions, leases and trash are there again after
//! another opening, whatever the wall clock says, and nothing is used or purged that should not be.

use std::sync::{Arc, Mutex};

use engine::{ApprovalState, Approver, Caller, Desk, Kind, Principal, Workspace};
use local::{Clock, Moment};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Fixture, options};

const HOUR_MS: i64 = 60 * 60 * 1_000;

/// Clocks that can be set one by one.
#[derive(Clone)]
struct Clocks(Arc<Mutex<Moment>>);

impl Clocks {
    fn new() -> Self {
        let now = Moment { wall_ms: 1_900_000_000_000, uptime_ms: 5_000_000, boot: "first".to_owned() };
        Self(Arc::new(Mutex::new(now)))
    }

    fn set(&self, change: impl FnOnce(&mut Moment)) {
        change(&mut self.0.lock().unwrap());
    }

    /// Time passes.
    fn pass_ms(&self, ms: i64) {
        self.set(|now| {
            now.wall_ms += ms;
            now.uptime_ms += ms;
        });
    }
}

impl Clock for Clocks {
    fn now(&self) -> Moment {
        self.0.lock().unwrap().clone()
    }
}

const ASK: &str =
    "[[system.rules]]\noperations = [\"append\"]\nprincipals = [\"agent:*\"]\ntier = \"approval_required\"\n";

fn open(place: impl Into<Arc<TempDir>>, clocks: &Clocks) -> Fixture {
    let place = place.into();
    let mut options = options(&place);
    options.clock = Arc::new(clocks.clone());
    #[expect(clippy::disallowed_methods, reason = "the operator writes the policy")]
    {
        std::fs::create_dir_all(&options.state).unwrap();
        std::fs::write(options.state.join("policy.toml"), ASK).unwrap();
    }
    Fixture::open(place, options)
}

fn person() -> Caller {
    let mut caller = Caller::new(Principal::User("ann".into()), "u1", "library");
    caller.grants.approver = Approver::Shown;
    caller
}

/// What was left open when the process ended.
struct Left {
    asked: String,
    approved: String,
    session: Value,
    trash: String,
}

fn append(content: &str) -> Value {
    json!({ "path": "log", "content": content })
}

fn ask(at: &Fixture, content: &str) -> String {
    let failure = at.call("append", append(content)).unwrap_err();
    assert_eq!(failure.kind, Kind::ApprovalPending, "{failure}");
    failure.facts["approval"].as_str().unwrap().to_owned()
}

fn leave(at: &Fixture) -> Left {
    at.put("log", "");
    at.put("gone", "precious");
    let asked = ask(at, "never");
    let approved = ask(at, "once");
    at.call_as(&person(), "approve", json!({ "id": approved })).unwrap();
    let session = at.ok("session", json!({ "action": "begin" }))["session"].clone();
    at.ok("lock", json!({ "path": "held", "seconds": 600 }));
    let trash = at.ok("remove", json!({ "path": "gone" }))["trash"].as_str().unwrap().to_owned();
    Left { asked, approved, session, trash }
}

/// How things stand now.
fn standing(at: &Fixture, left: &Left) -> (ApprovalState, ApprovalState, bool, bool, bool) {
    let state = |id: &str| at.workspace.approval(id).unwrap().unwrap().state;
    let session = at.workspace.session(left.session.as_str().unwrap()).unwrap().unwrap();
    let held = !at.workspace.leases(&[path::RelPath::from_wire("held").unwrap()]).unwrap().is_empty();
    at.workspace.empty_expired().unwrap();
    let there = at.workspace.trashed(&left.trash).unwrap().is_some();
    (state(&left.asked), state(&left.approved), session.ended_ms.is_none(), held, there)
}

#[test]
fn what_was_open_is_open_again_whatever_the_clock_says() {
    use ApprovalState::{Approved, Expired, Pending};
    type Setting = fn(&Clocks);
    let cases: [(&str, Setting, _); 8] = [
        ("at once", |_| {}, (Pending, Approved, true, true, true)),
        ("a minute later", |clocks| clocks.pass_ms(60_000), (Pending, Approved, true, true, true)),
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
                clocks.pass_ms(25 * HOUR_MS);
            },
            (Expired, Expired, true, false, true),
        ),
        ("nearly a day", |clocks| clocks.pass_ms(24 * HOUR_MS - 1), (Pending, Approved, true, false, true)),
        (
            "a day and a bit",
            |clocks| clocks.pass_ms(24 * HOUR_MS + 1),
            (Expired, Expired, true, false, false),
        ),
        (
            "another start of the machine, five minutes later",
            |clocks| {
                clocks.set(|now| {
                    now.boot = "second".to_owned();
                    now.uptime_ms = 1_000;
                    now.wall_ms += 300_000;
                });
            },
            (Pending, Approved, true, true, true),
        ),
    ];
    for (title, set, expected) in cases {
        let (place, clocks) = (Arc::new(tempfile::tempdir().unwrap()), Clocks::new());
        let at = open(Arc::clone(&place), &clocks);
        let left = leave(&at);
        set(&clocks);
        // The process that runs and the one that is started see the same.
        assert_eq!(standing(&at, &left), expected, "{title}, running");
        drop(at);
        let at = open(place, &clocks);
        assert_eq!(standing(&at, &left), expected, "{title}, started again");
    }
}

#[test]
fn a_yes_is_used_once_over_every_restart() {
    let (place, clocks) = (Arc::new(tempfile::tempdir().unwrap()), Clocks::new());
    let at = open(Arc::clone(&place), &clocks);
    let left = leave(&at);
    drop(at);
    let at = open(Arc::clone(&place), &clocks);
    at.ok("append", append("once"));
    assert_eq!(at.text("log").as_deref(), Some("once"));
    for shift_ms in [0, -48 * HOUR_MS, 96 * HOUR_MS] {
        clocks.set(|now| now.wall_ms += shift_ms);
        let at = open(Arc::clone(&place), &clocks);
        assert_eq!(at.workspace.approval(&left.approved).unwrap().unwrap().state, ApprovalState::Used);
        ask(&at, "once");
        let again = at.call_as(&person(), "approve", json!({ "id": left.approved })).unwrap_err();
        assert_eq!(again.kind, Kind::Conflict, "{again}");
        assert_eq!(at.text("log").as_deref(), Some("once"));
    }
}

#[test]
fn a_lease_lasts_as_long_as_was_said_and_its_number_never_comes_again() {
    let (place, clocks) = (Arc::new(tempfile::tempdir().unwrap()), Clocks::new());
    let at = open(Arc::clone(&place), &clocks);
    let first = at.ok("lock", json!({ "path": "f", "seconds": 600 }))["fence"].as_u64().unwrap();
    let other = Caller::new(Principal::Agent("other".into()), "s2", "library");
    let take =
        |at: &Fixture| at.call_as(&other, "lock", json!({ "path": "f" })).map_err(|failure| failure.kind);
    for shift_ms in [48 * HOUR_MS, -96 * HOUR_MS, 48 * HOUR_MS] {
        clocks.set(|now| now.wall_ms += shift_ms);
        assert_eq!(take(&at).map(|_| ()), Err(Kind::Locked), "{shift_ms}");
        assert_eq!(take(&open(Arc::clone(&place), &clocks)).map(|_| ()), Err(Kind::Locked), "{shift_ms}");
    }
    clocks.set(|now| now.wall_ms -= 48 * HOUR_MS);
    clocks.pass_ms(600_000);
    let at = open(place, &clocks);
    let second = take(&at).unwrap().json["fence"].as_u64().unwrap();
    assert!(second > first, "{first} {second}");
}

#[test]
fn a_clock_that_was_set_empties_no_trash_until_somebody_trusts_it() {
    let (place, clocks) = (Arc::new(tempfile::tempdir().unwrap()), Clocks::new());
    let at = open(Arc::clone(&place), &clocks);
    let left = leave(&at);
    clocks.set(|now| now.wall_ms += 48 * HOUR_MS);
    for _ in 0..3 {
        let at = open(Arc::clone(&place), &clocks);
        assert_eq!(at.workspace.empty_expired().unwrap(), 0);
        assert!(at.workspace.trashed(&left.trash).unwrap().is_some());
    }
    // Set right again, it comes back.
    clocks.set(|now| now.wall_ms -= 48 * HOUR_MS);
    at.ok("restore", json!({ "trash": left.trash }));
    assert_eq!(at.text("gone").as_deref(), Some("precious"));
    let again = at.ok("remove", json!({ "path": "gone" }))["trash"].as_str().unwrap().to_owned();
    clocks.set(|now| now.wall_ms += 48 * HOUR_MS);
    at.workspace.trust_clock().unwrap();
    assert_eq!(at.workspace.empty_expired().unwrap(), 1);
    assert!(at.workspace.trashed(&again).unwrap().is_none());
}
