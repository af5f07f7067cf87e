//! What other programs do is told, once and by its name, and what is done through here is never told as theirs.

#![expect(clippy::disallowed_methods, reason = "the test is the other program")]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant},
};

use engine::{Caller, Grants, Principal};
use path::RelPath;
use serde_json::{Value, json};

use crate::{follower::Follower, support::Fixture};

/// Longest time an event is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// One event in short: `create a.txt`, `rename a -> b`.
pub(crate) fn short(event: &Value) -> String {
    let word = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    let new_path = event["new_path"].as_str().map(|path| format!(" -> {path}")).unwrap_or_default();
    format!("{} {}{new_path}", word("event"), word("path"))
}

/// A listener that remembers where it was.
pub(crate) struct Listener<'a> {
    fixture: &'a Fixture,
    cursor: Value,
}

impl<'a> Listener<'a> {
    pub(crate) fn new(fixture: &'a Fixture, watch: Value) -> Self {
        let begun = fixture.ok("watch", watch);
        Self { fixture, cursor: begun["cursor"].clone() }
    }

    /// The next events, waiting for one.
    pub(crate) fn page(&mut self, wait_ms: u64) -> Vec<Value> {
        let page = self.fixture.ok("watched", json!({ "cursor": self.cursor, "wait_ms": wait_ms }));
        self.cursor = page["cursor"].clone();
        page["events"].as_array().unwrap().clone()
    }

    /// Events until all of these have come, in short.
    pub(crate) fn until(&mut self, wanted: &[&str]) -> Vec<Value> {
        let (mut heard, end) = (Vec::new(), Instant::now() + PATIENCE);
        while !wanted.iter().all(|wanted| heard.iter().any(|event| short(event) == *wanted)) {
            heard.extend(self.page(500));
            assert!(Instant::now() < end, "{wanted:?} of {:?}", heard.iter().map(short).collect::<Vec<_>>());
        }
        heard
    }

    fn shorts(&mut self, wanted: &[&str]) -> Vec<String> {
        self.until(wanted).iter().map(short).collect()
    }
}

#[test]
fn what_others_do_is_told_with_versions_and_lines() {
    let fixture = Fixture::new();
    let written = fixture.ok("write", json!({ "path": "d/a.txt", "content": "one\ntwo\nthree\n" }));
    let mut listener = Listener::new(&fixture, json!({ "path": "d" }));
    fs::write(fixture.path("d/a.txt"), "one\nTWO\nthree\n").unwrap();
    let heard = listener.until(&["modify d/a.txt"]);
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0]["actor"], "outside");
    assert_eq!(heard[0]["before"], written["version"]);
    assert_eq!(heard[0]["version"], json!(engine::Version::of(b"one\nTWO\nthree\n").to_string()));
    assert_eq!(heard[0]["lines"], json!([[2, 2]]));
    let read = fixture.ok("read", json!({ "path": "d/a.txt" }));
    assert_eq!(read["rev"], heard[0]["rev"], "a version made outside has a short name too");

    fs::write(fixture.path("d/new"), "x").unwrap();
    fs::rename(fixture.path("d/a.txt"), fixture.path("d/b.txt")).unwrap();
    listener.until(&["create d/new", "rename d/a.txt -> d/b.txt"]);
    fs::remove_file(fixture.path("d/new")).unwrap();
    fs::set_permissions(fixture.path("d/b.txt"), fs::Permissions::from_mode(0o600)).unwrap();
    listener.until(&["delete d/new", "modify d/b.txt"]);

    let history = fixture.ok("history", json!({ "path": "d/b.txt" }));
    assert_eq!(history["entries"][0]["principal"], "outside");
    assert_eq!(fixture.kind("undo", json!({ "entry": heard[0]["entry"] })), "not_owner");
    let undone = fixture.call("undo", json!({})).unwrap_err();
    assert_eq!(undone.facts["of"], written["entry"], "what others did is nobody's to undo");
    let report = fixture.workspace.verify_log(None, &[]).unwrap();
    assert_eq!(report.tamper, None);
}

