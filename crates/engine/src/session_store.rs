//! The types of sessions, alerts, review baselines and usage. A review baseline is the text of a file that a person last
//! accepted.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use stead_journal::{ChangeKind, PathState};
use stead_path::RelPath;

use crate::caller::Principal;

/// A session that a caller created explicitly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    pub id: String,
    pub principal: String,
    pub protocol: String,
    pub created_ms: i64,
    /// `None` while the session is open.
    pub ended_ms: Option<i64>,
    /// The number of the journal entry that created the session.
    pub first_entry: u64,
}

/// The urgency of an alert that an agent sends to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

    /// Returns the name of an alert severity in arguments and results, such as `warning`.
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

/// An alert from an agent to a person, with the person's response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSentAlertAndResponse {
    pub id: String,
    pub sender: String,
    pub session: String,
    pub severity: AlertSeverity,
    pub message: String,
    pub time_ms: i64,
    /// `None` if nobody has responded.
    pub response: Option<HumanResponseToAlert>,
}

/// A person's response to an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HumanResponseToAlert {
    pub responder: String,
    pub text: String,
    pub time_ms: i64,
}

/// The text of a file when a person last accepted a session's changes to the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewAcceptedFileText {
    pub path: RelPath,
    /// The accepted text of the reviewed file; `None` if the person accepted that no file exists.
    pub text: Option<Vec<u8>>,
}

/// A request that writes to the session store.
#[derive(Debug, Clone)]
pub enum SessionStoreWriteRequest {
    Begin,
    End {
        session_id: String,
    },
    SendAlert {
        severity: AlertSeverity,
        message: String,
    },
    /// The request marks a session's changes to files as accepted by a person.
    AcceptChanges {
        principal: String,
        session: String,
        baselines: Vec<ReviewAcceptedFileText>,
    },
    /// The request marks the start of a turn in the caller's session.
    BeginTurn,
    /// The request responds to an alert; the session store does not check that the caller may respond.
    AnswerAlert {
        alert_id: String,
        text: String,
    },
}

/// The result of a request to the session store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionStoreReply {
    Session(SessionRecord),
    Alert(AgentSentAlertAndResponse),
    /// The reply contains no value; the request was only recorded in the journal.
    RecordedOnly,
}

/// A query for the totals of a session ([`SessionTotals`]), which are computed from journal entries.
#[derive(Debug, Clone)]
pub struct SessionTotalsQuery<'a> {
    pub principal: &'a Principal,
    pub session: &'a str,
    pub from_entry: u64,
}

/// The number of calls and bytes of a session, according to the journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionTotals {
    /// The number of calls of the session, including failed calls.
    pub calls: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// The number and the time, in unix milliseconds, of the session's first journal entry.
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

/// The sizes of a workspace's file system, trash and history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FilesystemTrashAndHistorySizes {
    /// The size in bytes of the file system that contains the workspace.
    pub total_bytes: u64,
    pub free_bytes: u64,
    /// The number of items in the trash of the workspace.
    pub trash_items: u64,
    pub trash_bytes: u64,
    pub history_bytes: u64,
    pub history_bytes_max: u64,
}
