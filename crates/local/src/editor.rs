//! A workspace for an editor written in Rust, without a proxy or another process: the person's open buffers, the files
//! as agents see them, and reviews of the agents' changes.
//!
//! Every method is a call of the engine: confined, checked against the policy, recorded and undoable.
//! [`EditorWorkspace::engine`] gives access to everything else.
//!
//! ```no_run
//! use stead_engine::Principal;
//! use stead_local::{EditorWorkspace, LocalWorkspaceOptions};
//!
//! # fn main() -> Result<(), stead_engine::Error> {
//! let options = LocalWorkspaceOptions::new("project".into(), "state".into());
//! let editor = EditorWorkspace::open(options, Principal::parse("user:ann")?)?;
//! editor.open_buffer("notes.txt", "unsaved text\n")?;
//! let agent = editor.agent("agent:scribe", "session 1")?;
//! assert_eq!(agent.read_text_file("notes.txt", None, None)?, "unsaved text\n");
//! # Ok(())
//! # }
//! ```

mod agent;
mod review;

use std::sync::Arc;

use serde_json::{Map, Value, json};
use stead_engine::{Call, CallOutcome, Caller, Engine, Error, ErrorKind, Principal};

pub use self::{
    agent::AgentFiles,
    review::{EditorReview, EditorReviewHunk, EditorReviewedFile},
};
use crate::{LocalWorkspace, LocalWorkspaceOptions};

/// The protocol name in recorded entries.
const EDITOR_PROTOCOL: &str = "editor";

/// A workspace opened by a person's editor.
pub struct EditorWorkspace {
    workspace: Arc<LocalWorkspace>,
    engine: Engine,
    person_caller: Caller,
}

/// A buffer after a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferStatus {
    /// The revision to send with the next change.
    pub revision: u64,
    /// The version of the file if the text were saved.
    pub version: String,
    /// Whether the text differs from the file on disk.
    pub unsaved: bool,
    /// The text to display, if it differs from the text that the editor sent.
    pub text: Option<String>,
}

/// Result of a buffer change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BufferChangeResult {
    /// The change was applied.
    Accepted(BufferStatus),
    /// The same lines changed concurrently; nothing was applied. Merge both texts and send the result with this revision.
    Conflict {
        /// The current text of the buffer.
        text: String,
        /// The current revision.
        revision: u64,
    },
}

/// Unsaved text of a closed editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorDraft {
    /// The draft id.
    pub id: String,
    /// The path of the file.
    pub path: String,
    /// Time of the last change.
    pub changed_at: String,
}

impl EditorWorkspace {
    /// Opens a workspace for a person.
    pub fn open(options: LocalWorkspaceOptions, person: Principal) -> Result<Self, Error> {
        let workspace = LocalWorkspace::open(options)?;
        let engine = Engine::new(Arc::clone(&workspace) as Arc<dyn stead_engine::Workspace>);
        let person = Caller::new(person, EDITOR_PROTOCOL, EDITOR_PROTOCOL);
        Ok(Self { workspace, engine, person_caller: person })
    }

    /// The engine. It can also be served to agents over MCP, with the same buffers.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The files as seen by an agent's session.
    pub fn agent(&self, principal: &str, session: &str) -> Result<AgentFiles, Error> {
        let mut caller = Caller::new(Principal::parse(principal)?, session, EDITOR_PROTOCOL);
        caller.on_behalf_of = Some(self.person_caller.principal.clone());
        Ok(AgentFiles::new(self.engine.clone(), caller))
    }

    /// Opens a buffer with this text.
    pub fn open_buffer(&self, path: &str, text: &str) -> Result<BufferStatus, Error> {
        self.call_for_buffer_status("buffer.open", json!({ "path": path, "text": text }))
    }

    /// Opens the newest draft of a file as a buffer. The result contains its text.
    pub fn resume_draft(&self, path: &str) -> Result<BufferStatus, Error> {
        self.call_for_buffer_status("buffer.open", json!({ "path": path }))
    }

