//! Renames: who wins is decided by the kernel, in the same step.

use disk::{Attributes, ErrorKind, Over, Source};

use crate::fixture::{BOTH, Fixture, kind, name, rel};

const NEW: Attributes<'_> = Attributes::New { mode: 0o644 };

#[test]
fn places_exchanges_and_replaces() {
    let f = Fixture::new();
    let top = f.top();
    let first = top.stage(Source::Bytes(b"first"), NEW).unwrap();
    top.place_new(&first, &name("file")).unwrap();
    assert_eq!(f.read("file"), "first");
    assert_eq!(top.stat(&name("file")).unwrap().unwrap().stamp.id, first.id());
    assert_eq!(first.stamp().unwrap().id, first.id());

    let second = top.stage(Source::Bytes(b"second"), NEW).unwrap();
    assert_eq!(kind(top.place_new(&second, &name("file"))), ErrorKind::Exists);
    assert_eq!(f.read("file"), "first");
    top.exchange(&second, &name("file")).unwrap();
    assert_eq!(f.read("file"), "second");
    // The old file is under the temporary name, and is the very same file.
    let old = top.adopt_staged(second.name()).unwrap().unwrap();
    assert_eq!((old.id(), old.size()), (first.id(), 5));
    old.discard(&top).unwrap();

    let third = top.stage(Source::Bytes(b"third"), NEW).unwrap();
    assert_eq!(kind(top.exchange(&third, &name("nothing"))), ErrorKind::NotFound);
    top.replace(&third, &name("file")).unwrap();
    assert_eq!(f.read("file"), "third");
    assert_eq!(top.list().unwrap().len(), 1);
    assert!(top.adopt_staged(third.name()).unwrap().is_none());
    third.discard(&top).unwrap();
    top.sync().unwrap();
}

#[test]
fn a_link_in_the_way_is_replaced_and_never_followed() {
    let f = Fixture::new();
    f.link("link", "../out/secret");
    f.link("dangling", "../out/made");
    let top = f.top();
    for text in ["link", "dangling"] {
        let staged = top.stage(Source::Bytes(b"mine"), NEW).unwrap();
        assert_eq!(kind(top.place_new(&staged, &name(text))), ErrorKind::Exists);
        top.replace(&staged, &name(text)).unwrap();
        assert_eq!(f.read(text), "mine");
    }
    assert_eq!(std::fs::read(f.out.join("secret")).unwrap(), b"secret");
    assert!(!f.out.join("made").exists());
}

#[test]
fn renames_between_directories() {
    for resolver in BOTH {
        let f = Fixture::new();
        f.file("a/one", "one");
        f.file("b/two", "two");
        let root = f.root(resolver);
        let (a, b) = (root.open_directory(&rel("a")).unwrap(), root.open_directory(&rel("b")).unwrap());
        assert_eq!(kind(a.rename(&name("one"), &b, &name("two"), Over::Refuse)), ErrorKind::Exists);
        a.rename(&name("one"), &b, &name("two"), Over::Exchange).unwrap();
        assert_eq!((f.read("a/one"), f.read("b/two")), ("two".into(), "one".into()));
        a.rename(&name("one"), &b, &name("two"), Over::Replace).unwrap();
        assert_eq!(f.read("b/two"), "two");
        assert_eq!(kind(a.rename(&name("one"), &b, &name("x"), Over::Refuse)), ErrorKind::NotFound);
        b.rename(&name("two"), &a, &name("three"), Over::Refuse).unwrap();
        assert_eq!(f.read("a/three"), "two");
    }
}

#[test]
fn hard_linked_files_are_replaced_not_edited() {
    let f = Fixture::new();
    f.file("file", "old");
    std::fs::hard_link(f.ws.join("file"), f.out.join("twin")).unwrap();
    let top = f.top();
    let old = top.open_file(&name("file")).unwrap();
    assert_eq!(old.stat().links, 2);
    let staged = top.stage(Source::Bytes(b"new"), Attributes::Like(&old)).unwrap();
    top.exchange(&staged, &name("file")).unwrap();
    assert_eq!(f.read("file"), "new");
    assert_eq!(std::fs::read(f.out.join("twin")).unwrap(), b"old");
}

#[test]
fn small_changes() {
    use std::os::unix::fs::PermissionsExt;
    let f = Fixture::new();
    f.file("file", "x");
    f.link("link", "../out/secret");
    let top = f.top();
    top.make_directory(&name("sub"), 0o7755).unwrap();
    let sub = top.stat(&name("sub")).unwrap().unwrap();
    assert_eq!(sub.mode & 0o5000, 0);
    assert_eq!(kind(top.make_directory(&name("sub"), 0o755)), ErrorKind::Exists);
    top.make_link(&name("other"), b"anything \xff").unwrap();
    assert_eq!(top.read_link(&name("other")).unwrap(), b"anything \xff");
    top.set_mode(&name("file"), 0o6751).unwrap();
    assert_eq!(top.stat(&name("file")).unwrap().unwrap().mode, 0o751);
    assert_eq!(kind(top.set_mode(&name("link"), 0o777)), ErrorKind::IsLink);
    std::fs::set_permissions(f.ws.join("sub"), std::fs::Permissions::from_mode(0o2755)).unwrap();
    top.set_mode(&name("sub"), 0o700).unwrap();
    assert_eq!(top.stat(&name("sub")).unwrap().unwrap().mode, 0o2700);
    assert_eq!(kind(top.remove_file(&name("sub"))), ErrorKind::IsDirectory);
    assert_eq!(kind(top.remove_directory(&name("file"))), ErrorKind::NotDirectory);
    f.file("sub/inner", "x");
    assert_eq!(kind(top.remove_directory(&name("sub"))), ErrorKind::NotEmpty);
    top.remove_file(&name("link")).unwrap();
    assert_eq!(std::fs::read(f.out.join("secret")).unwrap(), b"secret");
    assert_eq!(kind(top.remove_file(&name("link"))), ErrorKind::NotFound);
}
