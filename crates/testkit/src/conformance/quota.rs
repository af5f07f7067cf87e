//! What is held is carried on by every change, and a quota holds inside the commit.

use engine::{Change, CommitError, Expect, Kind, Look, Plan, Quota, Record, Stock, Top, Tree};
use journal::Link;

use super::{Bench, Cases, Maker, at, one_file, put, remove, shift};

pub(super) const CASES: Cases = &[
    ("what is held follows every change", followed),
    ("a quota holds inside the commit", held),
    ("an undo may bring back what there was", undone),
    ("a full trash takes nothing more", trash),
];

const FREE: Quota = Quota { bytes: None, files: None, trash_bytes: None, history_bytes: None };

/// Commits under a quota; answers the entry.
fn under(bench: &Bench, quota: Quota, changes: Vec<Change>, link: Link) -> Result<(u64, Vec<String>), Kind> {
    let record = Record { quota: Some(quota), ..bench.record("test", None) };
    match bench.workspace.commit(&Plan::linked(changes, link), &record) {
        Ok(committed) => Ok((committed.number, committed.trash)),
        Err(CommitError::Failed(failure)) => Err(failure.kind),
        Err(other) => panic!("{other:?}"),
    }
}

fn stock(bench: &Bench, look: Look) -> (u64, u64) {
    let Stock { bytes, files } =
        bench.workspace.holding(&bench.caller.principal, look).unwrap().unwrap().stock;
    (bytes, files)
}

fn followed(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_directory("d");
    bench.new_file("d/a", b"12345");
    assert_eq!(stock(&bench, Look::Due), (5, 2));
    let run = |changes| under(&bench, FREE, changes, Link::None).unwrap();
    run(vec![put("b", Expect::Absent, b"123")]);
    assert_eq!(stock(&bench, Look::Known), (8, 3));
    run(vec![put("b", bench.file("b"), b"1")]);
    assert_eq!(stock(&bench, Look::Known), (6, 3));
    run(vec![Change::MakeDirectory { path: at("e"), mode: 0o755 }, put("e/c", Expect::Absent, b"12")]);
    assert_eq!(stock(&bench, Look::Known), (8, 5));
    run(vec![Change::MakeLink { path: at("l"), target: b"d/a".to_vec() }]);
    assert_eq!(stock(&bench, Look::Known).1, 6);
    let with_link = stock(&bench, Look::Known).0;
    run(vec![shift("e/c", "b", bench.file("e/c"), bench.file("b"), one_file(2))]);
    assert_eq!(stock(&bench, Look::Known), (with_link - 1, 5));
    run(vec![Change::RemoveDirectory { path: at("e") }]);
    assert_eq!(stock(&bench, Look::Known), (with_link - 1, 4));
    let tree = Tree { top: Top::Directory, files: 1, directories: 1, bytes: 5 };
    let (_, trash) = run(vec![remove("d", Expect::Node(bench.node("d").stamp), tree)]);
    assert_eq!(stock(&bench, Look::Known), (with_link - 6, 2));
    run(vec![Change::Restore { trash: trash[0].clone(), path: at("d"), tree }]);
    assert_eq!(stock(&bench, Look::Known), (with_link - 1, 4));
    let known = stock(&bench, Look::Known);
    let bench = bench.reopened(maker);
    assert_eq!(stock(&bench, Look::Known), known);
    assert_eq!(stock(&bench, Look::Fresh), known);
}

fn held(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    stock(&bench, Look::Due);
    let tight = Quota { bytes: Some(10), files: Some(2), ..FREE };
    let run = |changes| under(&bench, tight, changes, Link::None).map(|_| ());
    run(vec![put("a", Expect::Absent, b"123456")]).unwrap();
    let before = (bench.tree(), bench.head());
    assert_eq!(run(vec![put("b", Expect::Absent, b"12345")]), Err(Kind::Quota));
    assert_eq!((bench.tree(), bench.head()), before, "nothing is changed or recorded");
    run(vec![put("b", Expect::Absent, b"1234")]).unwrap();
    assert_eq!(run(vec![put("c", Expect::Absent, b"")]), Err(Kind::Quota));
    run(vec![put("a", bench.file("a"), b"")]).unwrap();
    run(vec![remove("b", bench.file("b"), one_file(4))]).unwrap();
    run(vec![put("b", Expect::Absent, b"1234567890")]).unwrap();
    assert_eq!(run(vec![put("a", bench.file("a"), b"1")]), Err(Kind::Quota));
}

fn undone(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_file("a", b"1234567890");
    stock(&bench, Look::Due);
    let tight = Quota { bytes: Some(5), ..FREE };
    let (removal, trash) =
        under(&bench, tight, vec![remove("a", bench.file("a"), one_file(10))], Link::None).unwrap();
    let back = || vec![Change::Restore { trash: trash[0].clone(), path: at("a"), tree: one_file(10) }];
    assert_eq!(under(&bench, tight, back(), Link::None).map(|_| ()), Err(Kind::Quota));
    // With something else in its place it would be more than there ever was.
    under(&bench, tight, vec![put("b", Expect::Absent, b"1")], Link::None).unwrap();
    assert_eq!(under(&bench, tight, back(), Link::Undoes(removal)).map(|_| ()), Err(Kind::Quota));
    under(&bench, tight, vec![remove("b", bench.file("b"), one_file(1))], Link::None).unwrap();
    under(&bench, tight, back(), Link::Undoes(removal)).unwrap();
    assert_eq!(bench.bytes("a"), b"1234567890");
}

fn trash(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    for path in ["a", "b"] {
        bench.new_file(path, b"12345");
    }
    stock(&bench, Look::Due);
    let tight = Quota { trash_bytes: Some(5), ..FREE };
    let gone = |who: &Bench, path: &str| {
        under(who, tight, vec![remove(path, who.file(path), one_file(5))], Link::None).map(|_| ())
    };
    gone(&bench, "a").unwrap();
    assert_eq!(gone(&bench, "b"), Err(Kind::Quota));
    assert!(bench.exists("b"));
    // Everybody has a trash of their own.
    gone(&bench.and("two"), "b").unwrap();
}
