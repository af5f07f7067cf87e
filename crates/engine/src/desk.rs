//! What a server keeps about its conversations besides files: sessions, alerts that agents send to people, and how full
//! it is. Plain values and the verbs that keep them; every change is recorded like any other call.

use std::{fmt, str::FromStr};

use journal::{ChangeKind, State};
use path::RelPath;

use crate::{
    caller::Principal,
    failure::Failure,
    quota::{Holding, Look, Stock},
    workspace::{Committed, Record},
};

/// A conversation that was begun in so many words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub principal: String,
    /// The face it was begun through.
    pub face: String,
    /// When it was begun, in unix milliseconds.
    pub created_ms: i64,
    /// When it was ended, if it was.
    pub ended_ms: Option<i64>,
    /// The entry that began it.
    pub first: u64,
}

/// How urgent an alert is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Info,
    /// Somebody should look.
    Warning,
    /// Somebody must look now.
    Critical,
}

impl Severity {
    /// Every severity, from the least urgent.
    pub const ALL: &[Severity] = &[Severity::Info, Severity::Warning, Severity::Critical];

    /// The stable word.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Critical => "critical",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A word that is no severity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a severity is info, warning or critical")]
pub struct UnknownSeverity;

impl FromStr for Severity {
    type Err = UnknownSeverity;

    fn from_str(text: &str) -> Result<Self, UnknownSeverity> {
        Severity::ALL.iter().find(|severity| severity.word() == text).copied().ok_or(UnknownSeverity)
    }
}

/// Something an agent wants a person to see, and what the person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// Its id.
    pub id: String,
    /// Who sent it.
    pub from: String,
    /// In which session.
    pub session: String,
    /// How urgent it is.
    pub severity: Severity,
    /// What it says.
    pub message: String,
    /// When it was sent, in unix milliseconds.
    pub time_ms: i64,
    /// What a person answered.
    pub answer: Option<Response>,
}

/// What a person answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Who.
    pub by: String,
    /// What.
    pub text: String,
    /// When, in unix milliseconds.
    pub time_ms: i64,
}

/// How a file stood when a person last said that what a session made of it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reviewed {
    /// The file.
    pub path: RelPath,
    /// What the next review begins with; nothing when there was no file.
    pub text: Option<Vec<u8>>,
}

/// What to keep.
#[derive(Debug, Clone)]
pub enum DeskAsk {
    /// Begins a session of the caller.
    Begin,
    /// Ends a session of the caller.
    End {
        /// Which.
        session: String,
    },
    /// Sends an alert.
    Alert {
        /// How urgent it is.
        severity: Severity,
        /// What it says.
        message: String,
    },
    /// Says that what a session made of files stands.
    Reviewed {
        /// Whose session.
        principal: String,
        /// Which session.
        session: String,
        /// The files.
        kept: Vec<Reviewed>,
    },
    /// Marks where a session begins something new.
    Turn,
    /// Answers an alert. Who may is judged before.
    Answer {
        /// Which.
        alert: String,
        /// What is said.
        text: String,
    },
}

/// What was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Desked {
    /// A session as it is now.
    Session(Session),
    /// An alert as it is now.
    Alert(Alert),
    /// Nothing but the entry.
    Noted,
}

/// Whose calls are counted, from where on.
#[derive(Debug, Clone)]
pub struct TallyOf<'a> {
    /// Whose.
    pub principal: &'a Principal,
    /// In which session.
    pub session: &'a str,
    /// Entries from this number on.
    pub from_entry: u64,
}

/// What the journal says a session did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls, refused ones included.
    pub calls: u64,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// Bytes that were written.
    pub bytes_written: u64,
    /// The first of these entries: its number and time.
    pub first: Option<(u64, i64)>,
}

impl Tally {
    /// Counts one entry.
    pub fn add(&mut self, entry: &journal::Entry) {
        self.calls += 1;
        if entry.changes.is_empty() {
            self.bytes_read = self.bytes_read.saturating_add(entry.bytes);
        }
        self.bytes_written = entry.changes.iter().map(written).fold(self.bytes_written, u64::saturating_add);
        self.first = self.first.or(Some((entry.number, entry.time_ms)));
    }
}

/// Bytes that a change put into a file.
fn written(change: &journal::Change) -> u64 {
    match (change.kind, &change.after) {
        (ChangeKind::Create | ChangeKind::Modify | ChangeKind::Copy, State::File { size, .. }) => *size,
        (
            ChangeKind::Create
            | ChangeKind::Modify
            | ChangeKind::Copy
            | ChangeKind::Remove
            | ChangeKind::Rename
            | ChangeKind::MakeDir
            | ChangeKind::MakeLink
            | ChangeKind::SetMode
            | ChangeKind::Rescan,
            _,
        ) => 0,
    }
}

/// How full a workspace is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of the file system the workspace is on.
    pub total_bytes: u64,
    /// Bytes of it that may still be written.
    pub free_bytes: u64,
    /// Things in the trash.
    pub trash_items: u64,
    /// Their bytes.
    pub trash_bytes: u64,
    /// Bytes of older versions that are kept.
    pub kept_bytes: u64,
    /// Most of them that are kept.
    pub kept_bytes_max: u64,
}

/// What a workspace keeps about conversations.
pub trait Desk {
    /// Keeps something and records it.
    fn keep(&self, ask: &DeskAsk, record: &Record<'_>) -> Result<(Desked, Committed), Failure>;

    /// A session that was begun.
    fn session(&self, id: &str) -> Result<Option<Session>, Failure>;

    /// What the journal says a session did.
    fn tally(&self, of: &TallyOf<'_>) -> Result<Tally, Failure>;

    /// What was said to stand of a session's work.
    fn reviewed(&self, principal: &str, session: &str) -> Result<Vec<Reviewed>, Failure>;

    /// One alert.
    fn alert(&self, id: &str) -> Result<Option<Alert>, Failure>;

    /// Alerts, newest first, at most as many as asked for.
    fn alerts(&self, from: Option<&Principal>, limit: usize) -> Result<Vec<Alert>, Failure>;

    /// How full the workspace is.
    fn usage(&self) -> Result<Usage, Failure>;

    /// What is held, as far as it bears on a principal; nothing when nobody has counted. The caller holds no lock,
    /// unless it asks for what is known.
    fn holding(&self, principal: &Principal, look: Look) -> Result<Option<Holding>, Failure>;

    /// What the workspace held before an entry, when that is still known.
    fn held_before(&self, number: u64) -> Result<Option<Stock>, Failure>;

    /// Bytes kept of what a principal wrote and overwrote.
    fn history_bytes(&self, principal: &Principal) -> Result<u64, Failure>;
}
