//! Conformance tests of transactions over rows: expectations, revisions, bodies, stamps and waiting.

use std::time::{Duration, Instant};

use stead_engine::{
    ClockSetBack, CommitError, CommitExpectation, CommitReceipt, Deadline, Expectation, FailedExpectation, Plan,
    RowBody, RowBodySelection, RowChange, RowFamily, RowKey, RowQuery, RowSelection, RowSet, RowStamp, RowWrite,
    StoredRow, Transaction, TransactionDurability,
};

use super::{
    ConformanceWorkspaceFactory, TestClockChange, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest,
    put_change,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("a row that is written again keeps its place, its first entry and its other bodies", row_is_written_again),
    ("rows are selected by id, owner and subject", rows_are_selected),
    ("a transaction with a failed expectation writes nothing", failed_expectation_writes_nothing),
    ("a revision never returns", revision_never_returns),
    ("rows without an entry have no stamp", rows_without_an_entry),
    ("files and rows are committed together", files_and_rows_are_one_commit),
    ("waiting ends when a row of the family is written", waiting_ends_with_a_row),
];

const FAMILY: RowFamily = RowFamily::Alert;

fn body(slot: &str, bytes: &[u8]) -> RowBody {
    RowBody { slot: slot.to_owned(), bytes: bytes.to_vec() }
}

fn put(id: &str, [owner, subject]: [&str; 2], value: &str, bodies: Vec<RowBody>) -> RowWrite {
    let (owner, subject) = (owner.to_owned(), subject.to_owned());
    let change = RowChange::Put { owner, subject, value: value.to_owned(), bodies };
    RowWrite { family: FAMILY, key: RowKey::Named(id.to_owned()), change }
}

fn put_plain(id: &str, value: &str) -> RowWrite {
    put(id, ["o", ""], value, Vec::new())
}

fn delete(id: &str) -> RowWrite {
    RowWrite { family: FAMILY, key: RowKey::Named(id.to_owned()), change: RowChange::Delete }
}

fn row_transaction(expect: Vec<Expectation>, rows: Vec<RowWrite>) -> Transaction<'static> {
    Transaction { expect, rows, durability: TransactionDurability::Now, ..Transaction::default() }
}

fn try_commit(
    fixture: &WorkspaceUnderConformanceTest,
    transaction: &Transaction<'_>,
) -> Result<CommitReceipt, CommitError> {
    let record = fixture.journal_record("test", None);
    fixture.workspace.commit_transaction(transaction, Some(&record)).map(|receipt| receipt.unwrap())
}

#[track_caller]
fn commit(fixture: &WorkspaceUnderConformanceTest, rows: Vec<RowWrite>) -> u64 {
    try_commit(fixture, &row_transaction(Vec::new(), rows)).unwrap().entry
}

fn select(fixture: &WorkspaceUnderConformanceTest, selection: RowSelection) -> RowSet {
    let bodies = RowBodySelection::All;
    fixture.workspace.rows(&RowQuery { family: FAMILY, selection, bodies }).unwrap()
}

fn row(fixture: &WorkspaceUnderConformanceTest, id: &str) -> Option<StoredRow> {
    select(fixture, RowSelection::Id(id.to_owned())).rows.pop()
}

fn ids(set: RowSet) -> Vec<String> {
    set.rows.into_iter().map(|row| row.id).collect()
}

fn row_is_written_again(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let bodies = vec![body("a", b"1"), body("b", b"2")];
    let first = commit(&fixture, vec![put("x", ["o", "s"], "{}", bodies), put_plain("y", "{}")]);
    let before = row(&fixture, "x").unwrap();
    let stamp = |entry| Some(RowStamp { entry, time_ms: fixture.workspace.now_ms() });
    assert_eq!((before.first, before.last), (stamp(first), stamp(first)));
    let last = commit(&fixture, vec![put("x", ["p", "t"], "[1]", vec![body("b", b"3")])]);
    let after = row(&fixture, "x").unwrap();
    assert!(after.revision > before.revision);
    let expected = StoredRow {
        owner: "p".to_owned(),
        subject: "t".to_owned(),
        value: "[1]".to_owned(),
        revision: after.revision,
        last: stamp(last),
        bodies: vec![body("a", b"1"), body("b", b"3")],
        ..before
    };
    assert_eq!(after, expected);
    assert_eq!(ids(select(&fixture, RowSelection::All)), ["x", "y"], "in the order of creation");
    commit(&fixture, vec![delete("x")]);
    commit(&fixture, vec![put_plain("x", "{}")]);
    assert_eq!(row(&fixture, "x").unwrap().bodies, Vec::new(), "bodies go with their row");
}

fn rows_are_selected(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    assert_eq!(select(&fixture, RowSelection::All), RowSet { generation: 0, rows: Vec::new() });
    let put = |id, owner, subject| put(id, [owner, subject], "{}", Vec::new());
    commit(&fixture, vec![put("1", "a", "x"), put("2", "b", "x"), put("3", "a", "y")]);
    let found = |selection| ids(select(&fixture, selection));
    assert_eq!(found(RowSelection::All), ["1", "2", "3"]);
    assert_eq!(found(RowSelection::Id("2".to_owned())), ["2"]);
    assert_eq!(found(RowSelection::Owner("a".to_owned())), ["1", "3"]);
    assert_eq!(found(RowSelection::OwnerAndSubject("a".to_owned(), "y".to_owned())), ["3"]);
    assert_eq!(found(RowSelection::OwnerAndSubject("b".to_owned(), "y".to_owned())), Vec::<String>::new());
    assert!(select(&fixture, RowSelection::Id("none".to_owned())).generation > 0, "the generation is of the family");
}

