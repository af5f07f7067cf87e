//! Tests that external changes are recorded once and by name, and changes through stead never as external.

#![expect(clippy::disallowed_methods, reason = "the test is the other program")]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use stead_engine::{Caller, ErrorKind, Grants, Principal};
use stead_path::RelPath;
use testkit::{ErrorDetailsJson, wait::wait_until};

use crate::{event_follower::EventDerivedTestTree, support::LocalFixture};

const EVENT_TIMEOUT: Duration = Duration::from_secs(20);
/// A recorder that does nothing for 1.5 seconds counts as idle.
const IDLE_TIME: Duration = Duration::from_millis(1500);

/// Formats a watch event as a short text such as `create a.txt` or `rename a -> b`.
pub(crate) fn short_event(event: &Value) -> String {
    let word = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let new_path = event["new_path"].as_str().map(|path| format!(" -> {path}")).unwrap_or_default();
    format!("{} {}{new_path}", word("event"), word("path"))
}

pub(crate) struct TestWatchClient<'a> {
    fixture: &'a LocalFixture,
    cursor: Value,
}

impl<'a> TestWatchClient<'a> {
    pub(crate) fn new(fixture: &'a LocalFixture, watch: Value) -> Self {
        let begun = fixture.call_ok("watch", watch);
        Self { fixture, cursor: begun["cursor"].clone() }
    }

    pub(crate) fn next_page(&mut self, wait_ms: u64) -> Vec<Value> {
        let page = self.fixture.call_ok("watched", json!({ "cursor": self.cursor, "wait_ms": wait_ms }));
        self.cursor = page["cursor"].clone();
        page["events"].as_array().unwrap().clone()
    }

    pub(crate) fn wait_for_events(&mut self, wanted: &[&str]) -> Vec<Value> {
        let (mut heard, end) = (Vec::new(), Instant::now() + EVENT_TIMEOUT);
        while !wanted.iter().all(|wanted| heard.iter().any(|event| short_event(event) == *wanted)) {
            heard.extend(self.next_page(500));
            assert!(Instant::now() < end, "{wanted:?} of {:?}", heard.iter().map(short_event).collect::<Vec<_>>());
        }
        heard
    }

    fn wait_for_short_events(&mut self, wanted: &[&str]) -> Vec<String> {
        self.wait_for_events(wanted).iter().map(short_event).collect()
    }
}

#[test]
fn external_changes_are_reported_with_versions_and_lines() {
    let fixture = LocalFixture::new();
    let written = fixture.call_ok("write", json!({ "path": "d/a.txt", "content": "one\ntwo\nthree\n" }));
    let mut listener = TestWatchClient::new(&fixture, json!({ "path": "d" }));
    fs::write(fixture.path("d/a.txt"), "one\nTWO\nthree\n").unwrap();
    let heard = listener.wait_for_events(&["modify d/a.txt"]);
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0]["actor"], "outside");
    assert_eq!(heard[0]["before"], written["version"]);
    assert_eq!(heard[0]["version"], json!(stead_engine::Version::hash_bytes(b"one\nTWO\nthree\n").to_string()));
    assert_eq!(heard[0]["lines"], json!([[2, 2]]));
    let read = fixture.call_ok("read", json!({ "path": "d/a.txt" }));
    assert_eq!(read["rev"], heard[0]["rev"], "a version made outside has a short name too");

    fs::write(fixture.path("d/new"), "x").unwrap();
    fs::rename(fixture.path("d/a.txt"), fixture.path("d/b.txt")).unwrap();
    listener.wait_for_events(&["create d/new", "rename d/a.txt -> d/b.txt"]);
    fs::remove_file(fixture.path("d/new")).unwrap();
    fs::set_permissions(fixture.path("d/b.txt"), fs::Permissions::from_mode(0o600)).unwrap();
    listener.wait_for_events(&["delete d/new", "modify d/b.txt"]);

    let history = fixture.call_ok("history", json!({ "path": "d/b.txt" }));
    assert_eq!(history["entries"][0]["principal"], "outside");
    fixture.call_err("undo", json!({ "entry": heard[0]["entry"] }), ErrorKind::NotOwner);
    let undone = fixture.call("undo", json!({})).unwrap_err();
    assert_eq!(undone.details_json()["of"], written["entry"], "what others did is nobody's to undo");
    let report = fixture.workspace.verify_journal(None, &[]).unwrap();
    assert_eq!(report.integrity_error, None);
}

