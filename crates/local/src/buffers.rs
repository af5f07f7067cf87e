//! Stores the open buffers and drafts of editors. A change of a buffer is stored in the same transaction as the journal
//! entry that records it.
//!
//! The owner of a buffer is the connection, or the process with a single client, that opened the buffer. A living owner
//! of a buffer holds a liveness lock (`path_locks.rs`). A buffer counts as a draft once the liveness lock of its owner
//! is free.

use std::collections::HashMap;

use rusqlite::{Connection, Row, params};
use stead_engine::{
    BufferEditorConnectionState, BufferStore, BufferStoreRequest, BufferWithText, CommitReceipt, EditorBufferMetadata,
    EditorSentTextLineEndings, Error, ErrorKind, JournalCallRecord, NextStep, PlannedBufferChange,
    PlannedBufferChangeKind, Version, limits, ops::BufferListArgs,
};
use stead_path::RelPath;

use crate::{
    group_commit::TransactionError,
    open::LocalWorkspace,
    store::{
        TransactionSyncPolicy, digest_at, digest_from_bytes, execute_cached, number_at, path_at, query_optional,
        to_sql_integer,
    },
};

const BUFFER_COLUMNS: &str = "id, path, owner, session, process, revision, version, length(text), base, endings, held_revision, \
                    changed_ms";

impl BufferStore for LocalWorkspace {
    fn buffers(&self) -> Result<Vec<EditorBufferMetadata>, Error> {
        let sql = format!("SELECT {BUFFER_COLUMNS} FROM buffers ORDER BY path, id");
        let rows = self.store.query_rows(&sql, [], buffer_from_row)?;
        let mut states: HashMap<String, BufferEditorConnectionState> = HashMap::new();
        let mut buffers = Vec::with_capacity(rows.len());
        for (mut buffer, process) in rows {
            buffer.open_state = match states.get(&process) {
                Some(state) => *state,
                None => self.liveness.liveness_of(&process)?,
            };
            states.insert(process, buffer.open_state);
            buffers.push(buffer);
        }
        Ok(buffers)
    }

    fn buffer_text(&self, id: &str) -> Result<Option<BufferWithText>, Error> {
        let sql = format!("SELECT {BUFFER_COLUMNS}, text, held FROM buffers WHERE id = ?1");
        let read = |row: &Row<'_>| Ok((buffer_from_row(row)?, row.get(12)?, row.get(13)?));
        let found = self.store.query_optional(&sql, params![id], read)?;
        let Some(((mut buffer, process), text, editor_text)) = found else { return Ok(None) };
        buffer.open_state = self.liveness.liveness_of(&process)?;
        Ok(Some(BufferWithText { buffer, text, editor_text }))
    }

    fn execute_buffer_request(
        &self,
        request: &BufferStoreRequest,
        record: &JournalCallRecord<'_>,
    ) -> Result<(EditorBufferMetadata, CommitReceipt), Error> {
        // The transaction must not wait for locks, so the liveness of the buffers' owners is read before it. An owner
        // that dies after this read still counts as alive.
        let known = self.buffers()?;
        let caller = BufferCaller {
            owner: record.caller.principal.to_string(),
            session: record.caller.session.clone(),
            process: self.liveness.register(&record.caller.lifetime)?,
            now_ms: self.clock.now().wall_ms,
        };
        let (draft, request) = (self.pending_entry_without_changes(record), request.clone());
        // The editor still has the text, so the stored text need not survive a power cut.
        self.append_with_result(draft, TransactionSyncPolicy::Later, move |transaction, append| {
            check_buffer_request(transaction, &request, &caller, &known)?;
            let number = append()?;
            Ok(write_buffer(transaction, &request, &caller, number)?)
        })
    }
}

struct BufferCaller {
    owner: String,
    session: String,
    process: String,
    now_ms: i64,
}

fn buffer_from_row(row: &Row<'_>) -> rusqlite::Result<(EditorBufferMetadata, String)> {
    let base: Option<Vec<u8>> = row.get(8)?;
    let malformed = || rusqlite::Error::InvalidQuery;
    let buffer = EditorBufferMetadata {
        id: row.get(0)?,
        path: path_at(row, 1)?,
        owner: row.get(2)?,
        session: row.get(3)?,
        open_state: BufferEditorConnectionState::OpenHere,
        revision: number_at(row, 5)?,
        version: Version(digest_at(row, 6)?),
        size: number_at(row, 7)?,
        base: base.map(|base| digest_from_bytes(&base).map(Version).ok_or_else(malformed)).transpose()?,
        line_endings: if row.get(9)? {
            EditorSentTextLineEndings::LfOnly
        } else {
            EditorSentTextLineEndings::SameAsFile
        },
        editor_revision: number_at(row, 10)?,
        changed_ms: row.get(11)?,
    };
    Ok((buffer, row.get(4)?))
}

fn load_buffer(connection: &Connection, id: &str) -> rusqlite::Result<Option<EditorBufferMetadata>> {
    let sql = format!("SELECT {BUFFER_COLUMNS} FROM buffers WHERE id = ?1");
    Ok(query_optional(connection, &sql, params![id], buffer_from_row)?.map(|(buffer, _)| buffer))
}

