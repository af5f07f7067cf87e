//! Conformance tests of path locks: a locked path and the directories above it stay as they are.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use stead_engine::{CallLockGuard, Error, ErrorKind, PathLockRequest};

use super::{
    ConformanceWorkspaceFactory, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest, assert_fails, rel_path,
};
use crate::wait::WAIT_TIMEOUT;

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("a lock excludes the path, and all above and below it", lock_excludes_path_and_subtree),
    ("a lock is free when its guard is dropped", lock_ends_with_its_guard),
    ("a failed lock holds none of its paths", failed_lock_holds_nothing),
    ("a lock request waits for another call", lock_request_waits),
];

pub(super) fn lock_until(
    fixture: &WorkspaceUnderConformanceTest,
    paths: &[&str],
    deadline: Instant,
) -> Result<Box<dyn CallLockGuard>, Error> {
    let requests: Vec<PathLockRequest> = paths.iter().map(|path| PathLockRequest { path: rel_path(path) }).collect();
    fixture.workspace.lock(&requests, deadline)
}

/// Locks paths without waiting for other calls.
pub(super) fn try_lock(
    fixture: &WorkspaceUnderConformanceTest,
    paths: &[&str],
) -> Result<Box<dyn CallLockGuard>, Error> {
    lock_until(fixture, paths, Instant::now())
}

#[track_caller]
pub(super) fn assert_locked(fixture: &WorkspaceUnderConformanceTest, paths: &[&str]) {
    assert_fails(try_lock(fixture, paths).map(drop), ErrorKind::Busy);
}

fn lock_excludes_path_and_subtree(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let _guard = try_lock(&fixture, &["d/e"]).unwrap();
    for path in ["d/e", "d", "", "d/e/f"] {
        assert_locked(&fixture, &[path]);
    }
    for path in ["d/f", "de", "d/e2", "x"] {
        try_lock(&fixture, &[path]).unwrap();
    }
}

fn lock_ends_with_its_guard(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    // One call may name a path twice, and a path together with a path below it.
    let guard = try_lock(&fixture, &["a", "a", "b", "b/c"]).unwrap();
    assert_locked(&fixture, &["a"]);
    drop(guard);
    drop(try_lock(&fixture, &["a", "b/c"]).unwrap());
    drop(try_lock(&fixture, &[""]).unwrap());
    drop(try_lock(&fixture, &[]).unwrap());
}

fn failed_lock_holds_nothing(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let _guard = try_lock(&fixture, &["b"]).unwrap();
    assert_locked(&fixture, &["a", "b", "c"]);
    drop(try_lock(&fixture, &["a", "c"]).unwrap());
}

fn lock_request_waits(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let is_released = AtomicBool::new(false);
    let guard = try_lock(&fixture, &["f"]).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let locked = lock_until(&fixture, &["f"], Instant::now() + WAIT_TIMEOUT);
            locked.map(|_guard| is_released.load(Ordering::SeqCst))
        });
        is_released.store(true, Ordering::SeqCst);
        drop(guard);
        assert!(waiting.join().unwrap().unwrap(), "the lock was granted while another call held it");
    });
}
