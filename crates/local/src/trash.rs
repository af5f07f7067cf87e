//! The trash: removed things, by rename, per principal, until their time is up. Only the server empties it, and not
//! while the clock cannot be trusted.

use engine::{Failure, Principal, Top, Trashed, Tree};
use journal::{Entry, Link};
use path::{Name, RelPath};
use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};

use crate::{
    clock::Moment,
    failure,
    group::{Outcome, Work},
    open::LocalWorkspace,
    stage::Trashing,
    store::{self, Sync, sql},
};

/// A wall clock that ran this much ahead of the uptime clock has been set, not waited for.
const CLOCK_JUMP_MS: i64 = 60 * 60 * 1000;
/// Items emptied in one round.
const EMPTY_BATCH: usize = 64;

/// A new, unguessable id.
pub(crate) fn new_id() -> Result<String, disk::DiskError> {
    let bytes: [u8; 10] = disk::random_bytes()?;
    Ok(bytes.iter().fold("t".to_owned(), |mut id, byte| {
        id.push_str(&format!("{byte:02x}"));
        id
    }))
}

/// One item as the database takes it.
pub(crate) struct Row {
    id: String,
    path: String,
    tree: Tree,
    keep_until_ms: i64,
}

impl Row {
    pub(crate) fn of(item: &Trashing) -> Self {
        Self {
            id: item.id.clone(),
            path: item.path.to_string(),
            tree: item.tree,
            keep_until_ms: item.keep_until_ms,
        }
    }

    pub(crate) fn insert(&self, transaction: &Connection, entry: &Entry) -> rusqlite::Result<()> {
        transaction
            .prepare_cached("INSERT INTO trash VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0)")?
            .execute(params![
                self.id,
                entry.caller.principal,
                self.path,
                top_number(self.tree.top),
                sql(self.tree.files),
                sql(self.tree.directories),
                sql(self.tree.bytes),
                entry.time_ms,
                self.keep_until_ms,
                sql(entry.number),
            ])?;
        Ok(())
    }
}

impl LocalWorkspace {
    pub(crate) fn trashed_item(&self, id: &str) -> Result<Option<Trashed>, Failure> {
        self.store.look(|connection| {
            connection
                .prepare_cached("SELECT * FROM trash WHERE id = ?1 AND state = 0")?
                .query_row(params![id], trashed)
                .optional()
        })
    }

    pub(crate) fn trash_items(&self, owner: Option<&Principal>) -> Result<Vec<Trashed>, Failure> {
        let owner = owner.map(ToString::to_string);
        self.store.look(|connection| {
            connection
                .prepare_cached("SELECT * FROM trash WHERE state = 0 AND (?1 IS NULL OR owner = ?1) ORDER BY number DESC, id")?
                .query_map(params![owner], trashed)?
                .collect()
        })
    }

    /// Empties what is past its time. Answers how many items went.
    pub fn empty_expired(&self) -> Result<u64, Failure> {
        let now = self.clock.now();
        if self.clock_jumped(&now)? {
            return Ok(0);
        }
        let due: Vec<String> = self.store.look(|connection| {
            connection
                .prepare_cached("SELECT id FROM trash WHERE state = 0 AND keep_until_ms < ?1 ORDER BY keep_until_ms LIMIT ?2")?
                .query_map(params![now.wall_ms, EMPTY_BATCH as i64], |row| row.get(0))?
                .collect()
        })?;
        self.empty(&due)
    }

