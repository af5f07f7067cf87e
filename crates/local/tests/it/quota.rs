//! Quotas on real files: what counts, what is refused, what stays possible, and what others do meanwhile.

#![expect(clippy::disallowed_methods, reason = "the test does to the directory what others do")]

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use engine::{Caller, Desk, Failure, Kind, Look, Principal, Stock};
use local::{Clock, Moment};
use path::RelPath;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Fixture, options};

/// A clock that stands still until it is moved.
pub(crate) struct Hand(AtomicI64);

impl Hand {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(0)))
    }

    pub(crate) fn advance_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now(&self) -> Moment {
        let passed_ms = self.0.load(Ordering::SeqCst);
        let (wall_ms, uptime_ms) = (1_900_000_000_000 + passed_ms, 1_000_000 + passed_ms);
        Moment { wall_ms, uptime_ms, boot: "one".to_owned() }
    }
}

/// A workspace under a policy, and its clock.
struct Ground {
    at: Fixture,
    clock: Arc<Hand>,
}

impl Ground {
    fn under(policy: &str) -> Self {
        Self::over(tempfile::tempdir().unwrap(), policy)
    }

    fn over(place: TempDir, policy: &str) -> Self {
        let clock = Hand::new();
        let mut options = options(&place);
        options.clock = Arc::clone(&clock) as Arc<dyn Clock>;
        fs::create_dir_all(&options.state).unwrap();
        fs::write(options.state.join("policy.toml"), policy).unwrap();
        Self { at: Fixture::open(place, options), clock }
    }

    /// The same workspace, opened once more: it stands for another process.
    fn again(&self) -> Fixture {
        let mut options = options(&self.at.place);
        options.clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        Fixture::open(Arc::clone(&self.at.place), options)
    }

    fn policy(&self, text: &str) {
        fs::write(self.at.place.path().join("state/policy.toml"), text).unwrap();
    }

    fn known(&self) -> Stock {
        let holding = self.at.workspace.holding(&self.at.caller.principal, Look::Known).unwrap();
        holding.unwrap().stock
    }

    /// What is known is what is there.
    #[track_caller]
    fn exact(&self) -> Stock {
        let known = self.known();
        assert_eq!(known, counted(&self.at.path("")));
        known
    }

    #[track_caller]
    fn refused(&self, operation: &str, arguments: Value) -> Failure {
        let failure = self.at.call(operation, arguments.clone()).unwrap_err();
        assert_eq!(failure.kind, Kind::Quota, "{operation} {arguments}: {failure}");
        failure
    }
}

/// Counts by the operating system's own means.
fn counted(directory: &std::path::Path) -> Stock {
    let mut stock = Stock::default();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let meta = entry.path().symlink_metadata().unwrap();
        stock.files += 1;
        if meta.is_dir() {
            let below = counted(&entry.path());
            stock = Stock { bytes: stock.bytes + below.bytes, files: stock.files + below.files };
        } else {
            stock.bytes += meta.len();
        }
    }
    stock
}

fn user() -> Caller {
    Caller::new(Principal::User("ann".into()), "u1", "library")
}

const BYTES_100: &str = "[system.quota]\nbytes = 100\n";

#[test]
fn a_refusal_says_limit_used_asked_and_what_to_do() {
    let ground = Ground::under(BYTES_100);
    ground.at.put("d/old.txt", &"x".repeat(60));
    let failure = ground.refused("write", json!({ "path": "new.txt", "content": "y".repeat(41) }));
    let fact = |name: &str| failure.facts[name].clone();
    assert_eq!(
        [fact("quota"), fact("limit"), fact("used"), fact("asked"), fact("left")],
        [json!("bytes"), json!(100), json!(60), json!(41), json!(40)]
    );
    assert!(failure.hint.as_deref().unwrap_or_default().contains("remove"), "{failure}");
    assert_eq!(ground.at.text("new.txt"), None);
    ground.at.ok("write", json!({ "path": "new.txt", "content": "y".repeat(40) }));
    ground.exact();
    let usage = ground.at.ok("usage", json!({}));
    assert_eq!(usage["quota"], json!({ "bytes": { "limit": 100, "used": 100, "left": 0 } }));
    for operation in ["session", "policy"] {
        assert_eq!(ground.at.ok(operation, json!({}))["quota"], usage["quota"], "{operation}");
    }
    let asked = json!({ "operation": "write", "arguments": { "path": "z", "content": "z" } });
    let checked = ground.at.ok("policy", asked);
    assert_eq!((&checked["kind"], &checked["quota"]), (&json!("quota"), &usage["quota"]));
}

