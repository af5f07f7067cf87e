//! An interface for editors written in Rust: the person's open buffers, the files as agents see them, and reviews of
//! the agents' changes. An editor that uses this interface needs no proxy and no second process.
//!
//! Every method of this interface calls the engine, so it is confined to the workspace, checked against the policy,
//! recorded and undoable. [`InProcessEditorWorkspace::engine`] gives access to all other operations.
//!
//! ```no_run
//! use stead_engine::Principal;
//! use stead_local::{InProcessEditorWorkspace, LocalWorkspaceOptions};
//!
//! # fn main() -> Result<(), stead_engine::Error> {
//! let options = LocalWorkspaceOptions::new("project".into(), "state".into());
//! let editor = InProcessEditorWorkspace::open(options, Principal::parse("user:ann")?)?;
//! editor.open_buffer("notes.txt", "unsaved text\n")?;
//! let agent = editor.agent("agent:scribe", "session 1")?;
//! assert_eq!(agent.read_text_file("notes.txt", None, None)?, "unsaved text\n");
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use serde_json::{Map, Value, json};
use stead_engine::{
    BeforeAfterContentInclusion, Call, CallOptions, CallOutcome, Caller, Engine, Error, ErrorKind,
    LineEndingAndBomPolicy, MissingBaseVersionPolicy, Principal, index::decode_indexable_text,
};

use crate::{LocalWorkspace, LocalWorkspaceOptions};

const EDITOR_PROTOCOL: &str = "editor";

/// A workspace that a person's editor has opened.
pub struct InProcessEditorWorkspace {
    workspace: Arc<LocalWorkspace>,
    engine: Engine,
    person_caller: Caller,
}

/// The state of an editor's buffer after a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferStateReplyToEditor {
    /// The revision of the buffer, which the editor sends with the next change.
    pub revision: u64,
    /// The version that the file would have if the buffer were saved.
    pub version: String,
    /// Whether the text of the buffer differs from the file on disk.
    pub unsaved: bool,
    /// The text of the buffer, if it differs from the text that the editor sent.
    pub text: Option<String>,
}

/// The result of replacing the text of a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BufferChangeResult {
    /// The server accepted the new text of the buffer.
    Accepted(BufferStateReplyToEditor),
    /// The new text of the buffer was rejected, because the same lines changed meanwhile. The editor must merge its
    /// text with the buffer's current `text`, and send the merged text with `revision`.
    Conflict {
        /// The current text of the buffer.
        text: String,
        /// The current revision of the buffer.
        revision: u64,
    },
}

/// A draft, which is the unsaved text of an editor that was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedEditorDraftInfo {
    /// The id of the draft.
    pub id: String,
    /// The path of the file that the draft changes.
    pub path: String,
    /// The time of the last change of the draft.
    pub changed_at: String,
}

impl InProcessEditorWorkspace {
    /// Opens a workspace for a person.
    pub fn open(options: LocalWorkspaceOptions, person: Principal) -> Result<Self, Error> {
        let workspace = LocalWorkspace::open(options)?;
        let engine = Engine::new(Arc::clone(&workspace) as Arc<dyn stead_engine::Workspace>);
        let person = Caller::new(person, EDITOR_PROTOCOL, EDITOR_PROTOCOL);
        Ok(Self { workspace, engine, person_caller: person })
    }

    /// The engine of the workspace; agents that this engine serves see the unsaved text of the editor.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the files as a session of an agent sees them.
    pub fn agent(&self, principal: &str, session: &str) -> Result<AcpSessionFileHandler, Error> {
        let mut caller = Caller::new(Principal::parse(principal)?, session, EDITOR_PROTOCOL);
        caller.on_behalf_of = Some(self.person_caller.principal.clone());
        Ok(AcpSessionFileHandler { engine: self.engine.clone(), caller: Arc::new(caller) })
    }