#[test]
fn own_changes_are_not_reported_as_external() {
    let fixture = LocalFixture::new();
    let mut listener = TestWatchClient::new(&fixture, json!({ "recursive": true }));
    fixture.call_ok("write", json!({ "path": "a/b/c.txt", "content": "1\n" }));
    let second = fixture.call_ok("write", json!({ "path": "a/b/d.txt", "content": "2\n" }));
    fixture
        .call_ok("edit", json!({ "path": "a/b/d.txt", "edits": [{ "old": "2", "new": "3" }], "base": second["rev"] }));
    fixture.call_ok("copy", json!({ "from": "a", "to": "x/y" }));
    fixture.call_ok("copy", json!({ "from": "a/b/c.txt", "to": "e.txt" }));
    fixture.call_ok("move", json!({ "from": "x/y", "to": "z" }));
    let removed = fixture.call_ok("remove", json!({ "path": "z", "recursive": true }));
    fixture.call_ok("restore", json!({ "trash": removed["trash"] }));
    fixture.call_ok("undo", json!({}));
    fixture.call_ok("redo", json!({}));
    fixture.call_ok("append", json!({ "path": "z/b/c.txt", "content": "more\n" }));
    fixture.call_ok("move", json!({ "from": "a/b", "to": "a/moved" }));
    fixture.call_ok("write", json!({ "path": "a/moved/f", "content": "4\n" }));
    for round in 0..50 {
        fixture.call_ok("append", json!({ "path": "log", "content": format!("{round}\n") }));
    }
    fs::write(fixture.path("end"), "").unwrap();
    let heard = listener.wait_for_events(&["create end"]);
    let theirs: Vec<String> = heard.iter().filter(|event| event["actor"] == "outside").map(short_event).collect();
    assert_eq!(theirs, ["create end"]);
    assert_eq!(heard.len(), 1, "one's own changes are left out unless asked for");
    let all = fixture.call_ok("watched", json!({ "own": true }));
    assert!(all["events"].as_array().unwrap().len() > 60);
}

#[test]
fn files_unknown_to_the_journal_are_reported_in_directories_of_calls() {
    let fixture = LocalFixture::new();
    fixture.call_ok("write", json!({ "path": "d/own", "content": "1\n" }));
    for name in ["d/w", "d/x", "d/y", "d/z"] {
        fixture.write_on_disk(name, "1");
    }
    let mut listener = TestWatchClient::new(&fixture, json!({ "recursive": true }));
    fs::write(fixture.path("d/w"), "2").unwrap();
    fs::remove_file(fixture.path("d/x")).unwrap();
    listener.wait_for_events(&["modify d/w", "delete d/x"]);
    fixture.call_ok("move", json!({ "from": "d", "to": "e" }));
    fs::write(fixture.path("e/y"), "2").unwrap();
    fs::remove_file(fixture.path("e/z")).unwrap();
    listener.wait_for_events(&["modify e/y", "delete e/z"]);
}

#[test]
fn replacement_by_rename_is_reported_as_a_change() {
    let fixture = LocalFixture::new();
    fixture.call_ok("write", json!({ "path": "a.rs", "content": "old\n" }));
    let mut listener = TestWatchClient::new(&fixture, json!({}));
    // A new file in the workspace would be an event of its own if this thread were stopped before the rename.
    let new = fixture.directory.path().join("new");
    fs::write(&new, "new\n").unwrap();
    fs::rename(&new, fixture.path("a.rs")).unwrap();
    assert_eq!(listener.wait_for_short_events(&["modify a.rs"]), ["modify a.rs"]);
}

