//! Tests reading: limits, ranges, hashes, and special files that must never be opened.

use std::os::unix::net::UnixListener;

use rustix::fs::{CWD, Mode};
use stead_disk::{DiskErrorKind, FileType};

use crate::{
    child_process::{is_root, rerun_unprivileged},
    fixture::{BOTH_RESOLVERS, DiskFixture, kind, name, rel_path},
};

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn hex(digest: [u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn reads_with_limits() {
    let f = DiskFixture::new();
    f.file("abc", "abc");
    f.file("empty", "");
    let large: Vec<u8> = (0..700_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    f.file("large", &large);
    for resolver in BOTH_RESOLVERS {
        let root = f.root(resolver);
        let abc = root.open_file(&rel_path("abc")).unwrap();
        assert_eq!(abc.read_all(3).unwrap(), b"abc");
        assert_eq!(kind(abc.read_all(2)), DiskErrorKind::TooLarge);
        assert_eq!(abc.read_range(1, 1).unwrap(), b"b");
        assert_eq!(abc.read_range(1, 100).unwrap(), b"bc");
        assert_eq!(abc.read_range(3, 100).unwrap(), b"");
        assert_eq!(abc.read_range(u64::MAX, 1).unwrap(), b"");
        assert_eq!(abc.read_range(0, usize::MAX).unwrap(), b"abc");
        let (digest, size) = abc.hash().unwrap();
        assert_eq!((hex(digest).as_str(), size), (ABC, 3));
        assert_eq!(abc.read_and_hash(3).unwrap(), (b"abc".to_vec(), digest));
        assert_eq!(root.open_file(&rel_path("empty")).unwrap().read_all(0).unwrap(), b"");
        let file = root.open_file(&rel_path("large")).unwrap();
        assert_eq!(file.read_all(u64::MAX).unwrap(), large);
        assert_eq!(file.hash().unwrap().1, 700_000);
        assert_eq!(file.read_range(300_000, 300_000).unwrap(), large[300_000..600_000]);
    }
}

#[test]
fn reading_a_growing_file_terminates() {
    let f = DiskFixture::new();
    f.file("log", "abc");
    let file = f.root_directory().open_file(&name("log")).unwrap();
    f.file("log", "abcdef");
    assert_eq!(hex(file.hash().unwrap().0), ABC);
    assert_eq!(file.read_all(10).unwrap(), b"abcdef");
    assert_eq!(kind(file.read_all(5)), DiskErrorKind::TooLarge);
    assert_ne!(file.stat().fingerprint, file.restat().unwrap().fingerprint);
}

#[test]
fn special_files_never_block_and_are_never_opened() {
    let f = DiskFixture::new();
    rustix::fs::mkfifoat(CWD, f.workspace.join("fifo"), Mode::from_raw_mode(0o600)).unwrap();
    let _listener = UnixListener::bind(f.workspace.join("socket")).unwrap();
    let mut cases = vec![("fifo", FileType::Fifo), ("socket", FileType::Socket)];
    if is_root() {
        let null = rustix::fs::makedev(1, 3);
        let mode = Mode::from_raw_mode(0o666);
        rustix::fs::mknodat(CWD, f.workspace.join("null"), rustix::fs::FileType::CharacterDevice, mode, null).unwrap();
        cases.push(("null", FileType::CharacterDevice));
    } else {
        eprintln!("NOT RUN: device nodes need root");
    }
    for resolver in BOTH_RESOLVERS {
        let root = f.root(resolver);
        let top = root.open_directory(&rel_path(".")).unwrap();
        for (text, file_type) in &cases {
            assert_eq!(kind(root.open_file(&rel_path(text))), DiskErrorKind::NotRegularFile);
            assert_eq!(kind(top.open_file(&name(text))), DiskErrorKind::NotRegularFile);
            assert_eq!(kind(root.open_directory(&rel_path(text))), DiskErrorKind::NotDirectory);
            assert_eq!(kind(top.set_mode(&name(text), 0o600)), DiskErrorKind::NotRegularFile);
            assert_eq!(root.stat(&rel_path(text)).unwrap().unwrap().file_type, *file_type);
            assert_eq!(root.canonicalize(&rel_path(text), stead_disk::FinalSymlink::Follow), Ok(rel_path(text)));
        }
    }
}

#[test]
fn lists_and_stats_without_following() {
    let f = DiskFixture::new();
    f.file("file", "12345");
    f.link("link", "../out/secret");
    f.directory("sub");
    std::fs::hard_link(f.workspace.join("file"), f.workspace.join("twin")).unwrap();
    for resolver in BOTH_RESOLVERS {
        let root = f.root(resolver);
        let top = root.open_directory(&rel_path(".")).unwrap();
        let mut listed: Vec<(String, FileType)> =
            top.list().unwrap().into_iter().map(|e| (e.name.to_string(), e.file_type)).collect();
        listed.sort_by(|one, two| one.0.cmp(&two.0));
        let expected = [
            ("file", FileType::RegularFile),
            ("link", FileType::Symlink),
            ("sub", FileType::Directory),
            ("twin", FileType::RegularFile),
        ];
        assert_eq!(listed, expected.map(|(name, file_type)| (name.to_owned(), file_type)));
        assert_eq!(top.list().unwrap().len(), 4);
        let stat = top.stat(&name("file")).unwrap().unwrap();
        assert_eq!((stat.size, stat.hard_links, stat.file_type), (5, 2, FileType::RegularFile));
        assert_eq!(Some(stat), root.stat(&rel_path("file")).unwrap());
        assert_eq!(top.stat(&name("link")).unwrap().unwrap().file_type, FileType::Symlink);
        assert_eq!(top.read_link(&name("link")).unwrap(), b"../out/secret");
        assert_eq!(top.stat(&name("nope")).unwrap(), None);
        assert_eq!(kind(top.open_directory(&name("link"))), DiskErrorKind::IsSymlink);
        assert_eq!(top.stat_self().unwrap().fingerprint.id, root.id());
        assert!(stat.created_ns.is_none_or(|born| born > 0 && born <= stat.modified_ns + 1_000_000_000));
    }
}

#[test]
fn unreadable_directories_can_be_traversed() {
    if !rerun_unprivileged("reading::unreadable_directories_can_be_traversed") {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let f = DiskFixture::new();
    f.file("dark/file", "x");
    f.file("closed/file", "x");
    f.file("secret", "x");
    let set = |path: &str, mode| {
        std::fs::set_permissions(f.workspace.join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set("dark", 0o111);
    set("closed", 0o000);
    set("secret", 0o000);
    for resolver in BOTH_RESOLVERS {
        let root = f.root(resolver);
        assert_eq!(root.open_file(&rel_path("dark/file")).unwrap().read_all(9).unwrap(), b"x");
        let dark = root.open_directory(&rel_path("dark")).unwrap();
        assert_eq!(kind(dark.list()), DiskErrorKind::PermissionDenied);
        assert_eq!(kind(root.open_file(&rel_path("closed/file"))), DiskErrorKind::PermissionDenied);
        assert_eq!(
            kind(root.canonicalize(&rel_path("closed/file"), stead_disk::FinalSymlink::Follow)),
            DiskErrorKind::PermissionDenied
        );
        assert_eq!(kind(root.open_file(&rel_path("secret"))), DiskErrorKind::PermissionDenied);
    }
    set("dark", 0o755);
    set("closed", 0o755);
}

#[test]
fn open_listed_file_opens_regular_files_only() {
    let f = DiskFixture::new();
    f.file("d/abc", "abc");
    f.link("d/link", "abc");
    f.link("d/out", f.outside.join("secret"));
    f.link("linked", "d");
    f.file("state/db", "x");
    rustix::fs::mkfifoat(CWD, f.workspace.join("d/fifo"), Mode::RWXU).unwrap();
    let _socket = UnixListener::bind(f.workspace.join("d/socket")).unwrap();
    let large: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    f.file("d/large", &large);
    let root = f.root(stead_disk::PathResolutionMethod::Kernel);
    let id = root.open_directory(&rel_path("state")).unwrap().id();
    for resolver in BOTH_RESOLVERS {
        let options =
            stead_disk::RootDirectoryOptions { resolver, hidden_inodes: vec![id], allowed_mounts: Vec::new() };
        let top =
            stead_disk::RootDirectory::open(&f.workspace, options).unwrap().open_directory(&rel_path(".")).unwrap();
        assert_eq!(kind(top.open_and_list(&name("state"))), DiskErrorKind::Hidden);
        assert!(top.open_and_list(&name("linked")).is_err() && top.open_and_list(&name("nothing")).is_err());
        let (directory, mut entries) = top.open_and_list(&name("d")).unwrap();
        entries.sort_by(|one, two| one.name.cmp(&two.name));
        let mut again = directory.list().unwrap();
        again.sort_by(|one, two| one.name.cmp(&two.name));
        assert_eq!(entries, again);
        assert_eq!(entries.len(), 6);
        let mut bytes = b"earlier".to_vec();
        let abc = directory.open_listed_file(&name("abc")).unwrap();
        abc.read_into(&mut bytes, 3, &|_| true).unwrap();
        assert_eq!(bytes, b"abc");
        assert_eq!(kind(abc.read_into(&mut bytes, 2, &|_| true)), DiskErrorKind::TooLarge);
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
