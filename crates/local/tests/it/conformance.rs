//! Runs the conformance suite on the local workspace and on the workspace in memory.

use std::sync::{Arc, Mutex};

use stead_engine::Workspace;
use stead_local::{Durability, LocalWorkspace, LocalWorkspaceOptions};
use tempfile::TempDir;
use testkit::{
    MemoryWorkspace,
    conformance::{self, ConformanceWorkspaceFactory},
};

use crate::support::test_options;

struct LocalConformanceTestWorkspaceFactory {
    adjust_options: fn(&mut LocalWorkspaceOptions),
    last_opened: Mutex<Option<(TempDir, Arc<LocalWorkspace>)>>,
}

impl LocalConformanceTestWorkspaceFactory {
    fn new(adjust_options: fn(&mut LocalWorkspaceOptions)) -> Self {
        Self { adjust_options, last_opened: Mutex::default() }
    }

    fn open(&self, directory: TempDir) -> Arc<dyn Workspace> {
        let mut options = test_options(&directory);
        (self.adjust_options)(&mut options);
        let workspace = LocalWorkspace::open(options).unwrap();
        *self.last_opened.lock().unwrap() = Some((directory, Arc::clone(&workspace)));
        workspace
    }
}

impl ConformanceWorkspaceFactory for LocalConformanceTestWorkspaceFactory {
    fn create(&self) -> Arc<dyn Workspace> {
        self.open(tempfile::tempdir().unwrap())
    }

    fn reopen(&self, workspace: Arc<dyn Workspace>) -> Arc<dyn Workspace> {
        let (directory, same) = self.last_opened.lock().unwrap().take().unwrap();
        same.close();
        drop((workspace, same));
        self.open(directory)
    }
}

struct MemoryWorkspaceFactory;

impl ConformanceWorkspaceFactory for MemoryWorkspaceFactory {
    fn create(&self) -> Arc<dyn Workspace> {
        Arc::new(MemoryWorkspace::new())
    }

    fn reopen(&self, workspace: Arc<dyn Workspace>) -> Arc<dyn Workspace> {
        workspace
    }
}

#[test]
fn local_workspace_conforms() {
    conformance::run_all(&LocalConformanceTestWorkspaceFactory::new(|_| {}), |name| println!("{name}"));
}

#[test]
fn local_workspace_conforms_with_fast_durability_and_walking_resolver() {
    let change = |options: &mut LocalWorkspaceOptions| {
        options.durability = Durability::Fast;
        options.resolver = stead_disk::PathResolutionMethod::Walker;
    };
    conformance::run_all(&LocalConformanceTestWorkspaceFactory::new(change), |name| println!("{name}"));
}

#[test]
fn memory_workspace_conforms() {
    conformance::run_all(&MemoryWorkspaceFactory, |name| println!("{name}"));
}
