//! Sessions, alerts of agents to people, review baselines and usage. Plain values and the trait that stores them;
//! every change is recorded like any other call.

use std::{fmt, str::FromStr};

use stead_journal::{ChangeKind, PathState};
use stead_path::RelPath;

use crate::{
    caller::Principal,
    errors::Error,
    quota::{PrincipalUsage, UsageFreshness, WorkspaceUsage},
    workspace::{CallRecord, CommitReceipt},
};

/// An explicitly created session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The session id.
    pub id: String,
    /// The principal it belongs to.
    pub principal: String,
    /// The protocol that created it.
    pub protocol: String,
    /// When it was created, in unix milliseconds.
    pub created_ms: i64,
    /// When it ended, in unix milliseconds.
    pub ended_ms: Option<i64>,
    /// The entry that created it.
    pub first_entry: u64,
}

/// The urgency of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlertSeverity {
    /// Good to know.
    Info,
    /// Someone should look.
    Warning,
    /// Someone must look now.
    Critical,
}

impl AlertSeverity {
    /// Every severity, from the least urgent.
    pub const ALL: &[AlertSeverity] = &[AlertSeverity::Info, AlertSeverity::Warning, AlertSeverity::Critical];

    /// The severity's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            AlertSeverity::Info => "info",
            AlertSeverity::Warning => "warning",
            AlertSeverity::Critical => "critical",
        }
    }
}

impl fmt::Display for AlertSeverity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is not a severity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a severity is info, warning or critical")]
pub struct UnknownAlertSeverity;

impl FromStr for AlertSeverity {
    type Err = UnknownAlertSeverity;

    fn from_str(text: &str) -> Result<Self, UnknownAlertSeverity> {
        AlertSeverity::ALL.iter().find(|severity| severity.as_str() == text).copied().ok_or(UnknownAlertSeverity)
    }
}

/// A message of an agent to a person, and the response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// The alert id.
    pub id: String,
    /// The principal who sent it.
    pub sender: String,
    /// The session it was sent in.
    pub session: String,
    /// The urgency.
    pub severity: AlertSeverity,
    /// The text.
    pub message: String,
    /// When it was sent, in unix milliseconds.
    pub time_ms: i64,
    /// The response, if any.
    pub response: Option<AlertResponse>,
}

/// A person's response to an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlertResponse {
    /// The person who responded.
    pub responder: String,
    /// The text.
    pub text: String,
    /// When it was sent, in unix milliseconds.
    pub time_ms: i64,
}

/// The text of a file when a person last accepted a session's changes to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewBaseline {
    /// The file.
    pub path: RelPath,
    /// The base text of the next review; `None` if the file did not exist.
    pub text: Option<Vec<u8>>,
}

/// A change of the session store.
#[derive(Debug, Clone)]
pub enum SessionStoreRequest {
    /// Creates a session of the caller.
    Begin,
    /// Ends a session of the caller.
    End {
        /// The session id.
        session_id: String,
    },
    /// Sends an alert.
    SendAlert {
        /// The urgency.
        severity: AlertSeverity,
        /// The text.
        message: String,
    },
    /// Accepts a session's changes to files.
    AcceptChanges {
        /// The principal of the session.
        principal: String,
        /// The session id.
        session: String,
        /// The accepted texts.
        baselines: Vec<ReviewBaseline>,
    },
    /// Marks the start of a turn in a session.
    BeginTurn,
    /// Responds to an alert. Permission is checked before.
    AnswerAlert {
        /// The alert id.
        alert_id: String,
        /// The response.
        text: String,
    },
}

/// The result of a session request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionStoreReply {
    /// The session after the change.
    Session(Session),
    /// The alert after the change.
    Alert(Alert),
    /// Only the journal entry.
    RecordedOnly,
}

/// Selects the calls to count.
#[derive(Debug, Clone)]
pub struct SessionTotalsQuery<'a> {
    /// The principal of the calls.
    pub principal: &'a Principal,
    /// The session of the calls.
    pub session: &'a str,
    /// The first entry to count.
    pub from_entry: u64,
}

/// The activity of a session, according to the journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionTotals {
    /// Calls, including refused ones.
    pub calls: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Number and time of the first entry.
    pub first_call: Option<(u64, i64)>,
}

impl SessionTotals {
    /// Adds one entry.
    pub fn add_entry(&mut self, entry: &stead_journal::JournalEntry) {
        self.calls += 1;
        if entry.changes.is_empty() {
            self.bytes_read = self.bytes_read.saturating_add(entry.bytes);
        }
        self.bytes_written = entry.changes.iter().map(bytes_written).fold(self.bytes_written, u64::saturating_add);
        self.first_call = self.first_call.or(Some((entry.number, entry.time_ms)));
    }
}

/// Bytes that a change wrote to a file.
fn bytes_written(change: &stead_journal::RecordedChange) -> u64 {
    match (change.kind, &change.after) {
        (ChangeKind::Create | ChangeKind::Modify | ChangeKind::Copy, PathState::File { size, .. }) => *size,
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

/// The storage usage of a workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StorageUsage {
    /// Size of the file system.
    pub total_bytes: u64,
    /// Free bytes of the file system.
    pub free_bytes: u64,
    /// Items in the trash.
    pub trash_items: u64,
    /// Bytes in the trash.
    pub trash_bytes: u64,
    /// Bytes of stored versions.
    pub history_bytes: u64,
    /// Limit on bytes of stored versions.
    pub history_bytes_max: u64,
}

/// Stores sessions, alerts, review baselines and usage.
pub trait SessionStore {
    /// Executes a request and records it.
    fn execute_session_request(
        &self,
        request: &SessionStoreRequest,
        record: &CallRecord<'_>,
    ) -> Result<(SessionStoreReply, CommitReceipt), Error>;

    /// The session with this id.
    fn session(&self, id: &str) -> Result<Option<Session>, Error>;

    /// The activity of a session.
    fn session_totals(&self, query: &SessionTotalsQuery<'_>) -> Result<SessionTotals, Error>;

    /// The accepted texts of a session.
    fn review_baselines(&self, principal: &str, session: &str) -> Result<Vec<ReviewBaseline>, Error>;

    /// The alert with this id.
    fn alert(&self, id: &str) -> Result<Option<Alert>, Error>;

    /// Alerts, newest first, at most `limit`.
    fn alerts(&self, from: Option<&Principal>, limit: usize) -> Result<Vec<Alert>, Error>;

    /// The storage usage of the workspace.
    fn storage_usage(&self) -> Result<StorageUsage, Error>;

    /// The usage that limits a principal; `None` if it was never counted. The caller holds no lock, unless it asks for
    /// the cached usage.
    fn principal_usage(
        &self,
        principal: &Principal,
        freshness: UsageFreshness,
    ) -> Result<Option<PrincipalUsage>, Error>;

    /// The workspace usage before an entry, if still known.
    fn usage_before_entry(&self, number: u64) -> Result<Option<WorkspaceUsage>, Error>;

    /// Bytes of stored versions written or overwritten by a principal.
    fn history_bytes(&self, principal: &Principal) -> Result<u64, Error>;
}
