//! Writing files: every expectation, met and unmet, every source of bytes, and plans of several changes.

use engine::{Change, Content, Expect, Kind, Mode, Seen, Version};
use journal::Link;

use super::{Bench, Cases, LARGE, Maker, at, commit_fails, no_stamp, put, put_as};

pub(super) const CASES: Cases = &[
    ("a new file needs a free place", absent),
    ("a replaced file must be the one that was seen", replaced),
    ("permission bits are kept, set, and never set-id", modes),
    ("bytes that were replaced are kept", kept),
    ("a copy is of what was seen", copied),
    ("directories and links are made where nothing is", made),
    ("a plan is all or nothing", all_or_nothing),
    ("changes of one plan build on each other", in_order),
    ("nothing is made below what is no directory", no_parent),
    ("the same key is never applied twice", keys),
];

fn absent(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_file("f", b"one");
    assert_eq!(bench.bytes("f"), b"one");
    bench.new_directory("d");
    for taken in ["f", "d"] {
        bench.moved(vec![put(taken, Expect::Absent, b"two")], taken);
    }
    bench.new_file("empty", b"");
    assert_eq!(bench.bytes("empty"), b"");
}

fn replaced(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_file("f", b"one");
    let first = bench.seen("f");
    bench.commit(vec![put("f", Expect::File(first), b"two")]);
    assert_eq!(bench.bytes("f"), b"two");
    bench.moved(vec![put("f", Expect::File(first), b"three")], "f");
    // The version decides; a stamp only saves a second look.
    let other_stamp = Seen { version: Version::of(b"two"), stamp: no_stamp() };
    bench.commit(vec![put("f", Expect::File(other_stamp), b"three")]);
    assert_eq!(bench.bytes("f"), b"three");
    bench.moved(vec![put("none", Expect::File(first), b"x")], "none");
    bench.new_directory("d");
    bench.moved(vec![put("d", Expect::File(first), b"x")], "d");
    let large = vec![b'l'; LARGE];
    bench.commit(vec![put("f", bench.file("f"), &large)]);
    assert_eq!(bench.bytes("f"), large);
    bench.commit(vec![put("f", bench.file("f"), b"small")]);
    assert_eq!(bench.bytes("f"), b"small");
}

fn modes(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let mode = |path: &str| bench.node(path).mode & 0o7777;
    bench.commit(vec![put_as("f", Expect::Absent, b"1", Mode::Set(0o700))]);
    assert_eq!(mode("f"), 0o700);
    bench.commit(vec![put("f", bench.file("f"), b"2")]);
    assert_eq!(mode("f"), 0o700);
    bench.commit(vec![put_as("f", bench.file("f"), b"3", Mode::Set(0o4600))]);
    assert_eq!(mode("f"), 0o600);
    let like = Mode::Like(at("f"), bench.seen("f"));
    bench.commit(vec![
        put_as("f", bench.file("f"), b"4", Mode::Set(0o640)),
        put_as("g", Expect::Absent, b"4", like.clone()),
    ]);
    assert_eq!((mode("f"), mode("g")), (0o640, 0o600));
    bench.moved(vec![put_as("h", Expect::Absent, b"5", like)], "f");
    assert!(!bench.exists("h"));
}

fn kept(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let large = vec![b'l'; LARGE];
    for old in [b"small".as_slice(), &large] {
        let expect = if bench.exists("f") { bench.file("f") } else { Expect::Absent };
        bench.commit(vec![put("f", expect, old)]);
        bench.commit(vec![put("f", bench.file("f"), b"over")]);
        let version = Version::of(old);
        assert_eq!(bench.workspace.kept(&version).unwrap().as_deref(), Some(old));
        let again = Change::Put {
            path: at("f"),
            expect: bench.file("f"),
            content: Content::Kept(version),
            version,
            size: old.len() as u64,
            mode: Mode::Keep,
        };
        bench.commit(vec![again]);
        assert_eq!(bench.bytes("f"), old);
    }
    let unknown = Version::of(b"never seen");
    assert_eq!(bench.workspace.kept(&unknown).unwrap(), None);
    let content = Content::Kept(unknown);
    let change = Change::Put {
        path: at("g"),
        expect: Expect::Absent,
        content,
        version: unknown,
        size: 10,
        mode: Mode::Keep,
    };
    commit_fails(bench.try_commit(vec![change]), Kind::Expired);
    assert!(!bench.exists("g"));
}

