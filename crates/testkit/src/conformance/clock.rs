//! Conformance tests of the clock: entries carry its time, and leases, approvals, trash and sessions end by it.

use stead_engine::{
    AlertSeverity, ApprovalDecision, ApprovalState, ErrorKind, JournalEntryQuery, PlannedChange,
    RequiredUsageFreshness, SessionStoreReply, SessionStoreWriteRequest, limits,
};

use super::{
    ConformanceWorkspaceFactory, TestClockChange, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest,
    approval::{answer_approval, approval_state, request_approval, use_approval},
    assert_fails, journal,
    lease::{acquire_lease, lease_holders, release_lease},
    rel_path,
    sessions::run_session_command,
    single_file_tree,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("an entry has the time of the clock", entry_has_the_time_of_the_clock),
    ("a lease ends when its time has passed", lease_ends_in_time),
    ("a renewed lease ends at its new time", renewed_lease_ends_later),
    ("an approval request expires in every open state", approval_expires),
    ("an expired approval request is asked again", expired_approval_is_asked_again),
    ("a recount purges expired trash", recount_purges_expired_trash),
    ("ended sessions and answered alerts are deleted in time", old_sessions_and_alerts_are_deleted),
];

/// The duration for which the approval requests of the conformance tests are valid.
const APPROVAL_MS: i64 = 60_000;

fn advance(factory: &dyn ConformanceWorkspaceFactory, ms: i64) {
    factory.change_clock(TestClockChange::Advance(ms));
}

fn entry_has_the_time_of_the_clock(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let start_ms = fixture.workspace.now_ms();
    for path in ["a", "b", "c"] {
        fixture.create_file(path, b"x");
        advance(factory, 10);
    }
    assert_eq!(fixture.workspace.now_ms(), start_ms + 30);
    let numbers = |since_ms, until_ms| -> Vec<u64> {
        let query = JournalEntryQuery { since_ms, until_ms, ..journal::unfiltered() };
        fixture.workspace.entries(&query).unwrap().iter().map(|stored| stored.entry.number).collect()
    };
    assert_eq!([1, 2, 3].map(|number| fixture.entry(number).time_ms), [start_ms, start_ms + 10, start_ms + 20]);
    assert_eq!(numbers(Some(start_ms + 10), None), [2, 3]);
    assert_eq!(numbers(Some(start_ms + 11), None), [3]);
    assert_eq!(numbers(None, Some(start_ms + 10)), [1, 2]);
    assert_eq!(numbers(Some(start_ms + 1), Some(start_ms + 19)), [2]);
}

fn lease_ends_in_time(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let other = fixture.with_other_agent("two");
    let first = acquire_lease(&fixture, "d", 1_000).unwrap();
    assert_eq!(first.ends_ms, fixture.workspace.now_ms() + 1_000);
    advance(factory, 999);
    assert_eq!(lease_holders(&fixture, "d"), ["agent:one d"]);
    assert_fails(acquire_lease(&other, "d", 1_000), ErrorKind::Locked);
    advance(factory, 1);
    assert_eq!(lease_holders(&fixture, "d"), Vec::<String>::new());
    assert_fails(release_lease(&fixture, "d"), ErrorKind::NotFound);
    let second = acquire_lease(&other, "d", 1_000).unwrap();
    assert!(second.fencing_token > first.fencing_token);
    assert_fails(release_lease(&fixture, "d"), ErrorKind::NotOwner);
}

fn renewed_lease_ends_later(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    acquire_lease(&fixture, "d", 1_000).unwrap();
    advance(factory, 500);
    acquire_lease(&fixture, "d", 1_000).unwrap();
    advance(factory, 999);
    assert_eq!(lease_holders(&fixture, "d"), ["agent:one d"]);
    acquire_lease(&fixture, "d", 10).unwrap();
    advance(factory, 10);
    assert_eq!(lease_holders(&fixture, "d"), Vec::<String>::new(), "a renewal may also shorten a lease");
}