/// Every way to put more there, from a workspace that holds 90 of 100 bytes.
#[test]
fn every_way_to_add_is_counted_and_none_goes_around() {
    let patch =
        "--- /dev/null\n+++ b/p1\n@@ -0,0 +1 @@\n+12345\n--- /dev/null\n+++ b/p2\n@@ -0,0 +1 @@\n+12345\n";
    for (operation, arguments) in [
        ("write", json!({ "path": "n", "content": "12345678901" })),
        ("write", json!({ "path": "a/b/c/n", "content": "12345678901" })),
        ("append", json!({ "path": "d/small", "content": "12345678901" })),
        ("edit", json!({ "path": "d/small", "edits": [{ "old": "s", "new": "123456789012" }] })),
        ("patch", json!({ "patch": patch })),
        ("copy", json!({ "from": "d/big", "to": "copied" })),
        ("copy", json!({ "from": "d", "to": "copied" })),
        ("restore", json!({ "trash": "$trash" })),
        ("restore", json!({ "trash": "$trash", "to": "elsewhere" })),
        ("undo", json!({ "entry": "$entry" })),
    ] {
        let ground = Ground::under(BYTES_100);
        ground.at.put("d/big", &"x".repeat(69));
        ground.at.put("d/small", "s");
        ground.at.put("gone", &"g".repeat(20));
        let removed = ground.at.ok("remove", json!({ "path": "gone" }));
        // What came into its place must not be joined by what was there before.
        ground.at.ok("write", json!({ "path": "instead", "content": "i".repeat(20) }));
        let known = |text: String| {
            let trash = removed["trash"].as_str().unwrap();
            text.replace("$trash", trash).replace("\"$entry\"", &removed["entry"].to_string())
        };
        let arguments: Value = serde_json::from_str(&known(arguments.to_string())).unwrap();
        let before = ground.exact();
        assert_eq!(before.bytes, 90);
        let failure = ground.refused(operation, arguments.clone());
        assert_eq!(failure.facts["used"], 90, "{operation} {arguments}");
        assert_eq!(ground.exact(), before, "{operation} {arguments}");
        // Ten bytes still fit, and whatever takes away stays possible.
        ground.at.ok("write", json!({ "path": "fits", "content": "1234567890" }));
        ground.at.ok("move", json!({ "from": "d/small", "to": "moved" }));
        let base = ground.at.ok("stat", json!({ "path": "d/big" }))["version"].clone();
        ground.at.ok("write", json!({ "path": "d/big", "content": "", "base": base }));
        ground.at.ok("remove", json!({ "path": "d", "recursive": true }));
        ground.exact();
    }
}

#[test]
fn a_workspace_that_is_over_its_limit_can_be_emptied_and_undone_and_not_filled() {
    let ground = Ground::under("[system.quota]\nbytes = 100\nfiles = 3\n");
    for name in ["a", "b", "c", "d", "e"] {
        ground.at.put(name, &"x".repeat(100));
    }
    ground.refused("write", json!({ "path": "n", "content": "" }));
    let removed = ground.at.ok("remove", json!({ "path": "a" }));
    ground.at.ok("undo", json!({ "entry": removed["entry"] }));
    assert_eq!(ground.exact(), Stock { bytes: 500, files: 5 });
    // Twice is not more than once.
    let removed = ground.at.ok("remove", json!({ "path": "a" }));
    for name in ["b", "c", "d", "e"] {
        ground.at.ok("remove", json!({ "path": name }));
    }
    ground.at.ok("write", json!({ "path": "n", "content": "x".repeat(100) }));
    ground.refused("restore", json!({ "trash": removed["trash"] }));
    ground.exact();
}

#[test]
fn a_hole_counts_by_its_length() {
    let ground = Ground::under(BYTES_100);
    fs::File::create(ground.at.path("sparse")).unwrap().set_len(1 << 26).unwrap();
    let failure = ground.refused("write", json!({ "path": "n", "content": "1" }));
    assert_eq!(failure.facts["used"], 1_u64 << 26);
    ground.at.ok("remove", json!({ "path": "sparse" }));
    ground.at.ok("write", json!({ "path": "n", "content": "1" }));
    assert_eq!(ground.exact(), Stock { bytes: 1, files: 1 });
}

