//! Reading: limits, ranges, hashes, and special files that must never be opened.

use std::os::unix::net::UnixListener;

use disk::{ErrorKind, FileType};
use rustix::fs::{CWD, Mode};

use crate::{
    child::{go_on_unprivileged, is_root},
    fixture::{BOTH, Fixture, kind, name, rel},
};

/// The sha256 of `abc`.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn hex(digest: [u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn reads_with_limits() {
    let f = Fixture::new();
    f.file("abc", "abc");
    f.file("empty", "");
    let large: Vec<u8> = (0..700_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    f.file("large", &large);
    for resolver in BOTH {
        let root = f.root(resolver);
        let abc = root.open_file(&rel("abc")).unwrap();
        assert_eq!(abc.read_all(3).unwrap(), b"abc");
        assert_eq!(kind(abc.read_all(2)), ErrorKind::TooLarge);
        assert_eq!(abc.read_range(1, 1).unwrap(), b"b");
        assert_eq!(abc.read_range(1, 100).unwrap(), b"bc");
        assert_eq!(abc.read_range(3, 100).unwrap(), b"");
        assert_eq!(abc.read_range(u64::MAX, 1).unwrap(), b"");
        assert_eq!(abc.read_range(0, usize::MAX).unwrap(), b"abc");
        let (digest, size) = abc.hash().unwrap();
        assert_eq!((hex(digest).as_str(), size), (ABC, 3));
        assert_eq!(abc.read_and_hash(3).unwrap(), (b"abc".to_vec(), digest));
        assert_eq!(root.open_file(&rel("empty")).unwrap().read_all(0).unwrap(), b"");
        let file = root.open_file(&rel("large")).unwrap();
        assert_eq!(file.read_all(u64::MAX).unwrap(), large);
        assert_eq!(file.hash().unwrap().1, 700_000);
        assert_eq!(file.read_range(300_000, 300_000).unwrap(), large[300_000..600_000]);
    }
}

#[test]
fn a_growing_file_ends() {
    let f = Fixture::new();
    f.file("log", "abc");
    let file = f.top().open_file(&name("log")).unwrap();
    f.file("log", "abcdef");
    assert_eq!(hex(file.hash().unwrap().0), ABC);
    assert_eq!(file.read_all(10).unwrap(), b"abcdef");
    assert_eq!(kind(file.read_all(5)), ErrorKind::TooLarge);
    assert_ne!(file.stat().stamp, file.stat_now().unwrap().stamp);
}

#[test]
fn special_files_never_block_and_are_never_opened() {
    let f = Fixture::new();
    rustix::fs::mkfifoat(CWD, f.ws.join("fifo"), Mode::from_raw_mode(0o600)).unwrap();
    let _listener = UnixListener::bind(f.ws.join("socket")).unwrap();
    let mut cases = vec![("fifo", FileType::Fifo), ("socket", FileType::Socket)];
    if is_root() {
        let null = rustix::fs::makedev(1, 3);
        let mode = Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(CWD, f.ws.join("null"), rustix::fs::FileType::CharacterDevice, mode, null)
            .unwrap();
        cases.push(("null", FileType::CharDevice));
    } else {
        eprintln!("NOT RUN: device nodes need root");
    }
    for resolver in BOTH {
        let root = f.root(resolver);
        let top = root.open_directory(&rel(".")).unwrap();
        for (text, file_type) in &cases {
            assert_eq!(kind(root.open_file(&rel(text))), ErrorKind::NotRegular);
            assert_eq!(kind(top.open_file(&name(text))), ErrorKind::NotRegular);
            assert_eq!(kind(root.open_directory(&rel(text))), ErrorKind::NotDirectory);
            assert_eq!(kind(top.set_mode(&name(text), 0o600)), ErrorKind::NotRegular);
            assert_eq!(kind(top.adopt_staged(&name(text))), ErrorKind::NotRegular);
            assert_eq!(root.stat(&rel(text)).unwrap().unwrap().file_type, *file_type);
            assert_eq!(root.canonical(&rel(text), disk::Last::Follow), Ok(rel(text)));
        }
    }
}

