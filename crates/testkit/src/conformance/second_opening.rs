//! Conformance tests of two openings of the same state, as in two processes.

use std::time::Instant;

use stead_engine::{
    AlertSeverity, ApprovalDecision, ApprovalState, BufferEditorConnectionState, BytesToRead, CallerResourceLifetime,
    CommitError, CommitExpectation, ErrorKind, Plan, RequiredUsageFreshness, SessionStoreReply,
    SessionStoreWriteRequest, SessionTotalsQuery, StorageQuotaLimits, Version,
};
use stead_journal::JournalEntryRelation;

use super::{
    ConformanceWorkspaceFactory, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest,
    approval::{answer_approval, approval_state, request_approval, use_approval},
    assert_fails, buffers, journal,
    lease::{LONG_MS, acquire_lease, lease_holders},
    path_locks, put_change, quota, rel_path, remove_change,
    sessions::run_session_command,
    single_file_tree, watches,
};
use crate::wait::{WAIT_TIMEOUT, wait_until};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("both openings see the same files and write one journal", both_write_one_journal),
    ("a key is used once in both openings", key_is_used_once_in_both),
    ("a lease of one opening excludes the other", lease_excludes_other_opening),
    ("a path lock of one opening excludes the other", path_lock_excludes_other_opening),
    ("an approval is asked, answered and used across openings", approval_crosses_openings),
    ("sessions, alerts and totals are shared by both openings", sessions_are_shared),
    ("trash and retained bytes are shared by both openings", trash_is_shared),
    ("a quota holds for both openings together", quota_holds_for_both),
    ("a waiting caller notices an entry of the other opening", waiting_notices_other_opening),
    ("the change counter notices the other opening", change_counter_notices_other_opening),
    ("a buffer is open for both until its connection ends", buffer_is_open_for_both),
    ("a buffer is open for both until its opening ends", buffer_ends_with_its_opening),
    ("a watch is listed in both openings, a process watch until its opening ends", watch_is_listed_in_both),
];

fn open_twice(
    factory: &dyn ConformanceWorkspaceFactory,
) -> (WorkspaceUnderConformanceTest, WorkspaceUnderConformanceTest) {
    let first = WorkspaceUnderConformanceTest::new(factory);
    let second = first.with_second_opening(factory);
    (first, second)
}

fn both_write_one_journal(factory: &dyn ConformanceWorkspaceFactory) {
    let (first, second) = open_twice(factory);
    assert_eq!(first.workspace.profile().id, second.workspace.profile().id);
    for number in 0..3_u8 {
        let entry = first.create_file(&format!("a{number}"), &[number]);
        assert_eq!(second.create_file(&format!("b{number}"), &[number]), entry + 1);
        first.workspace.record_call(&first.journal_record("read", None)).unwrap();
        first.head_number();
    }
    let old = first.expect_observed_file("a0");
    second.commit(vec![put_change("a0", second.expect_observed_file("a0"), b"changed")]);
    first.assert_changed_since(vec![put_change("a0", old, b"late")], "a0");
    assert_eq!(first.read_bytes("a0"), b"changed");
    assert_eq!((first.list_tree(), first.head_number()), (second.list_tree(), 10));
    let version = Version::hash_bytes(b"changed");
    assert_eq!(first.workspace.entry_of_version(&rel_path("a0"), &version).unwrap(), Some(10));
    journal::check_chain(&first);
    journal::check_chain(&second);
}

fn key_is_used_once_in_both(factory: &dyn ConformanceWorkspaceFactory) {
    let (first, second) = open_twice(factory);
    let plan = |path: &str| Plan::new(vec![put_change(path, CommitExpectation::Absent, b"x")]);
    let number = first.try_plan(&plan("a"), Some("key")).unwrap().entry;
    assert_eq!(second.workspace.entry_for_idempotency_key(&second.caller.principal, "key").unwrap(), Some(number));
    match second.try_plan(&plan("b"), Some("key")) {
        Err(CommitError::KeyAlreadyUsed(used)) => assert_eq!(used, number),
        other => panic!("applied twice: {other:?}"),
    }
    let undo = remove_change("a", second.expect_observed_file("a"), single_file_tree(1));
    let by = second.commit_linked(vec![undo], JournalEntryRelation::Undoes(number));
    assert_eq!(first.workspace.undone_by(number).unwrap(), Some(by));
}

