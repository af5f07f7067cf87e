//! Implements the engine's `Workspace` trait for a local workspace. Lookups convert types of the disk crate to types of
//! the engine. A lookup never writes and never follows a symlink.

use std::time::Instant;

use rusqlite::params;
use stead_disk::{
    DirectoryHandle, DiskDirectoryEntry, DiskErrorKind, DiskStat, FileType, InodeFingerprint, InodeId, OpenFile,
};
use stead_engine::{
    ActivePolicy, BytesToRead, CallLockGuard, CallerResourceLifetime, ClockReading, CommitError, CommitReceipt,
    DirectoryEntry, Error, ErrorKind, ExternalChangeListening, FileBytesWithVersion, FileIdentity, FileKind,
    FileOwnerAndCreationTime, FileReader, FileStamp, FileStat, FileStatLookupResult, FilesystemTrashAndHistorySizes,
    FinalSymlink, HolderPresence, ImmutableWorkspaceProperties, JournalCallRecord, JournalEntryQuery, JournalHead,
    OpenDirectoryForWalk, OpenDirectoryWithEntries, PathLockRequest, Principal, PrincipalUsage, RequiredUsageFreshness,
    RowFamily, RowQuery, RowSet, SessionTotals, SessionTotalsQuery, StoredJournalEntry, Transaction, TrashItem,
    Version, Workspace, WorkspaceUsage,
    index::{IndexBasedSearchFilter, IndexedSearchCandidates, RequiredTrigrams},
};
use stead_journal::Digest;
use stead_path::{FileName, RelPath, TEMPORARY_PREFIX};

use crate::{
    entry_query, errors,
    open::LocalWorkspace,
    path_locks, rows,
    store::{self, lock_ignoring_poison, to_sql_integer},
    usage::stored_usage_before,
};

/// The most retries of a path lookup when a symlink replaces a directory of the path meanwhile.
const LOOKUP_RETRIES_MAX: usize = 16;

impl Workspace for LocalWorkspace {
    fn profile(&self) -> &ImmutableWorkspaceProperties {
        &self.syntax_profile
    }

    fn now(&self) -> ClockReading {
        self.clock.now()
    }

    fn locate(&self, path: &RelPath, last: FinalSymlink) -> Result<RelPath, Error> {
        self.locate_and_stat(path, last).map(|(resolved, _)| resolved)
    }

    fn locate_and_stat(&self, path: &RelPath, last: FinalSymlink) -> Result<(RelPath, Option<FileStat>), Error> {
        let mut retries = 0;
        loop {
            match self.root.canonicalize_with_stat(path, last) {
                Err(error) if error.kind == DiskErrorKind::ChangedConcurrently && retries < LOOKUP_RETRIES_MAX => {
                    retries += 1
                }
                Ok((resolved, stat)) => return Ok((resolved, stat.map(|stat| to_engine_stat(&stat)))),
                Err(error) => return Err(errors::error_at_path(path, error)),
            }
        }
    }

    fn stat(&self, path: &RelPath) -> Result<Option<FileStat>, Error> {
        let stat = self.root.stat(path).map_err(errors::at_path(path))?;
        Ok(stat.map(|stat| to_engine_stat(&stat)))
    }

    fn file_details(&self, path: &RelPath) -> Result<FileOwnerAndCreationTime, Error> {
        let stat = self.root.stat(path).map_err(errors::at_path(path))?;
        Ok(stat.map_or_else(FileOwnerAndCreationTime::default, |stat| FileOwnerAndCreationTime {
            created_ms: stat.created_ns.and_then(|created_ns| i64::try_from(created_ns / 1_000_000).ok()),
            owner: Some(self.user_names.get(&stat.uid).cloned().unwrap_or_else(|| stat.uid.to_string())),
        }))
    }

    fn stat_names(&self, directory: &RelPath, names: &[FileName]) -> Result<Vec<FileStatLookupResult>, Error> {
        let open = self.root.open_directory(directory).map_err(errors::at_path(directory))?;
        Ok(names.iter().map(|name| stat_in(&open, directory, name)).collect())
    }

