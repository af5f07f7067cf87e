//! Stores sessions, alerts and review baselines, and reports usage. A change of a session, alert or baseline is in the
//! same transaction as the journal entry that records the change.

use std::collections::{HashMap, VecDeque};

use rusqlite::{Connection, Row, params};
use stead_engine::{
    AgentSentAlertAndResponse, AlertSeverity, CommitReceipt, Error, ErrorKind, FilesystemTrashAndHistorySizes,
    HumanResponseToAlert, JournalCallRecord, NextStep, Principal, PrincipalUsage, RequiredUsageFreshness,
    ReviewAcceptedFileText, SessionRecord, SessionStore, SessionStoreReply, SessionStoreWriteRequest, SessionTotals,
    SessionTotalsQuery, WorkspaceUsage, limits,
    ops::{ListAlertsArgs, SessionOperationArgs},
};
use stead_path::RelPath;

use crate::{
    errors,
    group_commit::TransactionError,
    open::LocalWorkspace,
    store::{
        TransactionSyncPolicy, execute_cached, lock_ignoring_poison, number_at, path_at, query_number, query_optional,
        to_sql_integer,
    },
    usage::stored_usage_before,
};

const ALERT_COLUMNS: &str =
    "SELECT id, sender, session, severity, message, time_ms, answered_by, answer, answered_ms FROM alerts";

impl SessionStore for LocalWorkspace {
    fn execute_session_request(
        &self,
        request: &SessionStoreWriteRequest,
        record: &JournalCallRecord<'_>,
    ) -> Result<(SessionStoreReply, CommitReceipt), Error> {
        let now_ms = self.clock.now().wall_ms;
        let caller = SessionStoreCaller {
            principal: record.caller.principal.to_string(),
            session: record.caller.session.clone(),
            protocol: record.caller.protocol,
            now_ms,
        };
        let (draft, request) = (self.pending_entry_without_changes(record), request.clone());
        self.append_with_result(draft, TransactionSyncPolicy::Now, move |transaction, append| {
            delete_expired(transaction, now_ms)?;
            check_session_request(transaction, &request, &caller)?;
            let number = append()?;
            Ok(write_session_request(transaction, &request, &caller, number)?)
        })
    }

    fn session(&self, id: &str) -> Result<Option<SessionRecord>, Error> {
        self.store.run_query(|connection| load_session(connection, id))
    }

    fn session_totals(&self, query: &SessionTotalsQuery<'_>) -> Result<SessionTotals, Error> {
        self.flush_if_possible();
        let key = (query.principal.to_string(), query.session.to_owned(), query.from_entry);
        let cached = lock_ignoring_poison(&self.session_counts).cached_counts(&key);
        let updated = self.store.run_query(|connection| update_counts(connection, query, cached))?;
        lock_ignoring_poison(&self.session_counts).insert_counts(key, updated);
        Ok(updated.counts)
    }

    fn review_baselines(&self, principal: &str, session: &str) -> Result<Vec<ReviewAcceptedFileText>, Error> {
        let sql = "SELECT path, text FROM reviewed WHERE principal = ?1 AND session = ?2 ORDER BY path";
        self.store.query_rows(sql, params![principal, session], |row| {
            Ok(ReviewAcceptedFileText { path: path_at(row, 0)?, text: row.get(1)? })
        })
    }

    fn alert(&self, id: &str) -> Result<Option<AgentSentAlertAndResponse>, Error> {
        self.store.run_query(|connection| load_alert(connection, id))
    }

    fn alerts(&self, from: Option<&Principal>, limit: usize) -> Result<Vec<AgentSentAlertAndResponse>, Error> {
        let from = from.map(ToString::to_string);
        let sql = format!("{ALERT_COLUMNS} WHERE ?1 IS NULL OR sender = ?1 ORDER BY number DESC LIMIT ?2");
        self.store.query_rows(&sql, params![from, to_sql_integer(limit as u64)], alert_from_row)
    }

    fn storage_usage(&self) -> Result<FilesystemTrashAndHistorySizes, Error> {
        let space = self.root.disk_space().map_err(errors::at_path(&RelPath::root()))?;
        let sql = "SELECT (SELECT COUNT(*) FROM trash WHERE state = 0),
                   (SELECT COALESCE(SUM(size), 0) FROM trash WHERE state = 0),
                   (SELECT COALESCE(SUM(size), 0) FROM kept)";
        let read = |row: &Row<'_>| Ok((number_at(row, 0)?, number_at(row, 1)?, number_at(row, 2)?));
        let (trash_items, trash_bytes, history_bytes) =
            self.store.run_query(|connection| connection.prepare_cached(sql)?.query_row([], read))?;
        Ok(FilesystemTrashAndHistorySizes {
            total_bytes: space.total_bytes,
            free_bytes: space.free_bytes,
            trash_items,
            trash_bytes,
            history_bytes,
            history_bytes_max: self.retained_bytes_max,
        })
    }

