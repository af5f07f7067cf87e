//! The trash holds removed files and directories until they expire. Only the server empties the trash, and not while
//! the wall clock may be wrong.
//!
//! Removing, restoring and moving a path is a single rename. A change that would have to cross a mount is refused
//! before anything is recorded.

use rusqlite::{Connection, Row as SqlRow, params};
use stead_disk::{DirectoryHandle, DiskError, DiskErrorKind, DiskStat, FileType, StateDirectoryAccessError};
use stead_engine::{
    AdministrationCall, ClockReading, CommitError, Error, ErrorKind, FailedExpectation, FileKind, NextStep, Principal,
    TrashItem, TreeSummary, ops::ListTrashArgs,
};
use stead_journal::{Digest, JournalEntry, PathState};
use stead_path::{FileName, RelPath};

use crate::{
    errors,
    open::LocalWorkspace,
    prepare::PendingTrashItem,
    store::{TransactionSyncPolicy, execute_cached, number_at, path_at, to_sql_integer},
    token::{random_bytes, to_hex},
    tree::to_engine_file_type,
};

/// The wall clock has jumped if it gains this many milliseconds on the uptime clock.
const CLOCK_JUMP_MS: i64 = 60 * 60 * 1000;
const EMPTY_BATCH: usize = 64;

pub(crate) fn new_trash_id() -> Result<String, Error> {
    Ok(format!("t{}", to_hex(&random_bytes::<10>()?)))
}

impl PendingTrashItem {
    pub(crate) fn insert(&self, transaction: &Connection, entry: &JournalEntry) -> rusqlite::Result<()> {
        let values = params![
            self.id,
            entry.caller.principal,
            self.path.to_string(),
            file_type_number(self.tree.kind),
            to_sql_integer(self.tree.files),
            to_sql_integer(self.tree.directories),
            to_sql_integer(self.tree.bytes),
            entry.time_ms,
            self.keep_until_ms,
            to_sql_integer(entry.number),
        ];
        let sql = "INSERT INTO trash VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0)";
        execute_cached(transaction, sql, values)
    }
}

impl LocalWorkspace {
    pub(crate) fn load_trash_item(&self, id: &str) -> Result<Option<TrashItem>, Error> {
        let sql = "SELECT * FROM trash WHERE id = ?1 AND state = 0";
        self.store.query_optional(sql, params![id], trash_item_from_row)
    }

    pub(crate) fn trash_items(&self, owner: Option<&Principal>) -> Result<Vec<TrashItem>, Error> {
        let sql = "SELECT * FROM trash WHERE state = 0 AND (?1 IS NULL OR owner = ?1) ORDER BY number DESC, id";
        self.store.query_rows(sql, params![owner.map(ToString::to_string)], trash_item_from_row)
    }

