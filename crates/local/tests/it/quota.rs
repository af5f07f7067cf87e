//! Tests quotas on real files: counting, refusals, calls that stay possible, and concurrent external changes.

#![expect(clippy::disallowed_methods, reason = "the test does to the directory what others do")]

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use serde_json::{Value, json};
use stead_engine::{Caller, Error, ErrorKind, Principal, RequiredUsageFreshness, Workspace, WorkspaceUsage};
use stead_local::{Clock, ClockReading};
use stead_path::RelPath;
use tempfile::TempDir;

use crate::support::{LocalFixture, test_options};
use testkit::{ErrorDetailsJson, hint_text};

pub(crate) struct AdvanceableClock(AtomicI64);

impl AdvanceableClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(0)))
    }

    pub(crate) fn advance_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for AdvanceableClock {
    fn now(&self) -> ClockReading {
        let passed_ms = self.0.load(Ordering::SeqCst);
        let (wall_ms, uptime_ms) = (1_900_000_000_000 + passed_ms, 1_000_000 + passed_ms);
        ClockReading { wall_ms, uptime_ms, boot_id: "one".to_owned() }
    }
}

struct QuotaFixture {
    fixture: LocalFixture,
    clock: Arc<AdvanceableClock>,
}

impl QuotaFixture {
    fn with_policy(policy: &str) -> Self {
        Self::open_with_policy(tempfile::tempdir().unwrap(), policy)
    }

    fn open_with_policy(directory: TempDir, policy: &str) -> Self {
        let clock = AdvanceableClock::new();
        let mut options = test_options(&directory);
        options.clock = Arc::clone(&clock) as Arc<dyn Clock>;
        fs::create_dir_all(&options.state_path).unwrap();
        fs::write(options.state_path.join("policy.toml"), policy).unwrap();
        Self { fixture: LocalFixture::open(directory, options), clock }
    }

    fn reopen(&self) -> LocalFixture {
        let mut options = test_options(&self.fixture.directory);
        options.clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        LocalFixture::open(Arc::clone(&self.fixture.directory), options)
    }

    fn set_policy(&self, text: &str) {
        fs::write(self.fixture.directory.path().join("state/policy.toml"), text).unwrap();
    }

    fn known_usage(&self) -> WorkspaceUsage {
        let holding = self
            .fixture
            .workspace
            .principal_usage(&self.fixture.caller.principal, RequiredUsageFreshness::Cached)
            .unwrap();
        holding.unwrap().workspace
    }

    #[track_caller]
    fn exact_usage(&self) -> WorkspaceUsage {
        let known = self.known_usage();
        assert_eq!(known, measure_directory(&self.fixture.path("")));
        known
    }

    #[track_caller]
    fn expect_quota_error(&self, operation: &str, arguments: Value) -> Error {
        let error = self.fixture.call(operation, arguments.clone()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::QuotaExceeded, "{operation} {arguments}: {error}");
        error
    }
}

fn measure_directory(directory: &std::path::Path) -> WorkspaceUsage {
    let mut stock = WorkspaceUsage::default();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let meta = entry.path().symlink_metadata().unwrap();
        stock.files += 1;
        if meta.is_dir() {
            let below = measure_directory(&entry.path());
            stock = WorkspaceUsage { bytes: stock.bytes + below.bytes, files: stock.files + below.files };
        } else {
            stock.bytes += meta.len();
        }
    }
    stock
}

fn user_caller() -> Caller {
    Caller::new(Principal::User("ann".into()), "u1", "library")
}

const BYTES_100: &str = "[system.quota]\nbytes = 100\n";

#[test]
fn quota_errors_report_limit_usage_and_hint() {
    let quota = QuotaFixture::with_policy(BYTES_100);
    quota.fixture.write_on_disk("d/old.txt", &"x".repeat(60));
    let error = quota.expect_quota_error("write", json!({ "path": "new.txt", "content": "y".repeat(41) }));
    let fact = |name: &str| error.details_json()[name].clone();
    assert_eq!(
        [fact("quota"), fact("limit"), fact("used"), fact("asked"), fact("left")],
        [json!("bytes"), json!(100), json!(60), json!(41), json!(40)]
    );
    assert!(hint_text(&error).contains("remove"), "{error}");
    assert_eq!(quota.fixture.text_on_disk("new.txt"), None);
    quota.fixture.call_ok("write", json!({ "path": "new.txt", "content": "y".repeat(40) }));
    quota.exact_usage();
    let usage = quota.fixture.call_ok("usage", json!({}));
    assert_eq!(usage["quota"], json!({ "bytes": { "limit": 100, "used": 100, "left": 0 } }));
    for operation in ["session", "policy"] {
        assert_eq!(quota.fixture.call_ok(operation, json!({}))["quota"], usage["quota"], "{operation}");
    }
    let asked = json!({ "operation": "write", "arguments": { "path": "z", "content": "z" } });
    let checked = quota.fixture.call_ok("policy", asked);
    assert_eq!((&checked["kind"], &checked["quota"]), (&json!("quota"), &usage["quota"]));
}

