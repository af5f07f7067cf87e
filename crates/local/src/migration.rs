//! Moves the leases, approvals, sessions, alerts, watches, reviews and buffers of version 0.1.0, which had tables of
//! their own, into the rows of the workspace. A process of version 0.1.0 that still runs then fails instead of missing
//! them.

use rusqlite::{Connection, Row, params};
use serde::Serialize;
use stead_engine::{
    AlertRow, AlertSeverity, ApprovalRequest, ApprovalRow, ApprovalState, ApproverAndReason, BUFFER_EDITOR_TEXT,
    BUFFER_TEXT, BufferRow, Deadline, EditorSentTextLineEndings, HumanResponseToAlert, LeaseRow, REVIEW_MARK_TEXT,
    ReviewMarkRow, RowBody, RowChange, RowFamily, RowKey, RowStamp, RowWrite, SessionRow, Version, WatchAttachStage,
    WatchDepth, WatchEventKind, WatchRow,
};

use crate::{
    group_commit::TransactionError,
    rows::{write_compensation, write_rows},
    store::{digest_at, digest_from_bytes, number_at, path_at, query_rows},
};

type MigrationResult = Result<(), TransactionError>;

type MoveRowsFn = fn(&Connection) -> MigrationResult;

const OLD_TABLES: &[(&str, MoveRowsFn)] = &[
    ("leases", move_leases),
    ("approvals", move_approvals),
    ("sessions", move_sessions),
    ("alerts", move_alerts),
    ("watches", move_watches),
    ("reviewed", move_review_marks),
    ("buffers", move_buffers),
    ("lease_times", |_| Ok(())),
    ("bound_watches", |_| Ok(())),
];

/// Tables that older databases lack are skipped.
pub(crate) fn move_old_tables(connection: &Connection) -> MigrationResult {
    // Queries below join these tables, which older databases lack.
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS lease_times (path TEXT PRIMARY KEY, lasting_ms, taken_uptime_ms, boot);
         CREATE TABLE IF NOT EXISTS bound_watches (id TEXT PRIMARY KEY, process TEXT);",
    )?;
    for (table, move_rows) in OLD_TABLES {
        let exists = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
        if connection.prepare(exists)?.exists(params![table])? {
            move_rows(connection)?;
            connection.execute_batch(&format!("DROP TABLE {table}"))?;
        }
    }
    Ok(())
}

struct MovedRow {
    write: RowWrite,
    stamp: Option<RowStamp>,
}

fn moved_row(
    family: RowFamily,
    id: String,
    [owner, subject]: [&str; 2],
    value: &impl Serialize,
    bodies: Vec<RowBody>,
) -> rusqlite::Result<RowWrite> {
    let value = serde_json::to_string(value).map_err(|_| rusqlite::Error::InvalidQuery)?;
    let change = RowChange::Put { owner: owner.to_owned(), subject: subject.to_owned(), value, bodies };
    Ok(RowWrite { family, key: RowKey::Named(id), change })
}

fn move_rows(
    connection: &Connection,
    sql: &str,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<MovedRow>,
) -> MigrationResult {
    for MovedRow { write, stamp } in query_rows(connection, sql, [], read)? {
        write_rows(connection, &[write], stamp)?;
    }
    Ok(())
}

fn stamp_at(row: &Row<'_>, entry: usize, time_ms: i64) -> rusqlite::Result<Option<RowStamp>> {
    let entry: Option<i64> = row.get(entry)?;
    Ok(entry.map(|entry| RowStamp { entry: entry.unsigned_abs(), time_ms }))
}

/// The fencing number of an old lease counts leases, so it is below the number of the entry that granted it.
fn move_leases(connection: &Connection) -> MigrationResult {
    let sql = "SELECT path, holder, fence, ends_ms, lasting_ms, taken_uptime_ms, boot
               FROM leases LEFT JOIN lease_times USING (path) ORDER BY path";
    move_rows(connection, sql, |row| {
        let (path, holder): (_, String) = (path_at(row, 0)?, row.get(1)?);
        let ends_ms: i64 = row.get(3)?;
        let lasting_ms: Option<i64> = row.get(4)?;
        let deadline = Deadline {
            starts_ms: lasting_ms.map_or(ends_ms, |lasting_ms| ends_ms.saturating_sub(lasting_ms)),
            ends_ms,
            starts_uptime_ms: row.get::<_, Option<i64>>(5)?.unwrap_or(0),
            boot_id: row.get::<_, Option<String>>(6)?.unwrap_or_default(),
        };
        let value = LeaseRow { path, holder, deadline };
        let write = moved_row(RowFamily::Lease, value.path.to_string(), [&value.holder, ""], &value, Vec::new())?;
        Ok(MovedRow { write, stamp: stamp_at(row, 2, 0)? })
    })
}

