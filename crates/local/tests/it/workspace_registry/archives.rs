//! Export and import of archives: an exported archive can be imported, and a hostile archive leaves nothing behind.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use serde_json::json;
use stead_engine::ErrorKind;
use stead_engine::ops::{CreateWorkspaceArgs, WorkspaceOrigin};
use stead_local::{WorkspaceCopyCounts, WorkspaceRegistry};
use tempfile::TempDir;

use super::{
    ACTIVE, admin_caller, call_operation, ephemeral_workspace_request, list_names, name, open_registry, read_file,
    write_file,
};

const BLOCK: usize = 512;

/// The header fields of a hostile tar entry may be invalid.
#[derive(Clone, Copy)]
pub(crate) struct HostileTestTarEntry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) kind: u8,
    pub(crate) content: &'a [u8],
    /// The size field of the hostile tar header; `None` means the length of `content`.
    pub(crate) size: Option<&'a [u8]>,
    pub(crate) magic: &'a [u8],
    pub(crate) prefix: &'a [u8],
}

pub(crate) const FILE: HostileTestTarEntry<'static> =
    HostileTestTarEntry { name: b"a.txt", kind: b'0', content: b"x", size: None, magic: b"ustar\x0000", prefix: b"" };

impl HostileTestTarEntry<'_> {
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