/// The test workspace has used 90 of its quota of 100 bytes.
#[test]
fn every_operation_that_adds_is_counted() {
    let patch = "--- /dev/null\n+++ b/p1\n@@ -0,0 +1 @@\n+12345\n--- /dev/null\n+++ b/p2\n@@ -0,0 +1 @@\n+12345\n";
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
        let quota = QuotaFixture::with_policy(BYTES_100);
        quota.fixture.write_on_disk("d/big", &"x".repeat(69));
        quota.fixture.write_on_disk("d/small", "s");
        quota.fixture.write_on_disk("gone", &"g".repeat(20));
        let removed = quota.fixture.call_ok("remove", json!({ "path": "gone" }));
        // The replacement must not be counted together with the replaced content.
        quota.fixture.call_ok("write", json!({ "path": "instead", "content": "i".repeat(20) }));
        let known = |text: String| {
            let trash = removed["trash"].as_str().unwrap();
            text.replace("$trash", trash).replace("\"$entry\"", &removed["entry"].to_string())
        };
        let arguments: Value = serde_json::from_str(&known(arguments.to_string())).unwrap();
        let before = quota.exact_usage();
        assert_eq!(before.bytes, 90);
        let error = quota.expect_quota_error(operation, arguments.clone());
        assert_eq!(error.details_json()["used"], 90, "{operation} {arguments}");
        assert_eq!(quota.exact_usage(), before, "{operation} {arguments}");
        // Ten bytes still fit, and calls that remove content stay possible.
        quota.fixture.call_ok("write", json!({ "path": "fits", "content": "1234567890" }));
        quota.fixture.call_ok("move", json!({ "from": "d/small", "to": "moved" }));
        let base = quota.fixture.call_ok("stat", json!({ "path": "d/big" }))["version"].clone();
        quota.fixture.call_ok("write", json!({ "path": "d/big", "content": "", "base": base }));
        quota.fixture.call_ok("remove", json!({ "path": "d", "recursive": true }));
        quota.exact_usage();
    }
}

#[test]
fn over_quota_allows_removal_and_undo_only() {
    let quota = QuotaFixture::with_policy("[system.quota]\nbytes = 100\nfiles = 3\n");
    for name in ["a", "b", "c", "d", "e"] {
        quota.fixture.write_on_disk(name, &"x".repeat(100));
    }
    quota.expect_quota_error("write", json!({ "path": "n", "content": "" }));
    let removed = quota.fixture.call_ok("remove", json!({ "path": "a" }));
    quota.fixture.call_ok("undo", json!({ "entry": removed["entry"] }));
    assert_eq!(quota.exact_usage(), WorkspaceUsage { bytes: 500, files: 5 });
    let removed = quota.fixture.call_ok("remove", json!({ "path": "a" }));
    for name in ["b", "c", "d", "e"] {
        quota.fixture.call_ok("remove", json!({ "path": name }));
    }
    quota.fixture.call_ok("write", json!({ "path": "n", "content": "x".repeat(100) }));
    quota.expect_quota_error("restore", json!({ "trash": removed["trash"] }));
    quota.exact_usage();
}

#[test]
fn sparse_files_count_by_length() {
    let quota = QuotaFixture::with_policy(BYTES_100);
    fs::File::create(quota.fixture.path("sparse")).unwrap().set_len(1 << 26).unwrap();
    let error = quota.expect_quota_error("write", json!({ "path": "n", "content": "1" }));
    assert_eq!(error.details_json()["used"], 1_u64 << 26);
    quota.fixture.call_ok("remove", json!({ "path": "sparse" }));
    quota.fixture.call_ok("write", json!({ "path": "n", "content": "1" }));
    assert_eq!(quota.exact_usage(), WorkspaceUsage { bytes: 1, files: 1 });
}

#[test]
fn directories_and_links_count_and_staged_files_do_not() {
    let quota = QuotaFixture::with_policy("[system.quota]\nfiles = 5\n");
    fs::create_dir_all(quota.fixture.path("d/e")).unwrap();
    std::os::unix::fs::symlink("d", quota.fixture.path("link")).unwrap();
    fs::write(quota.fixture.path(&format!("d/{}left", stead_path::TEMPORARY_PREFIX)), "half made").unwrap();
    quota.expect_quota_error("write", json!({ "path": "x/y/z", "content": "" }));
    quota.fixture.call_ok("write", json!({ "path": "x/z", "content": "" }));
    assert_eq!(quota.known_usage().files, 5);
    quota.expect_quota_error("write", json!({ "path": "w", "content": "" }));
}

