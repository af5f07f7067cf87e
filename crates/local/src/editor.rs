//! An interface for editors written in Rust: the person's open buffers, the files as agents see them, and reviews of
//! the agents' changes. An editor that uses this interface needs no proxy and no second process.
//!
//! Every method of this interface calls the engine, so it is confined to the workspace, checked against the policy,
//! recorded and undoable. [`WorkspaceEmbeddedInEditor::engine`] gives access to all other operations.
//!
//! ```no_run
//! use stead_engine::Principal;
//! use stead_local::{WorkspaceEmbeddedInEditor, LocalWorkspaceOptions};
//!
//! # fn main() -> Result<(), stead_engine::Error> {
//! let options = LocalWorkspaceOptions::new("project".into(), "state".into());
//! let editor = WorkspaceEmbeddedInEditor::open(options, Principal::parse("user:ann")?)?;
//! editor.open_buffer("notes.txt", "unsaved text\n")?;
//! let agent = editor.agent("agent:scribe", "session 1")?;
//! assert_eq!(agent.read_text_file("notes.txt", None, None)?, "unsaved text\n");
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use stead_engine::{
    BeforeAfterContentInclusion, CallControl, CallMetadata, CallOptions, CallReply, Caller, Engine, Error, ErrorKind,
    LineEndingAndBomPolicy, Principal,
    index::decode_indexable_text,
    ops::{
        BeginTurnArgs, BufferChangeArgs, BufferCloseArgs, BufferDraftDropArgs, BufferFields, BufferListArgs,
        BufferOpenArgs, BufferSaveArgs, BufferUnsavedState, KeepChangesArgs, OperationWithDefinition, ReadArgs,
        RejectChangesArgs, ReviewArgs, ReviewHunkLineSpan, ReviewHunkRow, ReviewedFileRow, SessionOrTurnStart,
        StaleWriteHandling, WriteArgs,
    },
};

use crate::{LocalWorkspace, LocalWorkspaceOptions};

const EDITOR_PROTOCOL: &str = "editor";

/// A workspace that a person's editor has opened.
pub struct WorkspaceEmbeddedInEditor {
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
    Accepted(BufferStateReplyToEditor),
    /// The new text of the buffer was rejected, because the same lines changed meanwhile. The editor must merge its
    /// text with the buffer's current `text`, and send the merged text with `revision`.
    Conflict {
        text: String,
        revision: u64,
    },
}

/// A draft, which is the unsaved text of an editor that was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedEditorDraftInfo {
    pub id: String,
    pub path: String,
    pub changed_at: String,
}

