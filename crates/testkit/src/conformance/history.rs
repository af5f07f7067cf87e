//! The journal: the chain, what is found by which filter, what is undone, and waiting for more.

use std::time::{Duration, Instant};

use engine::{EntryFilter, Expect, Kind, Order, Record, Version, Which};
use journal::{Decision, Link, Origin, encode, genesis, link_hash};

use super::{Bench, Cases, Maker, at, put, remove};

pub(super) const CASES: Cases = &[
    ("the chain has no gap", chain),
    ("reads and refusals are entries too", notes),
    ("entries are found by place, caller, operation, number and time", filters),
    ("what is undone is known until it is redone", undone),
    ("the entry that left a version is known", revs),
    ("waiting ends with an entry or at the deadline", waiting),
];

pub(super) fn everything() -> EntryFilter {
    EntryFilter { order: Order::OldestFirst, limit: usize::MAX, ..EntryFilter::default() }
}

/// Numbers rise by one and every hash follows from the one before.
pub(super) fn check_chain(bench: &Bench) {
    let head = bench.workspace.head().unwrap();
    let entries = bench.workspace.entries(&everything()).unwrap();
    let mut hash = genesis(&Origin::new(&bench.workspace.profile().id).unwrap());
    for (number, stored) in (1..).zip(&entries) {
        assert_eq!(stored.entry.number, number);
        hash = link_hash(&hash, &encode(&stored.entry));
        assert_eq!(stored.hash, hash, "entry {number}");
    }
    assert_eq!((head.number, head.hash), (entries.len() as u64, hash));
}

fn chain(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    check_chain(&bench);
    bench.new_file("f", b"1");
    bench.workspace.note(&bench.record("read", None)).unwrap();
    let committed = bench.commit(vec![put("f", bench.file("f"), b"2")]);
    let head = bench.workspace.head().unwrap();
    assert_eq!((committed.number, committed.hash), (head.number, head.hash));
    assert_eq!(bench.workspace.entry(head.number + 1).unwrap().map(|stored| stored.hash), None);
    assert_eq!(bench.workspace.entry(0).unwrap().map(|stored| stored.hash), None);
    check_chain(&bench);
}

fn notes(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.workspace.note(&bench.record("read", None)).unwrap();
    let refused = Record { reason: Some(Kind::OutOfScope), ..bench.record("write", None) };
    bench.workspace.note(&refused).unwrap();
    let failed = Record { reason: Some(Kind::Stale), ..bench.record("write", None) };
    bench.workspace.note(&failed).unwrap();
    assert_eq!(bench.head(), 3);
    let entries = bench.workspace.entries(&everything()).unwrap();
    let told: Vec<_> =
        entries.iter().map(|stored| (stored.entry.decision, stored.entry.reason.as_deref())).collect();
    assert_eq!(
        told,
        [
            (Decision::Allowed, None),
            (Decision::Refused, Some(Kind::OutOfScope.code())),
            (Decision::Failed, Some(Kind::Stale.code())),
        ]
    );
}

