//! A small world for tests: a workspace in memory, an engine over it, and callers.

use std::sync::Arc;

use engine::{Answer, Call, Caller, Engine, Failure, Grants, Kind, Principal};
use path::RelPath;
use serde_json::Value;
use testkit::MemoryWorkspace;

/// A workspace with its engine.
pub(crate) struct World {
    pub(crate) workspace: Arc<MemoryWorkspace>,
    pub(crate) engine: Engine,
    pub(crate) caller: Caller,
}

impl World {
    /// An empty world with one agent in it.
    pub(crate) fn new() -> Self {
        Self::over(MemoryWorkspace::new())
    }

    /// A world over this workspace.
    pub(crate) fn over(workspace: MemoryWorkspace) -> Self {
        let workspace = Arc::new(workspace);
        let engine = Engine::new(workspace.clone());
        Self { workspace, engine, caller: agent("one") }
    }

    /// A world with these files, which nobody recorded.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let world = Self::new();
        for (path, content) in files {
            world.workspace.put_file(path, content);
        }
        world
    }

    /// Calls an operation as the world's agent.
    pub(crate) fn call(&self, operation: &str, arguments: Value) -> Result<Answer, Failure> {
        self.call_as(&self.caller, operation, arguments)
    }

    /// Calls an operation as somebody.
    pub(crate) fn call_as(
        &self,
        caller: &Caller,
        operation: &str,
        arguments: Value,
    ) -> Result<Answer, Failure> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        self.engine.call(&Call::new(caller, operation, arguments))
    }

    /// The answer of a call that must succeed.
    #[track_caller]
    pub(crate) fn ok(&self, operation: &str, arguments: Value) -> Answer {
        match self.call(operation, arguments.clone()) {
            Ok(answer) => answer,
            Err(failure) => panic!("{operation} {arguments}: {failure}"),
        }
    }

    /// The failure of a call that must fail in this way.
    #[track_caller]
    pub(crate) fn fails(&self, operation: &str, arguments: Value, kind: Kind) -> Failure {
        match self.call(operation, arguments.clone()) {
            Ok(answer) => panic!("{operation} {arguments} answered {:?}", answer.json),
            Err(failure) => {
                assert_eq!(failure.kind, kind, "{operation} {arguments}: {failure}");
                failure
            }
        }
    }

    /// Number of entries in the journal.
    pub(crate) fn entries(&self) -> u64 {
        self.engine.workspace().head().unwrap().number
    }
}

/// An agent that may do everything.
pub(crate) fn agent(name: &str) -> Caller {
    Caller::new(Principal::Agent(name.to_owned()), "session", "test")
}

/// An agent that may read and change only these places.
pub(crate) fn confined(name: &str, places: &[&str]) -> Caller {
    let places: Vec<RelPath> = places.iter().map(|place| RelPath::from_wire(place).unwrap()).collect();
    let grants = Grants { readable: places.clone(), writable: places, ..Grants::default() };
    Caller { grants, ..agent(name) }
}
