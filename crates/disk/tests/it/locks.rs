//! Locks between open file descriptions and between processes.

use disk::{Mode, StateDirectory};

use crate::{
    child::{is_child, must_pass},
    fixture::Fixture,
};

/// Tells the child where the lock file is.
const PLACE: &str = "DISK_TEST_LOCKS";

#[test]
fn descriptions_exclude_each_other() {
    let f = Fixture::new();
    let state = StateDirectory::open(&f.out.join("state")).unwrap();
    let (one, two) = (state.lock_file().unwrap(), state.lock_file().unwrap());
    assert!(one.try_lock(7, Mode::Exclusive).unwrap());
    assert!(!two.try_lock(7, Mode::Exclusive).unwrap());
    assert!(!two.try_lock(7, Mode::Shared).unwrap());
    assert!(two.try_lock(8, Mode::Exclusive).unwrap());
    assert!(one.try_lock(7, Mode::Shared).unwrap());
    assert!(two.try_lock(7, Mode::Shared).unwrap());
    assert!(!one.try_lock(7, Mode::Exclusive).unwrap());
    one.unlock(7).unwrap();
    one.unlock(7).unwrap();
    assert!(two.try_lock(7, Mode::Exclusive).unwrap());
    drop(two);
    assert!(one.try_lock(7, Mode::Exclusive).unwrap());
    let last = u64::try_from(i64::MAX).unwrap() - 1;
    assert!(one.try_lock(last, Mode::Exclusive).unwrap());
    assert!(one.try_lock(u64::MAX, Mode::Exclusive).is_err());
}

#[test]
fn processes_exclude_each_other() {
    if is_child() {
        let place = std::env::var(PLACE).unwrap();
        let locks = StateDirectory::open(place.as_ref()).unwrap().lock_file().unwrap();
        assert!(!locks.try_lock(1, Mode::Shared).unwrap());
        assert!(locks.try_lock(2, Mode::Exclusive).unwrap());
        // Dies holding slot 2.
        return;
    }
    let f = Fixture::new();
    let path = f.out.join("state");
    let locks = StateDirectory::open(&path).unwrap().lock_file().unwrap();
    assert!(locks.try_lock(1, Mode::Exclusive).unwrap());
    let place = format!("{PLACE}={}", path.display());
    must_pass(&["env", &place], "locks::processes_exclude_each_other");
    assert!(locks.try_lock(2, Mode::Exclusive).unwrap());
}
