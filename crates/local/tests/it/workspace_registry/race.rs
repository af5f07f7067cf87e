//! Several processes create and destroy the same name concurrently: exactly one wins every time.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use std::{
    sync::{
        Barrier, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use stead_engine::ErrorKind;
use stead_local::{WorkspaceRegistry, WorkspaceRegistryOptions};
use tempfile::TempDir;

use super::{
    ACTIVE, admin_caller, ephemeral_workspace_request, list_names, name, open_registry, read_file, write_file,
};

const REGISTRIES: usize = 4;
const ROUNDS: usize = 12;

#[test]
fn concurrent_create_and_destroy_succeed_once() {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
    let (start, middle) = (Barrier::new(REGISTRIES), Barrier::new(REGISTRIES));
    let made = Mutex::new(0);
    let ended = Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..REGISTRIES {
            scope.spawn(|| {
                let registry = open_registry(directory.path());
                for _ in 0..ROUNDS {
                    start.wait();
                    match registry.create(&admin_caller(), &name("one"), &ephemeral_workspace_request()) {
                        Ok(one) => {
                            *made.lock().unwrap() += 1;
                            write_file(&registry.open_engine(&one.id).unwrap(), "a", "x");
                        }
                        Err(error) => assert_eq!(error.kind, ErrorKind::Exists, "{error:?}"),
                    }
                    middle.wait();
                    match registry.destroy(&admin_caller(), &name("one")) {
                        Ok(_) => *ended.lock().unwrap() += 1,
                        Err(error) => assert_eq!(error.kind, ErrorKind::NotFound, "{error:?}"),
                    }
                }
            });
        }
    });
    assert_eq!((*made.lock().unwrap(), *ended.lock().unwrap()), (ROUNDS, ROUNDS));
    let registry = open_registry(directory.path());
    assert_eq!(list_names(&registry, ACTIVE), [""; 0]);
    assert_eq!(std::fs::read_dir(directory.path().join("estate/workspaces")).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(directory.path().join("estate/trash")).unwrap().count(), 0);
}

/// Opening a workspace that another registry destroys and restores never creates a second workspace.
#[test]
fn destroyed_workspaces_are_not_reopened() {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
    let registry = open_registry(directory.path());
    let made =
        registry.create(&admin_caller(), &name("one"), &stead_engine::ops::CreateWorkspaceArgs::default()).unwrap();
    write_file(&registry.open_engine(&made.id).unwrap(), "a", "x");
    let until = Instant::now() + std::time::Duration::from_secs(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let other = open_registry(directory.path());
            while Instant::now() < until {
                match other.open_engine(&made.id) {
                    Ok(engine) => drop(super::call_operation(&engine, "read", serde_json::json!({ "path": "a" }))),
                    Err(error) => assert_eq!(error.kind, ErrorKind::NotFound, "{error:?}"),
                }
                other.close_idle_workspaces();
            }
        });
        while Instant::now() < until {
            registry.destroy(&admin_caller(), &name("one")).unwrap();
            registry.restore(&admin_caller(), "one", None).unwrap();
        }
    });
    assert_eq!(read_file(&registry.open_engine(&made.id).unwrap(), "a").as_deref(), Some("x"));
    assert_eq!(std::fs::read_dir(directory.path().join("estate/workspaces")).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(directory.path().join("estate/trash")).unwrap().count(), 0);
}

#[test]
fn closing_idle_workspaces_does_not_block_opens() {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
    let mut options = WorkspaceRegistryOptions::new(directory.path().join("estate"));
    options.open_workspaces_max = 4;
    let registry = WorkspaceRegistry::open(options).unwrap();
    let ids: Vec<String> = (0..8)
        .map(|number| {
            registry.create(&admin_caller(), &name(&format!("w{number}")), &ephemeral_workspace_request()).unwrap().id
        })
        .collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                registry.close_idle_workspaces();
            }
        });
        for round in 0..400 {
            let entered = registry.open_engine(&ids[round % ids.len()]);
            if entered.is_err() {
                over.store(true, Ordering::Relaxed);
            }
            entered.unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
}