fn move_approvals(connection: &Connection) -> MigrationResult {
    let sql = "SELECT id, principal, session, operation, tool, call, plan, shown, why, policy, created_ms, expires_ms,
                   created_uptime_ms, boot, state, answered_by, reason, used,
                   used IN (SELECT number FROM pending) FROM approvals ORDER BY rowid";
    let mut compensation = Vec::new();
    move_rows(connection, sql, |row| {
        let id: String = row.get(0)?;
        let policy: String = row.get(9)?;
        let by: Option<String> = row.get(15)?;
        let reason: Option<String> = row.get(16)?;
        let deadline = Deadline {
            starts_ms: row.get(10)?,
            ends_ms: row.get(11)?,
            starts_uptime_ms: row.get(12)?,
            boot_id: row.get(13)?,
        };
        let request = ApprovalRequest {
            principal: row.get(1)?,
            session: row.get(2)?,
            operation: row.get(3)?,
            tool: row.get(4)?,
            call_digest: digest_at(row, 5)?,
            plan_digest: digest_at(row, 6)?,
            plan_preview: row.get(7)?,
            reason: row.get(8)?,
            policy_version: u64::from_str_radix(&policy, 16).map_err(|_| rusqlite::Error::InvalidQuery)?,
            valid_for_ms: deadline.ends_ms.saturating_sub(deadline.starts_ms),
        };
        let value = ApprovalRow {
            request,
            deadline,
            state: approval_state(row.get(14)?).ok_or(rusqlite::Error::InvalidQuery)?,
            resolution: by.map(|resolved_by| ApproverAndReason { resolved_by, reason }),
        };
        let stamp = stamp_at(row, 17, value.deadline.starts_ms)?;
        let keep = |value: &ApprovalRow| {
            moved_row(RowFamily::Approval, id.clone(), [&value.request.principal, ""], value, Vec::new())
        };
        if let (Some(stamp), Some(true)) = (stamp, row.get::<_, Option<bool>>(18)?) {
            let approved = ApprovalRow { state: ApprovalState::Approved, ..value.clone() };
            compensation.push((stamp.entry, keep(&approved)?));
        }
        Ok(MovedRow { write: keep(&value)?, stamp })
    })?;
    compensation.into_iter().try_for_each(|(entry, write)| write_compensation(connection, entry, vec![write]))
}

fn approval_state(number: i64) -> Option<ApprovalState> {
    let number = usize::try_from(number).ok()?;
    ApprovalState::ALL.get(number).copied()
}

fn move_sessions(connection: &Connection) -> MigrationResult {
    let sql = "SELECT id, principal, face, created_ms, ended_ms, first FROM sessions ORDER BY first";
    move_rows(connection, sql, |row| {
        let (principal, protocol, created_ms) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let value = SessionRow { principal, protocol, created_ms, ended_ms: row.get(4)? };
        let write = moved_row(RowFamily::Session, row.get(0)?, [&value.principal, ""], &value, Vec::new())?;
        Ok(MovedRow { write, stamp: stamp_at(row, 5, created_ms)? })
    })
}

fn move_alerts(connection: &Connection) -> MigrationResult {
    let sql = "SELECT id, number, sender, session, severity, message, time_ms, answered_by, answer, answered_ms
               FROM alerts ORDER BY number";
    move_rows(connection, sql, |row| {
        let severity: String = row.get(4)?;
        let response = match (row.get(7)?, row.get(8)?, row.get(9)?) {
            (Some(responder), Some(text), Some(time_ms)) => Some(HumanResponseToAlert { responder, text, time_ms }),
            (_, _, _) => None,
        };
        let value = AlertRow {
            sender: row.get(2)?,
            session: row.get(3)?,
            severity: severity.parse().unwrap_or(AlertSeverity::Info),
            message: row.get(5)?,
            time_ms: row.get(6)?,
            response,
        };
        let write = moved_row(RowFamily::Alert, row.get(0)?, [&value.sender, ""], &value, Vec::new())?;
        Ok(MovedRow { write, stamp: stamp_at(row, 1, value.time_ms)? })
    })
}

