//! Open buffers: the texts of files that editors have open, whether saved or unsaved. Every process that uses the
//! workspace sees the same buffers. When the connection that opened a buffer ends, the buffer becomes a draft, which
//! its owner can list, resume or drop. A draft is never read in place of the file.

use serde::{Deserialize, Serialize};
use stead_path::RelPath;

use crate::version::Version;

/// Whether an editor has a buffer open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferEditorConnectionState {
    OpenHere,
    OpenInOtherProcess,
    /// The editor disconnected, and the text of the buffer was kept as a draft.
    Draft,
}

/// The line endings of a text that an editor sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditorSentTextLineEndings {
    SameAsFile,
    /// The editor's text has LF line endings although the file has CRLF line endings.
    LfOnly,
}

/// The metadata of an open buffer or draft, without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorBufferMetadata {
    pub id: String,
    pub path: RelPath,
    pub owner: String,
    pub session: String,
    pub open_state: BufferEditorConnectionState,
    /// The revision number of the buffer, which increases whenever the editor or a call changes its text.
    pub revision: u64,
    /// The version (content hash) that the file would have if the buffer were saved.
    pub version: Version,
    pub size: u64,
    /// The version of the file that the buffer's text is based on; `None` if the file did not exist.
    pub base: Option<Version>,
    pub line_endings: EditorSentTextLineEndings,
    /// The newest buffer revision that the editor knows, because the editor sent or received it.
    pub editor_revision: u64,
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
    pub buffer: EditorBufferMetadata,
    pub text: Vec<u8>,
    /// The buffer's text that the editor last sent or received.
    pub editor_text: Vec<u8>,
}

/// A request to open, resume, change or close a buffer.
#[derive(Debug, Clone)]
pub enum BufferStoreRequest {
    /// The request opens a buffer, and fails if an editor already has the file open.
    Open {
        path: RelPath,
        text: Vec<u8>,
        /// `None` if the file does not exist.
        base: Option<Version>,
        line_endings: EditorSentTextLineEndings,
        /// The ids of superfluous drafts, which are dropped when the new buffer is opened.
        replaced_drafts: Vec<String>,
    },
    /// The request turns a draft into an open buffer, and fails if an editor already has the file open.
    ResumeDraft {
        id: String,
    },
    Change {
        id: String,
        /// The revision that the buffer must have before the change; otherwise the request fails.
        revision: u64,
        text: Vec<u8>,
        /// `None` if the file does not exist.
        base: Option<Version>,
        line_endings: EditorSentTextLineEndings,
    },
    Close {
        id: String,
    },
}

/// A change of a buffer that is committed together with the file changes of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedBufferChange {
    pub id: String,
    /// The revision that the buffer must have before the commit; otherwise the commit fails.
    pub expected_revision: u64,
    pub kind: PlannedBufferChangeKind,
}

/// How a plan changes a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedBufferChangeKind {
    ReplaceText {
        text: Vec<u8>,
        /// The new base version of the buffer, which is the version of the file after the commit.
        base: Version,
    },
    /// The plan marks the text of the buffer as saved.
    MarkSaved {
        base: Version,
    },
    Rename(RelPath),
}
