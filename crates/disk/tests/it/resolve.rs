//! Every resolution case, on both resolvers: the same question, the same answer.

use disk::{
    ErrorKind::{self, Escape, LinkLoop, Moved, NotDirectory, NotFound},
    FileType,
    Last::{self, Follow, Keep},
    Resolver, Root, RootOptions,
};

use crate::fixture::{BOTH, Fixture, kind, rel};

fn tree() -> Fixture {
    let f = Fixture::new();
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
    f.link("out_absolute", f.out.join("secret"));
    f.link("etc", "/etc/passwd");
    f.link("slash", "/");
    f.link("process_root", "/proc/self/root/etc/passwd");
    f.link("inside_absolute", f.ws.join("a/b"));
    f.link("inside_absolute_missing", f.ws.join("new/file"));
    f.link("inside_absolute_root", &f.ws);
    f.link("inside_absolute_dots", f.ws.join("a/../../out/secret"));
    f.link("inside_absolute_twin", format!("{}2/file", f.ws.display()));
    f.link("inside_by_detour", f.out.join("../ws/file"));
    f.link("loop", "loop");
    f.link("loop_a", "loop_b");
    f.link("loop_b", "loop_a");
    f.link("loop_grows", "loop_grows/x");
    f.link("link_up_physical", "to_directory/../../file");
    f.link("via_file", "file/../file");
    f.link("dots_only", "./././a/./b/.");
    chain(&f, "c40", 40);
    chain(&f, "c41", 41);
    f
}

/// `<name>` needs exactly `links` links to reach `file`.
fn chain(f: &Fixture, name: &str, links: usize) {
    f.link(&format!("{name}_1"), "file");
    for number in 2..=links {
        let this = if number == links { name.to_owned() } else { format!("{name}_{number}") };
        f.link(&this, format!("{name}_{}", number - 1));
    }
}

type Case = (&'static str, Last, Result<&'static str, ErrorKind>);

const CASES: &[Case] = &[
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
    ("dangling_out", Follow, Err(Escape)),
    ("dangling_out", Keep, Ok("dangling_out")),
    ("out_relative", Follow, Err(Escape)),
    ("out_relative", Keep, Ok("out_relative")),
    ("out_missing", Follow, Err(Escape)),
    ("out_directory", Follow, Err(Escape)),
    ("out_directory/secret", Follow, Err(Escape)),
    ("out_directory/secret", Keep, Err(Escape)),
    ("out_directory/missing", Keep, Err(Escape)),
    ("out_and_back", Follow, Err(Escape)),
    ("out_absolute", Follow, Err(Escape)),
    ("etc", Follow, Err(Escape)),
    ("slash", Follow, Err(Escape)),
    ("slash/etc/passwd", Follow, Err(Escape)),
    ("process_root", Follow, Err(Escape)),
    ("inside_absolute", Follow, Ok("a/b")),
    ("inside_absolute/c/d", Keep, Ok("a/b/c/d")),
    ("inside_absolute_missing", Follow, Ok("new/file")),
    ("inside_absolute_root", Follow, Ok(".")),
    ("inside_absolute_root/a/up", Follow, Ok("file")),
    ("inside_absolute_dots", Follow, Err(Escape)),
    ("inside_absolute_twin", Follow, Err(Escape)),
    ("inside_by_detour", Follow, Err(Escape)),
    ("loop", Follow, Err(LinkLoop)),
    ("loop", Keep, Ok("loop")),
    ("loop/x", Keep, Err(LinkLoop)),
    ("loop_a", Follow, Err(LinkLoop)),
    ("loop_grows", Follow, Err(LinkLoop)),
    ("link_up_physical", Follow, Ok("file")),
    ("via_file", Follow, Err(NotDirectory)),
    ("dots_only", Follow, Ok("a/b")),
    ("c40", Follow, Ok("file")),
    ("c41", Follow, Err(LinkLoop)),
    ("c41", Keep, Ok("c41")),
];

