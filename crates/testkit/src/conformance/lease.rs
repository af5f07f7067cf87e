//! Leases: one holder, an end, and a number that rises.

use engine::{Failure, Kind, Lease, LeaseAsk};

use super::{Bench, Cases, Maker, at, fails};

pub(super) const CASES: Cases = &[
    ("one holder for a place and all around it", exclusive),
    ("a lease ends", ends),
    ("numbers rise with every grant", fences),
    ("only the holder gives back", given_back),
];

pub(super) const LONG_MS: i64 = 600_000;

pub(super) fn take(bench: &Bench, path: &str, for_ms: i64) -> Result<Lease, Failure> {
    let ask = LeaseAsk::Take { path: at(path), ends_ms: bench.workspace.now_ms() + for_ms };
    bench.workspace.lease(&ask, &bench.record("lock", None)).map(|(lease, _)| lease)
}

fn release(bench: &Bench, path: &str) -> Result<Lease, Failure> {
    bench
        .workspace
        .lease(&LeaseAsk::Release { path: at(path) }, &bench.record("unlock", None))
        .map(|(lease, _)| lease)
}

fn held(bench: &Bench, path: &str) -> Vec<String> {
    let leases = bench.workspace.leases(&[at(path)]).unwrap();
    leases.into_iter().map(|lease| format!("{} {}", lease.holder, lease.path)).collect()
}

fn exclusive(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let other = bench.and("two");
    let before = bench.head();
    let lease = take(&bench, "d/e", LONG_MS).unwrap();
    assert_eq!((lease.path, lease.holder.as_str()), (at("d/e"), "agent:one"));
    assert_eq!(bench.head(), before + 1, "a lease is recorded");
    for near in ["d", "d/e", "d/e/f", ""] {
        fails(take(&other, near, LONG_MS), Kind::Locked);
        assert_eq!(held(&bench, near), ["agent:one d/e"]);
    }
    for far in ["d/f", "de", "d/e2"] {
        assert_eq!(held(&bench, far), Vec::<String>::new());
        take(&other, far, LONG_MS).unwrap();
    }
    assert_eq!(bench.head(), before + 4, "a refused lease is recorded by whoever asked");
    // The holder may take more around it.
    take(&bench, "d/e/g", LONG_MS).unwrap();
}

fn ends(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    take(&bench, "d", 0).unwrap();
    assert_eq!(held(&bench, "d"), Vec::<String>::new());
    take(&bench.and("two"), "d", LONG_MS).unwrap();
    assert_eq!(held(&bench, "d"), ["agent:two d"]);
}

fn fences(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let mut last = 0;
    for path in ["a", "b", "a"] {
        let fence = take(&bench, path, LONG_MS).unwrap().fence;
        assert!(fence > last, "{fence} after {last}");
        last = fence;
    }
    assert_eq!(bench.workspace.leases(&[at("")]).unwrap().len(), 2, "taken again is prolonged");
    release(&bench, "a").unwrap();
    assert!(take(&bench.and("two"), "a", LONG_MS).unwrap().fence > last);
}

fn given_back(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let other = bench.and("two");
    let lease = take(&bench, "d", LONG_MS).unwrap();
    fails(release(&other, "d"), Kind::NotOwner);
    fails(release(&bench, "d/e"), Kind::NotFound);
    assert_eq!(release(&bench, "d").unwrap().fence, lease.fence);
    fails(release(&bench, "d"), Kind::NotFound);
    take(&other, "d", LONG_MS).unwrap();
}
