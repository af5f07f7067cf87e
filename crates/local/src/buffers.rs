//! Open buffers and drafts. Kept in the store, each change in one transaction with the entry that records it; what a
//! commit does to them is in the transaction of the commit.
//!
//! A buffer belongs to the connection that opened it, or to the process where that has only one client. Each holds a lock
//! as long as it lives (`lives.rs`), and what it had open is a draft from then on: nobody has to notice for that.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use engine::{
    Becomes, Buffer, BufferAsk, BufferStep, BufferText, Buffers, Committed, Endings, Failure, Kind, Record,
    Standing, Version, limits,
};
use journal::Link;
use path::RelPath;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    group::{Outcome, Work},
    open::LocalWorkspace,
    store::{self, Sync, digest, sql},
};

const HEAD: &str = "id, path, owner, session, process, revision, version, length(text), base, endings, held_revision, \
                    changed_ms";

impl Buffers for LocalWorkspace {
    fn buffers(&self) -> Result<Vec<Buffer>, Failure> {
        let rows: Vec<(Buffer, String)> = self.store.look(|connection| {
            connection
                .prepare_cached(&format!("SELECT {HEAD} FROM buffers ORDER BY path, id"))?
                .query_map([], head)?
                .collect()
        })?;
        let mut standings: HashMap<String, Standing> = HashMap::new();
        let mut buffers = Vec::with_capacity(rows.len());
        for (mut buffer, process) in rows {
            buffer.standing = match standings.get(&process) {
                Some(standing) => *standing,
                None => self.lives.standing(&process)?,
            };
            standings.insert(process, buffer.standing);
            buffers.push(buffer);
        }
        Ok(buffers)
    }

    fn buffer_text(&self, id: &str) -> Result<Option<BufferText>, Failure> {
        let found = self.store.look(|connection| {
            connection
                .prepare_cached(&format!("SELECT {HEAD}, text, held FROM buffers WHERE id = ?1"))?
                .query_row(params![id], |row| Ok((head(row)?, row.get(12)?, row.get(13)?)))
                .optional()
        })?;
        let Some(((mut buffer, process), text, held)) = found else { return Ok(None) };
        buffer.standing = self.lives.standing(&process)?;
        Ok(Some(BufferText { buffer, text, held }))
    }

    fn change_buffer(&self, ask: &BufferAsk, record: &Record<'_>) -> Result<(Buffer, Committed), Failure> {
        // Looked up before the transaction, which must not wait for anything: a process that lives now and dies meanwhile
        // is one that lived.
        let known = self.buffers()?;
        let who = Who {
            owner: record.caller.principal.to_string(),
            session: record.caller.session.clone(),
            process: self.lives.show(&record.caller.presence)?,
            now_ms: self.clock.now().wall_ms,
        };
        let mut draft = self.draft(record, Vec::new(), Link::None, 0);
        let answer = Arc::new(Mutex::new(None));
        let (filled, ask) = (Arc::clone(&answer), ask.clone());
        let work: Work = Box::new(move |transaction, tip| {
            if let Err(failure) = judge(transaction, &ask, &who, &known)? {
                return Ok(Outcome::Refused(failure));
            }
            store::append(transaction, tip, &mut draft)?;
            *store::hold(&filled) = write(transaction, &ask, &who, draft.entry.number)?;
            Ok(crate::commit::recorded(&draft, tip))
        });
        // What is typed is still in the editor: it need not survive a power cut before the next key.
        let outcome = self.group.submit(&self.store, self.durability, Sync::Later, work)?;
        let buffer = store::hold(&answer).take();
        match (outcome, buffer) {
            (Outcome::Recorded(number, hash), Some(buffer)) => {
                self.announce();
                Ok((buffer, Committed { number, hash, trash: Vec::new(), notices: Vec::new() }))
            }
            (Outcome::Refused(failure), _) => Err(failure),
            (Outcome::Recorded(..) | Outcome::Replayed(_), _) => {
                Err(Failure::new(Kind::AuditUnavailable, "the buffer was not recorded"))
            }
        }
    }
}

/// Who asks, as a transaction needs it.
struct Who {
    owner: String,
    session: String,
    process: String,
    now_ms: i64,
}

fn head(row: &Row<'_>) -> rusqlite::Result<(Buffer, String)> {
    let malformed = || rusqlite::Error::InvalidQuery;
    let path: String = row.get(1)?;
    let version: Vec<u8> = row.get(6)?;
    let base: Option<Vec<u8>> = row.get(8)?;
    let buffer = Buffer {
        id: row.get(0)?,
        path: RelPath::from_wire(&path).map_err(|_| malformed())?,
        owner: row.get(2)?,
        session: row.get(3)?,
        standing: Standing::Here,
        revision: row.get::<_, i64>(5)?.unsigned_abs(),
        version: Version(digest(&version).ok_or_else(malformed)?),
        size: row.get::<_, i64>(7)?.unsigned_abs(),
        base: base.map(|base| digest(&base).map(Version).ok_or_else(malformed)).transpose()?,
        endings: if row.get(9)? { Endings::LineFeed } else { Endings::OfFile },
        held_revision: row.get::<_, i64>(10)?.unsigned_abs(),
        changed_ms: row.get(11)?,
    };
    Ok((buffer, row.get(4)?))
}

