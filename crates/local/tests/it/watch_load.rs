//! Tests watching under load and while processes die: the client learns of every change, or is told to rescan.

#![expect(clippy::disallowed_methods, reason = "the test is the other program, and starts it")]

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use stead_disk::faults::{
    FaultFilter, FaultPlan, FaultPlanThreadFilter, InjectedFaultEffect, SystemCall, arm_fault, disarm_fault,
};

use crate::{
    event_follower::EventDerivedTestTree,
    support::{self, LocalFixture},
    watch::TestWatchClient,
};
use testkit::{ErrorDetailsJson, hint_text};

const CHILD_TASK_ENV: &str = "LOCAL_TEST_WATCH_TASK";
const CHILD_DIRECTORY_ENV: &str = "LOCAL_TEST_WATCH_PLACE";
const READY_LINE: &str = "@@ ready";
const FILES: usize = 10_000;
const DIRECTORIES: usize = 50;
/// The kernel returns ENOSPC at the watch limit.
const NO_SPACE: i32 = 28;
const EVENT_TIMEOUT: Duration = Duration::from_secs(60);

fn start_child(task: &str, directory: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "watch_load::child", "--nocapture", "--test-threads=1"])
        .env(CHILD_TASK_ENV, task)
        .env(CHILD_DIRECTORY_ENV, directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn child() {
    let Some(task) = std::env::var_os(CHILD_TASK_ENV) else { return };
    let directory = std::path::PathBuf::from(std::env::var_os(CHILD_DIRECTORY_ENV).unwrap());
    match task.to_str().unwrap() {
        "burst" => write_many_files(&directory.join("ws")),
        "record" => record_external_changes(&directory, stead_engine::WatchLifetimeKind::Persistent),
        "subscribe" => record_external_changes(&directory, stead_engine::WatchLifetimeKind::Process),
        "limit" => check_watch_limit(),
        other => panic!("{other}"),
    }
}

/// The watch limit is checked in its own process, because the fault affects all threads.
fn check_watch_limit() {
    let fixture = LocalFixture::new();
    for directory in ["top/a", "top/b", "top/c", "other"] {
        fs::create_dir_all(fixture.path(directory)).unwrap();
    }
    let full = FaultPlan {
        call_number: 2,
        action: InjectedFaultEffect::FailFromNowOn(NO_SPACE),
        scope: FaultPlanThreadFilter::AllThreads,
        calls: FaultFilter::Only(SystemCall::Watch),
    };
    let recursive = json!({ "path": "top", "recursive": true });
    let mut listener = TestWatchClient::new(&fixture, json!({ "path": "other", "recursive": true }));
    arm_fault(full);
    let error = fixture.call("watch", recursive.clone()).unwrap_err();
    assert_eq!(error.kind, stead_engine::ErrorKind::TooMany, "{error}");
    let hint = hint_text(&error);
    assert!(hint.contains("without recursive") && hint.contains("unwatch"), "{hint}");
    assert!(error.details_json()["watches_max"].as_u64().unwrap() > 0);
    let own = <dyn stead_engine::Workspace>::watches(&*fixture.workspace, &fixture.caller.principal).unwrap();
    assert_eq!(error.details_json()["oldest"], json!(own[0].id), "what could be ended");
    assert_eq!(own.len(), 1, "nothing half is left");
    // A new directory below a watched one that cannot be watched is reported as a rescan.
    fs::create_dir(fixture.path("other/new")).unwrap();
    wait_for(&mut listener, "rescan", "other/new");
    assert_eq!(disarm_fault().hit_call, Some(SystemCall::Watch));
    fixture.call_ok("unwatch", json!({ "watch": own[0].id }));
    let mut listener = TestWatchClient::new(&fixture, recursive);
    fs::write(fixture.path("top/c/f"), "x").unwrap();
    wait_for(&mut listener, "create", "top/c/f");
}

fn file_path(number: usize, name: &str) -> String {
    format!("d{}/{name}{number}", number % DIRECTORIES)
}

fn write_many_files(ws: &Path) {
    for number in 0..FILES {
        let path = ws.join(file_path(number, "f"));
        if number < DIRECTORIES {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        fs::write(path, format!("{number}\n")).unwrap();
    }
    for number in (0..FILES).step_by(2) {
        fs::write(ws.join(file_path(number, "f")), format!("changed {number}\n")).unwrap();
    }
    for number in (0..FILES).step_by(3) {
        fs::rename(ws.join(file_path(number, "f")), ws.join(file_path(number, "g"))).unwrap();
    }
    for number in (0..FILES).step_by(5) {
        let name = if number % 3 == 0 { "g" } else { "f" };
        fs::remove_file(ws.join(file_path(number, name))).unwrap();
    }
    fs::rename(ws.join("d1"), ws.join("e1")).unwrap();
    fs::remove_dir_all(ws.join("d2")).unwrap();
}

fn record_external_changes(directory: &Path, lasting: stead_engine::WatchLifetimeKind) {
    let workspace = stead_local::LocalWorkspace::open(support::test_options_at(directory)).unwrap();
    let engine = stead_engine::Engine::new(workspace);
    let caller = stead_engine::Caller::new(stead_engine::Principal::Agent("first".into()), "s0", "library");
    let watch = stead_engine::ops::WatchArgs { lifetime: lasting, ..Default::default() };
    testkit::native::run_operation(&engine, &caller, watch).unwrap();
    std::io::Write::write_all(&mut std::io::stdout(), format!("{READY_LINE}\n").as_bytes()).unwrap();
    drop(std::io::stdin().read(&mut [0]));
}

fn wait_ready(child: &mut Child) {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains(READY_LINE)), "the child ended");
}