#[test]
fn every_case_on_both_resolvers() {
    let f = tree();
    let mut wrong = Vec::new();
    for resolver in BOTH {
        let root = f.root(resolver);
        for (input, last, expected) in CASES {
            let got = root.canonical(&rel(input), *last).map_err(|error| error.kind);
            if got != expected.map(rel) {
                wrong.push(format!("{resolver:?} {input} {last:?}: {got:?}, expected {expected:?}"));
            }
            // What a resolution answers is its own answer, and can be looked at.
            if let Ok(path) = got {
                assert_eq!(root.canonical(&path, Keep).as_ref(), Ok(&path), "{resolver:?} {input}");
                let is_link = root.stat(&path).unwrap().is_some_and(|s| s.file_type == FileType::Link);
                assert!(!is_link || *last == Keep, "{resolver:?} {input} ends in a link");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn links_are_never_followed_when_opening() {
    let f = tree();
    for resolver in BOTH {
        let root = f.root(resolver);
        assert_eq!(kind(root.open_file(&rel("to_file"))), ErrorKind::IsLink);
        assert_eq!(kind(root.open_file(&rel("out_relative"))), ErrorKind::IsLink);
        assert_eq!(kind(root.open_directory(&rel("to_directory"))), ErrorKind::IsLink);
        assert_eq!(kind(root.open_file(&rel("to_directory/c/d/deep"))), Moved);
        assert_eq!(kind(root.stat(&rel("out_directory/secret"))), Moved);
        assert_eq!(kind(root.open_directory(&rel("out_directory/x"))), Moved);
        assert_eq!(kind(root.make_directories(&rel("out_directory/x"), 0o755)), Moved);
        assert_eq!(kind(root.make_directories(&rel("to_directory"), 0o755)), ErrorKind::IsLink);
        assert_eq!(root.read_link(&rel("out_relative")).unwrap(), b"../out/secret");
        assert_eq!(kind(root.open_file(&rel("file/x"))), NotDirectory);
        assert_eq!(kind(root.stat(&rel("file/x"))), NotDirectory);
        assert_eq!(kind(root.open_file(&rel("a"))), ErrorKind::IsDirectory);
        assert_eq!(kind(root.open_directory(&rel("file"))), NotDirectory);
        assert_eq!(kind(root.open_file(&rel("nope"))), NotFound);
        assert_eq!(root.stat(&rel("nope/deeper")).unwrap(), None);
        assert_eq!(kind(root.open_file(&rel("."))), ErrorKind::IsDirectory);
    }
    assert!(!f.out.join("x").exists());
}

#[test]
fn the_root_may_be_reached_through_a_link() {
    let f = tree();
    let alias = f.out.join("alias");
    std::os::unix::fs::symlink(&f.ws, &alias).unwrap();
    f.link("by_alias", alias.join("a/b"));
    for resolver in BOTH {
        let root = Root::open(&alias, RootOptions { resolver, ..RootOptions::default() }).unwrap();
        assert_eq!(root.absolute(), alias.to_str().unwrap());
        assert_eq!(root.spellings(), [alias.to_str().unwrap(), f.ws.to_str().unwrap()]);
        assert_eq!(root.id(), f.root(resolver).id());
        assert_eq!(root.canonical(&rel("by_alias/c"), Follow), Ok(rel("a/b/c")));
        assert_eq!(root.canonical(&rel("inside_absolute"), Follow), Ok(rel("a/b")));
        // A root that was not opened by the alias does not know it.
        assert_eq!(kind(f.root(resolver).canonical(&rel("by_alias"), Follow)), Escape);
    }
}

#[test]
fn makes_directories_one_by_one() {
    for resolver in BOTH {
        let f = tree();
        let root = f.root(resolver);
        let (made, created) = root.make_directories(&rel("a/n1/n2/n3"), 0o750).unwrap();
        assert_eq!(created, [rel("a/n1"), rel("a/n1/n2"), rel("a/n1/n2/n3")]);
        let stat = root.stat(&rel("a/n1/n2/n3")).unwrap().unwrap();
        assert_eq!((stat.stamp.id, stat.mode & 0o027), (made.id(), 0o020 & stat.mode));
        assert_eq!(root.make_directories(&rel("a/n1/n2"), 0o750).unwrap().1, []);
        assert_eq!(kind(root.make_directories(&rel("file/x"), 0o750)), NotDirectory);
        let root_again = root.make_directories(&rel("."), 0o750).unwrap().0;
        assert_eq!(root_again.id(), root.id());
    }
}

#[test]
fn names_are_bytes_and_have_limits() {
    let f = Fixture::new();
    let odd = path::RelPath::from_components([b"caf\xff".as_slice(), &[b'n'; 255]]).unwrap();
    for resolver in BOTH {
        let root = f.root(resolver);
        let (parent, last) = odd.split().unwrap();
        let (directory, _) = root.make_directories(&parent, 0o755).unwrap();
        let staged =
            directory.stage(disk::Source::Bytes(b"x"), disk::Attributes::New { mode: 0o644 }).unwrap();
        directory.replace(&staged, &last).unwrap();
        assert_eq!(root.open_file(&odd).unwrap().read_all(9).unwrap(), b"x");
        assert_eq!(root.canonical(&odd, Follow).as_ref(), Ok(&odd));
        assert!(directory.list().unwrap().iter().any(|entry| entry.name == last));
    }
}

#[test]
fn auto_takes_the_kernel_where_it_can() {
    let f = Fixture::new();
    let root = Root::open(&f.ws, RootOptions::default()).unwrap();
    assert_eq!(root.resolver(), Resolver::Kernel);
    assert!(root.space().unwrap().total_bytes > 0);
    root.sync_file_system().unwrap();
    assert_eq!(kind(Root::open(&f.ws.join("nope"), RootOptions::default())), NotFound);
    f.file("file", "");
    assert_eq!(kind(Root::open(&f.ws.join("file"), RootOptions::default())), NotDirectory);
}
