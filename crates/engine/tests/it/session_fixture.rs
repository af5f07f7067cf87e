//! A test fixture with one caller on an in-memory workspace and short methods for calls.

use std::sync::Arc;

use serde_json::{Map, Value};
use stead_engine::{BytesToRead, Call, Caller, Engine, Error, Grants, Principal, Workspace};
use stead_path::RelPath;
use testkit::MemoryWorkspace;

pub(crate) struct SessionFixture {
    pub(crate) workspace: Arc<MemoryWorkspace>,
    engine: Engine,
    caller: Caller,
}

pub(crate) fn rel_path(wire: &str) -> RelPath {
    RelPath::from_wire(wire).unwrap()
}

impl SessionFixture {
    pub(crate) fn new() -> Self {
        Self::for_principal_on(Arc::new(MemoryWorkspace::new()), "agent:a")
    }

    fn for_principal_on(workspace: Arc<MemoryWorkspace>, principal: &str) -> Self {
        let engine = Engine::new(workspace.clone());
        let caller = Caller::new(Principal::parse(principal).unwrap(), "s1", "test");
        Self { workspace, engine, caller }
    }

    pub(crate) fn with_principal(&self, principal: &str) -> Self {
        Self::for_principal_on(self.workspace.clone(), principal)
    }

    pub(crate) fn with_grants(&self, grants: Grants) -> Self {
        let mut session = self.with_principal(&self.caller.principal.to_string());
        session.caller.grants = grants;
        session
    }

    pub(crate) fn call(&self, operation: &str, arguments: Value) -> Result<Map<String, Value>, Error> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let outcome = self.engine.call(&Call::new(&self.caller, operation, arguments))?;
        assert!(!outcome.text.is_empty(), "{operation} has no text");
        Ok(outcome.json)
    }

    pub(crate) fn call_ok(&self, operation: &str, arguments: Value) -> Map<String, Value> {
        self.call(operation, arguments.clone()).unwrap_or_else(|error| panic!("{operation} {arguments}: {error}"))
    }

    pub(crate) fn call_err(&self, operation: &str, arguments: Value) -> (&'static str, Error) {
        match self.call(operation, arguments.clone()) {
            Ok(outcome) => panic!("{operation} {arguments} worked: {outcome:?}"),
            Err(error) => (error.kind.code(), error),
        }
    }

    /// Writes a file through the engine and returns the new version of the file.
    pub(crate) fn write_file(&self, path: &str, content: &str) -> String {
        let base = self.file_version(path).unwrap_or_default();
        let outcome = self.call_ok("write", serde_json::json!({ "path": path, "content": content, "base": base }));
        outcome["version"].as_str().unwrap().to_owned()
    }

    pub(crate) fn file_bytes(&self, path: &str) -> Option<Vec<u8>> {
        self.workspace.stat(&rel_path(path)).unwrap()?;
        let file = self.workspace.read(&rel_path(path), BytesToRead::Whole { limit_bytes: u64::MAX }).unwrap();
        Some(file.bytes)
    }

    pub(crate) fn file_text(&self, path: &str) -> Option<String> {
        self.file_bytes(path).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    pub(crate) fn file_version(&self, path: &str) -> Option<String> {
        self.workspace.stat(&rel_path(path)).unwrap()?;
        Some(self.workspace.read(&rel_path(path), BytesToRead::VersionOnly).unwrap().version.to_string())
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.workspace.stat(&rel_path(path)).unwrap().is_some()
    }

    pub(crate) fn head_entry(&self) -> u64 {
        self.workspace.head().unwrap().number
    }

    pub(crate) fn head_hash(&self) -> String {
        self.workspace.head().unwrap().hash.to_string()
    }
}
