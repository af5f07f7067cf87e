//! Stored open buffers and drafts. Each change is one transaction with the entry that records it; updates by a commit are
//! part of the commit's transaction.
//!
//! A buffer belongs to the connection that opened it, or to a process with a single client. Each owner holds a lock while
//! it lives (`liveness.rs`); once the lock is free, its buffers count as drafts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use rusqlite::{Connection, OptionalExtension, Row, params};
use stead_engine::{
    Buffer, BufferLineEndings, BufferOpenState, BufferStore, BufferStoreRequest, BufferText, CallRecord, CommitReceipt,
    Error, ErrorKind, PlannedBufferChange, PlannedBufferChangeKind, Version, limits,
};
use stead_journal::EntryRelation;
use stead_path::RelPath;

use crate::{
    group_commit::{TransactionBody, TransactionOutcome},
    open::LocalWorkspace,
    store::{self, SyncRequirement, digest_from_bytes, to_sql_integer},
};

const BUFFER_COLUMNS: &str = "id, path, owner, session, process, revision, version, length(text), base, endings, held_revision, \
                    changed_ms";

impl BufferStore for LocalWorkspace {
    fn buffers(&self) -> Result<Vec<Buffer>, Error> {
        let rows: Vec<(Buffer, String)> = self.store.run_query(|connection| {
            connection
                .prepare_cached(&format!("SELECT {BUFFER_COLUMNS} FROM buffers ORDER BY path, id"))?
                .query_map([], buffer_from_row)?
                .collect()
        })?;
        let mut standings: HashMap<String, BufferOpenState> = HashMap::new();
        let mut buffers = Vec::with_capacity(rows.len());
        for (mut buffer, process) in rows {
            buffer.open_state = match standings.get(&process) {
                Some(standing) => *standing,
                None => self.liveness.liveness_of(&process)?,
            };
            standings.insert(process, buffer.open_state);
            buffers.push(buffer);
        }
        Ok(buffers)
    }

    fn buffer_text(&self, id: &str) -> Result<Option<BufferText>, Error> {
        let found = self.store.run_query(|connection| {
            connection
                .prepare_cached(&format!("SELECT {BUFFER_COLUMNS}, text, held FROM buffers WHERE id = ?1"))?
                .query_row(params![id], |row| Ok((buffer_from_row(row)?, row.get(12)?, row.get(13)?)))
                .optional()
        })?;
        let Some(((mut buffer, process), text, held)) = found else { return Ok(None) };
        buffer.open_state = self.liveness.liveness_of(&process)?;
        Ok(Some(BufferText { buffer, text, editor_text: held }))
    }

    fn execute_buffer_request(
        &self,
        request: &BufferStoreRequest,
        record: &CallRecord<'_>,
    ) -> Result<(Buffer, CommitReceipt), Error> {
        // Read before the transaction, which must not wait. A process that dies meanwhile counts as alive.
        let known = self.buffers()?;
        let caller = BufferCaller {
            owner: record.caller.principal.to_string(),
            session: record.caller.session.clone(),
            process: self.liveness.register(&record.caller.lifetime)?,
            now_ms: self.clock.now().wall_ms,
        };
        let mut draft = self.pending_entry(record, Vec::new(), EntryRelation::None, 0);
        let stored = Arc::new(Mutex::new(None));
        let (result, request) = (Arc::clone(&stored), request.clone());
        let work: TransactionBody = Box::new(move |transaction, tip| {
            if let Err(error) = check_buffer_command(transaction, &request, &caller, &known)? {
                return Ok(TransactionOutcome::Refused(error));
            }
            store::append_entry(transaction, tip, &mut draft)?;
            *store::lock_ignoring_poison(&result) = write_buffer(transaction, &request, &caller, draft.entry.number)?;
            Ok(crate::commit::recorded_outcome(&draft, tip))
        });
        // The text is still in the editor, so it need not survive a power cut.
        let outcome = self.group_commit.submit(&self.store, self.durability, SyncRequirement::Later, work)?;
        let buffer = store::lock_ignoring_poison(&stored).take();
        match (outcome, buffer) {
            (TransactionOutcome::Recorded(number, hash), Some(buffer)) => {
                self.announce_entry();
                Ok((buffer, CommitReceipt { entry: number, hash, trash_ids: Vec::new(), notices: Vec::new() }))
            }
            (TransactionOutcome::Refused(error), _) => Err(error),
            (TransactionOutcome::Recorded(..) | TransactionOutcome::Replayed(_), _) => {
                Err(Error::new(ErrorKind::AuditUnavailable, "the buffer was not recorded"))
            }
        }
    }
}

