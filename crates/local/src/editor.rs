//! A workspace for an editor written in Rust, without a proxy and without another process: the person's open buffers on
//! one side, the files of agents on the other, and what became of them to look over.
//!
//! Everything here is a call of the engine and no more: confined, judged, recorded and taken back like any other. What an
//! answer holds beyond the types here is reached through [`Editor::engine`].
//!
//! ```no_run
//! use engine::Principal;
//! use local::{Editor, Options};
//!
//! # fn main() -> Result<(), engine::Failure> {
//! let options = Options::new("project".into(), "state".into());
//! let editor = Editor::open(options, Principal::parse("user:ann")?)?;
//! editor.open_buffer("notes.txt", "what is on the screen\n")?;
//! let agent = editor.agent("agent:scribe", "session 1")?;
//! assert_eq!(agent.read_text_file("notes.txt", None, None)?, "what is on the screen\n");
//! # Ok(())
//! # }
//! ```

mod agent;
mod review;

use std::sync::Arc;

use engine::{Answer, Call, Caller, Engine, Failure, Kind, Principal};
use serde_json::{Map, Value, json};

pub use self::{
    agent::AgentFiles,
    review::{HunkUnderReview, Reviewing, UnderReview},
};
use crate::{LocalWorkspace, Options};

/// The face that calls are recorded under.
const FACE: &str = "editor";

/// A workspace with a person's editor on it.
pub struct Editor {
    workspace: Arc<LocalWorkspace>,
    engine: Engine,
    person: Caller,
}

/// A buffer after a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// To be given with the next change.
    pub revision: u64,
    /// The version that the file would have if the text were saved.
    pub version: String,
    /// Whether the text is not on disk.
    pub unsaved: bool,
    /// The text to show, where it is another one than the editor sent.
    pub text: Option<String>,
}

/// What came of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// It is taken.
    Taken(Held),
    /// Somebody else changed the same lines. Nothing was taken and nothing is lost: bring the two together, and send the
    /// result with this revision.
    Met {
        /// What the buffer holds.
        text: String,
        /// Its revision.
        revision: u64,
    },
}

/// Text that an editor left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Its id.
    pub id: String,
    /// The file.
    pub path: String,
    /// When it was last changed.
    pub changed: String,
}

impl Editor {
    /// Opens a workspace for a person.
    pub fn open(options: Options, person: Principal) -> Result<Self, Failure> {
        let workspace = LocalWorkspace::open(options)?;
        let engine = Engine::new(Arc::clone(&workspace) as Arc<dyn engine::Workspace>);
        let person = Caller::new(person, FACE, FACE);
        Ok(Self { workspace, engine, person })
    }

    /// The engine, for everything else: it can be served to agents over MCP as well, with the same buffers.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The files as an agent's session has them.
    pub fn agent(&self, principal: &str, session: &str) -> Result<AgentFiles, Failure> {
        let mut caller = Caller::new(Principal::parse(principal)?, session, FACE);
        caller.on_behalf_of = Some(self.person.principal.clone());
        Ok(AgentFiles::new(self.engine.clone(), caller))
    }

    /// Says that a file is open with this text.
    pub fn open_buffer(&self, path: &str, text: &str) -> Result<Held, Failure> {
        self.held("buffer.open", json!({ "path": path, "text": text }))
    }

    /// Takes up the newest draft of a file. The text to show is in the answer.
    pub fn take_up(&self, path: &str) -> Result<Held, Failure> {
        self.held("buffer.open", json!({ "path": path }))
    }

    /// Says what a buffer holds after somebody typed on this revision.
    pub fn change_buffer(&self, path: &str, revision: u64, text: &str) -> Result<Typed, Failure> {
        match self.held("buffer.change", json!({ "path": path, "revision": revision, "text": text })) {
            Ok(held) => Ok(Typed::Taken(held)),
            Err(failure) => {
                let met = matches!(failure.kind, Kind::Conflict | Kind::Stale);
                let now = failure.facts.get("text").and_then(Value::as_str).map(str::to_owned);
                let revision = failure.facts.get("revision").and_then(Value::as_u64);
                match (met, now, revision) {
                    (true, Some(text), Some(revision)) => Ok(Typed::Met { text, revision }),
                    (_, _, _) => Err(failure),
                }
            }
        }
    }

    /// Writes a buffer to disk, merged with what others wrote there since it was loaded.
    pub fn save_buffer(&self, path: &str) -> Result<Held, Failure> {
        self.held("buffer.save", json!({ "path": path }))
    }

    /// Lets go of a buffer and of what was not saved.
    pub fn close_buffer(&self, path: &str) -> Result<(), Failure> {
        self.call("buffer.close", json!({ "path": path })).map(|_| ())
    }

    /// What a buffer holds now: the text that an agent may have changed since the editor last said or heard of it.
    pub fn buffer(&self, path: &str) -> Result<Option<Held>, Failure> {
        let answer = self.call("buffer.list", json!({ "path": path }))?;
        let open = list(&answer, "buffers").iter().find(|buffer| buffer["state"] != "draft").map(held);
        Ok(open)
    }

    /// What editors of this person left behind.
    pub fn drafts(&self) -> Result<Vec<Draft>, Failure> {
        let answer = self.call("buffer.list", json!({}))?;
        let own = self.person.principal.to_string();
        let drafts = list(&answer, "buffers")
            .iter()
            .filter(|buffer| buffer["state"] == "draft" && buffer["owner"] == own.as_str());
        Ok(drafts
            .map(|buffer| Draft {
                id: word(buffer, "buffer"),
                path: word(buffer, "path"),
                changed: word(buffer, "changed"),
            })
            .collect())
    }

    /// Lets go of a draft.
    pub fn drop_draft(&self, id: &str) -> Result<(), Failure> {
        self.call("buffer.drop", json!({ "draft": id })).map(|_| ())
    }

    /// What an agent's session changed, to look over.
    pub fn reviewing(&self, principal: &str, session: &str) -> Reviewing<'_> {
        Reviewing::new(self, principal, session)
    }

    /// Brings everything to rest. Buffers that are still open become drafts when the editor is dropped.
    pub fn close(&self) {
        self.workspace.close();
    }

    fn held(&self, operation: &str, arguments: Value) -> Result<Held, Failure> {
        self.call(operation, arguments).map(|answer| held(&Value::Object(answer.json)))
    }

    fn call(&self, operation: &str, arguments: Value) -> Result<Answer, Failure> {
        self.engine.call(&Call::new(&self.person, operation, fields(arguments)))
    }
}

fn held(buffer: &Value) -> Held {
    Held {
        revision: buffer["revision"].as_u64().unwrap_or_default(),
        version: word(buffer, "version"),
        unsaved: buffer["state"] == "unsaved",
        text: buffer["text"].as_str().map(str::to_owned),
    }
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

fn list<'a>(answer: &'a Answer, name: &str) -> &'a [Value] {
    answer.json.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn word(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}
