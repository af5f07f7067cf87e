//! The trash: removed files, moved by rename, per principal, until they expire. Only the server empties it, and not while
//! the clock is suspect.

use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};
use stead_disk::{DirectoryHandle, DiskError, DiskErrorKind, DiskStat, StateError};
use stead_engine::{CommitError, Error, FileKind, Principal, TrashItem, TreeSummary};
use stead_journal::{EntryRelation, JournalEntry, PathState};
use stead_path::{FileName, RelPath};

use crate::{
    clock::ClockReading,
    errors,
    group_commit::{TransactionBody, TransactionOutcome},
    lookup,
    open::LocalWorkspace,
    prepare::PendingTrashItem,
    store::{self, SyncRequirement, to_sql_integer},
};

/// A wall clock this far ahead of the uptime clock was set.
const CLOCK_JUMP_MS: i64 = 60 * 60 * 1000;
const EMPTY_BATCH: usize = 64;

pub(crate) fn new_trash_id() -> Result<String, Error> {
    let bytes: [u8; 10] = crate::random::random_bytes()?;
    Ok(bytes.iter().fold("t".to_owned(), |mut id, byte| {
        id.push_str(&format!("{byte:02x}"));
        id
    }))
}

pub(crate) struct TrashRow {
    id: String,
    path: String,
    tree: TreeSummary,
    keep_until_ms: i64,
}

impl TrashRow {
    pub(crate) fn from_pending(item: &PendingTrashItem) -> Self {
        Self { id: item.id.clone(), path: item.path.to_string(), tree: item.tree, keep_until_ms: item.keep_until_ms }
    }

    pub(crate) fn insert(&self, transaction: &Connection, entry: &JournalEntry) -> rusqlite::Result<()> {
        transaction.prepare_cached("INSERT INTO trash VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0)")?.execute(
            params![
                self.id,
                entry.caller.principal,
                self.path,
                file_type_number(self.tree.kind),
                to_sql_integer(self.tree.files),
                to_sql_integer(self.tree.directories),
                to_sql_integer(self.tree.bytes),
                entry.time_ms,
                self.keep_until_ms,
                to_sql_integer(entry.number),
            ],
        )?;
        Ok(())
    }
}

impl LocalWorkspace {
    pub(crate) fn load_trash_item(&self, id: &str) -> Result<Option<TrashItem>, Error> {
        self.store.run_query(|connection| {
            connection
                .prepare_cached("SELECT * FROM trash WHERE id = ?1 AND state = 0")?
                .query_row(params![id], trash_item_from_row)
                .optional()
        })
    }

    pub(crate) fn trash_items(&self, owner: Option<&Principal>) -> Result<Vec<TrashItem>, Error> {
        let owner = owner.map(ToString::to_string);
        self.store.run_query(|connection| {
            connection
                .prepare_cached(
                    "SELECT * FROM trash WHERE state = 0 AND (?1 IS NULL OR owner = ?1) ORDER BY number DESC, id",
                )?
                .query_map(params![owner], trash_item_from_row)?
                .collect()
        })
    }

    /// Permanently deletes expired items. Returns how many.
    pub fn delete_expired_trash(&self) -> Result<u64, Error> {
        let now = self.clock.now();
        if self.clock_jumped(&now)? {
            return Ok(0);
        }
        let due: Vec<String> = self.store.run_query(|connection| {
            connection
                .prepare_cached(
                    "SELECT id FROM trash WHERE state = 0 AND keep_until_ms < ?1 ORDER BY keep_until_ms LIMIT ?2",
                )?
                .query_map(params![now.wall_ms, EMPTY_BATCH as i64], |row| row.get(0))?
                .collect()
        })?;
        self.delete_trash_items(&due)
    }

    /// Permanently deletes these items.
    pub fn delete_trash_items(&self, ids: &[String]) -> Result<u64, Error> {
        if ids.is_empty() {
            return Ok(0);
        }
        let mut draft =
            self.pending_system_entry("empty_trash", format!("{{\"items\":{}}}", ids.len()), EntryRelation::None);
        let gone: Vec<String> = ids.to_vec();
        let work: TransactionBody = Box::new(move |transaction, tip| {
            store::append_entry(transaction, tip, &mut draft)?;
            for id in &gone {
                transaction.execute("UPDATE trash SET state = 2 WHERE id = ?1 AND state = 0", params![id])?;
            }
            Ok(TransactionOutcome::Recorded(draft.entry.number, tip.hash))
        });
        self.group_commit.submit(&self.store, self.durability, SyncRequirement::Now, work)?;
        let mut emptied = 0;
        for id in ids {
            let name = FileName::new(id.as_bytes()).map_err(Error::from)?;
            emptied += self
                .trash_directory
                .with(|trash| remove_item(trash, &name))
                .map_err(|error| errors::state_directory_error(&error))?;
        }
        Ok(emptied)
    }

    /// Stores the first clock reading after a boot, to detect later jumps.
    pub(crate) fn store_clock_reading(&self) -> Result<(), Error> {
        match self.stored_clock_reading()? {
            Some((_, _, boot)) if boot == self.clock.now().boot_id => Ok(()),
            Some(_) | None => self.accept_clock(),
        }
    }

