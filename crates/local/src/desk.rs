//! Sessions, alerts, and how full the workspace is. Kept in the store, each change in one transaction with the entry that
//! records it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

use engine::{
    Alert, Committed, Desk, DeskAsk, Desked, Failure, Holding, Kind, Look, Principal, Record, Response,
    Reviewed, Session, Severity, Stock, Tally, TallyOf, Usage, limits,
};
use journal::Link;
use path::RelPath;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    failure,
    group::{Outcome, Work},
    open::LocalWorkspace,
    store::{self, Sync, sql},
};

const SESSION: &str = "SELECT id, principal, face, created_ms, ended_ms, first FROM sessions";
const ALERT: &str =
    "SELECT id, sender, session, severity, message, time_ms, answered_by, answer, answered_ms FROM alerts";

impl Desk for LocalWorkspace {
    fn keep(&self, ask: &DeskAsk, record: &Record<'_>) -> Result<(Desked, Committed), Failure> {
        let now_ms = self.clock.now().wall_ms;
        let who = Who {
            principal: record.caller.principal.to_string(),
            session: record.caller.session.clone(),
            face: record.caller.face,
            now_ms,
        };
        let mut draft = self.draft(record, Vec::new(), Link::None, 0);
        let answer = Arc::new(Mutex::new(None));
        let (filled, ask) = (Arc::clone(&answer), ask.clone());
        let work: Work = Box::new(move |transaction, tip| {
            tidy(transaction, now_ms)?;
            if let Err(failure) = judge(transaction, &ask, &who)? {
                return Ok(Outcome::Refused(failure));
            }
            store::append(transaction, tip, &mut draft)?;
            *store::hold(&filled) = write(transaction, &ask, &who, draft.entry.number)?;
            Ok(crate::commit::recorded(&draft, tip))
        });
        let outcome = self.group.submit(&self.store, self.durability, Sync::Now, work)?;
        let kept = store::hold(&answer).take();
        match (outcome, kept) {
            (Outcome::Recorded(number, hash), Some(kept)) => {
                self.announce();
                Ok((kept, Committed { number, hash, trash: Vec::new(), notices: Vec::new() }))
            }
            (Outcome::Refused(failure), _) => Err(failure),
            (Outcome::Recorded(..) | Outcome::Replayed(_), _) => {
                Err(Failure::new(Kind::AuditUnavailable, "it was not recorded"))
            }
        }
    }

    fn session(&self, id: &str) -> Result<Option<Session>, Failure> {
        self.store.look(|connection| session_by(connection, id))
    }

    fn tally(&self, of: &TallyOf<'_>) -> Result<Tally, Failure> {
        self.flush_if_possible();
        let principal = of.principal.to_string();
        let key = (principal, of.session.to_owned(), of.from_entry);
        let known = store::hold(&self.tallies).get(&key);
        let counted = self.store.look(|connection| count(connection, of, known))?;
        store::hold(&self.tallies).put(key, counted);
        Ok(counted.tally)
    }

    fn reviewed(&self, principal: &str, session: &str) -> Result<Vec<Reviewed>, Failure> {
        self.store.look(|connection| {
            connection
                .prepare_cached(
                    "SELECT path, text FROM reviewed WHERE principal = ?1 AND session = ?2 ORDER BY path",
                )?
                .query_map(params![principal, session], |row| {
                    let path: String = row.get(0)?;
                    let path = RelPath::from_wire(&path).map_err(|_| rusqlite::Error::InvalidQuery)?;
                    Ok(Reviewed { path, text: row.get(1)? })
                })?
                .collect()
        })
    }

    fn alert(&self, id: &str) -> Result<Option<Alert>, Failure> {
        self.store.look(|connection| alert_by(connection, id))
    }

    fn alerts(&self, from: Option<&Principal>, limit: usize) -> Result<Vec<Alert>, Failure> {
        let from = from.map(ToString::to_string);
        self.store.look(|connection| {
            connection
                .prepare_cached(&format!(
                    "{ALERT} WHERE ?1 IS NULL OR sender = ?1 ORDER BY number DESC LIMIT ?2"
                ))?
                .query_map(params![from, sql(limit as u64)], alert)?
                .collect()
        })
    }