impl WorkspaceEmbeddedInEditor {
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
        self.call_buffer_open(path, Some(text))
    }

    /// Opens the newest draft of a file as a buffer, and returns the text of the draft.
    pub fn resume_draft(&self, path: &str) -> Result<BufferStateReplyToEditor, Error> {
        self.call_buffer_open(path, None)
    }

    /// Replaces the text of a buffer; `revision` is the buffer revision that the editor changed.
    pub fn change_buffer(&self, path: &str, revision: u64, text: &str) -> Result<BufferChangeResult, Error> {
        let arguments = BufferChangeArgs { path: path.to_owned(), revision, text: Some(text.to_owned()), edits: None };
        let error = match self.call(arguments) {
            Ok(changed) => return Ok(BufferChangeResult::Accepted(buffer_state(&changed.buffer, changed.text))),
            Err(error) => error,
        };
        let is_conflict = matches!(error.kind, ErrorKind::Conflict | ErrorKind::Stale);
        match (is_conflict, error.details.text.clone(), error.details.revision) {
            (true, Some(text), Some(revision)) => Ok(BufferChangeResult::Conflict { text, revision }),
            (_, _, _) => Err(error),
        }
    }

    /// Writes a buffer to disk, merged with changes of the file since the buffer was loaded.
    pub fn save_buffer(&self, path: &str) -> Result<BufferStateReplyToEditor, Error> {
        let saved = self.call(BufferSaveArgs { path: path.to_owned() })?;
        Ok(buffer_state(&saved.buffer, saved.text))
    }

    /// Closes a buffer and discards unsaved changes.
    pub fn close_buffer(&self, path: &str) -> Result<(), Error> {
        self.call(BufferCloseArgs { path: path.to_owned() }).map(drop)
    }

    /// The current state of a buffer, or `None` if no editor has the file open.
    pub fn buffer(&self, path: &str) -> Result<Option<BufferStateReplyToEditor>, Error> {
        let listed = self.call(BufferListArgs { path: Some(path.to_owned()) })?;
        let open = listed.buffers.into_iter().find(|row| row.buffer.state != BufferUnsavedState::Draft);
        Ok(open.map(|row| buffer_state(&row.buffer, row.text)))
    }

    /// The drafts of the person who opened the workspace.
    pub fn drafts(&self) -> Result<Vec<ClosedEditorDraftInfo>, Error> {
        let listed = self.call(BufferListArgs { path: None })?;
        let own = self.person_caller.principal.to_string();
        let drafts = listed.buffers.into_iter().map(|row| row.buffer);
        Ok(drafts
            .filter(|buffer| buffer.state == BufferUnsavedState::Draft && buffer.owner == own)
            .map(|buffer| ClosedEditorDraftInfo {
                id: buffer.buffer,
                path: buffer.path.to_string(),
                changed_at: buffer.changed.to_string(),
            })
            .collect())
    }

    /// Deletes a draft.
    pub fn discard_draft(&self, id: &str) -> Result<(), Error> {
        self.call(BufferDraftDropArgs { draft: id.to_owned() }).map(drop)
    }

    /// A review of the changes that a session of an agent made.
    pub fn review(&self, principal: &str, session: &str) -> EditorReviewOfSessionChanges<'_> {
        EditorReviewOfSessionChanges { editor: self, principal: principal.to_owned(), session: session.to_owned() }
    }

    /// Closes the workspace. Buffers that are still open become drafts when the [`WorkspaceEmbeddedInEditor`] is dropped.
    pub fn close(&self) {
        self.workspace.close();
    }

    fn call_buffer_open(&self, path: &str, text: Option<&str>) -> Result<BufferStateReplyToEditor, Error> {
        let text = text.map(str::to_owned);
        let opened = self.call(BufferOpenArgs { path: path.to_owned(), text, base: None, draft: None })?;
        Ok(buffer_state(&opened.buffer, opened.text))
    }

    fn call<O: OperationWithDefinition>(&self, operation: O) -> Result<O::Result, Error> {
        run(&self.engine, &self.person_caller, operation, &CallOptions::default()).and_then(CallReply::into_outcome)
    }
}

fn run<O: OperationWithDefinition>(
    engine: &Engine,
    caller: &Caller,
    operation: O,
    options: &CallOptions,
) -> Result<CallReply<O::Result>, Error> {
    let control = CallControl::default();
    engine.run(operation, &CallMetadata { caller, idempotency_key: None, options, control: &control })
}