    /// Opens a buffer with the text `text` for the file at `path`.
    pub fn open_buffer(&self, path: &str, text: &str) -> Result<BufferStateReplyToEditor, Error> {
        self.call_for_buffer_status("buffer.open", json!({ "path": path, "text": text }))
    }

    /// Opens the newest draft of a file as a buffer, and returns the text of the draft.
    pub fn resume_draft(&self, path: &str) -> Result<BufferStateReplyToEditor, Error> {
        self.call_for_buffer_status("buffer.open", json!({ "path": path }))
    }

    /// Replaces the text of a buffer; `revision` is the buffer revision that the editor changed.
    pub fn change_buffer(&self, path: &str, revision: u64, text: &str) -> Result<BufferChangeResult, Error> {
        let arguments = json!({ "path": path, "revision": revision, "text": text });
        let error = match self.call_for_buffer_status("buffer.change", arguments) {
            Ok(status) => return Ok(BufferChangeResult::Accepted(status)),
            Err(error) => error,
        };
        let is_conflict = matches!(error.kind, ErrorKind::Conflict | ErrorKind::Stale);
        let text = error.details.get("text").and_then(Value::as_str).map(str::to_owned);
        let revision = error.details.get("revision").and_then(Value::as_u64);
        match (is_conflict, text, revision) {
            (true, Some(text), Some(revision)) => Ok(BufferChangeResult::Conflict { text, revision }),
            (_, _, _) => Err(error),
        }
    }

    /// Writes a buffer to disk, merged with changes of the file since the buffer was loaded.
    pub fn save_buffer(&self, path: &str) -> Result<BufferStateReplyToEditor, Error> {
        self.call_for_buffer_status("buffer.save", json!({ "path": path }))
    }

    /// Closes a buffer and discards unsaved changes.
    pub fn close_buffer(&self, path: &str) -> Result<(), Error> {
        self.call("buffer.close", json!({ "path": path })).map(|_| ())
    }

    /// The current state of a buffer, or `None` if no editor has the file open.
    pub fn buffer(&self, path: &str) -> Result<Option<BufferStateReplyToEditor>, Error> {
        let outcome = self.call("buffer.list", json!({ "path": path }))?;
        let open = array_field(&outcome, "buffers")
            .iter()
            .find(|buffer| buffer["state"] != "draft")
            .map(buffer_status_from_json);
        Ok(open)
    }