    /// Empties these items for good.
    pub fn empty(&self, ids: &[String]) -> Result<u64, Failure> {
        if ids.is_empty() {
            return Ok(0);
        }
        let mut draft = self.system_draft("empty_trash", format!("{{\"items\":{}}}", ids.len()), Link::None);
        let gone: Vec<String> = ids.to_vec();
        let work: Work = Box::new(move |transaction, tip| {
            store::append(transaction, tip, &mut draft)?;
            for id in &gone {
                transaction.execute("UPDATE trash SET state = 2 WHERE id = ?1 AND state = 0", params![id])?;
            }
            Ok(Outcome::Recorded(draft.entry.number, tip.hash))
        });
        self.group.submit(&self.store, self.durability, Sync::Now, work)?;
        let mut emptied = 0;
        for id in ids {
            let name = Name::new(id.as_bytes()).map_err(Failure::from)?;
            if let Some(stat) = self.trash_place.stat(&name).map_err(|error| failure::own(&error))? {
                if stat.file_type == disk::FileType::Directory {
                    self.trash_place.remove_tree(&name).map_err(|error| failure::own(&error))?;
                } else {
                    self.trash_place.remove_file(&name).map_err(|error| failure::own(&error))?;
                }
                emptied += 1;
            }
        }
        Ok(emptied)
    }

    /// Writes down what the clocks say when nobody has since the machine started: from then on a jump can be told.
    pub(crate) fn note_clock(&self) -> Result<(), Failure> {
        match self.known_clock()? {
            Some((_, _, boot)) if boot == self.clock.now().boot => Ok(()),
            Some(_) | None => self.trust_clock(),
        }
    }

    fn known_clock(&self) -> Result<Option<(i64, i64, String)>, Failure> {
        self.store.look(|connection| {
            connection
                .prepare_cached("SELECT value FROM meta WHERE name = 'clock'")?
                .query_row([], |row| row.get::<_, String>(0))
                .optional()
                .map(|text| text.and_then(|text| serde_json::from_str(&text).ok()))
        })
    }

    /// Whether the wall clock ran ahead of the uptime clock since it was last looked at, within one start of the
    /// machine. Then nothing is emptied until [`LocalWorkspace::trust_clock`].
    pub(crate) fn clock_jumped(&self, now: &Moment) -> Result<bool, Failure> {
        let known = self.known_clock()?;
        let jumped = known.as_ref().is_some_and(|(wall_ms, uptime_ms, boot)| {
            *boot == now.boot && (now.wall_ms - wall_ms) - (now.uptime_ms - uptime_ms) > CLOCK_JUMP_MS
        });
        if !jumped {
            self.trust_clock()?;
        }
        Ok(jumped)
    }

    /// Takes the present reading of the clock as right.
    pub fn trust_clock(&self) -> Result<(), Failure> {
        let now = self.clock.now();
        let text = serde_json::json!([now.wall_ms, now.uptime_ms, now.boot]).to_string();
        self.store.transact(Sync::Later, self.durability, |transaction| {
            transaction
                .execute("INSERT OR REPLACE INTO meta VALUES ('clock', ?1)", params![text])
                .map_err(|error| failure::store(&error))
        })?;
        Ok(())
    }
}

fn trashed(row: &SqlRow<'_>) -> rusqlite::Result<Trashed> {
    let count = |column: &str| row.get::<_, i64>(column).map(i64::unsigned_abs);
    let path: String = row.get("path")?;
    Ok(Trashed {
        id: row.get("id")?,
        owner: row.get("owner")?,
        path: RelPath::from_wire(&path).map_err(|_| rusqlite::Error::InvalidQuery)?,
        tree: Tree {
            top: top_of(row.get("top")?),
            files: count("files")?,
            directories: count("directories")?,
            bytes: count("size")?,
        },
        removed_ms: row.get("removed_ms")?,
        keep_until_ms: row.get("keep_until_ms")?,
        entry: count("number")?,
    })
}

fn top_number(top: Top) -> i64 {
    match top {
        Top::File => 0,
        Top::Directory => 1,
        Top::Link => 2,
        Top::Special => 3,
    }
}

fn top_of(number: i64) -> Top {
    match number {
        0 => Top::File,
        1 => Top::Directory,
        2 => Top::Link,
        _ => Top::Special,
    }
}
