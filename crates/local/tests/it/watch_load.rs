//! Watching under load and through deaths: nothing is missed unless a rescan says so.

#![expect(clippy::disallowed_methods, reason = "the test is the other program, and starts it")]

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use disk::faults::{Action, Call, Calls, FaultPlan, Scope, arm, disarm};
use serde_json::{Value, json};

use crate::{
    follower::Follower,
    support::{self, Fixture},
    watch::Listener,
};

/// Says to the test `child` what to do, and where.
const TASK: &str = "LOCAL_TEST_WATCH_TASK";
const PLACE: &str = "LOCAL_TEST_WATCH_PLACE";
/// What a child says when it is ready.
const READY: &str = "@@ ready";
/// Files of a burst, and the directories they are in.
const FILES: usize = 10_000;
const DIRECTORIES: usize = 50;
/// What the kernel says when a user watches too much: ENOSPC.
const NO_SPACE: i32 = 28;
/// Longest time an event is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// This binary again, running only the test below.
fn start(task: &str, place: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "watch_load::child", "--nocapture", "--test-threads=1"])
        .env(TASK, task)
        .env(PLACE, place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn child() {
    let Some(task) = std::env::var_os(TASK) else { return };
    let place = std::path::PathBuf::from(std::env::var_os(PLACE).unwrap());
    match task.to_str().unwrap() {
        "burst" => burst(&place.join("ws")),
        "record" => record(&place, engine::Lasting::Kept),
        "subscribe" => record(&place, engine::Lasting::Process),
        "limit" => limit(),
        other => panic!("{other}"),
    }
}

/// Watches as the kernel allows no more from some point on. A process of its own, because all its threads are hit.
fn limit() {
    let fixture = Fixture::new();
    for directory in ["top/a", "top/b", "top/c", "other"] {
        fs::create_dir_all(fixture.path(directory)).unwrap();
    }
    let full = FaultPlan {
        at: 2,
        action: Action::Dead(NO_SPACE),
        scope: Scope::AllThreads,
        calls: Calls::Only(Call::Watch),
    };
    let recursive = json!({ "path": "top", "recursive": true });
    let mut listener = Listener::new(&fixture, json!({ "path": "other", "recursive": true }));
    arm(full);
    let failure = fixture.call("watch", recursive.clone()).unwrap_err();
    assert_eq!(failure.kind, engine::Kind::TooMany, "{failure}");
    let hint = failure.hint.clone().unwrap();
    assert!(hint.contains("without recursive") && hint.contains("unwatch"), "{hint}");
    assert!(failure.facts["watches_max"].as_u64().unwrap() > 0);
    let own = engine::Workspace::watches(&*fixture.workspace, &fixture.caller.principal).unwrap();
    assert_eq!(failure.facts["oldest"], json!(own[0].id), "what could be ended");
    assert_eq!(own.len(), 1, "nothing half is left");
    // A directory that comes below a watched one and cannot be watched is told as one to look through again.
    fs::create_dir(fixture.path("other/new")).unwrap();
    wait_for(&mut listener, "rescan", "other/new");
    assert_eq!(disarm().fired, Some(Call::Watch));
    fixture.ok("unwatch", json!({ "watch": own[0].id }));
    let mut listener = Listener::new(&fixture, recursive);
    fs::write(fixture.path("top/c/f"), "x").unwrap();
    wait_for(&mut listener, "create", "top/c/f");
}

fn file(number: usize, name: &str) -> String {
    format!("d{}/{name}{number}", number % DIRECTORIES)
}

/// Creates, changes, renames and removes, as fast as it can.
fn burst(ws: &Path) {
    for number in 0..FILES {
        let path = ws.join(file(number, "f"));
        if number < DIRECTORIES {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(path, format!("{number}\n")).unwrap();
    }
    for number in (0..FILES).step_by(2) {
        fs::write(ws.join(file(number, "f")), format!("changed {number}\n")).unwrap();
    }
    for number in (0..FILES).step_by(3) {
        fs::rename(ws.join(file(number, "f")), ws.join(file(number, "g"))).unwrap();
    }
    for number in (0..FILES).step_by(5) {
        let name = if number % 3 == 0 { "g" } else { "f" };
        fs::remove_file(ws.join(file(number, name))).unwrap();
    }
    fs::rename(ws.join("d1"), ws.join("e1")).unwrap();
    fs::remove_dir_all(ws.join("d2")).unwrap();
}

/// Opens the workspace, watches it, and records until it is killed.
fn record(place: &Path, lasting: engine::Lasting) {
    let workspace = local::LocalWorkspace::open(support::options_at(place)).unwrap();
    let engine = engine::Engine::new(workspace);
    let caller = engine::Caller::new(engine::Principal::Agent("first".into()), "s0", "library");
    let mut call = engine::Call::new(&caller, "watch", serde_json::Map::new());
    call.terms.lasting = lasting;
    engine.call(&call).unwrap();
    std::io::Write::write_all(&mut std::io::stdout(), format!("{READY}\n").as_bytes()).unwrap();
    drop(std::io::stdin().read(&mut [0]));
}

fn wait_ready(child: &mut Child) {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains(READY)), "the child ended");
}

