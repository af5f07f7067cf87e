//! A workspace in a temporary directory, and short ways to call it.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use std::{path::PathBuf, sync::Arc};

use engine::{Answer, Call, Caller, Engine, Failure, Principal};
use local::{LocalWorkspace, Options};
use serde_json::{Map, Value};
use tempfile::TempDir;

pub(crate) struct Fixture {
    pub(crate) place: Arc<TempDir>,
    pub(crate) workspace: Arc<LocalWorkspace>,
    pub(crate) engine: Engine,
    pub(crate) caller: Caller,
}

pub(crate) fn options(place: &TempDir) -> Options {
    options_at(place.path())
}

pub(crate) fn options_at(place: &std::path::Path) -> Options {
    std::fs::create_dir_all(place.join("ws")).unwrap();
    Options::new(place.join("ws"), place.join("state"))
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let options = options(&place);
        Self::open(place, options)
    }

    pub(crate) fn open(place: impl Into<Arc<TempDir>>, options: Options) -> Self {
        let workspace = LocalWorkspace::open(options).unwrap();
        let engine = Engine::new(Arc::clone(&workspace) as Arc<dyn engine::Workspace>);
        let caller = Caller::new(Principal::Agent("tester".into()), "s1", "library");
        Self { place: place.into(), workspace, engine, caller }
    }

    /// Closes the workspace and opens it again.
    pub(crate) fn reopen(self) -> Self {
        let Self { place, workspace, engine, .. } = self;
        // Its keeper may hold it at this very moment: stop that first, or it is still open when it is opened again.
        workspace.close();
        drop(engine);
        drop(workspace);
        let options = options(&place);
        Self::open(place, options)
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.place.path().join("ws").join(path)
    }

    pub(crate) fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path(path)).ok()
    }

    pub(crate) fn put(&self, path: &str, text: &str) {
        let place = self.path(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, text).unwrap();
    }

    pub(crate) fn call(&self, operation: &str, arguments: Value) -> Result<Answer, Failure> {
        self.call_as(&self.caller, operation, arguments)
    }

    pub(crate) fn call_as(
        &self,
        caller: &Caller,
        operation: &str,
        arguments: Value,
    ) -> Result<Answer, Failure> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        self.engine.call(&Call::new(caller, operation, arguments))
    }

    pub(crate) fn ok(&self, operation: &str, arguments: Value) -> Map<String, Value> {
        match self.call(operation, arguments.clone()) {
            Ok(answer) => answer.json,
            Err(failure) => panic!("{operation} {arguments}: {failure}"),
        }
    }

    pub(crate) fn kind(&self, operation: &str, arguments: Value) -> &'static str {
        match self.call(operation, arguments.clone()) {
            Ok(answer) => panic!("{operation} {arguments} answered {:?}", answer.json),
            Err(failure) => failure.kind.code(),
        }
    }
}