fn one(connection: &Connection, id: &str) -> rusqlite::Result<Option<Buffer>> {
    let found = connection
        .prepare_cached(&format!("SELECT {HEAD} FROM buffers WHERE id = ?1"))?
        .query_row(params![id], head)
        .optional()?;
    Ok(found.map(|(buffer, _)| buffer))
}

/// Judges an ask inside the transaction. Which processes live was looked up before: `known`.
fn judge(
    connection: &Connection,
    ask: &BufferAsk,
    who: &Who,
    known: &[Buffer],
) -> rusqlite::Result<Result<(), Failure>> {
    let is_dead = |id: &str| known.iter().any(|buffer| buffer.id == id && !buffer.is_live());
    let taken = |path: &RelPath| -> rusqlite::Result<Result<(), Failure>> {
        let mut statement = connection.prepare_cached("SELECT id FROM buffers WHERE path = ?1")?;
        let mut ids = statement.query_map(params![path.to_string()], |row| row.get::<_, String>(0))?;
        // One that was opened a moment ago is not known yet, and lives.
        let live = ids.any(|id| id.is_ok_and(|id| !is_dead(&id)));
        let open = || Failure::new(Kind::Exists, format!("{path} is open in another editor"));
        Ok(if live { Err(open().hint("close it there first")) } else { Ok(()) })
    };
    let Some(id) = id_of(ask) else {
        let BufferAsk::Open { path, text, instead_of, .. } = ask else { return Ok(Ok(())) };
        if let Err(failure) = taken(path)? {
            return Ok(Err(failure));
        }
        return room(connection, who, text.len() as u64, instead_of);
    };
    let Some(buffer) = one(connection, id)? else {
        return Ok(Err(Failure::new(Kind::NotFound, format!("there is no buffer {id}"))));
    };
    match ask {
        BufferAsk::TakeUp { .. } => taken(&buffer.path),
        BufferAsk::Change { revision, .. } if buffer.revision != *revision => Ok(Err(busy())),
        BufferAsk::Change { text, .. } => {
            room(connection, who, (text.len() as u64).saturating_sub(buffer.size), &[])
        }
        BufferAsk::Close { .. } | BufferAsk::Open { .. } => Ok(Ok(())),
    }
}

fn id_of(ask: &BufferAsk) -> Option<&str> {
    match ask {
        BufferAsk::TakeUp { id } | BufferAsk::Change { id, .. } | BufferAsk::Close { id } => Some(id),
        BufferAsk::Open { .. } => None,
    }
}

/// Whether a principal may keep so many bytes more, in the place of these.
fn room(
    connection: &Connection,
    who: &Who,
    bytes: u64,
    instead_of: &[String],
) -> rusqlite::Result<Result<(), Failure>> {
    let (count, size): (i64, i64) = connection
        .prepare_cached("SELECT count(*), coalesce(sum(length(text)), 0) FROM buffers WHERE owner = ?1")?
        .query_row(params![who.owner], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let full = count.unsigned_abs().saturating_sub(instead_of.len() as u64)
        >= limits::BUFFERS_PER_PRINCIPAL_MAX as u64
        || size.unsigned_abs().saturating_add(bytes) > limits::BUFFERS_BYTES_MAX;
    let failure = || {
        Failure::new(Kind::TooMany, "you have too many buffers and drafts")
            .hint("call buffer.list, and buffer.drop on drafts that you no longer need")
    };
    Ok(if full { Err(failure()) } else { Ok(()) })
}

fn write(
    connection: &Connection,
    ask: &BufferAsk,
    who: &Who,
    number: u64,
) -> rusqlite::Result<Option<Buffer>> {
    match ask {
        BufferAsk::Open { path, text, base, endings, instead_of } => {
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
                    who.owner,
                    who.session,
                    who.process,
                    bytes(&Version::of(text)),
                    base.as_ref().map(bytes),
                    *endings == Endings::LineFeed,
                    who.now_ms,
                    text
                ])?;
            one(connection, &id)
        }
        BufferAsk::TakeUp { id } => {
            connection
                .prepare_cached(
                    "UPDATE buffers SET process = ?2, session = ?3, revision = revision + 1,
                     held_revision = revision + 1, held = text WHERE id = ?1",
                )?
                .execute(params![id, who.process, who.session])?;
            one(connection, id)
        }
        BufferAsk::Change { id, text, base, endings, .. } => {
            connection
                .prepare_cached(
                    "UPDATE buffers SET revision = revision + 1, held_revision = revision + 1, version = ?2, base = ?3,
                     endings = ?4, changed_ms = ?5, text = ?6, held = ?6, moved_by = NULL, before_text = NULL
                     WHERE id = ?1",
                )?
                .execute(params![
                    id,
                    bytes(&Version::of(text)),
                    base.as_ref().map(bytes),
                    *endings == Endings::LineFeed,
                    who.now_ms,
                    text
                ])?;
            one(connection, id)
        }
        BufferAsk::Close { id } => {
            let buffer = one(connection, id)?;
            connection.prepare_cached("DELETE FROM buffers WHERE id = ?1")?.execute(params![id])?;
            Ok(buffer)
        }
    }
}

