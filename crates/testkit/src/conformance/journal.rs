//! Conformance tests of the journal: the hash chain, filters, undo, and waiting for entries.

use std::time::{Duration, Instant};

use stead_engine::{
    CommitExpectation, ErrorKind, JournalCallRecord, JournalEntryOrder, JournalEntryQuery, JournalNoChangeEntryFilter,
    Version,
};
use stead_journal::{
    JournalEntryRelation, JournalWorkspaceId, JournaledCallOutcomeStatus, chain_hash, encode_entry, genesis_hash,
};

use super::{
    ConformanceWorkspaceFactory, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest, put_change, rel_path,
    remove_change,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("the chain has no gap", hash_chain_has_no_gap),
    ("reads and refusals are entries too", reads_and_refusals_are_recorded),
    ("entries are found by place, caller, operation, number and time", entries_are_filtered),
    ("what is undone is known until it is redone", undone_entries_are_marked),
    ("the entry that left a version is known", version_maps_to_its_entry),
    ("waiting ends with an entry or at the deadline", waiting_ends_with_entry_or_deadline),
    ("a moved path is found by both names", moved_path_is_found_by_both_names),
    ("the change counter changes with every change", change_counter_changes),
    ("a call without changes leaves its key free", call_without_changes_leaves_its_key_free),
];

pub(super) fn unfiltered() -> JournalEntryQuery {
    JournalEntryQuery { order: JournalEntryOrder::OldestFirst, limit: usize::MAX, ..JournalEntryQuery::default() }
}

pub(super) fn check_chain(fixture: &WorkspaceUnderConformanceTest) {
    let head = fixture.workspace.head().unwrap();
    let entries = fixture.workspace.entries(&unfiltered()).unwrap();
    let mut hash = genesis_hash(&JournalWorkspaceId::new(&fixture.workspace.profile().id).unwrap());
    for (number, stored) in (1..).zip(&entries) {
        assert_eq!(stored.entry.number, number);
        hash = chain_hash(&hash, &encode_entry(&stored.entry));
        assert_eq!(stored.hash, hash, "entry {number}");
    }
    assert_eq!((head.number, head.hash), (entries.len() as u64, hash));
}

fn hash_chain_has_no_gap(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    check_chain(&fixture);
    fixture.create_file("f", b"1");
    fixture.workspace.record_call(&fixture.journal_record("read", None)).unwrap();
    let committed = fixture.commit(vec![put_change("f", fixture.expect_observed_file("f"), b"2")]);
    let head = fixture.workspace.head().unwrap();
    assert_eq!((committed.entry, committed.hash), (head.number, head.hash));
    assert_eq!(fixture.workspace.entry(head.number + 1).unwrap().map(|stored| stored.hash), None);
    assert_eq!(fixture.workspace.entry(0).unwrap().map(|stored| stored.hash), None);
    check_chain(&fixture);
}

fn reads_and_refusals_are_recorded(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.workspace.record_call(&fixture.journal_record("read", None)).unwrap();
    let refused =
        JournalCallRecord { error_kind: Some(ErrorKind::OutOfScope), ..fixture.journal_record("write", None) };
    fixture.workspace.record_call(&refused).unwrap();
    let failed = JournalCallRecord { error_kind: Some(ErrorKind::Stale), ..fixture.journal_record("write", None) };
    fixture.workspace.record_call(&failed).unwrap();
    assert_eq!(fixture.head_number(), 3);
    let entries = fixture.workspace.entries(&unfiltered()).unwrap();
    let recorded: Vec<_> =
        entries.iter().map(|stored| (stored.entry.decision, stored.entry.reason.as_deref())).collect();
    assert_eq!(
        recorded,
        [
            (JournaledCallOutcomeStatus::Allowed, None),
            (JournaledCallOutcomeStatus::Refused, Some(ErrorKind::OutOfScope.code())),
            (JournaledCallOutcomeStatus::Failed, Some(ErrorKind::Stale.code())),
        ]
    );
}

