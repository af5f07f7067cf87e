//! Conformance tests of leases: one holder at a time, an expiry, and an increasing number.

use stead_engine::{Error, ErrorKind, Lease, LeaseAcquireOrReleaseRequest};

use super::{
    ConformanceWorkspaceFactory, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest, assert_fails, rel_path,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("one holder for a place and all around it", lease_is_exclusive_for_subtree),
    ("a lease ends", lease_expires),
    ("numbers rise with every grant", fencing_numbers_rise),
    ("only the holder gives back", only_holder_releases),
    ("leases are found for several paths, each once", leases_are_found_once),
];

pub(super) const LONG_MS: i64 = 600_000;

pub(super) fn acquire_lease(fixture: &WorkspaceUnderConformanceTest, path: &str, for_ms: i64) -> Result<Lease, Error> {
    let ask =
        LeaseAcquireOrReleaseRequest::Acquire { path: rel_path(path), ends_ms: fixture.workspace.now_ms() + for_ms };
    fixture.workspace.execute_lease_request(&ask, &fixture.journal_record("lock", None)).map(|(lease, _)| lease)
}

pub(super) fn release_lease(fixture: &WorkspaceUnderConformanceTest, path: &str) -> Result<Lease, Error> {
    fixture
        .workspace
        .execute_lease_request(
            &LeaseAcquireOrReleaseRequest::Release { path: rel_path(path) },
            &fixture.journal_record("unlock", None),
        )
        .map(|(lease, _)| lease)
}

pub(super) fn lease_holders(fixture: &WorkspaceUnderConformanceTest, path: &str) -> Vec<String> {
    let leases = fixture.workspace.leases(&[rel_path(path)]).unwrap();
    leases.into_iter().map(|lease| format!("{} {}", lease.holder, lease.path)).collect()
}

fn lease_is_exclusive_for_subtree(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let other = fixture.with_other_agent("two");
    let before = fixture.head_number();
    let lease = acquire_lease(&fixture, "d/e", LONG_MS).unwrap();
    assert_eq!((lease.path, lease.holder.as_str()), (rel_path("d/e"), "agent:one"));
    assert_eq!(fixture.head_number(), before + 1, "a lease is recorded");
    for near in ["d", "d/e", "d/e/f", ""] {
        assert_fails(acquire_lease(&other, near, LONG_MS), ErrorKind::Locked);
        assert_eq!(lease_holders(&fixture, near), ["agent:one d/e"]);
    }
    for far in ["d/f", "de", "d/e2"] {
        assert_eq!(lease_holders(&fixture, far), Vec::<String>::new());
        acquire_lease(&other, far, LONG_MS).unwrap();
    }
    assert_eq!(fixture.head_number(), before + 4, "a refused lease is not recorded by the workspace");
    // The holder may extend the lease to a parent.
    acquire_lease(&fixture, "d/e/g", LONG_MS).unwrap();
}

fn lease_expires(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    acquire_lease(&fixture, "d", 0).unwrap();
    assert_eq!(lease_holders(&fixture, "d"), Vec::<String>::new());
    acquire_lease(&fixture.with_other_agent("two"), "d", LONG_MS).unwrap();
    assert_eq!(lease_holders(&fixture, "d"), ["agent:two d"]);
}

fn fencing_numbers_rise(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let mut last = 0;
    for path in ["a", "b", "a"] {
        let fence = acquire_lease(&fixture, path, LONG_MS).unwrap().fencing_token;
        assert!(fence > last, "{fence} after {last}");
        last = fence;
    }
    assert_eq!(fixture.workspace.leases(&[rel_path("")]).unwrap().len(), 2, "taken again is prolonged");
    release_lease(&fixture, "a").unwrap();
    assert!(acquire_lease(&fixture.with_other_agent("two"), "a", LONG_MS).unwrap().fencing_token > last);
}

fn only_holder_releases(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let other = fixture.with_other_agent("two");
    let lease = acquire_lease(&fixture, "d", LONG_MS).unwrap();
    assert_fails(release_lease(&other, "d"), ErrorKind::NotOwner);
    assert_fails(release_lease(&fixture, "d/e"), ErrorKind::NotFound);
    assert_eq!(release_lease(&fixture, "d").unwrap().fencing_token, lease.fencing_token);
    assert_fails(release_lease(&fixture, "d"), ErrorKind::NotFound);
    acquire_lease(&other, "d", LONG_MS).unwrap();
}

fn leases_are_found_once(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    for path in ["a", "b/c", "d"] {
        acquire_lease(&fixture, path, LONG_MS).unwrap();
    }
    let found = |paths: &[&str]| -> Vec<String> {
        let paths: Vec<_> = paths.iter().map(|path| rel_path(path)).collect();
        let mut found: Vec<String> =
            fixture.workspace.leases(&paths).unwrap().into_iter().map(|lease| lease.path.to_string()).collect();
        found.sort();
        found
    };
    assert_eq!(found(&[]), Vec::<String>::new());
    assert_eq!(found(&["a", "a/x", "b"]), ["a", "b/c"]);
    assert_eq!(found(&[""]), ["a", "b/c", "d"]);
}
