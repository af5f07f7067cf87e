//! State that survives closing and reopening the workspace.

use stead_engine::{CommitExpectation, PlannedChange, Version};
use stead_journal::EntryRelation;

use super::{
    ConformanceCaseTable, LARGE_FILE_BYTES, Plan, WorkspaceFactory, WorkspaceFixture,
    journal::{check_chain, unfiltered},
    lease, put_change, rel_path, remove_change, single_file_tree,
};

pub(super) const CASES: ConformanceCaseTable = &[
    ("files, journal, keys and marks last", files_journal_and_keys_survive),
    ("trash and kept bytes last", trash_and_retained_bytes_survive),
    ("leases last, and their numbers go on", leases_survive),
];

fn files_journal_and_keys_survive(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    let number =
        bench.try_plan(&Plan::new(vec![put_change("f", CommitExpectation::Absent, b"f")]), Some("k")).unwrap().entry;
    bench.create_directory("d");
    let change = remove_change("f", bench.expect_observed_file("f"), single_file_tree(1));
    let by = bench.commit_linked(vec![change], EntryRelation::Undoes(number));
    bench.workspace.record_call(&bench.journal_record("read", None)).unwrap();
    let before = (bench.list_tree(), bench.head_number());
    let hashes = |bench: &WorkspaceFixture| -> Vec<_> {
        bench.workspace.entries(&unfiltered()).unwrap().into_iter().map(|stored| stored.hash).collect()
    };
    let chain = hashes(&bench);
    let id = bench.workspace.profile().id.clone();
    let bench = bench.reopen(maker);
    assert_eq!(bench.workspace.profile().id, id);
    assert_eq!((bench.list_tree(), bench.head_number()), before);
    assert_eq!(hashes(&bench), chain);
    assert_eq!(bench.workspace.entry_for_idempotency_key(&bench.caller.principal, "k").unwrap(), Some(number));
    assert_eq!(bench.workspace.undone_by(number).unwrap(), Some(by));
    assert_eq!(bench.workspace.entry_of_version(&rel_path("f"), &Version::hash_bytes(b"f")).unwrap(), Some(number));
    bench.create_file("g", b"g");
    check_chain(&bench);
}

fn trash_and_retained_bytes_survive(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    let large = vec![b'l'; LARGE_FILE_BYTES];
    for (path, bytes) in [("small", b"s".as_slice()), ("large", &large)] {
        bench.create_file(path, bytes);
        bench.commit(vec![put_change(path, bench.expect_observed_file(path), b"over")]);
    }
    let removed = bench.commit(vec![remove_change("large", bench.expect_observed_file("large"), single_file_tree(4))]);
    let bench = bench.reopen(maker);
    for bytes in [b"s".as_slice(), &large] {
        assert_eq!(bench.workspace.retained_bytes(&Version::hash_bytes(bytes)).unwrap().as_deref(), Some(bytes));
    }
    let item = bench.workspace.trash_item(&removed.trash_ids[0]).unwrap().unwrap();
    bench.commit(vec![PlannedChange::Restore { trash: item.id, path: item.path, tree: item.summary }]);
    assert_eq!(bench.read_bytes("large"), b"over");
}

fn leases_survive(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    let before = lease::acquire_lease(&bench, "d", lease::LONG_MS).unwrap();
    let bench = bench.reopen(maker);
    let leases = bench.workspace.leases(&[rel_path("d")]).unwrap();
    assert_eq!(leases, std::slice::from_ref(&before));
    assert!(lease::acquire_lease(&bench, "e", lease::LONG_MS).unwrap().fencing_token > before.fencing_token);
}
