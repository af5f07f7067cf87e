//! Explicit sessions, alerts of agents to people, and the texts that a person accepted in a review.

use serde::{Deserialize, Serialize};
use stead_path::RelPath;

use crate::{
    caller::Principal,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    ops::{ListAlertsArgs, SessionOperationArgs},
    rows::{RowBody, RowBodySelection, RowFamily, RowKey, RowSelection, RowValue, RowWrite, TypedRow, TypedRowSet},
    session_store::{
        AgentSentAlertAndResponse, AlertSeverity, HumanResponseToAlert, ReviewAcceptedFileText, SessionRecord,
        SessionStoreReply, SessionStoreWriteRequest,
    },
    transaction::{Transaction, TransactionDurability},
    workspace::{CommitReceipt, JournalCallRecord, Workspace},
};

/// A stored session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionRow {
    pub principal: String,
    pub protocol: String,
    pub created_ms: i64,
    pub ended_ms: Option<i64>,
}

impl RowValue for SessionRow {
    const FAMILY: RowFamily = RowFamily::Session;

    fn owner(&self) -> &str {
        &self.principal
    }
}

/// A stored alert.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlertRow {
    pub sender: String,
    pub session: String,
    pub severity: AlertSeverity,
    pub message: String,
    pub time_ms: i64,
    pub response: Option<HumanResponseToAlert>,
}

impl RowValue for AlertRow {
    const FAMILY: RowFamily = RowFamily::Alert;

    fn owner(&self) -> &str {
        &self.sender
    }
}

/// The stored mark of a review; its text is a body of the row.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewMarkRow {
    pub principal: String,
    pub session: String,
    pub path: RelPath,
}

/// The slot of the accepted text, which is missing if the person accepted that no file exists.
pub const REVIEW_MARK_TEXT: &str = "text";

impl RowValue for ReviewMarkRow {
    const FAMILY: RowFamily = RowFamily::ReviewMark;

    fn owner(&self) -> &str {
        &self.principal
    }

    fn subject(&self) -> &str {
        &self.session
    }
}

impl ReviewMarkRow {
    /// The id of the row.
    pub fn id(&self) -> String {
        format!("{} {} {}", self.principal, self.session, self.path)
    }
}

impl TypedRow<SessionRow> {
    fn to_session(&self) -> SessionRecord {
        let SessionRow { principal, protocol, created_ms, ended_ms } = self.value.clone();
        let first_entry = self.first.map_or(0, |stamp| stamp.entry);
        SessionRecord { id: self.id.clone(), principal, protocol, created_ms, ended_ms, first_entry }
    }
}

impl TypedRow<AlertRow> {
    fn to_alert(&self) -> AgentSentAlertAndResponse {
        let AlertRow { sender, session, severity, message, time_ms, response } = self.value.clone();
        AgentSentAlertAndResponse { id: self.id.clone(), sender, session, severity, message, time_ms, response }
    }
}

