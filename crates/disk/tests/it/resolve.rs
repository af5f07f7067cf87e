//! Tests path resolution in the kernel and by components, which must give the same results.

use stead_disk::{
    DiskErrorKind::{self, ChangedConcurrently, NotDirectory, NotFound, OutsideRoot, SymlinkLoop},
    FileType,
    FinalSymlink::{self, Follow, Keep},
    PathResolutionMethod, RootDirectory, RootDirectoryOptions,
};

use crate::fixture::{BOTH_RESOLVERS, DiskFixture, kind, rel_path};

fn tree_with_links() -> DiskFixture {
    let f = DiskFixture::new();
    f.file("file", "content");
    f.file("a/b/c/d/deep", "deep");
    f.directory("empty");
    f.link("to_file", "file");
    f.link("to_directory", "a/b");
    f.link("to_directory_slash", "a/b/");
    f.link("to_file_slash", "file/");
    f.link("to_file_dot", "file/.");
    f.link("a/up", "../file");
    f.link("a/b/around", "../../a/b/c/../../../file");
    f.link("to_root", ".");
    f.link("a/to_root", "..");
    f.link("dangling", "nothing/here");
    f.link("dangling_up", "nothing/../file");
    f.link("dangling_out", "nothing/../../out/secret");
    f.link("out_relative", "../out/secret");
    f.link("out_missing", "../out/missing");
    f.link("out_directory", "../out");
    f.link("out_and_back", "../ws/file");
    f.link("out_absolute", f.outside.join("secret"));
    f.link("etc", "/etc/passwd");
    f.link("slash", "/");
    f.link("process_root", "/proc/self/root/etc/passwd");
    f.link("inside_absolute", f.workspace.join("a/b"));
    f.link("inside_absolute_missing", f.workspace.join("new/file"));
    f.link("inside_absolute_root", &f.workspace);
    f.link("inside_absolute_dots", f.workspace.join("a/../../out/secret"));
    f.link("inside_absolute_twin", format!("{}2/file", f.workspace.display()));
    f.link("inside_by_detour", f.outside.join("../ws/file"));
    f.link("loop", "loop");
    f.link("loop_a", "loop_b");
    f.link("loop_b", "loop_a");
    f.link("loop_grows", "loop_grows/x");
    f.link("link_up_physical", "to_directory/../../file");
    f.link("via_file", "file/../file");
    f.link("dots_only", "./././a/./b/.");
    create_symlink_chain(&f, "c40", 40);
    create_symlink_chain(&f, "c41", 41);
    f
}

fn create_symlink_chain(f: &DiskFixture, name: &str, links: usize) {
    f.link(&format!("{name}_1"), "file");
    for number in 2..=links {
        let this = if number == links { name.to_owned() } else { format!("{name}_{number}") };
        f.link(&this, format!("{name}_{}", number - 1));
    }
}

type ResolveCase = (&'static str, FinalSymlink, Result<&'static str, DiskErrorKind>);