fn failed_expectation_writes_nothing(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let generation = select(&fixture, RowSelection::All).generation;
    commit(&fixture, vec![put_plain("x", "1")]);
    let ended = Deadline::until(&fixture.workspace.now(), fixture.workspace.now_ms() + 5);
    factory.change_clock(TestClockChange::Advance(5));
    let of_row = |id: &str, revision| Expectation::Row { family: FAMILY, id: id.to_owned(), revision };
    let failed_row = |id: &str| FailedExpectation::Row(FAMILY, id.to_owned());
    let before = (select(&fixture, RowSelection::All), fixture.head_number());
    for (expectation, expected) in [
        (Expectation::Family { family: FAMILY, generation }, FailedExpectation::Family(FAMILY)),
        (of_row("x", 0), failed_row("x")),
        (of_row("none", 1), failed_row("none")),
        (Expectation::Running(ended.clone(), ClockSetBack::Ends), FailedExpectation::Running),
    ] {
        let transaction = row_transaction(vec![expectation], vec![put_plain("x", "2"), put_plain("z", "2")]);
        match try_commit(&fixture, &transaction) {
            Err(CommitError::ExpectationFailed(failed)) => assert_eq!(failed, expected),
            other => panic!("{other:?}"),
        }
        assert_eq!((select(&fixture, RowSelection::All), fixture.head_number()), before);
    }
    let current = select(&fixture, RowSelection::All);
    let running = Deadline::until(&fixture.workspace.now(), fixture.workspace.now_ms() + 5);
    let holding = vec![
        Expectation::Family { family: FAMILY, generation: current.generation },
        of_row("x", current.rows[0].revision),
        of_row("none", 0),
        Expectation::Running(running, ClockSetBack::Ends),
    ];
    try_commit(&fixture, &row_transaction(holding, vec![put_plain("x", "2")])).unwrap();
}

fn revision_never_returns(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let mut last = 0;
    for value in ["1", "2", "1"] {
        commit(&fixture, vec![put_plain("x", value)]);
        let revision = row(&fixture, "x").unwrap().revision;
        assert!(revision > last, "{revision} after {last}");
        last = revision;
        commit(&fixture, vec![delete("x")]);
        assert_eq!(row(&fixture, "x"), None);
    }
}

fn rows_without_an_entry(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let before = fixture.head_number();
    let transaction = row_transaction(Vec::new(), vec![put_plain("x", "1")]);
    assert!(fixture.workspace.commit_transaction(&transaction, None).unwrap().is_none());
    assert_eq!(fixture.head_number(), before);
    let stored = row(&fixture, "x").unwrap();
    assert_eq!((stored.first, stored.last), (None, None));
    let entry = commit(&fixture, vec![put_plain("x", "2")]);
    fixture.workspace.commit_transaction(&row_transaction(Vec::new(), vec![put_plain("x", "3")]), None).unwrap();
    let stored = row(&fixture, "x").unwrap();
    let number = |stamp: Option<RowStamp>| stamp.map(|stamp| stamp.entry);
    assert_eq!((number(stored.first), number(stored.last), stored.value.as_str()), (Some(entry), Some(entry), "3"));
    let fixture = fixture.reopen(factory);
    assert_eq!(row(&fixture, "x"), Some(stored));
}

fn files_and_rows_are_one_commit(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let plan = Plan::new(vec![put_change("f", CommitExpectation::Absent, b"1")]);
    let rows = || vec![put_plain("x", "1")];
    let refused = Expectation::Row { family: FAMILY, id: "x".to_owned(), revision: 1 };
    let transaction = Transaction { files: Some(&plan), ..row_transaction(vec![refused], rows()) };
    assert!(matches!(try_commit(&fixture, &transaction), Err(CommitError::ExpectationFailed(_))));
    assert_eq!((fixture.exists("f"), row(&fixture, "x")), (false, None));
    let committed = Transaction { files: Some(&plan), ..row_transaction(Vec::new(), rows()) };
    let entry = try_commit(&fixture, &committed).unwrap().entry;
    assert_eq!(row(&fixture, "x").unwrap().last.unwrap().entry, entry);
    // The file exists now, so the plan fails and its row is not written.
    let again = Transaction { files: Some(&plan), ..row_transaction(Vec::new(), vec![put_plain("x", "2")]) };
    assert!(try_commit(&fixture, &again).is_err());
    assert_eq!((fixture.read_bytes("f"), row(&fixture, "x").unwrap().value), (b"1".to_vec(), "1".to_owned()));
}

fn waiting_ends_with_a_row(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let generation = select(&fixture, RowSelection::All).generation;
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let deadline = Instant::now() + Duration::from_secs(60);
            while select(&fixture, RowSelection::All).generation == generation {
                fixture.workspace.wait_for_rows(FAMILY, generation, deadline).unwrap();
            }
            Instant::now() < deadline
        });
        commit(&fixture, vec![put_plain("x", "1")]);
        assert!(waiting.join().unwrap());
    });
    let started = Instant::now();
    let generation = select(&fixture, RowSelection::All).generation;
    fixture.workspace.wait_for_rows(FAMILY, generation, started).unwrap();
    assert!(started.elapsed() < Duration::from_secs(60), "a deadline that has passed ends the wait");
}