    fn usage(&self) -> Result<Usage, Failure> {
        let space = self.root.space().map_err(|error| failure::own(&error))?;
        let (trash_items, trash_bytes, kept_bytes): (i64, i64, i64) = self.store.look(|connection| {
            connection
                .prepare_cached(
                    "SELECT (SELECT COUNT(*) FROM trash WHERE state = 0),
                     (SELECT COALESCE(SUM(size), 0) FROM trash WHERE state = 0),
                     (SELECT COALESCE(SUM(size), 0) FROM kept)",
                )?
                .query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        })?;
        Ok(Usage {
            total_bytes: space.total_bytes,
            free_bytes: space.free_bytes,
            trash_items: trash_items.unsigned_abs(),
            trash_bytes: trash_bytes.unsigned_abs(),
            kept_bytes: kept_bytes.unsigned_abs(),
            kept_bytes_max: self.kept_bytes_max,
        })
    }

    fn holding(&self, principal: &Principal, look: Look) -> Result<Option<Holding>, Failure> {
        self.holding_of(principal, look)
    }

    fn held_before(&self, number: u64) -> Result<Option<Stock>, Failure> {
        self.stock_before(number)
    }

    fn history_bytes(&self, principal: &Principal) -> Result<u64, Failure> {
        self.history_of(principal)
    }
}

/// What was counted of a session, up to an entry.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counted {
    tally: Tally,
    upto: u64,
}

/// Whose calls: principal, session, first entry.
type Counting = (String, String, u64);

/// What has been counted lately, so that asking again looks only at what is new. The oldest is forgotten first.
#[derive(Default)]
pub(crate) struct Tallies {
    known: HashMap<Counting, Counted>,
    order: VecDeque<Counting>,
}

impl Tallies {
    fn get(&self, of: &Counting) -> Counted {
        self.known.get(of).copied().unwrap_or_default()
    }

