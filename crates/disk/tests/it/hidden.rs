//! What is hidden cannot be named, entered, listed, moved or replaced; by identity, not by name.

use std::os::unix::fs::MetadataExt;

use disk::{
    Attributes, Directory, ErrorKind::Hidden, FileId, Last, Over, Resolver, Root, RootOptions, Source,
};

use crate::fixture::{BOTH, Fixture, kind, name, rel};

fn tree() -> (Fixture, FileId) {
    let f = Fixture::new();
    f.file("a/state/blobs/db", "x");
    f.file("a/open", "x");
    f.link("to_state", "a/state");
    f.link("to_db", "a/state/blobs/db");
    let stat = std::fs::metadata(f.ws.join("a/state")).unwrap();
    (f, FileId { dev: stat.dev(), ino: stat.ino() })
}

fn open(f: &Fixture, resolver: Resolver, hidden: FileId) -> Root {
    Root::open(&f.ws, RootOptions { resolver, hidden: vec![hidden], mounts: Vec::new() }).unwrap()
}

#[test]
fn no_path_leads_in() {
    let (f, id) = tree();
    for resolver in BOTH {
        let root = open(&f, resolver, id);
        for path in ["a/state", "a/state/blobs", "a/state/blobs/db", "a/state/nothing", "a/state/x/y"] {
            for last in [Last::Follow, Last::Keep] {
                assert_eq!(kind(root.canonical(&rel(path), last)), Hidden, "{resolver:?} {path}");
            }
            assert_eq!(kind(root.stat(&rel(path))), Hidden, "{resolver:?} {path}");
            assert_eq!(kind(root.open_file(&rel(path))), Hidden);
            assert_eq!(kind(root.open_directory(&rel(path))), Hidden);
            assert_eq!(kind(root.read_link(&rel(path))), Hidden);
            assert_eq!(kind(root.make_directories(&rel(path), 0o755)), Hidden);
        }
        for path in ["to_state", "to_db", "to_state/blobs"] {
            assert_eq!(kind(root.canonical(&rel(path), Last::Follow)), Hidden);
        }
        assert_eq!(root.canonical(&rel("to_state"), Last::Keep), Ok(rel("to_state")));
        assert_eq!(root.open_file(&rel("a/open")).unwrap().read_all(9).unwrap(), b"x");
    }
}

#[test]
fn no_name_works_on_it() {
    let (f, id) = tree();
    for resolver in BOTH {
        let root = open(&f, resolver, id);
        let a: Directory = root.open_directory(&rel("a")).unwrap();
        let state = name("state");
        assert_eq!(a.list().unwrap().len(), 1);
        assert_eq!(kind(a.stat(&state)), Hidden);
        assert_eq!(kind(a.open_directory(&state)), Hidden);
        assert_eq!(kind(a.remove_directory(&state)), Hidden);
        assert_eq!(kind(a.remove_tree(&state)), Hidden);
        assert_eq!(kind(a.set_mode(&state, 0o777)), Hidden);
        assert_eq!(kind(a.rename(&state, &a, &name("moved"), Over::Refuse)), Hidden);
        let staged = a.stage(Source::Bytes(b"x"), Attributes::New { mode: 0o600 }).unwrap();
        assert_eq!(kind(a.exchange(&staged, &state)), Hidden);
        staged.discard(&a).unwrap();
    }
}

#[test]
fn it_stays_hidden_when_a_directory_above_is_renamed() {
    let (f, id) = tree();
    for (resolver, from, to) in [(Resolver::Kernel, "a", "b"), (Resolver::Walker, "b", "c")] {
        let root = open(&f, resolver, id);
        let top = root.open_directory(&rel(".")).unwrap();
        top.rename(&name(from), &top, &name(to), Over::Refuse).unwrap();
        assert_eq!(kind(root.stat(&rel(&format!("{to}/state/blobs/db")))), Hidden);
        assert_eq!(kind(root.canonical(&rel(&format!("{to}/state/new")), Last::Follow)), Hidden);
    }
}

#[test]
fn a_hidden_root_cannot_be_opened() {
    let f = Fixture::new();
    let id = f.root(Resolver::Kernel).id();
    let options = RootOptions { hidden: vec![id], ..RootOptions::default() };
    assert_eq!(kind(Root::open(&f.ws, options)), Hidden);
}