#[test]
fn directories_and_links_count_as_files_and_half_made_files_do_not() {
    let ground = Ground::under("[system.quota]\nfiles = 5\n");
    fs::create_dir_all(ground.at.path("d/e")).unwrap();
    std::os::unix::fs::symlink("d", ground.at.path("link")).unwrap();
    fs::write(ground.at.path(&format!("d/{}left", path::TEMPORARY_PREFIX)), "half made").unwrap();
    ground.refused("write", json!({ "path": "x/y/z", "content": "" }));
    ground.at.ok("write", json!({ "path": "x/z", "content": "" }));
    assert_eq!(ground.known().files, 5);
    ground.refused("write", json!({ "path": "w", "content": "" }));
}

#[test]
fn threads_and_processes_together_never_pass_the_limit() {
    const WRITERS: usize = 6;
    const EACH: usize = 12;
    let ground = Ground::under("[system.quota]\nbytes = 400\n");
    let other = ground.again();
    let done: usize = std::thread::scope(|scope| {
        let write = |writer: usize| {
            let at = if writer.is_multiple_of(2) { &ground.at } else { &other };
            let tries = (0..EACH).map(|file| {
                let path = format!("w{writer}/f{file}");
                at.call("write", json!({ "path": path, "content": "1234567890" }))
            });
            let kinds: Vec<_> = tries.map(|done| done.map(|_| ()).map_err(|failure| failure.kind)).collect();
            assert!(kinds.iter().all(|kind| matches!(kind, Ok(()) | Err(Kind::Quota))), "{kinds:?}");
            kinds.iter().filter(|kind| kind.is_ok()).count()
        };
        let threads: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(done, 40, "as many as fit, and not one more");
    assert_eq!(ground.exact().bytes, 400);
}

#[test]
fn what_others_change_is_counted_before_a_refusal_and_now_and_then() {
    let ground = Ground::under(BYTES_100);
    ground.at.put("a", &"x".repeat(100));
    ground.refused("write", json!({ "path": "n", "content": "12345" }));
    // Somebody makes room by hand. A count of a moment ago is not made again, or refusals would keep the disk busy.
    fs::remove_file(ground.at.path("a")).unwrap();
    ground.refused("write", json!({ "path": "n", "content": "12345" }));
    ground.clock.advance_ms(1_000);
    ground.at.ok("write", json!({ "path": "n", "content": "12345" }));
    ground.exact();
    // Somebody fills it by hand: the next count finds out.
    ground.at.put("b", &"x".repeat(200));
    ground.at.ok("write", json!({ "path": "m", "content": "1" }));
    ground.clock.advance_ms(5 * 60 * 1_000);
    ground.refused("write", json!({ "path": "o", "content": "1" }));
    assert_eq!(ground.exact().bytes, 206);
}

#[test]
fn where_no_quota_is_set_nothing_is_counted_and_what_was_missed_is_counted_later() {
    let ground = Ground::under("");
    ground.at.ok("write", json!({ "path": "a", "content": "12345" }));
    let principal = &ground.at.caller.principal;
    assert_eq!(ground.at.workspace.holding(principal, Look::Known).unwrap(), None);
    ground.policy("[agent.\"agent:nobody\".quota]\nbytes = 1\n");
    ground.at.ok("write", json!({ "path": "b", "content": "12345" }));
    assert_eq!(ground.exact().bytes, 10);
    ground.policy("");
    ground.at.ok("write", json!({ "path": "c", "content": "12345" }));
    assert_eq!(ground.known().bytes, 10, "nobody counts");
    ground.policy(BYTES_100);
    ground.clock.advance_ms(30 * 1_000);
    ground.at.ok("write", json!({ "path": "d", "content": "12345" }));
    assert_eq!(ground.exact().bytes, 20);
}

#[test]
fn the_strictest_layer_holds_and_only_for_whom_it_is() {
    let policy = "[system.quota]\nbytes = 100\n[organisation.quota]\nbytes = 50\nfiles = 9\n\
                  [agent.\"agent:*\".quota]\nbytes = 20\n[agent.\"agent:tester\".quota]\nbytes = 30\n";
    let ground = Ground::under(policy);
    let failure = ground.refused("write", json!({ "path": "a", "content": "x".repeat(21) }));
    assert_eq!(failure.facts["limit"], 20);
    ground.at.call_as(&user(), "write", json!({ "path": "a", "content": "x".repeat(50) })).unwrap();
    let person = ground.at.call_as(&user(), "write", json!({ "path": "b", "content": "x" }));
    assert_eq!(person.unwrap_err().facts["limit"], 50);
    ground.exact();
}

/// Removing and writing again fills the trash, not the disk; what is over its time makes room, nothing else does.
#[test]
fn the_trash_has_a_limit_of_its_own_and_lets_nothing_go_early() {
    let ground = Ground::under("[agent.\"agent:*\".quota]\nbytes = 10\ntrash_bytes = 40\n");
    ground.at.put("theirs", "1234567890");
    ground.at.call_as(&user(), "remove", json!({ "path": "theirs" })).unwrap();
    let write = |at: &Fixture| at.call("write", json!({ "path": "f", "content": "1234567890" }));
    let remove = |at: &Fixture| at.call("remove", json!({ "path": "f" }));
    let mut refused = 0;
    for _ in 0..20 {
        let outcomes = [write(&ground.at), remove(&ground.at)];
        refused += outcomes.iter().filter(|outcome| outcome.is_err()).count();
        for failure in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
            assert!([Kind::Quota, Kind::BaseRequired].contains(&failure.kind), "{failure}");
        }
    }
    assert!(refused > 20, "{refused}");
    let items = |at: &Fixture| engine::Workspace::trash(&*at.workspace, None).unwrap().len();
    assert_eq!(items(&ground.at), 5, "four of the agent's, one of the person's");
    let failure = ground.refused("remove", json!({ "path": "f" }));
    assert_eq!((&failure.facts["quota"], &failure.facts["used"]), (&json!("trash_bytes"), &json!(40)));
    // What is in there can come back, and makes room.
    let trash = engine::Workspace::trash(&*ground.at.workspace, Some(&ground.at.caller.principal)).unwrap();
    let base = ground.at.ok("stat", json!({ "path": "f" }))["version"].clone();
    ground.at.ok("write", json!({ "path": "f", "content": "", "base": base }));
    ground.at.ok("restore", json!({ "trash": trash[0].id, "to": "back" }));
    ground.at.ok("remove", json!({ "path": "back" }));
    // A day later its time is over: it goes, and the person's stays.
    ground.clock.advance_ms(24 * 60 * 60 * 1_000 + 1);
    ground.at.ok("write", json!({ "path": "g", "content": "1234567890" }));
    ground.at.ok("remove", json!({ "path": "g" }));
    assert_eq!(items(&ground.at), 2);
}

#[test]
fn history_is_dropped_oldest_first_and_never_a_person_s() {
    let ground = Ground::under("[agent.\"agent:*\".quota]\nhistory_bytes = 20000\n");
    let text = |round: usize| format!("{round:05}").repeat(1_000);
    let person = text(99_999);
    ground.at.call_as(&user(), "write", json!({ "path": "p", "content": person })).unwrap();
    let first = ground.at.ok("write", json!({ "path": "f", "content": text(0) }));
    let mut base = first["version"].clone();
    for round in 1..40 {
        let done = ground.at.ok("write", json!({ "path": "f", "content": text(round), "base": base }));
        base = done["version"].clone();
    }
    let kept = ground.at.workspace.history_bytes(&ground.at.caller.principal).unwrap();
    assert!(kept <= 2 * 20_000, "{kept}");
    let pruned = engine::EntryFilter { operation: Some("prune".into()), limit: 9, ..Default::default() };
    assert!(
        !engine::Workspace::entries(&*ground.at.workspace, &pruned).unwrap().is_empty(),
        "not in silence"
    );
    let old = ground.at.call("read", json!({ "path": "f", "rev": format!("r{}", first["entry"]) }));
    assert!(old.is_err(), "the oldest went first");
    let version = engine::Version::of(person.as_bytes());
    assert!(engine::Workspace::kept(&*ground.at.workspace, &version).unwrap().is_some());
    ground.at.ok("undo", json!({}));
    assert_eq!(ground.at.text("f"), Some(text(38)));
}

#[test]
fn a_quota_on_the_whole_machine_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let mut options = options(&place);
    fs::create_dir_all(options.workspace.join("home")).unwrap();
    fs::create_dir_all(&options.state).unwrap();
    fs::write(options.state.join("policy.toml"), BYTES_100).unwrap();
    options.home = RelPath::from_wire("home").unwrap();
    let at = Fixture::open(place, options);
    assert_eq!(at.kind("write", json!({ "path": "home/a", "content": "1" })), "policy_denied");
}

/// The file is far larger than the memory that a call may take.
#[test]
fn a_file_that_is_too_large_is_refused_at_once_and_a_range_is_offered() {
    let at = Fixture::new();
    fs::File::create(at.path("big")).unwrap().set_len(10 << 30).unwrap();
    let started = std::time::Instant::now();
    let failure = at.call("read", json!({ "path": "big" })).unwrap_err();
    assert_eq!(failure.kind, Kind::TooLarge);
    assert!(failure.hint.as_deref().unwrap_or_default().contains("bytes \"0-"), "{failure}");
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}
