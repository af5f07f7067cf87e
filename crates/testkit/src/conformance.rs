//! Conformance tests for implementations of the `Workspace` trait. A conformance case fails by panicking, and each
//! conformance case gets its own workspace.
//!
//! An implementation need not have every [`OptionalWorkspaceBehavior`]. [`all_cases`] names the optional behaviour that
//! a case needs, and [`cases_not_run`] lists the cases that an implementation cannot run.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a case fails by panicking")]

mod administration;
mod approval;
mod buffers;
mod clock;
mod concurrency;
mod fixture;
mod journal;
mod lease;
mod limits;
mod moves;
mod open_directories;
mod path_locks;
mod quota;
mod reads;
mod records;
mod reopening;
mod second_opening;
mod sessions;
mod steady_clock;
mod tokens;
mod transactions;
mod trash;
mod watches;
mod writes;

use std::{panic::AssertUnwindSafe, sync::Arc};

use fixture::{
    LARGE_FILE_BYTES, TRASH_KEEP_MS, WorkspaceUnderConformanceTest, assert_commit_fails, assert_fails, move_change,
    put_change, put_change_with_mode, rel_path, remove_change, single_file_tree, unmatched_identity, unmatched_stamp,
};
use stead_engine::{AdministrationStore, Workspace};
pub use tokens::ConformanceTokenStore;

/// A behaviour that a workspace implementation may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionalWorkspaceBehavior {
    /// The same state can be open twice at the same time, as in two processes.
    SecondOpening,
    /// A path lock makes other calls wait. An implementation whose calls are atomic needs no path locks.
    PathLocks,
    /// The wall clock and the steady clock are two clocks, so that the wall clock can jump.
    SteadyClock,
    /// Changes by other programs are recorded while a watch exists.
    ExternalChangeRecording,
    /// Access tokens and session tickets are stored.
    AccessTokens,
    /// The workspace implements [`AdministrationStore`].
    Administration,
}

/// A change of the clock of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestClockChange {
    /// This many milliseconds pass.
    Advance(i64),
    /// The wall clock jumps by this many milliseconds while no time passes. Only a workspace with
    /// [`OptionalWorkspaceBehavior::SteadyClock`] gets this change.
    WallClockJump(i64),
    /// The machine starts again while no time passes. Only a workspace with [`OptionalWorkspaceBehavior::SteadyClock`]
    /// gets this change.
    Reboot,
}

/// A factory that creates workspaces of one implementation for the conformance tests.
pub trait ConformanceWorkspaceFactory {
    /// The optional behaviours that the implementation has.
    fn optional_behaviors(&self) -> &[OptionalWorkspaceBehavior];

    /// Creates a new, empty workspace. The other methods refer to the workspace that was created last.
    fn create(&self) -> Arc<dyn Workspace>;

    /// Opens the state of the created workspace again.
    fn open_again(&self) -> Arc<dyn Workspace>;

    /// Closes an opening of the created workspace, as the end of its process does.
    fn close(&self, workspace: Arc<dyn Workspace>);

    /// Changes the clock of all openings of the created workspace.
    fn change_clock(&self, change: TestClockChange);

    /// Writes a file as another program does, without the workspace.
    fn write_externally(&self, path: &str, bytes: &[u8]);

    /// The tokens of the created workspace, for an implementation with [`OptionalWorkspaceBehavior::AccessTokens`].
    fn access_tokens(&self) -> Arc<dyn ConformanceTokenStore>;

    /// The created workspace, for an implementation with [`OptionalWorkspaceBehavior::Administration`].
    fn administration(&self) -> Arc<dyn AdministrationStore>;
}

/// One conformance case for a workspace implementation.
pub struct WorkspaceConformanceCase {
    /// The name of the conformance case.
    pub name: &'static str,
    /// The optional behaviour that the conformance case needs; `None` if every implementation must pass the case.
    pub needs: Option<OptionalWorkspaceBehavior>,
    /// The function that runs the conformance case and panics on failure.
    pub run: fn(&dyn ConformanceWorkspaceFactory),
}

impl WorkspaceConformanceCase {
    fn can_run(&self, factory: &dyn ConformanceWorkspaceFactory) -> bool {
        self.needs.is_none_or(|needed| factory.optional_behaviors().contains(&needed))
    }
}

/// Returns the conformance cases for workspace implementations, without those of [`limit_cases`].
pub fn all_cases() -> Vec<WorkspaceConformanceCase> {
    use OptionalWorkspaceBehavior as Behavior;
    let tables = [
        (None, reads::CASES),
        (None, writes::CASES),
        (None, moves::CASES),
        (None, trash::CASES),
        (None, journal::CASES),
        (None, records::CASES),
        (None, transactions::CASES),
        (None, lease::CASES),
        (None, sessions::CASES),
        (None, reopening::CASES),
        (None, approval::CASES),
        (None, quota::CASES),
        (None, open_directories::CASES),
        (None, buffers::CASES),
        (None, watches::CASES),
        (None, clock::CASES),
        (None, concurrency::CASES),
        (Some(Behavior::ExternalChangeRecording), watches::EXTERNAL_CHANGE_CASES),
        (Some(Behavior::SecondOpening), second_opening::CASES),
        (Some(Behavior::SecondOpening), concurrency::TWO_OPENINGS_CASES),
        (Some(Behavior::PathLocks), path_locks::CASES),
        (Some(Behavior::SteadyClock), steady_clock::CASES),
        (Some(Behavior::AccessTokens), tokens::CASES),
        (Some(Behavior::Administration), administration::CASES),
    ];
    tables.into_iter().flat_map(|(needs, table)| cases_of_table(needs, table)).collect()
}

/// Returns the conformance cases that reach the limits of a principal and therefore make many calls.
pub fn limit_cases() -> Vec<WorkspaceConformanceCase> {
    cases_of_table(None, limits::CASES).collect()
}

fn cases_of_table(
    needs: Option<OptionalWorkspaceBehavior>,
    table: WorkspaceConformanceCaseTable,
) -> impl Iterator<Item = WorkspaceConformanceCase> {
    table.iter().map(move |(name, run)| WorkspaceConformanceCase { name, needs, run: *run })
}

/// Runs the conformance cases that the implementation can run. A line is printed before each case, and for each case
/// that is not run.
///
/// # Panics
///
/// Panics with the names of all failed cases.
pub fn run_cases(
    factory: &dyn ConformanceWorkspaceFactory,
    cases: Vec<WorkspaceConformanceCase>,
    mut print_line: impl FnMut(&str),
) {
    let mut failed = Vec::new();
    for case in cases {
        if !case.can_run(factory) {
            print_line(&format!("not run, needs {:?}: {}", case.needs, case.name));
            continue;
        }
        print_line(case.name);
        if std::panic::catch_unwind(AssertUnwindSafe(|| (case.run)(factory))).is_err() {
            failed.push(case.name);
        }
    }
    assert!(failed.is_empty(), "failed cases: {failed:#?}");
}

/// The names of the conformance cases that need an optional behaviour that the implementation lacks.
pub fn cases_not_run(factory: &dyn ConformanceWorkspaceFactory) -> Vec<&'static str> {
    all_cases().into_iter().filter(|case| !case.can_run(factory)).map(|case| case.name).collect()
}

type WorkspaceConformanceCaseTable = &'static [(&'static str, fn(&dyn ConformanceWorkspaceFactory))];
