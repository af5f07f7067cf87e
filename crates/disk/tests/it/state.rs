//! The state directory: closed, ours, local; blobs by content.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use disk::{Attributes, Durable, ErrorKind, Source, StateDirectory};

use crate::{
    child::is_root,
    fixture::{Fixture, kind, name},
};

/// The sha256 of `abc`.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const OTHER: &str = "00000000000000000000000000000000000000000000000000000000000000ff";

#[test]
fn opens_only_what_is_ours() {
    let f = Fixture::new();
    let path = f.out.join("deep/state");
    let state = StateDirectory::open(&path).unwrap();
    let stat = std::fs::metadata(&path).unwrap();
    assert_eq!((state.id().ino, stat.mode() & 0o777), (stat.ino(), 0o700));
    assert_eq!(state.path(), path);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    StateDirectory::open(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    std::os::unix::fs::symlink(&path, f.out.join("link")).unwrap();
    assert_eq!(kind(StateDirectory::open(&f.out.join("link"))), ErrorKind::IsLink);
    std::fs::write(f.out.join("file"), "").unwrap();
    assert!(StateDirectory::open(&f.out.join("file")).is_err());
    if is_root() {
        std::os::unix::fs::chown(&path, Some(1234), None).unwrap();
        assert_eq!(kind(StateDirectory::open(&path)), ErrorKind::Denied);
    } else {
        eprintln!("NOT RUN: foreign owners need root");
    }
}

#[test]
fn secrets_are_private_and_whole() {
    let f = Fixture::new();
    let state = StateDirectory::open(&f.out.join("state")).unwrap();
    assert_eq!(state.read_secret("key").unwrap(), None);
    state.write_secret("key", b"one").unwrap();
    state.write_secret("key", b"two").unwrap();
    assert_eq!(state.read_secret("key").unwrap().as_deref(), Some(b"two".as_slice()));
    let stat = std::fs::metadata(state.path().join("key")).unwrap();
    assert_eq!(stat.mode() & 0o7777, 0o600);
    assert!(state.write_secret("../key", b"x").is_err());
    assert!(state.read_secret("a/b").is_err());
    assert!(state.directory("../x").is_err());
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 1);
    let sub = state.directory("trash/a").unwrap();
    assert_eq!(sub.stat_self().unwrap().mode, 0o700);
}

#[test]
fn blobs_come_and_go() {
    let f = Fixture::new();
    let state = StateDirectory::open(&f.out.join("state")).unwrap();
    assert!(state.open_blob(ABC).unwrap().is_none());
    assert!(!state.remove_blob(ABC).unwrap());
    state.put_blob(ABC, Source::Bytes(b"abc"), Durable::Later).unwrap();
    state.put_blob(ABC, Source::Bytes(b"abc"), Durable::Now).unwrap();
    assert_eq!(state.open_blob(ABC).unwrap().unwrap().read_all(9).unwrap(), b"abc");
    let blobs = state.path().join("blobs/ba");
    assert_eq!(std::fs::read_dir(&blobs).unwrap().count(), 1);
    assert_eq!(std::fs::metadata(blobs.join(ABC)).unwrap().mode() & 0o7777, 0o400);
    assert!(state.remove_blob(ABC).unwrap());
    assert!(state.open_blob(ABC).unwrap().is_none());
    for bad in ["", "abc", &ABC.to_uppercase(), "../../../../etc/passwd", &format!("{ABC}0")] {
        assert!(state.put_blob(bad, Source::Bytes(b""), Durable::Later).is_err());
        assert!(state.open_blob(bad).is_err());
    }
}

#[test]
fn a_file_is_copied_only_if_it_has_the_hash() {
    let f = Fixture::new();
    f.file("file", "abc");
    let state = StateDirectory::open(&f.out.join("state")).unwrap();
    let file = f.top().open_file(&name("file")).unwrap();
    assert_eq!(kind(state.put_blob(OTHER, Source::File(&file), Durable::Now)), ErrorKind::Moved);
    assert!(state.open_blob(OTHER).unwrap().is_none());
    assert_eq!(std::fs::read_dir(state.path().join("blobs/00")).unwrap().count(), 0);
    state.put_blob(ABC, Source::File(&file), Durable::Now).unwrap();
    assert_eq!(state.open_blob(ABC).unwrap().unwrap().hash().unwrap().1, 3);
}

#[test]
fn adopts_moved_linked_and_known_files() {
    let f = Fixture::new();
    let state = StateDirectory::open(&f.out.join("state")).unwrap();
    let top = f.top();
    f.file("moved", "abc");
    let inode = std::fs::metadata(f.ws.join("moved")).unwrap().ino();
    state.adopt_blob(ABC, &top, &name("moved")).unwrap();
    assert_eq!(state.open_blob(ABC).unwrap().unwrap().stat().stamp.id.ino, inode);
    // Known already: only the name goes.
    f.file("again", "abc");
    state.adopt_blob(ABC, &top, &name("again")).unwrap();
    assert_eq!(state.open_blob(ABC).unwrap().unwrap().stat().stamp.id.ino, inode);
    state.remove_blob(ABC).unwrap();
    // A second name could change the bytes later: copied.
    f.file("twin", "abc");
    std::fs::hard_link(f.ws.join("twin"), f.out.join("twin")).unwrap();
    state.adopt_blob(ABC, &top, &name("twin")).unwrap();
    std::fs::write(f.out.join("twin"), "changed").unwrap();
    assert_eq!(state.open_blob(ABC).unwrap().unwrap().read_all(9).unwrap(), b"abc");
    assert_eq!(top.list().unwrap(), []);
    f.link("link", "../out/twin");
    assert_eq!(kind(state.adopt_blob(ABC, &top, &name("link"))), ErrorKind::IsLink);
}

#[test]
fn adopts_what_an_exchange_left() {
    let f = Fixture::new();
    let state = StateDirectory::open(&f.out.join("state")).unwrap();
    f.file("file", "abc");
    let top = f.top();
    let staged = top.stage(Source::Bytes(b"new"), Attributes::New { mode: 0o644 }).unwrap();
    top.exchange(&staged, &name("file")).unwrap();
    state.adopt_blob(ABC, &top, staged.name()).unwrap();
    assert_eq!(f.read("file"), "new");
    assert_eq!(state.open_blob(ABC).unwrap().unwrap().read_all(9).unwrap(), b"abc");
}

#[test]
fn time_and_chance() {
    let clock = disk::SystemClock::new();
    assert!(clock.now_ms() > 1_700_000_000_000);
    assert!(clock.monotonic_ms() <= clock.monotonic_ms());
    assert_eq!(clock.boot_id(), disk::SystemClock::new().boot_id());
    assert_ne!(disk::random_bytes::<32>().unwrap(), disk::random_bytes::<32>().unwrap());
}