fn entries_are_filtered(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let other = fixture.with_other_agent("two");
    fixture.create_directory("d");
    fixture.create_file("d/x", b"x");
    other.create_file("dx", b"y");
    fixture.workspace.record_call(&fixture.journal_record("read", None)).unwrap();
    fixture.commit(vec![put_change("d/x", fixture.expect_observed_file("d/x"), b"z")]);
    fixture.head_number();
    let numbers = |filter: JournalEntryQuery| -> Vec<u64> {
        let filter = JournalEntryQuery { limit: filter.limit.max(1), ..filter };
        fixture.workspace.entries(&filter).unwrap().iter().map(|stored| stored.entry.number).collect()
    };
    let all = unfiltered;
    assert_eq!(numbers(all()), [1, 2, 3, 4, 5]);
    assert_eq!(numbers(JournalEntryQuery { order: JournalEntryOrder::NewestFirst, limit: 2, ..all() }), [5, 4]);
    assert_eq!(numbers(JournalEntryQuery { limit: 2, ..all() }), [1, 2]);
    assert_eq!(numbers(JournalEntryQuery { path: Some(rel_path("d/x")), ..all() }), [2, 5]);
    assert_eq!(numbers(JournalEntryQuery { path: Some(rel_path("d")), ..all() }), [1, 2, 5]);
    assert_eq!(
        numbers(JournalEntryQuery {
            path: Some(rel_path("")),
            selection: JournalNoChangeEntryFilter::WithChanges,
            ..all()
        }),
        [1, 2, 3, 5]
    );
    assert_eq!(numbers(JournalEntryQuery { principal: Some("agent:two".into()), ..all() }), [3]);
    assert_eq!(numbers(JournalEntryQuery { operation: Some("read".into()), ..all() }), [4]);
    assert_eq!(
        numbers(JournalEntryQuery { selection: JournalNoChangeEntryFilter::WithChanges, ..all() }),
        [1, 2, 3, 5]
    );
    assert_eq!(numbers(JournalEntryQuery { after: Some(1), before: Some(4), ..all() }), [2, 3]);
    // The path filter selects an entry without changes by its requested paths, and other entries by their changed
    // paths.
    let record = JournalCallRecord { paths: vec![rel_path("d/x")], ..fixture.journal_record("read", None) };
    fixture.workspace.record_call(&record).unwrap();
    let plan = stead_engine::Plan::new(vec![put_change("copy", CommitExpectation::Absent, b"z")]);
    fixture.workspace.commit(&plan, &JournalCallRecord { operation: "copy", ..record }).unwrap();
    fixture.head_number();
    assert_eq!(numbers(JournalEntryQuery { path: Some(rel_path("d/x")), ..all() }), [2, 5, 6]);
    assert_eq!(
        numbers(JournalEntryQuery {
            path: Some(rel_path("d/x")),
            selection: JournalNoChangeEntryFilter::WithChanges,
            ..all()
        }),
        [2, 5]
    );
    let now_ms = fixture.workspace.now_ms();
    assert_eq!(numbers(JournalEntryQuery { since_ms: Some(now_ms + 60_000), ..all() }), Vec::<u64>::new());
    assert_eq!(numbers(JournalEntryQuery { until_ms: Some(now_ms - 60_000), ..all() }), Vec::<u64>::new());
    assert_eq!(numbers(JournalEntryQuery { since_ms: Some(now_ms - 60_000), ..all() }).len(), 7);
}

fn undone_entries_are_marked(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let first = fixture.create_file("f", b"1");
    let undone = |number| fixture.workspace.undone_by(number).unwrap();
    assert_eq!(undone(first), None);
    for _ in 0..2 {
        let change = remove_change("f", fixture.expect_observed_file("f"), super::single_file_tree(1));
        let by = fixture.commit_linked(vec![change], JournalEntryRelation::Undoes(first));
        assert_eq!(undone(first), Some(by));
        fixture
            .commit_linked(vec![put_change("f", CommitExpectation::Absent, b"1")], JournalEntryRelation::Redoes(first));
        assert_eq!(undone(first), None);
    }
    // A plan that is not applied marks no entry as undone.
    let late = stead_engine::Plan::with_link(
        vec![put_change("f", CommitExpectation::Absent, b"x")],
        JournalEntryRelation::Undoes(first),
    );
    assert!(fixture.try_plan(&late, None).is_err());
    assert_eq!(undone(first), None);
}

