//! Tests renames of files and of staged files, with and without an existing target.

use stead_disk::{DiskErrorKind, ExistingTargetPolicy, FileAttributeSource, StagedContentSource};

use crate::fixture::{BOTH_RESOLVERS, DiskFixture, kind, name, rel_path};

const NEW: FileAttributeSource<'_> = FileAttributeSource::New { mode: 0o644 };

#[test]
fn renames_exchanges_and_replaces() {
    let f = DiskFixture::new();
    let top = f.root_directory();
    let first = top.stage_file(StagedContentSource::Bytes(b"first"), NEW).unwrap();
    top.rename_staged_to_new(&first, &name("file")).unwrap();
    assert_eq!(f.read("file"), "first");
    assert_eq!(top.stat(&name("file")).unwrap().unwrap().fingerprint.id, first.stat().fingerprint.id);

    let second = top.stage_file(StagedContentSource::Bytes(b"second"), NEW).unwrap();
    assert_eq!(kind(top.rename_staged_to_new(&second, &name("file"))), DiskErrorKind::Exists);
    assert_eq!(f.read("file"), "first");
    top.rename(second.name(), &top, &name("file"), ExistingTargetPolicy::Exchange).unwrap();
    assert_eq!(f.read("file"), "second");
    let old = top.stat(second.name()).unwrap().unwrap();
    assert_eq!((old.fingerprint.id, old.size), (first.stat().fingerprint.id, 5));
    second.discard(&top).unwrap();

    let third = top.stage_file(StagedContentSource::Bytes(b"third"), NEW).unwrap();
    assert_eq!(
        kind(top.rename(third.name(), &top, &name("nothing"), ExistingTargetPolicy::Exchange)),
        DiskErrorKind::NotFound
    );
    top.replace_with_staged(&third, &name("file")).unwrap();
    assert_eq!(f.read("file"), "third");
    assert_eq!(top.list().unwrap().len(), 1);
    assert!(top.stat(third.name()).unwrap().is_none());
    third.discard(&top).unwrap();
    top.sync().unwrap();
}

#[test]
fn symlink_targets_are_replaced_not_followed() {
    let f = DiskFixture::new();
    f.link("link", "../out/secret");
    f.link("dangling", "../out/made");
    let top = f.root_directory();
    for text in ["link", "dangling"] {
        let staged = top.stage_file(StagedContentSource::Bytes(b"mine"), NEW).unwrap();
        assert_eq!(kind(top.rename_staged_to_new(&staged, &name(text))), DiskErrorKind::Exists);
        top.replace_with_staged(&staged, &name(text)).unwrap();
        assert_eq!(f.read(text), "mine");
    }
    assert_eq!(std::fs::read(f.outside.join("secret")).unwrap(), b"secret");
    assert!(!f.outside.join("made").exists());
}

#[test]
fn renames_between_directories() {
    for resolver in BOTH_RESOLVERS {
        let f = DiskFixture::new();
        f.file("a/one", "one");
        f.file("b/two", "two");
        let root = f.root(resolver);
        let (a, b) = (root.open_directory(&rel_path("a")).unwrap(), root.open_directory(&rel_path("b")).unwrap());
        assert_eq!(kind(a.rename(&name("one"), &b, &name("two"), ExistingTargetPolicy::Refuse)), DiskErrorKind::Exists);
        a.rename(&name("one"), &b, &name("two"), ExistingTargetPolicy::Exchange).unwrap();
        assert_eq!((f.read("a/one"), f.read("b/two")), ("two".into(), "one".into()));
        a.rename(&name("one"), &b, &name("two"), ExistingTargetPolicy::Replace).unwrap();
        assert_eq!(f.read("b/two"), "two");
        assert_eq!(kind(a.rename(&name("one"), &b, &name("x"), ExistingTargetPolicy::Refuse)), DiskErrorKind::NotFound);
        b.rename(&name("two"), &a, &name("three"), ExistingTargetPolicy::Refuse).unwrap();
        assert_eq!(f.read("a/three"), "two");
    }
}

#[test]
fn hard_linked_files_are_replaced_not_edited() {
    let f = DiskFixture::new();
    f.file("file", "old");
    std::fs::hard_link(f.workspace.join("file"), f.outside.join("twin")).unwrap();
    let top = f.root_directory();
    let old = top.open_file(&name("file")).unwrap();
    assert_eq!(old.stat().hard_links, 2);
    let staged = top.stage_file(StagedContentSource::Bytes(b"new"), FileAttributeSource::CopyFrom(&old)).unwrap();
    top.rename(staged.name(), &top, &name("file"), ExistingTargetPolicy::Exchange).unwrap();
    assert_eq!(f.read("file"), "new");
    assert_eq!(std::fs::read(f.outside.join("twin")).unwrap(), b"old");
}

#[test]
fn creates_removes_and_changes_modes() {
    use std::os::unix::fs::PermissionsExt;
    let f = DiskFixture::new();
    f.file("file", "x");
    f.link("link", "../out/secret");
    let top = f.root_directory();
    top.create_directory(&name("sub"), 0o7755).unwrap();
    let sub = top.stat(&name("sub")).unwrap().unwrap();
    assert_eq!(sub.mode & 0o5000, 0);
    assert_eq!(kind(top.create_directory(&name("sub"), 0o755)), DiskErrorKind::Exists);
    top.create_symlink(&name("other"), b"anything \xff").unwrap();
    assert_eq!(top.read_link(&name("other")).unwrap(), b"anything \xff");
    top.set_mode(&name("file"), 0o6751).unwrap();
    assert_eq!(top.stat(&name("file")).unwrap().unwrap().mode, 0o751);
    assert_eq!(kind(top.set_mode(&name("link"), 0o777)), DiskErrorKind::IsSymlink);
    std::fs::set_permissions(f.workspace.join("sub"), std::fs::Permissions::from_mode(0o2755)).unwrap();
    top.set_mode(&name("sub"), 0o700).unwrap();
    assert_eq!(top.stat(&name("sub")).unwrap().unwrap().mode, 0o2700);
    assert_eq!(kind(top.remove_file(&name("sub"))), DiskErrorKind::IsDirectory);
    assert_eq!(kind(top.remove_directory(&name("file"))), DiskErrorKind::NotDirectory);
    f.file("sub/inner", "x");
    assert_eq!(kind(top.remove_directory(&name("sub"))), DiskErrorKind::NotEmpty);
    top.remove_file(&name("link")).unwrap();
    assert_eq!(std::fs::read(f.outside.join("secret")).unwrap(), b"secret");
    assert_eq!(kind(top.remove_file(&name("link"))), DiskErrorKind::NotFound);
}