fn move_watches(connection: &Connection) -> MigrationResult {
    let sql = "SELECT id, owner, session, path, deep, happenings, glob, started, stage, created_ms, heard_ms, process
               FROM watches LEFT JOIN bound_watches USING (id) ORDER BY created_ms, id";
    move_rows(connection, sql, |row| {
        let kinds: String = row.get(5)?;
        let started = row.get::<_, Option<i64>>(7)?.is_some();
        let value = WatchRow {
            owner: row.get(1)?,
            session: row.get(2)?,
            path: path_at(row, 3)?,
            depth: if row.get(4)? { WatchDepth::Deep } else { WatchDepth::Shallow },
            event_kinds: kinds.split(',').filter_map(WatchEventKind::parse).collect(),
            glob: row.get(6)?,
            stage: if started { WatchAttachStage::Attached } else { WatchAttachStage::Requested },
            created_ms: row.get(9)?,
            polled_ms: row.get(10)?,
            process: row.get(11)?,
        };
        let write = moved_row(RowFamily::Watch, row.get(0)?, [&value.owner, ""], &value, Vec::new())?;
        Ok(MovedRow { write, stamp: stamp_at(row, 7, value.created_ms)? })
    })
}

fn move_review_marks(connection: &Connection) -> MigrationResult {
    let sql = "SELECT principal, session, path, number, text FROM reviewed ORDER BY number, path";
    move_rows(connection, sql, |row| {
        let value = ReviewMarkRow { principal: row.get(0)?, session: row.get(1)?, path: path_at(row, 2)? };
        let text: Option<Vec<u8>> = row.get(4)?;
        let text = text.map(|bytes| RowBody { slot: REVIEW_MARK_TEXT.to_owned(), bytes });
        let id = value.id();
        let owner = [value.principal.as_str(), value.session.as_str()];
        let write = moved_row(RowFamily::ReviewMark, id, owner, &value, text.into_iter().collect())?;
        Ok(MovedRow { write, stamp: stamp_at(row, 3, 0)? })
    })
}

fn move_buffers(connection: &Connection) -> MigrationResult {
    let sql = "SELECT id, path, owner, session, process, revision, version, base, endings, held_revision, changed_ms,
                   text, held, moved_by, before_path, before_version, before_base, before_text,
                   moved_by IN (SELECT number FROM pending) FROM buffers ORDER BY path, id";
    let version_at = |row: &Row<'_>, column: usize| -> rusqlite::Result<Option<Version>> {
        let bytes: Option<Vec<u8>> = row.get(column)?;
        Ok(bytes.and_then(|bytes| digest_from_bytes(&bytes)).map(Version))
    };
    let mut compensation = Vec::new();
    move_rows(connection, sql, |row| {
        let id: String = row.get(0)?;
        let body = |slot: &str, bytes: Vec<u8>| RowBody { slot: slot.to_owned(), bytes };
        let text: Vec<u8> = row.get(11)?;
        let value = BufferRow {
            path: path_at(row, 1)?,
            owner: row.get(2)?,
            session: row.get(3)?,
            holder: row.get(4)?,
            revision: number_at(row, 5)?,
            version: Version(digest_at(row, 6)?),
            size: text.len() as u64,
            base: version_at(row, 7)?,
            line_endings: match row.get(8)? {
                true => EditorSentTextLineEndings::LfOnly,
                false => EditorSentTextLineEndings::SameAsFile,
            },
            editor_revision: number_at(row, 9)?,
            changed_ms: row.get(10)?,
        };
        let stamp = stamp_at(row, 13, value.changed_ms)?;
        let before: Option<Vec<u8>> = row.get(17)?;
        if let (Some(stamp), Some(text), Some(true)) = (stamp, before, row.get::<_, Option<bool>>(18)?) {
            let before = BufferRow {
                path: path_at(row, 14)?,
                version: version_at(row, 15)?.unwrap_or(value.version),
                base: version_at(row, 16)?,
                size: text.len() as u64,
                revision: value.revision + 1,
                ..value.clone()
            };
            let texts = vec![body(BUFFER_TEXT, text)];
            let write = moved_row(RowFamily::Buffer, id.clone(), [&before.owner, ""], &before, texts)?;
            compensation.push((stamp.entry, write));
        }
        let texts = vec![body(BUFFER_TEXT, text), body(BUFFER_EDITOR_TEXT, row.get(12)?)];
        let write = moved_row(RowFamily::Buffer, id, [&value.owner, ""], &value, texts)?;
        Ok(MovedRow { write, stamp })
    })?;
    compensation.into_iter().try_for_each(|(entry, write)| write_compensation(connection, entry, vec![write]))
}
