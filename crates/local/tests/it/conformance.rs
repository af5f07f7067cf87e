//! The local workspace and the one in memory through the suite that every workspace must pass.

use std::sync::{Arc, Mutex};

use engine::Workspace;
use local::{Durability, LocalWorkspace, Options};
use tempfile::TempDir;
use testkit::{
    MemoryWorkspace,
    conformance::{self, Maker},
};

use crate::support::options;

/// Makes workspaces in temporary directories.
struct Local {
    change: fn(&mut Options),
    /// The last one made; a case has only one.
    place: Mutex<Option<(TempDir, Arc<LocalWorkspace>)>>,
}

impl Local {
    fn new(change: fn(&mut Options)) -> Self {
        Self { change, place: Mutex::default() }
    }

    fn open(&self, place: TempDir) -> Arc<dyn Workspace> {
        let mut options = options(&place);
        (self.change)(&mut options);
        let workspace = LocalWorkspace::open(options).unwrap();
        *self.place.lock().unwrap() = Some((place, Arc::clone(&workspace)));
        workspace
    }
}

impl Maker for Local {
    fn make(&self) -> Arc<dyn Workspace> {
        self.open(tempfile::tempdir().unwrap())
    }

    fn reopen(&self, workspace: Arc<dyn Workspace>) -> Arc<dyn Workspace> {
        let (place, same) = self.place.lock().unwrap().take().unwrap();
        same.close();
        drop((workspace, same));
        self.open(place)
    }
}

struct Memory;

impl Maker for Memory {
    fn make(&self) -> Arc<dyn Workspace> {
        Arc::new(MemoryWorkspace::new())
    }

    fn reopen(&self, workspace: Arc<dyn Workspace>) -> Arc<dyn Workspace> {
        workspace
    }
}

#[test]
fn the_local_workspace_conforms() {
    conformance::run(&Local::new(|_| {}), |name| println!("{name}"));
}

#[test]
fn the_local_workspace_conforms_when_fast_and_without_the_kernels_resolver() {
    let change = |options: &mut Options| {
        options.durability = Durability::Fast;
        options.resolver = disk::Resolver::Walker;
    };
    conformance::run(&Local::new(change), |name| println!("{name}"));
}

#[test]
fn the_workspace_in_memory_conforms() {
    conformance::run(&Memory, |name| println!("{name}"));
}