const CASES: &[ResolveCase] = &[
    (".", Follow, Ok(".")),
    ("file", Follow, Ok("file")),
    ("file", Keep, Ok("file")),
    ("a/b/c/d/deep", Follow, Ok("a/b/c/d/deep")),
    ("missing", Follow, Ok("missing")),
    ("missing/more/and/more", Follow, Ok("missing/more/and/more")),
    ("a/missing/x", Keep, Ok("a/missing/x")),
    ("file/x", Follow, Err(NotDirectory)),
    ("file/x/y", Keep, Err(NotDirectory)),
    ("to_file/x", Follow, Err(NotDirectory)),
    ("to_file", Follow, Ok("file")),
    ("to_file", Keep, Ok("to_file")),
    ("to_directory", Follow, Ok("a/b")),
    ("to_directory", Keep, Ok("to_directory")),
    ("to_directory/c/d/deep", Follow, Ok("a/b/c/d/deep")),
    ("to_directory/c/d/deep", Keep, Ok("a/b/c/d/deep")),
    ("to_directory/new", Follow, Ok("a/b/new")),
    ("to_directory/new/x", Keep, Ok("a/b/new/x")),
    ("to_directory_slash", Follow, Ok("a/b")),
    ("to_directory_slash/c", Follow, Ok("a/b/c")),
    ("to_file_slash", Follow, Err(NotDirectory)),
    ("to_file_slash", Keep, Ok("to_file_slash")),
    ("to_file_dot", Follow, Err(NotDirectory)),
    ("a/up", Follow, Ok("file")),
    ("a/up", Keep, Ok("a/up")),
    ("a/b/around", Follow, Ok("file")),
    ("to_directory/around", Follow, Ok("file")),
    ("to_directory/around", Keep, Ok("a/b/around")),
    ("to_root", Follow, Ok(".")),
    ("to_root/to_root/file", Follow, Ok("file")),
    ("a/to_root/a/to_root/a/up", Follow, Ok("file")),
    ("dangling", Follow, Ok("nothing/here")),
    ("dangling", Keep, Ok("dangling")),
    ("dangling/x", Follow, Ok("nothing/here/x")),
    ("dangling_up", Follow, Err(NotFound)),
    ("dangling_out", Follow, Err(OutsideRoot)),
    ("dangling_out", Keep, Ok("dangling_out")),
    ("out_relative", Follow, Err(OutsideRoot)),
    ("out_relative", Keep, Ok("out_relative")),
    ("out_missing", Follow, Err(OutsideRoot)),
    ("out_directory", Follow, Err(OutsideRoot)),
    ("out_directory/secret", Follow, Err(OutsideRoot)),
    ("out_directory/secret", Keep, Err(OutsideRoot)),
    ("out_directory/missing", Keep, Err(OutsideRoot)),
    ("out_and_back", Follow, Err(OutsideRoot)),
    ("out_absolute", Follow, Err(OutsideRoot)),
    ("etc", Follow, Err(OutsideRoot)),
    ("slash", Follow, Err(OutsideRoot)),
    ("slash/etc/passwd", Follow, Err(OutsideRoot)),
    ("process_root", Follow, Err(OutsideRoot)),
    ("inside_absolute", Follow, Ok("a/b")),
    ("inside_absolute/c/d", Keep, Ok("a/b/c/d")),
    ("inside_absolute_missing", Follow, Ok("new/file")),
    ("inside_absolute_root", Follow, Ok(".")),
    ("inside_absolute_root/a/up", Follow, Ok("file")),
    ("inside_absolute_dots", Follow, Err(OutsideRoot)),
    ("inside_absolute_twin", Follow, Err(OutsideRoot)),
    ("inside_by_detour", Follow, Err(OutsideRoot)),
    ("loop", Follow, Err(SymlinkLoop)),
    ("loop", Keep, Ok("loop")),
    ("loop/x", Keep, Err(SymlinkLoop)),
    ("loop_a", Follow, Err(SymlinkLoop)),
    ("loop_grows", Follow, Err(SymlinkLoop)),
    ("link_up_physical", Follow, Ok("file")),
    ("via_file", Follow, Err(NotDirectory)),
    ("dots_only", Follow, Ok("a/b")),
    ("c40", Follow, Ok("file")),
    ("c41", Follow, Err(SymlinkLoop)),
    ("c41", Keep, Ok("c41")),
];

