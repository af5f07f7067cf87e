//! Removing trees: deep, closed, linked, hidden.

use std::os::unix::fs::PermissionsExt;

use disk::{Directory, ErrorKind, Removed, Resolver};
use path::RelPath;

use crate::{
    child::{go_on_unprivileged, is_child, must_pass},
    fixture::{BOTH, Fixture, kind, name},
};

/// Deeper than any path.
const LEVELS: u64 = 10_000;

fn dig(top: &Directory, levels: u64) {
    let mut current = top.try_clone().unwrap();
    for level in 0..levels {
        current.make_directory(&name("d"), 0o755).unwrap();
        let next = current.open_directory(&name("d")).unwrap();
        if level % 10 == 0 {
            next.make_link(&name("link"), b"..").unwrap();
        }
        current = next;
    }
}

#[test]
fn ten_thousand_levels_with_few_handles() {
    if !is_child() {
        // 96 handles are enough for 64 directories and what the test itself holds.
        must_pass(
            &["sh", "-c", "ulimit -n 96 && exec \"$@\"", "sh"],
            "remove::ten_thousand_levels_with_few_handles",
        );
        return;
    }
    for resolver in BOTH {
        let f = Fixture::in_memory();
        let top = f.root(resolver).open_directory(&RelPath::root()).unwrap();
        dig(&top, LEVELS);
        let removed = top.remove_tree(&name("d")).unwrap();
        assert_eq!(removed, Removed { files: LEVELS / 10, directories: LEVELS, bytes: LEVELS / 5 });
        assert_eq!(top.list().unwrap(), []);
    }
}

#[test]
fn links_are_removed_and_their_targets_stay() {
    let f = Fixture::new();
    f.file("tree/a/file", "123");
    f.file("keep", "kept");
    f.link("tree/out", "../../out");
    f.link("tree/a/keep", "../../keep");
    f.link("tree/loop", "loop");
    let top = f.top();
    let removed = top.remove_tree(&name("tree")).unwrap();
    assert_eq!((removed.files, removed.directories), (4, 2));
    assert_eq!(f.read("keep"), "kept");
    assert_eq!(std::fs::read(f.out.join("secret")).unwrap(), b"secret");
    assert_eq!(kind(top.remove_tree(&name("tree"))), ErrorKind::NotFound);
    f.link("link", "../out");
    assert_eq!(top.remove_tree(&name("link")).unwrap().files, 1);
    assert!(f.out.exists());
    assert_eq!(top.remove_tree(&name("keep")).unwrap(), Removed { files: 1, directories: 0, bytes: 4 });
}

#[test]
fn closed_directories_are_opened_first() {
    if !go_on_unprivileged("remove::closed_directories_are_opened_first") {
        return;
    }
    let f = Fixture::new();
    f.file("tree/a/b/file", "x");
    for path in ["tree/a/b", "tree/a", "tree"] {
        std::fs::set_permissions(f.ws.join(path), std::fs::Permissions::from_mode(0o000)).unwrap();
    }
    let removed = f.top().remove_tree(&name("tree")).unwrap();
    assert_eq!((removed.files, removed.directories), (1, 3));
}

#[test]
fn stops_at_what_is_hidden() {
    use std::os::unix::fs::MetadataExt;
    let f = Fixture::new();
    f.file("tree/state/db", "x");
    let state = std::fs::metadata(f.ws.join("tree/state")).unwrap();
    for resolver in [Resolver::Kernel, Resolver::Walker] {
        let hidden = vec![disk::FileId { dev: state.dev(), ino: state.ino() }];
        let options = disk::RootOptions { resolver, hidden, ..Default::default() };
        let top = disk::Root::open(&f.ws, options).unwrap().open_directory(&RelPath::root()).unwrap();
        assert_eq!(kind(top.remove_tree(&name("tree"))), ErrorKind::Hidden);
        assert_eq!(f.read("tree/state/db"), "x");
    }
}
