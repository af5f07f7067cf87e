//! Somebody at work: one caller on one in-memory workspace, with calls in one line and a look at the files.

use std::sync::Arc;

use engine::{Call, Caller, Engine, Failure, Grants, Principal, Want, Workspace};
use path::RelPath;
use serde_json::{Map, Value};
use testkit::MemoryWorkspace;

/// A caller with an engine. Desks made from one another share the workspace.
pub(crate) struct Desk {
    pub(crate) workspace: Arc<MemoryWorkspace>,
    engine: Engine,
    caller: Caller,
}

pub(crate) fn at(wire: &str) -> RelPath {
    RelPath::from_wire(wire).unwrap()
}

impl Desk {
    /// An agent on an empty workspace.
    pub(crate) fn new() -> Self {
        Self::on(Arc::new(MemoryWorkspace::new()), "agent:a")
    }

    fn on(workspace: Arc<MemoryWorkspace>, principal: &str) -> Self {
        let engine = Engine::new(workspace.clone());
        let caller = Caller::new(Principal::parse(principal).unwrap(), "s1", "test");
        Self { workspace, engine, caller }
    }

    /// Somebody else on the same workspace.
    pub(crate) fn and(&self, principal: &str) -> Self {
        Self::on(self.workspace.clone(), principal)
    }

    /// The same caller with other grants.
    pub(crate) fn granted(&self, grants: Grants) -> Self {
        let mut desk = self.and(&self.caller.principal.to_string());
        desk.caller.grants = grants;
        desk
    }

    pub(crate) fn call(&self, operation: &str, arguments: Value) -> Result<Map<String, Value>, Failure> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let answer = self.engine.call(&Call::new(&self.caller, operation, arguments))?;
        assert!(!answer.text.is_empty(), "{operation} has no text");
        Ok(answer.json)
    }

    /// A call that must work.
    pub(crate) fn run(&self, operation: &str, arguments: Value) -> Map<String, Value> {
        self.call(operation, arguments.clone())
            .unwrap_or_else(|failure| panic!("{operation} {arguments}: {failure}"))
    }

    /// A call that must fail; its kind, and the failure itself.
    pub(crate) fn fails(&self, operation: &str, arguments: Value) -> (&'static str, Failure) {
        match self.call(operation, arguments.clone()) {
            Ok(answer) => panic!("{operation} {arguments} worked: {answer:?}"),
            Err(failure) => (failure.kind.code(), failure),
        }
    }

    /// Writes a file whatever is there, through the engine; the version it then has.
    pub(crate) fn put(&self, path: &str, content: &str) -> String {
        let base = self.version(path).unwrap_or_default();
        let answer = self.run("write", serde_json::json!({ "path": path, "content": content, "base": base }));
        answer["version"].as_str().unwrap().to_owned()
    }

    pub(crate) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        self.workspace.stat(&at(path)).unwrap()?;
        let file = self.workspace.read(&at(path), Want::Whole { limit_bytes: u64::MAX }).unwrap();
        Some(file.bytes)
    }

    /// What a file says; nothing when it is not there.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        self.bytes(path).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    pub(crate) fn version(&self, path: &str) -> Option<String> {
        self.workspace.stat(&at(path)).unwrap()?;
        Some(self.workspace.read(&at(path), Want::Nothing).unwrap().version.to_string())
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.workspace.stat(&at(path)).unwrap().is_some()
    }

    /// The number of the last entry.
    pub(crate) fn head(&self) -> u64 {
        self.workspace.head().unwrap().number
    }

    pub(crate) fn workspace_head_hash(&self) -> String {
        self.workspace.head().unwrap().hash.to_string()
    }
}