fn bytes(version: &Version) -> Vec<u8> {
    version.0.as_bytes().to_vec()
}

/// The failure of a plan whose buffers are no longer what it was made from.
pub(crate) fn moved_on(connection: &Connection, steps: &[BufferStep]) -> rusqlite::Result<Option<Failure>> {
    for step in steps {
        if one(connection, &step.id)?.is_none_or(|buffer| buffer.revision != step.revision) {
            return Ok(Some(busy()));
        }
    }
    Ok(None)
}

/// Does to the buffers what a plan says, and remembers how they were in case it does not come true.
pub(crate) fn follow(
    connection: &Connection,
    steps: &[BufferStep],
    number: u64,
    now_ms: i64,
) -> rusqlite::Result<()> {
    for step in steps {
        connection
            .prepare_cached(
                "UPDATE buffers SET moved_by = ?2, before_path = path, before_version = version, before_base = base,
                 before_text = text WHERE id = ?1",
            )?
            .execute(params![step.id, sql(number)])?;
        match &step.becomes {
            Becomes::Text { text, base } => connection
                .prepare_cached(
                    "UPDATE buffers SET revision = revision + 1, version = ?2, base = ?3, changed_ms = ?4, text = ?5
                     WHERE id = ?1",
                )?
                .execute(params![step.id, bytes(&Version::of(text)), bytes(base), now_ms, text])?,
            Becomes::Saved { base } => connection
                .prepare_cached("UPDATE buffers SET base = ?2 WHERE id = ?1")?
                .execute(params![step.id, bytes(base)])?,
            Becomes::Moved(to) => connection
                .prepare_cached("UPDATE buffers SET path = ?2 WHERE id = ?1")?
                .execute(params![step.id, to.to_string()])?,
        };
    }
    Ok(())
}

/// Puts the buffers back that followed an entry which did not come true, unless somebody has typed since.
pub(crate) fn take_back(connection: &Connection, number: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE buffers SET revision = revision + 1, path = before_path, version = before_version,
             base = before_base, text = before_text, moved_by = NULL, before_text = NULL
             WHERE moved_by = ?1 AND before_text IS NOT NULL",
        )?
        .execute(params![number])?;
    Ok(())
}

fn busy() -> Failure {
    Failure::new(Kind::Busy, "the text of an editor changed meanwhile; nothing was changed")
        .hint("call again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_does_not_come_true_is_taken_back_unless_somebody_typed_since() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(crate::schema::TABLES).unwrap();
        let who = Who { owner: "user:ann".into(), session: "s".into(), process: "p".into(), now_ms: 1 };
        let path = RelPath::from_wire("a.txt").unwrap();
        let base = Some(Version::of(b"saved"));
        let ask = BufferAsk::Open {
            path,
            text: b"typed".to_vec(),
            base,
            endings: Endings::OfFile,
            instead_of: Vec::new(),
        };
        let opened = write(&connection, &ask, &who, 1).unwrap().unwrap();
        let step = |revision: u64, text: &[u8]| BufferStep {
            id: opened.id.clone(),
            revision,
            becomes: Becomes::Text { text: text.to_vec(), base: Version::of(b"new") },
        };
        follow(&connection, &[step(1, b"typed by both")], 2, 2).unwrap();
        assert!(moved_on(&connection, &[step(1, b"late")]).unwrap().is_some(), "it has another revision now");
        take_back(&connection, 2).unwrap();
        let back = one(&connection, &opened.id).unwrap().unwrap();
        assert_eq!((back.version, back.base, back.revision), (opened.version, opened.base, 3));
        follow(&connection, &[step(3, b"again")], 4, 4).unwrap();
        let ask = BufferAsk::Change {
            id: opened.id.clone(),
            revision: 4,
            text: b"again and more".to_vec(),
            base: opened.base,
            endings: Endings::OfFile,
        };
        write(&connection, &ask, &who, 5).unwrap();
        take_back(&connection, 4).unwrap();
        let kept = one(&connection, &opened.id).unwrap().unwrap();
        assert_eq!(kept.version, Version::of(b"again and more"));
    }
}
