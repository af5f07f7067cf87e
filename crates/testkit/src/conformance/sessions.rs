//! Sessions and alerts: recorded, stored, and counted from the journal.

use stead_engine::{AlertSeverity, Error, ErrorKind, SessionStoreReply, SessionStoreRequest, SessionTotalsQuery};

use super::{ConformanceCaseTable, WorkspaceFactory, WorkspaceFixture, assert_fails};

pub(super) const CASES: ConformanceCaseTable = &[
    ("a session is begun once and ended once", session_starts_and_ends_once),
    ("an alert is kept and answered once", alert_is_stored_and_answered_once),
    ("what a session did is counted from the journal", session_activity_is_counted),
    ("how full it is can be told", usage_is_reported),
];

fn run_session_command(bench: &WorkspaceFixture, ask: &SessionStoreRequest) -> Result<SessionStoreReply, Error> {
    bench.workspace.execute_session_request(ask, &bench.journal_record("session", None)).map(|(kept, _)| kept)
}

fn session_starts_and_ends_once(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    let before = bench.head_number();
    let SessionStoreReply::Session(begun) = run_session_command(&bench, &SessionStoreRequest::Begin).unwrap() else {
        panic!("a session")
    };
    assert_eq!(bench.head_number(), before + 1, "it is recorded");
    assert_eq!((begun.first_entry, begun.id.as_str()), (before + 1, &*format!("s{}", before + 1)));
    assert_eq!((begun.principal.as_str(), begun.ended_ms), ("agent:one", None));
    assert_eq!(bench.workspace.session(&begun.id).unwrap(), Some(begun.clone()));
    assert_eq!(bench.workspace.session("s0").unwrap(), None);
    let end = SessionStoreRequest::End { session_id: begun.id.clone() };
    let SessionStoreReply::Session(ended) = run_session_command(&bench, &end).unwrap() else { panic!("a session") };
    assert!(ended.ended_ms.is_some());
    assert_fails(run_session_command(&bench, &end), ErrorKind::NothingToDo);
}

fn alert_is_stored_and_answered_once(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    let ask = SessionStoreRequest::SendAlert { severity: AlertSeverity::Warning, message: "näh\n\"help\"".to_owned() };
    let SessionStoreReply::Alert(sent) = run_session_command(&bench, &ask).unwrap() else { panic!("an alert") };
    assert_eq!(
        (sent.message.as_str(), sent.severity, &sent.response),
        ("näh\n\"help\"", AlertSeverity::Warning, &None)
    );
    let SessionStoreReply::Alert(later) = run_session_command(&bench.with_other_agent("two"), &ask).unwrap() else {
        panic!("an alert")
    };
    let ids = |from: Option<&str>| -> Vec<String> {
        let from = from.map(|name| stead_engine::Principal::Agent(name.to_owned()));
        let found = bench.workspace.alerts(from.as_ref(), 10).unwrap();
        found.into_iter().map(|alert| alert.id).collect()
    };
    assert_eq!(ids(None), [later.id.clone(), sent.id.clone()], "newest first");
    assert_eq!(ids(Some("one")).join(" "), sent.id);
    let answer = SessionStoreRequest::AnswerAlert { alert_id: sent.id.clone(), text: "done".to_owned() };
    let SessionStoreReply::Alert(answered) = run_session_command(&bench.with_other_agent("two"), &answer).unwrap()
    else {
        panic!("an alert")
    };
    assert_eq!(answered.response.as_ref().map(|answer| answer.text.as_str()), Some("done"));
    assert_eq!(bench.workspace.alert(&sent.id).unwrap(), Some(answered));
    assert_fails(run_session_command(&bench, &answer), ErrorKind::Exists);
}

fn session_activity_is_counted(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    let count = |session: &str, from_entry: u64| {
        let principal = stead_engine::Principal::Agent("one".to_owned());
        let of = SessionTotalsQuery { principal: &principal, session, from_entry };
        bench.workspace.session_totals(&of).unwrap()
    };
    let session = bench.journal_record("read", None).caller.session.clone();
    assert_eq!(count(&session, 0).calls, 0);
    for _ in 0..3 {
        bench.workspace.record_call(&bench.journal_record("read", None)).unwrap();
    }
    bench.workspace.record_call(&bench.with_other_agent("two").journal_record("read", None)).unwrap();
    let tally = count(&session, 0);
    assert_eq!((tally.calls, tally.first_call.map(|(number, _)| number)), (3, Some(1)));
    assert_eq!(count(&session, 3).calls, 1);
    assert_eq!(count("another", 0).calls, 0);
}

fn usage_is_reported(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    let usage = bench.workspace.storage_usage().unwrap();
    assert!(usage.free_bytes <= usage.total_bytes && usage.total_bytes > 0);
    assert_eq!((usage.trash_items, usage.trash_bytes), (0, 0));
}