#[test]
fn what_is_done_through_here_is_never_told_as_theirs() {
    let fixture = Fixture::new();
    let mut listener = Listener::new(&fixture, json!({ "recursive": true }));
    fixture.ok("write", json!({ "path": "a/b/c.txt", "content": "1\n" }));
    let second = fixture.ok("write", json!({ "path": "a/b/d.txt", "content": "2\n" }));
    fixture.ok(
        "edit",
        json!({ "path": "a/b/d.txt", "edits": [{ "old": "2", "new": "3" }], "base": second["rev"] }),
    );
    fixture.ok("copy", json!({ "from": "a", "to": "x/y" }));
    fixture.ok("copy", json!({ "from": "a/b/c.txt", "to": "e.txt" }));
    fixture.ok("move", json!({ "from": "x/y", "to": "z" }));
    let removed = fixture.ok("remove", json!({ "path": "z", "recursive": true }));
    fixture.ok("restore", json!({ "trash": removed["trash"] }));
    fixture.ok("undo", json!({}));
    fixture.ok("redo", json!({}));
    fixture.ok("append", json!({ "path": "z/b/c.txt", "content": "more\n" }));
    fixture.ok("move", json!({ "from": "a/b", "to": "a/moved" }));
    fixture.ok("write", json!({ "path": "a/moved/f", "content": "4\n" }));
    for round in 0..50 {
        fixture.ok("append", json!({ "path": "log", "content": format!("{round}\n") }));
    }
    fs::write(fixture.path("end"), "").unwrap();
    let heard = listener.until(&["create end"]);
    let theirs: Vec<String> = heard.iter().filter(|event| event["actor"] == "outside").map(short).collect();
    assert_eq!(theirs, ["create end"]);
    assert_eq!(heard.len(), 1, "one's own changes are left out unless asked for");
    let all = fixture.ok("watched", json!({ "own": true }));
    assert!(all["events"].as_array().unwrap().len() > 60);
}

#[test]
fn a_file_saved_beside_and_moved_over_is_a_change_of_the_file() {
    let fixture = Fixture::new();
    fixture.ok("write", json!({ "path": "a.rs", "content": "old\n" }));
    let mut listener = Listener::new(&fixture, json!({}));
    fs::write(fixture.path(".a.rs.swp"), "new\n").unwrap();
    fs::rename(fixture.path(".a.rs.swp"), fixture.path("a.rs")).unwrap();
    assert_eq!(listener.shorts(&["modify a.rs"]), ["modify a.rs"]);
}

#[test]
fn new_directories_are_heard_from_the_first_file_on() {
    let fixture = Fixture::new();
    let mut listener = Listener::new(&fixture, json!({ "recursive": true, "glob": "*.txt" }));
    for number in 0..20 {
        fixture.put(&format!("n{number}/deep/er/f.txt"), "x");
        fixture.put(&format!("n{number}/deep/er/f.log"), "x");
    }
    let wanted: Vec<String> = (0..20).map(|number| format!("create n{number}/deep/er/f.txt")).collect();
    let mut heard = listener.shorts(&wanted.iter().map(String::as_str).collect::<Vec<_>>());
    heard.sort();
    heard.dedup();
    assert!(heard.iter().all(|event| event.ends_with(".txt")), "{heard:?}");
}

#[test]
fn moved_directories_are_heard_under_their_new_name() {
    let fixture = Fixture::new();
    fixture.put("a/b/f", "1");
    let mut listener = Listener::new(&fixture, json!({ "recursive": true }));
    fs::rename(fixture.path("a"), fixture.path("c")).unwrap();
    assert_eq!(listener.shorts(&["rename a -> c"]), ["rename a -> c"]);
    fs::write(fixture.path("c/b/f"), "2").unwrap();
    assert_eq!(listener.shorts(&["modify c/b/f"]), ["modify c/b/f"]);
    // Out of the workspace and back in.
    let out = fixture.place.path().join("out");
    fs::rename(fixture.path("c"), &out).unwrap();
    listener.until(&["delete c"]);
    fs::write(out.join("b/unheard"), "").unwrap();
    fs::rename(&out, fixture.path("d")).unwrap();
    listener.until(&["create d", "create d/b", "create d/b/f", "create d/b/unheard"]);
}

/// Two things change places in one step.
fn exchange(fixture: &Fixture, one: &str, other: &str) {
    let (one, other) = (fixture.path(one), fixture.path(other));
    let here = rustix::fs::CWD;
    rustix::fs::renameat_with(here, one, here, other, rustix::fs::RenameFlags::EXCHANGE).unwrap();
}