#[test]
fn every_case_passes_with_both_resolvers() {
    let f = tree_with_links();
    let mut wrong = Vec::new();
    for resolver in BOTH_RESOLVERS {
        let root = f.root(resolver);
        for (input, last, expected) in CASES {
            let got = root.canonicalize(&rel_path(input), *last).map_err(|error| error.kind);
            if got != expected.map(rel_path) {
                wrong.push(format!("{resolver:?} {input} {last:?}: {got:?}, expected {expected:?}"));
            }
            if let Ok(path) = got {
                assert_eq!(root.canonicalize(&path, Keep).as_ref(), Ok(&path), "{resolver:?} {input}");
                let is_link = root.stat(&path).unwrap().is_some_and(|s| s.file_type == FileType::Symlink);
                assert!(!is_link || *last == Keep, "{resolver:?} {input} ends in a link");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn opening_never_follows_symlinks() {
    let f = tree_with_links();
    for resolver in BOTH_RESOLVERS {
        let root = f.root(resolver);
        assert_eq!(kind(root.open_file(&rel_path("to_file"))), DiskErrorKind::IsSymlink);
        assert_eq!(kind(root.open_file(&rel_path("out_relative"))), DiskErrorKind::IsSymlink);
        assert_eq!(kind(root.open_directory(&rel_path("to_directory"))), DiskErrorKind::IsSymlink);
        assert_eq!(kind(root.open_file(&rel_path("to_directory/c/d/deep"))), ChangedConcurrently);
        assert_eq!(kind(root.stat(&rel_path("out_directory/secret"))), ChangedConcurrently);
        assert_eq!(kind(root.open_directory(&rel_path("out_directory/x"))), ChangedConcurrently);
        assert_eq!(kind(root.create_directories(&rel_path("out_directory/x"), 0o755)), ChangedConcurrently);
        assert_eq!(kind(root.create_directories(&rel_path("to_directory"), 0o755)), DiskErrorKind::IsSymlink);
        assert_eq!(root.read_link(&rel_path("out_relative")).unwrap(), b"../out/secret");
        assert_eq!(kind(root.open_file(&rel_path("file/x"))), NotDirectory);
        assert_eq!(kind(root.stat(&rel_path("file/x"))), NotDirectory);
        assert_eq!(kind(root.open_file(&rel_path("a"))), DiskErrorKind::IsDirectory);
        assert_eq!(kind(root.open_directory(&rel_path("file"))), NotDirectory);
        assert_eq!(kind(root.open_file(&rel_path("nope"))), NotFound);
        assert_eq!(root.stat(&rel_path("nope/deeper")).unwrap(), None);
        assert_eq!(kind(root.open_file(&rel_path("."))), DiskErrorKind::IsDirectory);
    }
    assert!(!f.outside.join("x").exists());
}

#[test]
fn the_root_path_may_contain_symlinks() {
    let f = tree_with_links();
    let alias = f.outside.join("alias");
    std::os::unix::fs::symlink(&f.workspace, &alias).unwrap();
    f.link("by_alias", alias.join("a/b"));
    for resolver in BOTH_RESOLVERS {
        let root =
            RootDirectory::open(&alias, RootDirectoryOptions { resolver, ..RootDirectoryOptions::default() }).unwrap();
        assert_eq!(root.absolute_path(), alias.to_str().unwrap());
        assert_eq!(root.equivalent_paths(), [alias.to_str().unwrap(), f.workspace.to_str().unwrap()]);
        assert_eq!(root.id(), f.root(resolver).id());
        assert_eq!(root.canonicalize(&rel_path("by_alias/c"), Follow), Ok(rel_path("a/b/c")));
        assert_eq!(root.canonicalize(&rel_path("inside_absolute"), Follow), Ok(rel_path("a/b")));
        assert_eq!(kind(f.root(resolver).canonicalize(&rel_path("by_alias"), Follow)), OutsideRoot);
    }
}

#[test]
fn creates_missing_directories() {
    for resolver in BOTH_RESOLVERS {
        let f = tree_with_links();
        let root = f.root(resolver);
        let (made, created) = root.create_directories(&rel_path("a/n1/n2/n3"), 0o750).unwrap();
        assert_eq!(created, [rel_path("a/n1"), rel_path("a/n1/n2"), rel_path("a/n1/n2/n3")]);
        let stat = root.stat(&rel_path("a/n1/n2/n3")).unwrap().unwrap();
        assert_eq!((stat.fingerprint.id, stat.mode & 0o027), (made.id(), 0o020 & stat.mode));
        assert_eq!(root.create_directories(&rel_path("a/n1/n2"), 0o750).unwrap().1, []);
        assert_eq!(kind(root.create_directories(&rel_path("file/x"), 0o750)), NotDirectory);
        let root_again = root.create_directories(&rel_path("."), 0o750).unwrap().0;
        assert_eq!(root_again.id(), root.id());
    }
}

#[test]
fn names_are_bytes_with_length_limits() {
    let f = DiskFixture::new();
    let odd = stead_path::RelPath::from_components([b"caf\xff".as_slice(), &[b'n'; 255]]).unwrap();
    for resolver in BOTH_RESOLVERS {
        let root = f.root(resolver);
        let (parent, last) = odd.split().unwrap();
        let (directory, _) = root.create_directories(&parent, 0o755).unwrap();
        let staged = directory
            .stage_file(
                stead_disk::StagedContentSource::Bytes(b"x"),
                stead_disk::FileAttributeSource::New { mode: 0o644 },
            )
            .unwrap();
        directory.replace_with_staged(&staged, &last).unwrap();
        assert_eq!(root.open_file(&odd).unwrap().read_all(9).unwrap(), b"x");
        assert_eq!(root.canonicalize(&odd, Follow).as_ref(), Ok(&odd));
        assert!(directory.list().unwrap().iter().any(|entry| entry.name == last));
    }
}

#[test]
fn auto_uses_the_kernel_resolver_if_available() {
    let f = DiskFixture::new();
    let root = RootDirectory::open(&f.workspace, RootDirectoryOptions::default()).unwrap();
    assert_eq!(root.resolver(), PathResolutionMethod::Kernel);
    assert!(root.disk_space().unwrap().total_bytes > 0);
    root.sync_file_system().unwrap();
    assert_eq!(kind(RootDirectory::open(&f.workspace.join("nope"), RootDirectoryOptions::default())), NotFound);
    f.file("file", "");
    assert_eq!(kind(RootDirectory::open(&f.workspace.join("file"), RootDirectoryOptions::default())), NotDirectory);
}
