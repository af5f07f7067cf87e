//! Runs one fault scenario many times, each time on a fresh copy of a closed workspace, and checks the result.

use std::{path::Path, sync::Arc};

use serde_json::{Value, json};
use stead_engine::{JournalEntryOrder, JournalEntryQuery, Workspace};
use tempfile::TempDir;
use testkit::journal_replay::{JournalReplayedPathContent, replay_entries};

use super::{
    scenario::{self, CallUnderFaultInjection, FaultTestDoUndoRedo},
    snapshot::{TestTreeSnapshot, TestTreeSnapshotEntry, copy_tree, find_leftovers, take_snapshot},
};
use crate::support::{LocalFixture, test_options};

/// A directory in memory is used if it exists, because there are thousands of test runs.
const FAST_PLACE: &str = "/dev/shm";

pub(crate) fn fast_temporary_directory() -> TempDir {
    tempfile::tempdir_in(FAST_PLACE).or_else(|_| tempfile::tempdir()).unwrap()
}

pub(crate) struct FaultScenarioFixture {
    template: Arc<TempDir>,
    direction: FaultTestDoUndoRedo,
    pub(crate) operation: &'static str,
    pub(crate) arguments: Value,
    pub(crate) before: TestTreeSnapshot,
    pub(crate) after: TestTreeSnapshot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultTestReply {
    Success,
    Failure,
    NoReply,
}

impl FaultScenarioFixture {
    pub(crate) fn new(base: &CallUnderFaultInjection, direction: FaultTestDoUndoRedo) -> Self {
        let template = Arc::new(fast_temporary_directory());
        let fixture = open(&template);
        let (operation, arguments) = scenario::prepare_scenario(&fixture, base, direction);
        let before = take_snapshot(&fixture.path(""));
        close(fixture);
        let twin = copy_directory(&template);
        let fixture = open(&twin);
        fixture.call_ok(operation, arguments.clone());
        let after = take_snapshot(&fixture.path(""));
        close(fixture);
        assert_ne!(before, after);
        Self { template, direction, operation, arguments, before, after }
    }

    pub(crate) fn copy_template(&self) -> Arc<TempDir> {
        copy_directory(&self.template)
    }

    /// The tree must be completely new after a success reply, and completely old after a failure reply.
    pub(crate) fn check_before_or_after(&self, root: &Path, reply: FaultTestReply, context: &str) -> FaultTestReply {
        let now = take_snapshot(root);
        let fits = match reply {
            FaultTestReply::Success => now == self.after,
            FaultTestReply::Failure => now == self.before,
            FaultTestReply::NoReply => now == self.after || now == self.before,
        };
        assert!(fits, "{context}: {reply:?}, but {}", self.describe_difference(&now));
        if now == self.after { FaultTestReply::Success } else { FaultTestReply::Failure }
    }

    fn describe_difference(&self, now: &TestTreeSnapshot) -> String {
        let names = |snapshot: &TestTreeSnapshot| {
            let shown = |(path, seen): (&String, &TestTreeSnapshotEntry)| match seen {
                TestTreeSnapshotEntry::File(bytes, mode) => {
                    format!("{path}={}x{:?} {mode:o}", bytes.len(), bytes.first().map(|b| char::from(*b)))
                }
                TestTreeSnapshotEntry::Directory(mode) => format!("{path}/ {mode:o}"),
                TestTreeSnapshotEntry::Link(target) => format!("{path} -> {target}"),
            };
            snapshot.iter().map(shown).collect::<Vec<_>>().join(", ")
        };
        format!("there is [{}], old is [{}], new is [{}]", names(now), names(&self.before), names(&self.after))
    }

    pub(crate) fn check_opened(&self, fixture: &LocalFixture, reply: FaultTestReply, context: &str) {
        let root = fixture.path("");
        let state = self.check_before_or_after(&root, reply, context);
        check_journal(fixture, context);
        let listed = fixture.call_ok("list", json!({ "depth": 9, "all": true }));
        assert!(!Value::from(listed).to_string().contains(".stead~"), "{context}: litter is listed");
        match state {
            FaultTestReply::Success => {}
            FaultTestReply::Failure | FaultTestReply::NoReply => {
                // A failed call leaves nothing behind that blocks the next one.
                fixture.call_ok(self.operation, self.arguments.clone());
                self.check_before_or_after(&root, FaultTestReply::Success, &format!("{context}, tried again"));
            }
        }
        fixture.call_ok(scenario::inverse_operation(self.direction), json!({}));
        self.check_before_or_after(&root, FaultTestReply::Failure, &format!("{context}, taken back"));
        check_journal(fixture, context);
    }
}

pub(crate) fn check_journal(fixture: &LocalFixture, context: &str) {
    let report = fixture.workspace.verify_journal(None, &[]).unwrap();
    assert_eq!(report.integrity_error, None, "{context}");
    let filter =
        JournalEntryQuery { order: JournalEntryOrder::OldestFirst, limit: usize::MAX, ..JournalEntryQuery::default() };
    let entries = fixture.workspace.entries(&filter).unwrap();
    let output = replay_entries(&entries);
    let seen = take_snapshot(&fixture.path(""));
    let shown: Vec<(&String, JournalReplayedPathContent)> = seen
        .iter()
        .map(|(path, seen)| {
            let output = match seen {
                TestTreeSnapshotEntry::File(bytes, _) => {
                    JournalReplayedPathContent::File(stead_engine::Version::hash_bytes(bytes).0)
                }
                TestTreeSnapshotEntry::Directory(_) => JournalReplayedPathContent::Directory,
                TestTreeSnapshotEntry::Link(target) => JournalReplayedPathContent::Link(target.clone()),
            };
            (path, output)
        })
        .collect();
    let told: Vec<(&String, JournalReplayedPathContent)> =
        output.iter().map(|(path, output)| (path, output.clone())).collect();
    assert_eq!(shown, told, "{context}: the journal does not agree with the disk");
}

pub(crate) fn check_leftovers(fixture: &LocalFixture, expected: LeftoverFilesExpectation, context: &str) {
    let root = fixture.path("");
    let left = find_leftovers(&root);
    if expected == LeftoverFilesExpectation::None {
        assert_eq!(left, Vec::<String>::new(), "{context}: litter");
    }
    if !left.is_empty() {
        fixture.call_ok("list", json!({ "depth": 9, "all": true }));
        fixture.workspace.remove_old_leftovers(std::time::Duration::ZERO);
        assert_eq!(find_leftovers(&root), Vec::<String>::new(), "{context}: litter after the sweep");
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftoverFilesExpectation {
    None,
    /// Staged files may be left over, because the fault hit the cleanup or the process died early.
    Possible,
}

pub(crate) fn open(directory: &Arc<TempDir>) -> LocalFixture {
    LocalFixture::open(Arc::clone(directory), test_options(directory))
}

pub(crate) fn close(fixture: LocalFixture) {
    fixture.workspace.close();
}

pub(crate) fn copy_directory(template: &TempDir) -> Arc<TempDir> {
    let copy = fast_temporary_directory();
    copy_tree(template.path(), copy.path());
    Arc::new(copy)
}