fn filters(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let other = bench.and("two");
    bench.new_directory("d");
    bench.new_file("d/x", b"x");
    other.new_file("dx", b"y");
    bench.workspace.note(&bench.record("read", None)).unwrap();
    bench.commit(vec![put("d/x", bench.file("d/x"), b"z")]);
    bench.head();
    let numbers = |filter: EntryFilter| -> Vec<u64> {
        let filter = EntryFilter { limit: filter.limit.max(1), ..filter };
        bench.workspace.entries(&filter).unwrap().iter().map(|stored| stored.entry.number).collect()
    };
    let all = everything;
    assert_eq!(numbers(all()), [1, 2, 3, 4, 5]);
    assert_eq!(numbers(EntryFilter { order: Order::NewestFirst, limit: 2, ..all() }), [5, 4]);
    assert_eq!(numbers(EntryFilter { limit: 2, ..all() }), [1, 2]);
    assert_eq!(numbers(EntryFilter { path: Some(at("d/x")), ..all() }), [2, 5]);
    assert_eq!(numbers(EntryFilter { path: Some(at("d")), ..all() }), [1, 2, 5]);
    assert_eq!(numbers(EntryFilter { path: Some(at("")), what: Which::Changes, ..all() }), [1, 2, 3, 5]);
    assert_eq!(numbers(EntryFilter { principal: Some("agent:two".into()), ..all() }), [3]);
    assert_eq!(numbers(EntryFilter { operation: Some("read".into()), ..all() }), [4]);
    assert_eq!(numbers(EntryFilter { what: Which::Changes, ..all() }), [1, 2, 3, 5]);
    assert_eq!(numbers(EntryFilter { after: Some(1), before: Some(4), ..all() }), [2, 3]);
    // A call that changed nothing is about what it asked for; a change only about what it changed.
    let asked = Record { paths: vec![at("d/x")], ..bench.record("read", None) };
    bench.workspace.note(&asked).unwrap();
    let plan = super::Plan::of(vec![put("copy", Expect::Absent, b"z")]);
    bench.workspace.commit(&plan, &Record { operation: "copy", ..asked }).unwrap();
    bench.head();
    assert_eq!(numbers(EntryFilter { path: Some(at("d/x")), ..all() }), [2, 5, 6]);
    assert_eq!(numbers(EntryFilter { path: Some(at("d/x")), what: Which::Changes, ..all() }), [2, 5]);
    let now_ms = bench.workspace.now_ms();
    assert_eq!(numbers(EntryFilter { since_ms: Some(now_ms + 60_000), ..all() }), Vec::<u64>::new());
    assert_eq!(numbers(EntryFilter { until_ms: Some(now_ms - 60_000), ..all() }), Vec::<u64>::new());
    assert_eq!(numbers(EntryFilter { since_ms: Some(now_ms - 60_000), ..all() }).len(), 7);
}

fn undone(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let first = bench.new_file("f", b"1");
    let undone = |number| bench.workspace.undone(number).unwrap();
    assert_eq!(undone(first), None);
    for _ in 0..2 {
        let change = remove("f", bench.file("f"), super::one_file(1));
        let by = bench.linked(vec![change], Link::Undoes(first));
        assert_eq!(undone(first), Some(by));
        bench.linked(vec![put("f", Expect::Absent, b"1")], Link::Redoes(first));
        assert_eq!(undone(first), None);
    }
    // A plan that does not come true marks nothing.
    let late = super::Plan::linked(vec![put("f", Expect::Absent, b"x")], Link::Undoes(first));
    assert!(bench.try_plan(&late, None).is_err());
    assert_eq!(undone(first), None);
}

fn revs(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let rev = |path: &str, bytes: &[u8]| bench.workspace.rev_of(&at(path), &Version::of(bytes)).unwrap();
    let first = bench.new_file("f", b"1");
    let second = bench.commit(vec![put("f", bench.file("f"), b"2")]).number;
    assert_eq!((rev("f", b"1"), rev("f", b"2"), rev("f", b"3")), (Some(first), Some(second), None));
    let third = bench.commit(vec![put("f", bench.file("f"), b"1")]).number;
    assert_eq!(rev("f", b"1"), Some(third), "the last one counts");
    let moved = super::shift("f", "g", bench.file("f"), Expect::Absent, super::one_file(1));
    let fourth = bench.commit(vec![moved]).number;
    assert_eq!((rev("g", b"1"), rev("g", b"2")), (Some(fourth), None));
}

fn waiting(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    bench.new_file("f", b"1");
    let head = bench.head();
    let soon = || Instant::now() + Duration::from_millis(30);
    let late = || Instant::now() + Duration::from_secs(20);
    let start = Instant::now();
    bench.workspace.wait_after(head - 1, late()).unwrap();
    assert!(start.elapsed() < Duration::from_secs(5), "there was an entry already");
    bench.workspace.wait_after(head, soon()).unwrap();
    assert!(start.elapsed() >= Duration::from_millis(30), "there was none");
    assert_eq!(bench.head(), head);
    let deadline = late();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| bench.workspace.wait_after(head, deadline));
        bench.and("two").new_file("g", b"2");
        waiting.join().unwrap().unwrap();
    });
    assert!(Instant::now() < deadline, "nobody was woken");
}
