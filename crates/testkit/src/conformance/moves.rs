//! Moving files, links and trees; over nothing and over a file.

use engine::{Change, Expect, Top, Tree, Version};

use super::{Bench, Cases, LARGE, Maker, at, no_stamp, one_file, put, shift};

pub(super) const CASES: Cases = &[
    ("a file moves with its bytes and bits", file),
    ("a file moves over another, which is kept", over),
    ("a tree moves whole", tree),
    ("a link moves itself", link),
    ("what was not seen does not move", unmet),
    ("an emptied directory can go", directory),
];

const TREE: Tree = Tree { top: Top::Directory, files: 1, directories: 2, bytes: 1 };

fn file(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_directory("d");
    let large = vec![b'l'; LARGE];
    for (name, bytes) in [("small", b"s".as_slice()), ("large", &large)] {
        bench.new_file(name, bytes);
        let to = format!("d/{name}");
        let mode = bench.node(name).mode;
        bench.commit(vec![shift(name, &to, bench.file(name), Expect::Absent, one_file(bytes.len() as u64))]);
        assert!(!bench.exists(name));
        assert_eq!((bench.bytes(&to), bench.node(&to).mode), (bytes.to_vec(), mode));
    }
}

fn over(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let large = vec![b'l'; LARGE];
    for replaced in [b"replaced".as_slice(), &large] {
        bench.new_file("from", b"from");
        let expect = if bench.exists("to") { bench.file("to") } else { Expect::Absent };
        bench.commit(vec![put("to", expect, replaced)]);
        let (from, to) = (bench.file("from"), bench.file("to"));
        let committed = bench.commit(vec![shift("from", "to", from, to, one_file(4))]);
        assert!(!bench.exists("from"));
        assert_eq!(bench.bytes("to"), b"from");
        assert_eq!(bench.workspace.kept(&Version::of(replaced)).unwrap().as_deref(), Some(replaced));
        let changes = bench.workspace.entry(committed.number).unwrap().unwrap().entry.changes;
        assert_eq!(changes.len(), 2, "what was replaced and what moved: {changes:?}");
    }
}

fn tree(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_directory("d");
    bench.new_directory("d/e");
    bench.new_file("d/e/f", b"f");
    bench.new_directory("x");
    let expect = Expect::Node(bench.node("d").stamp);
    bench.commit(vec![shift("d", "x/d", expect, Expect::Absent, TREE)]);
    assert!(!bench.exists("d"));
    assert_eq!(bench.bytes("x/d/e/f"), b"f");
}

fn link(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_file("f", b"f");
    bench.commit(vec![Change::MakeLink { path: at("l"), target: b"f".to_vec() }]);
    let expect = Expect::Node(bench.node("l").stamp);
    let one_link = Tree { top: Top::Link, files: 0, directories: 0, bytes: 0 };
    bench.commit(vec![shift("l", "m", expect, Expect::Absent, one_link)]);
    assert_eq!((bench.exists("l"), bench.workspace.read_link(&at("m")).unwrap()), (false, b"f".to_vec()));
    assert_eq!(bench.bytes("f"), b"f");
}

fn unmet(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_file("f", b"one");
    let old = bench.file("f");
    bench.commit(vec![put("f", old, b"two")]);
    bench.new_file("g", b"g");
    bench.new_directory("d");
    bench.moved(vec![shift("f", "x", old, Expect::Absent, one_file(3))], "f");
    bench.moved(vec![shift("f", "g", bench.file("f"), Expect::Absent, one_file(3))], "g");
    bench.moved(vec![shift("f", "d", bench.file("f"), Expect::Absent, one_file(3))], "d");
    bench.moved(vec![shift("g", "f", bench.file("g"), old, one_file(1))], "f");
    bench.moved(vec![shift("none", "x", Expect::Node(no_stamp()), Expect::Absent, TREE)], "none");
    bench.moved(vec![shift("d", "x", Expect::Node(no_stamp()), Expect::Absent, TREE)], "d");
    bench.impossible(vec![shift("f", "none/x", bench.file("f"), Expect::Absent, one_file(3))]);
}

fn directory(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_directory("d");
    bench.new_file("d/f", b"f");
    bench.impossible(vec![Change::RemoveDirectory { path: at("d") }]);
    bench.impossible(vec![Change::RemoveDirectory { path: at("none") }]);
    bench.commit(vec![
        super::remove("d/f", bench.file("d/f"), one_file(1)),
        Change::RemoveDirectory { path: at("d") },
    ]);
    assert_eq!(bench.tree(), Vec::new());
}
