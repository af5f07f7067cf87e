//! Conformance tests of the limits of each principal. These cases make many calls.

use stead_engine::{
    AlertSeverity, ApprovalDecision, ApprovalState, ErrorKind, SessionStoreReply, SessionStoreWriteRequest, limits,
};

use super::{
    ConformanceWorkspaceFactory, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest,
    approval::{answer_approval, approval_request, approval_state},
    assert_fails,
    buffers::{change_request, close_request, execute, open_buffer},
    lease::{LONG_MS, acquire_lease, release_lease},
    sessions::run_session_command,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("the leases of a principal are limited", leases_are_limited),
    ("open sessions and unanswered alerts are limited", sessions_and_alerts_are_limited),
    ("the buffers of a principal are limited", buffers_are_limited),
    ("the waiting approval requests of a principal are limited", pending_approvals_are_limited),
];

fn leases_are_limited(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    for number in 0..limits::LEASES_PER_PRINCIPAL_MAX {
        acquire_lease(&fixture, &format!("f{number}"), LONG_MS).unwrap();
    }
    assert_fails(acquire_lease(&fixture, "more", LONG_MS), ErrorKind::TooMany);
    acquire_lease(&fixture.with_other_agent("two"), "more", LONG_MS).unwrap();
    release_lease(&fixture, "f0").unwrap();
    acquire_lease(&fixture, "f0", LONG_MS).unwrap();
}

fn sessions_and_alerts_are_limited(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let other = fixture.with_other_agent("two");
    let alert = SessionStoreWriteRequest::SendAlert { severity: AlertSeverity::Info, message: "m".to_owned() };
    for (request, limit) in
        [(alert, limits::ALERTS_OPEN_MAX), (SessionStoreWriteRequest::Begin, limits::SESSIONS_OPEN_MAX)]
    {
        let first = run_session_command(&fixture, &request).unwrap();
        for _ in 1..limit {
            run_session_command(&fixture, &request).unwrap();
        }
        assert_fails(run_session_command(&fixture, &request), ErrorKind::TooMany);
        run_session_command(&other, &request).unwrap();
        let end = match first {
            SessionStoreReply::Session(session) => SessionStoreWriteRequest::End { session_id: session.id },
            SessionStoreReply::Alert(alert) => {
                SessionStoreWriteRequest::AnswerAlert { alert_id: alert.id, text: String::new() }
            }
            SessionStoreReply::RecordedOnly => panic!("a session or an alert"),
        };
        run_session_command(&fixture, &end).unwrap();
        run_session_command(&fixture, &request).unwrap();
    }
    let principal = Some(&fixture.caller.principal);
    assert_eq!(fixture.workspace.alerts(principal, 3).unwrap().len(), 3, "a list is limited");
}

fn buffers_are_limited(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let too_long = vec![0; usize::try_from(limits::BUFFERS_BYTES_MAX).unwrap() + 1];
    assert_fails(open_buffer(&fixture, "long", &too_long), ErrorKind::TooMany);
    let small = open_buffer(&fixture, "f0", b"").unwrap();
    assert_fails(execute(&fixture, &change_request(&small.id, 1, &too_long)), ErrorKind::TooMany);
    for number in 1..limits::BUFFERS_PER_PRINCIPAL_MAX {
        open_buffer(&fixture, &format!("f{number}"), b"").unwrap();
    }
    assert_fails(open_buffer(&fixture, "more", b""), ErrorKind::TooMany);
    open_buffer(&fixture.with_other_agent("two"), "more", b"").unwrap();
    execute(&fixture, &change_request(&small.id, 1, b"longer")).unwrap();
    execute(&fixture, &close_request(&small.id)).unwrap();
    open_buffer(&fixture, "f0", b"").unwrap();
}

fn pending_approvals_are_limited(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let ask = |call: &str, plan: &str| {
        let stored = fixture.workspace.request_approval(&approval_request(&fixture, call, plan));
        stored.map(|approval| approval.id).map_err(|error| error.kind)
    };
    let ids: Vec<String> =
        (0..limits::APPROVALS_PENDING_MAX).map(|number| ask(&format!("call {number}"), "p").unwrap()).collect();
    assert_eq!(ask("one more", "p"), Err(ErrorKind::TooMany));
    assert_eq!(ask("call 0", "p").as_ref(), Ok(&ids[0]), "the same request is not stored again");
    ask("call 0", "another plan").unwrap();
    assert_eq!(approval_state(&fixture, &ids[0]), ApprovalState::Stale);
    answer_approval(&fixture, &ids[1], ApprovalDecision::Deny).unwrap();
    ask("one more", "p").unwrap();
}
