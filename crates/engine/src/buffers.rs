//! Open buffers: text that an editor holds and has not saved. Plain values and the verbs that keep them, so that every
//! process on a workspace sees the same text.
//!
//! A buffer lives as long as the connection that opened it. What is left of one whose editor went away is a draft: kept,
//! listed, taken up again or dropped by its owner, and never read in the place of the file.

use path::RelPath;

use crate::{
    failure::Failure,
    version::Version,
    workspace::{Committed, Record},
};

/// Whether somebody still types into a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Its editor is connected to this process.
    Here,
    /// Its editor is connected to another process.
    Elsewhere,
    /// Its editor went away.
    Draft,
}

/// How the lines of an editor's text end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endings {
    /// As they do in the file.
    OfFile,
    /// With a line feed, where the file has a carriage return as well: many editors hold text like this.
    LineFeed,
}

/// A buffer without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// Its id.
    pub id: String,
    /// The file it is of.
    pub path: RelPath,
    /// Who types.
    pub owner: String,
    /// The session it was opened in.
    pub session: String,
    /// Whether somebody still types into it.
    pub standing: Standing,
    /// Rises with every change of the text, whoever makes it.
    pub revision: u64,
    /// The version that the file would have if the text were saved.
    pub version: Version,
    /// Bytes of the text.
    pub size: u64,
    /// The version of the file that the text was made from; nothing when there was no file.
    pub base: Option<Version>,
    /// How the editor's lines end.
    pub endings: Endings,
    /// The last revision that the editor itself gave or was told.
    pub held_revision: u64,
    /// When the text last changed, in unix milliseconds.
    pub changed_ms: i64,
}

impl Buffer {
    /// Whether an editor has it open.
    pub fn is_live(&self) -> bool {
        match self.standing {
            Standing::Here | Standing::Elsewhere => true,
            Standing::Draft => false,
        }
    }

    /// Whether it holds something that the file, which has this version now, does not.
    pub fn is_unsaved(&self, saved: Option<Version>) -> bool {
        Some(self.version) != self.base && Some(self.version) != saved
    }
}

/// The texts of a buffer, in the encoding of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferText {
    /// The buffer, as it was when the texts were taken.
    pub buffer: Buffer,
    /// The text now.
    pub text: Vec<u8>,
    /// The text of the last revision that the editor itself gave or was told.
    pub held: Vec<u8>,
}

/// What to do with a buffer.
#[derive(Debug, Clone)]
pub enum BufferAsk {
    /// Open one. Refused when the file is open in an editor.
    Open {
        /// Of which file.
        path: RelPath,
        /// The text.
        text: Vec<u8>,
        /// The version of the file it was made from.
        base: Option<Version>,
        /// How the editor's lines end.
        endings: Endings,
        /// Drafts that nobody needs any more: this text is theirs, or they never held anything that a file did not.
        instead_of: Vec<String>,
    },
    /// Take up a draft. Refused when the file is open in an editor.
    TakeUp {
        /// Which.
        id: String,
    },
    /// Give it another text.
    Change {
        /// Which.
        id: String,
        /// The revision it must have now.
        revision: u64,
        /// The text.
        text: Vec<u8>,
        /// The version of the file it is made from.
        base: Option<Version>,
        /// How the editor's lines end.
        endings: Endings,
    },
    /// Let go of it and its text.
    Close {
        /// Which.
        id: String,
    },
}

/// What a plan does to a buffer, in the same moment as to the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferStep {
    /// Which.
    pub id: String,
    /// The revision it must have.
    pub revision: u64,
    /// What becomes of it.
    pub becomes: Becomes,
}

/// What becomes of a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Becomes {
    /// It gets this text, made from this version of the file.
    Text {
        /// The text.
        text: Vec<u8>,
        /// The version of the file that the plan leaves.
        base: Version,
    },
    /// It is what it was, and the file has been made the same.
    Saved {
        /// The version of the file that the plan leaves.
        base: Version,
    },
    /// Its file has another name.
    Moved(RelPath),
}

/// What a workspace keeps about open buffers.
pub trait Buffers {
    /// Every buffer and draft, by path. Cheap while there is none: it is asked with every call.
    fn buffers(&self) -> Result<Vec<Buffer>, Failure>;

    /// One of them with its texts.
    fn buffer_text(&self, id: &str) -> Result<Option<BufferText>, Failure>;

    /// Opens, changes or closes one, recording it. The file is locked.
    fn change_buffer(&self, ask: &BufferAsk, record: &Record<'_>) -> Result<(Buffer, Committed), Failure>;
}