/// The list `known` says which buffers had a living owner before the transaction began.
fn check_buffer_request(
    connection: &Connection,
    request: &BufferStoreRequest,
    caller: &BufferCaller,
    known: &[EditorBufferMetadata],
) -> Result<(), TransactionError> {
    let is_dead = |id: &str| known.iter().any(|buffer| buffer.id == id && !buffer.is_open());
    let check_not_open = |path: &RelPath| -> Result<(), TransactionError> {
        let mut statement = connection.prepare_cached("SELECT id FROM buffers WHERE path = ?1")?;
        let mut ids = statement.query_map(params![path.to_string()], |row| row.get::<_, String>(0))?;
        // A buffer that was opened after `known` was read counts as open.
        let is_open = ids.any(|id| id.is_ok_and(|id| !is_dead(&id)));
        let error = || Error::new(ErrorKind::Exists, format!("{path} is open in another editor"));
        if is_open { Err(error().with_next_step("close it there first").into()) } else { Ok(()) }
    };
    let id = match request {
        BufferStoreRequest::Open { path, text, replaced_drafts, .. } => {
            check_not_open(path)?;
            return check_buffer_quota(connection, caller, text.len() as u64, replaced_drafts);
        }
        BufferStoreRequest::ResumeDraft { id }
        | BufferStoreRequest::Change { id, .. }
        | BufferStoreRequest::Close { id } => id,
    };
    let closed = || {
        Error::new(ErrorKind::NotFound, format!("buffer {id} is no longer open")).with_next_step("open the file again")
    };
    let buffer = load_buffer(connection, id)?.ok_or_else(closed)?;
    match request {
        BufferStoreRequest::ResumeDraft { .. } => check_not_open(&buffer.path),
        BufferStoreRequest::Change { revision, .. } if buffer.revision != *revision => {
            Err(buffer_changed_error().into())
        }
        BufferStoreRequest::Change { text, .. } => {
            let growth = (text.len() as u64).saturating_sub(buffer.size);
            check_buffer_quota(connection, caller, growth, std::slice::from_ref(id))
        }
        BufferStoreRequest::Close { .. } | BufferStoreRequest::Open { .. } => Ok(()),
    }
}

/// The limit on the number of buffers does not count the buffers in `replaced`.
fn check_buffer_quota(
    connection: &Connection,
    caller: &BufferCaller,
    bytes: u64,
    replaced: &[String],
) -> Result<(), TransactionError> {
    let (count, size): (i64, i64) = connection
        .prepare_cached("SELECT count(*), coalesce(sum(length(text)), 0) FROM buffers WHERE owner = ?1")?
        .query_row(params![caller.owner], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let remaining = count.unsigned_abs().saturating_sub(replaced.len() as u64);
    let size = size.unsigned_abs().saturating_add(bytes);
    if remaining < limits::BUFFERS_PER_PRINCIPAL_MAX as u64 && size <= limits::BUFFERS_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(ErrorKind::TooMany, "you have too many buffers and drafts").with_next_step(
        NextStep::call(BufferListArgs::default(), "find drafts that you no longer need").then("drop them"),
    ))?
}

fn write_buffer(
    connection: &Connection,
    request: &BufferStoreRequest,
    caller: &BufferCaller,
    number: u64,
) -> rusqlite::Result<Option<EditorBufferMetadata>> {
    match request {
        BufferStoreRequest::Open { path, text, base, line_endings, replaced_drafts } => {
            for draft in replaced_drafts {
                execute_cached(connection, "DELETE FROM buffers WHERE id = ?1", params![draft])?;
            }
            let id = format!("b{number}");
            let sql = "INSERT INTO buffers VALUES
                       (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, 1, ?9, ?10, ?10, NULL, NULL, NULL, NULL, NULL)";
            let BufferCaller { owner, session, process, now_ms } = caller;
            let (version, base) = (bytes(&Version::hash_bytes(text)), base.as_ref().map(bytes));
            let lf_only = *line_endings == EditorSentTextLineEndings::LfOnly;
            let values = params![id, path.to_string(), owner, session, process, version, base, lf_only, now_ms, text];
            execute_cached(connection, sql, values)?;
            load_buffer(connection, &id)
        }
        BufferStoreRequest::ResumeDraft { id } => {
            let sql = "UPDATE buffers SET process = ?2, session = ?3, revision = revision + 1,
                       held_revision = revision + 1, held = text WHERE id = ?1";
            execute_cached(connection, sql, params![id, caller.process, caller.session])?;
            load_buffer(connection, id)
        }
        BufferStoreRequest::Change { id, text, base, line_endings, .. } => {
            let sql =
                "UPDATE buffers SET revision = revision + 1, held_revision = revision + 1, version = ?2, base = ?3,
                       endings = ?4, changed_ms = ?5, text = ?6, held = ?6, moved_by = NULL, before_text = NULL
                       WHERE id = ?1";
            let (version, base) = (bytes(&Version::hash_bytes(text)), base.as_ref().map(bytes));
            let lf_only = *line_endings == EditorSentTextLineEndings::LfOnly;
            execute_cached(connection, sql, params![id, version, base, lf_only, caller.now_ms, text])?;
            load_buffer(connection, id)
        }
        BufferStoreRequest::Close { id } => {
            let buffer = load_buffer(connection, id)?;
            execute_cached(connection, "DELETE FROM buffers WHERE id = ?1", params![id])?;
            Ok(buffer)
        }
    }
}