#[test]
fn concurrent_writers_never_exceed_the_quota() {
    const WRITERS: usize = 6;
    const EACH: usize = 12;
    let quota = QuotaFixture::with_policy("[system.quota]\nbytes = 400\n");
    let other = quota.reopen();
    let done: usize = std::thread::scope(|scope| {
        let write = |writer: usize| {
            let at = if writer.is_multiple_of(2) { &quota.fixture } else { &other };
            let tries = (0..EACH).map(|file| {
                let path = format!("w{writer}/f{file}");
                at.call("write", json!({ "path": path, "content": "1234567890" }))
            });
            let kinds: Vec<_> = tries.map(|done| done.map(|_| ()).map_err(|error| error.kind)).collect();
            assert!(kinds.iter().all(|kind| matches!(kind, Ok(()) | Err(ErrorKind::QuotaExceeded))), "{kinds:?}");
            kinds.iter().filter(|kind| kind.is_ok()).count()
        };
        let threads: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(done, 40, "as many as fit, and not one more");
    assert_eq!(quota.exact_usage().bytes, 400);
}

#[test]
fn external_changes_are_counted_before_a_refusal() {
    let quota = QuotaFixture::with_policy(BYTES_100);
    quota.fixture.write_on_disk("a", &"x".repeat(100));
    quota.expect_quota_error("write", json!({ "path": "n", "content": "12345" }));
    // A very recent count is not repeated, or refusals would keep the disk busy.
    fs::remove_file(quota.fixture.path("a")).unwrap();
    quota.expect_quota_error("write", json!({ "path": "n", "content": "12345" }));
    quota.clock.advance_ms(1_000);
    quota.fixture.call_ok("write", json!({ "path": "n", "content": "12345" }));
    quota.exact_usage();
    quota.fixture.write_on_disk("b", &"x".repeat(200));
    quota.fixture.call_ok("write", json!({ "path": "m", "content": "1" }));
    quota.clock.advance_ms(5 * 60 * 1_000);
    quota.expect_quota_error("write", json!({ "path": "o", "content": "1" }));
    assert_eq!(quota.exact_usage().bytes, 206);
}

#[test]
fn usage_is_counted_only_under_a_quota() {
    let quota = QuotaFixture::with_policy("");
    quota.fixture.call_ok("write", json!({ "path": "a", "content": "12345" }));
    let principal = &quota.fixture.caller.principal;
    assert_eq!(quota.fixture.workspace.principal_usage(principal, RequiredUsageFreshness::Cached).unwrap(), None);
    quota.set_policy("[agent.\"agent:nobody\".quota]\nbytes = 1\n");
    quota.fixture.call_ok("write", json!({ "path": "b", "content": "12345" }));
    assert_eq!(quota.exact_usage().bytes, 10);
    quota.set_policy("");
    quota.fixture.call_ok("write", json!({ "path": "c", "content": "12345" }));
    assert_eq!(quota.known_usage().bytes, 10, "nobody counts");
    quota.set_policy(BYTES_100);
    quota.clock.advance_ms(30 * 1_000);
    quota.fixture.call_ok("write", json!({ "path": "d", "content": "12345" }));
    assert_eq!(quota.exact_usage().bytes, 20);
}

#[test]
fn the_strictest_applicable_quota_wins() {
    let policy = "[system.quota]\nbytes = 100\n[organisation.quota]\nbytes = 50\nfiles = 9\n\
                  [agent.\"agent:*\".quota]\nbytes = 20\n[agent.\"agent:tester\".quota]\nbytes = 30\n";
    let quota = QuotaFixture::with_policy(policy);
    let error = quota.expect_quota_error("write", json!({ "path": "a", "content": "x".repeat(21) }));
    assert_eq!(error.details_json()["limit"], 20);
    quota.fixture.call_as(&user_caller(), "write", json!({ "path": "a", "content": "x".repeat(50) })).unwrap();
    let person = quota.fixture.call_as(&user_caller(), "write", json!({ "path": "b", "content": "x" }));
    assert_eq!(person.unwrap_err().details_json()["limit"], 50);
    quota.exact_usage();
}

/// An agent that removes and rewrites a file fills its trash quota; only expired or restored items make room again.
#[test]
fn trash_quota_does_not_expire_items_early() {
    let quota = QuotaFixture::with_policy("[agent.\"agent:*\".quota]\nbytes = 10\ntrash_bytes = 40\n");
    quota.fixture.write_on_disk("theirs", "1234567890");
    quota.fixture.call_as(&user_caller(), "remove", json!({ "path": "theirs" })).unwrap();
    let write = |at: &LocalFixture| at.call("write", json!({ "path": "f", "content": "1234567890" }));
    let remove = |at: &LocalFixture| at.call("remove", json!({ "path": "f" }));
    let mut refused = 0;
    for _ in 0..20 {
        let outcomes = [write(&quota.fixture), remove(&quota.fixture)];
        refused += outcomes.iter().filter(|outcome| outcome.is_err()).count();
        for error in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
            assert!([ErrorKind::QuotaExceeded, ErrorKind::BaseRequired].contains(&error.kind), "{error}");
        }
    }
    assert!(refused > 20, "{refused}");
    let items = |at: &LocalFixture| stead_engine::Workspace::trash(&*at.workspace, None).unwrap().len();
    assert_eq!(items(&quota.fixture), 5, "four of the agent's, one of the person's");
    let error = quota.expect_quota_error("remove", json!({ "path": "f" }));
    assert_eq!((&error.details_json()["quota"], &error.details_json()["used"]), (&json!("trash_bytes"), &json!(40)));
    let trash =
        stead_engine::Workspace::trash(&*quota.fixture.workspace, Some(&quota.fixture.caller.principal)).unwrap();
    let base = quota.fixture.call_ok("stat", json!({ "path": "f" }))["version"].clone();
    quota.fixture.call_ok("write", json!({ "path": "f", "content": "", "base": base }));
    quota.fixture.call_ok("restore", json!({ "trash": trash[0].id, "to": "back" }));
    quota.fixture.call_ok("remove", json!({ "path": "back" }));
    // A day later the agent's item has expired and is deleted; the user's item stays.
    quota.clock.advance_ms(24 * 60 * 60 * 1_000 + 1);
    quota.fixture.call_ok("write", json!({ "path": "g", "content": "1234567890" }));
    quota.fixture.call_ok("remove", json!({ "path": "g" }));
    assert_eq!(items(&quota.fixture), 2);
}

#[test]
fn history_quota_drops_oldest_agent_versions_only() {
    let quota = QuotaFixture::with_policy("[agent.\"agent:*\".quota]\nhistory_bytes = 20000\n");
    let text = |round: usize| format!("{round:05}").repeat(1_000);
    let person = text(99_999);
    quota.fixture.call_as(&user_caller(), "write", json!({ "path": "p", "content": person })).unwrap();
    let first = quota.fixture.call_ok("write", json!({ "path": "f", "content": text(0) }));
    let mut base = first["version"].clone();
    for round in 1..40 {
        let done = quota.fixture.call_ok("write", json!({ "path": "f", "content": text(round), "base": base }));
        base = done["version"].clone();
    }
    let kept = quota.fixture.workspace.history_bytes(&quota.fixture.caller.principal).unwrap();
    assert!(kept <= 2 * 20_000, "{kept}");
    let pruned = stead_engine::JournalEntryQuery { operation: Some("prune".into()), limit: 9, ..Default::default() };
    assert!(
        !stead_engine::Workspace::entries(&*quota.fixture.workspace, &pruned).unwrap().is_empty(),
        "not in silence"
    );
    let old = quota.fixture.call("read", json!({ "path": "f", "rev": format!("r{}", first["entry"]) }));
    assert!(old.is_err(), "the oldest went first");
    let version = stead_engine::Version::hash_bytes(person.as_bytes());
    assert!(stead_engine::Workspace::retained_bytes(&*quota.fixture.workspace, &version).unwrap().is_some());
    quota.fixture.call_ok("undo", json!({}));
    assert_eq!(quota.fixture.text_on_disk("f"), Some(text(38)));
}

#[test]
fn quotas_on_the_whole_machine_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = test_options(&directory);
    fs::create_dir_all(options.root_path.join("home")).unwrap();
    fs::create_dir_all(&options.state_path).unwrap();
    fs::write(options.state_path.join("policy.toml"), BYTES_100).unwrap();
    options.default_directory = RelPath::from_wire("home").unwrap();
    let at = LocalFixture::open(directory, options);
    at.call_err("write", json!({ "path": "home/a", "content": "1" }), ErrorKind::PolicyDenied);
}

#[test]
fn oversized_reads_are_rejected_with_a_range_hint() {
    let at = LocalFixture::new();
    fs::File::create(at.path("big")).unwrap().set_len(10 << 30).unwrap();
    let started = std::time::Instant::now();
    let error = at.call("read", json!({ "path": "big" })).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
    assert!(hint_text(&error).contains("bytes \"0-"), "{error}");
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}