    /// Replaces the text of a buffer; `revision` is the one the edit is based on.
    pub fn change_buffer(&self, path: &str, revision: u64, text: &str) -> Result<BufferChangeResult, Error> {
        match self.call_for_buffer_status("buffer.change", json!({ "path": path, "revision": revision, "text": text }))
        {
            Ok(held) => Ok(BufferChangeResult::Accepted(held)),
            Err(error) => {
                let met = matches!(error.kind, ErrorKind::Conflict | ErrorKind::Stale);
                let now = error.details.get("text").and_then(Value::as_str).map(str::to_owned);
                let revision = error.details.get("revision").and_then(Value::as_u64);
                match (met, now, revision) {
                    (true, Some(text), Some(revision)) => Ok(BufferChangeResult::Conflict { text, revision }),
                    (_, _, _) => Err(error),
                }
            }
        }
    }

    /// Writes a buffer to disk, merged with changes made there since it was loaded.
    pub fn save_buffer(&self, path: &str) -> Result<BufferStatus, Error> {
        self.call_for_buffer_status("buffer.save", json!({ "path": path }))
    }

    /// Closes a buffer and discards unsaved changes.
    pub fn close_buffer(&self, path: &str) -> Result<(), Error> {
        self.call("buffer.close", json!({ "path": path })).map(|_| ())
    }

    /// The current buffer, including changes by agents.
    pub fn buffer(&self, path: &str) -> Result<Option<BufferStatus>, Error> {
        let outcome = self.call("buffer.list", json!({ "path": path }))?;
        let open = array_field(&outcome, "buffers")
            .iter()
            .find(|buffer| buffer["state"] != "draft")
            .map(buffer_status_from_json);
        Ok(open)
    }

    /// The drafts of this person.
    pub fn drafts(&self) -> Result<Vec<EditorDraft>, Error> {
        let outcome = self.call("buffer.list", json!({}))?;
        let own = self.person_caller.principal.to_string();
        let drafts = array_field(&outcome, "buffers")
            .iter()
            .filter(|buffer| buffer["state"] == "draft" && buffer["owner"] == own.as_str());
        Ok(drafts
            .map(|buffer| EditorDraft {
                id: string_field(buffer, "buffer"),
                path: string_field(buffer, "path"),
                changed_at: string_field(buffer, "changed"),
            })
            .collect())
    }

    /// Deletes a draft.
    pub fn discard_draft(&self, id: &str) -> Result<(), Error> {
        self.call("buffer.drop", json!({ "draft": id })).map(|_| ())
    }

    /// A review of the changes of an agent's session.
    pub fn review(&self, principal: &str, session: &str) -> EditorReview<'_> {
        EditorReview::new(self, principal, session)
    }

    /// Closes the workspace. Open buffers become drafts when this value is dropped.
    pub fn close(&self) {
        self.workspace.close();
    }

    fn call_for_buffer_status(&self, operation: &str, arguments: Value) -> Result<BufferStatus, Error> {
        self.call(operation, arguments).map(|outcome| buffer_status_from_json(&Value::Object(outcome.json)))
    }

    fn call(&self, operation: &str, arguments: Value) -> Result<CallOutcome, Error> {
        self.engine.call(&Call::new(&self.person_caller, operation, into_object(arguments)))
    }
}

fn buffer_status_from_json(buffer: &Value) -> BufferStatus {
    BufferStatus {
        revision: buffer["revision"].as_u64().unwrap_or_default(),
        version: string_field(buffer, "version"),
        unsaved: buffer["state"] == "unsaved",
        text: buffer["text"].as_str().map(str::to_owned),
    }
}

fn into_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

fn array_field<'a>(outcome: &'a CallOutcome, name: &str) -> &'a [Value] {
    outcome.json.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn string_field(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}
