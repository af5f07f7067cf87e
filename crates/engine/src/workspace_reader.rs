//! The only access of a call to bytes, sizes, versions, names and kept history of the workspace, and the log of their
//! sources.
//!
//! Every look of a [`WorkspaceReader`] adds its source to the log of the call. Before an outcome or an error leaves the
//! engine, the pipeline passes the whole log to [`judge_sources`](crate::byte_sources::judge_sources), and the planned
//! writes as well. An operation handles no sources, so it cannot forget one. A value type that carries its sources would
//! show which of them an outcome uses, but each of a hundred looks would have to pass sources on by hand. The log is
//! stricter: it contains every file that a call has looked at, shown or not. Looks for a commit, such as the version
//! that a write expects, are in the log too, and the judge decides about them by what they are for.
//!
//! Walks and lists of buffers are not in the log, because they judge each entry and hand out only what the caller may
//! see.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use stead_path::{FileName, RelPath};

use crate::{
    approval::{Approval, ApprovalFilter},
    buffers::{BufferWithText, EditorBufferMetadata},
    byte_sources::ByteSource,
    caller::Principal,
    errors::Error,
    index::{IndexBasedSearchFilter, IndexedSearchCandidates, RequiredTrigrams},
    policy::ActivePolicy,
    quota::{PrincipalUsage, RequiredUsageFreshness, WorkspaceUsage},
    rules::lease::LeasesAtGeneration,
    session_store::{
        AgentSentAlertAndResponse, FilesystemTrashAndHistorySizes, ReviewAcceptedFileText, SessionRecord,
        SessionTotals, SessionTotalsQuery,
    },
    version::Version,
    watches::Watch,
    workspace::{
        BytesToRead, DirectoryEntry, FileBytesWithVersion, FileOwnerAndCreationTime, FileReader, FileStat,
        FileStatLookupResult, FinalSymlink, ImmutableWorkspaceProperties, JournalEntryQuery, JournalHead,
        OpenDirectoryWithEntries, StoredJournalEntry, TrashItem, Workspace,
    },
};

/// Read access to a workspace, which logs the sources of everything it returns. It has no method that writes.
pub(crate) struct WorkspaceReader<'a> {
    workspace: &'a dyn Workspace,
    log: Mutex<BTreeSet<ByteSource>>,
}

type LookResult<T> = Result<T, Error>;

/// Forwards methods of [`Workspace`]. The source after the arrow `=>` is logged, even if the look fails, because its
/// error may show that a file exists.
macro_rules! looks {
    ($($name:ident($($argument:ident: $type:ty),*) -> $found:ty $(=> $source:expr)?;)+) => {
        $(pub(crate) fn $name(&self, $($argument: $type),*) -> $found {
            $(self.add_source($source);)?
            self.workspace.$name($($argument),*)
        })+
    };
}

