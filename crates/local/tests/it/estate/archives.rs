//! Workspaces as archives: what goes out comes in again, and an archive that means harm leaves nothing.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use engine::Kind;
use local::{Copied, Estate, WorkspaceAsk};
use serde_json::json;
use tempfile::TempDir;

use super::{call, ephemeral, name, names, open_at, read, steward, write};

const BLOCK: usize = 512;

/// One entry as an attacker writes it: every part can be wrong.
#[derive(Clone, Copy)]
pub(crate) struct Raw<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) kind: u8,
    pub(crate) content: &'a [u8],
    /// The size that the header tells, when it lies.
    pub(crate) size: Option<&'a [u8]>,
    pub(crate) magic: &'a [u8],
    pub(crate) prefix: &'a [u8],
}

pub(crate) const FILE: Raw<'static> =
    Raw { name: b"a.txt", kind: b'0', content: b"x", size: None, magic: b"ustar\x0000", prefix: b"" };

impl Raw<'_> {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut header = [0; BLOCK];
        header[..self.name.len()].copy_from_slice(self.name);
        header[100..107].copy_from_slice(b"0000644");
        let size = format!("{:011o}", self.content.len());
        let size = self.size.unwrap_or(size.as_bytes());
        header[124..124 + size.len()].copy_from_slice(size);
        header[148..156].copy_from_slice(b"        ");
        header[156] = self.kind;
        header[157..163].copy_from_slice(b"target");
        header[257..257 + self.magic.len()].copy_from_slice(self.magic);
        header[345..345 + self.prefix.len()].copy_from_slice(self.prefix);
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        let mut bytes = header.to_vec();
        bytes.extend_from_slice(self.content);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes
    }
}