    fn read(&self, path: &RelPath, bytes: BytesToRead) -> Result<FileBytesWithVersion, Error> {
        let at = errors::at_path(path);
        let file = self.root.open_file(path).map_err(at)?;
        let stat = to_engine_stat(&file.stat());
        let (bytes, hash) = match bytes {
            BytesToRead::Whole { limit_bytes } => file.read_and_hash(limit_bytes).map_err(at)?,
            BytesToRead::VersionOnly => (Vec::new(), file.hash().map_err(at)?.0),
            // A range that covers the whole file is read and hashed in one pass.
            BytesToRead::Range { offset: 0, length } if length >= stat.size => {
                file.read_and_hash(length).map_err(at)?
            }
            BytesToRead::Range { offset, length } => {
                let length = usize::try_from(length.min(stat.size.saturating_sub(offset))).map_err(|_| {
                    Error::new(ErrorKind::TooLarge, "the byte range is too long to read at once")
                        .with_next_step("request a shorter range")
                })?;
                (file.read_range(offset, length).map_err(at)?, file.hash().map_err(at)?.0)
            }
        };
        Ok(FileBytesWithVersion { bytes, version: Version(Digest(hash)), stat })
    }

    fn read_without_version(&self, path: &RelPath, limit_bytes: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let read = self.root.open_file(path).and_then(|file| file.read_into(&mut bytes, limit_bytes, &|_| true));
        read.map(|()| bytes).map_err(errors::at_path(path))
    }

    fn open_file(&self, path: &RelPath) -> Result<Box<dyn FileReader>, Error> {
        let file = self.root.open_file(path).map_err(errors::at_path(path))?;
        Ok(Box::new(LocalFileReader { file, path: path.clone() }))
    }

