//! Open buffers: the texts of files that editors have open, whether saved or unsaved. This module has the types and the
//! trait that stores the buffers. Every process that uses the workspace sees the same buffers.
//!
//! If the connection that opened a buffer ends, the buffer becomes a draft. The owner can list, resume or drop a draft.
//! A draft is never read in place of the file.

use stead_path::RelPath;

use crate::{
    errors::Error,
    version::Version,
    workspace::{CommitReceipt, JournalCallRecord},
};

/// Whether an editor has a buffer open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferOpenState {
    /// The buffer is open in an editor that is connected to this process.
    OpenHere,
    /// The buffer is open in an editor that is connected to another process.
    OpenInOtherProcess,
    /// The editor disconnected, and its text was kept.
    Draft,
}

/// The line endings of an editor's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferLineEndings {
    /// The text has the line endings of the file.
    SameAsFile,
    /// The text has LF line endings although the file has CRLF, because many editors convert line endings.
    LfOnly,
}

/// A buffer without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorBufferMetadata {
    /// The buffer id.
    pub id: String,
    /// The path of the file.
    pub path: RelPath,
    /// The principal whose editor opened the buffer.
    pub owner: String,
    /// The session that opened the buffer.
    pub session: String,
    /// Whether an editor has the buffer open.
    pub open_state: BufferOpenState,
    /// The revision number of the text, which increases whenever the editor or a call changes the text.
    pub revision: u64,
    /// The version that the file would have if the text were saved.
    pub version: Version,
    /// Size of the text in bytes.
    pub size: u64,
    /// The version of the file that the text is based on; `None` if the file did not exist.
    pub base: Option<Version>,
    /// The line endings of the editor's text.
    pub line_endings: BufferLineEndings,
    /// The last revision that the editor sent or received.
    pub editor_revision: u64,
    /// When the text last changed, in unix milliseconds.
    pub changed_ms: i64,
}

impl EditorBufferMetadata {
    /// Whether an editor has the buffer open.
    pub fn is_open(&self) -> bool {
        match self.open_state {
            BufferOpenState::OpenHere | BufferOpenState::OpenInOtherProcess => true,
            BufferOpenState::Draft => false,
        }
    }

    /// Whether the text differs both from its base version and from `saved`, the version on disk.
    pub fn is_unsaved(&self, saved: Option<Version>) -> bool {
        Some(self.version) != self.base && Some(self.version) != saved
    }
}

/// A buffer with its texts, in the encoding of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferWithText {
    /// The buffer at the moment when the texts were read.
    pub buffer: EditorBufferMetadata,
    /// The current text.
    pub text: Vec<u8>,
    /// The text of the last revision that the editor sent or received.
    pub editor_text: Vec<u8>,
}

/// A request to open, change or close a buffer.
#[derive(Debug, Clone)]
pub enum BufferStoreRequest {
    /// Opens a buffer. Fails if an editor has the file open.
    Open {
        /// The path of the file.
        path: RelPath,
        /// The new text.
        text: Vec<u8>,
        /// The version of the file that the text is based on; `None` if the file does not exist.
        base: Option<Version>,
        /// The line endings of the editor's text.
        line_endings: BufferLineEndings,
        /// The ids of drafts to drop. The new text replaces these drafts, or they contain no unsaved text.
        replaced_drafts: Vec<String>,
    },
    /// Opens a draft again. Fails if an editor has the file open.
    ResumeDraft {
        /// The buffer id.
        id: String,
    },
    /// Replaces the text of a buffer.
    Change {
        /// The buffer id.
        id: String,
        /// The revision that the buffer must have; otherwise the request fails.
        revision: u64,
        /// The new text.
        text: Vec<u8>,
        /// The version of the file that the text is based on; `None` if the file does not exist.
        base: Option<Version>,
        /// The line endings of the editor's text.
        line_endings: BufferLineEndings,
    },
    /// Closes a buffer or a draft and deletes its text.
    Close {
        /// The buffer id.
        id: String,
    },
}

/// A change of a buffer that is committed together with the files of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedBufferChange {
    /// The buffer id.
    pub id: String,
    /// The revision that the buffer must have; otherwise the commit fails.
    pub expected_revision: u64,
    /// How the buffer changes.
    pub kind: PlannedBufferChangeKind,
}

/// How a plan changes a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedBufferChangeKind {
    /// Replaces the text and its base version.
    ReplaceText {
        /// The new text.
        text: Vec<u8>,
        /// The version of the file after the commit, which becomes the base version.
        base: Version,
    },
    /// Marks the text as saved.
    MarkSaved {
        /// The version of the file after the commit, which becomes the base version.
        base: Version,
    },
    /// Moves the buffer to another path.
    Rename(RelPath),
}

/// Stores open buffers and drafts.
pub trait BufferStore {
    /// Every buffer and draft, sorted by path. If there are no buffers, this method must be fast, because every call
    /// uses it.
    fn buffers(&self) -> Result<Vec<EditorBufferMetadata>, Error>;

    /// One buffer with its texts.
    fn buffer_text(&self, id: &str) -> Result<Option<BufferWithText>, Error>;

    /// Opens, changes or closes a buffer and records the call. The caller must have locked the file.
    fn execute_buffer_request(
        &self,
        request: &BufferStoreRequest,
        record: &JournalCallRecord<'_>,
    ) -> Result<(EditorBufferMetadata, CommitReceipt), Error>;
}