fn lease_excludes_other_opening(factory: &dyn ConformanceWorkspaceFactory) {
    let (first, second) = open_twice(factory);
    let lease = acquire_lease(&first, "d", LONG_MS).unwrap();
    let other = second.with_other_agent("two");
    assert_fails(acquire_lease(&other, "d/f", LONG_MS), ErrorKind::Locked);
    assert_eq!(lease_holders(&second, "d"), ["agent:one d"]);
    assert!(acquire_lease(&other, "e", LONG_MS).unwrap().fencing_token > lease.fencing_token);
}

fn path_lock_excludes_other_opening(factory: &dyn ConformanceWorkspaceFactory) {
    let (first, second) = open_twice(factory);
    let guard = path_locks::try_lock(&first, &["d/f"]).unwrap();
    for path in ["d/f", "d"] {
        path_locks::assert_locked(&second, &[path]);
    }
    drop(path_locks::try_lock(&second, &["d/g"]).unwrap());
    drop(guard);
    drop(path_locks::try_lock(&second, &["d"]).unwrap());
}

fn approval_crosses_openings(factory: &dyn ConformanceWorkspaceFactory) {
    let (first, second) = open_twice(factory);
    let asked = request_approval(&first, "p");
    assert_eq!(request_approval(&second, "p"), asked, "the same request is stored once");
    answer_approval(&second, &asked.id, ApprovalDecision::Approve).unwrap();
    assert_eq!(answer_approval(&first, &asked.id, ApprovalDecision::Deny), Err(ErrorKind::Conflict));
    assert_eq!(use_approval(&first, &asked.id, "a"), Ok(()));
    assert_eq!(approval_state(&second, &asked.id), ApprovalState::Used);
    assert_eq!(use_approval(&second, &asked.id, "b"), Err(ErrorKind::ApprovalStale));
}

fn sessions_are_shared(factory: &dyn ConformanceWorkspaceFactory) {
    let (first, second) = open_twice(factory);
    let alert = SessionStoreWriteRequest::SendAlert { severity: AlertSeverity::Info, message: "m".to_owned() };
    let SessionStoreReply::Alert(sent) = run_session_command(&first, &alert).unwrap() else { panic!("an alert") };
    let answer = SessionStoreWriteRequest::AnswerAlert { alert_id: sent.id.clone(), text: "t".to_owned() };
    run_session_command(&second, &answer).unwrap();
    assert_fails(run_session_command(&first, &answer), ErrorKind::Exists);
    let calls = |fixture: &WorkspaceUnderConformanceTest| {
        let query = SessionTotalsQuery { principal: &fixture.caller.principal, session: "session", from_entry: 0 };
        fixture.workspace.session_totals(&query).unwrap().calls
    };
    assert_eq!((calls(&first), calls(&second)), (2, 2));
    second.create_file("f", b"f");
    assert_eq!((calls(&first), calls(&second)), (3, 3), "totals are counted again");
}

fn trash_is_shared(factory: &dyn ConformanceWorkspaceFactory) {
    let (first, second) = open_twice(factory);
    first.create_file("f", b"one");
    second.commit(vec![put_change("f", second.expect_observed_file("f"), b"two")]);
    assert_eq!(first.workspace.retained_bytes(&Version::hash_bytes(b"one")).unwrap().unwrap(), b"one");
    let change = remove_change("f", first.expect_observed_file("f"), single_file_tree(3));
    let id = first.commit(vec![change]).trash_ids.remove(0);
    let restore = || {
        vec![stead_engine::PlannedChange::Restore { trash: id.clone(), path: rel_path("g"), tree: single_file_tree(3) }]
    };
    second.commit(restore());
    assert_eq!(first.workspace.trash_item(&id).unwrap(), None);
    assert!(first.workspace.read(&rel_path("g"), BytesToRead::VersionOnly).is_ok());
    assert!(first.try_commit(restore()).is_err());
}

