//! The types of sessions, alerts that agents send to people, review baselines and usage, and the trait that stores
//! them. A review baseline is the text of a file that a person last accepted. Every write to the session store is
//! recorded in the journal.

use std::{fmt, str::FromStr};

use stead_journal::{ChangeKind, PathState};
use stead_path::RelPath;

use crate::{
    caller::Principal,
    errors::Error,
    quota::{PrincipalUsage, RequiredUsageFreshness, WorkspaceUsage},
    workspace::{CommitReceipt, JournalCallRecord},
};

/// An explicitly created session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// The session id.
    pub id: String,
    /// The principal who owns the session.
    pub principal: String,
    /// The protocol through which the session was created.
    pub protocol: String,
    /// When the session was created, in unix milliseconds.
    pub created_ms: i64,
    /// When the session ended, in unix milliseconds; `None` while the session is open.
    pub ended_ms: Option<i64>,
    /// The journal entry that created the session.
    pub first_entry: u64,
}

/// How urgent an alert is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AlertSeverity {
    /// The alert is only information; nobody needs to act.
    Info,
    /// A person should look at the alert.
    Warning,
    /// A person must look at the alert now.
    Critical,
}

impl AlertSeverity {
    /// Every alert severity, from the least to the most urgent.
    pub const ALL: &[AlertSeverity] = &[AlertSeverity::Info, AlertSeverity::Warning, AlertSeverity::Critical];

    /// The name of the severity in arguments and results, such as `warning`.
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

/// The error for a text that is not the name of an alert severity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown severity; use info, warning or critical")]
pub struct UnknownAlertSeverity;

impl FromStr for AlertSeverity {
    type Err = UnknownAlertSeverity;

    fn from_str(text: &str) -> Result<Self, UnknownAlertSeverity> {
        AlertSeverity::ALL.iter().find(|severity| severity.as_str() == text).copied().ok_or(UnknownAlertSeverity)
    }
}

/// A message from an agent to a person, and the person's response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSentAlertAndResponse {
    /// The alert id.
    pub id: String,
    /// The principal who sent the alert.
    pub sender: String,
    /// The session in which the alert was sent.
    pub session: String,
    /// How urgent the alert is.
    pub severity: AlertSeverity,
    /// The text of the alert.
    pub message: String,
    /// When the alert was sent, in unix milliseconds.
    pub time_ms: i64,
    /// A person's response to the alert, if a person has responded.
    pub response: Option<HumanResponseToAlert>,
}

/// A person's response to an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HumanResponseToAlert {
    /// The person who responded.
    pub responder: String,
    /// The text of the response.
    pub text: String,
    /// When the response was sent, in unix milliseconds.
    pub time_ms: i64,
}

/// The text of a file when a person last accepted a session's changes to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewAcceptedFileText {
    /// The path of the reviewed file.
    pub path: RelPath,
    /// The accepted text, with which the next review compares the file; `None` if the accepted state is that no file
    /// exists.
    pub text: Option<Vec<u8>>,
}

/// A request that writes to the session store.
#[derive(Debug, Clone)]
pub enum SessionStoreWriteRequest {
    /// Creates a session for the caller.
    Begin,
    /// Ends a session of the caller.
    End {
        /// The session id.
        session_id: String,
    },
    /// Sends an alert.
    SendAlert {
        /// How urgent the alert is.
        severity: AlertSeverity,
        /// The text of the alert.
        message: String,
    },
    /// Marks a session's changes to files as accepted by a person.
    AcceptChanges {
        /// The principal who owns the session.
        principal: String,
        /// The session id.
        session: String,
        /// The text of each file that the person accepts.
        baselines: Vec<ReviewAcceptedFileText>,
    },
    /// Marks the start of a turn in the caller's session.
    BeginTurn,
    /// Responds to an alert; the session store does not check that the caller may respond.
    AnswerAlert {
        /// The alert id.
        alert_id: String,
        /// The text of the response.
        text: String,
    },
}

/// The result of a request to the session store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionStoreReply {
    /// The session that the request created or ended.
    Session(SessionRecord),
    /// The alert that the request sent or answered.
    Alert(AgentSentAlertAndResponse),
    /// The request was recorded in the journal and returns no value.
    RecordedOnly,
}

