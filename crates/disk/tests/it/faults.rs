//! Every system call of a replacement fails once: the file is whole, and nothing is left behind.

use std::sync::{Mutex, PoisonError};

use disk::{
    Attributes, Source,
    faults::{Action, Call, Calls, FaultPlan, Fired, Scope, arm, disarm},
};

use crate::{
    child::{is_child, output_of},
    fixture::{Fixture, kind, name},
};

/// Tells the child where the workspace is.
const PLACE: &str = "DISK_TEST_FAULTS";
/// The plan is one for the whole process, so these tests go one after the other.
static ALONE: Mutex<()> = Mutex::new(());

/// Does one thing under a plan; tells what the plan saw.
fn under<T>(plan: FaultPlan, step: impl FnOnce() -> T) -> (T, Fired) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    arm(plan);
    let done = step();
    (done, disarm())
}

/// `EIO`.
const BROKEN: i32 = 5;

fn plan(at: u64, action: Action) -> FaultPlan {
    FaultPlan { at, action, scope: Scope::ThisThread, calls: Calls::All }
}

fn replace(f: &Fixture) -> Result<(), disk::DiskError> {
    let root = disk::Root::open(&f.ws, disk::RootOptions::default())?;
    let top = root.open_directory(&path::RelPath::root())?;
    let old = top.open_file(&name("file"))?;
    let staged = top.stage(Source::Bytes(b"new"), Attributes::Like(&old))?;
    let placed = staged.sync().and_then(|()| top.replace(&staged, &name("file")));
    if placed.is_err() {
        staged.discard(&top)?;
    }
    placed
}

#[test]
fn every_call_of_a_replacement_may_fail() {
    let f = Fixture::new();
    f.file("file", "old");
    let (done, whole) = under(plan(0, Action::Errno(BROKEN)), || replace(&f));
    done.unwrap();
    assert!(whole.calls > 10 && whole.fired.is_none(), "{whole:?}");
    for at in 1..=whole.calls {
        f.file("file", "old");
        let (done, fired) = under(plan(at, Action::Errno(BROKEN)), || replace(&f));
        assert!(fired.fired.is_some(), "{at}");
        if done.is_err() {
            assert_eq!(f.read("file"), "old", "{fired:?}");
            assert_eq!(kind(done), disk::ErrorKind::Io);
        }
        assert_eq!(std::fs::read_dir(&f.ws).unwrap().count(), 1, "{fired:?} left something behind");
    }
}

/// The first `openat2` of an opening answers `errno`.
fn open_with_openat2_saying(f: &Fixture, errno: i32) -> Result<disk::Root, disk::DiskError> {
    let mut at = 1;
    loop {
        let open = || disk::Root::open(&f.ws, disk::RootOptions::default());
        let (opened, Fired { fired, .. }) = under(plan(at, Action::Errno(errno)), open);
        assert!(fired.is_some(), "no openat2 in an opening");
        if fired == Some(Call::Openat2) {
            return opened;
        }
        at += 1;
    }
}

#[test]
fn only_a_missing_call_means_missing() {
    let f = Fixture::new();
    const NOT_PERMITTED: i32 = 1;
    const AGAIN: i32 = 11;
    const NO_SUCH_CALL: i32 = 38;
    let walker = open_with_openat2_saying(&f, NO_SUCH_CALL).unwrap();
    assert_eq!(walker.resolver(), disk::Resolver::Walker);
    assert_eq!(kind(open_with_openat2_saying(&f, NOT_PERMITTED)), disk::ErrorKind::Denied);
    assert_eq!(kind(open_with_openat2_saying(&f, AGAIN)), disk::ErrorKind::Busy);
    let again = disk::Root::open(&f.ws, disk::RootOptions::default()).unwrap();
    assert_eq!(again.resolver(), disk::Resolver::Kernel);
}

#[test]
fn files_open_without_a_process_file_system() {
    let f = Fixture::new();
    f.file("a/file", "abc");
    for resolver in crate::fixture::BOTH {
        let root = f.root(resolver);
        let mut fell_back = 0;
        for at in 1..20 {
            const NO_SUCH_FILE: i32 = 2;
            let open = || root.open_file(&crate::fixture::rel("a/file"));
            let (opened, Fired { fired, .. }) = under(plan(at, Action::Errno(NO_SUCH_FILE)), open);
            if fired == Some(Call::Open)
                && let Ok(file) = opened
            {
                assert_eq!(file.read_all(9).unwrap(), b"abc");
                fell_back += 1;
            }
        }
        assert_eq!(fell_back, 1, "{resolver:?}");
    }
}

#[test]
fn other_threads_do_not_count() {
    let f = Fixture::new();
    f.file("file", "old");
    let elsewhere = || std::thread::scope(|scope| scope.spawn(|| replace(&f)).join().unwrap());
    let (done, fired) = under(plan(1, Action::Errno(BROKEN)), elsewhere);
    done.unwrap();
    assert_eq!(fired.calls, 0);
}

#[test]
fn a_process_can_end_at_a_call() {
    if !is_child() {
        // Made, and cleared away, by the one that lives on.
        let f = Fixture::new();
        let place = format!("{PLACE}={}", f.ws.display());
        let output = output_of(&["env", &place], "faults::a_process_can_end_at_a_call");
        assert!(!output.status.success() && output.status.code().is_none(), "{output:?}");
        return;
    }
    let ws = std::env::var(PLACE).unwrap();
    under(plan(2, Action::Abort), || disk::Root::open(ws.as_ref(), disk::RootOptions::default()).unwrap());
}