fn quota_holds_for_both(factory: &dyn ConformanceWorkspaceFactory) {
    let (first, second) = open_twice(factory);
    quota::usage_of(&first, RequiredUsageFreshness::RecountIfStale);
    let limit = StorageQuotaLimits { files: Some(2), ..quota::UNLIMITED_QUOTA };
    let create = |fixture: &WorkspaceUnderConformanceTest, path: &str| {
        let changes = vec![put_change(path, CommitExpectation::Absent, b"12")];
        quota::commit_under_quota(fixture, limit, changes, JournalEntryRelation::None).map(drop)
    };
    assert_eq!((create(&first, "a"), create(&second, "b")), (Ok(()), Ok(())));
    for fixture in [&first, &second] {
        assert_eq!(quota::usage_of(fixture, RequiredUsageFreshness::Cached), (4, 2));
        assert_eq!(create(fixture, "c"), Err(ErrorKind::QuotaExceeded));
    }
}

fn waiting_notices_other_opening(factory: &dyn ConformanceWorkspaceFactory) {
    let (first, second) = open_twice(factory);
    let head = first.head_number();
    let deadline = Instant::now() + WAIT_TIMEOUT;
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| first.workspace.wait_for_entry_after(head, deadline));
        second.create_file("f", b"f");
        waiting.join().unwrap().unwrap();
        assert!(Instant::now() < deadline);
    });
    assert_eq!(first.head_number(), head + 1);
}

fn change_counter_notices_other_opening(factory: &dyn ConformanceWorkspaceFactory) {
    let (first, second) = open_twice(factory);
    let before = first.workspace.change_counter().unwrap();
    second.create_file("f", b"f");
    wait_until("the change counter changes", || first.workspace.change_counter().unwrap() != before);
}

fn buffer_is_open_for_both(factory: &dyn ConformanceWorkspaceFactory) {
    use BufferEditorConnectionState::{Draft, OpenHere, OpenInOtherProcess};
    let (first, second) = open_twice(factory);
    let lifetime = CallerResourceLifetime::connected();
    let draft = buffers::open_buffer(&first.with_lifetime(&lifetime), "a", b"typed").unwrap();
    let states = |state| [("a".to_owned(), state)];
    assert_eq!(
        (buffers::states(&first), buffers::states(&second)),
        (states(OpenHere).into(), states(OpenInOtherProcess).into())
    );
    assert_fails(buffers::open_buffer(&second, "a", b""), ErrorKind::Exists);
    lifetime.end();
    assert_eq!((buffers::states(&first), buffers::states(&second)), (states(Draft).into(), states(Draft).into()));
    buffers::execute(&second, &buffers::resume_request(&draft.id)).unwrap();
    assert_eq!(
        (buffers::states(&first), buffers::states(&second)),
        (states(OpenInOtherProcess).into(), states(OpenHere).into())
    );
}

fn buffer_ends_with_its_opening(factory: &dyn ConformanceWorkspaceFactory) {
    let (first, second) = open_twice(factory);
    let draft = buffers::open_buffer(&second, "a", b"typed").unwrap();
    assert_eq!(buffers::states(&first), [("a".to_owned(), BufferEditorConnectionState::OpenInOtherProcess)]);
    factory.close(second.workspace);
    assert_eq!(buffers::states(&first), [("a".to_owned(), BufferEditorConnectionState::Draft)]);
    assert_eq!(first.workspace.buffer_text(&draft.id).unwrap().unwrap().text, b"typed");
}

fn watch_is_listed_in_both(factory: &dyn ConformanceWorkspaceFactory) {
    let (first, second) = open_twice(factory);
    let persistent = watches::begin_persistent_watch(&second, "");
    let process = watches::begin_process_watch(&second, "");
    let own = watches::begin_process_watch(&first, "");
    for fixture in [&first, &second] {
        assert_eq!(watches::watches(fixture), [persistent.clone(), process.clone(), own.clone()]);
    }
    factory.close(second.workspace);
    wait_until("the watch of the closed opening ends", || watches::watches(&first).len() < 3);
    assert_eq!(watches::watches(&first), [persistent, own]);
}
