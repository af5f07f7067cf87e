//! A test fixture with an in-memory workspace, an engine and callers.

use std::sync::Arc;

use serde_json::Value;
use stead_engine::{Call, CallOutcome, Caller, Engine, Error, ErrorKind, Grants, Principal};
use stead_path::RelPath;
use testkit::MemoryWorkspace;

pub(crate) struct EngineFixture {
    pub(crate) workspace: Arc<MemoryWorkspace>,
    pub(crate) engine: Engine,
    pub(crate) caller: Caller,
}

impl EngineFixture {
    pub(crate) fn new() -> Self {
        Self::on_workspace(MemoryWorkspace::new())
    }

    pub(crate) fn on_workspace(workspace: MemoryWorkspace) -> Self {
        let workspace = Arc::new(workspace);
        let engine = Engine::new(workspace.clone());
        Self { workspace, engine, caller: agent("one") }
    }

    /// Puts files into the workspace without journal entries.
    pub(crate) fn with_files(files: &[(&str, &str)]) -> Self {
        let fixture = Self::new();
        for (path, content) in files {
            fixture.workspace.put_file(path, content);
        }
        fixture
    }

    pub(crate) fn call(&self, operation: &str, arguments: Value) -> Result<CallOutcome, Error> {
        self.call_as(&self.caller, operation, arguments)
    }

    pub(crate) fn call_as(&self, caller: &Caller, operation: &str, arguments: Value) -> Result<CallOutcome, Error> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        self.engine.call(&Call::new(caller, operation, arguments))
    }

    #[track_caller]
    pub(crate) fn call_ok(&self, operation: &str, arguments: Value) -> CallOutcome {
        match self.call(operation, arguments.clone()) {
            Ok(outcome) => outcome,
            Err(error) => panic!("{operation} {arguments}: {error}"),
        }
    }

    #[track_caller]
    pub(crate) fn call_err(&self, operation: &str, arguments: Value, kind: ErrorKind) -> Error {
        match self.call(operation, arguments.clone()) {
            Ok(outcome) => panic!("{operation} {arguments} answered {:?}", outcome.json),
            Err(error) => {
                assert_eq!(error.kind, kind, "{operation} {arguments}: {error}");
                error
            }
        }
    }

    pub(crate) fn entry_count(&self) -> u64 {
        self.engine.workspace().head().unwrap().number
    }
}

pub(crate) fn agent(name: &str) -> Caller {
    Caller::new(Principal::Agent(name.to_owned()), "session", "test")
}

pub(crate) fn confined_agent(name: &str, paths: &[&str]) -> Caller {
    let paths: Vec<RelPath> = paths.iter().map(|path| RelPath::from_wire(path).unwrap()).collect();
    let grants = Grants { readable: paths.clone(), writable: paths, ..Grants::default() };
    Caller { grants, ..agent(name) }
}