#[test]
fn ten_thousand_files_by_another_process_and_nothing_is_missed_in_silence() {
    let fixture = Fixture::new();
    let ws = fixture.path("");
    let mut listener = Listener::new(&fixture, json!({ "recursive": true }));
    let mut child = start("burst", fixture.place.path());
    let mut follower = Follower::default();
    while child.try_wait().unwrap().is_none() {
        for event in listener.page(50) {
            follower.take(&event, &ws);
        }
    }
    assert!(child.wait().unwrap().success());
    follower.catch_up(&mut listener, &ws).unwrap();
    eprintln!("{} events, {} rescans", follower.events, follower.rescans);
    assert!(follower.events > 0);
    assert_eq!(fixture.workspace.verify_log(None, &[]).unwrap().tamper, None);
}

#[test]
fn when_the_recorder_is_killed_another_takes_over_and_says_so() {
    let fixture = Fixture::new();
    let mut child = start("record", fixture.place.path());
    wait_ready(&mut child);
    // The child records; this process listens to what it writes.
    let mut listener = Listener::new(&fixture, json!({ "recursive": true }));
    fs::write(fixture.path("one"), "1").unwrap();
    let heard = wait_for(&mut listener, "create", "one");
    let entry = fixture.workspace_entry(&heard);
    assert_ne!(entry, "", "somebody recorded it");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for(&mut listener, "rescan", ".");
    fs::write(fixture.path("two"), "2").unwrap();
    let heard = wait_for(&mut listener, "create", "two");
    assert_ne!(fixture.workspace_entry(&heard), entry, "another process recorded it");
}

#[test]
fn what_another_process_writes_ends_a_wait() {
    let fixture = Fixture::new();
    let mut child = start("record", fixture.place.path());
    wait_ready(&mut child);
    let mut listener = Listener::new(&fixture, json!({}));
    let workspace: &dyn engine::Workspace = &*fixture.workspace;
    for round in 0..20 {
        let end = Instant::now() + PATIENCE;
        let head = workspace.head().unwrap();
        fs::write(fixture.path(&format!("f{round}")), "x").unwrap();
        // Whoever waits here looks at the journal when it is told to, and otherwise only at the very end.
        workspace.wait_after(head.number, end).unwrap();
        assert!(Instant::now() < end, "nobody told that the entry is there");
        wait_for(&mut listener, "create", &format!("f{round}"));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_kernel_that_allows_no_more_watches_is_told_with_the_ways_out() {
    let place = tempfile::tempdir().unwrap();
    let child = start("limit", place.path());
    let ran = child.wait_with_output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}

#[test]
fn what_is_bound_to_a_process_ends_with_it() {
    let fixture = Fixture::new();
    let mut listener = Listener::new(&fixture, json!({}));
    let first = engine::Principal::Agent("first".into());
    let workspace: &dyn engine::Workspace = &*fixture.workspace;
    let mut child = start("subscribe", fixture.place.path());
    wait_ready(&mut child);
    assert_eq!(workspace.watches(&first).unwrap().len(), 1);
    // Something happens, and it is looked around: the watch of who lives stays.
    fs::write(fixture.path("one"), "1").unwrap();
    wait_for(&mut listener, "create", "one");
    assert_eq!(workspace.watches(&first).unwrap().len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let end = Instant::now() + PATIENCE;
    while !workspace.watches(&first).unwrap().is_empty() {
        assert!(Instant::now() < end, "the watch of a dead process stays");
        listener.page(50);
    }
    assert_eq!(workspace.watches(&fixture.caller.principal).unwrap().len(), 1, "what is kept stays");
}

fn wait_for(listener: &mut Listener<'_>, event: &str, path: &str) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let page = listener.page(500);
        if let Some(found) = page.into_iter().find(|found| found["event"] == event && found["path"] == path) {
            return found;
        }
        assert!(Instant::now() < end, "{event} {path}");
    }
}

impl Fixture {
    /// Which opening recorded an event.
    fn workspace_entry(&self, event: &Value) -> String {
        let workspace: &dyn engine::Workspace = &*self.workspace;
        workspace.entry(event["entry"].as_u64().unwrap()).unwrap().unwrap().entry.caller.session
    }
}
