//! Conformance tests of reads: stat, read, list, links and path resolution.

use stead_engine::{ActivePolicy, BytesToRead, ErrorKind, FileKind, FinalSymlink, PlannedChange, TreeEntry, Version};
use stead_path::{FileName, RelPath};

use super::{
    ConformanceWorkspaceFactory, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest, assert_fails,
    put_change, rel_path,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("an empty workspace is empty", empty_workspace_is_empty),
    ("existing items are reported", existing_items_are_reported),
    ("read ranges are exact", read_ranges_are_exact),
    ("a wrong kind of item is an error", wrong_item_kind_is_an_error),
    ("links lead where they say, inside", inside_links_are_followed),
    ("links that lead nowhere good are refused", escaping_links_are_refused),
    ("an absolute link leads into the workspace", absolute_links_into_the_root_are_followed),
    ("several names are looked up in their order", several_names_are_looked_up),
    ("a file is read without its version", file_is_read_without_version),
    ("a file is read in pieces", file_is_read_in_pieces),
    ("an open entry stays the same file", open_entry_stays_the_same),
    ("the profile and the built-in policy are there", profile_and_policy_exist),
];

fn empty_workspace_is_empty(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    assert_eq!(fixture.list_tree(), Vec::new());
    assert_eq!(fixture.head_number(), 0);
    assert_eq!(fixture.stat("").kind, FileKind::Directory);
    assert!(!fixture.exists("a"));
    assert!(!fixture.exists("a/b"));
}

fn existing_items_are_reported(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    fixture.create_file("d/b", b"bb");
    fixture.create_file("d/a", b"a");
    fixture.create_file("d.c", b"c");
    let node = fixture.stat("d/b");
    assert_eq!((node.kind, node.size, node.link_count), (FileKind::File, 2, 1));
    assert_eq!((fixture.stat("d").kind, fixture.stat("d").size), (FileKind::Directory, 0));
    let names = |path: &str| -> Vec<String> {
        let listed = fixture.workspace.list(&rel_path(path)).unwrap();
        listed.iter().map(|listed| listed.name.to_wire().into_owned()).collect()
    };
    assert_eq!((names(""), names("d")), (vec!["d".to_owned(), "d.c".to_owned()], vec!["a".into(), "b".into()]));
    let again = fixture.stat("d/b");
    assert_eq!((again.identity, again.stamp), (node.identity, node.stamp), "both stay while nothing changes");
    assert_ne!(node.identity, fixture.stat("d/a").identity);
}

fn read_ranges_are_exact(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("f", b"0123456789");
    let read = |want| fixture.workspace.read(&rel_path("f"), want).unwrap();
    let range = |offset, length| read(BytesToRead::Range { offset, length }).bytes;
    assert_eq!(range(2, 3), b"234");
    assert_eq!(range(8, 100), b"89");
    assert_eq!(range(10, 1), b"");
    assert_eq!(range(100, 1), b"");
    assert_eq!(range(3, 0), b"");
    let version = Version::hash_bytes(b"0123456789");
    for want in
        [BytesToRead::VersionOnly, BytesToRead::Whole { limit_bytes: 10 }, BytesToRead::Range { offset: 1, length: 1 }]
    {
        let file = read(want);
        assert_eq!((file.version, file.stat.size), (version, 10), "{want:?}");
    }
    assert_eq!(read(BytesToRead::Whole { limit_bytes: 10 }).bytes, b"0123456789");
    assert_fails(fixture.workspace.read(&rel_path("f"), BytesToRead::Whole { limit_bytes: 9 }), ErrorKind::TooLarge);
}

fn wrong_item_kind_is_an_error(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    fixture.create_file("f", b"f");
    fixture.commit(vec![PlannedChange::MakeLink { path: rel_path("l"), target: b"f".to_vec() }]);
    let workspace = &fixture.workspace;
    assert_fails(workspace.read(&rel_path("d"), BytesToRead::VersionOnly), ErrorKind::IsDirectory);
    assert_fails(workspace.read(&rel_path("none"), BytesToRead::VersionOnly), ErrorKind::NotFound);
    // A link at an already resolved path is new, so reading it fails.
    assert!(workspace.read(&rel_path("l"), BytesToRead::VersionOnly).is_err());
    assert_fails(workspace.list(&rel_path("f")), ErrorKind::NotDirectory);
    assert_fails(workspace.list(&rel_path("none")), ErrorKind::NotFound);
    assert!(fixture.entry_at("f").unwrap().read_link().is_err());
    assert_fails(fixture.entry_at("none"), ErrorKind::NotFound);
    assert_eq!(fixture.stat("l").kind, FileKind::Link);
    assert_eq!(fixture.read_link("l"), b"f");
}

fn inside_links_are_followed(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    fixture.create_directory("d/e");
    let link = |path: &str, target: &str| {
        fixture.commit(vec![PlannedChange::MakeLink { path: rel_path(path), target: target.as_bytes().to_vec() }]);
    };
    link("l", "d/e");
    link("d/up", "../l");
    let locate = |path: &str, last| fixture.locate(path, last).unwrap().path;
    assert_eq!(locate("l", FinalSymlink::Follow), rel_path("d/e"));
    assert_eq!(locate("l", FinalSymlink::Keep), rel_path("l"));
    assert_eq!(locate("l/new", FinalSymlink::Keep), rel_path("d/e/new"));
    assert_eq!(locate("d/up/x/y", FinalSymlink::Follow), rel_path("d/e/x/y"));
    assert_eq!(locate("none/at/all", FinalSymlink::Follow), rel_path("none/at/all"));
    assert_eq!(locate("", FinalSymlink::Follow), RelPath::root());
    // The located entry must be the one at the path without links.
    fixture.create_file("d/e/f", b"f");
    for path in ["d/e/f", "l/f", "l", "d/up/f", "d", "none", ""] {
        for last in [FinalSymlink::Follow, FinalSymlink::Keep] {
            let located = fixture.locate(path, last).unwrap();
            assert_eq!(located.stat(), fixture.workspace.stat(&located.path).unwrap(), "{path}");
        }
    }
}

