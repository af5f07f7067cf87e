//! Creates, forks, imports and destroys workspaces while one system call fails, or one and all calls after it. After
//! the failure, the workspace exists completely or not at all, as reported, and nothing else is left over. The failed
//! operation can be repeated.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use stead_disk::faults::{FaultFilter, FaultPlan, FaultPlanThreadFilter, InjectedFaultEffect, arm_fault, disarm_fault};
use stead_engine::Error;
use stead_engine::ops::CreateWorkspaceArgs;
use stead_local::WorkspaceRegistry;
use tempfile::TempDir;

use super::{
    ACTIVE, TRASHED, admin_caller,
    archives::{FILE, HostileTestTarEntry, build_archive},
    list_names, name, open_registry, read_file, write_file,
};
use crate::faults::lock_fault_tests;

const IO_ERROR: i32 = 5;
const NO_SPACE: i32 = 28;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RegistryFaultTestOperation {
    Create,
    Fork,
    Import,
    Destroy,
    Restore,
}

impl RegistryFaultTestOperation {
    fn run(self, registry: &WorkspaceRegistry) -> Result<(), Error> {
        let (by, kept) = (admin_caller(), CreateWorkspaceArgs::default());
        let limited = CreateWorkspaceArgs { files_max: Some(10), ..CreateWorkspaceArgs::default() };
        let bytes = build_archive(&[FILE, HostileTestTarEntry { name: b"d/b.txt", ..FILE }]);
        match self {
            RegistryFaultTestOperation::Create => registry.create(&by, &name("new"), &limited).map(drop),
            RegistryFaultTestOperation::Fork => registry.fork(&by, &name("old"), &name("new"), &kept).map(drop),
            RegistryFaultTestOperation::Import => {
                registry.import_workspace(&by, &name("new"), &kept, &mut &bytes[..]).map(drop)
            }
            RegistryFaultTestOperation::Destroy => registry.destroy(&by, &name("old")).map(drop),
            RegistryFaultTestOperation::Restore => registry.restore(&by, "gone", None).map(drop),
        }
    }

    fn expected_ready_names(self, done: bool) -> Vec<&'static str> {
        match (self, done) {
            (
                RegistryFaultTestOperation::Create
                | RegistryFaultTestOperation::Fork
                | RegistryFaultTestOperation::Import,
                true,
            ) => {
                vec!["new", "old"]
            }
            (RegistryFaultTestOperation::Destroy, true) => vec![],
            (RegistryFaultTestOperation::Restore, true) => vec!["gone", "old"],
            (_, false) => vec!["old"],
        }
    }
}

/// The test registry is built once and copied for each run.
fn prepare_registry(directory: &Path) -> Arc<WorkspaceRegistry> {
    static MADE: OnceLock<TempDir> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let made = fast_temporary_directory();
        fill_directory(made.path());
        made
    });
    copy_tree(&made.path().join("estate"), &directory.join("estate"));
    open_registry(directory)
}

fn fast_temporary_directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

fn fill_directory(directory: &Path) {
    let registry = open_registry(directory);
    for one in ["gone", "old"] {
        let made = registry.create(&admin_caller(), &name(one), &CreateWorkspaceArgs::default()).unwrap();
        write_file(&registry.open_engine(&made.id).unwrap(), "d/a.txt", one);
    }
    registry.destroy(&admin_caller(), &name("gone")).unwrap();
}

fn count_directories(directory: &Path, of: &str) -> usize {
    std::fs::read_dir(directory.join("estate").join(of)).unwrap().count()
}

fn check_consistency(
    registry: &WorkspaceRegistry,
    directory: &Path,
    operation: RegistryFaultTestOperation,
    context: &str,
) {
    let ready = list_names(registry, ACTIVE);
    assert_eq!(count_directories(directory, "workspaces"), ready.len(), "{context}: {ready:?}");
    let trash = list_names(registry, TRASHED);
    assert_eq!(count_directories(directory, "trash"), trash.len(), "{context}: {trash:?}");
    for one in &ready {
        let told = registry.describe(&name(one)).unwrap_or_else(|error| panic!("{context}: {one}: {error:?}"));
        let expected = match (one.as_str(), operation) {
            ("new", RegistryFaultTestOperation::Create) => 0,
            ("new", RegistryFaultTestOperation::Import) => 2,
            _ => 1,
        };
        assert_eq!(told.size.unwrap().files, expected, "{context}: {one}");
        let engine = registry.open_engine(&told.id).unwrap();
        if one != "new" {
            assert_eq!(read_file(&engine, "d/a.txt").as_deref(), Some(one.as_str()), "{context}");
        }
    }
    let report = registry.registry_workspace().verify_journal(None, &[]).unwrap();
    assert!(report.integrity_error.is_none(), "{context}");
}

fn run_with_fault(operation: RegistryFaultTestOperation, at: u64, action: InjectedFaultEffect) -> bool {
    let directory = fast_temporary_directory();
    let registry = prepare_registry(directory.path());
    arm_fault(FaultPlan { call_number: at, action, scope: FaultPlanThreadFilter::ThisThread, calls: FaultFilter::All });
    let outcome = operation.run(&registry);
    let fired = disarm_fault();
    let context = format!("{operation:?}, call {at} ({:?}) {action:?}: {:?}", fired.hit_call, outcome.as_ref().err());
    assert!(fired.hit_call.is_some() || outcome.is_ok(), "{context}");
    drop(registry);
    let registry = open_registry(directory.path());
    let ready = list_names(&registry, ACTIVE);
    let output = outcome.is_ok();
    // After an error of unknown outcome either result is possible.
    assert!(
        ready == operation.expected_ready_names(output) || (!output && ready == operation.expected_ready_names(true)),
        "{context}: {ready:?}"
    );
    check_consistency(&registry, directory.path(), operation, &context);
    if ready == operation.expected_ready_names(false) {
        operation.run(&registry).unwrap_or_else(|error| panic!("{context}: again: {error:?}"));
        check_consistency(&registry, directory.path(), operation, &format!("{context}, again"));
    }
    fired.hit_call.is_some()
}

fn fail_at_every_call(operation: RegistryFaultTestOperation) {
    let _alone = lock_fault_tests();
    for action in [
        InjectedFaultEffect::FailOnce(IO_ERROR),
        InjectedFaultEffect::FailOnce(NO_SPACE),
        InjectedFaultEffect::FailFromNowOn(IO_ERROR),
    ] {
        let mut at = 1;
        while run_with_fault(operation, at, action) {
            at += 1;
        }
        assert!(at > 5, "{operation:?}: only {at} calls were seen");
    }
}

#[test]
fn create_survives_a_failure_of_any_call() {
    fail_at_every_call(RegistryFaultTestOperation::Create);
}

#[test]
fn fork_survives_a_failure_of_any_call() {
    fail_at_every_call(RegistryFaultTestOperation::Fork);
}

#[test]
fn import_survives_a_failure_of_any_call() {
    fail_at_every_call(RegistryFaultTestOperation::Import);
}

#[test]
fn destroy_survives_a_failure_of_any_call() {
    fail_at_every_call(RegistryFaultTestOperation::Destroy);
}

#[test]
fn restore_survives_a_failure_of_any_call() {
    fail_at_every_call(RegistryFaultTestOperation::Restore);
}
