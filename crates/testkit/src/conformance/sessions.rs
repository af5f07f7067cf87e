//! Conformance tests of sessions and alerts: recorded, stored, and counted from the journal.

use stead_engine::{AlertSeverity, Error, ErrorKind, SessionStoreReply, SessionStoreWriteRequest, SessionTotalsQuery};

use super::{ConformanceWorkspaceFactory, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest, assert_fails};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("a session is started once and ended once", session_starts_and_ends_once),
    ("an alert is kept and answered once", alert_is_stored_and_answered_once),
    ("what a session did is counted from the journal", session_activity_is_counted),
    ("usage is reported", usage_is_reported),
];

fn run_session_command(
    fixture: &WorkspaceUnderConformanceTest,
    ask: &SessionStoreWriteRequest,
) -> Result<SessionStoreReply, Error> {
    fixture.workspace.execute_session_request(ask, &fixture.journal_record("session", None)).map(|(kept, _)| kept)
}

fn session_starts_and_ends_once(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let before = fixture.head_number();
    let SessionStoreReply::Session(started) = run_session_command(&fixture, &SessionStoreWriteRequest::Begin).unwrap()
    else {
        panic!("a session")
    };
    assert_eq!(fixture.head_number(), before + 1, "it is recorded");
    assert_eq!((started.first_entry, started.id.as_str()), (before + 1, &*format!("s{}", before + 1)));
    assert_eq!((started.principal.as_str(), started.ended_ms), ("agent:one", None));
    assert_eq!(fixture.workspace.session(&started.id).unwrap(), Some(started.clone()));
    assert_eq!(fixture.workspace.session("s0").unwrap(), None);
    let end = SessionStoreWriteRequest::End { session_id: started.id.clone() };
    let SessionStoreReply::Session(ended) = run_session_command(&fixture, &end).unwrap() else { panic!("a session") };
    assert!(ended.ended_ms.is_some());
    assert_fails(run_session_command(&fixture, &end), ErrorKind::NothingToDo);
}

fn alert_is_stored_and_answered_once(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let ask =
        SessionStoreWriteRequest::SendAlert { severity: AlertSeverity::Warning, message: "näh\n\"help\"".to_owned() };
    let SessionStoreReply::Alert(sent) = run_session_command(&fixture, &ask).unwrap() else { panic!("an alert") };
    assert_eq!(
        (sent.message.as_str(), sent.severity, &sent.response),
        ("näh\n\"help\"", AlertSeverity::Warning, &None)
    );
    let SessionStoreReply::Alert(later) = run_session_command(&fixture.with_other_agent("two"), &ask).unwrap() else {
        panic!("an alert")
    };
    let ids = |from: Option<&str>| -> Vec<String> {
        let from = from.map(|name| stead_engine::Principal::Agent(name.to_owned()));
        let found = fixture.workspace.alerts(from.as_ref(), 10).unwrap();
        found.into_iter().map(|alert| alert.id).collect()
    };
    assert_eq!(ids(None), [later.id.clone(), sent.id.clone()], "newest first");
    assert_eq!(ids(Some("one")).join(" "), sent.id);
    let answer = SessionStoreWriteRequest::AnswerAlert { alert_id: sent.id.clone(), text: "done".to_owned() };
    let SessionStoreReply::Alert(answered) = run_session_command(&fixture.with_other_agent("two"), &answer).unwrap()
    else {
        panic!("an alert")
    };
    assert_eq!(answered.response.as_ref().map(|answer| answer.text.as_str()), Some("done"));
    assert_eq!(fixture.workspace.alert(&sent.id).unwrap(), Some(answered));
    assert_fails(run_session_command(&fixture, &answer), ErrorKind::Exists);
}

fn session_activity_is_counted(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let count = |session: &str, from_entry: u64| {
        let principal = stead_engine::Principal::Agent("one".to_owned());
        let of = SessionTotalsQuery { principal: &principal, session, from_entry };
        fixture.workspace.session_totals(&of).unwrap()
    };
    let session = fixture.journal_record("read", None).caller.session.clone();
    assert_eq!(count(&session, 0).calls, 0);
    for _ in 0..3 {
        fixture.workspace.record_call(&fixture.journal_record("read", None)).unwrap();
    }
    fixture.workspace.record_call(&fixture.with_other_agent("two").journal_record("read", None)).unwrap();
    let tally = count(&session, 0);
    assert_eq!((tally.calls, tally.first_call.map(|(number, _)| number)), (3, Some(1)));
    assert_eq!(count(&session, 3).calls, 1);
    assert_eq!(count("another", 0).calls, 0);
}

fn usage_is_reported(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let usage = fixture.workspace.storage_usage().unwrap();
    assert!(usage.free_bytes <= usage.total_bytes && usage.total_bytes > 0);
    assert_eq!((usage.trash_items, usage.trash_bytes), (0, 0));
}
