//! An engine with a caller over a workspace, with short methods for calls.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use crate::native::{EngineJsonCalls, JsonCall, RenderedOutcome};
use serde_json::{Map, Value, json};
use stead_engine::{
    BytesToRead, Caller, CallerApproverStatus, Engine, Error, ErrorKind, FileBytesWithVersion, Grants, Principal,
    Workspace,
};
use stead_path::RelPath;

use crate::{MemoryWorkspace, next_steps::check_next_step};

/// An engine over a workspace, and the caller of its calls. Methods without a `Result` panic if the call or the read
/// does not end as their name says.
pub struct EngineFixture<W = MemoryWorkspace> {
    /// The workspace below the engine.
    pub workspace: Arc<W>,
    /// The engine that runs the calls.
    pub engine: Engine,
    /// The caller of all calls except those of [`EngineFixture::call_as`].
    pub caller: Caller,
}

impl EngineFixture {
    /// Creates an engine over an empty memory workspace, with the caller `agent:one`.
    #[expect(clippy::new_without_default, reason = "a fixture is created by name")]
    pub fn new() -> Self {
        Self::on_workspace(Arc::default())
    }

    /// Creates an engine over a memory workspace that holds these files without journal entries.
    pub fn with_files(files: &[(&str, &str)]) -> Self {
        let fixture = Self::new();
        for (path, content) in files {
            fixture.workspace.put_file(path, content);
        }
        fixture
    }
}

impl<W: Workspace + 'static> EngineFixture<W> {
    /// Creates an engine over this workspace, with the caller `agent:one`.
    pub fn on_workspace(workspace: Arc<W>) -> Self {
        Self { engine: Engine::new(workspace.clone()), workspace, caller: agent("one") }
    }

    /// Returns a fixture with the same engine and another caller.
    #[must_use]
    pub fn with_caller(&self, caller: &Caller) -> Self {
        Self { workspace: self.workspace.clone(), engine: self.engine.clone(), caller: caller.clone() }
    }

    /// Calls an operation.
    pub fn call(&self, operation: &str, arguments: Value) -> Result<RenderedOutcome, Error> {
        self.call_as(&self.caller, operation, arguments)
    }

    /// Calls an operation as another caller.
    pub fn call_as(&self, caller: &Caller, operation: &str, arguments: Value) -> Result<RenderedOutcome, Error> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let outcome = self.engine.call(&JsonCall::new(caller, operation, arguments));
        let outcome = outcome.inspect_err(|error| check_next_step(operation, error))?;
        assert!(!outcome.text.is_empty(), "{operation} has no text");
        Ok(outcome)
    }

    /// Calls an operation that succeeds, and returns its JSON object.
    #[track_caller]
    pub fn call_ok(&self, operation: &str, arguments: Value) -> Map<String, Value> {
        match self.call(operation, arguments.clone()) {
            Ok(outcome) => outcome.json,
            Err(error) => panic!("{operation} {arguments}: {error}"),
        }
    }

    /// Calls an operation that succeeds, and returns its text.
    #[track_caller]
    pub fn call_text(&self, operation: &str, arguments: Value) -> String {
        match self.call(operation, arguments.clone()) {
            Ok(outcome) => outcome.text,
            Err(error) => panic!("{operation} {arguments}: {error}"),
        }
    }

    /// Calls an operation that succeeds, and returns its text and its JSON object for a snapshot.
    #[track_caller]
    pub fn call_rendered(&self, operation: &str, arguments: Value) -> String {
        match self.call(operation, arguments.clone()) {
            Ok(outcome) => format!("{}\n\n{:#}", outcome.text, Value::Object(outcome.json)),
            Err(error) => panic!("{operation} {arguments}: {error}"),
        }
    }

    /// Calls an operation that fails with an error of this kind, and returns the error.
    #[track_caller]
    pub fn call_err(&self, operation: &str, arguments: Value, kind: ErrorKind) -> Error {
        match self.call(operation, arguments.clone()) {
            Ok(outcome) => panic!("{operation} {arguments} answered {:?}", outcome.json),
            Err(error) => {
                assert_eq!(error.kind, kind, "{operation} {arguments}: {error}");
                error
            }
        }
    }

    /// Creates or replaces a file with the operation `write`, and returns the new version.
    #[track_caller]
    pub fn write(&self, path: &str, content: &str) -> String {
        let base = self.version(path).unwrap_or_default();
        let written = self.call_ok("write", json!({ "path": path, "content": content, "base": base }));
        written["version"].as_str().expect("a version").to_owned()
    }

    /// Returns the text of a file without a call; `None` if the path does not exist.
    pub fn read_text(&self, path: &str) -> Option<String> {
        let file = self.read_file(path, BytesToRead::Whole { limit_bytes: u64::MAX })?;
        Some(String::from_utf8(file.bytes).expect("text"))
    }

    /// Returns the version of a file without a call; `None` if the path does not exist.
    pub fn version(&self, path: &str) -> Option<String> {
        self.read_file(path, BytesToRead::VersionOnly).map(|file| file.version.to_string())
    }

    /// Returns whether a path exists, without a call.
    pub fn exists(&self, path: &str) -> bool {
        self.workspace.stat(&rel_path(path)).expect("the path can be looked up").is_some()
    }

    /// Returns the number of journal entries.
    pub fn entry_count(&self) -> u64 {
        self.workspace.head().expect("the journal can be read").number
    }

    fn read_file(&self, path: &str, extent: BytesToRead) -> Option<FileBytesWithVersion> {
        self.exists(path).then(|| self.workspace.read(&rel_path(path), extent).expect("a file"))
    }
}

/// Returns an agent without limits.
pub fn agent(name: &str) -> Caller {
    Caller::new(Principal::Agent(name.to_owned()), "session", "test")
}

/// Returns a person without limits.
pub fn user(name: &str) -> Caller {
    Caller::new(Principal::User(name.to_owned()), "session", "test")
}

/// Returns a person who may answer approvals.
pub fn approver(name: &str) -> Caller {
    let mut caller = user(name);
    caller.grants.approver = CallerApproverStatus::SecretVerified;
    caller
}

/// Returns an agent that may read and write only below these paths.
pub fn confined_agent(name: &str, paths: &[&str]) -> Caller {
    let paths: Vec<RelPath> = paths.iter().map(|path| rel_path(path)).collect();
    let grants = Grants { readable: paths.clone(), writable: paths, ..Grants::default() };
    Caller { grants, ..agent(name) }
}

/// Parses a path that a test knows to be valid.
pub fn rel_path(path: &str) -> RelPath {
    RelPath::from_wire(path).expect("a path in wire form")
}