/// Selects the journal entries from which [`SessionTotals`] are computed.
#[derive(Debug, Clone)]
pub struct SessionTotalsQuery<'a> {
    /// Only calls of this principal are counted.
    pub principal: &'a Principal,
    /// Only calls of this session are counted.
    pub session: &'a str,
    /// Only journal entries from this number on are counted.
    pub from_entry: u64,
}

/// The number of calls and bytes of a session, according to the journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionTotals {
    /// Number of calls of the session, including failed calls.
    pub calls: u64,
    /// Number of bytes that the session read.
    pub bytes_read: u64,
    /// Number of bytes that the session wrote to files.
    pub bytes_written: u64,
    /// The number of the session's first journal entry, and the time of that entry in unix milliseconds.
    pub first_call: Option<(u64, i64)>,
}

impl SessionTotals {
    /// Adds the call of one journal entry to the totals of the session.
    pub fn add_entry(&mut self, entry: &stead_journal::JournalEntry) {
        self.calls += 1;
        if entry.changes.is_empty() {
            self.bytes_read = self.bytes_read.saturating_add(entry.bytes);
        }
        self.bytes_written = entry.changes.iter().map(bytes_written).fold(self.bytes_written, u64::saturating_add);
        self.first_call = self.first_call.or(Some((entry.number, entry.time_ms)));
    }
}

fn bytes_written(change: &stead_journal::RecordedChange) -> u64 {
    let PathState::File { size, .. } = &change.after else { return 0 };
    match change.kind {
        ChangeKind::Create | ChangeKind::Modify | ChangeKind::Copy => *size,
        ChangeKind::Remove
        | ChangeKind::Rename
        | ChangeKind::MakeDir
        | ChangeKind::MakeLink
        | ChangeKind::SetMode
        | ChangeKind::Rescan => 0,
    }
}

/// The storage that a workspace uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskTrashAndHistoryUsage {
    /// Size in bytes of the file system that contains the workspace.
    pub total_bytes: u64,
    /// Free bytes of the file system that contains the workspace.
    pub free_bytes: u64,
    /// Number of items in the trash.
    pub trash_items: u64,
    /// Number of bytes in the trash.
    pub trash_bytes: u64,
    /// Number of bytes that stored file versions use.
    pub history_bytes: u64,
    /// Largest number of bytes that stored file versions may use.
    pub history_bytes_max: u64,
}

/// Stores sessions, alerts, review baselines and usage.
pub trait SessionStore {
    /// Executes a request to the session store and records the call in the journal.
    fn execute_session_request(
        &self,
        request: &SessionStoreWriteRequest,
        record: &JournalCallRecord<'_>,
    ) -> Result<(SessionStoreReply, CommitReceipt), Error>;

    /// The session with this id.
    fn session(&self, id: &str) -> Result<Option<SessionRecord>, Error>;

    /// The number of calls and bytes of a session.
    fn session_totals(&self, query: &SessionTotalsQuery<'_>) -> Result<SessionTotals, Error>;

    /// The text of each file that a person accepted in a review of the session.
    fn review_baselines(&self, principal: &str, session: &str) -> Result<Vec<ReviewAcceptedFileText>, Error>;

    /// The alert with this id.
    fn alert(&self, id: &str) -> Result<Option<AgentSentAlertAndResponse>, Error>;

    /// At most `limit` alerts, newest first; if `from` is given, only alerts that this principal sent.
    fn alerts(&self, from: Option<&Principal>, limit: usize) -> Result<Vec<AgentSentAlertAndResponse>, Error>;

    /// The storage that the workspace uses.
    fn storage_usage(&self) -> Result<DiskTrashAndHistoryUsage, Error>;

    /// The usage that is compared with a principal's quota, or `None` if usage was never counted. A caller that holds
    /// path locks may request only the cached usage.
    fn principal_usage(
        &self,
        principal: &Principal,
        freshness: RequiredUsageFreshness,
    ) -> Result<Option<PrincipalUsage>, Error>;

    /// The storage usage of the workspace before a journal entry, if that usage is still known.
    fn usage_before_entry(&self, number: u64) -> Result<Option<WorkspaceUsage>, Error>;

    /// Number of bytes of the stored file versions that a principal wrote or overwrote.
    fn history_bytes(&self, principal: &Principal) -> Result<u64, Error>;
}
