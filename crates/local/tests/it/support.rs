//! Opens a workspace in a temporary directory for a test, with short methods to call it.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use std::{path::PathBuf, sync::Arc};

use serde_json::{Map, Value};
use stead_engine::{Call, CallOutcome, Caller, Engine, Error, Principal};
use stead_local::{LocalWorkspace, LocalWorkspaceOptions};
use tempfile::TempDir;

pub(crate) struct LocalFixture {
    pub(crate) directory: Arc<TempDir>,
    pub(crate) workspace: Arc<LocalWorkspace>,
    pub(crate) engine: Engine,
    pub(crate) caller: Caller,
}

pub(crate) fn test_options(directory: &TempDir) -> LocalWorkspaceOptions {
    test_options_at(directory.path())
}

pub(crate) fn test_options_at(directory: &std::path::Path) -> LocalWorkspaceOptions {
    std::fs::create_dir_all(directory.join("ws")).unwrap();
    LocalWorkspaceOptions::new(directory.join("ws"), directory.join("state"))
}

impl LocalFixture {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = test_options(&directory);
        Self::open(directory, options)
    }

    pub(crate) fn open(directory: impl Into<Arc<TempDir>>, options: LocalWorkspaceOptions) -> Self {
        let workspace = LocalWorkspace::open(options).unwrap();
        let engine = Engine::new(Arc::clone(&workspace) as Arc<dyn stead_engine::Workspace>);
        let caller = Caller::new(Principal::Agent("tester".into()), "s1", "library");
        Self { directory: directory.into(), workspace, engine, caller }
    }

    pub(crate) fn reopen(self) -> Self {
        let Self { directory, workspace, engine, .. } = self;
        // The maintenance thread may hold the workspace; unless it is stopped first, the workspace is still open at the
        // next open.
        workspace.close();
        drop(engine);
        drop(workspace);
        let options = test_options(&directory);
        Self::open(directory, options)
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join("ws").join(path)
    }

    pub(crate) fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path(path)).ok()
    }

    pub(crate) fn write_on_disk(&self, path: &str, text: &str) {
        let directory = self.path(path);
        std::fs::create_dir_all(directory.parent().unwrap()).unwrap();
        std::fs::write(directory, text).unwrap();
    }

    pub(crate) fn call(&self, operation: &str, arguments: Value) -> Result<CallOutcome, Error> {
        self.call_as(&self.caller, operation, arguments)
    }

    pub(crate) fn call_as(&self, caller: &Caller, operation: &str, arguments: Value) -> Result<CallOutcome, Error> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        self.engine.call(&Call::new(caller, operation, arguments))
    }

    pub(crate) fn call_ok(&self, operation: &str, arguments: Value) -> Map<String, Value> {
        match self.call(operation, arguments.clone()) {
            Ok(answer) => answer.json,
            Err(error) => panic!("{operation} {arguments}: {error}"),
        }
    }

    pub(crate) fn kind(&self, operation: &str, arguments: Value) -> &'static str {
        match self.call(operation, arguments.clone()) {
            Ok(answer) => panic!("{operation} {arguments} answered {:?}", answer.json),
            Err(error) => error.kind.code(),
        }
    }
}