/// Entries and the end.
pub(crate) fn archive(entries: &[Raw<'_>]) -> Vec<u8> {
    let mut bytes: Vec<u8> = entries.iter().flat_map(Raw::bytes).collect();
    bytes.resize(bytes.len() + 2 * BLOCK, 0);
    bytes
}

fn import(estate: &Estate, archive: &[u8]) -> Result<String, (Kind, String)> {
    let made = estate.import(&steward(), &name("in"), &ephemeral(), &mut &archive[..]);
    made.map(|made| made.id).map_err(|failure| (failure.kind, failure.detail))
}

/// An archive of a workspace.
fn export(estate: &Estate, of: &str) -> (Copied, Vec<u8>) {
    let mut bytes = Vec::new();
    let copied = estate.export(&steward(), &name(of), &mut |_| {}, &mut bytes).unwrap();
    (copied, bytes)
}

#[test]
fn a_compressed_archive_is_called_that() {
    let place = TempDir::new().unwrap();
    let estate = open_at(place.path());
    for magic in [&b"\x1f\x8b\x08"[..], b"\x28\xb5\x2f\xfd", b"BZh9", b"\xfd7zXZ\0"] {
        for length in [100, 2 * BLOCK] {
            let mut bytes = magic.to_vec();
            bytes.resize(length, 0xaa);
            let (kind, detail) = import(&estate, &bytes).unwrap_err();
            assert_eq!(kind, Kind::BadRequest);
            assert!(detail.contains("it is compressed"), "{detail}");
        }
    }
    let plain = Raw { name: b"BZh", ..FILE };
    import(&estate, &archive(&[plain])).unwrap();
}

#[test]
fn what_goes_out_comes_in_again() {
    let place = TempDir::new().unwrap();
    let estate = open_at(place.path());
    let made = estate.create(&steward(), &name("one"), &WorkspaceAsk::default()).unwrap();
    let engine = estate.enter(&made.id).unwrap();
    let long = format!("{}/{}.txt", "d".repeat(120), "ü".repeat(60));
    for (path, content) in [("a.txt", "a\n"), ("b/c/d.txt", ""), (long.as_str(), "far away\n")] {
        write(&engine, path, content);
    }
    let files = std::path::PathBuf::from(estate.files_of(&made.id));
    std::os::unix::fs::symlink("a.txt", files.join("link")).unwrap();
    std::fs::create_dir(files.join("empty")).unwrap();
    let run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(files.join("a.txt"), run).unwrap();
    let (copied, bytes) = export(&estate, "one");
    assert_eq!((copied.files, copied.left_out), (3, 1), "the link stays");
    let id = import(&estate, &bytes).unwrap();
    let imported = estate.enter(&id).unwrap();
    assert_eq!(read(&imported, "a.txt").as_deref(), Some("a\n"));
    assert_eq!(read(&imported, "b/c/d.txt").as_deref(), Some(""));
    assert_eq!(read(&imported, &long).as_deref(), Some("far away\n"));
    let mode = call(&imported, "stat", json!({ "path": "a.txt" })).unwrap()["mode"].clone();
    assert!(mode.as_str().unwrap().ends_with("755"), "{mode}");
    // Every file is an entry of the new journal, by who took it in.
    let log = call(&imported, "history", json!({ "path": "b/c/d.txt" })).unwrap();
    assert!(serde_json::to_string(&log).unwrap().contains("user:platform"), "{log:?}");
    assert_eq!(names(&estate, local::Paged::Ready), ["in", "one"]);
    // Nothing of the copies is left.
    let entries = |of: &str| std::fs::read_dir(place.path().join("estate").join(of)).unwrap().count();
    assert_eq!((entries("workspaces"), entries("trash")), (2, 0));
}

#[test]
fn a_fork_is_what_was_there_and_says_where_from() {
    let place = TempDir::new().unwrap();
    let estate = open_at(place.path());
    let small = WorkspaceAsk { bytes_max: Some(100), ..WorkspaceAsk::default() };
    let made = estate.create(&steward(), &name("one"), &small).unwrap();
    let engine = estate.enter(&made.id).unwrap();
    write(&engine, "d/a.txt", "before\n");
    let files = std::path::PathBuf::from(estate.files_of(&made.id));
    std::os::unix::fs::symlink("d", files.join("link")).unwrap();
    let head = engine.workspace().head().unwrap();
    let fork = estate.fork(&steward(), &name("one"), &name("two"), &ephemeral()).unwrap();
    write(&engine, "later.txt", "after\n");
    let forked = estate.enter(&fork.id).unwrap();
    assert_eq!(read(&forked, "link/a.txt").as_deref(), Some("before\n"));
    assert_eq!(read(&forked, "later.txt"), None);
    write(&forked, "mine.txt", "mine\n");
    assert_eq!(read(&engine, "mine.txt"), None);
    let origin = estate.describe(&name("two")).unwrap()["origin"].clone();
    assert_eq!((&origin["number"], &origin["workspace"]), (&json!(head.number), &json!(made.id)));
    assert_eq!(origin["hash"], head.hash.to_string());
    let first = forked.workspace().entry(1).unwrap().unwrap();
    assert_eq!(first.entry.operation, "fork");
    assert!(first.entry.arguments.contains(&head.hash.to_string()));
    // The quota came along.
    let long = json!({ "path": "long", "content": "x".repeat(200), "base": "" });
    assert_eq!(call(&forked, "write", long).unwrap_err().kind, Kind::Quota);
}

/// What is wrong, and the entries.
type Case = (&'static str, Vec<Raw<'static>>);

fn pax(text: &'static [u8]) -> Raw<'static> {
    Raw { name: b"x", kind: b'x', content: text, ..FILE }
}

fn long(name: &'static [u8]) -> Raw<'static> {
    Raw { name: b"L", kind: b'L', content: name, ..FILE }
}

fn other(name: &'static [u8]) -> Raw<'static> {
    Raw { name, ..FILE }
}

fn kind(kind: u8) -> Raw<'static> {
    Raw { kind, content: b"", ..FILE }
}

/// Names that lead elsewhere.
fn paths() -> Vec<Case> {
    vec![
        ("absolute", vec![other(b"/etc/passwd")]),
        ("up", vec![other(b"../x")]),
        ("up inside", vec![other(b"a/../../x")]),
        ("up after dot", vec![other(b"./../x")]),
        ("dot inside", vec![other(b"a/./b")]),
        ("empty part", vec![other(b"a//b")]),
        ("two slashes", vec![other(b".//etc/x")]),
        ("no name", vec![other(b"")]),
        ("only dot", vec![other(b".")]),
        ("file named as a directory", vec![other(b"a/")]),
        ("prefix goes up", vec![Raw { prefix: b"..", ..FILE }]),
        ("prefix is absolute", vec![Raw { prefix: b"/tmp", ..FILE }]),
    ]
}

/// What is no plain file, and names that clash.
fn kinds() -> Vec<Case> {
    vec![
        ("hard link", vec![kind(b'1')]),
        ("link", vec![kind(b'2')]),
        ("link, then a file through it", vec![kind(b'2'), other(b"a.txt/b")]),
        ("character device", vec![kind(b'3')]),
        ("block device", vec![kind(b'4')]),
        ("pipe", vec![kind(b'6')]),
        ("contiguous", vec![kind(b'7')]),
        ("sparse", vec![kind(b'S')]),
        ("long link", vec![kind(b'K')]),
        ("twice", vec![FILE, FILE]),
        ("twice, spelled otherwise", vec![FILE, other(b"./a.txt")]),
        ("case", vec![FILE, other(b"A.TXT")]),
        ("sharp s", vec![other("stra\u{df}e".as_bytes()), other(b"strasse")]),
        ("composed", vec![other("\u{e9}".as_bytes()), other("e\u{301}".as_bytes())]),
        ("a file where a directory was", vec![other(b"d/x"), other(b"d")]),
        ("a directory where a file was", vec![other(b"d"), other(b"d/x")]),
        ("device name", vec![other(b"NUL")]),
        ("colon", vec![other(b"a:b")]),
        ("ours", vec![other(b".stead~trash")]),
    ]
}

/// Records that say something else than they should.
fn records() -> Vec<Case> {
    vec![
        ("long name goes up", vec![long(b"../x\0"), FILE]),
        ("long name with a zero", vec![long(b"a\0b"), FILE]),
        ("long name twice", vec![long(b"a\0"), long(b"b\0"), FILE]),
        ("long name and then the end", vec![long(b"a\0")]),
        ("named in two ways", vec![long(b"a\0"), pax(b"9 path=b\n"), FILE]),
        ("record goes up", vec![pax(b"13 path=../x\n"), FILE]),
        ("record is absolute", vec![pax(b"11 path=/x\n"), FILE]),
        ("record with a link", vec![pax(b"14 linkpath=b\n"), FILE]),
        ("record that lies about its length", vec![pax(b"99 path=b\n"), FILE]),
        ("record with length nothing", vec![pax(b"0 path=b\n"), FILE]),
        ("record without an end", vec![pax(b"9 path=bx"), FILE]),
        ("sparse record", vec![pax(b"22 GNU.sparse.major=1\n"), FILE]),
        ("record with a size of text", vec![pax(b"10 size=-1\n"), FILE]),
        ("global path", vec![Raw { name: b"g", kind: b'g', content: b"9 path=b\n", ..FILE }, FILE]),
    ]
}

/// Lengths and forms that lie.
fn sizes() -> Vec<Case> {
    vec![
        ("directory with content", vec![Raw { kind: b'5', ..FILE }]),
        ("size that is no number", vec![Raw { size: Some(b"0000000000z"), ..FILE }]),
        (
            "size below nothing",
            vec![Raw { size: Some(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), ..FILE }],
        ),
        ("size without end", vec![Raw { size: Some(b"77777777777"), ..FILE }]),
        (
            "size larger than a number",
            vec![Raw { size: Some(b"\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), ..FILE }],
        ),
        ("longer than it is", vec![Raw { size: Some(b"00000100000"), ..FILE }]),
        ("no magic", vec![Raw { magic: b"", ..FILE }]),
        ("too deep", vec![long(DEEP.as_bytes()), FILE]),
    ]
}

#[test]
fn an_archive_that_means_harm_leaves_nothing() {
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
    let estate = open_at(place.path());
    let cases = [paths(), kinds(), records(), sizes()].concat();
    for (what, entries) in &cases {
        let found = import(&estate, &archive(entries));
        assert!(found.is_err(), "{what}: {found:?}");
    }
    let mut damaged = archive(&[FILE]);
    damaged[0] = b'b';
    let mut hidden = archive(&[FILE]);
    hidden[BLOCK + 100] = b'x';
    let mut after = archive(&[FILE]);
    after.extend_from_slice(&FILE.bytes());
    let cut = archive(&[FILE])[..BLOCK + 1].to_vec();
    let endless = FILE.bytes();
    let gzip = [0x1f, 0x8b, 8, 0].repeat(300);
    for (what, bytes) in [
        ("damaged", damaged),
        ("hidden", hidden),
        ("after", after),
        ("cut", cut),
        ("endless", endless),
        ("gzip", gzip),
        ("empty", Vec::new()),
    ] {
        assert!(import(&estate, &bytes).is_err(), "{what}");
    }
    assert_eq!(names(&estate, local::Paged::Ready), [""; 0]);
    assert_eq!(std::fs::read_dir(place.path().join("estate/workspaces")).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(place.path().join("estate/trash")).unwrap().count(), 0);
    // And one that means none is taken in.
    let good = archive(&[
        Raw { name: b"./", kind: b'5', content: b"", ..FILE },
        Raw { name: b"g", kind: b'g', content: b"13 comment=a\n", ..FILE },
        Raw { name: b"d/", kind: b'5', content: b"", ..FILE },
        Raw { magic: b"ustar  \0", name: b"./d/gnu.txt", ..FILE },
        Raw { prefix: b"deep/er", ..FILE },
        pax(b"20 path=d/named.txt\n"),
        Raw { name: b"short", kind: 0, ..FILE },
    ]);
    let engine = estate.enter(&import(&estate, &good).unwrap()).unwrap();
    for path in ["d/gnu.txt", "deep/er/a.txt", "d/named.txt"] {
        assert_eq!(read(&engine, path).as_deref(), Some("x"), "{path}");
    }
}

/// A path of more parts than any may have.
const DEEP: &str = "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a";

/// Any bytes at all are taken in or refused, and never anything but that.
#[test]
fn a_changed_archive_never_does_more_than_fail() {
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
    let estate = open_at(place.path());
    let good = archive(&[FILE, Raw { name: b"d/b.txt", content: b"second", ..FILE }]);
    let mut state = 7_u64;
    for _ in 0..150 {
        let mut bytes = good.clone();
        for _ in 0..3 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] ^= (state >> 20) as u8;
        }
        if import(&estate, &bytes).is_ok() {
            estate.destroy(&steward(), &name("in")).unwrap();
        }
    }
    assert_eq!(std::fs::read_dir(place.path().join("estate/workspaces")).unwrap().count(), 0);
}