fn approval_expires(factory: &dyn ConformanceWorkspaceFactory) {
    for (answer, before) in [
        (None, ApprovalState::Pending),
        (Some(ApprovalDecision::Approve), ApprovalState::Approved),
        (Some(ApprovalDecision::Deny), ApprovalState::Denied),
    ] {
        let fixture = WorkspaceUnderConformanceTest::new(factory);
        let asked = request_approval(&fixture, "p");
        let now_ms = fixture.workspace.now_ms();
        assert_eq!((asked.created_ms, asked.expires_ms), (now_ms, now_ms + APPROVAL_MS));
        if let Some(decision) = answer {
            answer_approval(&fixture, &asked.id, decision).unwrap();
        }
        advance(factory, APPROVAL_MS - 1);
        assert_eq!(approval_state(&fixture, &asked.id), before);
        advance(factory, 1);
        assert_eq!(approval_state(&fixture, &asked.id), ApprovalState::Expired, "{before:?}");
        assert_eq!(answer_approval(&fixture, &asked.id, ApprovalDecision::Approve), Err(ErrorKind::Conflict));
        assert_eq!(use_approval(&fixture, &asked.id, "f"), Err(ErrorKind::ApprovalStale));
    }
}

fn expired_approval_is_asked_again(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let first = request_approval(&fixture, "p").id;
    answer_approval(&fixture, &first, ApprovalDecision::Approve).unwrap();
    use_approval(&fixture, &first, "f").unwrap();
    let second = request_approval(&fixture, "p").id;
    advance(factory, APPROVAL_MS);
    assert_eq!(approval_state(&fixture, &first), ApprovalState::Used, "a used approval does not expire");
    let third = request_approval(&fixture, "p");
    assert_ne!(third.id, second);
    assert_eq!(third.state, ApprovalState::Pending);
}

fn recount_purges_expired_trash(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let now_ms = fixture.workspace.now_ms();
    let remove = |path: &str, retain_until_ms| {
        fixture.create_file(path, b"12345");
        let (expectation, tree) = (fixture.expect_observed_file(path), single_file_tree(5));
        let change = PlannedChange::Remove { path: rel_path(path), expectation, retain_until_ms, tree };
        fixture.commit(vec![change]).trash_ids.remove(0)
    };
    let (short, long) = (remove("a", now_ms + 10_000), remove("b", now_ms + 20_000));
    let trash_bytes = || {
        let principal = &fixture.caller.principal;
        let usage = fixture.workspace.principal_usage(principal, RequiredUsageFreshness::Recount);
        usage.unwrap().unwrap().trash_bytes
    };
    advance(factory, 9_999);
    assert_eq!(trash_bytes(), 10);
    advance(factory, 2);
    assert_eq!(trash_bytes(), 5);
    assert_eq!(fixture.workspace.trash_item(&short).unwrap(), None);
    assert!(fixture.workspace.trash_item(&long).unwrap().is_some());
    let purge = fixture.entry(fixture.head_number());
    assert_eq!((purge.caller.principal.as_str(), purge.operation.as_str()), ("system:stead", "empty_trash"));
}

fn old_sessions_and_alerts_are_deleted(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let run = |request: SessionStoreWriteRequest| match run_session_command(&fixture, &request).unwrap() {
        SessionStoreReply::Session(session) => session.id,
        SessionStoreReply::Alert(alert) => alert.id,
        SessionStoreReply::RecordedOnly => String::new(),
    };
    let alert = || SessionStoreWriteRequest::SendAlert { severity: AlertSeverity::Info, message: "m".to_owned() };
    let (ended, open) = (run(SessionStoreWriteRequest::Begin), run(SessionStoreWriteRequest::Begin));
    let (answered, unanswered) = (run(alert()), run(alert()));
    run(SessionStoreWriteRequest::End { session_id: ended.clone() });
    run(SessionStoreWriteRequest::AnswerAlert { alert_id: answered.clone(), text: "t".to_owned() });
    let existing = || {
        let (session, alert) = (|id: &str| fixture.workspace.session(id), |id: &str| fixture.workspace.alert(id));
        [session(&ended).unwrap().is_some(), session(&open).unwrap().is_some()]
            .into_iter()
            .chain([alert(&answered).unwrap().is_some(), alert(&unanswered).unwrap().is_some()])
            .collect::<Vec<bool>>()
    };
    advance(factory, limits::SESSION_RETENTION_MS);
    run(SessionStoreWriteRequest::BeginTurn);
    assert_eq!(existing(), [true; 4]);
    advance(factory, 1);
    run(SessionStoreWriteRequest::BeginTurn);
    assert_eq!(existing(), [false, true, false, true]);
}