#[test]
fn bursts_of_ten_thousand_files_are_reported_or_rescanned() {
    let fixture = LocalFixture::new();
    let ws = fixture.path("");
    let mut listener = TestWatchClient::new(&fixture, json!({ "recursive": true }));
    let mut child = start_child("burst", fixture.directory.path());
    let mut follower = EventDerivedTestTree::default();
    while child.try_wait().unwrap().is_none() {
        follower.apply_page(&listener.next_page(50), &ws);
    }
    assert!(child.wait().unwrap().success());
    follower.catch_up(&mut listener, &ws).unwrap();
    eprintln!("{} events, {} rescans", follower.events, follower.rescans);
    assert!(follower.events > 0);
    assert_eq!(fixture.workspace.verify_journal(None, &[]).unwrap().integrity_error, None);
}

#[test]
fn another_process_takes_over_from_a_killed_recorder() {
    let fixture = LocalFixture::new();
    let mut child = start_child("record", fixture.directory.path());
    wait_ready(&mut child);
    // The child records; this process reads its entries.
    let mut listener = TestWatchClient::new(&fixture, json!({ "recursive": true }));
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
fn writes_of_another_process_end_a_wait() {
    let fixture = LocalFixture::new();
    let mut child = start_child("record", fixture.directory.path());
    wait_ready(&mut child);
    let mut listener = TestWatchClient::new(&fixture, json!({}));
    let workspace: &dyn stead_engine::Workspace = &*fixture.workspace;
    for round in 0..20 {
        let end = Instant::now() + EVENT_TIMEOUT;
        let head = workspace.head().unwrap();
        fs::write(fixture.path(&format!("f{round}")), "x").unwrap();
        // A waiter reads the journal when it is signalled, and otherwise only at the very end.
        workspace.wait_for_entry_after(head.number, end).unwrap();
        assert!(Instant::now() < end, "nobody told that the entry is there");
        wait_for(&mut listener, "create", &format!("f{round}"));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn watch_limit_error_has_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let child = start_child("limit", directory.path());
    let ran = child.wait_with_output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
}

#[test]
fn process_bound_watches_end_with_the_process() {
    let fixture = LocalFixture::new();
    let mut listener = TestWatchClient::new(&fixture, json!({}));
    let first = stead_engine::Principal::Agent("first".into());
    let workspace: &dyn stead_engine::Workspace = &*fixture.workspace;
    let mut child = start_child("subscribe", fixture.directory.path());
    wait_ready(&mut child);
    assert_eq!(workspace.watches(&first).unwrap().len(), 1);
    // After an event the liveness check runs: the watch of the live process stays.
    fs::write(fixture.path("one"), "1").unwrap();
    wait_for(&mut listener, "create", "one");
    assert_eq!(workspace.watches(&first).unwrap().len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let end = Instant::now() + EVENT_TIMEOUT;
    while !workspace.watches(&first).unwrap().is_empty() {
        assert!(Instant::now() < end, "the watch of a dead process stays");
        listener.next_page(50);
    }
    assert_eq!(workspace.watches(&fixture.caller.principal).unwrap().len(), 1, "what is kept stays");
}

fn wait_for(listener: &mut TestWatchClient<'_>, event: &str, path: &str) -> Value {
    let end = Instant::now() + EVENT_TIMEOUT;
    loop {
        let page = listener.next_page(500);
        if let Some(found) = page.into_iter().find(|found| found["event"] == event && found["path"] == path) {
            return found;
        }
        assert!(Instant::now() < end, "{event} {path}");
    }
}

impl LocalFixture {
    fn workspace_entry(&self, event: &Value) -> String {
        let workspace: &dyn stead_engine::Workspace = &*self.workspace;
        workspace.entry(event["entry"].as_u64().unwrap()).unwrap().unwrap().entry.caller.session
    }
}