struct BufferCaller {
    owner: String,
    session: String,
    process: String,
    now_ms: i64,
}

fn buffer_from_row(row: &Row<'_>) -> rusqlite::Result<(Buffer, String)> {
    let malformed = || rusqlite::Error::InvalidQuery;
    let path: String = row.get(1)?;
    let version: Vec<u8> = row.get(6)?;
    let base: Option<Vec<u8>> = row.get(8)?;
    let buffer = Buffer {
        id: row.get(0)?,
        path: RelPath::from_wire(&path).map_err(|_| malformed())?,
        owner: row.get(2)?,
        session: row.get(3)?,
        open_state: BufferOpenState::OpenHere,
        revision: row.get::<_, i64>(5)?.unsigned_abs(),
        version: Version(digest_from_bytes(&version).ok_or_else(malformed)?),
        size: row.get::<_, i64>(7)?.unsigned_abs(),
        base: base.map(|base| digest_from_bytes(&base).map(Version).ok_or_else(malformed)).transpose()?,
        line_endings: if row.get(9)? { BufferLineEndings::LfOnly } else { BufferLineEndings::SameAsFile },
        editor_revision: row.get::<_, i64>(10)?.unsigned_abs(),
        changed_ms: row.get(11)?,
    };
    Ok((buffer, row.get(4)?))
}

fn load_buffer(connection: &Connection, id: &str) -> rusqlite::Result<Option<Buffer>> {
    let found = connection
        .prepare_cached(&format!("SELECT {BUFFER_COLUMNS} FROM buffers WHERE id = ?1"))?
        .query_row(params![id], buffer_from_row)
        .optional()?;
    Ok(found.map(|(buffer, _)| buffer))
}

/// Checks a command inside the transaction; `known` holds the liveness read before.
fn check_buffer_command(
    connection: &Connection,
    request: &BufferStoreRequest,
    caller: &BufferCaller,
    known: &[Buffer],
) -> rusqlite::Result<Result<(), Error>> {
    let is_dead = |id: &str| known.iter().any(|buffer| buffer.id == id && !buffer.is_open());
    let taken = |path: &RelPath| -> rusqlite::Result<Result<(), Error>> {
        let mut statement = connection.prepare_cached("SELECT id FROM buffers WHERE path = ?1")?;
        let mut ids = statement.query_map(params![path.to_string()], |row| row.get::<_, String>(0))?;
        // A buffer opened a moment ago is not in `known` and counts as alive.
        let live = ids.any(|id| id.is_ok_and(|id| !is_dead(&id)));
        let open = || Error::new(ErrorKind::Exists, format!("{path} is open in another editor"));
        Ok(if live { Err(open().with_next_step("close it there first")) } else { Ok(()) })
    };
    let Some(id) = command_buffer_id(request) else {
        let BufferStoreRequest::Open { path, text, replaced_drafts: instead_of, .. } = request else {
            return Ok(Ok(()));
        };
        if let Err(error) = taken(path)? {
            return Ok(Err(error));
        }
        return check_buffer_quota(connection, caller, text.len() as u64, instead_of);
    };
    let Some(buffer) = load_buffer(connection, id)? else {
        return Ok(Err(Error::new(ErrorKind::NotFound, format!("there is no buffer {id}"))));
    };
    match request {
        BufferStoreRequest::ResumeDraft { .. } => taken(&buffer.path),
        BufferStoreRequest::Change { revision, .. } if buffer.revision != *revision => Ok(Err(buffer_changed_error())),
        BufferStoreRequest::Change { text, .. } => {
            check_buffer_quota(connection, caller, (text.len() as u64).saturating_sub(buffer.size), &[])
        }
        BufferStoreRequest::Close { .. } | BufferStoreRequest::Open { .. } => Ok(Ok(())),
    }
}