fn buffer_state(buffer: &BufferFields, text: Option<String>) -> BufferStateReplyToEditor {
    BufferStateReplyToEditor {
        revision: buffer.revision,
        version: buffer.version.to_string(),
        unsaved: buffer.state == BufferUnsavedState::Unsaved,
        text,
    }
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
        self.call(BeginTurnArgs {}, &CallOptions::default()).map(drop)
    }

    /// Implements `fs/read_text_file`: reads the whole text, or `limit` lines from `line` on. Lines are counted from 1,
    /// and `line` 0 means line 1. Lines keep their terminators, so that the results of several reads can be joined.
    /// Reading fails if `line` is after the end of the file.
    pub fn read_text_file(&self, path: &str, line: Option<u32>, limit: Option<u32>) -> Result<String, Error> {
        let options = CallOptions { before_after: BeforeAfterContentInclusion::Include, ..CallOptions::default() };
        let arguments = ReadArgs { path: path.to_owned(), lines: None, bytes: None, format: None };
        let reply = self.call(arguments, &options)?;
        let bytes = reply.before_after.into_iter().find_map(|content| content.before).unwrap_or_default();
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
        let arguments = WriteArgs {
            path: path.to_owned(),
            content: content.to_owned(),
            mode: StaleWriteHandling::Merge,
            replace_without_base: true,
            replacement_format: LineEndingAndBomPolicy::MatchReplaced,
            ..WriteArgs::default()
        };
        let written = self.call(arguments, &CallOptions::default()).and_then(CallReply::into_outcome)?;
        Ok(written.merged == Some(true))
    }

    fn call<O: OperationWithDefinition>(
        &self,
        operation: O,
        options: &CallOptions,
    ) -> Result<CallReply<O::Result>, Error> {
        run(&self.engine, &self.caller, operation, options)
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
    editor: &'e WorkspaceEmbeddedInEditor,
    principal: String,
    session: String,
}

/// A file that the reviewed session changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorReviewedFile {
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
    pub authors: Vec<String>,
}

impl EditorReviewOfSessionChanges<'_> {
    /// The files that the reviewed session changed and the person has not accepted yet.
    pub fn files(&self) -> Result<Vec<EditorReviewedFile>, Error> {
        let reviewed = self.editor.call(ReviewArgs {
            path: None,
            session: Some(self.session.clone()),
            author: Some(self.principal.clone()),
            since: SessionOrTurnStart::Session,
        })?;
        Ok(reviewed.files.into_iter().map(EditorReviewedFile::from).collect())
    }

    /// Accepts all changes of a file, or only one hunk of the file.
    pub fn accept(&self, path: &str, hunk: Option<&str>) -> Result<(), Error> {
        let accepted = KeepChangesArgs {
            path: Some(path.to_owned()),
            hunk: hunk.map(str::to_owned),
            session: Some(self.session.clone()),
            author: Some(self.principal.clone()),
        };
        self.editor.call(accepted).map(drop)
    }

    /// Reverts all changes of a file, or only one hunk of the file.
    pub fn reject(&self, path: &str, hunk: Option<&str>) -> Result<(), Error> {
        let rejected = RejectChangesArgs {
            path: Some(path.to_owned()),
            hunk: hunk.map(str::to_owned),
            ..self.everything_since(SessionOrTurnStart::Session)
        };
        self.editor.call(rejected).map(drop)
    }

    /// Reverts all changes of the current turn of the reviewed session.
    pub fn reject_turn(&self) -> Result<(), Error> {
        self.editor.call(self.everything_since(SessionOrTurnStart::Turn)).map(drop)
    }

    fn everything_since(&self, since: SessionOrTurnStart) -> RejectChangesArgs {
        RejectChangesArgs {
            path: None,
            hunk: None,
            session: Some(self.session.clone()),
            author: Some(self.principal.clone()),
            since,
            dry_run: false,
        }
    }
}

impl From<ReviewedFileRow> for EditorReviewedFile {
    fn from(file: ReviewedFileRow) -> Self {
        Self {
            path: file.path.to_string(),
            change: file.change.to_owned(),
            actors: file.actors,
            hunks: file.hunks.into_iter().map(EditorReviewHunk::from).collect(),
            diff: file.diff.unwrap_or_default(),
        }
    }
}

impl From<ReviewHunkRow> for EditorReviewHunk {
    fn from(hunk: ReviewHunkRow) -> Self {
        let range = |span: &ReviewHunkLineSpan| (span.from as u64, span.lines as u64);
        Self {
            before: range(&hunk.before),
            after: range(&hunk.after),
            name: hunk.hunk,
            authors: hunk.by.into_iter().collect(),
        }
    }
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
