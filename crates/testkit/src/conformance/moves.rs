//! Conformance tests of moving files, links and trees, to a free path and over a file.

use stead_engine::{CommitExpectation, FileKind, PlannedChange, TreeSummary, Version};

use super::{
    ConformanceWorkspaceFactory, LARGE_FILE_BYTES, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest,
    move_change, put_change, rel_path, single_file_tree, unmatched_identity,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("a file moves with its bytes and bits", file_moves_with_bytes_and_mode),
    ("a file moves over another, which is kept", file_moves_over_another),
    ("a tree moves whole", tree_moves_whole),
    ("a link moves itself", link_moves_itself),
    ("what was not seen does not move", changed_source_is_not_moved),
    ("an emptied directory can go", emptied_directory_can_be_removed),
];

const MOVED_TREE: TreeSummary = TreeSummary { kind: FileKind::Directory, files: 1, directories: 2, bytes: 1 };

fn file_moves_with_bytes_and_mode(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    let large = vec![b'l'; LARGE_FILE_BYTES];
    for (name, bytes) in [("small", b"s".as_slice()), ("large", &large)] {
        fixture.create_file(name, bytes);
        let to = format!("d/{name}");
        let mode = fixture.stat(name).mode;
        fixture.commit(vec![move_change(
            name,
            &to,
            fixture.expect_observed_file(name),
            CommitExpectation::Absent,
            single_file_tree(bytes.len() as u64),
        )]);
        assert!(!fixture.exists(name));
        assert_eq!((fixture.read_bytes(&to), fixture.stat(&to).mode), (bytes.to_vec(), mode));
    }
}

fn file_moves_over_another(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let large = vec![b'l'; LARGE_FILE_BYTES];
    for replaced in [b"replaced".as_slice(), &large] {
        fixture.create_file("from", b"from");
        let expect = if fixture.exists("to") { fixture.expect_observed_file("to") } else { CommitExpectation::Absent };
        fixture.commit(vec![put_change("to", expect, replaced)]);
        let (from, to) = (fixture.expect_observed_file("from"), fixture.expect_observed_file("to"));
        let committed = fixture.commit(vec![move_change("from", "to", from, to, single_file_tree(4))]);
        assert!(!fixture.exists("from"));
        assert_eq!(fixture.read_bytes("to"), b"from");
        assert_eq!(
            fixture.workspace.retained_bytes(&Version::hash_bytes(replaced)).unwrap().as_deref(),
            Some(replaced)
        );
        let changes = fixture.workspace.entry(committed.entry).unwrap().unwrap().entry.changes;
        assert_eq!(changes.len(), 2, "what was replaced and what moved: {changes:?}");
    }
}

fn tree_moves_whole(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    fixture.create_directory("d/e");
    fixture.create_file("d/e/f", b"f");
    fixture.create_directory("x");
    let expect = CommitExpectation::SameEntry(fixture.stat("d").identity);
    fixture.commit(vec![move_change("d", "x/d", expect, CommitExpectation::Absent, MOVED_TREE)]);
    assert!(!fixture.exists("d"));
    assert_eq!(fixture.read_bytes("x/d/e/f"), b"f");
}

fn link_moves_itself(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("f", b"f");
    fixture.commit(vec![PlannedChange::MakeLink { path: rel_path("l"), target: b"f".to_vec() }]);
    let expect = CommitExpectation::SameEntry(fixture.stat("l").identity);
    let one_link = TreeSummary { kind: FileKind::Link, files: 0, directories: 0, bytes: 0 };
    fixture.commit(vec![move_change("l", "m", expect, CommitExpectation::Absent, one_link)]);
    assert_eq!((fixture.exists("l"), fixture.read_link("m")), (false, b"f".to_vec()));
    assert_eq!(fixture.read_bytes("f"), b"f");
}

fn changed_source_is_not_moved(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("f", b"one");
    let old = fixture.expect_observed_file("f");
    fixture.commit(vec![put_change("f", old, b"two")]);
    fixture.create_file("g", b"g");
    fixture.create_directory("d");
    fixture.assert_changed_since(vec![move_change("f", "x", old, CommitExpectation::Absent, single_file_tree(3))], "f");
    fixture.assert_changed_since(
        vec![move_change("f", "g", fixture.expect_observed_file("f"), CommitExpectation::Absent, single_file_tree(3))],
        "g",
    );
    fixture.assert_changed_since(
        vec![move_change("f", "d", fixture.expect_observed_file("f"), CommitExpectation::Absent, single_file_tree(3))],
        "d",
    );
    fixture.assert_changed_since(
        vec![move_change("g", "f", fixture.expect_observed_file("g"), old, single_file_tree(1))],
        "f",
    );
    fixture.assert_changed_since(
        vec![move_change(
            "none",
            "x",
            CommitExpectation::SameEntry(unmatched_identity()),
            CommitExpectation::Absent,
            MOVED_TREE,
        )],
        "none",
    );
    fixture.assert_changed_since(
        vec![move_change(
            "d",
            "x",
            CommitExpectation::SameEntry(unmatched_identity()),
            CommitExpectation::Absent,
            MOVED_TREE,
        )],
        "d",
    );
    fixture.assert_impossible(vec![move_change(
        "f",
        "none/x",
        fixture.expect_observed_file("f"),
        CommitExpectation::Absent,
        single_file_tree(3),
    )]);
}

fn emptied_directory_can_be_removed(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    fixture.create_file("d/f", b"f");
    fixture.assert_impossible(vec![PlannedChange::RemoveDirectory { path: rel_path("d") }]);
    fixture.assert_impossible(vec![PlannedChange::RemoveDirectory { path: rel_path("none") }]);
    fixture.commit(vec![
        super::remove_change("d/f", fixture.expect_observed_file("d/f"), single_file_tree(1)),
        PlannedChange::RemoveDirectory { path: rel_path("d") },
    ]);
    assert_eq!(fixture.list_tree(), Vec::new());
}
