//! Conformance tests of watches: stored as requested, ended by their owner, and recorded changes of other programs.

use std::time::Instant;

use stead_engine::{
    CommitReceipt, Error, ErrorKind, Principal, Watch, WatchBeginOrEndRequest, WatchDepth, WatchEventKind,
    WatchLifetimeKind,
};
use stead_journal::ChangeKind;

use super::{
    ConformanceWorkspaceFactory, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest, journal, rel_path,
};
use crate::wait::{WAIT_TIMEOUT, wait_until};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("a watch is stored as requested", watch_is_stored_as_requested),
    ("watches are listed from the oldest to the newest", watches_are_listed_by_age),
    ("only its owner ends a watch", only_owner_ends_a_watch),
    ("a persistent watch survives a restart, a watch of the process does not", watches_survive_as_requested),
];

pub(super) const EXTERNAL_CHANGE_CASES: WorkspaceConformanceCaseTable =
    &[("changes by other programs are recorded while a watch exists", external_changes_are_recorded)];

fn execute(
    fixture: &WorkspaceUnderConformanceTest,
    request: &WatchBeginOrEndRequest,
) -> Result<(Watch, CommitReceipt), Error> {
    let record = fixture.journal_record("watch", None);
    fixture.workspace.execute_watch_request(request, &record, Instant::now() + WAIT_TIMEOUT)
}

fn begin_watch(fixture: &WorkspaceUnderConformanceTest, path: &str, lifetime: WatchLifetimeKind) -> Watch {
    let (path, depth, event_kinds, glob) = (rel_path(path), WatchDepth::Deep, Vec::new(), None);
    execute(fixture, &WatchBeginOrEndRequest::Begin { path, depth, event_kinds, glob, lifetime }).unwrap().0
}

fn end_watch(fixture: &WorkspaceUnderConformanceTest, id: &str) -> Result<Watch, Error> {
    execute(fixture, &WatchBeginOrEndRequest::End { id: id.to_owned() }).map(|(watch, _)| watch)
}

pub(super) fn begin_persistent_watch(fixture: &WorkspaceUnderConformanceTest, path: &str) -> Watch {
    begin_watch(fixture, path, WatchLifetimeKind::Persistent)
}

pub(super) fn begin_process_watch(fixture: &WorkspaceUnderConformanceTest, path: &str) -> Watch {
    begin_watch(fixture, path, WatchLifetimeKind::Process)
}

pub(super) fn watches(fixture: &WorkspaceUnderConformanceTest) -> Vec<Watch> {
    fixture.workspace.watches(&fixture.caller.principal).unwrap()
}

fn watch_is_stored_as_requested(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    let request = WatchBeginOrEndRequest::Begin {
        path: rel_path("d"),
        depth: WatchDepth::Shallow,
        event_kinds: vec![WatchEventKind::Delete, WatchEventKind::Rename],
        glob: Some("*.txt".to_owned()),
        lifetime: WatchLifetimeKind::Persistent,
    };
    let (watch, receipt) = execute(&fixture, &request).unwrap();
    let expected = Watch {
        id: watch.id.clone(),
        owner: "agent:one".to_owned(),
        session: fixture.caller.session.clone(),
        path: rel_path("d"),
        depth: WatchDepth::Shallow,
        event_kinds: vec![WatchEventKind::Delete, WatchEventKind::Rename],
        glob: Some("*.txt".to_owned()),
        started_at_entry: receipt.entry,
    };
    assert_eq!((&watch, receipt.entry), (&expected, fixture.head_number()));
    assert_eq!(watches(&fixture), [expected]);
    assert_eq!(watches(&fixture.with_other_agent("two")), Vec::new());
}

fn watches_are_listed_by_age(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let other = fixture.with_other_agent("two");
    fixture.create_directory("d");
    // All watches begin in the same millisecond, and two of them are equal.
    let begun: Vec<Watch> = ["d", "", "d", ""].map(|path| begin_persistent_watch(&fixture, path)).into();
    begin_persistent_watch(&other, "d");
    assert_eq!(watches(&fixture), begun);
    end_watch(&fixture, &begun[1].id).unwrap();
    assert_eq!(watches(&fixture), [&begun[..1], &begun[2..]].concat());
}

fn only_owner_ends_a_watch(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let watch = begin_persistent_watch(&fixture, "");
    let other = fixture.with_other_agent("two");
    fixture.assert_refused(ErrorKind::NotFound, || end_watch(&other, &watch.id));
    fixture.assert_refused(ErrorKind::NotFound, || end_watch(&fixture, "w-none"));
    let before = fixture.head_number();
    assert_eq!(end_watch(&fixture, &watch.id).unwrap(), watch);
    assert_eq!((fixture.head_number(), watches(&fixture)), (before + 1, Vec::new()));
    fixture.assert_refused(ErrorKind::NotFound, || end_watch(&fixture, &watch.id));
}

fn watches_survive_as_requested(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let persistent = begin_persistent_watch(&fixture, "");
    begin_process_watch(&fixture, "");
    let fixture = fixture.reopen(factory);
    // An implementation may notice the end of a process only when it begins to watch.
    let later = begin_process_watch(&fixture, "");
    wait_until("the watch of the ended process ends", || watches(&fixture).len() < 3);
    assert_eq!(watches(&fixture), [persistent, later]);
}

fn external_changes_are_recorded(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    let watch = begin_persistent_watch(&fixture, "d");
    factory.write_externally("d/f", b"written by another program");
    let created = |change: &stead_journal::RecordedChange| change.path == "d/f" && change.kind == ChangeKind::Create;
    let deadline = Instant::now() + WAIT_TIMEOUT;
    loop {
        let head = fixture.head_number();
        let entries = fixture.workspace.entries(&journal::unfiltered()).unwrap();
        if let Some(stored) = entries.iter().find(|stored| stored.entry.changes.iter().any(created)) {
            assert_eq!(stored.entry.caller.principal, Principal::External.to_string());
            assert!(stored.entry.number > watch.started_at_entry);
            break;
        }
        assert!(Instant::now() < deadline, "the change was not recorded");
        fixture.workspace.wait_for_entry_after(head, deadline).unwrap();
    }
    journal::check_chain(&fixture);
}
