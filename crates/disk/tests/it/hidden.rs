//! Tests that hidden directories cannot be named, entered, listed, moved or replaced.

use std::os::unix::fs::MetadataExt;

use stead_disk::{
    DirectoryHandle, DiskErrorKind::Hidden, ExistingTargetPolicy, FileAttributeSource, FinalSymlink, InodeId,
    PathResolutionMethod, RootDirectory, RootDirectoryOptions, StagedContentSource,
};

use crate::fixture::{BOTH_RESOLVERS, DiskFixture, kind, name, rel_path};

fn tree_with_hidden_directory() -> (DiskFixture, InodeId) {
    let f = DiskFixture::new();
    f.file("a/state/blobs/db", "x");
    f.file("a/open", "x");
    f.link("to_state", "a/state");
    f.link("to_db", "a/state/blobs/db");
    let stat = std::fs::metadata(f.workspace.join("a/state")).unwrap();
    (f, InodeId { dev: stat.dev(), ino: stat.ino() })
}

fn open(f: &DiskFixture, resolver: PathResolutionMethod, hidden: InodeId) -> RootDirectory {
    RootDirectory::open(
        &f.workspace,
        RootDirectoryOptions { resolver, hidden_inodes: vec![hidden], allowed_mounts: Vec::new() },
    )
    .unwrap()
}

#[test]
fn hidden_directory_is_unreachable_by_path() {
    let (f, id) = tree_with_hidden_directory();
    for resolver in BOTH_RESOLVERS {
        let root = open(&f, resolver, id);
        for path in ["a/state", "a/state/blobs", "a/state/blobs/db", "a/state/nothing", "a/state/x/y"] {
            for last in [FinalSymlink::Follow, FinalSymlink::Keep] {
                assert_eq!(kind(root.canonicalize(&rel_path(path), last)), Hidden, "{resolver:?} {path}");
            }
            assert_eq!(kind(root.stat(&rel_path(path))), Hidden, "{resolver:?} {path}");
            assert_eq!(kind(root.open_file(&rel_path(path))), Hidden);
            assert_eq!(kind(root.open_directory(&rel_path(path))), Hidden);
            assert_eq!(kind(root.read_link(&rel_path(path))), Hidden);
            assert_eq!(kind(root.create_directories(&rel_path(path), 0o755)), Hidden);
        }
        for path in ["to_state", "to_db", "to_state/blobs"] {
            assert_eq!(kind(root.canonicalize(&rel_path(path), FinalSymlink::Follow)), Hidden);
        }
        assert_eq!(root.canonicalize(&rel_path("to_state"), FinalSymlink::Keep), Ok(rel_path("to_state")));
        assert_eq!(root.open_file(&rel_path("a/open")).unwrap().read_all(9).unwrap(), b"x");
    }
}

#[test]
fn hidden_directory_rejects_all_operations() {
    let (f, id) = tree_with_hidden_directory();
    for resolver in BOTH_RESOLVERS {
        let root = open(&f, resolver, id);
        let a: DirectoryHandle = root.open_directory(&rel_path("a")).unwrap();
        let state = name("state");
        assert_eq!(a.list().unwrap().len(), 1);
        assert_eq!(kind(a.stat(&state)), Hidden);
        assert_eq!(kind(a.open_directory(&state)), Hidden);
        assert_eq!(kind(a.remove_directory(&state)), Hidden);
        assert_eq!(kind(a.remove_tree(&state)), Hidden);
        assert_eq!(kind(a.set_mode(&state, 0o777)), Hidden);
        assert_eq!(kind(a.rename(&state, &a, &name("moved"), ExistingTargetPolicy::Refuse)), Hidden);
        let staged = a.stage_file(StagedContentSource::Bytes(b"x"), FileAttributeSource::New { mode: 0o600 }).unwrap();
        assert_eq!(kind(a.rename(staged.name(), &a, &state, ExistingTargetPolicy::Exchange)), Hidden);
        staged.discard(&a).unwrap();
    }
}

#[test]
fn stays_hidden_when_a_parent_is_renamed() {
    let (f, id) = tree_with_hidden_directory();
    for (resolver, from, to) in [(PathResolutionMethod::Kernel, "a", "b"), (PathResolutionMethod::Walker, "b", "c")] {
        let root = open(&f, resolver, id);
        let top = root.open_directory(&rel_path(".")).unwrap();
        top.rename(&name(from), &top, &name(to), ExistingTargetPolicy::Refuse).unwrap();
        assert_eq!(kind(root.stat(&rel_path(&format!("{to}/state/blobs/db")))), Hidden);
        assert_eq!(kind(root.canonicalize(&rel_path(&format!("{to}/state/new")), FinalSymlink::Follow)), Hidden);
    }
}

#[test]
fn a_hidden_root_cannot_be_opened() {
    let f = DiskFixture::new();
    let id = f.root(PathResolutionMethod::Kernel).id();
    let options = RootDirectoryOptions { hidden_inodes: vec![id], ..RootDirectoryOptions::default() };
    assert_eq!(kind(RootDirectory::open(&f.workspace, options)), Hidden);
}