pub(crate) fn build_archive(entries: &[HostileTestTarEntry<'_>]) -> Vec<u8> {
    let mut bytes: Vec<u8> = entries.iter().flat_map(HostileTestTarEntry::bytes).collect();
    bytes.resize(bytes.len() + 2 * BLOCK, 0);
    bytes
}

fn import_archive(registry: &WorkspaceRegistry, archive: &[u8]) -> Result<String, (ErrorKind, String)> {
    let made =
        registry.import_workspace(&admin_caller(), &name("in"), &ephemeral_workspace_request(), &mut &archive[..]);
    made.map(|made| made.id).map_err(|error| (error.kind, error.message))
}

fn export_archive(registry: &WorkspaceRegistry, of: &str) -> (WorkspaceCopyCounts, Vec<u8>) {
    let mut bytes = Vec::new();
    let copied = registry.export_archive(&admin_caller(), &name(of), &mut |_| {}, &mut bytes).unwrap();
    (copied, bytes)
}

#[test]
fn compressed_archives_are_reported() {
    let directory = TempDir::new().unwrap();
    let registry = open_registry(directory.path());
    for magic in [&b"\x1f\x8b\x08"[..], b"\x28\xb5\x2f\xfd", b"BZh9", b"\xfd7zXZ\0"] {
        for length in [100, 2 * BLOCK] {
            let mut bytes = magic.to_vec();
            bytes.resize(length, 0xaa);
            let (kind, detail) = import_archive(&registry, &bytes).unwrap_err();
            assert_eq!(kind, ErrorKind::BadRequest);
            assert!(detail.contains("is compressed"), "{detail}");
        }
    }
    let plain = HostileTestTarEntry { name: b"BZh", ..FILE };
    import_archive(&registry, &build_archive(&[plain])).unwrap();
}

#[test]
fn archives_round_trip() {
    let directory = TempDir::new().unwrap();
    let registry = open_registry(directory.path());
    let made = registry.create(&admin_caller(), &name("one"), &CreateWorkspaceArgs::default()).unwrap();
    let engine = registry.open_engine(&made.id).unwrap();
    let long = format!("{}/{}.txt", "d".repeat(120), "ü".repeat(60));
    for (path, content) in [("a.txt", "a\n"), ("b/c/d.txt", ""), (long.as_str(), "far away\n")] {
        write_file(&engine, path, content);
    }
    let files = std::path::PathBuf::from(registry.files_directory_of(&made.id));
    std::os::unix::fs::symlink("a.txt", files.join("link")).unwrap();
    std::fs::create_dir(files.join("empty")).unwrap();
    let run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(files.join("a.txt"), run).unwrap();
    let (copied, bytes) = export_archive(&registry, "one");
    assert_eq!((copied.files, copied.skipped), (3, 1), "the link stays");
    let id = import_archive(&registry, &bytes).unwrap();
    let imported = registry.open_engine(&id).unwrap();
    assert_eq!(read_file(&imported, "a.txt").as_deref(), Some("a\n"));
    assert_eq!(read_file(&imported, "b/c/d.txt").as_deref(), Some(""));
    assert_eq!(read_file(&imported, &long).as_deref(), Some("far away\n"));
    let mode = call_operation(&imported, "stat", json!({ "path": "a.txt" })).unwrap()["mode"].clone();
    assert!(mode.as_str().unwrap().ends_with("755"), "{mode}");
    // Every file is an entry of the new journal, by the importing principal.
    let log = call_operation(&imported, "history", json!({ "path": "b/c/d.txt" })).unwrap();
    assert!(serde_json::to_string(&log).unwrap().contains("user:platform"), "{log:?}");
    assert_eq!(list_names(&registry, ACTIVE), ["in", "one"]);
    let entries = |of: &str| std::fs::read_dir(directory.path().join("estate").join(of)).unwrap().count();
    assert_eq!((entries("workspaces"), entries("trash")), (2, 0));
}

#[test]
fn forks_copy_content_and_record_their_origin() {
    let directory = TempDir::new().unwrap();
    let registry = open_registry(directory.path());
    let small = CreateWorkspaceArgs { bytes_max: Some(100), ..CreateWorkspaceArgs::default() };
    let made = registry.create(&admin_caller(), &name("one"), &small).unwrap();
    let engine = registry.open_engine(&made.id).unwrap();
    write_file(&engine, "d/a.txt", "before\n");
    let files = std::path::PathBuf::from(registry.files_directory_of(&made.id));
    std::os::unix::fs::symlink("d", files.join("link")).unwrap();
    let head = engine.workspace().head().unwrap();
    let fork = registry.fork(&admin_caller(), &name("one"), &name("two"), &ephemeral_workspace_request()).unwrap();
    write_file(&engine, "later.txt", "after\n");
    let forked = registry.open_engine(&fork.id).unwrap();
    assert_eq!(read_file(&forked, "link/a.txt").as_deref(), Some("before\n"));
    assert_eq!(read_file(&forked, "later.txt"), None);
    write_file(&forked, "mine.txt", "mine\n");
    assert_eq!(read_file(&engine, "mine.txt"), None);
    let Some(WorkspaceOrigin::Fork { workspace, number, hash, .. }) = registry.describe(&name("two")).unwrap().origin
    else {
        panic!("the workspace is no fork");
    };
    assert_eq!((number, workspace, hash), (head.number, made.id, head.hash.to_string()));
    let first = forked.workspace().entry(1).unwrap().unwrap();
    assert_eq!(first.entry.operation, "fork");
    assert!(first.entry.arguments.contains(&head.hash.to_string()));
    let long = json!({ "path": "long", "content": "x".repeat(200), "base": "" });
    assert_eq!(call_operation(&forked, "write", long).unwrap_err().kind, ErrorKind::QuotaExceeded);
}

type HostileArchiveCase = (&'static str, Vec<HostileTestTarEntry<'static>>);

fn pax_record_entry(text: &'static [u8]) -> HostileTestTarEntry<'static> {
    HostileTestTarEntry { name: b"x", kind: b'x', content: text, ..FILE }
}

fn gnu_long_name_entry(name: &'static [u8]) -> HostileTestTarEntry<'static> {
    HostileTestTarEntry { name: b"L", kind: b'L', content: name, ..FILE }
}

fn file_entry(name: &'static [u8]) -> HostileTestTarEntry<'static> {
    HostileTestTarEntry { name, ..FILE }
}

fn kind(kind: u8) -> HostileTestTarEntry<'static> {
    HostileTestTarEntry { kind, content: b"", ..FILE }
}

fn hostile_paths() -> Vec<HostileArchiveCase> {
    vec![
        ("absolute", vec![file_entry(b"/etc/passwd")]),
        ("up", vec![file_entry(b"../x")]),
        ("up inside", vec![file_entry(b"a/../../x")]),
        ("up after dot", vec![file_entry(b"./../x")]),
        ("dot inside", vec![file_entry(b"a/./b")]),
        ("empty part", vec![file_entry(b"a//b")]),
        ("two slashes", vec![file_entry(b".//etc/x")]),
        ("no name", vec![file_entry(b"")]),
        ("only dot", vec![file_entry(b".")]),
        ("file named as a directory", vec![file_entry(b"a/")]),
        ("prefix goes up", vec![HostileTestTarEntry { prefix: b"..", ..FILE }]),
        ("prefix is absolute", vec![HostileTestTarEntry { prefix: b"/tmp", ..FILE }]),
    ]
}

fn hostile_kinds() -> Vec<HostileArchiveCase> {
    vec![
        ("hard link", vec![kind(b'1')]),
        ("link", vec![kind(b'2')]),
        ("link, then a file through it", vec![kind(b'2'), file_entry(b"a.txt/b")]),
        ("character device", vec![kind(b'3')]),
        ("block device", vec![kind(b'4')]),
        ("pipe", vec![kind(b'6')]),
        ("contiguous", vec![kind(b'7')]),
        ("sparse", vec![kind(b'S')]),
        ("long link", vec![kind(b'K')]),
        ("twice", vec![FILE, FILE]),
        ("twice, spelled otherwise", vec![FILE, file_entry(b"./a.txt")]),
        ("case", vec![FILE, file_entry(b"A.TXT")]),
        ("sharp s", vec![file_entry("stra\u{df}e".as_bytes()), file_entry(b"strasse")]),
        ("composed", vec![file_entry("\u{e9}".as_bytes()), file_entry("e\u{301}".as_bytes())]),
        ("a file where a directory was", vec![file_entry(b"d/x"), file_entry(b"d")]),
        ("a directory where a file was", vec![file_entry(b"d"), file_entry(b"d/x")]),
        ("device name", vec![file_entry(b"NUL")]),
        ("colon", vec![file_entry(b"a:b")]),
        ("ours", vec![file_entry(b".stead~trash")]),
    ]
}

fn hostile_records() -> Vec<HostileArchiveCase> {
    vec![
        ("long name goes up", vec![gnu_long_name_entry(b"../x\0"), FILE]),
        ("long name with a zero", vec![gnu_long_name_entry(b"a\0b"), FILE]),
        ("long name twice", vec![gnu_long_name_entry(b"a\0"), gnu_long_name_entry(b"b\0"), FILE]),
        ("long name and then the end", vec![gnu_long_name_entry(b"a\0")]),
        ("named in two ways", vec![gnu_long_name_entry(b"a\0"), pax_record_entry(b"9 path=b\n"), FILE]),
        ("record goes up", vec![pax_record_entry(b"13 path=../x\n"), FILE]),
        ("record is absolute", vec![pax_record_entry(b"11 path=/x\n"), FILE]),
        ("record with a link", vec![pax_record_entry(b"14 linkpath=b\n"), FILE]),
        ("record that lies about its length", vec![pax_record_entry(b"99 path=b\n"), FILE]),
        ("record with length nothing", vec![pax_record_entry(b"0 path=b\n"), FILE]),
        ("record without an end", vec![pax_record_entry(b"9 path=bx"), FILE]),
        ("sparse record", vec![pax_record_entry(b"22 GNU.sparse.major=1\n"), FILE]),
        ("record with a size of text", vec![pax_record_entry(b"10 size=-1\n"), FILE]),
        ("global path", vec![HostileTestTarEntry { name: b"g", kind: b'g', content: b"9 path=b\n", ..FILE }, FILE]),
    ]
}

fn hostile_sizes() -> Vec<HostileArchiveCase> {
    vec![
        ("directory with content", vec![HostileTestTarEntry { kind: b'5', ..FILE }]),
        ("size that is no number", vec![HostileTestTarEntry { size: Some(b"0000000000z"), ..FILE }]),
        (
            "size below nothing",
            vec![HostileTestTarEntry { size: Some(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), ..FILE }],
        ),
        ("size without end", vec![HostileTestTarEntry { size: Some(b"77777777777"), ..FILE }]),
        (
            "size larger than a number",
            vec![HostileTestTarEntry { size: Some(b"\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), ..FILE }],
        ),
        ("longer than it is", vec![HostileTestTarEntry { size: Some(b"00000100000"), ..FILE }]),
        ("no magic", vec![HostileTestTarEntry { magic: b"", ..FILE }]),
        ("too deep", vec![gnu_long_name_entry(DEEP.as_bytes()), FILE]),
    ]
}

#[test]
fn hostile_archives_are_rejected_completely() {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
    let registry = open_registry(directory.path());
    let cases = [hostile_paths(), hostile_kinds(), hostile_records(), hostile_sizes()].concat();
    for (what, entries) in &cases {
        let found = import_archive(&registry, &build_archive(entries));
        assert!(found.is_err(), "{what}: {found:?}");
    }
    let mut damaged = build_archive(&[FILE]);
    damaged[0] = b'b';
    let mut hidden = build_archive(&[FILE]);
    hidden[BLOCK + 100] = b'x';
    let mut after = build_archive(&[FILE]);
    after.extend_from_slice(&FILE.bytes());
    let cut = build_archive(&[FILE])[..BLOCK + 1].to_vec();
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
        assert!(import_archive(&registry, &bytes).is_err(), "{what}");
    }
    assert_eq!(list_names(&registry, ACTIVE), [""; 0]);
    assert_eq!(std::fs::read_dir(directory.path().join("estate/workspaces")).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(directory.path().join("estate/trash")).unwrap().count(), 0);
    let good = build_archive(&[
        HostileTestTarEntry { name: b"./", kind: b'5', content: b"", ..FILE },
        HostileTestTarEntry { name: b"g", kind: b'g', content: b"13 comment=a\n", ..FILE },
        HostileTestTarEntry { name: b"d/", kind: b'5', content: b"", ..FILE },
        HostileTestTarEntry { magic: b"ustar  \0", name: b"./d/gnu.txt", ..FILE },
        HostileTestTarEntry { prefix: b"deep/er", ..FILE },
        pax_record_entry(b"20 path=d/named.txt\n"),
        HostileTestTarEntry { name: b"short", kind: 0, ..FILE },
    ]);
    let engine = registry.open_engine(&import_archive(&registry, &good).unwrap()).unwrap();
    for path in ["d/gnu.txt", "deep/er/a.txt", "d/named.txt"] {
        assert_eq!(read_file(&engine, path).as_deref(), Some("x"), "{path}");
    }
}

const DEEP: &str = "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a";

/// Arbitrary bytes are imported or refused; nothing else happens.
#[test]
fn corrupted_archives_only_fail() {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
    let registry = open_registry(directory.path());
    let good = build_archive(&[FILE, HostileTestTarEntry { name: b"d/b.txt", content: b"second", ..FILE }]);
    let mut state = 7_u64;
    for _ in 0..150 {
        let mut bytes = good.clone();
        for _ in 0..3 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] ^= (state >> 20) as u8;
        }
        if import_archive(&registry, &bytes).is_ok() {
            registry.destroy(&admin_caller(), &name("in")).unwrap();
        }
    }
    assert_eq!(std::fs::read_dir(directory.path().join("estate/workspaces")).unwrap().count(), 0);
}