    /// The drafts of the person who opened the workspace.
    pub fn drafts(&self) -> Result<Vec<ClosedEditorDraftInfo>, Error> {
        let outcome = self.call("buffer.list", json!({}))?;
        let own = self.person_caller.principal.to_string();
        let drafts = array_field(&outcome, "buffers")
            .iter()
            .filter(|buffer| buffer["state"] == "draft" && buffer["owner"] == own.as_str());
        Ok(drafts
            .map(|buffer| ClosedEditorDraftInfo {
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

    /// A review of the changes that a session of an agent made.
    pub fn review(&self, principal: &str, session: &str) -> EditorReviewOfSessionChanges<'_> {
        EditorReviewOfSessionChanges { editor: self, principal: principal.to_owned(), session: session.to_owned() }
    }

    /// Closes the workspace. Buffers that are still open become drafts when the [`InProcessEditorWorkspace`] is dropped.
    pub fn close(&self) {
        self.workspace.close();
    }

    fn call_for_buffer_status(&self, operation: &str, arguments: Value) -> Result<BufferStateReplyToEditor, Error> {
        self.call(operation, arguments).map(|outcome| buffer_status_from_json(&Value::Object(outcome.json)))
    }

    fn call(&self, operation: &str, arguments: Value) -> Result<CallOutcome, Error> {
        self.engine.call(&Call::new(&self.person_caller, operation, into_object(arguments)))
    }
}

fn buffer_status_from_json(buffer: &Value) -> BufferStateReplyToEditor {
    BufferStateReplyToEditor {
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

/// The files as a session of an agent sees them, with the file methods of the Agent Client Protocol. An agent reads the
/// unsaved text of the editor. A write by an agent is merged with changes that the person made since the session last
/// read the file. Clones of an [`AcpSessionFileHandler`] share one session.
#[derive(Clone)]
pub struct AcpSessionFileHandler {
    engine: Engine,
    caller: Arc<Caller>,
}

impl AcpSessionFileHandler {
    /// Marks the start of a turn of the agent; the changes of one turn can be rejected together.
    pub fn begin_turn(&self) -> Result<(), Error> {
        self.call("turn", json!({}), CallOptions::default()).map(|_| ())
    }

    /// Implements `fs/read_text_file`: reads the whole text, or `limit` lines from `line` on. Lines are counted from 1,
    /// and `line` 0 means line 1. Lines keep their terminators, so that the results of several reads can be joined.
    /// Reading fails if `line` is after the end of the file.
    pub fn read_text_file(&self, path: &str, line: Option<u32>, limit: Option<u32>) -> Result<String, Error> {
        let options = CallOptions { before_after: BeforeAfterContentInclusion::Include, ..CallOptions::default() };
        let outcome = self.call("read", json!({ "path": path }), options)?;
        let bytes = outcome.before_after.into_iter().find_map(|content| content.before).unwrap_or_default();
        let text = decode_indexable_text(&bytes)
            .ok_or_else(|| Error::new(ErrorKind::NotText, format!("{path} is not text")))?;
        slice_lines(&text, line, limit)
            .map(str::to_owned)
            .ok_or_else(|| Error::new(ErrorKind::BadRequest, format!("{path} ends before line {}", line.unwrap_or(1))))
    }

    /// Implements `fs/write_text_file`: writes the content of a file, and returns whether a merge was needed. The
    /// written content is merged with changes that were made since the session last read the file. A written file keeps
    /// its byte order mark and line endings, and missing directories are created. If the agent and another writer
    /// changed the same lines, the write fails with a conflict.
    pub fn write_text_file(&self, path: &str, content: &str) -> Result<bool, Error> {
        let options = CallOptions {
            missing_base: MissingBaseVersionPolicy::Overwrite,
            replacement_format: LineEndingAndBomPolicy::MatchReplaced,
            ..CallOptions::default()
        };
        let arguments = json!({ "path": path, "content": content, "mode": "merge" });
        let outcome = self.call("write", arguments, options)?;
        Ok(outcome.json.get("merged") == Some(&Value::Bool(true)))
    }

    fn call(&self, operation: &str, arguments: Value, options: CallOptions) -> Result<CallOutcome, Error> {
        let call = Call { options, ..Call::new(&self.caller, operation, into_object(arguments)) };
        self.engine.call(&call)
    }
}

/// A text that ends with a newline has an empty last line after the newline.
fn slice_lines(text: &str, line: Option<u32>, limit: Option<u32>) -> Option<&str> {
    let skipped = usize::try_from(line.unwrap_or(1).saturating_sub(1)).unwrap_or(usize::MAX);
    let lines_max = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
    let from = starts.nth(skipped)?;
    let rest = &text[from..];
    let to = rest.split_inclusive('\n').take(lines_max).map(str::len).sum();
    rest.get(..to)
}

/// A review of the changes that one session made, in which a person accepts or rejects files and hunks.
pub struct EditorReviewOfSessionChanges<'e> {
    editor: &'e InProcessEditorWorkspace,
    principal: String,
    session: String,
}

/// A file that the reviewed session changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorReviewedFile {
    /// The path of the changed file.
    pub path: String,
    /// The kind of the file's change: create, modify, remove or move.
    pub change: String,
    /// The principals that changed the file since the reviewed session first changed it.
    pub actors: Vec<String>,
    /// The hunks of the changed file in the order of their lines.
    pub hunks: Vec<EditorReviewHunk>,
    /// The changes of the reviewed file as a unified diff.
    pub diff: String,
}

/// A hunk: a range of lines that the reviewed session replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorReviewHunk {
    /// The name of the hunk, which stays the same while other hunks change.
    pub name: String,
    /// The first line and the number of lines of the hunk in the text before the change.
    pub before: (u64, u64),
    /// The first line and the number of lines of the hunk in the current text.
    pub after: (u64, u64),
    /// The principals that changed the lines of the hunk.
    pub authors: Vec<String>,
}

impl EditorReviewOfSessionChanges<'_> {
    /// The files that the reviewed session changed and the person has not accepted yet.
    pub fn files(&self) -> Result<Vec<EditorReviewedFile>, Error> {
        let outcome = self.editor.call("review", self.arguments(None, None))?;
        Ok(array_field(&outcome, "files").iter().map(reviewed_file_from_json).collect())
    }

    /// Accepts all changes of a file, or only one hunk of the file.
    pub fn accept(&self, path: &str, hunk: Option<&str>) -> Result<(), Error> {
        self.editor.call("keep", self.arguments(Some(path), hunk)).map(|_| ())
    }

    /// Reverts all changes of a file, or only one hunk of the file.
    pub fn reject(&self, path: &str, hunk: Option<&str>) -> Result<(), Error> {
        self.editor.call("reject", self.arguments(Some(path), hunk)).map(|_| ())
    }

    /// Reverts all changes of the current turn of the reviewed session.
    pub fn reject_turn(&self) -> Result<(), Error> {
        let mut arguments = self.arguments(None, None);
        arguments["since"] = "turn".into();
        self.editor.call("reject", arguments).map(|_| ())
    }

    fn arguments(&self, path: Option<&str>, hunk: Option<&str>) -> Value {
        let mut arguments = json!({ "author": self.principal, "session": self.session });
        for (name, value) in [("path", path), ("hunk", hunk)] {
            if let Some(value) = value {
                arguments[name] = value.into();
            }
        }
        arguments
    }
}

fn reviewed_file_from_json(file: &Value) -> EditorReviewedFile {
    let hunks = file["hunks"].as_array().map_or(&[][..], Vec::as_slice);
    EditorReviewedFile {
        path: string_field(file, "path"),
        change: string_field(file, "change"),
        actors: string_list(&file["actors"]),
        hunks: hunks.iter().map(hunk_from_json).collect(),
        diff: string_field(file, "diff"),
    }
}

fn hunk_from_json(hunk: &Value) -> EditorReviewHunk {
    let range = |side: &Value| (side["from"].as_u64().unwrap_or_default(), side["lines"].as_u64().unwrap_or_default());
    EditorReviewHunk {
        name: string_field(hunk, "hunk"),
        before: range(&hunk["before"]),
        after: range(&hunk["after"]),
        authors: string_list(&hunk["by"]),
    }
}

fn string_list(list: &Value) -> Vec<String> {
    let items = list.as_array().map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::slice_lines;

    #[test]
    fn lines_are_sliced_like_the_reference_client() {
        let text = "one\ntwo\nthree\nfour\n";
        for (line, limit, expected) in [
            (None, None, Some(text)),
            (Some(3), None, Some("three\nfour\n")),
            (None, Some(2), Some("one\ntwo\n")),
            (Some(2), Some(2), Some("two\nthree\n")),
            (Some(0), None, Some(text)),
            (None, Some(0), Some("")),
            (Some(5), None, Some("")),
            (Some(6), None, None),
            (Some(u32::MAX), Some(u32::MAX), None),
        ] {
            assert_eq!(slice_lines(text, line, limit), expected, "{line:?} {limit:?}");
        }
        assert_eq!((slice_lines("", Some(1), None), slice_lines("", Some(5), None)), (Some(""), None));
        assert_eq!(slice_lines("a\r\nb", Some(2), Some(9)), Some("b"));
    }
}
