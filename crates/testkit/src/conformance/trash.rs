//! Removing to the trash and bringing back.

use engine::{Change, Expect, Kind, Top, Tree};

use super::{Bench, Cases, KEEP_MS, Maker, at, commit_fails, no_stamp, one_file, put, remove};

pub(super) const CASES: Cases = &[
    ("what is removed can be found and brought back", there_and_back),
    ("trees go and come whole", tree),
    ("the trash knows whose things are whose", owners),
    ("nothing comes back over something else", taken),
    ("what was not seen is not removed", unmet),
];

fn restore(trash: &str, path: &str, tree: Tree) -> Change {
    Change::Restore { trash: trash.to_owned(), path: at(path), tree }
}

fn there_and_back(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_file("f", b"f");
    let keep_until_ms = bench.workspace.now_ms() + KEEP_MS;
    let tree = one_file(1);
    let change = Change::Remove { path: at("f"), expect: bench.file("f"), keep_until_ms, tree };
    let committed = bench.commit(vec![change]);
    let [id] = committed.trash.as_slice() else { panic!("{:?}", committed.trash) };
    assert!(!bench.exists("f"));
    let item = bench.workspace.trashed(id).unwrap().unwrap();
    assert_eq!(
        (item.path, item.owner.as_str(), item.tree, item.entry, item.keep_until_ms),
        (at("f"), "agent:one", tree, committed.number, keep_until_ms)
    );
    // To another place.
    bench.commit(vec![restore(id, "g", tree)]);
    assert_eq!((bench.exists("f"), bench.bytes("g")), (false, b"f".to_vec()));
    assert_eq!(bench.workspace.trashed(id).unwrap(), None);
    assert_eq!(bench.workspace.trash(None).unwrap(), Vec::new());
    commit_fails(bench.try_commit(vec![restore(id, "h", tree)]), Kind::NotFound);
}

fn tree(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_directory("d");
    bench.new_directory("d/e");
    bench.new_file("d/e/f", b"f");
    bench.commit(vec![Change::MakeLink { path: at("d/l"), target: b"e/f".to_vec() }]);
    let before = bench.tree();
    let tree = Tree { top: Top::Directory, files: 1, directories: 2, bytes: 1 };
    let committed = bench.commit(vec![remove("d", Expect::Node(bench.node("d").stamp), tree)]);
    assert_eq!(bench.tree(), Vec::new());
    bench.commit(vec![restore(&committed.trash[0], "d", tree)]);
    assert_eq!(bench.tree(), before);
}

fn owners(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let other = bench.and("two");
    for path in ["a", "b", "c"] {
        bench.new_file(path, b"x");
    }
    let first = bench.commit(vec![remove("a", bench.file("a"), one_file(1))]).trash;
    let second = other.commit(vec![remove("b", bench.file("b"), one_file(1))]).trash;
    let third = bench.commit(vec![remove("c", bench.file("c"), one_file(1))]).trash;
    let ids = |owner: Option<&Bench>| -> Vec<String> {
        let items = bench.workspace.trash(owner.map(|bench| &bench.caller.principal)).unwrap();
        items.into_iter().map(|item| item.id).collect()
    };
    let newest_first =
        |lists: &[&Vec<String>]| lists.iter().flat_map(|list| (*list).clone()).collect::<Vec<_>>();
    assert_eq!(ids(None), newest_first(&[&third, &second, &first]));
    assert_eq!(ids(Some(&bench)), newest_first(&[&third, &first]));
    assert_eq!(ids(Some(&other)), second);
}

fn taken(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_file("f", b"old");
    let id = bench.commit(vec![remove("f", bench.file("f"), one_file(3))]).trash.remove(0);
    bench.new_file("f", b"new");
    bench.moved(vec![restore(&id, "f", one_file(3))], "f");
    bench.impossible(vec![restore(&id, "none/f", one_file(3))]);
    assert!(bench.workspace.trashed(&id).unwrap().is_some());
    commit_fails(bench.try_commit(vec![restore("t-unknown", "x", one_file(3))]), Kind::NotFound);
}

fn unmet(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_file("f", b"one");
    let old = bench.file("f");
    bench.commit(vec![put("f", old, b"two")]);
    bench.new_directory("d");
    bench.moved(vec![remove("f", old, one_file(3))], "f");
    bench.moved(vec![remove("d", Expect::Node(no_stamp()), one_file(0))], "d");
    bench.moved(vec![remove("none", Expect::Node(no_stamp()), one_file(0))], "none");
    assert_eq!(bench.workspace.trash(None).unwrap(), Vec::new());
}