    fn open_directory(&self, path: &RelPath) -> Result<Option<OpenDirectoryWithEntries<'_>>, Error> {
        let directory = self.root.open_directory(path).map_err(errors::at_path(path))?;
        let entries = self.to_engine_listing(path, directory.list().map_err(errors::at_path(path))?);
        Ok(Some((Box::new(LocalWalkDirectory { workspace: self, directory, path: path.clone() }), entries)))
    }

    fn index_filter(&self, required: &RequiredTrigrams) -> Option<Box<dyn IndexBasedSearchFilter + '_>> {
        self.index_filter_for(required)
    }

    fn indexed_walk(&self, start: &RelPath, required: &RequiredTrigrams) -> Option<IndexedSearchCandidates> {
        self.indexed_walk_for(start, required)
    }

    fn report_files_searched(&self, files: u64) {
        self.note_search(files);
    }

    fn read_link(&self, path: &RelPath) -> Result<Vec<u8>, Error> {
        self.root.read_link(path).map_err(errors::at_path(path))
    }

    fn list(&self, path: &RelPath) -> Result<Vec<DirectoryEntry>, Error> {
        let listed = self.root.open_directory(path).and_then(|directory| directory.list());
        Ok(self.to_engine_listing(path, listed.map_err(errors::at_path(path))?))
    }

    fn lock(&self, requests: &[PathLockRequest], deadline: Instant) -> Result<Box<dyn CallLockGuard>, Error> {
        self.store.ensure_writable()?;
        let paths: Vec<RelPath> = requests.iter().map(|request| request.path.clone()).collect();
        loop {
            let guard = self.locks.lock(path_locks::path_slots(&paths), deadline)?;
            let unfinished = self.unfinished_near(&paths)?;
            if unfinished.is_empty() {
                return Ok(Box::new(guard));
            }
            // An unfinished entry may concern more paths than `paths`, so all paths of the entry are locked to finish
            // it.
            drop(guard);
            self.finish_entries(&unfinished, deadline)?;
        }
    }

    fn commit_transaction(
        &self,
        transaction: &Transaction<'_>,
        record: Option<&JournalCallRecord<'_>>,
    ) -> Result<Option<CommitReceipt>, CommitError> {
        match (transaction.files, record) {
            (Some(plan), Some(record)) => self.commit_files(plan, transaction, record).map(Some),
            (None, _) | (_, None) => self.commit_rows(transaction, record),
        }
    }

    fn rows(&self, query: &RowQuery) -> Result<RowSet, Error> {
        self.store.run_query(|connection| rows::load_rows(connection, query))
    }

    fn wait_for_rows(&self, family: RowFamily, generation: u64, deadline: Instant) -> Result<(), Error> {
        let announced = *lock_ignoring_poison(&self.new_entries.0);
        if self.store.run_query(|connection| rows::load_generation(connection, family))? == generation {
            let count = lock_ignoring_poison(&self.new_entries.0);
            let left = deadline.saturating_duration_since(Instant::now());
            drop(self.new_entries.1.wait_timeout_while(count, left, |count| *count == announced));
        }
        Ok(())
    }

    fn hold_presence(&self, lifetime: &CallerResourceLifetime) -> Result<String, Error> {
        self.liveness.register(lifetime)
    }

    fn presence(&self, holder: &str) -> Result<HolderPresence, Error> {
        self.liveness.presence_of(holder)
    }

    fn listen_for_external_changes(&self, request: ExternalChangeListening) -> Result<(), Error> {
        match request {
            ExternalChangeListening::Start => self.start_listening(),
            ExternalChangeListening::IfAlreadyWatched => self.listen_if_watched(),
            ExternalChangeListening::Reconsider => {
                self.wake_recorder();
                Ok(())
            }
        }
    }

    fn head(&self) -> Result<JournalHead, Error> {
        self.flush_if_possible();
        let tip = self.store.run_query(|connection| store::load_tip(connection, &self.store.origin))?;
        Ok(JournalHead { number: tip.number, hash: tip.hash })
    }

    fn entry(&self, number: u64) -> Result<Option<StoredJournalEntry>, Error> {
        let sql = "SELECT bytes, hash FROM entries WHERE number = ?1";
        let values = params![to_sql_integer(number)];
        let row = self.store.query_optional(sql, values, |row| Ok((row.get(0)?, row.get(1)?)))?;
        row.map(entry_query::stored_entry_from_row).transpose()
    }

    fn entries(&self, filter: &JournalEntryQuery) -> Result<Vec<StoredJournalEntry>, Error> {
        self.find_entries(filter)
    }

    fn wait_for_entry_after(&self, number: u64, deadline: Instant) -> Result<(), Error> {
        self.wait_for_new_entry(number, deadline)
    }

    fn change_counter(&self) -> Result<u64, Error> {
        self.announcement_count()
    }

    fn entry_of_version(&self, path: &RelPath, version: &Version) -> Result<Option<u64>, Error> {
        let sql = "SELECT number FROM touched WHERE path = ?1 AND version = ?2 ORDER BY number DESC LIMIT 1";
        self.store.query_number(sql, params![path.to_wire(), version.0.as_bytes().as_slice()])
    }

    fn entry_for_idempotency_key(&self, principal: &Principal, key: &str) -> Result<Option<u64>, Error> {
        self.store.run_query(|connection| entry_query::entry_with_key(connection, &principal.to_string(), key))
    }

    fn retained_bytes(&self, version: &Version) -> Result<Option<Vec<u8>>, Error> {
        self.load_retained_bytes(version)
    }

    fn trash_item(&self, id: &str) -> Result<Option<TrashItem>, Error> {
        self.load_trash_item(id)
    }

    fn trash(&self, owner: Option<&Principal>) -> Result<Vec<TrashItem>, Error> {
        self.trash_items(owner)
    }

    fn active_policy(&self) -> Result<ActivePolicy, Error> {
        self.current_policy()
    }

    fn undone_by(&self, number: u64) -> Result<Option<u64>, Error> {
        // An entry whose undo was itself undone does not count as undone.
        let sql = "SELECT by FROM undone WHERE number = ?1 AND redone IS NULL";
        self.store.query_number(sql, params![to_sql_integer(number)])
    }

    fn session_totals(&self, query: &SessionTotalsQuery<'_>) -> Result<SessionTotals, Error> {
        self.count_session(query)
    }

    fn storage_usage(&self) -> Result<FilesystemTrashAndHistorySizes, Error> {
        self.measure_storage()
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

/// The bytes of identities and stamps must never change, because the digests of pending approvals contain them.
pub(crate) fn to_engine_identity(id: InodeId) -> FileIdentity {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&id.dev.to_be_bytes());
    bytes[8..].copy_from_slice(&id.ino.to_be_bytes());
    FileIdentity(bytes)
}

