//! What is still so after the workspace was closed and opened again.

use engine::{Change, Expect, Version};
use journal::Link;

use super::{
    Bench, Cases, LARGE, Maker, Plan, at,
    history::{check_chain, everything},
    lease, one_file, put, remove,
};

pub(super) const CASES: Cases = &[
    ("files, journal, keys and marks last", files),
    ("trash and kept bytes last", old_bytes),
    ("leases last, and their numbers go on", leases),
];

fn files(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let number = bench.try_plan(&Plan::of(vec![put("f", Expect::Absent, b"f")]), Some("k")).unwrap().number;
    bench.new_directory("d");
    let change = remove("f", bench.file("f"), one_file(1));
    let by = bench.linked(vec![change], Link::Undoes(number));
    bench.workspace.note(&bench.record("read", None)).unwrap();
    let before = (bench.tree(), bench.head());
    let hashes = |bench: &Bench| -> Vec<_> {
        bench.workspace.entries(&everything()).unwrap().into_iter().map(|stored| stored.hash).collect()
    };
    let chain = hashes(&bench);
    let id = bench.workspace.profile().id.clone();
    let bench = bench.reopened(maker);
    assert_eq!(bench.workspace.profile().id, id);
    assert_eq!((bench.tree(), bench.head()), before);
    assert_eq!(hashes(&bench), chain);
    assert_eq!(bench.workspace.replayed(&bench.caller.principal, "k").unwrap(), Some(number));
    assert_eq!(bench.workspace.undone(number).unwrap(), Some(by));
    assert_eq!(bench.workspace.rev_of(&at("f"), &Version::of(b"f")).unwrap(), Some(number));
    bench.new_file("g", b"g");
    check_chain(&bench);
}

fn old_bytes(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let large = vec![b'l'; LARGE];
    for (path, bytes) in [("small", b"s".as_slice()), ("large", &large)] {
        bench.new_file(path, bytes);
        bench.commit(vec![put(path, bench.file(path), b"over")]);
    }
    let removed = bench.commit(vec![remove("large", bench.file("large"), one_file(4))]);
    let bench = bench.reopened(maker);
    for bytes in [b"s".as_slice(), &large] {
        assert_eq!(bench.workspace.kept(&Version::of(bytes)).unwrap().as_deref(), Some(bytes));
    }
    let item = bench.workspace.trashed(&removed.trash[0]).unwrap().unwrap();
    bench.commit(vec![Change::Restore { trash: item.id, path: item.path, tree: item.tree }]);
    assert_eq!(bench.bytes("large"), b"over");
}

fn leases(maker: &dyn Maker) {
    let bench = Bench::new(maker);
    let before = lease::take(&bench, "d", lease::LONG_MS).unwrap();
    let bench = bench.reopened(maker);
    let leases = bench.workspace.leases(&[at("d")]).unwrap();
    assert_eq!(leases, std::slice::from_ref(&before));
    assert!(lease::take(&bench, "e", lease::LONG_MS).unwrap().fence > before.fence);
}