    fn put(&mut self, of: Counting, counted: Counted) {
        if self.known.insert(of.clone(), counted).is_some() {
            return;
        }
        self.order.push_back(of);
        if self.order.len() > TALLIES_KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// Sessions whose count is remembered.
const TALLIES_KNOWN: usize = 256;

/// Counts on from what is known.
fn count(connection: &Connection, of: &TallyOf<'_>, known: Counted) -> rusqlite::Result<Counted> {
    let mut counted = known;
    let mut statement = connection.prepare_cached(
        "SELECT number, bytes, principal FROM entries WHERE number >= ?1 AND number > ?2 ORDER BY number",
    )?;
    let mut rows = statement.query(params![sql(of.from_entry), sql(known.upto)])?;
    let principal = of.principal.to_string();
    while let Some(row) = rows.next()? {
        counted.upto = row.get::<_, i64>(0)?.unsigned_abs();
        if row.get_ref(2)?.as_str()? != principal {
            continue;
        }
        if let Ok(entry) = journal::decode(row.get_ref(1)?.as_blob()?)
            && entry.caller.session == of.session
        {
            counted.tally.add(&entry);
        }
    }
    Ok(counted)
}

/// Who asks, as a transaction needs it.
struct Who {
    principal: String,
    session: String,
    face: &'static str,
    now_ms: i64,
}

/// Lets go of what has been over for long.
fn tidy(connection: &Connection, now_ms: i64) -> rusqlite::Result<()> {
    let before = now_ms.saturating_sub(limits::DESK_KEPT_MS);
    connection.prepare_cached("DELETE FROM sessions WHERE ended_ms < ?1")?.execute(params![before])?;
    connection.prepare_cached("DELETE FROM alerts WHERE answered_ms < ?1")?.execute(params![before])?;
    Ok(())
}

fn judge(connection: &Connection, ask: &DeskAsk, who: &Who) -> rusqlite::Result<Result<(), Failure>> {
    let open = |query: &str| -> rusqlite::Result<usize> {
        let count: i64 =
            connection.prepare_cached(query)?.query_row(params![who.principal], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    };
    Ok(match ask {
        DeskAsk::Begin => bounded(
            open("SELECT COUNT(*) FROM sessions WHERE principal = ?1 AND ended_ms IS NULL")?,
            limits::SESSIONS_OPEN_MAX,
            "you have too many open sessions",
        ),
        DeskAsk::Alert { .. } => bounded(
            open("SELECT COUNT(*) FROM alerts WHERE sender = ?1 AND answered_ms IS NULL")?,
            limits::ALERTS_OPEN_MAX,
            "too many of your alerts wait for an answer",
        ),
        DeskAsk::Reviewed { .. } | DeskAsk::Turn => Ok(()),
        DeskAsk::End { session } => match session_by(connection, session)? {
            Some(open) if open.ended_ms.is_none() => Ok(()),
            Some(_) | None => Err(Failure::new(Kind::NothingToDo, "the session has ended already")),
        },
        DeskAsk::Answer { alert, .. } => match alert_by(connection, alert)? {
            Some(open) if open.answer.is_none() => Ok(()),
            Some(_) | None => Err(Failure::new(Kind::Exists, "the alert was answered already")),
        },
    })
}

fn bounded(count: usize, most: usize, detail: &str) -> Result<(), Failure> {
    if count >= most { Err(Failure::new(Kind::TooMany, detail)) } else { Ok(()) }
}

fn write(connection: &Connection, ask: &DeskAsk, who: &Who, number: u64) -> rusqlite::Result<Option<Desked>> {
    match ask {
        DeskAsk::Begin => {
            let id = format!("s{number}");
            connection
                .prepare_cached("INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, NULL, ?5)")?
                .execute(params![id, who.principal, who.face, who.now_ms, sql(number)])?;
            Ok(session_by(connection, &id)?.map(Desked::Session))
        }
        DeskAsk::End { session } => {
            connection
                .prepare_cached("UPDATE sessions SET ended_ms = ?2 WHERE id = ?1")?
                .execute(params![session, who.now_ms])?;
            Ok(session_by(connection, session)?.map(Desked::Session))
        }
        DeskAsk::Alert { severity, message } => {
            let id = format!("a{number}");
            connection
                .prepare_cached("INSERT INTO alerts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, NULL, NULL)")?
                .execute(params![
                    id,
                    sql(number),
                    who.principal,
                    who.session,
                    severity.word(),
                    message,
                    who.now_ms
                ])?;
            Ok(alert_by(connection, &id)?.map(Desked::Alert))
        }
        DeskAsk::Reviewed { principal, session, kept } => {
            let mut statement =
                connection.prepare_cached("INSERT OR REPLACE INTO reviewed VALUES (?1, ?2, ?3, ?4, ?5)")?;
            for Reviewed { path, text } in kept {
                statement.execute(params![principal, session, path.to_string(), sql(number), text])?;
            }
            Ok(Some(Desked::Noted))
        }
        DeskAsk::Turn => Ok(Some(Desked::Noted)),
        DeskAsk::Answer { alert, text } => {
            connection
                .prepare_cached(
                    "UPDATE alerts SET answered_by = ?2, answer = ?3, answered_ms = ?4 WHERE id = ?1",
                )?
                .execute(params![alert, who.principal, text, who.now_ms])?;
            Ok(alert_by(connection, alert)?.map(Desked::Alert))
        }
    }
}

fn session_by(connection: &Connection, id: &str) -> rusqlite::Result<Option<Session>> {
    connection.prepare_cached(&format!("{SESSION} WHERE id = ?1"))?.query_row(params![id], session).optional()
}

fn session(row: &Row<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
        id: row.get(0)?,
        principal: row.get(1)?,
        face: row.get(2)?,
        created_ms: row.get(3)?,
        ended_ms: row.get(4)?,
        first: row.get::<_, i64>(5)?.unsigned_abs(),
    })
}

fn alert_by(connection: &Connection, id: &str) -> rusqlite::Result<Option<Alert>> {
    connection.prepare_cached(&format!("{ALERT} WHERE id = ?1"))?.query_row(params![id], alert).optional()
}

fn alert(row: &Row<'_>) -> rusqlite::Result<Alert> {
    let severity: String = row.get(3)?;
    let answer = match (row.get(6)?, row.get(7)?, row.get(8)?) {
        (Some(by), Some(text), Some(time_ms)) => Some(Response { by, text, time_ms }),
        (_, _, _) => None,
    };
    Ok(Alert {
        id: row.get(0)?,
        from: row.get(1)?,
        session: row.get(2)?,
        severity: severity.parse().unwrap_or(Severity::Info),
        message: row.get(4)?,
        time_ms: row.get(5)?,
        answer,
    })
}
