//! Opens a workspace in a temporary directory for a test, with short methods to call it.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use std::{
    ops::Deref,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use stead_engine::{Caller, Principal};
use stead_local::{Clock, ClockReading, LocalWorkspace, LocalWorkspaceOptions};
use tempfile::TempDir;
use testkit::engine_fixture::EngineFixture;

/// An engine over a workspace in a temporary directory.
pub(crate) struct LocalFixture {
    pub(crate) directory: Arc<TempDir>,
    engine_fixture: EngineFixture<LocalWorkspace>,
}

impl Deref for LocalFixture {
    type Target = EngineFixture<LocalWorkspace>;

    fn deref(&self) -> &Self::Target {
        &self.engine_fixture
    }
}

pub(crate) fn tester() -> Caller {
    Caller::new(Principal::Agent("tester".into()), "s1", "library")
}

pub(crate) fn test_options(directory: &TempDir) -> LocalWorkspaceOptions {
    test_options_at(directory.path())
}

pub(crate) fn test_options_at(directory: &std::path::Path) -> LocalWorkspaceOptions {
    std::fs::create_dir_all(directory.join("ws")).unwrap();
    LocalWorkspaceOptions::new(directory.join("ws"), directory.join("state"))
}

/// Opens a workspace without a directory of its own, with the caller `agent:tester`.
pub(crate) fn open_engine(
    options: LocalWorkspaceOptions,
) -> Result<EngineFixture<LocalWorkspace>, stead_engine::Error> {
    let mut fixture = EngineFixture::on_workspace(LocalWorkspace::open(options)?);
    fixture.caller = tester();
    Ok(fixture)
}

impl LocalFixture {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = test_options(&directory);
        Self::open(directory, options)
    }

    pub(crate) fn open(directory: impl Into<Arc<TempDir>>, options: LocalWorkspaceOptions) -> Self {
        let engine_fixture = open_engine(options).unwrap();
        Self { directory: directory.into(), engine_fixture }
    }

    pub(crate) fn reopen(self) -> Self {
        let Self { directory, engine_fixture } = self;
        // The maintenance thread may hold the workspace; unless it is stopped first, the workspace is still open at the
        // next open.
        engine_fixture.workspace.close();
        drop(engine_fixture);
        let options = test_options(&directory);
        Self::open(directory, options)
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join("ws").join(path)
    }

    pub(crate) fn text_on_disk(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path(path)).ok()
    }

    pub(crate) fn write_on_disk(&self, path: &str, text: &str) {
        let directory = self.path(path);
        std::fs::create_dir_all(directory.parent().unwrap()).unwrap();
        std::fs::write(directory, text).unwrap();
    }
}

/// A clock that a test sets, for all openings of a workspace.
#[derive(Clone)]
pub(crate) struct SettableClock(Arc<Mutex<ClockReading>>);

impl SettableClock {
    pub(crate) fn new() -> Self {
        let now = ClockReading { wall_ms: 1_900_000_000_000, uptime_ms: 5_000_000, boot_id: "first".to_owned() };
        Self(Arc::new(Mutex::new(now)))
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut ClockReading)) {
        change(&mut self.0.lock().unwrap());
    }

    pub(crate) fn advance_ms(&self, ms: i64) {
        self.set(|now| {
            now.wall_ms += ms;
            now.uptime_ms += ms;
        });
    }
}

impl Clock for SettableClock {
    fn now(&self) -> ClockReading {
        self.0.lock().unwrap().clone()
    }
}