fn copied(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let large = vec![b'l'; LARGE];
    for (from, bytes) in [("small", b"small".as_slice()), ("large", &large)] {
        bench.commit(vec![put_as(from, Expect::Absent, bytes, Mode::Set(0o640))]);
        let seen = bench.seen(from);
        let to = format!("{from}.copy");
        let copy = |to: &str| Change::Put {
            path: at(to),
            expect: Expect::Absent,
            content: Content::CopyOf(at(from), seen),
            version: seen.version,
            size: bytes.len() as u64,
            mode: Mode::Keep,
        };
        bench.commit(vec![copy(&to)]);
        assert_eq!((bench.bytes(&to), bench.node(&to).mode & 0o777), (bytes.to_vec(), 0o640));
        bench.commit(vec![put(from, bench.file(from), b"changed")]);
        bench.moved(vec![copy("late")], from);
    }
}

fn made(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let directory = |path: &str| Change::MakeDirectory { path: at(path), mode: 0o755 };
    let link = |path: &str| Change::MakeLink { path: at(path), target: b"d".to_vec() };
    bench.commit(vec![directory("d"), link("l")]);
    bench.new_file("f", b"f");
    for taken in ["d", "l", "f"] {
        bench.moved(vec![directory(taken)], taken);
        bench.moved(vec![link(taken)], taken);
    }
}

fn all_or_nothing(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_file("a", b"a");
    bench.new_file("b", b"b");
    let old = bench.file("b");
    bench.commit(vec![put("b", old, b"B")]);
    let large = vec![b'l'; LARGE];
    bench.moved(
        vec![
            put("new", Expect::Absent, &large),
            put("a", bench.file("a"), b"A"),
            Change::MakeDirectory { path: at("d"), mode: 0o755 },
            put("b", old, b"late"),
        ],
        "b",
    );
}

fn in_order(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_file("f", b"f");
    let committed = bench.commit(vec![
        Change::MakeDirectory { path: at("d"), mode: 0o755 },
        Change::MakeDirectory { path: at("d/e"), mode: 0o755 },
        put("d/e/x", Expect::Absent, b"x"),
        super::shift("f", "d/f", bench.file("f"), Expect::Absent, super::one_file(1)),
        put("f", Expect::Absent, b"another"),
    ]);
    assert_eq!((bench.bytes("d/e/x"), bench.bytes("d/f")), (b"x".to_vec(), b"f".to_vec()));
    assert_eq!(bench.bytes("f"), b"another");
    let entry = bench.workspace.entry(committed.number).unwrap().unwrap();
    assert_eq!((entry.entry.changes.len(), entry.entry.link, entry.hash), (5, Link::None, committed.hash));
    // Taken apart again, last things first.
    bench.commit(vec![
        super::remove("d/e/x", bench.file("d/e/x"), super::one_file(1)),
        Change::RemoveDirectory { path: at("d/e") },
    ]);
    assert!(bench.exists("d") && !bench.exists("d/e"));
}

fn no_parent(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_file("f", b"f");
    for path in ["none/x", "f/x"] {
        bench.impossible(vec![put(path, Expect::Absent, b"x")]);
        bench.impossible(vec![Change::MakeDirectory { path: at(path), mode: 0o755 }]);
    }
}

fn keys(maker: &dyn Maker) {
    use engine::{CommitError, Plan};
    let bench = Bench::new(maker);
    let other = bench.and("two");
    let plan = |path: &str| Plan::of(vec![put(path, Expect::Absent, b"x")]);
    let replayed = |bench: &Bench, key: &str| bench.workspace.replayed(&bench.caller.principal, key).unwrap();
    assert_eq!(replayed(&bench, "k"), None);
    let number = bench.try_plan(&plan("a"), Some("k")).unwrap().number;
    assert_eq!((replayed(&bench, "k"), replayed(&other, "k")), (Some(number), None));
    match bench.try_plan(&plan("b"), Some("k")) {
        Err(CommitError::Replayed(first)) => assert_eq!(first, number),
        other => panic!("applied twice: {other:?}"),
    }
    assert!(!bench.exists("b"));
    let second = other.try_plan(&plan("b"), Some("k")).unwrap().number;
    assert_eq!(replayed(&other, "k"), Some(second));
    // A plan that did not come true leaves its key free.
    assert!(bench.try_plan(&plan("a"), Some("again")).is_err());
    assert_eq!(replayed(&bench, "again"), None);
    bench.try_plan(&plan("c"), Some("again")).unwrap();
}
