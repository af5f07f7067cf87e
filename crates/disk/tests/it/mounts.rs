//! Tests mounts inside the workspace, in a separate mount namespace.

use std::process::Command;

use stead_disk::{
    DiskErrorKind::CrossesMount, ExistingTargetPolicy, FinalSymlink, PathResolutionMethod, RootDirectory,
    RootDirectoryOptions, StateDirectory,
};

use crate::{
    child_process::rerun_with_mount_namespace,
    fixture::{BOTH_RESOLVERS, DiskFixture, kind, name, rel_path},
};

fn mount(words: &[&str]) {
    let output = Command::new("mount").args(words).output().unwrap();
    assert!(output.status.success(), "mount {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn tree_with_mounts() -> DiskFixture {
    let f = DiskFixture::new();
    f.directory("bind");
    f.directory("a/tmp");
    f.file("bound_file", "under");
    f.file("plain", "plain");
    f.link("to_bind", "bind/secret");
    mount(&["--bind", f.outside.to_str().unwrap(), f.workspace.join("bind").to_str().unwrap()]);
    mount(&["-t", "tmpfs", "none", f.workspace.join("a/tmp").to_str().unwrap()]);
    let secret = f.outside.join("secret");
    mount(&["--bind", secret.to_str().unwrap(), f.workspace.join("bound_file").to_str().unwrap()]);
    f.file("a/tmp/sub/file", "other");
    f
}

fn unmount_all(f: &DiskFixture) {
    for path in ["bind", "a/tmp", "bound_file"] {
        Command::new("umount").arg("-l").arg(f.workspace.join(path)).output().unwrap();
    }
}

#[test]
fn mounts_are_not_crossed() {
    if !rerun_with_mount_namespace("mounts::mounts_are_not_crossed") {
        return;
    }
    let f = tree_with_mounts();
    for resolver in BOTH_RESOLVERS {
        let root = f.root(resolver);
        for path in ["bind", "bind/secret", "bind/new", "a/tmp", "a/tmp/sub/file", "bound_file"] {
            for last in [FinalSymlink::Follow, FinalSymlink::Keep] {
                assert_eq!(kind(root.canonicalize(&rel_path(path), last)), CrossesMount, "{resolver:?} {path}");
            }
            assert_eq!(kind(root.stat(&rel_path(path))), CrossesMount, "{resolver:?} {path}");
            assert_eq!(kind(root.open_file(&rel_path(path))), CrossesMount);
            assert_eq!(kind(root.open_directory(&rel_path(path))), CrossesMount);
        }
        assert_eq!(kind(root.canonicalize(&rel_path("to_bind"), FinalSymlink::Follow)), CrossesMount);
        assert_eq!(kind(root.create_directories(&rel_path("bind/x"), 0o755)), CrossesMount);
        let top = root.open_directory(&rel_path(".")).unwrap();
        assert_eq!(kind(top.open_directory(&name("bind"))), CrossesMount);
        assert_eq!(kind(top.stat(&name("bind"))), CrossesMount);
        assert_eq!(kind(top.stat(&name("bound_file"))), CrossesMount);
        assert_eq!(kind(top.open_file(&name("bound_file"))), CrossesMount);
        assert_eq!(kind(top.remove_tree(&name("bind"))), CrossesMount);
        assert_eq!(kind(top.remove_tree(&name("a"))), CrossesMount);
        assert_eq!(stead_disk::measure_tree(&top, u64::MAX).unwrap().unreadable, 2);
    }
    assert_eq!(std::fs::read(f.outside.join("secret")).unwrap(), b"secret");
    unmount_all(&f);
}

#[test]
fn allowed_mounts_are_crossed() {
    if !rerun_with_mount_namespace("mounts::allowed_mounts_are_crossed") {
        return;
    }
    let f = tree_with_mounts();
    f.directory("a/tmp/sub/nested");
    mount(&["-t", "tmpfs", "none", f.workspace.join("a/tmp/sub/nested").to_str().unwrap()]);
    f.file("a/tmp/sub/nested/file", "nested");
    f.link("to_tmp", "a/tmp/sub");
    for resolver in BOTH_RESOLVERS {
        let mounts = vec![rel_path("a/tmp/sub/nested"), rel_path("a/tmp"), rel_path("not/there")];
        let options = RootDirectoryOptions { resolver, allowed_mounts: mounts, hidden_inodes: Vec::new() };
        let root = RootDirectory::open(&f.workspace, options).unwrap();
        for (path, content) in [("a/tmp/sub/file", "other"), ("a/tmp/sub/nested/file", "nested")] {
            assert_eq!(root.canonicalize(&rel_path(path), FinalSymlink::Follow), Ok(rel_path(path)));
            assert_eq!(root.open_file(&rel_path(path)).unwrap().read_all(9).unwrap(), content.as_bytes());
        }
        assert_eq!(root.canonicalize(&rel_path("to_tmp/file"), FinalSymlink::Follow), Ok(rel_path("a/tmp/sub/file")));
        assert_eq!(root.canonicalize(&rel_path("a/tmp/new"), FinalSymlink::Follow), Ok(rel_path("a/tmp/new")));
        assert_eq!(root.canonicalize(&rel_path("not/there/x"), FinalSymlink::Follow), Ok(rel_path("not/there/x")));
        assert_eq!(kind(root.canonicalize(&rel_path("bind/secret"), FinalSymlink::Follow)), CrossesMount);
        let a = root.open_directory(&rel_path("a")).unwrap();
        let tmp = a.open_directory(&name("tmp")).unwrap();
        assert_eq!(tmp.id(), root.open_directory(&rel_path("a/tmp")).unwrap().id());
        assert_eq!(a.stat(&name("tmp")).unwrap().unwrap().fingerprint.id, tmp.id());
        let top = root.open_directory(&rel_path(".")).unwrap();
        assert_eq!(kind(top.open_directory(&name("bind"))), CrossesMount);
        assert_eq!(kind(top.rename(&name("plain"), &tmp, &name("plain"), ExistingTargetPolicy::Refuse)), CrossesMount);
        root.create_directories(&rel_path("a/tmp/made"), 0o755).unwrap();
        root.sync_file_system().unwrap();
    }
    Command::new("umount").arg("-l").arg(f.workspace.join("a/tmp/sub/nested")).output().unwrap();
    unmount_all(&f);
}

#[test]
fn blobs_are_copied_from_another_mount() {
    if !rerun_with_mount_namespace("mounts::blobs_are_copied_from_another_mount") {
        return;
    }
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let f = tree_with_mounts();
    f.file("a/tmp/file", "abc");
    let root = RootDirectory::open(&f.workspace.join("a/tmp"), RootDirectoryOptions::default()).unwrap();
    assert_eq!(root.resolver(), PathResolutionMethod::Kernel);
    let state = StateDirectory::open(&f.outside.join("state")).unwrap();
    let top = root.open_directory(&rel_path(".")).unwrap();
    state.adopt_blob(ABC, &top, &name("file")).unwrap();
    assert_eq!(top.stat(&name("file")).unwrap(), None);
    assert_eq!(state.open_blob(ABC).unwrap().unwrap().read_all(9).unwrap(), b"abc");
    unmount_all(&f);
}