impl<'a> WorkspaceReader<'a> {
    looks! {
        stat(path: &RelPath) -> LookResult<Option<FileStat>> => ByteSource::File(path.clone());
        locate(path: &RelPath, last: FinalSymlink) -> LookResult<RelPath> => ByteSource::File(path.clone());
        locate_and_stat(path: &RelPath, last: FinalSymlink) -> LookResult<(RelPath, Option<FileStat>)>
            => ByteSource::File(path.clone());
        file_details(path: &RelPath) -> LookResult<FileOwnerAndCreationTime> => ByteSource::File(path.clone());
        read(path: &RelPath, want: BytesToRead) -> LookResult<FileBytesWithVersion> => ByteSource::File(path.clone());
        open_file(path: &RelPath) -> LookResult<Box<dyn FileReader>> => ByteSource::File(path.clone());
        read_link(path: &RelPath) -> LookResult<Vec<u8>> => ByteSource::File(path.clone());
        list(path: &RelPath) -> LookResult<Vec<DirectoryEntry>> => ByteSource::Directory(path.clone());
        entry(number: u64) -> LookResult<Option<StoredJournalEntry>> => ByteSource::Entry(number);
        undone_by(number: u64) -> LookResult<Option<u64>> => ByteSource::Entry(number);

        read_without_version(path: &RelPath, limit_bytes: u64) -> LookResult<Vec<u8>>;
        open_directory(path: &RelPath) -> LookResult<Option<OpenDirectoryWithEntries<'a>>>;
        stat_names(directory: &RelPath, names: &[FileName]) -> LookResult<Vec<FileStatLookupResult>>;
        index_filter(need: &RequiredTrigrams) -> Option<Box<dyn IndexBasedSearchFilter + 'a>>;
        indexed_walk(start: &RelPath, need: &RequiredTrigrams) -> Option<IndexedSearchCandidates>;
        report_files_searched(files: u64) -> ();
        entry_of_version(path: &RelPath, version: &Version) -> LookResult<Option<u64>>;
        buffers() -> LookResult<Vec<EditorBufferMetadata>>;

        profile() -> &'a ImmutableWorkspaceProperties;
        now_ms() -> i64;
        head() -> LookResult<JournalHead>;
        wait_for_entry_after(number: u64, deadline: Instant) -> LookResult<()>;
        change_counter() -> LookResult<u64>;
        active_policy() -> LookResult<ActivePolicy>;
        leases_at_generation(paths: &[RelPath]) -> LookResult<LeasesAtGeneration>;
        approval(id: &str) -> LookResult<Option<Approval>>;
        approvals(filter: &ApprovalFilter) -> LookResult<Vec<Approval>>;
        watches(owner: &Principal) -> LookResult<Vec<Watch>>;
        session(id: &str) -> LookResult<Option<SessionRecord>>;
        session_totals(query: &SessionTotalsQuery<'_>) -> LookResult<SessionTotals>;
        review_baselines(principal: &str, session: &str) -> LookResult<Vec<ReviewAcceptedFileText>>;
        alert(id: &str) -> LookResult<Option<AgentSentAlertAndResponse>>;
        alerts(from: Option<&Principal>, limit: usize) -> LookResult<Vec<AgentSentAlertAndResponse>>;
        storage_usage() -> LookResult<FilesystemTrashAndHistorySizes>;
        principal_usage(of: &Principal, freshness: RequiredUsageFreshness) -> LookResult<Option<PrincipalUsage>>;
        usage_before_entry(number: u64) -> LookResult<Option<WorkspaceUsage>>;
        history_bytes(principal: &Principal) -> LookResult<u64>;
    }

    pub(crate) fn new(workspace: &'a dyn Workspace) -> Self {
        Self { workspace, log: Mutex::default() }
    }

    /// A reader of the same workspace for another call, with a log of its own.
    pub(crate) fn with_empty_log(&self) -> Self {
        Self::new(self.workspace)
    }

    /// The kept bytes of an older version of the file at `path`.
    pub(crate) fn retained_bytes(&self, path: &RelPath, version: &Version) -> LookResult<Option<Vec<u8>>> {
        self.add_source(ByteSource::OlderVersion(path.clone()));
        self.workspace.retained_bytes(version)
    }

    pub(crate) fn entries(&self, filter: &JournalEntryQuery) -> LookResult<Vec<StoredJournalEntry>> {
        let found = self.workspace.entries(filter)?;
        found.iter().for_each(|stored| self.add_source(ByteSource::Entry(stored.entry.number)));
        Ok(found)
    }

    pub(crate) fn trash_item(&self, id: &str) -> LookResult<Option<TrashItem>> {
        let found = self.workspace.trash_item(id)?;
        found.iter().for_each(|item| self.add_source(ByteSource::TrashItem(item.path.clone())));
        Ok(found)
    }

    pub(crate) fn trash(&self, owner: Option<&Principal>) -> LookResult<Vec<TrashItem>> {
        let found = self.workspace.trash(owner)?;
        found.iter().for_each(|item| self.add_source(ByteSource::TrashItem(item.path.clone())));
        Ok(found)
    }

    pub(crate) fn buffer_text(&self, id: &str) -> LookResult<Option<BufferWithText>> {
        let found = self.workspace.buffer_text(id)?;
        found.iter().for_each(|texts| self.add_source(ByteSource::File(texts.buffer.path.clone())));
        Ok(found)
    }

    fn add_source(&self, source: ByteSource) {
        self.logged_sources().insert(source);
    }

    pub(crate) fn logged_sources(&self) -> MutexGuard<'_, BTreeSet<ByteSource>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
