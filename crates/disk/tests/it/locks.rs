//! Locks between open file descriptions and between processes.

use stead_disk::{LockMode, StateDirectory};

use crate::{
    child_process::{assert_child_passes, is_child},
    fixture::DiskFixture,
};

/// The path of the lock file for the child.
const CHILD_DIRECTORY_ENV: &str = "DISK_TEST_LOCKS";

#[test]
fn open_file_descriptions_exclude_each_other() {
    let f = DiskFixture::new();
    let state = StateDirectory::open(&f.outside.join("state")).unwrap();
    let (one, two) = (state.open_lock_file().unwrap(), state.open_lock_file().unwrap());
    assert!(one.try_lock(7, LockMode::Exclusive).unwrap());
    assert!(!two.try_lock(7, LockMode::Exclusive).unwrap());
    assert!(!two.try_lock(7, LockMode::Shared).unwrap());
    assert!(two.try_lock(8, LockMode::Exclusive).unwrap());
    assert!(one.try_lock(7, LockMode::Shared).unwrap());
    assert!(two.try_lock(7, LockMode::Shared).unwrap());
    assert!(!one.try_lock(7, LockMode::Exclusive).unwrap());
    one.unlock(7).unwrap();
    one.unlock(7).unwrap();
    assert!(two.try_lock(7, LockMode::Exclusive).unwrap());
    drop(two);
    assert!(one.try_lock(7, LockMode::Exclusive).unwrap());
    let last = u64::try_from(i64::MAX).unwrap() - 1;
    assert!(one.try_lock(last, LockMode::Exclusive).unwrap());
    assert!(one.try_lock(u64::MAX, LockMode::Exclusive).is_err());
}

#[test]
fn processes_exclude_each_other() {
    if is_child() {
        let path = std::env::var(CHILD_DIRECTORY_ENV).unwrap();
        let locks = StateDirectory::open(path.as_ref()).unwrap().open_lock_file().unwrap();
        assert!(!locks.try_lock(1, LockMode::Shared).unwrap());
        assert!(locks.try_lock(2, LockMode::Exclusive).unwrap());
        // Exits with slot 2 locked.
        return;
    }
    let f = DiskFixture::new();
    let path = f.outside.join("state");
    let locks = StateDirectory::open(&path).unwrap().open_lock_file().unwrap();
    assert!(locks.try_lock(1, LockMode::Exclusive).unwrap());
    let variable = format!("{CHILD_DIRECTORY_ENV}={}", path.display());
    assert_child_passes(&["env", &variable], "locks::processes_exclude_each_other");
    assert!(locks.try_lock(2, LockMode::Exclusive).unwrap());
}