pub(crate) fn to_engine_stamp(fingerprint: &InodeFingerprint) -> FileStamp {
    let mut bytes = [0; 56];
    bytes[..16].copy_from_slice(&to_engine_identity(fingerprint.id).0);
    bytes[16..24].copy_from_slice(&fingerprint.size.to_be_bytes());
    bytes[24..40].copy_from_slice(&fingerprint.modified_ns.to_be_bytes());
    bytes[40..].copy_from_slice(&fingerprint.changed_ns.to_be_bytes());
    FileStamp(bytes)
}

pub(crate) fn to_engine_file_type(file_type: FileType) -> FileKind {
    match file_type {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Link,
        FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
            FileKind::Special
        }
    }
}

fn to_engine_stat(stat: &DiskStat) -> FileStat {
    let kind = to_engine_file_type(stat.file_type);
    FileStat {
        kind,
        size: if kind == FileKind::Directory { 0 } else { stat.size },
        mode: stat.mode,
        link_count: stat.hard_links,
        modified_ms: i64::try_from(stat.modified_ns / 1_000_000).unwrap_or(i64::MAX),
        identity: to_engine_identity(stat.fingerprint.id),
        stamp: to_engine_stamp(&stat.fingerprint),
    }
}

fn stat_in(directory: &DirectoryHandle, path: &RelPath, name: &FileName) -> FileStatLookupResult {
    match directory.stat(name) {
        Ok(stat) => Ok(stat.map(|stat| to_engine_stat(&stat))),
        Err(error) => Err(errors::error_at_path(&path.join(name)?, error)),
    }
}

impl LocalWorkspace {
    /// Staged files are left out of a directory listing, and their directory is noted for cleanup.
    fn to_engine_listing(&self, path: &RelPath, entries: Vec<DiskDirectoryEntry>) -> Vec<DirectoryEntry> {
        let mut names: Vec<DirectoryEntry> = Vec::with_capacity(entries.len());
        for entry in entries {
            if entry.name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()) {
                self.remember_leftovers_in(path);
            } else {
                names.push(DirectoryEntry { name: entry.name, kind: to_engine_file_type(entry.file_type) });
            }
        }
        names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        names
    }
}

struct LocalWalkDirectory<'w> {
    workspace: &'w LocalWorkspace,
    directory: DirectoryHandle,
    path: RelPath,
}

impl<'w> OpenDirectoryForWalk<'w> for LocalWalkDirectory<'w> {
    fn open_subdirectory(&self, name: &FileName) -> Result<OpenDirectoryWithEntries<'w>, Error> {
        let path = self.path.join(name)?;
        let (directory, entries) = self.directory.open_and_list(name).map_err(errors::at_path(&path))?;
        let entries = self.workspace.to_engine_listing(&path, entries);
        Ok((Box::new(LocalWalkDirectory { workspace: self.workspace, directory, path }), entries))
    }

    fn stat(&self, name: &FileName) -> FileStatLookupResult {
        stat_in(&self.directory, &self.path, name)
    }

    fn read_without_version(
        &self,
        name: &FileName,
        limit_bytes: u64,
        may_continue: &dyn Fn(&[u8]) -> bool,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let file = self.directory.open_listed_file(name);
        file.and_then(|file| file.read_into(bytes, limit_bytes, may_continue))
            .map_err(|error| self.path.join(name).map_or_else(Error::from, |path| errors::error_at_path(&path, error)))
    }

    fn open_file(&self, name: &FileName) -> Result<Box<dyn FileReader>, Error> {
        let path = self.path.join(name)?;
        let file = self.directory.open_listed_file(name).map_err(errors::at_path(&path))?;
        Ok(Box::new(LocalFileReader { file, path }))
    }
}

struct LocalFileReader {
    file: OpenFile,
    path: RelPath,
}

impl FileReader for LocalFileReader {
    fn size(&self) -> u64 {
        self.file.stat().size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        self.file.read_at(offset, buffer).map_err(errors::at_path(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_and_stamps_keep_the_bytes_of_stored_digests() {
        let id = InodeId { dev: 1, ino: 0x0203 };
        let stamp = to_engine_stamp(&InodeFingerprint { id, size: 4, modified_ns: -1, changed_ns: 0x0506 });
        let expected = [&[0; 7][..], &[1], &[0; 6], &[2, 3], &[0; 7], &[4], &[255; 16], &[0; 14], &[5, 6]].concat();
        assert_eq!((&stamp.0[..], &to_engine_identity(id).0[..]), (&expected[..], &expected[..16]));
    }
}