#[test]
fn new_directories_are_watched_from_the_first_file() {
    let fixture = LocalFixture::new();
    let mut listener = TestWatchClient::new(&fixture, json!({ "recursive": true, "glob": "*.txt" }));
    for number in 0..20 {
        fixture.write_on_disk(&format!("n{number}/deep/er/f.txt"), "x");
        fixture.write_on_disk(&format!("n{number}/deep/er/f.log"), "x");
    }
    let wanted: Vec<String> = (0..20).map(|number| format!("create n{number}/deep/er/f.txt")).collect();
    let mut heard = listener.wait_for_short_events(&wanted.iter().map(String::as_str).collect::<Vec<_>>());
    heard.sort();
    heard.dedup();
    assert!(heard.iter().all(|event| event.ends_with(".txt")), "{heard:?}");
}

#[test]
fn moved_directories_are_reported_under_their_new_name() {
    let fixture = LocalFixture::new();
    fixture.write_on_disk("a/b/f", "1");
    let mut listener = TestWatchClient::new(&fixture, json!({ "recursive": true }));
    fs::rename(fixture.path("a"), fixture.path("c")).unwrap();
    assert_eq!(listener.wait_for_short_events(&["rename a -> c"]), ["rename a -> c"]);
    fs::write(fixture.path("c/b/f"), "2").unwrap();
    assert_eq!(listener.wait_for_short_events(&["modify c/b/f"]), ["modify c/b/f"]);
    // The directory leaves the workspace and comes back.
    let out = fixture.directory.path().join("out");
    fs::rename(fixture.path("c"), &out).unwrap();
    listener.wait_for_events(&["delete c"]);
    fs::write(out.join("b/unheard"), "").unwrap();
    fs::rename(&out, fixture.path("d")).unwrap();
    listener.wait_for_events(&["create d", "create d/b", "create d/b/f", "create d/b/unheard"]);
}

fn exchange_paths(fixture: &LocalFixture, one: &str, other: &str) {
    let (one, other) = (fixture.path(one), fixture.path(other));
    let here = rustix::fs::CWD;
    rustix::fs::renameat_with(here, one, here, other, rustix::fs::RenameFlags::EXCHANGE).unwrap();
}

#[test]
fn swapped_paths_are_known_afterwards() {
    let fixture = LocalFixture::new();
    for (path, content) in [("a", "1"), ("b", "2"), ("d/x", "3"), ("d/s/y", "4"), ("e/z", "5")] {
        fixture.write_on_disk(path, content);
    }
    let ws = fixture.path("");
    let mut listener = TestWatchClient::new(&fixture, json!({ "recursive": true }));
    let mut follower = EventDerivedTestTree::from_directory(&ws);
    exchange_paths(&fixture, "a", "b");
    follower.catch_up(&mut listener, &ws).unwrap();
    assert_eq!(follower.rescans, 0);
    exchange_paths(&fixture, "d", "e");
    follower.catch_up(&mut listener, &ws).unwrap();
    assert!(follower.rescans > 0, "whose name each of them has cannot be told from the events");
    for path in ["d/z", "e/x", "e/s/y"] {
        fs::write(fixture.path(path), "changed").unwrap();
        listener.wait_for_events(&[&format!("modify {path}")]);
    }
}

#[test]
fn freed_names_can_be_reused_at_once() {
    let fixture = LocalFixture::new();
    fixture.write_on_disk("d/old", "1");
    let ws = fixture.path("");
    let mut listener = TestWatchClient::new(&fixture, json!({ "recursive": true }));
    let mut follower = EventDerivedTestTree::from_directory(&ws);
    fs::rename(fixture.path("d"), fixture.directory.path().join("out")).unwrap();
    fixture.write_on_disk("d/new", "2");
    follower.catch_up(&mut listener, &ws).unwrap();
    fs::write(fixture.path("d/new"), "3").unwrap();
    listener.wait_for_events(&["modify d/new"]);
}