    /// Permanently deletes expired trash items, and returns their number.
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
        self.delete_trash_items(&due, None)
    }

    /// Checks that the trash has an item with this id that `owner`, if given, removed.
    pub(crate) fn check_purgeable(&self, id: &str, owner: Option<&Principal>) -> Result<String, Error> {
        let item = self.load_trash_item(id)?.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no item {id} in the trash"))
                .with_next_step(NextStep::call(ListTrashArgs { all: true }, "list the trash"))
        })?;
        if owner.is_some_and(|owner| item.owner != owner.to_string()) {
            return Err(Error::new(ErrorKind::NotOwner, format!("{id} was not deleted: {} removed it", item.owner))
                .with_next_step(NextStep::repeat_with_flag("all", "purge items that others removed")));
        }
        Ok(item.id)
    }

    /// Permanently deletes the trash items with these ids, and returns the number of deleted items. Without a call, the
    /// server deletes expired items.
    pub fn delete_trash_items(&self, ids: &[String], call: Option<&AdministrationCall<'_>>) -> Result<u64, Error> {
        let arguments = format!("{{\"items\":{}}}", ids.len());
        let draft = match call {
            Some(call) => self.pending_administration_entry(call.caller, call.operation, arguments),
            None if ids.is_empty() => return Ok(0),
            None => self.pending_system_entry("empty_trash", arguments),
        };
        let deleted_ids = ids.to_vec();
        self.append_with_rows(draft, TransactionSyncPolicy::Now, move |transaction, _| {
            for id in &deleted_ids {
                transaction.execute("UPDATE trash SET state = 2 WHERE id = ?1 AND state = 0", params![id])?;
            }
            Ok(())
        })?;
        let mut deleted = 0;
        for id in ids {
            let name = FileName::new(id.as_bytes()).map_err(Error::from)?;
            let removed = self.trash_directory.with(|trash| remove_item(trash, &name));
            deleted += removed.map_err(errors::state_directory_error)?;
        }
        Ok(deleted)
    }

    /// The first clock reading after a boot is stored, to detect later jumps of the wall clock.
    pub(crate) fn store_clock_reading(&self) -> Result<(), Error> {
        match self.stored_clock_reading()? {
            Some((_, _, boot)) if boot == self.clock.now().boot_id => Ok(()),
            Some(_) | None => self.accept_clock(),
        }
    }

    fn stored_clock_reading(&self) -> Result<Option<(i64, i64, String)>, Error> {
        let sql = "SELECT value FROM meta WHERE name = 'clock'";
        let text = self.store.query_optional(sql, [], |row| row.get::<_, String>(0))?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Whether the wall clock has advanced much more than the uptime clock since the last stored reading of this boot.
    /// After a clock jump, no trash is deleted until [`LocalWorkspace::accept_clock`] is called.
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

    /// Accepts the current clock reading as correct, so that expired trash can be deleted again after a clock jump.
    pub fn accept_clock(&self) -> Result<(), Error> {
        let now = self.clock.now();
        let text = serde_json::json!([now.wall_ms, now.uptime_ms, now.boot_id]).to_string();
        let sql = "INSERT OR REPLACE INTO meta VALUES ('clock', ?1)";
        self.write_rows(|connection| execute_cached(connection, sql, params![text]))
    }

    pub(crate) fn refuse_rename_across_mounts(&self, from: &RelPath, to: &RelPath) -> Result<(), Error> {
        if self.allowed_mounts.is_empty() || self.nearest_directory(from)?.shares_mount(&self.nearest_directory(to)?) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::CrossMount, format!("{from} and {to} are on different file systems"))
            .with_next_step("copy it, then remove the original"))
    }

    pub(crate) fn refuse_other_mount_than_trash(&self, path: &RelPath) -> Result<(), Error> {
        // The trash can be on another mount even without allowed mounts, if the workspace is read-only.
        if self.nearest_directory(path)?.shares_mount(self.trash_directory.as_directory()) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::CrossMount, format!("{path} is not on the file system of the trash"))
            .with_next_step(NextStep::ask_person("do this")))
    }

    fn nearest_directory(&self, path: &RelPath) -> Result<DirectoryHandle, Error> {
        let above: Vec<RelPath> = path.ancestors().collect();
        for directory in above.iter().rev() {
            match self.root.open_directory(directory) {
                Err(error) if error.kind == DiskErrorKind::NotFound => {}
                opened => return opened.map_err(errors::at_path(directory)),
            }
        }
        self.root.open_directory(&RelPath::root()).map_err(errors::at_path(path))
    }
}

fn trash_item_from_row(row: &SqlRow<'_>) -> rusqlite::Result<TrashItem> {
    Ok(TrashItem {
        id: row.get("id")?,
        owner: row.get("owner")?,
        path: path_at(row, "path")?,
        summary: TreeSummary {
            kind: file_type_from_number(row.get("top")?),
            files: number_at(row, "files")?,
            directories: number_at(row, "directories")?,
            bytes: number_at(row, "size")?,
        },
        removed_ms: row.get("removed_ms")?,
        retain_until_ms: row.get("keep_until_ms")?,
        entry: number_at(row, "number")?,
    })
}

/// Returns the stat of a trash item, and the [`PathState`] that the target path will have once the item is restored.
/// The type of a trash item is read from the item itself, because the database row may describe a different file.
pub(crate) fn find_item(
    trash: &DirectoryHandle,
    name: &FileName,
    id: &str,
    tree: &TreeSummary,
) -> Result<Option<(DiskStat, PathState)>, DiskError> {
    let Some(stat) = trash.stat(name)? else { return Ok(None) };
    let after = match to_engine_file_type(stat.file_type) {
        FileKind::File => {
            let (hash, size) = trash.open_file(name)?.hash()?;
            PathState::File { version: Digest(hash), size, mode: stat.mode }
        }
        FileKind::Link => PathState::Link { target: String::from_utf8_lossy(&trash.read_link(name)?).into_owned() },
        FileKind::Directory | FileKind::Special => {
            PathState::Tree { trash: Some(id.to_owned()), files: tree.files, bytes: tree.bytes, version: None }
        }
    };
    Ok(Some((stat, after)))
}

/// If a trash item has vanished, another call took it, so the plan is outdated.
pub(crate) fn moved_or_failed(path: &RelPath, error: StateDirectoryAccessError) -> CommitError {
    let vanished = [
        DiskErrorKind::NotFound,
        DiskErrorKind::ChangedConcurrently,
        DiskErrorKind::IsSymlink,
        DiskErrorKind::IsDirectory,
        DiskErrorKind::NotRegularFile,
    ];
    if vanished.contains(&error.kind()) {
        return CommitError::ExpectationFailed(FailedExpectation::Path(path.clone()));
    }
    CommitError::Failed(errors::state_directory_error(error))
}

fn remove_item(trash: &DirectoryHandle, name: &FileName) -> Result<u64, DiskError> {
    match trash.stat(name)? {
        None => return Ok(0),
        Some(stat) if stat.file_type == FileType::Directory => trash.remove_tree(name)?,
        Some(_) => trash.remove_file(name)?,
    }
    Ok(1)
}

fn file_type_number(kind: FileKind) -> i64 {
    match kind {
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
