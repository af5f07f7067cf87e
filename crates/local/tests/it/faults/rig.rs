//! One scenario, ready to be run again and again: a closed workspace that is copied for every run, how it looks before
//! and after, and what must hold afterwards whatever happened.

use std::{path::Path, sync::Arc};

use engine::{EntryFilter, Order, Workspace};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::replay::{Said, replay};

use super::{
    scenario::{self, Base, Way},
    snapshot::{Seen, Snapshot, copy_tree, litter, snapshot},
};
use crate::support::{Fixture, options};

/// Memory instead of a disk, where there is such a place: thousands of runs.
const FAST_PLACE: &str = "/dev/shm";

pub(crate) fn place() -> TempDir {
    tempfile::tempdir_in(FAST_PLACE).or_else(|_| tempfile::tempdir()).unwrap()
}

pub(crate) struct Rig {
    template: Arc<TempDir>,
    way: Way,
    pub(crate) operation: &'static str,
    pub(crate) arguments: Value,
    pub(crate) old: Snapshot,
    pub(crate) new: Snapshot,
}

/// What the caller heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    Success,
    Failure,
    /// The process died before it could answer.
    Nothing,
}

impl Rig {
    pub(crate) fn new(base: &Base, way: Way) -> Self {
        let template = Arc::new(place());
        let fixture = open(&template);
        let (operation, arguments) = scenario::ready(&fixture, base, way);
        let old = snapshot(&fixture.path(""));
        close(fixture);
        let twin = copy_of(&template);
        let fixture = open(&twin);
        fixture.ok(operation, arguments.clone());
        let new = snapshot(&fixture.path(""));
        close(fixture);
        assert_ne!(old, new);
        Self { template, way, operation, arguments, old, new }
    }

    /// A fresh copy of the workspace as it is before the call.
    pub(crate) fn copy(&self) -> Arc<TempDir> {
        copy_of(&self.template)
    }

    /// Whole, and as the caller was told.
    pub(crate) fn check_whole(&self, root: &Path, heard: Heard, context: &str) -> Heard {
        let now = snapshot(root);
        let fits = match heard {
            Heard::Success => now == self.new,
            Heard::Failure => now == self.old,
            Heard::Nothing => now == self.new || now == self.old,
        };
        assert!(fits, "{context}: {heard:?}, but {}", self.difference(&now));
        if now == self.new { Heard::Success } else { Heard::Failure }
    }

    fn difference(&self, now: &Snapshot) -> String {
        let names = |snapshot: &Snapshot| {
            let shown = |(path, seen): (&String, &Seen)| match seen {
                Seen::File(bytes, mode) => {
                    format!("{path}={}x{:?} {mode:o}", bytes.len(), bytes.first().map(|b| char::from(*b)))
                }
                Seen::Directory(mode) => format!("{path}/ {mode:o}"),
                Seen::Link(target) => format!("{path} -> {target}"),
            };
            snapshot.iter().map(shown).collect::<Vec<_>>().join(", ")
        };
        format!("there is [{}], old is [{}], new is [{}]", names(now), names(&self.old), names(&self.new))
    }

    /// Everything that must hold in a workspace that was opened again.
    pub(crate) fn check_opened(&self, fixture: &Fixture, heard: Heard, context: &str) {
        let root = fixture.path("");
        let state = self.check_whole(&root, heard, context);
        check_journal(fixture, context);
        let listed = fixture.ok("list", json!({ "depth": 9, "all": true }));
        assert!(!Value::from(listed).to_string().contains(".stead~"), "{context}: litter is listed");
        match state {
            Heard::Success => {}
            Heard::Failure | Heard::Nothing => {
                // What failed leaves nothing behind that hinders the next try.
                fixture.ok(self.operation, self.arguments.clone());
                self.check_whole(&root, Heard::Success, &format!("{context}, tried again"));
            }
        }
        fixture.ok(scenario::inverse(self.way), json!({}));
        self.check_whole(&root, Heard::Failure, &format!("{context}, taken back"));
        check_journal(fixture, context);
    }
}

/// The journal verifies and tells what is on the disk.
pub(crate) fn check_journal(fixture: &Fixture, context: &str) {
    let report = fixture.workspace.verify_log(None, &[]).unwrap();
    assert_eq!(report.tamper, None, "{context}");
    let filter = EntryFilter { order: Order::OldestFirst, limit: usize::MAX, ..EntryFilter::default() };
    let entries = fixture.workspace.entries(&filter).unwrap();
    let said = replay(&entries);
    let seen = snapshot(&fixture.path(""));
    let shown: Vec<(&String, Said)> = seen
        .iter()
        .map(|(path, seen)| {
            let said = match seen {
                Seen::File(bytes, _) => Said::File(engine::Version::of(bytes).0),
                Seen::Directory(_) => Said::Directory,
                Seen::Link(target) => Said::Link(target.clone()),
            };
            (path, said)
        })
        .collect();
    let told: Vec<(&String, Said)> = said.iter().map(|(path, said)| (path, said.clone())).collect();
    assert_eq!(shown, told, "{context}: the journal does not agree with the disk");
}

/// Nothing half-made is left after the sweep; before it only if `before` says so.
pub(crate) fn check_litter(fixture: &Fixture, expected: Litter, context: &str) {
    let root = fixture.path("");
    let left = litter(&root);
    if expected == Litter::None {
        assert_eq!(left, Vec::<String>::new(), "{context}: litter");
    }
    if !left.is_empty() {
        fixture.ok("list", json!({ "depth": 9, "all": true }));
        fixture.workspace.sweep_litter(std::time::Duration::ZERO);
        assert_eq!(litter(&root), Vec::<String>::new(), "{context}: litter after the sweep");
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Litter {
    None,
    /// The fault hit the tidying itself, or the process died before the journal knew.
    Possible,
}

pub(crate) fn open(place: &Arc<TempDir>) -> Fixture {
    Fixture::open(Arc::clone(place), options(place))
}

pub(crate) fn close(fixture: Fixture) {
    fixture.workspace.close();
}

pub(crate) fn copy_of(template: &TempDir) -> Arc<TempDir> {
    let copy = place();
    copy_tree(template.path(), copy.path());
    Arc::new(copy)
}