fn version_maps_to_its_entry(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let rev = |path: &str, bytes: &[u8]| {
        fixture.workspace.entry_of_version(&rel_path(path), &Version::hash_bytes(bytes)).unwrap()
    };
    let first = fixture.create_file("f", b"1");
    let second = fixture.commit(vec![put_change("f", fixture.expect_observed_file("f"), b"2")]).entry;
    assert_eq!((rev("f", b"1"), rev("f", b"2"), rev("f", b"3")), (Some(first), Some(second), None));
    let third = fixture.commit(vec![put_change("f", fixture.expect_observed_file("f"), b"1")]).entry;
    assert_eq!(rev("f", b"1"), Some(third), "the last one counts");
    let moved = super::move_change(
        "f",
        "g",
        fixture.expect_observed_file("f"),
        CommitExpectation::Absent,
        super::single_file_tree(1),
    );
    let fourth = fixture.commit(vec![moved]).entry;
    assert_eq!((rev("g", b"1"), rev("g", b"2")), (Some(fourth), None));
}

fn waiting_ends_with_entry_or_deadline(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("f", b"1");
    let head = fixture.head_number();
    let soon = || Instant::now() + Duration::from_millis(30);
    let late = || Instant::now() + Duration::from_secs(20);
    let start = Instant::now();
    fixture.workspace.wait_for_entry_after(head - 1, late()).unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "there was an entry already");
    fixture.workspace.wait_for_entry_after(head, soon()).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(30), "there was none");
    assert_eq!(fixture.head_number(), head);
    let deadline = late();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| fixture.workspace.wait_for_entry_after(head, deadline));
        fixture.with_other_agent("two").create_file("g", b"2");
        waiting.join().unwrap().unwrap();
    });
    assert!(Instant::now() < deadline, "nobody was woken");
}

fn moved_path_is_found_by_both_names(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    fixture.create_file("f", b"f");
    let (expect, tree) = (fixture.expect_observed_file("f"), super::single_file_tree(1));
    fixture.commit(vec![super::move_change("f", "d/g", expect, CommitExpectation::Absent, tree)]);
    let numbers = |path: &str| -> Vec<u64> {
        let query = JournalEntryQuery { path: Some(rel_path(path)), ..unfiltered() };
        fixture.workspace.entries(&query).unwrap().iter().map(|stored| stored.entry.number).collect()
    };
    assert_eq!((numbers("f"), numbers("d/g"), numbers("d")), (vec![2, 3], vec![3], vec![1, 3]));
    assert_eq!(numbers("d/g/below"), Vec::<u64>::new());
}

fn change_counter_changes(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let counter = || fixture.workspace.change_counter().unwrap();
    let mut seen = counter();
    assert_eq!(counter(), seen, "nothing has changed");
    fixture.create_file("f", b"1");
    assert_ne!(counter(), seen);
    seen = counter();
    fixture.commit(vec![put_change("f", fixture.expect_observed_file("f"), b"2")]);
    assert_ne!(counter(), seen);
    seen = counter();
    super::lease::acquire_lease(&fixture, "f", super::lease::LONG_MS).unwrap();
    assert_ne!(counter(), seen, "a lease");
    seen = counter();
    super::buffers::open_buffer(&fixture, "f", b"typed").unwrap();
    assert_ne!(counter(), seen, "a buffer");
}

fn call_without_changes_leaves_its_key_free(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.workspace.record_call(&fixture.journal_record("read", Some("key"))).unwrap();
    assert_eq!(fixture.head_number(), 1);
    let principal = &fixture.caller.principal;
    assert_eq!(fixture.workspace.entry_for_idempotency_key(principal, "key").unwrap(), None);
    let plan = stead_engine::Plan::new(vec![put_change("f", CommitExpectation::Absent, b"x")]);
    let number = fixture.try_plan(&plan, Some("key")).unwrap().entry;
    assert_eq!(fixture.workspace.entry_for_idempotency_key(principal, "key").unwrap(), Some(number));
}