#[test]
fn moved_directories_with_matching_files_are_reported() {
    let fixture = LocalFixture::new();
    fixture.write_on_disk("d/x.log", "1");
    let mut listener = TestWatchClient::new(&fixture, json!({ "recursive": true, "glob": "*.log" }));
    fs::rename(fixture.path("d"), fixture.path("e")).unwrap();
    listener.wait_for_events(&["rename d -> e"]);
    fs::write(fixture.path("e/x.log"), "2").unwrap();
    listener.wait_for_events(&["modify e/x.log"]);
    fs::rename(fixture.path("e"), fixture.directory.path().join("out")).unwrap();
    listener.wait_for_events(&["delete e"]);
}

#[test]
fn watched_paths_may_disappear_and_return() {
    let fixture = LocalFixture::new();
    fixture.write_on_disk("a/b/f", "1");
    let mut listener = TestWatchClient::new(&fixture, json!({ "path": "a/b" }));
    fs::rename(fixture.path("a"), fixture.path("x")).unwrap();
    assert_eq!(listener.wait_for_short_events(&["delete a/b"]), ["delete a/b"]);
    fs::write(fixture.path("x/b/f"), "2").unwrap();
    fs::create_dir_all(fixture.path("a/b")).unwrap();
    fs::write(fixture.path("a/b/g"), "3").unwrap();
    let heard = listener.wait_for_short_events(&["create a/b", "create a/b/g"]);
    assert!(heard.iter().all(|event| !event.contains('x')), "{heard:?}");
}

#[test]
fn types_and_scope_filter_events() {
    let fixture = LocalFixture::new();
    fixture.write_on_disk("open/f", "1");
    fixture.write_on_disk("secret/f", "1");
    let readable = vec![RelPath::from_wire("open").unwrap()];
    let mut narrow = Caller::new(Principal::Agent("narrow".into()), "s", "library");
    narrow.grants = Grants { readable, ..Grants::default() };
    let refused = fixture.call_as(&narrow, "watch", json!({ "path": "secret" })).unwrap_err();
    assert_eq!(refused.kind.code(), "out_of_scope");
    let begun =
        fixture.call_as(&narrow, "watch", json!({ "path": ".", "recursive": true, "types": ["create"] })).unwrap();
    let mut listener = TestWatchClient::new(&fixture, json!({ "recursive": true }));
    fs::write(fixture.path("secret/g"), "2").unwrap();
    fs::write(fixture.path("open/f"), "2").unwrap();
    fs::rename(fixture.path("secret/f"), fixture.path("open/h")).unwrap();
    fs::write(fixture.path("open/g"), "2").unwrap();
    listener.wait_for_events(&["create secret/g", "modify open/f", "rename secret/f -> open/h", "create open/g"]);
    let told = fixture.call_as(&narrow, "watched", json!({ "cursor": begun.json["cursor"] })).unwrap().json;
    let told: Vec<String> = told["events"].as_array().unwrap().iter().map(short_event).collect();
    assert_eq!(told, ["create open/h", "create open/g"]);
    let other = fixture.call_as(&narrow, "unwatch", json!({ "watch": "w-0" })).unwrap_err();
    assert_eq!(other.kind.code(), "not_found");
}

