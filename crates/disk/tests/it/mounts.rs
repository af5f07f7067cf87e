//! Mounts inside the workspace, in a mount namespace of our own.

use std::process::Command;

use disk::{ErrorKind::CrossMount, Last, Over, Resolver, Root, RootOptions, StateDirectory};

use crate::{
    child::go_on_with_mounts,
    fixture::{BOTH, Fixture, kind, name, rel},
};

fn mount(words: &[&str]) {
    let output = Command::new("mount").args(words).output().unwrap();
    assert!(output.status.success(), "mount {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// `bind` is the outside bound into the workspace (same device), `tmp` another file system, `bound_file` one file.
fn tree() -> Fixture {
    let f = Fixture::new();
    f.directory("bind");
    f.directory("a/tmp");
    f.file("bound_file", "under");
    f.file("plain", "plain");
    f.link("to_bind", "bind/secret");
    mount(&["--bind", f.out.to_str().unwrap(), f.ws.join("bind").to_str().unwrap()]);
    mount(&["-t", "tmpfs", "none", f.ws.join("a/tmp").to_str().unwrap()]);
    let secret = f.out.join("secret");
    mount(&["--bind", secret.to_str().unwrap(), f.ws.join("bound_file").to_str().unwrap()]);
    f.file("a/tmp/sub/file", "other");
    f
}

/// Takes the mounts away, so that the fixture can be removed.
fn clear(f: &Fixture) {
    for path in ["bind", "a/tmp", "bound_file"] {
        Command::new("umount").arg("-l").arg(f.ws.join(path)).output().unwrap();
    }
}

#[test]
fn are_not_crossed() {
    if !go_on_with_mounts("mounts::are_not_crossed") {
        return;
    }
    let f = tree();
    for resolver in BOTH {
        let root = f.root(resolver);
        for path in ["bind", "bind/secret", "bind/new", "a/tmp", "a/tmp/sub/file", "bound_file"] {
            for last in [Last::Follow, Last::Keep] {
                assert_eq!(kind(root.canonical(&rel(path), last)), CrossMount, "{resolver:?} {path}");
            }
            assert_eq!(kind(root.stat(&rel(path))), CrossMount, "{resolver:?} {path}");
            assert_eq!(kind(root.open_file(&rel(path))), CrossMount);
            assert_eq!(kind(root.open_directory(&rel(path))), CrossMount);
        }
        assert_eq!(kind(root.canonical(&rel("to_bind"), Last::Follow)), CrossMount);
        assert_eq!(kind(root.make_directories(&rel("bind/x"), 0o755)), CrossMount);
        let top = root.open_directory(&rel(".")).unwrap();
        assert_eq!(kind(top.open_directory(&name("bind"))), CrossMount);
        assert_eq!(kind(top.stat(&name("bind"))), CrossMount);
        assert_eq!(kind(top.stat(&name("bound_file"))), CrossMount);
        assert_eq!(kind(top.open_file(&name("bound_file"))), CrossMount);
        assert_eq!(kind(top.remove_tree(&name("bind"))), CrossMount);
        assert_eq!(kind(top.remove_tree(&name("a"))), CrossMount);
        let mut unread = 0;
        let end = disk::walk(&top, disk::WalkLimits::default(), &mut |_| disk::Visit::Continue).unwrap();
        for place in &end.unread {
            assert_eq!(place.kind, CrossMount);
            unread += 1;
        }
        assert_eq!((unread, end.unread_count), (2, 2));
    }
    assert_eq!(std::fs::read(f.out.join("secret")).unwrap(), b"secret");
    clear(&f);
}

#[test]
fn are_crossed_where_allowed() {
    if !go_on_with_mounts("mounts::are_crossed_where_allowed") {
        return;
    }
    let f = tree();
    f.directory("a/tmp/sub/nested");
    mount(&["-t", "tmpfs", "none", f.ws.join("a/tmp/sub/nested").to_str().unwrap()]);
    f.file("a/tmp/sub/nested/file", "nested");
    f.link("to_tmp", "a/tmp/sub");
    for resolver in BOTH {
        let mounts = vec![rel("a/tmp/sub/nested"), rel("a/tmp"), rel("not/there")];
        let options = RootOptions { resolver, mounts, hidden: Vec::new() };
        let root = Root::open(&f.ws, options).unwrap();
        for (path, content) in [("a/tmp/sub/file", "other"), ("a/tmp/sub/nested/file", "nested")] {
            assert_eq!(root.canonical(&rel(path), Last::Follow), Ok(rel(path)));
            assert_eq!(root.open_file(&rel(path)).unwrap().read_all(9).unwrap(), content.as_bytes());
        }
        assert_eq!(root.canonical(&rel("to_tmp/file"), Last::Follow), Ok(rel("a/tmp/sub/file")));
        assert_eq!(root.canonical(&rel("a/tmp/new"), Last::Follow), Ok(rel("a/tmp/new")));
        assert_eq!(root.canonical(&rel("not/there/x"), Last::Follow), Ok(rel("not/there/x")));
        assert_eq!(kind(root.canonical(&rel("bind/secret"), Last::Follow)), CrossMount);
        let a = root.open_directory(&rel("a")).unwrap();
        let tmp = a.open_directory(&name("tmp")).unwrap();
        assert_eq!(tmp.id(), root.open_directory(&rel("a/tmp")).unwrap().id());
        assert_eq!(a.stat(&name("tmp")).unwrap().unwrap().stamp.id, tmp.id());
        let top = root.open_directory(&rel(".")).unwrap();
        assert_eq!(kind(top.open_directory(&name("bind"))), CrossMount);
        assert_eq!(kind(top.rename(&name("plain"), &tmp, &name("plain"), Over::Refuse)), CrossMount);
        root.make_directories(&rel("a/tmp/made"), 0o755).unwrap();
        root.sync_file_system().unwrap();
    }
    Command::new("umount").arg("-l").arg(f.ws.join("a/tmp/sub/nested")).output().unwrap();
    clear(&f);
}

#[test]
fn blobs_are_copied_from_another_mount() {
    if !go_on_with_mounts("mounts::blobs_are_copied_from_another_mount") {
        return;
    }
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let f = tree();
    f.file("a/tmp/file", "abc");
    let root = Root::open(&f.ws.join("a/tmp"), RootOptions::default()).unwrap();
    assert_eq!(root.resolver(), Resolver::Kernel);
    let state = StateDirectory::open(&f.out.join("state")).unwrap();
    let top = root.open_directory(&rel(".")).unwrap();
    state.adopt_blob(ABC, &top, &name("file")).unwrap();
    assert_eq!(top.stat(&name("file")).unwrap(), None);
    assert_eq!(state.open_blob(ABC).unwrap().unwrap().read_all(9).unwrap(), b"abc");
    clear(&f);
}
