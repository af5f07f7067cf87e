//! Conformance tests of directories that a walk keeps open.

use stead_engine::{DirectoryReader, ErrorKind, FileKind, OpenDirectoryWithEntries, PlannedChange};
use stead_path::FileName;

use super::{
    ConformanceWorkspaceFactory, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest, assert_fails,
    move_change, rel_path,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("an open directory lists and opens its entries", open_directory_lists_and_opens),
    ("an open directory reads its files", open_directory_reads_files),
    ("an open directory stays open when it moves", open_directory_survives_a_move),
];

fn file_name(name: &str) -> FileName {
    FileName::new(name.as_bytes()).unwrap()
}

fn create_tree(fixture: &WorkspaceUnderConformanceTest) {
    for directory in ["d", "d/e"] {
        fixture.create_directory(directory);
    }
    fixture.create_file("d/f", b"0123456789");
    fixture.create_file("d/e/g", b"g");
    fixture.commit(vec![PlannedChange::MakeLink { path: rel_path("d/l"), target: b"e".to_vec() }]);
}

fn open_directory(fixture: &WorkspaceUnderConformanceTest, path: &str) -> NamedEntries {
    let directory = fixture.entry_at(path).unwrap().open_directory().unwrap();
    let entries = directory.list().unwrap();
    named((directory, entries))
}

type NamedEntries = (Box<dyn DirectoryReader>, Vec<(String, FileKind)>);

fn named((directory, entries): OpenDirectoryWithEntries) -> NamedEntries {
    (directory, entries.into_iter().map(|entry| (entry.name.to_wire().into_owned(), entry.kind)).collect())
}

fn open_directory_lists_and_opens(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    create_tree(&fixture);
    let (root, names) = open_directory(&fixture, "");
    assert_eq!(names, [("d".to_owned(), FileKind::Directory)]);
    let (directory, names) = named(root.open_subdirectory(&file_name("d")).unwrap());
    let expected = [("e", FileKind::Directory), ("f", FileKind::File), ("l", FileKind::Link)];
    assert_eq!(names, expected.map(|(name, kind)| (name.to_owned(), kind)));
    for (name, kind) in expected {
        let stat = directory.stat(&file_name(name)).unwrap().unwrap();
        assert_eq!((stat.kind, stat), (kind, fixture.stat(&format!("d/{name}"))));
    }
    assert_eq!(directory.stat(&file_name("none")).unwrap(), None);
    for name in ["f", "l", "none"] {
        assert!(directory.open_subdirectory(&file_name(name)).is_err(), "{name}");
    }
    assert_fails(fixture.entry_at("d/f").unwrap().open_directory().map(drop), ErrorKind::NotDirectory);
}

fn open_directory_reads_files(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    create_tree(&fixture);
    let (directory, _) = open_directory(&fixture, "d");
    let mut bytes = b"from an earlier file".to_vec();
    directory.read_without_version(&file_name("f"), 10, &|_| true, &mut bytes).unwrap();
    assert_eq!(bytes, b"0123456789");
    assert_fails(directory.read_without_version(&file_name("f"), 9, &|_| true, &mut bytes), ErrorKind::TooLarge);
    for name in ["e", "l", "none"] {
        assert!(directory.read_without_version(&file_name(name), 10, &|_| true, &mut bytes).is_err(), "{name}");
        assert!(directory.open_file(&file_name(name)).is_err(), "{name}");
    }
    let file = directory.open_file(&file_name("f")).unwrap();
    let mut piece = [0; 4];
    assert_eq!((file.stat().size, file.read_at(3, &mut piece).unwrap(), &piece), (10, 4, b"3456"));
}

fn open_directory_survives_a_move(factory: &dyn ConformanceWorkspaceFactory) {
    use stead_engine::{CommitExpectation, TreeSummary};
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    create_tree(&fixture);
    let (directory, _) = open_directory(&fixture, "d");
    let expect = CommitExpectation::SameEntry(fixture.stat("d").identity);
    let tree = TreeSummary { kind: FileKind::Directory, files: 3, directories: 2, bytes: 11 };
    fixture.commit(vec![move_change("d", "moved", expect, CommitExpectation::Absent, tree)]);
    let mut bytes = Vec::new();
    directory.read_without_version(&file_name("f"), 10, &|_| true, &mut bytes).unwrap();
    assert_eq!(bytes, b"0123456789");
    let (_, names) = named(directory.open_subdirectory(&file_name("e")).unwrap());
    assert_eq!(names, [("g".to_owned(), FileKind::File)]);
}
