//! Open buffers: text of an editor that is not saved. Plain values and the trait that stores them, so that every
//! process on a workspace sees the same text.
//!
//! A buffer lives as long as the connection that opened it. If its editor disconnects, it becomes a draft: stored,
//! listed, resumed or dropped by its owner, and never read in place of the file.

use stead_path::RelPath;

use crate::{
    errors::Error,
    version::Version,
    workspace::{CallRecord, CommitReceipt},
};

/// Whether an editor has a buffer open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferOpenState {
    /// The editor is connected to this process.
    OpenHere,
    /// The editor is connected to another process.
    OpenInOtherProcess,
    /// The editor disconnected.
    Draft,
}

/// The line endings of an editor's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferLineEndings {
    /// The line endings of the file.
    SameAsFile,
    /// LF, although the file has CRLF, as in many editors.
    LfOnly,
}

/// A buffer without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// The buffer id.
    pub id: String,
    /// The file.
    pub path: RelPath,
    /// The principal whose editor has it open.
    pub owner: String,
    /// The session that opened it.
    pub session: String,
    /// Whether an editor has it open.
    pub open_state: BufferOpenState,
    /// Increases with every change of the text by anyone.
    pub revision: u64,
    /// The version that the file would have if the text were saved.
    pub version: Version,
    /// Size of the text in bytes.
    pub size: u64,
    /// The version of the file that the text is based on; `None` if there was no file.
    pub base: Option<Version>,
    /// The line endings of the editor's text.
    pub line_endings: BufferLineEndings,
    /// The last revision that the editor sent or received.
    pub editor_revision: u64,
    /// When the text last changed, in unix milliseconds.
    pub changed_ms: i64,
}

impl Buffer {
    /// Whether an editor has it open.
    pub fn is_open(&self) -> bool {
        match self.open_state {
            BufferOpenState::OpenHere | BufferOpenState::OpenInOtherProcess => true,
            BufferOpenState::Draft => false,
        }
    }

    /// Whether the text differs from its base and from the saved version.
    pub fn is_unsaved(&self, saved: Option<Version>) -> bool {
        Some(self.version) != self.base && Some(self.version) != saved
    }
}

/// The texts of a buffer, in the encoding of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferText {
    /// The buffer when the texts were read.
    pub buffer: Buffer,
    /// The current text.
    pub text: Vec<u8>,
    /// The text of the last revision that the editor sent or received.
    pub editor_text: Vec<u8>,
}

/// A change of a buffer.
#[derive(Debug, Clone)]
pub enum BufferStoreRequest {
    /// Opens a buffer. Refused if the file is open in an editor.
    Open {
        /// The file.
        path: RelPath,
        /// The text.
        text: Vec<u8>,
        /// The version of the file it is based on.
        base: Option<Version>,
        /// The line endings of the editor's text.
        line_endings: BufferLineEndings,
        /// Drafts to drop: this text replaces them, or they never contained unsaved text.
        replaced_drafts: Vec<String>,
    },
    /// Resumes a draft. Refused if the file is open in an editor.
    ResumeDraft {
        /// The buffer id.
        id: String,
    },
    /// Replaces the text.
    Change {
        /// The buffer id.
        id: String,
        /// The expected current revision.
        revision: u64,
        /// The text.
        text: Vec<u8>,
        /// The version of the file it is based on.
        base: Option<Version>,
        /// The line endings of the editor's text.
        line_endings: BufferLineEndings,
    },
    /// Closes the buffer and drops its text.
    Close {
        /// The buffer id.
        id: String,
    },
}

/// A change of a buffer, committed together with the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedBufferChange {
    /// The buffer id.
    pub id: String,
    /// The expected revision.
    pub expected_revision: u64,
    /// The change.
    pub kind: PlannedBufferChangeKind,
}

/// The kind of a planned buffer change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedBufferChangeKind {
    /// Replaces the text and its base.
    ReplaceText {
        /// The text.
        text: Vec<u8>,
        /// The version of the file after the plan.
        base: Version,
    },
    /// Marks the text as saved.
    MarkSaved {
        /// The version of the file after the plan.
        base: Version,
    },
    /// Moves the buffer to another path.
    Rename(RelPath),
}

/// Stores open buffers.
pub trait BufferStore {
    /// Every buffer and draft, by path. Cheap while there is none, because every call reads it.
    fn buffers(&self) -> Result<Vec<Buffer>, Error>;

    /// One buffer with its texts.
    fn buffer_text(&self, id: &str) -> Result<Option<BufferText>, Error>;

    /// Opens, changes or closes a buffer and records it. The file is locked.
    fn execute_buffer_request(
        &self,
        request: &BufferStoreRequest,
        record: &CallRecord<'_>,
    ) -> Result<(Buffer, CommitReceipt), Error>;
}
