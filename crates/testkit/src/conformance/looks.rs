//! Looking: stat, read, list, links and where paths lead.

use engine::{Change, Kind, Last, Top, Version, Want};
use path::RelPath;

use super::{Bench, Cases, Maker, at, fails};

pub(super) const CASES: Cases = &[
    ("an empty workspace is empty", empty),
    ("what is there is told", told),
    ("what is read is what is asked for", ranges),
    ("the wrong kind of thing is told apart", wrong_kind),
    ("links lead where they say, inside", links),
    ("links that lead nowhere good are refused", bad_links),
];

fn empty(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    assert_eq!(bench.tree(), Vec::new());
    assert_eq!(bench.head(), 0);
    assert_eq!(bench.node("").top, Top::Directory);
    assert!(!bench.exists("a"));
    assert!(!bench.exists("a/b"));
}

fn told(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_directory("d");
    bench.new_file("d/b", b"bb");
    bench.new_file("d/a", b"a");
    bench.new_file("d.c", b"c");
    let node = bench.node("d/b");
    assert_eq!((node.top, node.size, node.links), (Top::File, 2, 1));
    assert_eq!((bench.node("d").top, bench.node("d").size), (Top::Directory, 0));
    let names = |path: &str| -> Vec<String> {
        let listed = bench.workspace.list(&at(path)).unwrap();
        listed.iter().map(|listed| listed.name.to_wire().into_owned()).collect()
    };
    assert_eq!(
        (names(""), names("d")),
        (vec!["d".to_owned(), "d.c".to_owned()], vec!["a".into(), "b".into()])
    );
    let again = bench.node("d/b").stamp;
    assert_eq!(again, node.stamp, "a stamp stays while nothing changes");
}

fn ranges(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_file("f", b"0123456789");
    let read = |want| bench.workspace.read(&at("f"), want).unwrap();
    let range = |offset, length| read(Want::Range { offset, length }).bytes;
    assert_eq!(range(2, 3), b"234");
    assert_eq!(range(8, 100), b"89");
    assert_eq!(range(10, 1), b"");
    assert_eq!(range(100, 1), b"");
    assert_eq!(range(3, 0), b"");
    let version = Version::of(b"0123456789");
    for want in [Want::Nothing, Want::Whole { limit_bytes: 10 }, Want::Range { offset: 1, length: 1 }] {
        let file = read(want);
        assert_eq!((file.version, file.node.size), (version, 10), "{want:?}");
    }
    assert_eq!(read(Want::Whole { limit_bytes: 10 }).bytes, b"0123456789");
    fails(bench.workspace.read(&at("f"), Want::Whole { limit_bytes: 9 }), Kind::TooLarge);
}

fn wrong_kind(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_directory("d");
    bench.new_file("f", b"f");
    bench.commit(vec![Change::MakeLink { path: at("l"), target: b"f".to_vec() }]);
    let workspace = &bench.workspace;
    fails(workspace.read(&at("d"), Want::Nothing), Kind::IsDirectory);
    fails(workspace.read(&at("none"), Want::Nothing), Kind::NotFound);
    // Whoever reads has located the place before: a link there has just come, or is no file.
    assert!(workspace.read(&at("l"), Want::Nothing).is_err());
    fails(workspace.list(&at("f")), Kind::NotDirectory);
    fails(workspace.list(&at("none")), Kind::NotFound);
    assert!(workspace.read_link(&at("f")).is_err());
    assert_eq!(bench.node("l").top, Top::Link);
    assert_eq!(workspace.read_link(&at("l")).unwrap(), b"f");
}

fn links(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_directory("d");
    bench.new_directory("d/e");
    let link = |path: &str, target: &str| {
        bench.commit(vec![Change::MakeLink { path: at(path), target: target.as_bytes().to_vec() }]);
    };
    link("l", "d/e");
    link("d/up", "../l");
    let locate = |path: &str, last| bench.workspace.locate(&at(path), last).unwrap();
    assert_eq!(locate("l", Last::Follow), at("d/e"));
    assert_eq!(locate("l", Last::Keep), at("l"));
    assert_eq!(locate("l/new", Last::Keep), at("d/e/new"));
    assert_eq!(locate("d/up/x/y", Last::Follow), at("d/e/x/y"));
    assert_eq!(locate("none/at/all", Last::Follow), at("none/at/all"));
    assert_eq!(locate("", Last::Follow), RelPath::root());
    // Whoever finds sees what whoever locates and then looks would see, or says nothing about it.
    bench.new_file("d/e/f", b"f");
    for path in ["d/e/f", "l/f", "l", "d/up/f", "d", "none", ""] {
        for last in [Last::Follow, Last::Keep] {
            let (place, seen) = bench.workspace.find(&at(path), last).unwrap();
            assert_eq!(place, locate(path, last), "{path}");
            let looked = bench.workspace.stat(&place).unwrap();
            assert!(seen.is_none() || seen == looked, "{path}: {seen:?} {looked:?}");
        }
    }
}

fn bad_links(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let link = |path: &str, target: &str| {
        bench.commit(vec![Change::MakeLink { path: at(path), target: target.as_bytes().to_vec() }]);
    };
    link("out", "../elsewhere");
    link("absolute", "/etc");
    link("ring", "ring");
    bench.new_file("f", b"f");
    let locate = |path: &str| bench.workspace.locate(&at(path), Last::Follow);
    fails(locate("out"), Kind::PathEscape);
    fails(locate("out/x"), Kind::PathEscape);
    fails(locate("absolute"), Kind::PathEscape);
    fails(locate("ring"), Kind::LinkLoop);
    fails(locate("f/x"), Kind::NotDirectory);
}