fn bytes(version: &Version) -> Vec<u8> {
    version.0.as_bytes().to_vec()
}

pub(crate) fn check_buffers_unchanged(
    connection: &Connection,
    changes: &[PlannedBufferChange],
) -> Result<(), TransactionError> {
    for change in changes {
        if load_buffer(connection, &change.id)?.is_none_or(|buffer| buffer.revision != change.expected_revision) {
            return Err(buffer_changed_error().into());
        }
    }
    Ok(())
}

/// The database row of a changed buffer keeps the buffer's previous state for a rollback.
pub(crate) fn update_buffers(
    connection: &Connection,
    changes: &[PlannedBufferChange],
    number: u64,
    now_ms: i64,
) -> rusqlite::Result<()> {
    for change in changes {
        let sql = "UPDATE buffers SET moved_by = ?2, before_path = path, before_version = version, before_base = base,
                   before_text = text WHERE id = ?1";
        execute_cached(connection, sql, params![change.id, to_sql_integer(number)])?;
        match &change.kind {
            PlannedBufferChangeKind::ReplaceText { text, base } => {
                let sql = "UPDATE buffers SET revision = revision + 1, version = ?2, base = ?3, changed_ms = ?4,
                           text = ?5 WHERE id = ?1";
                let version = bytes(&Version::hash_bytes(text));
                execute_cached(connection, sql, params![change.id, version, bytes(base), now_ms, text])?;
            }
            PlannedBufferChangeKind::MarkSaved { base } => {
                let values = params![change.id, bytes(base)];
                execute_cached(connection, "UPDATE buffers SET base = ?2 WHERE id = ?1", values)?;
            }
            PlannedBufferChangeKind::Rename(to) => {
                let values = params![change.id, to.to_string()];
                execute_cached(connection, "UPDATE buffers SET path = ?2 WHERE id = ?1", values)?;
            }
        }
    }
    Ok(())
}

/// A rollback does not restore a buffer that changed again after the rolled-back journal entry.
pub(crate) fn restore_buffers(connection: &Connection, number: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE buffers SET revision = revision + 1, path = before_path, version = before_version,
               base = before_base, text = before_text, moved_by = NULL, before_text = NULL
               WHERE moved_by = ?1 AND before_text IS NOT NULL";
    execute_cached(connection, sql, params![number])
}

fn buffer_changed_error() -> Error {
    Error::new(ErrorKind::Busy, "an open editor buffer changed since it was read; nothing was written")
        .with_next_step(NextStep::repeat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rolled_back_changes_restore_unmodified_buffers_only() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(crate::store::TABLES).unwrap();
        let caller = BufferCaller { owner: "user:ann".into(), session: "s".into(), process: "p".into(), now_ms: 1 };
        let path = RelPath::from_wire("a.txt").unwrap();
        let base = Some(Version::hash_bytes(b"saved"));
        let request = BufferStoreRequest::Open {
            path,
            text: b"typed".to_vec(),
            base,
            line_endings: EditorSentTextLineEndings::SameAsFile,
            replaced_drafts: Vec::new(),
        };
        let opened = write_buffer(&connection, &request, &caller, 1).unwrap().unwrap();
        let change = |revision: u64, text: &[u8]| PlannedBufferChange {
            id: opened.id.clone(),
            expected_revision: revision,
            kind: PlannedBufferChangeKind::ReplaceText { text: text.to_vec(), base: Version::hash_bytes(b"new") },
        };
        update_buffers(&connection, &[change(1, b"typed by both")], 2, 2).unwrap();
        let late = check_buffers_unchanged(&connection, &[change(1, b"late")]);
        assert!(matches!(late, Err(TransactionError::Refused(_))), "the revision has increased");
        restore_buffers(&connection, 2).unwrap();
        let restored = load_buffer(&connection, &opened.id).unwrap().unwrap();
        assert_eq!((restored.version, restored.base, restored.revision), (opened.version, opened.base, 3));
        update_buffers(&connection, &[change(3, b"again")], 4, 4).unwrap();
        let request = BufferStoreRequest::Change {
            id: opened.id.clone(),
            revision: 4,
            text: b"again and more".to_vec(),
            base: opened.base,
            line_endings: EditorSentTextLineEndings::SameAsFile,
        };
        write_buffer(&connection, &request, &caller, 5).unwrap();
        restore_buffers(&connection, 4).unwrap();
        let changed = load_buffer(&connection, &opened.id).unwrap().unwrap();
        assert_eq!(changed.version, Version::hash_bytes(b"again and more"));
    }
}