#[test]
fn things_that_change_places_are_known_afterwards() {
    let fixture = Fixture::new();
    for (path, content) in [("a", "1"), ("b", "2"), ("d/x", "3"), ("d/s/y", "4"), ("e/z", "5")] {
        fixture.put(path, content);
    }
    let ws = fixture.path("");
    let mut listener = Listener::new(&fixture, json!({ "recursive": true }));
    let mut follower = Follower::of(&ws);
    exchange(&fixture, "a", "b");
    follower.catch_up(&mut listener, &ws).unwrap();
    assert_eq!(follower.rescans, 0);
    exchange(&fixture, "d", "e");
    follower.catch_up(&mut listener, &ws).unwrap();
    assert!(follower.rescans > 0, "whose name each of them has cannot be told from the events");
    for path in ["d/z", "e/x", "e/s/y"] {
        fs::write(fixture.path(path), "changed").unwrap();
        listener.until(&[&format!("modify {path}")]);
    }
}

#[test]
fn a_name_that_something_left_for_good_may_be_used_again_at_once() {
    let fixture = Fixture::new();
    fixture.put("d/old", "1");
    let ws = fixture.path("");
    let mut listener = Listener::new(&fixture, json!({ "recursive": true }));
    let mut follower = Follower::of(&ws);
    fs::rename(fixture.path("d"), fixture.place.path().join("out")).unwrap();
    fixture.put("d/new", "2");
    follower.catch_up(&mut listener, &ws).unwrap();
    fs::write(fixture.path("d/new"), "3").unwrap();
    listener.until(&["modify d/new"]);
}

#[test]
fn a_directory_that_carries_what_fits_a_pattern_is_told_when_it_moves() {
    let fixture = Fixture::new();
    fixture.put("d/x.log", "1");
    let mut listener = Listener::new(&fixture, json!({ "recursive": true, "glob": "*.log" }));
    fs::rename(fixture.path("d"), fixture.path("e")).unwrap();
    listener.until(&["rename d -> e"]);
    fs::write(fixture.path("e/x.log"), "2").unwrap();
    listener.until(&["modify e/x.log"]);
    fs::rename(fixture.path("e"), fixture.place.path().join("out")).unwrap();
    listener.until(&["delete e"]);
}

#[test]
fn a_watched_place_may_go_and_come_back() {
    let fixture = Fixture::new();
    fixture.put("a/b/f", "1");
    let mut listener = Listener::new(&fixture, json!({ "path": "a/b" }));
    fs::rename(fixture.path("a"), fixture.path("x")).unwrap();
    assert_eq!(listener.shorts(&["delete a/b"]), ["delete a/b"]);
    fs::write(fixture.path("x/b/f"), "2").unwrap();
    fs::create_dir_all(fixture.path("a/b")).unwrap();
    fs::write(fixture.path("a/b/g"), "3").unwrap();
    let heard = listener.shorts(&["create a/b", "create a/b/g"]);
    assert!(heard.iter().all(|event| !event.contains('x')), "{heard:?}");
}

#[test]
fn types_and_scope_narrow_what_is_told() {
    let fixture = Fixture::new();
    fixture.put("open/f", "1");
    fixture.put("secret/f", "1");
    let readable = vec![RelPath::from_wire("open").unwrap()];
    let mut narrow = Caller::new(Principal::Agent("narrow".into()), "s", "library");
    narrow.grants = Grants { readable, ..Grants::default() };
    let refused = fixture.call_as(&narrow, "watch", json!({ "path": "secret" })).unwrap_err();
    assert_eq!(refused.kind.code(), "out_of_scope");
    let begun = fixture
        .call_as(&narrow, "watch", json!({ "path": ".", "recursive": true, "types": ["create"] }))
        .unwrap();
    let mut listener = Listener::new(&fixture, json!({ "recursive": true }));
    fs::write(fixture.path("secret/g"), "2").unwrap();
    fs::write(fixture.path("open/f"), "2").unwrap();
    fs::rename(fixture.path("secret/f"), fixture.path("open/h")).unwrap();
    fs::write(fixture.path("open/g"), "2").unwrap();
    listener.until(&["create secret/g", "modify open/f", "rename secret/f -> open/h", "create open/g"]);
    let told = fixture.call_as(&narrow, "watched", json!({ "cursor": begun.json["cursor"] })).unwrap().json;
    let told: Vec<String> = told["events"].as_array().unwrap().iter().map(short).collect();
    assert_eq!(told, ["create open/h", "create open/g"]);
    let other = fixture.call_as(&narrow, "unwatch", json!({ "watch": "w-0" })).unwrap_err();
    assert_eq!(other.kind.code(), "not_found");
}