    fn principal_usage(
        &self,
        principal: &Principal,
        freshness: RequiredUsageFreshness,
    ) -> Result<Option<PrincipalUsage>, Error> {
        self.usage_of(principal, freshness)
    }

    fn usage_before_entry(&self, number: u64) -> Result<Option<WorkspaceUsage>, Error> {
        self.store.run_query(|connection| stored_usage_before(connection, number))
    }

    fn history_bytes(&self, principal: &Principal) -> Result<u64, Error> {
        self.history_bytes_of(principal)
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CachedSessionCounts {
    counts: SessionTotals,
    up_to_entry: u64,
}

type SessionCountsKey = (String, String, u64);

const CACHED_COUNTS_MAX: usize = 256;

/// A repeated query for session totals reads only new entries; the oldest cached totals are evicted first.
#[derive(Default)]
pub(crate) struct SessionCountsCache {
    cached: HashMap<SessionCountsKey, CachedSessionCounts>,
    order: VecDeque<SessionCountsKey>,
}

impl SessionCountsCache {
    fn cached_counts(&self, key: &SessionCountsKey) -> CachedSessionCounts {
        self.cached.get(key).copied().unwrap_or_default()
    }

    fn insert_counts(&mut self, key: SessionCountsKey, counts: CachedSessionCounts) {
        if self.cached.insert(key.clone(), counts).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > CACHED_COUNTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.cached.remove(&oldest);
        }
    }
}

fn update_counts(
    connection: &Connection,
    query: &SessionTotalsQuery<'_>,
    mut cached: CachedSessionCounts,
) -> rusqlite::Result<CachedSessionCounts> {
    let mut statement = connection.prepare_cached(
        "SELECT number, bytes, principal FROM entries WHERE number >= ?1 AND number > ?2 ORDER BY number",
    )?;
    let mut rows = statement.query(params![to_sql_integer(query.from_entry), to_sql_integer(cached.up_to_entry)])?;
    let principal = query.principal.to_string();
    while let Some(row) = rows.next()? {
        cached.up_to_entry = number_at(row, 0)?;
        if row.get_ref(2)?.as_str()? != principal {
            continue;
        }
        if let Ok(entry) = stead_journal::decode_entry(row.get_ref(1)?.as_blob()?)
            && entry.caller.session == query.session
        {
            cached.counts.add_entry(&entry);
        }
    }
    Ok(cached)
}

struct SessionStoreCaller {
    principal: String,
    session: String,
    protocol: &'static str,
    now_ms: i64,
}

fn delete_expired(connection: &Connection, now_ms: i64) -> rusqlite::Result<()> {
    let before = now_ms.saturating_sub(limits::SESSION_RETENTION_MS);
    execute_cached(connection, "DELETE FROM sessions WHERE ended_ms < ?1", params![before])?;
    execute_cached(connection, "DELETE FROM alerts WHERE answered_ms < ?1", params![before])
}

fn check_session_request(
    connection: &Connection,
    request: &SessionStoreWriteRequest,
    caller: &SessionStoreCaller,
) -> Result<(), TransactionError> {
    let count_open = |sql: &str| query_number(connection, sql, params![caller.principal]);
    Ok(match request {
        SessionStoreWriteRequest::Begin => check_limit(
            count_open("SELECT COUNT(*) FROM sessions WHERE principal = ?1 AND ended_ms IS NULL")?,
            limits::SESSIONS_OPEN_MAX,
            "you have too many open sessions",
            NextStep::call(SessionOperationArgs::end("ID"), "end a session that you no longer need"),
        ),
        SessionStoreWriteRequest::SendAlert { .. } => check_limit(
            count_open("SELECT COUNT(*) FROM alerts WHERE sender = ?1 AND answered_ms IS NULL")?,
            limits::ALERTS_OPEN_MAX,
            "you have too many unanswered alerts",
            "wait until a person has answered some of them".into(),
        ),
        SessionStoreWriteRequest::AcceptChanges { .. } | SessionStoreWriteRequest::BeginTurn => Ok(()),
        SessionStoreWriteRequest::End { session_id } => match load_session(connection, session_id)? {
            Some(session) if session.ended_ms.is_none() => Ok(()),
            Some(_) | None => Err(Error::new(ErrorKind::NothingToDo, "the session has already ended")
                .with_next_step(NextStep::call(SessionOperationArgs::begin(), "start another one"))),
        },
        SessionStoreWriteRequest::AnswerAlert { alert_id, .. } => match load_alert(connection, alert_id)? {
            Some(alert) if alert.response.is_none() => Ok(()),
            Some(_) | None => Err(Error::new(ErrorKind::Exists, "the alert was already answered")
                .with_next_step(NextStep::call(ListAlertsArgs { id: Some(alert_id.clone()) }, "read the answer"))),
        },
    }?)
}

fn check_limit(count: Option<u64>, limit: usize, message: &str, hint: NextStep) -> Result<(), Error> {
    if count.is_some_and(|count| count >= limit as u64) {
        Err(Error::new(ErrorKind::TooMany, message).with_next_step(hint))
    } else {
        Ok(())
    }
}

fn write_session_request(
    connection: &Connection,
    request: &SessionStoreWriteRequest,
    caller: &SessionStoreCaller,
    number: u64,
) -> rusqlite::Result<Option<SessionStoreReply>> {
    match request {
        SessionStoreWriteRequest::Begin => {
            let id = format!("s{number}");
            let values = params![id, caller.principal, caller.protocol, caller.now_ms, to_sql_integer(number)];
            execute_cached(connection, "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, NULL, ?5)", values)?;
            Ok(load_session(connection, &id)?.map(SessionStoreReply::Session))
        }
        SessionStoreWriteRequest::End { session_id: session } => {
            let values = params![session, caller.now_ms];
            execute_cached(connection, "UPDATE sessions SET ended_ms = ?2 WHERE id = ?1", values)?;
            Ok(load_session(connection, session)?.map(SessionStoreReply::Session))
        }
        SessionStoreWriteRequest::SendAlert { severity, message } => {
            let id = format!("a{number}");
            let SessionStoreCaller { principal, session, now_ms, .. } = caller;
            let values = params![id, to_sql_integer(number), principal, session, severity.as_str(), message, now_ms];
            let sql = "INSERT INTO alerts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, NULL, NULL)";
            execute_cached(connection, sql, values)?;
            Ok(load_alert(connection, &id)?.map(SessionStoreReply::Alert))
        }
        SessionStoreWriteRequest::AcceptChanges { principal, session, baselines } => {
            let mut statement =
                connection.prepare_cached("INSERT OR REPLACE INTO reviewed VALUES (?1, ?2, ?3, ?4, ?5)")?;
            for ReviewAcceptedFileText { path, text } in baselines {
                statement.execute(params![principal, session, path.to_string(), to_sql_integer(number), text])?;
            }
            Ok(Some(SessionStoreReply::RecordedOnly))
        }
        SessionStoreWriteRequest::BeginTurn => Ok(Some(SessionStoreReply::RecordedOnly)),
        SessionStoreWriteRequest::AnswerAlert { alert_id: alert, text } => {
            let sql = "UPDATE alerts SET answered_by = ?2, answer = ?3, answered_ms = ?4 WHERE id = ?1";
            execute_cached(connection, sql, params![alert, caller.principal, text, caller.now_ms])?;
            Ok(load_alert(connection, alert)?.map(SessionStoreReply::Alert))
        }
    }
}

fn load_session(connection: &Connection, id: &str) -> rusqlite::Result<Option<SessionRecord>> {
    let sql = "SELECT id, principal, face, created_ms, ended_ms, first FROM sessions WHERE id = ?1";
    query_optional(connection, sql, params![id], |row| {
        Ok(SessionRecord {
            id: row.get(0)?,
            principal: row.get(1)?,
            protocol: row.get(2)?,
            created_ms: row.get(3)?,
            ended_ms: row.get(4)?,
            first_entry: number_at(row, 5)?,
        })
    })
}

fn load_alert(connection: &Connection, id: &str) -> rusqlite::Result<Option<AgentSentAlertAndResponse>> {
    query_optional(connection, &format!("{ALERT_COLUMNS} WHERE id = ?1"), params![id], alert_from_row)
}

fn alert_from_row(row: &Row<'_>) -> rusqlite::Result<AgentSentAlertAndResponse> {
    let severity: String = row.get(3)?;
    let response = match (row.get(6)?, row.get(7)?, row.get(8)?) {
        (Some(by), Some(text), Some(time_ms)) => Some(HumanResponseToAlert { responder: by, text, time_ms }),
        (_, _, _) => None,
    };
    Ok(AgentSentAlertAndResponse {
        id: row.get(0)?,
        sender: row.get(1)?,
        session: row.get(2)?,
        severity: severity.parse().unwrap_or(AlertSeverity::Info),
        message: row.get(4)?,
        time_ms: row.get(5)?,
        response,
    })
}
