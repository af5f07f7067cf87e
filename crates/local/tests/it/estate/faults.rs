//! Every system call fails once while a workspace is made, forked, taken in or destroyed, and the device dies at every one of
//! them. Afterwards the workspace is wholly there or not at all, as was said; nothing lies around; and it can be done again.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use disk::faults::{Action, Calls, FaultPlan, Scope, arm, disarm};
use engine::Failure;
use local::{Estate, Paged, WorkspaceAsk};
use tempfile::TempDir;

use super::{
    archives::{FILE, Raw, archive},
    name, names, open_at, read, steward, write,
};
use crate::faults::alone;

const BROKEN: i32 = 5;
const FULL: i32 = 28;

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Errand {
    Create,
    Fork,
    Import,
    Destroy,
    Restore,
}

impl Errand {
    fn run(self, estate: &Estate) -> Result<(), Failure> {
        let (by, kept) = (steward(), WorkspaceAsk::default());
        let limited = WorkspaceAsk { files_max: Some(10), ..WorkspaceAsk::default() };
        let bytes = archive(&[FILE, Raw { name: b"d/b.txt", ..FILE }]);
        match self {
            Errand::Create => estate.create(&by, &name("new"), &limited).map(drop),
            Errand::Fork => estate.fork(&by, &name("old"), &name("new"), &kept).map(drop),
            Errand::Import => estate.import(&by, &name("new"), &kept, &mut &bytes[..]).map(drop),
            Errand::Destroy => estate.destroy(&by, &name("old")).map(drop),
            Errand::Restore => estate.restore(&by, "gone", None).map(drop),
        }
    }

    /// What there is when it was done, and when it was not.
    fn ready(self, done: bool) -> Vec<&'static str> {
        match (self, done) {
            (Errand::Create | Errand::Fork | Errand::Import, true) => vec!["new", "old"],
            (Errand::Destroy, true) => vec![],
            (Errand::Restore, true) => vec!["gone", "old"],
            (_, false) => vec!["old"],
        }
    }
}

/// An estate with a workspace, and one in the trash; made once and copied.
fn begin(place: &Path) -> Arc<Estate> {
    static MADE: OnceLock<TempDir> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let made = quick();
        fill(made.path());
        made
    });
    copy(&made.path().join("estate"), &place.join("estate"));
    open_at(place)
}

/// A place in memory where there is one: every call is made to fail here, and none has to reach a device.
fn quick() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

fn fill(place: &Path) {
    let estate = open_at(place);
    for one in ["gone", "old"] {
        let made = estate.create(&steward(), &name(one), &WorkspaceAsk::default()).unwrap();
        write(&estate.enter(&made.id).unwrap(), "d/a.txt", one);
    }
    estate.destroy(&steward(), &name("gone")).unwrap();
}

fn directories(place: &Path, of: &str) -> usize {
    std::fs::read_dir(place.join("estate").join(of)).unwrap().count()
}

/// Everything that is listed is whole, and everything on the disk is listed.
fn check(estate: &Estate, place: &Path, errand: Errand, context: &str) {
    let ready = names(estate, Paged::Ready);
    assert_eq!(directories(place, "workspaces"), ready.len(), "{context}: {ready:?}");
    let trash = names(estate, Paged::Trash);
    assert_eq!(directories(place, "trash"), trash.len(), "{context}: {trash:?}");
    for one in &ready {
        let told =
            estate.describe(&name(one)).unwrap_or_else(|failure| panic!("{context}: {one}: {failure:?}"));
        let expected = match (one.as_str(), errand) {
            ("new", Errand::Create) => 0,
            ("new", Errand::Import) => 2,
            _ => 1,
        };
        assert_eq!(told["files"], expected, "{context}: {one}");
        let engine = estate.enter(told["id"].as_str().unwrap()).unwrap();
        if one != "new" {
            assert_eq!(read(&engine, "d/a.txt").as_deref(), Some(one.as_str()), "{context}");
        }
    }
    let report = estate.journal().verify_log(None, &[]).unwrap();
    assert!(report.tamper.is_none(), "{context}");
}

/// Does the errand with one fault; says whether there was a call to hit.
fn disturbed(errand: Errand, at: u64, action: Action) -> bool {
    let place = quick();
    let estate = begin(place.path());
    arm(FaultPlan { at, action, scope: Scope::ThisThread, calls: Calls::All });
    let outcome = errand.run(&estate);
    let fired = disarm();
    let context =
        format!("{errand:?}, call {at} ({:?}) {action:?}: {:?}", fired.fired, outcome.as_ref().err());
    assert!(fired.fired.is_some() || outcome.is_ok(), "{context}");
    drop(estate);
    let estate = open_at(place.path());
    let ready = names(&estate, Paged::Ready);
    let said = outcome.is_ok();
    // What was said is so. After a failure that nobody could tell the end of, it is one or the other.
    assert!(ready == errand.ready(said) || (!said && ready == errand.ready(true)), "{context}: {ready:?}");
    check(&estate, place.path(), errand, &context);
    if ready == errand.ready(false) {
        errand.run(&estate).unwrap_or_else(|failure| panic!("{context}: again: {failure:?}"));
        check(&estate, place.path(), errand, &format!("{context}, again"));
    }
    fired.fired.is_some()
}

fn everywhere(errand: Errand) {
    let _alone = alone();
    for action in [Action::Errno(BROKEN), Action::Errno(FULL), Action::Dead(BROKEN)] {
        let mut at = 1;
        while disturbed(errand, at, action) {
            at += 1;
        }
        assert!(at > 5, "{errand:?}: only {at} calls were seen");
    }
}

#[test]
fn making_fails_at_every_call() {
    everywhere(Errand::Create);
}

#[test]
fn forking_fails_at_every_call() {
    everywhere(Errand::Fork);
}

#[test]
fn taking_in_fails_at_every_call() {
    everywhere(Errand::Import);
}

#[test]
fn destroying_fails_at_every_call() {
    everywhere(Errand::Destroy);
}

#[test]
fn taking_back_fails_at_every_call() {
    everywhere(Errand::Restore);
}