fn escaping_links_are_refused(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let link = |path: &str, target: &str| {
        fixture.commit(vec![PlannedChange::MakeLink { path: rel_path(path), target: target.as_bytes().to_vec() }]);
    };
    link("out", "../elsewhere");
    link("absolute", "/etc");
    link("ring", "ring");
    link("missing", "none/../f");
    fixture.create_file("f", b"f");
    let locate = |path: &str| fixture.locate(path, FinalSymlink::Follow).map(|located| located.path);
    assert_fails(locate("out"), ErrorKind::PathEscape);
    assert_fails(locate("out/x"), ErrorKind::PathEscape);
    assert_fails(locate("absolute"), ErrorKind::PathEscape);
    assert_fails(locate("ring"), ErrorKind::LinkLoop);
    assert_fails(locate("f/x"), ErrorKind::NotDirectory);
    assert_fails(locate("missing"), ErrorKind::NotFound);
}

fn absolute_links_into_the_root_are_followed(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    fixture.create_file("d/f", b"f");
    let root = fixture.workspace.profile().root_spellings[0].clone();
    let link = |path: &str, target: String| {
        fixture.commit(vec![PlannedChange::MakeLink { path: rel_path(path), target: target.into_bytes() }]);
    };
    link("l", format!("{root}/d"));
    link("top", root.clone());
    link("beside", format!("{root}-beside/d"));
    let locate = |path: &str| fixture.locate(path, FinalSymlink::Follow).map(|located| located.path);
    assert_eq!(locate("l/f").unwrap(), rel_path("d/f"));
    assert_eq!(locate("top/d").unwrap(), rel_path("d"));
    assert_fails(locate("beside"), ErrorKind::PathEscape);
}

fn several_names_are_looked_up(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    fixture.create_file("d/f", b"f");
    fixture.commit(vec![PlannedChange::MakeLink { path: rel_path("d/l"), target: b"f".to_vec() }]);
    let names = ["l", "none", "f", "l"].map(|name| FileName::new(name.as_bytes()).unwrap());
    let directory = fixture.entry_at("d").unwrap().open_directory().unwrap();
    let found = names.each_ref().map(|name| directory.stat(name).unwrap());
    let (link, file) = (Some(fixture.stat("d/l")), Some(fixture.stat("d/f")));
    assert_eq!(found, [link, None, file, link]);
}

fn file_is_read_without_version(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    fixture.create_file("f", b"0123456789");
    let read = |path: &str, limit_bytes| {
        let mut bytes = Vec::new();
        let directory = fixture.entry_at("").unwrap().open_directory().unwrap();
        directory.read_without_version(&FileName::new(path.as_bytes()).unwrap(), limit_bytes, &|_| true, &mut bytes)?;
        Ok(bytes)
    };
    assert_eq!(read("f", 10).unwrap(), b"0123456789");
    assert_fails(read("f", 9), ErrorKind::TooLarge);
    assert_fails(read("d", 9), ErrorKind::IsDirectory);
    assert_fails(read("none", 9), ErrorKind::NotFound);
}

fn file_is_read_in_pieces(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    fixture.create_file("f", b"0123456789");
    let entry = fixture.entry_at("f").unwrap();
    let file = entry.open_file().unwrap();
    fixture.commit(vec![put_change("f", fixture.expect_observed_file("f"), b"replaced")]);
    let read = |offset| {
        let mut buffer = [0; 4];
        let length = file.read_at(offset, &mut buffer).unwrap();
        buffer[..length].to_vec()
    };
    assert_eq!((file.stat(), file.stat().size), (entry.stat(), 10));
    assert_eq!([read(0), read(4), read(8)].concat(), b"0123456789", "a replaced file stays open as it was");
    assert_eq!((read(10), read(100)), (Vec::new(), Vec::new()));
    assert_fails(fixture.entry_at("d").unwrap().open_file().map(drop), ErrorKind::IsDirectory);
    assert_fails(fixture.entry_at("none"), ErrorKind::NotFound);
}

fn open_entry_stays_the_same(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("f", b"first");
    let before = fixture.entry_at("f").unwrap();
    fixture.commit(vec![put_change("f", fixture.expect_observed_file("f"), b"replaced")]);
    let after = fixture.entry_at("f").unwrap();
    let read = |entry: &dyn TreeEntry| {
        let mut buffer = [0; 16];
        let length = entry.open_file().unwrap().read_at(0, &mut buffer).unwrap();
        (buffer[..length].to_vec(), entry.stat().size)
    };
    assert_eq!((read(&*before), read(&*after)), ((b"first".to_vec(), 5), (b"replaced".to_vec(), 8)));
    assert_ne!(before.stat().stamp, after.stat().stamp);
    assert_eq!(before.details().owner, after.details().owner);
}

fn profile_and_policy_exist(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let profile = fixture.workspace.profile();
    assert!(!profile.id.is_empty() && profile.root_spellings.iter().all(|root| root.starts_with('/')));
    let policy = fixture.workspace.active_policy().unwrap();
    assert_eq!(policy.policy.version(), ActivePolicy::built_in().policy.version(), "nobody has set a policy");
}