fn command_buffer_id(request: &BufferStoreRequest) -> Option<&str> {
    match request {
        BufferStoreRequest::ResumeDraft { id }
        | BufferStoreRequest::Change { id, .. }
        | BufferStoreRequest::Close { id } => Some(id),
        BufferStoreRequest::Open { .. } => None,
    }
}

/// Checks whether a principal may store `bytes` more in place of the given ones.
fn check_buffer_quota(
    connection: &Connection,
    caller: &BufferCaller,
    bytes: u64,
    instead_of: &[String],
) -> rusqlite::Result<Result<(), Error>> {
    let (count, size): (i64, i64) = connection
        .prepare_cached("SELECT count(*), coalesce(sum(length(text)), 0) FROM buffers WHERE owner = ?1")?
        .query_row(params![caller.owner], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let full = count.unsigned_abs().saturating_sub(instead_of.len() as u64) >= limits::BUFFERS_PER_PRINCIPAL_MAX as u64
        || size.unsigned_abs().saturating_add(bytes) > limits::BUFFERS_BYTES_MAX;
    let error = || {
        Error::new(ErrorKind::TooMany, "you have too many buffers and drafts")
            .with_next_step("call buffer.list, and buffer.drop on drafts that you no longer need")
    };
    Ok(if full { Err(error()) } else { Ok(()) })
}

fn write_buffer(
    connection: &Connection,
    request: &BufferStoreRequest,
    caller: &BufferCaller,
    number: u64,
) -> rusqlite::Result<Option<Buffer>> {
    match request {
        BufferStoreRequest::Open { path, text, base, line_endings: endings, replaced_drafts: instead_of } => {
            for draft in instead_of {
                connection.prepare_cached("DELETE FROM buffers WHERE id = ?1")?.execute(params![draft])?;
            }
            let id = format!("b{number}");
            connection
                .prepare_cached(
                    "INSERT INTO buffers VALUES
                     (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, 1, ?9, ?10, ?10, NULL, NULL, NULL, NULL, NULL)",
                )?
                .execute(params![
                    id,
                    path.to_string(),
                    caller.owner,
                    caller.session,
                    caller.process,
                    bytes(&Version::hash_bytes(text)),
                    base.as_ref().map(bytes),
                    *endings == BufferLineEndings::LfOnly,
                    caller.now_ms,
                    text
                ])?;
            load_buffer(connection, &id)
        }
        BufferStoreRequest::ResumeDraft { id } => {
            connection
                .prepare_cached(
                    "UPDATE buffers SET process = ?2, session = ?3, revision = revision + 1,
                     held_revision = revision + 1, held = text WHERE id = ?1",
                )?
                .execute(params![id, caller.process, caller.session])?;
            load_buffer(connection, id)
        }
        BufferStoreRequest::Change { id, text, base, line_endings: endings, .. } => {
            connection
                .prepare_cached(
                    "UPDATE buffers SET revision = revision + 1, held_revision = revision + 1, version = ?2, base = ?3,
                     endings = ?4, changed_ms = ?5, text = ?6, held = ?6, moved_by = NULL, before_text = NULL
                     WHERE id = ?1",
                )?
                .execute(params![
                    id,
                    bytes(&Version::hash_bytes(text)),
                    base.as_ref().map(bytes),
                    *endings == BufferLineEndings::LfOnly,
                    caller.now_ms,
                    text
                ])?;
            load_buffer(connection, id)
        }
        BufferStoreRequest::Close { id } => {
            let buffer = load_buffer(connection, id)?;
            connection.prepare_cached("DELETE FROM buffers WHERE id = ?1")?.execute(params![id])?;
            Ok(buffer)
        }
    }
}

fn bytes(version: &Version) -> Vec<u8> {
    version.0.as_bytes().to_vec()
}

/// The error of a plan whose buffers changed since it was made.
pub(crate) fn buffers_changed(
    connection: &Connection,
    steps: &[PlannedBufferChange],
) -> rusqlite::Result<Option<Error>> {
    for step in steps {
        if load_buffer(connection, &step.id)?.is_none_or(|buffer| buffer.revision != step.expected_revision) {
            return Ok(Some(buffer_changed_error()));
        }
    }
    Ok(None)
}

/// Applies a plan's buffer updates and stores the previous state for a rollback.
pub(crate) fn update_buffers(
    connection: &Connection,
    steps: &[PlannedBufferChange],
    number: u64,
    now_ms: i64,
) -> rusqlite::Result<()> {
    for step in steps {
        connection
            .prepare_cached(
                "UPDATE buffers SET moved_by = ?2, before_path = path, before_version = version, before_base = base,
                 before_text = text WHERE id = ?1",
            )?
            .execute(params![step.id, to_sql_integer(number)])?;
        match &step.kind {
            PlannedBufferChangeKind::ReplaceText { text, base } => connection
                .prepare_cached(
                    "UPDATE buffers SET revision = revision + 1, version = ?2, base = ?3, changed_ms = ?4, text = ?5
                     WHERE id = ?1",
                )?
                .execute(params![step.id, bytes(&Version::hash_bytes(text)), bytes(base), now_ms, text])?,
            PlannedBufferChangeKind::MarkSaved { base } => connection
                .prepare_cached("UPDATE buffers SET base = ?2 WHERE id = ?1")?
                .execute(params![step.id, bytes(base)])?,
            PlannedBufferChangeKind::Rename(to) => connection
                .prepare_cached("UPDATE buffers SET path = ?2 WHERE id = ?1")?
                .execute(params![step.id, to.to_string()])?,
        };
    }
    Ok(())
}

/// Restores the buffers of a rolled-back entry, unless they changed since.
pub(crate) fn restore_buffers(connection: &Connection, number: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE buffers SET revision = revision + 1, path = before_path, version = before_version,
             base = before_base, text = before_text, moved_by = NULL, before_text = NULL
             WHERE moved_by = ?1 AND before_text IS NOT NULL",
        )?
        .execute(params![number])?;
    Ok(())
}