#[test]
fn listening_ends_with_the_last_watch() {
    let fixture = LocalFixture::new();
    let begun = fixture.call_ok("watch", json!({}));
    fs::write(fixture.path("a"), "1").unwrap();
    let heard = fixture.call_ok("watched", json!({ "wait_ms": 10_000 }));
    assert_eq!(heard["events"].as_array().unwrap().len(), 1);
    fixture.call_ok("unwatch", json!({ "watch": begun["watch"] }));
    fixture.call_err("unwatch", json!({ "watch": begun["watch"] }), ErrorKind::NotFound);
    fs::write(fixture.path("b"), "1").unwrap();
    let begun = fixture.call_ok("watch", json!({}));
    fs::write(fixture.path("c"), "1").unwrap();
    let heard = fixture.call_ok("watched", json!({ "watch": begun["watch"], "wait_ms": 10_000 }));
    assert_eq!(heard["events"].as_array().unwrap().iter().map(short_event).collect::<Vec<_>>(), ["create c"]);
    fixture.call_err("watch", json!({ "path": "nowhere" }), ErrorKind::NotFound);
    fixture.call_err("watch", json!({ "types": ["read"] }), ErrorKind::BadRequest);
    fixture.call_err("watch", json!({ "glob": "a[" }), ErrorKind::BadRequest);
}

#[test]
fn restarts_keep_watches_and_report_the_gap() {
    let fixture = LocalFixture::new();
    let begun = fixture.call_ok("watch", json!({ "recursive": true }));
    let mut fixture = fixture.reopen();
    fs::write(fixture.path("missed"), "1").unwrap();
    let mut options = crate::support::test_options(&fixture.directory);
    options.watch_start = stead_local::ExternalChangeRecordingStartPolicy::AtOpen;
    fixture.workspace.close();
    fixture = LocalFixture::open(std::sync::Arc::clone(&fixture.directory), options);
    let mut listener = TestWatchClient { fixture: &fixture, cursor: begun["cursor"].clone() };
    listener.wait_for_events(&["rescan ."]);
    fs::write(fixture.path("heard"), "1").unwrap();
    listener.wait_for_events(&["create heard"]);
}

#[test]
fn deletion_of_files_first_seen_in_a_rescan_is_reported() {
    let fixture = LocalFixture::new();
    fixture.call_ok("write", json!({ "path": "a", "content": "1\n" }));
    let begun = fixture.call_ok("watch", json!({ "recursive": true }));
    fixture.call_ok("remove", json!({ "path": "a" }));
    let mut fixture = fixture.reopen();
    fs::write(fixture.path("a"), "2").unwrap();
    let mut options = crate::support::test_options(&fixture.directory);
    options.watch_start = stead_local::ExternalChangeRecordingStartPolicy::AtOpen;
    fixture.workspace.close();
    fixture = LocalFixture::open(std::sync::Arc::clone(&fixture.directory), options);
    let mut listener = TestWatchClient { fixture: &fixture, cursor: begun["cursor"].clone() };
    listener.wait_for_events(&["rescan ."]);
    fs::remove_file(fixture.path("a")).unwrap();
    listener.wait_for_events(&["delete a"]);
}

#[test]
fn idle_watches_cost_nothing() {
    let fixture = LocalFixture::new();
    for number in 0..1000 {
        fs::create_dir(fixture.path(&format!("d{number}"))).unwrap();
    }
    for number in 0..1000 {
        fixture.call_ok("watch", json!({ "path": format!("d{number}") }));
    }
    let workspace: &dyn stead_engine::Workspace = &*fixture.workspace;
    // Remaining entries of the directories' creation may be written at first.
    wait_until("the recorder comes to rest", || {
        let rounds = fixture.workspace.listening_rounds();
        workspace.wait_for_entry_after(workspace.head().unwrap().number, Instant::now() + IDLE_TIME).unwrap();
        fixture.workspace.listening_rounds() == rounds
    });
    fs::write(fixture.path("d777/f"), "1").unwrap();
    let heard = fixture.call_ok("watched", json!({ "wait_ms": 10_000 }));
    assert_eq!(heard["events"].as_array().unwrap().iter().map(short_event).collect::<Vec<_>>(), ["create d777/f"]);
}