    fn stored_clock_reading(&self) -> Result<Option<(i64, i64, String)>, Error> {
        self.store.run_query(|connection| {
            connection
                .prepare_cached("SELECT value FROM meta WHERE name = 'clock'")?
                .query_row([], |row| row.get::<_, String>(0))
                .optional()
                .map(|text| text.and_then(|text| serde_json::from_str(&text).ok()))
        })
    }

    /// Whether the wall clock ran ahead of the uptime clock since the last stored reading, within one boot. Then nothing is
    /// deleted until [`LocalWorkspace::accept_clock`].
    pub(crate) fn clock_jumped(&self, now: &ClockReading) -> Result<bool, Error> {
        let known = self.stored_clock_reading()?;
        let jumped = known.as_ref().is_some_and(|(wall_ms, uptime_ms, boot)| {
            *boot == now.boot_id && (now.wall_ms - wall_ms) - (now.uptime_ms - uptime_ms) > CLOCK_JUMP_MS
        });
        if !jumped {
            self.accept_clock()?;
        }
        Ok(jumped)
    }

    /// Accepts the current clock reading as correct.
    pub fn accept_clock(&self) -> Result<(), Error> {
        let now = self.clock.now();
        let text = serde_json::json!([now.wall_ms, now.uptime_ms, now.boot_id]).to_string();
        self.store.run_transaction(SyncRequirement::Later, self.durability, |transaction| {
            transaction
                .execute("INSERT OR REPLACE INTO meta VALUES ('clock', ?1)", params![text])
                .map_err(|error| errors::store_error(&error))
        })?;
        Ok(())
    }
}

fn trash_item_from_row(row: &SqlRow<'_>) -> rusqlite::Result<TrashItem> {
    let count = |column: &str| row.get::<_, i64>(column).map(i64::unsigned_abs);
    let path: String = row.get("path")?;
    Ok(TrashItem {
        id: row.get("id")?,
        owner: row.get("owner")?,
        path: RelPath::from_wire(&path).map_err(|_| rusqlite::Error::InvalidQuery)?,
        summary: TreeSummary {
            kind: file_type_from_number(row.get("top")?),
            files: count("files")?,
            directories: count("directories")?,
            bytes: count("size")?,
        },
        removed_ms: row.get("removed_ms")?,
        retain_until_ms: row.get("keep_until_ms")?,
        entry: count("number")?,
    })
}

/// The type of a trash item and its state once restored. The type is read from the item itself: the row may describe
/// another file.
pub(crate) fn find_item(
    trash: &DirectoryHandle,
    name: &FileName,
    id: &str,
    tree: &TreeSummary,
) -> Result<Option<(DiskStat, PathState)>, DiskError> {
    let Some(stat) = trash.stat(name)? else { return Ok(None) };
    let after = match lookup::to_engine_file_type(stat.file_type) {
        FileKind::File => {
            let (hash, size) = trash.open_file(name)?.hash()?;
            PathState::File { version: stead_journal::Digest(hash), size, mode: stat.mode }
        }
        FileKind::Link => PathState::Link { target: String::from_utf8_lossy(&trash.read_link(name)?).into_owned() },
        FileKind::Directory | FileKind::Special => {
            PathState::Tree { trash: Some(id.to_owned()), files: tree.files, bytes: tree.bytes, version: None }
        }
    };
    Ok(Some((stat, after)))
}

/// An item that left the trash meanwhile was restored or deleted concurrently.
pub(crate) fn moved_or_failed(path: &RelPath, error: &StateError) -> CommitError {
    match error.kind() {
        DiskErrorKind::NotFound
        | DiskErrorKind::ChangedConcurrently
        | DiskErrorKind::IsSymlink
        | DiskErrorKind::IsDirectory
        | DiskErrorKind::NotRegularFile => CommitError::ExpectationFailed(path.clone()),
        DiskErrorKind::Exists
        | DiskErrorKind::NotDirectory
        | DiskErrorKind::SymlinkLoop
        | DiskErrorKind::OutsideRoot
        | DiskErrorKind::CrossesMount
        | DiskErrorKind::Hidden
        | DiskErrorKind::NotEmpty
        | DiskErrorKind::Busy
        | DiskErrorKind::NoSpace
        | DiskErrorKind::QuotaExceeded
        | DiskErrorKind::ReadOnly
        | DiskErrorKind::PermissionDenied
        | DiskErrorKind::NameTooLong
        | DiskErrorKind::TooManyOpenFiles
        | DiskErrorKind::TooLarge
        | DiskErrorKind::Unsupported
        | DiskErrorKind::Io => CommitError::Failed(errors::state_directory_error(error)),
    }
}

/// Permanently removes an item. Returns the number removed: one or none.
fn remove_item(trash: &DirectoryHandle, name: &FileName) -> Result<u64, DiskError> {
    match trash.stat(name)? {
        None => return Ok(0),
        Some(stat) if stat.file_type == stead_disk::FileType::Directory => drop(trash.remove_tree(name)?),
        Some(_) => trash.remove_file(name)?,
    }
    Ok(1)
}

fn file_type_number(top: FileKind) -> i64 {
    match top {
        FileKind::File => 0,
        FileKind::Directory => 1,
        FileKind::Link => 2,
        FileKind::Special => 3,
    }
}

fn file_type_from_number(number: i64) -> FileKind {
    match number {
        0 => FileKind::File,
        1 => FileKind::Directory,
        2 => FileKind::Link,
        _ => FileKind::Special,
    }
}