fn buffer_changed_error() -> Error {
    Error::new(ErrorKind::Busy, "an open editor buffer changed since it was read; nothing was written")
        .with_next_step("call again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rolled_back_changes_restore_unmodified_buffers_only() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(crate::schema::TABLES).unwrap();
        let caller = BufferCaller { owner: "user:ann".into(), session: "s".into(), process: "p".into(), now_ms: 1 };
        let path = RelPath::from_wire("a.txt").unwrap();
        let base = Some(Version::hash_bytes(b"saved"));
        let request = BufferStoreRequest::Open {
            path,
            text: b"typed".to_vec(),
            base,
            line_endings: BufferLineEndings::SameAsFile,
            replaced_drafts: Vec::new(),
        };
        let opened = write_buffer(&connection, &request, &caller, 1).unwrap().unwrap();
        let step = |revision: u64, text: &[u8]| PlannedBufferChange {
            id: opened.id.clone(),
            expected_revision: revision,
            kind: PlannedBufferChangeKind::ReplaceText { text: text.to_vec(), base: Version::hash_bytes(b"new") },
        };
        update_buffers(&connection, &[step(1, b"typed by both")], 2, 2).unwrap();
        assert!(buffers_changed(&connection, &[step(1, b"late")]).unwrap().is_some(), "it has another revision now");
        restore_buffers(&connection, 2).unwrap();
        let back = load_buffer(&connection, &opened.id).unwrap().unwrap();
        assert_eq!((back.version, back.base, back.revision), (opened.version, opened.base, 3));
        update_buffers(&connection, &[step(3, b"again")], 4, 4).unwrap();
        let request = BufferStoreRequest::Change {
            id: opened.id.clone(),
            revision: 4,
            text: b"again and more".to_vec(),
            base: opened.base,
            line_endings: BufferLineEndings::SameAsFile,
        };
        write_buffer(&connection, &request, &caller, 5).unwrap();
        restore_buffers(&connection, 4).unwrap();
        let kept = load_buffer(&connection, &opened.id).unwrap().unwrap();
        assert_eq!(kept.version, Version::hash_bytes(b"again and more"));
    }
}
