//! Conformance tests of the state that survives closing and reopening a workspace.

use stead_engine::{CommitExpectation, Plan, PlannedChange, Version};
use stead_journal::JournalEntryRelation;

use super::{
    ConformanceWorkspaceFactory, LARGE_FILE_BYTES, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest,
    journal::{check_chain, unfiltered},
    lease, put_change, rel_path, remove_change, single_file_tree,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("files, journal, keys and marks last", files_journal_and_keys_survive),
    ("trash and kept bytes last", trash_and_retained_bytes_survive),
    ("leases last, and their numbers go on", leases_survive),
];

fn files_journal_and_keys_survive(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let number =
        fixture.try_plan(&Plan::new(vec![put_change("f", CommitExpectation::Absent, b"f")]), Some("k")).unwrap().entry;
    fixture.create_directory("d");
    let change = remove_change("f", fixture.expect_observed_file("f"), single_file_tree(1));
    let by = fixture.commit_linked(vec![change], JournalEntryRelation::Undoes(number));
    fixture.workspace.record_call(&fixture.journal_record("read", None)).unwrap();
    let before = (fixture.list_tree(), fixture.head_number());
    let hashes = |fixture: &WorkspaceUnderConformanceTest| -> Vec<_> {
        fixture.workspace.entries(&unfiltered()).unwrap().into_iter().map(|stored| stored.hash).collect()
    };
    let chain = hashes(&fixture);
    let id = fixture.workspace.profile().id.clone();
    let fixture = fixture.reopen(factory);
    assert_eq!(fixture.workspace.profile().id, id);
    assert_eq!((fixture.list_tree(), fixture.head_number()), before);
    assert_eq!(hashes(&fixture), chain);
    assert_eq!(fixture.workspace.entry_for_idempotency_key(&fixture.caller.principal, "k").unwrap(), Some(number));
    assert_eq!(fixture.workspace.undone_by(number).unwrap(), Some(by));
    assert_eq!(fixture.workspace.entry_of_version(&rel_path("f"), &Version::hash_bytes(b"f")).unwrap(), Some(number));
    fixture.create_file("g", b"g");
    check_chain(&fixture);
}

fn trash_and_retained_bytes_survive(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let large = vec![b'l'; LARGE_FILE_BYTES];
    for (path, bytes) in [("small", b"s".as_slice()), ("large", &large)] {
        fixture.create_file(path, bytes);
        fixture.commit(vec![put_change(path, fixture.expect_observed_file(path), b"over")]);
    }
    let removed =
        fixture.commit(vec![remove_change("large", fixture.expect_observed_file("large"), single_file_tree(4))]);
    let fixture = fixture.reopen(factory);
    for bytes in [b"s".as_slice(), &large] {
        assert_eq!(fixture.workspace.retained_bytes(&Version::hash_bytes(bytes)).unwrap().as_deref(), Some(bytes));
    }
    let item = fixture.workspace.trash_item(&removed.trash_ids[0]).unwrap().unwrap();
    fixture.commit(vec![PlannedChange::Restore { trash: item.id, path: item.path, tree: item.summary }]);
    assert_eq!(fixture.read_bytes("large"), b"over");
}

fn leases_survive(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let before = lease::acquire_lease(&fixture, "d", lease::LONG_MS).unwrap();
    let fixture = fixture.reopen(factory);
    let leases = fixture.workspace.leases(&[rel_path("d")]).unwrap();
    assert_eq!(leases, std::slice::from_ref(&before));
    assert!(lease::acquire_lease(&fixture, "e", lease::LONG_MS).unwrap().fencing_token > before.fencing_token);
}