impl dyn Workspace + '_ {
    /// The session with the given id.
    pub fn session(&self, id: &str) -> Result<Option<SessionRecord>, Error> {
        Ok(self.typed_row::<SessionRow>(id, RowBodySelection::None)?.map(|row| row.to_session()))
    }

    /// The alert with the given id.
    pub fn alert(&self, id: &str) -> Result<Option<AgentSentAlertAndResponse>, Error> {
        Ok(self.typed_row::<AlertRow>(id, RowBodySelection::None)?.map(|row| row.to_alert()))
    }

    /// At most `limit` alerts, newest first, optionally only the alerts of one sender.
    pub fn alerts(&self, from: Option<&Principal>, limit: usize) -> Result<Vec<AgentSentAlertAndResponse>, Error> {
        let selection = from.map_or(RowSelection::All, |sender| RowSelection::Owner(sender.to_string()));
        let rows = self.typed_rows::<AlertRow>(selection, RowBodySelection::None)?.rows;
        Ok(rows.iter().rev().take(limit).map(TypedRow::to_alert).collect())
    }

    /// The text of each file that a person accepted in a review of the session, sorted by path.
    pub fn review_baselines(&self, principal: &str, session: &str) -> Result<Vec<ReviewAcceptedFileText>, Error> {
        let selection = RowSelection::OwnerAndSubject(principal.to_owned(), session.to_owned());
        let rows = self.typed_rows::<ReviewMarkRow>(selection, RowBodySelection::All)?.rows;
        let to_text = |row: TypedRow<ReviewMarkRow>| {
            let text = row.body(REVIEW_MARK_TEXT).map(<[u8]>::to_vec);
            ReviewAcceptedFileText { path: row.value.path, text }
        };
        let mut marks: Vec<_> = rows.into_iter().map(to_text).collect();
        marks.sort_by(|first, second| first.path.cmp(&second.path));
        Ok(marks)
    }

    /// Executes a request about sessions, alerts or reviews, and records the call in the journal.
    pub fn execute_session_request(
        &self,
        request: &SessionStoreWriteRequest,
        record: &JournalCallRecord<'_>,
    ) -> Result<(SessionStoreReply, CommitReceipt), Error> {
        let now_ms = self.now().wall_ms;
        let (mut reply, receipt) = self.commit_recorded(record, || {
            let (reply, mut transaction) = self.decide_session_request(request, record, now_ms)?;
            transaction.rows.extend(self.expired_session_rows(now_ms)?);
            Ok((reply, transaction))
        })?;
        match &mut reply {
            SessionStoreReply::Session(session) if session.id.is_empty() => {
                session.id = RowKey::OfEntry(SESSION_ID_PREFIX).id(receipt.entry);
                session.first_entry = receipt.entry;
            }
            SessionStoreReply::Alert(alert) if alert.id.is_empty() => {
                alert.id = RowKey::OfEntry(ALERT_ID_PREFIX).id(receipt.entry);
            }
            SessionStoreReply::Session(_) | SessionStoreReply::Alert(_) | SessionStoreReply::RecordedOnly => {}
        }
        Ok((reply, receipt))
    }

    fn decide_session_request(
        &self,
        request: &SessionStoreWriteRequest,
        record: &JournalCallRecord<'_>,
        now_ms: i64,
    ) -> SessionDecision {
        match request {
            SessionStoreWriteRequest::Begin => self.begin_session(record, now_ms),
            SessionStoreWriteRequest::End { session_id } => self.end_session(session_id, now_ms),
            SessionStoreWriteRequest::SendAlert { severity, message } => {
                self.send_alert(record, *severity, message, now_ms)
            }
            SessionStoreWriteRequest::AnswerAlert { alert_id, text } => {
                self.answer_alert(record, alert_id, text, now_ms)
            }
            SessionStoreWriteRequest::AcceptChanges { principal, session, baselines } => {
                accept_changes(principal, session, baselines)
            }
            SessionStoreWriteRequest::BeginTurn => {
                Ok((SessionStoreReply::RecordedOnly, Transaction::of_rows(TransactionDurability::Now)))
            }
        }
    }

    /// Sessions that ended and alerts that were answered long ago. They never change again, so that deleting them needs
    /// no expectation.
    fn expired_session_rows(&self, now_ms: i64) -> Result<Vec<RowWrite>, Error> {
        let before = now_ms.saturating_sub(limits::SESSION_RETENTION_MS);
        let is_expired = |ended_ms: Option<i64>| ended_ms.is_some_and(|ended_ms| ended_ms < before);
        let sessions = self.session_rows()?.rows.into_iter().filter(|row| is_expired(row.value.ended_ms));
        let answered_ms = |row: &TypedRow<AlertRow>| row.value.response.as_ref().map(|response| response.time_ms);
        let alerts = self.alert_rows()?.rows.into_iter().filter(|row| is_expired(answered_ms(row)));
        let sessions = sessions.map(|row| RowWrite::delete::<SessionRow>(&row.id));
        Ok(sessions.chain(alerts.map(|row| RowWrite::delete::<AlertRow>(&row.id))).collect())
    }

    fn session_rows(&self) -> Result<TypedRowSet<SessionRow>, Error> {
        self.typed_rows(RowSelection::All, RowBodySelection::None)
    }

    fn alert_rows(&self) -> Result<TypedRowSet<AlertRow>, Error> {
        self.typed_rows(RowSelection::All, RowBodySelection::None)
    }

    fn begin_session(&self, record: &JournalCallRecord<'_>, now_ms: i64) -> SessionDecision {
        let stored = self.session_rows()?;
        let principal = record.caller.principal.to_string();
        let open = stored.rows.iter().filter(|row| row.value.principal == principal && row.value.ended_ms.is_none());
        if open.count() >= limits::SESSIONS_OPEN_MAX {
            let step = NextStep::call(SessionOperationArgs::end("ID"), "end a session that you no longer need");
            return Err(Error::new(ErrorKind::TooMany, "you have too many open sessions").with_next_step(step));
        }
        let mut transaction = expect_unchanged(&stored);
        let protocol = record.caller.protocol.to_owned();
        let value = SessionRow { principal, protocol, created_ms: now_ms, ended_ms: None };
        transaction.rows.push(RowWrite::put(RowKey::OfEntry(SESSION_ID_PREFIX), &value, Vec::new())?);
        Ok((SessionStoreReply::Session(new_row(value).to_session()), transaction))
    }

    fn end_session(&self, id: &str, now_ms: i64) -> SessionDecision {
        let stored = self.session_rows()?;
        let open = stored.rows.iter().find(|row| row.id == id && row.value.ended_ms.is_none());
        let mut ended = open.cloned().ok_or_else(|| {
            Error::new(ErrorKind::NothingToDo, "the session has already ended")
                .with_next_step(NextStep::call(SessionOperationArgs::begin(), "start another one"))
        })?;
        let mut transaction = expect_unchanged(&stored);
        ended.value.ended_ms = Some(now_ms);
        transaction.rows.push(RowWrite::put(RowKey::Named(id.to_owned()), &ended.value, Vec::new())?);
        Ok((SessionStoreReply::Session(ended.to_session()), transaction))
    }

    fn send_alert(
        &self,
        record: &JournalCallRecord<'_>,
        severity: AlertSeverity,
        message: &str,
        now_ms: i64,
    ) -> SessionDecision {
        let stored = self.alert_rows()?;
        let sender = record.caller.principal.to_string();
        let open = stored.rows.iter().filter(|row| row.value.sender == sender && row.value.response.is_none());
        if open.count() >= limits::ALERTS_OPEN_MAX {
            return Err(Error::new(ErrorKind::TooMany, "you have too many unanswered alerts")
                .with_next_step("wait until a person has answered some of them"));
        }
        let mut transaction = expect_unchanged(&stored);
        let (session, message) = (record.caller.session.clone(), message.to_owned());
        let value = AlertRow { sender, session, severity, message, time_ms: now_ms, response: None };
        transaction.rows.push(RowWrite::put(RowKey::OfEntry(ALERT_ID_PREFIX), &value, Vec::new())?);
        Ok((SessionStoreReply::Alert(new_row(value).to_alert()), transaction))
    }

    fn answer_alert(&self, record: &JournalCallRecord<'_>, id: &str, text: &str, now_ms: i64) -> SessionDecision {
        let stored = self.alert_rows()?;
        let open = stored.rows.iter().find(|row| row.id == id && row.value.response.is_none());
        let mut alert = open.cloned().ok_or_else(|| {
            Error::new(ErrorKind::Exists, "the alert was already answered")
                .with_next_step(NextStep::call(ListAlertsArgs { id: Some(id.to_owned()) }, "read the answer"))
        })?;
        let mut transaction = expect_unchanged(&stored);
        let (responder, text) = (record.caller.principal.to_string(), text.to_owned());
        alert.value.response = Some(HumanResponseToAlert { responder, text, time_ms: now_ms });
        transaction.rows.push(RowWrite::put(RowKey::Named(id.to_owned()), &alert.value, Vec::new())?);
        Ok((SessionStoreReply::Alert(alert.to_alert()), transaction))
    }
}

