//! Moves of files, links and trees, to a free path and over a file.

use stead_engine::{CommitExpectation, FileKind, PlannedChange, TreeSummary, Version};

use super::{
    ConformanceCaseTable, LARGE_FILE_BYTES, WorkspaceFactory, WorkspaceFixture, move_change, put_change, rel_path,
    single_file_tree, unmatched_stamp,
};

pub(super) const CASES: ConformanceCaseTable = &[
    ("a file moves with its bytes and bits", file_moves_with_bytes_and_mode),
    ("a file moves over another, which is kept", file_moves_over_another),
    ("a tree moves whole", tree_moves_whole),
    ("a link moves itself", link_moves_itself),
    ("what was not seen does not move", changed_source_is_not_moved),
    ("an emptied directory can go", emptied_directory_can_be_removed),
];

const MOVED_TREE: TreeSummary = TreeSummary { kind: FileKind::Directory, files: 1, directories: 2, bytes: 1 };

fn file_moves_with_bytes_and_mode(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    bench.create_directory("d");
    let large = vec![b'l'; LARGE_FILE_BYTES];
    for (name, bytes) in [("small", b"s".as_slice()), ("large", &large)] {
        bench.create_file(name, bytes);
        let to = format!("d/{name}");
        let mode = bench.stat(name).mode;
        bench.commit(vec![move_change(
            name,
            &to,
            bench.expect_observed_file(name),
            CommitExpectation::Absent,
            single_file_tree(bytes.len() as u64),
        )]);
        assert!(!bench.exists(name));
        assert_eq!((bench.read_bytes(&to), bench.stat(&to).mode), (bytes.to_vec(), mode));
    }
}

fn file_moves_over_another(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    let large = vec![b'l'; LARGE_FILE_BYTES];
    for replaced in [b"replaced".as_slice(), &large] {
        bench.create_file("from", b"from");
        let expect = if bench.exists("to") { bench.expect_observed_file("to") } else { CommitExpectation::Absent };
        bench.commit(vec![put_change("to", expect, replaced)]);
        let (from, to) = (bench.expect_observed_file("from"), bench.expect_observed_file("to"));
        let committed = bench.commit(vec![move_change("from", "to", from, to, single_file_tree(4))]);
        assert!(!bench.exists("from"));
        assert_eq!(bench.read_bytes("to"), b"from");
        assert_eq!(bench.workspace.retained_bytes(&Version::hash_bytes(replaced)).unwrap().as_deref(), Some(replaced));
        let changes = bench.workspace.entry(committed.entry).unwrap().unwrap().entry.changes;
        assert_eq!(changes.len(), 2, "what was replaced and what moved: {changes:?}");
    }
}

fn tree_moves_whole(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    bench.create_directory("d");
    bench.create_directory("d/e");
    bench.create_file("d/e/f", b"f");
    bench.create_directory("x");
    let expect = CommitExpectation::SameEntry(bench.stat("d").identity);
    bench.commit(vec![move_change("d", "x/d", expect, CommitExpectation::Absent, MOVED_TREE)]);
    assert!(!bench.exists("d"));
    assert_eq!(bench.read_bytes("x/d/e/f"), b"f");
}

fn link_moves_itself(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    bench.create_file("f", b"f");
    bench.commit(vec![PlannedChange::MakeLink { path: rel_path("l"), target: b"f".to_vec() }]);
    let expect = CommitExpectation::SameEntry(bench.stat("l").identity);
    let one_link = TreeSummary { kind: FileKind::Link, files: 0, directories: 0, bytes: 0 };
    bench.commit(vec![move_change("l", "m", expect, CommitExpectation::Absent, one_link)]);
    assert_eq!((bench.exists("l"), bench.workspace.read_link(&rel_path("m")).unwrap()), (false, b"f".to_vec()));
    assert_eq!(bench.read_bytes("f"), b"f");
}

fn changed_source_is_not_moved(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    bench.create_file("f", b"one");
    let old = bench.expect_observed_file("f");
    bench.commit(vec![put_change("f", old, b"two")]);
    bench.create_file("g", b"g");
    bench.create_directory("d");
    bench.assert_changed_since(vec![move_change("f", "x", old, CommitExpectation::Absent, single_file_tree(3))], "f");
    bench.assert_changed_since(
        vec![move_change("f", "g", bench.expect_observed_file("f"), CommitExpectation::Absent, single_file_tree(3))],
        "g",
    );
    bench.assert_changed_since(
        vec![move_change("f", "d", bench.expect_observed_file("f"), CommitExpectation::Absent, single_file_tree(3))],
        "d",
    );
    bench.assert_changed_since(
        vec![move_change("g", "f", bench.expect_observed_file("g"), old, single_file_tree(1))],
        "f",
    );
    bench.assert_changed_since(
        vec![move_change(
            "none",
            "x",
            CommitExpectation::SameEntry(unmatched_stamp()),
            CommitExpectation::Absent,
            MOVED_TREE,
        )],
        "none",
    );
    bench.assert_changed_since(
        vec![move_change(
            "d",
            "x",
            CommitExpectation::SameEntry(unmatched_stamp()),
            CommitExpectation::Absent,
            MOVED_TREE,
        )],
        "d",
    );
    bench.assert_impossible(vec![move_change(
        "f",
        "none/x",
        bench.expect_observed_file("f"),
        CommitExpectation::Absent,
        single_file_tree(3),
    )]);
}

fn emptied_directory_can_be_removed(maker: &dyn WorkspaceFactory) {
    let bench = WorkspaceFixture::new(maker);
    bench.create_directory("d");
    bench.create_file("d/f", b"f");
    bench.assert_impossible(vec![PlannedChange::RemoveDirectory { path: rel_path("d") }]);
    bench.assert_impossible(vec![PlannedChange::RemoveDirectory { path: rel_path("none") }]);
    bench.commit(vec![
        super::remove_change("d/f", bench.expect_observed_file("d/f"), single_file_tree(1)),
        PlannedChange::RemoveDirectory { path: rel_path("d") },
    ]);
    assert_eq!(bench.list_tree(), Vec::new());
}