#[test]
fn watches_end_and_the_listening_with_them() {
    let fixture = Fixture::new();
    let begun = fixture.ok("watch", json!({}));
    fs::write(fixture.path("a"), "1").unwrap();
    let heard = fixture.ok("watched", json!({ "wait_ms": 10_000 }));
    assert_eq!(heard["events"].as_array().unwrap().len(), 1);
    fixture.ok("unwatch", json!({ "watch": begun["watch"] }));
    assert_eq!(fixture.kind("unwatch", json!({ "watch": begun["watch"] })), "not_found");
    fs::write(fixture.path("b"), "1").unwrap();
    let begun = fixture.ok("watch", json!({}));
    fs::write(fixture.path("c"), "1").unwrap();
    let heard = fixture.ok("watched", json!({ "watch": begun["watch"], "wait_ms": 10_000 }));
    assert_eq!(heard["events"].as_array().unwrap().iter().map(short).collect::<Vec<_>>(), ["create c"]);
    assert_eq!(fixture.kind("watch", json!({ "path": "nowhere" })), "not_found");
    assert_eq!(fixture.kind("watch", json!({ "types": ["read"] })), "bad_request");
    assert_eq!(fixture.kind("watch", json!({ "glob": "a[" })), "bad_request");
}

#[test]
fn a_restart_keeps_watches_and_tells_of_the_gap() {
    let fixture = Fixture::new();
    let begun = fixture.ok("watch", json!({ "recursive": true }));
    let mut fixture = fixture.reopen();
    fs::write(fixture.path("missed"), "1").unwrap();
    let mut options = crate::support::options(&fixture.place);
    options.listening = local::Listening::AtOnce;
    fixture.workspace.close();
    fixture = Fixture::open(std::sync::Arc::clone(&fixture.place), options);
    let mut listener = Listener { fixture: &fixture, cursor: begun["cursor"].clone() };
    listener.until(&["rescan ."]);
    fs::write(fixture.path("heard"), "1").unwrap();
    listener.until(&["create heard"]);
}

#[test]
fn what_came_unheard_and_was_seen_after_a_rescan_is_told_when_it_goes() {
    let fixture = Fixture::new();
    fixture.ok("write", json!({ "path": "a", "content": "1\n" }));
    let begun = fixture.ok("watch", json!({ "recursive": true }));
    fixture.ok("remove", json!({ "path": "a" }));
    let mut fixture = fixture.reopen();
    fs::write(fixture.path("a"), "2").unwrap();
    let mut options = crate::support::options(&fixture.place);
    options.listening = local::Listening::AtOnce;
    fixture.workspace.close();
    fixture = Fixture::open(std::sync::Arc::clone(&fixture.place), options);
    let mut listener = Listener { fixture: &fixture, cursor: begun["cursor"].clone() };
    listener.until(&["rescan ."]);
    fs::remove_file(fixture.path("a")).unwrap();
    listener.until(&["delete a"]);
}

#[test]
fn a_thousand_watches_cost_nothing_while_nothing_happens() {
    let fixture = Fixture::new();
    for number in 0..1000 {
        fs::create_dir(fixture.path(&format!("d{number}"))).unwrap();
    }
    for number in 0..1000 {
        fixture.ok("watch", json!({ "path": format!("d{number}") }));
    }
    // What is left of making them is written meanwhile.
    let end = Instant::now() + PATIENCE;
    let mut rounds = fixture.workspace.listening_rounds();
    loop {
        std::thread::sleep(Duration::from_millis(1500));
        let now = fixture.workspace.listening_rounds();
        if now == rounds {
            break;
        }
        rounds = now;
        assert!(Instant::now() < end, "it does not come to rest");
    }
    fs::write(fixture.path("d777/f"), "1").unwrap();
    let heard = fixture.ok("watched", json!({ "wait_ms": 10_000 }));
    assert_eq!(heard["events"].as_array().unwrap().iter().map(short).collect::<Vec<_>>(), ["create d777/f"]);
}