type SessionDecision = Result<(SessionStoreReply, Transaction<'static>), Error>;

const SESSION_ID_PREFIX: &str = "s";
const ALERT_ID_PREFIX: &str = "a";

fn new_row<T>(value: T) -> TypedRow<T> {
    TypedRow { id: String::new(), revision: 0, first: None, last: None, value, bodies: Vec::new() }
}

fn expect_unchanged<T: RowValue>(stored: &TypedRowSet<T>) -> Transaction<'static> {
    let mut transaction = Transaction::of_rows(TransactionDurability::Now);
    transaction.expect_family(T::FAMILY, stored.generation);
    transaction
}

fn accept_changes(principal: &str, session: &str, baselines: &[ReviewAcceptedFileText]) -> SessionDecision {
    let mut transaction = Transaction::of_rows(TransactionDurability::Now);
    for ReviewAcceptedFileText { path, text } in baselines {
        let (principal, session, path) = (principal.to_owned(), session.to_owned(), path.clone());
        let row = ReviewMarkRow { principal, session, path };
        let id = row.id();
        // The delete removes the text of an earlier mark, because the new mark may have none.
        transaction.rows.push(RowWrite::delete::<ReviewMarkRow>(&id));
        let text = text.iter().map(|text| RowBody { slot: REVIEW_MARK_TEXT.to_owned(), bytes: text.clone() });
        transaction.rows.push(RowWrite::put(RowKey::Named(id), &row, text.collect())?);
    }
    Ok((SessionStoreReply::RecordedOnly, transaction))
}
