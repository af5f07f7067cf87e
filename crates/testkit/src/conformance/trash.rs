//! Removal to the trash, and restore.

use stead_engine::{CommitExpectation, ErrorKind, FileKind, PlannedChange, TreeSummary};

use super::{
    ConformanceCaseTable, TRASH_KEEP_MS, WorkspaceFactory, WorkspaceFixture, assert_commit_fails, put_change, rel_path,
    remove_change, single_file_tree, unmatched_stamp,
};

pub(super) const CASES: ConformanceCaseTable = &[
    ("what is removed can be found and brought back", removed_file_is_restored),
    ("trees go and come whole", removed_tree_is_restored_whole),
    ("the trash knows whose things are whose", trash_knows_owners),
    ("nothing comes back over something else", restore_needs_free_path),
    ("what was not seen is not removed", changed_file_is_not_removed),
];

fn restore_change(trash: &str, path: &str, tree: TreeSummary) -> PlannedChange {
    PlannedChange::Restore { trash: trash.to_owned(), path: rel_path(path), tree }
}

fn removed_file_is_restored(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    bench.create_file("f", b"f");
    let keep_until_ms = bench.workspace.now_ms() + TRASH_KEEP_MS;
    let tree = single_file_tree(1);
    let change = PlannedChange::Remove {
        path: rel_path("f"),
        expectation: bench.expect_observed_file("f"),
        retain_until_ms: keep_until_ms,
        tree,
    };
    let committed = bench.commit(vec![change]);
    let [id] = committed.trash_ids.as_slice() else { panic!("{:?}", committed.trash_ids) };
    assert!(!bench.exists("f"));
    let item = bench.workspace.trash_item(id).unwrap().unwrap();
    assert_eq!(
        (item.path, item.owner.as_str(), item.summary, item.entry, item.retain_until_ms),
        (rel_path("f"), "agent:one", tree, committed.entry, keep_until_ms)
    );
    // To another path.
    bench.commit(vec![restore_change(id, "g", tree)]);
    assert_eq!((bench.exists("f"), bench.read_bytes("g")), (false, b"f".to_vec()));
    assert_eq!(bench.workspace.trash_item(id).unwrap(), None);
    assert_eq!(bench.workspace.trash(None).unwrap(), Vec::new());
    assert_commit_fails(bench.try_commit(vec![restore_change(id, "h", tree)]), ErrorKind::NotFound);
}

fn removed_tree_is_restored_whole(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    bench.create_directory("d");
    bench.create_directory("d/e");
    bench.create_file("d/e/f", b"f");
    bench.commit(vec![PlannedChange::MakeLink { path: rel_path("d/l"), target: b"e/f".to_vec() }]);
    let before = bench.list_tree();
    let tree = TreeSummary { kind: FileKind::Directory, files: 1, directories: 2, bytes: 1 };
    let committed =
        bench.commit(vec![remove_change("d", CommitExpectation::SameEntry(bench.stat("d").identity), tree)]);
    assert_eq!(bench.list_tree(), Vec::new());
    bench.commit(vec![restore_change(&committed.trash_ids[0], "d", tree)]);
    assert_eq!(bench.list_tree(), before);
}

fn trash_knows_owners(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    let other = bench.with_other_agent("two");
    for path in ["a", "b", "c"] {
        bench.create_file(path, b"x");
    }
    let first = bench.commit(vec![remove_change("a", bench.expect_observed_file("a"), single_file_tree(1))]).trash_ids;
    let second = other.commit(vec![remove_change("b", bench.expect_observed_file("b"), single_file_tree(1))]).trash_ids;
    let third = bench.commit(vec![remove_change("c", bench.expect_observed_file("c"), single_file_tree(1))]).trash_ids;
    let ids = |owner: Option<&WorkspaceFixture>| -> Vec<String> {
        let items = bench.workspace.trash(owner.map(|bench| &bench.caller.principal)).unwrap();
        items.into_iter().map(|item| item.id).collect()
    };
    let newest_first = |lists: &[&Vec<String>]| lists.iter().flat_map(|list| (*list).clone()).collect::<Vec<_>>();
    assert_eq!(ids(None), newest_first(&[&third, &second, &first]));
    assert_eq!(ids(Some(&bench)), newest_first(&[&third, &first]));
    assert_eq!(ids(Some(&other)), second);
}

fn restore_needs_free_path(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    bench.create_file("f", b"old");
    let id = bench
        .commit(vec![remove_change("f", bench.expect_observed_file("f"), single_file_tree(3))])
        .trash_ids
        .remove(0);
    bench.create_file("f", b"new");
    bench.assert_changed_since(vec![restore_change(&id, "f", single_file_tree(3))], "f");
    bench.assert_impossible(vec![restore_change(&id, "none/f", single_file_tree(3))]);
    assert!(bench.workspace.trash_item(&id).unwrap().is_some());
    assert_commit_fails(
        bench.try_commit(vec![restore_change("t-unknown", "x", single_file_tree(3))]),
        ErrorKind::NotFound,
    );
}

fn changed_file_is_not_removed(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    bench.create_file("f", b"one");
    let old = bench.expect_observed_file("f");
    bench.commit(vec![put_change("f", old, b"two")]);
    bench.create_directory("d");
    bench.assert_changed_since(vec![remove_change("f", old, single_file_tree(3))], "f");
    bench.assert_changed_since(
        vec![remove_change("d", CommitExpectation::SameEntry(unmatched_stamp()), single_file_tree(0))],
        "d",
    );
    bench.assert_changed_since(
        vec![remove_change("none", CommitExpectation::SameEntry(unmatched_stamp()), single_file_tree(0))],
        "none",
    );
    assert_eq!(bench.workspace.trash(None).unwrap(), Vec::new());
}