#[test]
fn lists_and_stats_without_following() {
    let f = Fixture::new();
    f.file("file", "12345");
    f.link("link", "../out/secret");
    f.directory("sub");
    std::fs::hard_link(f.ws.join("file"), f.ws.join("twin")).unwrap();
    for resolver in BOTH {
        let root = f.root(resolver);
        let top = root.open_directory(&rel(".")).unwrap();
        let mut listed: Vec<(String, FileType)> =
            top.list().unwrap().into_iter().map(|e| (e.name.to_string(), e.file_type)).collect();
        listed.sort_by(|one, two| one.0.cmp(&two.0));
        let expected = [
            ("file", FileType::File),
            ("link", FileType::Link),
            ("sub", FileType::Directory),
            ("twin", FileType::File),
        ];
        assert_eq!(listed, expected.map(|(name, file_type)| (name.to_owned(), file_type)));
        // A second listing of the same handle starts from the beginning.
        assert_eq!(top.list().unwrap().len(), 4);
        let stat = top.stat(&name("file")).unwrap().unwrap();
        assert_eq!((stat.size, stat.links, stat.file_type), (5, 2, FileType::File));
        assert_eq!(Some(stat), root.stat(&rel("file")).unwrap());
        assert_eq!(top.stat(&name("link")).unwrap().unwrap().file_type, FileType::Link);
        assert_eq!(top.read_link(&name("link")).unwrap(), b"../out/secret");
        assert_eq!(top.stat(&name("nope")).unwrap(), None);
        assert_eq!(kind(top.open_directory(&name("link"))), ErrorKind::IsLink);
        assert_eq!(top.stat_self().unwrap().stamp.id, root.id());
        assert!(stat.born_ns.is_none_or(|born| born > 0 && born <= stat.modified_ns + 1_000_000_000));
    }
}

#[test]
fn what_may_be_searched_but_not_read_can_be_passed() {
    if !go_on_unprivileged("reading::what_may_be_searched_but_not_read_can_be_passed") {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let f = Fixture::new();
    f.file("dark/file", "x");
    f.file("closed/file", "x");
    f.file("secret", "x");
    let set = |path: &str, mode| {
        std::fs::set_permissions(f.ws.join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set("dark", 0o111);
    set("closed", 0o000);
    set("secret", 0o000);
    for resolver in BOTH {
        let root = f.root(resolver);
        assert_eq!(root.open_file(&rel("dark/file")).unwrap().read_all(9).unwrap(), b"x");
        let dark = root.open_directory(&rel("dark")).unwrap();
        assert_eq!(kind(dark.list()), ErrorKind::Denied);
        assert_eq!(kind(root.open_file(&rel("closed/file"))), ErrorKind::Denied);
        assert_eq!(kind(root.canonical(&rel("closed/file"), disk::Last::Follow)), ErrorKind::Denied);
        assert_eq!(kind(root.open_file(&rel("secret"))), ErrorKind::Denied);
    }
    set("dark", 0o755);
    set("closed", 0o755);
}

#[test]
fn a_listed_file_is_opened_in_one_step_and_nothing_else_is_read() {
    let f = Fixture::new();
    f.file("d/abc", "abc");
    f.link("d/link", "abc");
    f.link("d/out", f.out.join("secret"));
    f.link("linked", "d");
    f.file("state/db", "x");
    rustix::fs::mkfifoat(CWD, f.ws.join("d/fifo"), Mode::RWXU).unwrap();
    let _socket = UnixListener::bind(f.ws.join("d/socket")).unwrap();
    let large: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    f.file("d/large", &large);
    let root = f.root(disk::Resolver::Kernel);
    let id = root.open_directory(&rel("state")).unwrap().id();
    for resolver in BOTH {
        let options = disk::RootOptions { resolver, hidden: vec![id], mounts: Vec::new() };
        let top = disk::Root::open(&f.ws, options).unwrap().open_directory(&rel(".")).unwrap();
        assert_eq!(kind(top.enter(&name("state"))), ErrorKind::Hidden);
        assert!(top.enter(&name("linked")).is_err() && top.enter(&name("nothing")).is_err());
        let (directory, mut entries) = top.enter(&name("d")).unwrap();
        entries.sort_by(|one, two| one.name.cmp(&two.name));
        let mut again = directory.list().unwrap();
        again.sort_by(|one, two| one.name.cmp(&two.name));
        assert_eq!(entries, again);
        assert_eq!(entries.len(), 6);
        let mut bytes = b"earlier".to_vec();
        let abc = directory.open_listed_file(&name("abc")).unwrap();
        abc.read_into(&mut bytes, 3, &|_| true).unwrap();
        assert_eq!(bytes, b"abc");
        assert_eq!(kind(abc.read_into(&mut bytes, 2, &|_| true)), ErrorKind::TooLarge);
        let file = directory.open_listed_file(&name("large")).unwrap();
        file.read_into(&mut bytes, u64::MAX, &|_| true).unwrap();
        assert_eq!(bytes, large);
        file.read_into(&mut bytes, u64::MAX, &|_| false).unwrap();
        assert!(bytes.len() < large.len() && large.starts_with(&bytes));
        for other in ["link", "out", "fifo", "socket", "nothing"] {
            assert!(directory.open_listed_file(&name(other)).is_err(), "{resolver:?} {other}");
        }
    }
}
