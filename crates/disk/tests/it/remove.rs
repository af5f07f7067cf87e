//! Tests the removal of trees that are very deep, contain links, or have unreadable or hidden directories.

use std::os::unix::fs::PermissionsExt;

use stead_disk::{DirectoryHandle, DiskErrorKind, PathResolutionMethod};
use stead_path::RelPath;

use crate::{
    child_process::{assert_child_passes, is_child, rerun_unprivileged},
    fixture::{BOTH_RESOLVERS, DiskFixture, kind, name},
};

/// The depth of a directory tree that is too deep for any path.
const LEVELS: u64 = 10_000;

fn create_nested_directories(top: &DirectoryHandle, levels: u64) {
    let mut current = top.try_clone().unwrap();
    for level in 0..levels {
        current.create_directory(&name("d"), 0o755).unwrap();
        let next = current.open_directory(&name("d")).unwrap();
        if level % 10 == 0 {
            next.create_symlink(&name("link"), b"..").unwrap();
        }
        current = next;
    }
}

#[test]
fn removes_ten_thousand_levels_with_few_handles() {
    if !is_child() {
        // 96 handles are enough for 64 directories and the handles of the test.
        assert_child_passes(
            &["sh", "-c", "ulimit -n 96 && exec \"$@\"", "sh"],
            "remove::removes_ten_thousand_levels_with_few_handles",
        );
        return;
    }
    for resolver in BOTH_RESOLVERS {
        let f = DiskFixture::in_memory();
        let top = f.root(resolver).open_directory(&RelPath::root()).unwrap();
        create_nested_directories(&top, LEVELS);
        top.remove_tree(&name("d")).unwrap();
        assert_eq!(top.list().unwrap(), []);
    }
}

#[test]
fn symlinks_are_removed_without_their_targets() {
    let f = DiskFixture::new();
    f.file("tree/a/file", "123");
    f.file("keep", "kept");
    f.link("tree/out", "../../out");
    f.link("tree/a/keep", "../../keep");
    f.link("tree/loop", "loop");
    let top = f.root_directory();
    top.remove_tree(&name("tree")).unwrap();
    assert_eq!(top.stat(&name("tree")), Ok(None));
    assert_eq!(f.read("keep"), "kept");
    assert_eq!(std::fs::read(f.outside.join("secret")).unwrap(), b"secret");
    assert_eq!(kind(top.remove_tree(&name("tree"))), DiskErrorKind::NotFound);
    f.link("link", "../out");
    top.remove_tree(&name("link")).unwrap();
    assert!(f.outside.exists());
    top.remove_tree(&name("keep")).unwrap();
    assert_eq!(top.list().unwrap(), []);
}

#[test]
fn closed_directories_are_opened_first() {
    if !rerun_unprivileged("remove::closed_directories_are_opened_first") {
        return;
    }
    let f = DiskFixture::new();
    f.file("tree/a/b/file", "x");
    for path in ["tree/a/b", "tree/a", "tree"] {
        std::fs::set_permissions(f.workspace.join(path), std::fs::Permissions::from_mode(0o000)).unwrap();
    }
    f.root_directory().remove_tree(&name("tree")).unwrap();
    assert_eq!(f.root_directory().list().unwrap(), []);
}

#[test]
fn removal_stops_at_hidden_directories() {
    use std::os::unix::fs::MetadataExt;
    let f = DiskFixture::new();
    f.file("tree/state/db", "x");
    let state = std::fs::metadata(f.workspace.join("tree/state")).unwrap();
    for resolver in [PathResolutionMethod::Kernel, PathResolutionMethod::Walker] {
        let hidden = vec![stead_disk::InodeId { dev: state.dev(), ino: state.ino() }];
        let options = stead_disk::RootDirectoryOptions { resolver, hidden_inodes: hidden, ..Default::default() };
        let top =
            stead_disk::RootDirectory::open(&f.workspace, options).unwrap().open_directory(&RelPath::root()).unwrap();
        assert_eq!(kind(top.remove_tree(&name("tree"))), DiskErrorKind::Hidden);
        assert_eq!(f.read("tree/state/db"), "x");
    }
}
