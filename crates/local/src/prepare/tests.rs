//! Tests of the preparation of plans.

use stead_engine::{FinalSymlink, Workspace};

use super::*;
use crate::LocalWorkspaceOptions;

#[test]
#[expect(clippy::disallowed_methods, reason = "the test changes the directory from outside")]
fn a_file_with_the_inode_number_of_a_planned_link_is_neither_removed_nor_moved() {
    let directory = tempfile::tempdir().unwrap();
    let files = directory.path().join("files");
    std::fs::create_dir(&files).unwrap();
    std::fs::write(files.join("leaf"), "text").unwrap();
    let workspace = LocalWorkspace::open(LocalWorkspaceOptions::new(files, directory.path().join("state"))).unwrap();
    let path = |name: &str| RelPath::from_wire(name).unwrap();
    let (from, node) = workspace.locate_and_stat(&path("leaf"), FinalSymlink::Keep).unwrap();
    let expect = CommitExpectation::SameEntry(node.unwrap().identity);
    let tree = TreeSummary { kind: FileKind::Link, files: 1, directories: 0, bytes: 4 };
    let to_other = PlannedChange::Move {
        from: from.clone(),
        to: path("other"),
        expectation: expect,
        replaced: CommitExpectation::Absent,
        tree,
    };
    let to_trash = PlannedChange::Remove { path: from.clone(), expectation: expect, retain_until_ms: i64::MAX, tree };
    for change in [to_other, to_trash] {
        let prepared = prepare_plan(&workspace, &Plan::new(vec![change]));
        assert!(matches!(prepared, Err(CommitError::ExpectationFailed(moved)) if moved == from));
    }
}
