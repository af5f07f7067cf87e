//! Conformance tests of sessions and alerts: recorded, stored, and counted from the journal.

use stead_engine::{
    AlertSeverity, Error, ErrorKind, JournalCallRecord, ReviewAcceptedFileText, SessionRecord, SessionStoreReply,
    SessionStoreWriteRequest, SessionTotals, SessionTotalsQuery,
};

use super::{
    ConformanceWorkspaceFactory, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest, assert_fails,
    put_change, rel_path, remove_change, single_file_tree,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("a session is started once and ended once", session_starts_and_ends_once),
    ("an alert is kept and answered once", alert_is_stored_and_answered_once),
    ("what a session did is counted from the journal", session_activity_is_counted),
    ("the bytes of a session are counted", session_bytes_are_counted),
    ("a turn is only recorded", turn_is_only_recorded),
    ("accepted texts are kept for each file of a session", accepted_texts_are_kept),
    ("sessions, alerts and accepted texts survive a restart", sessions_survive_reopening),
    ("usage is reported", usage_is_reported),
    ("usage counts trash and retained versions", usage_counts_trash_and_history),
];

pub(super) fn run_session_command(
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

fn session_bytes_are_counted(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let read = |bytes| JournalCallRecord { bytes, ..fixture.journal_record("read", None) };
    fixture.workspace.record_call(&read(100)).unwrap();
    fixture.create_file("f", b"12345");
    fixture.create_directory("d");
    let failed = JournalCallRecord { error_kind: Some(ErrorKind::Stale), ..read(7) };
    fixture.workspace.record_call(&failed).unwrap();
    let query = SessionTotalsQuery { principal: &fixture.caller.principal, session: "session", from_entry: 0 };
    let first_call = Some((1, fixture.workspace.now_ms()));
    let expected = SessionTotals { calls: 4, bytes_read: 107, bytes_written: 5, first_call };
    assert_eq!(fixture.workspace.session_totals(&query).unwrap(), expected);
    fixture.commit(vec![put_change("f", fixture.expect_observed_file("f"), b"1234567")]);
    let expected = SessionTotals { calls: 5, bytes_written: 12, ..expected };
    assert_eq!(fixture.workspace.session_totals(&query).unwrap(), expected, "later calls are added");
}

fn turn_is_only_recorded(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let record = fixture.journal_record("turn", None);
    let (reply, receipt) =
        fixture.workspace.execute_session_request(&SessionStoreWriteRequest::BeginTurn, &record).unwrap();
    assert_eq!((reply, receipt.entry), (SessionStoreReply::RecordedOnly, 1));
    assert_eq!(fixture.workspace.session("s1").unwrap(), None, "a turn begins no session");
}

fn accept_texts(fixture: &WorkspaceUnderConformanceTest, session: &str, texts: &[(&str, Option<&str>)]) {
    let baselines = texts.iter().map(|(path, text)| ReviewAcceptedFileText {
        path: rel_path(path),
        text: text.map(|text| text.as_bytes().to_vec()),
    });
    let request = SessionStoreWriteRequest::AcceptChanges {
        principal: "agent:one".to_owned(),
        session: session.to_owned(),
        baselines: baselines.collect(),
    };
    assert_eq!(run_session_command(fixture, &request).unwrap(), SessionStoreReply::RecordedOnly);
}

fn accepted_texts(fixture: &WorkspaceUnderConformanceTest, principal: &str, session: &str) -> Vec<String> {
    let baselines = fixture.workspace.review_baselines(principal, session).unwrap();
    let show = |baseline: ReviewAcceptedFileText| {
        let text = baseline.text.map(|bytes| String::from_utf8(bytes).unwrap());
        format!("{} {}", baseline.path, text.as_deref().unwrap_or("absent"))
    };
    baselines.into_iter().map(show).collect()
}

fn accepted_texts_are_kept(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let ann = fixture.with_other_agent("ann");
    accept_texts(&ann, "s1", &[("b", Some("one")), ("a", None), ("c", Some(""))]);
    accept_texts(&ann, "s2", &[("b", Some("other"))]);
    assert_eq!(accepted_texts(&fixture, "agent:one", "s1"), ["a absent", "b one", "c "]);
    accept_texts(&ann, "s1", &[("b", Some("two")), ("c", None)]);
    assert_eq!(accepted_texts(&fixture, "agent:one", "s1"), ["a absent", "b two", "c absent"]);
    assert_eq!(accepted_texts(&fixture, "agent:one", "s2"), ["b other"]);
    assert_eq!(accepted_texts(&fixture, "agent:ann", "s1"), Vec::<String>::new());
}

fn sessions_survive_reopening(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let SessionStoreReply::Session(session) = run_session_command(&fixture, &SessionStoreWriteRequest::Begin).unwrap()
    else {
        panic!("a session")
    };
    assert_eq!((session.protocol.as_str(), session.created_ms), ("test", fixture.workspace.now_ms()));
    let ask = SessionStoreWriteRequest::SendAlert { severity: AlertSeverity::Critical, message: "m".to_owned() };
    let SessionStoreReply::Alert(alert) = run_session_command(&fixture, &ask).unwrap() else { panic!("an alert") };
    assert_eq!((alert.session.as_str(), alert.time_ms), ("session", fixture.workspace.now_ms()));
    accept_texts(&fixture, "s", &[("f", Some("text"))]);
    let fixture = fixture.reopen(factory);
    assert_eq!(fixture.workspace.session(&session.id).unwrap(), Some(session.clone()));
    assert_eq!(fixture.workspace.alert(&alert.id).unwrap(), Some(alert));
    assert_eq!(accepted_texts(&fixture, "agent:one", "s"), ["f text"]);
    let end = SessionStoreWriteRequest::End { session_id: session.id.clone() };
    run_session_command(&fixture, &end).unwrap();
    let fixture = fixture.reopen(factory);
    let ended_ms = Some(fixture.workspace.now_ms());
    assert_eq!(fixture.workspace.session(&session.id).unwrap(), Some(SessionRecord { ended_ms, ..session }));
}

fn usage_counts_trash_and_history(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let usage = || {
        let usage = fixture.workspace.storage_usage().unwrap();
        (usage.trash_items, usage.trash_bytes, usage.history_bytes)
    };
    fixture.create_file("f", b"12345");
    assert_eq!(usage(), (0, 0, 5));
    fixture.commit(vec![put_change("f", fixture.expect_observed_file("f"), b"12")]);
    assert_eq!(usage(), (0, 0, 7), "both contents are retained");
    fixture.commit(vec![remove_change("f", fixture.expect_observed_file("f"), single_file_tree(2))]);
    assert_eq!(usage(), (1, 2, 7));
    assert!(fixture.workspace.storage_usage().unwrap().history_bytes_max >= 7);
}
