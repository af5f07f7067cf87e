//! Conformance tests of removing files to the trash and restoring them.

use stead_engine::{CommitExpectation, ErrorKind, FileKind, PlannedChange, TreeSummary};

use super::{
    ConformanceWorkspaceFactory, TRASH_KEEP_MS, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest,
    assert_commit_fails, put_change, rel_path, remove_change, single_file_tree, unmatched_identity,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("what is removed can be found and brought back", removed_file_is_restored),
    ("trees go and come whole", removed_tree_is_restored_whole),
    ("the trash knows whose things are whose", trash_knows_owners),
    ("nothing comes back over something else", restore_needs_free_path),
    ("what was not seen is not removed", changed_file_is_not_removed),
];

fn restore_change(trash: &str, path: &str, tree: TreeSummary) -> PlannedChange {
    PlannedChange::Restore { trash: trash.to_owned(), path: rel_path(path), tree }
}

fn removed_file_is_restored(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("f", b"f");
    let keep_until_ms = fixture.workspace.now_ms() + TRASH_KEEP_MS;
    let tree = single_file_tree(1);
    let change = PlannedChange::Remove {
        path: rel_path("f"),
        expectation: fixture.expect_observed_file("f"),
        retain_until_ms: keep_until_ms,
        tree,
    };
    let committed = fixture.commit(vec![change]);
    let [id] = committed.trash_ids.as_slice() else { panic!("{:?}", committed.trash_ids) };
    assert!(!fixture.exists("f"));
    let item = fixture.workspace.trash_item(id).unwrap().unwrap();
    assert_eq!(
        (item.path, item.owner.as_str(), item.summary, item.entry, item.retain_until_ms),
        (rel_path("f"), "agent:one", tree, committed.entry, keep_until_ms)
    );
    fixture.commit(vec![restore_change(id, "g", tree)]);
    assert_eq!((fixture.exists("f"), fixture.read_bytes("g")), (false, b"f".to_vec()));
    assert_eq!(fixture.workspace.trash_item(id).unwrap(), None);
    assert_eq!(fixture.workspace.trash(None).unwrap(), Vec::new());
    assert_commit_fails(fixture.try_commit(vec![restore_change(id, "h", tree)]), ErrorKind::NotFound);
}

fn removed_tree_is_restored_whole(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    fixture.create_directory("d/e");
    fixture.create_file("d/e/f", b"f");
    fixture.commit(vec![PlannedChange::MakeLink { path: rel_path("d/l"), target: b"e/f".to_vec() }]);
    let before = fixture.list_tree();
    let tree = TreeSummary { kind: FileKind::Directory, files: 1, directories: 2, bytes: 1 };
    let committed =
        fixture.commit(vec![remove_change("d", CommitExpectation::SameEntry(fixture.stat("d").identity), tree)]);
    assert_eq!(fixture.list_tree(), Vec::new());
    fixture.commit(vec![restore_change(&committed.trash_ids[0], "d", tree)]);
    assert_eq!(fixture.list_tree(), before);
}

fn trash_knows_owners(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let other = fixture.with_other_agent("two");
    for path in ["a", "b", "c"] {
        fixture.create_file(path, b"x");
    }
    let first =
        fixture.commit(vec![remove_change("a", fixture.expect_observed_file("a"), single_file_tree(1))]).trash_ids;
    let second =
        other.commit(vec![remove_change("b", fixture.expect_observed_file("b"), single_file_tree(1))]).trash_ids;
    let third =
        fixture.commit(vec![remove_change("c", fixture.expect_observed_file("c"), single_file_tree(1))]).trash_ids;
    let ids = |owner: Option<&WorkspaceUnderConformanceTest>| -> Vec<String> {
        let items = fixture.workspace.trash(owner.map(|fixture| &fixture.caller.principal)).unwrap();
        items.into_iter().map(|item| item.id).collect()
    };
    let newest_first = |lists: &[&Vec<String>]| lists.iter().flat_map(|list| (*list).clone()).collect::<Vec<_>>();
    assert_eq!(ids(None), newest_first(&[&third, &second, &first]));
    assert_eq!(ids(Some(&fixture)), newest_first(&[&third, &first]));
    assert_eq!(ids(Some(&other)), second);
}

fn restore_needs_free_path(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("f", b"old");
    let id = fixture
        .commit(vec![remove_change("f", fixture.expect_observed_file("f"), single_file_tree(3))])
        .trash_ids
        .remove(0);
    fixture.create_file("f", b"new");
    fixture.assert_changed_since(vec![restore_change(&id, "f", single_file_tree(3))], "f");
    fixture.assert_impossible(vec![restore_change(&id, "none/f", single_file_tree(3))]);
    assert!(fixture.workspace.trash_item(&id).unwrap().is_some());
    assert_commit_fails(
        fixture.try_commit(vec![restore_change("t-unknown", "x", single_file_tree(3))]),
        ErrorKind::NotFound,
    );
}

fn changed_file_is_not_removed(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("f", b"one");
    let old = fixture.expect_observed_file("f");
    fixture.commit(vec![put_change("f", old, b"two")]);
    fixture.create_directory("d");
    fixture.assert_changed_since(vec![remove_change("f", old, single_file_tree(3))], "f");
    fixture.assert_changed_since(
        vec![remove_change("d", CommitExpectation::SameEntry(unmatched_identity()), single_file_tree(0))],
        "d",
    );
    fixture.assert_changed_since(
        vec![remove_change("none", CommitExpectation::SameEntry(unmatched_identity()), single_file_tree(0))],
        "none",
    );
    assert_eq!(fixture.workspace.trash(None).unwrap(), Vec::new());
}
