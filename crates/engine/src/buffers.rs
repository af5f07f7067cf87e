//! Open buffers: the texts of files that editors have open, whether saved or unsaved. Every process that uses the
//! workspace sees the same buffers. When the connection that opened a buffer ends, the buffer becomes a draft, which
//! its owner can list, resume or drop. A draft is never read in place of the file.

use stead_path::RelPath;

use crate::{
    errors::Error,
    version::Version,
    workspace::{CommitReceipt, JournalCallRecord},
};

/// Whether an editor has a buffer open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferEditorConnectionState {
    /// The buffer is open in an editor that is connected to this process.
    OpenHere,
    /// The buffer is open in an editor that is connected to another process.
    OpenInOtherProcess,
    /// The editor disconnected, and the text of the buffer was kept as a draft.
    Draft,
}

/// The line endings of a text that an editor sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditorSentTextLineEndings {
    /// The editor's text has the same line endings as the file.
    SameAsFile,
    /// The editor's text has LF line endings although the file has CRLF line endings.
    LfOnly,
}

/// The metadata of an open buffer or draft, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorBufferMetadata {
    /// The id of the buffer.
    pub id: String,
    /// The path of the file that the editor has open.
    pub path: RelPath,
    /// The principal whose editor opened the buffer.
    pub owner: String,
    /// The session that opened the buffer.
    pub session: String,
    /// Whether an editor has the buffer open.
    pub open_state: BufferEditorConnectionState,
    /// The revision number of the buffer, which increases whenever the editor or a call changes its text.
    pub revision: u64,
    /// The version (content hash) that the file would have if the buffer were saved.
    pub version: Version,
    /// The size of the buffer's text in bytes.
    pub size: u64,
    /// The version of the file that the buffer's text is based on; `None` if the file did not exist.
    pub base: Option<Version>,
    /// The line endings of the text that the editor sends.
    pub line_endings: EditorSentTextLineEndings,
    /// The newest buffer revision that the editor knows, because the editor sent or received it.
    pub editor_revision: u64,
    /// The time when the text of the buffer last changed, in Unix milliseconds.
    pub changed_ms: i64,
}

impl EditorBufferMetadata {
    /// Whether an editor has the buffer open.
    pub fn is_open(&self) -> bool {
        match self.open_state {
            BufferEditorConnectionState::OpenHere | BufferEditorConnectionState::OpenInOtherProcess => true,
            BufferEditorConnectionState::Draft => false,
        }
    }

    /// Whether the buffer's text differs from its base version and from the saved version on disk.
    pub fn is_unsaved(&self, saved: Option<Version>) -> bool {
        Some(self.version) != self.base && Some(self.version) != saved
    }
}

/// A buffer with its current text and with the text that the editor last sent or received. The texts of a buffer have
/// the encoding of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferWithText {
    /// The metadata of the buffer, read together with the buffer's texts.
    pub buffer: EditorBufferMetadata,
    /// The current text of the buffer.
    pub text: Vec<u8>,
    /// The buffer's text that the editor last sent or received.
    pub editor_text: Vec<u8>,
}

/// A request to open, resume, change or close a buffer.
#[derive(Debug, Clone)]
pub enum BufferStoreRequest {
    /// The request opens a buffer, and fails if an editor already has the file open.
    Open {
        /// The path of the file that the editor opens.
        path: RelPath,
        /// The text of the new buffer.
        text: Vec<u8>,
        /// The version of the file that the buffer's text is based on; `None` if the file does not exist.
        base: Option<Version>,
        /// The line endings of the text that the editor sends.
        line_endings: EditorSentTextLineEndings,
        /// The ids of superfluous drafts, which are dropped when the new buffer is opened.
        replaced_drafts: Vec<String>,
    },
    /// The request turns a draft into an open buffer, and fails if an editor already has the file open.
    ResumeDraft {
        /// The buffer id of the resumed draft.
        id: String,
    },
    /// The request replaces the text of a buffer.
    Change {
        /// The id of the changed buffer.
        id: String,
        /// The revision that the buffer must have before the change; otherwise the request fails.
        revision: u64,
        /// The new text of the buffer.
        text: Vec<u8>,
        /// The version of the file that the new text is based on; `None` if the file does not exist.
        base: Option<Version>,
        /// The line endings of the text that the editor sends.
        line_endings: EditorSentTextLineEndings,
    },
    /// The request closes a buffer or a draft and deletes its text.
    Close {
        /// The id of the buffer or draft to close.
        id: String,
    },
}

/// A change of a buffer that is committed together with the file changes of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedBufferChange {
    /// The id of the changed buffer.
    pub id: String,
    /// The revision that the buffer must have before the commit; otherwise the commit fails.
    pub expected_revision: u64,
    /// How the plan changes the buffer.
    pub kind: PlannedBufferChangeKind,
}

/// How a plan changes a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedBufferChangeKind {
    /// The plan replaces the text of the buffer and the base version of the text.
    ReplaceText {
        /// The new text of the buffer.
        text: Vec<u8>,
        /// The new base version of the buffer, which is the version of the file after the commit.
        base: Version,
    },
    /// The plan marks the text of the buffer as saved.
    MarkSaved {
        /// The new base version of the buffer, which is the version of the file after the commit.
        base: Version,
    },
    /// The plan moves the buffer to this path.
    Rename(RelPath),
}

/// The store of open buffers and drafts.
pub trait BufferStore {
    /// Every open buffer and draft of the workspace, sorted by path. The implementation must be fast for a workspace
    /// without buffers, because every call lists the buffers.
    fn buffers(&self) -> Result<Vec<EditorBufferMetadata>, Error>;

    /// Returns the buffer with this id and its texts; `None` if no buffer has this id.
    fn buffer_text(&self, id: &str) -> Result<Option<BufferWithText>, Error>;

    /// Opens, resumes, changes or closes a buffer, and records the call in the journal. The calling code must hold the
    /// lock on the file of the buffer.
    fn execute_buffer_request(
        &self,
        request: &BufferStoreRequest,
        record: &JournalCallRecord<'_>,
    ) -> Result<(EditorBufferMetadata, CommitReceipt), Error>;
}
