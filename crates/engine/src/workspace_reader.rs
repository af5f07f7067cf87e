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
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use stead_path::RelPath;

use crate::{
    approval::{Approval, ApprovalFilter},
    buffers::{BufferWithText, EditorBufferMetadata},
    byte_sources::ByteSource,
    caller::Principal,
    errors::Error,
    index::FileSearchIndex,
    limits,
    policy::ActivePolicy,
    quota::{PrincipalUsage, RequiredUsageFreshness, WorkspaceUsage},
    rules::lease::LeasesAtGeneration,
    session_store::{
        AgentSentAlertAndResponse, FilesystemTrashAndHistorySizes, ReviewAcceptedFileText, SessionRecord,
        SessionTotals, SessionTotalsQuery,
    },
    tree::{
        BytesToRead, DirectoryEntry, DirectoryReader, FileBytesWithVersion, FileOwnerAndCreationTime, FileReader,
        FileStat, FinalSymlink, ImmutableWorkspaceProperties, LocateRequest, LocatedPath, OpenDirectoryWithEntries,
        TreeEntry, read_whole_file,
    },
    version::Version,
    watches::Watch,
    workspace::{JournalEntryQuery, JournalHead, StoredJournalEntry, TrashItem, Workspace},
};

/// Read access to a workspace, which logs the sources of everything it returns. It has no method that writes.
pub(crate) struct WorkspaceReader<'a> {
    workspace: &'a dyn Workspace,
    log: Mutex<BTreeSet<ByteSource>>,
    open_entries: Mutex<OpenEntriesOfCall>,
}

/// The entries that a call has located or read, which its later looks reuse.
#[derive(Default)]
struct OpenEntriesOfCall {
    by_path: Vec<(RelPath, Arc<dyn TreeEntry>)>,
    /// The path of a request to follow all symlinks, and its result.
    located_ahead: Option<(RelPath, LocatedPath)>,
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
        entry(number: u64) -> LookResult<Option<StoredJournalEntry>> => ByteSource::Entry(number);
        undone_by(number: u64) -> LookResult<Option<u64>> => ByteSource::Entry(number);

        search_index() -> Option<&'a dyn FileSearchIndex>;
        entry_of_version(path: &RelPath, version: &Version) -> LookResult<Option<u64>>;
        buffers() -> LookResult<Vec<EditorBufferMetadata>>;

        profile() -> &'a ImmutableWorkspaceProperties;
        now_ms() -> i64;
        head() -> LookResult<JournalHead>;
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
        Self { workspace, log: Mutex::default(), open_entries: Mutex::default() }
    }

    /// A reader of the same workspace for another call, with a log of its own.
    pub(crate) fn with_empty_log(&self) -> Self {
        Self::new(self.workspace)
    }

    /// Resolves the symlinks of a path, and keeps the entry there open for later looks.
    pub(crate) fn locate(&self, path: &RelPath, last: FinalSymlink) -> LookResult<LocatedPath> {
        self.add_source(ByteSource::File(path.clone()));
        // If following all symlinks of a path led to the path itself, keeping the last one leads there as well.
        let is_same = |(request, located): &mut (RelPath, LocatedPath)| {
            request == path && (last == FinalSymlink::Follow || located.path == *path)
        };
        let ahead = self.open_entries().located_ahead.take_if(is_same);
        let located = match ahead {
            Some((_, located)) => located,
            None => self.workspace.locate(&LocateRequest::Resolve(path, last))?,
        };
        if let Some(entry) = &located.entry {
            self.keep_open(&located.path, entry);
        }
        Ok(located)
    }

    pub(crate) fn keep_open(&self, path: &RelPath, entry: &Arc<dyn TreeEntry>) {
        let mut open = self.open_entries();
        if open.by_path.len() < limits::OPEN_ENTRIES_MAX && !open.by_path.iter().any(|(open, _)| open == path) {
            open.by_path.push((path.clone(), Arc::clone(entry)));
        }
    }

    /// The next request to follow the symlinks of the path `request` gets this result.
    pub(crate) fn use_located(&self, request: RelPath, located: LocatedPath) {
        self.open_entries().located_ahead = Some((request, located));
    }

    /// Later looks open the entries again, because they may have been replaced.
    pub(crate) fn forget_open_entries(&self) {
        *self.open_entries() = OpenEntriesOfCall::default();
    }

    pub(crate) fn forget_open_entry(&self, path: &RelPath) {
        self.open_entries().by_path.retain(|(open, _)| open != path);
    }

    /// The open entry of a path, or what is there now.
    fn entry_at(&self, path: &RelPath) -> LookResult<Arc<dyn TreeEntry>> {
        let open = self.open_entries().by_path.iter().find(|(open, _)| open == path).map(|(_, entry)| entry.clone());
        open.map_or_else(|| self.workspace.entry_at(path), Ok)
    }

    pub(crate) fn file_details(&self, path: &RelPath) -> LookResult<FileOwnerAndCreationTime> {
        self.add_source(ByteSource::File(path.clone()));
        Ok(self.entry_at(path)?.details())
    }

    pub(crate) fn read(&self, path: &RelPath, want: BytesToRead) -> LookResult<FileBytesWithVersion> {
        self.read_while(path, want, &|| Ok(()))
    }

    /// Reads a file; between two pieces of a large file, `check` may end the read with an error.
    pub(crate) fn read_while(
        &self,
        path: &RelPath,
        want: BytesToRead,
        check: &dyn Fn() -> LookResult<()>,
    ) -> LookResult<FileBytesWithVersion> {
        self.add_source(ByteSource::File(path.clone()));
        let entry = self.entry_at(path)?;
        self.keep_open(path, &entry);
        FileBytesWithVersion::read_from(&*entry.open_file()?, path, want, check)
    }

    pub(crate) fn open_file(&self, path: &RelPath) -> LookResult<Box<dyn FileReader>> {
        self.add_source(ByteSource::File(path.clone()));
        self.entry_at(path)?.open_file()
    }

    pub(crate) fn read_link(&self, path: &RelPath) -> LookResult<Vec<u8>> {
        self.add_source(ByteSource::File(path.clone()));
        self.entry_at(path)?.read_link()
    }

    pub(crate) fn read_without_version(&self, path: &RelPath, limit_bytes: u64) -> LookResult<Vec<u8>> {
        read_whole_file(&*self.entry_at(path)?.open_file()?, path, limit_bytes)
    }

    pub(crate) fn open_directory(&self, path: &RelPath) -> LookResult<Box<dyn DirectoryReader>> {
        self.entry_at(path)?.open_directory()
    }

    pub(crate) fn open_and_list(&self, path: &RelPath) -> LookResult<OpenDirectoryWithEntries> {
        let directory = self.open_directory(path)?;
        let entries = directory.list()?;
        Ok((directory, entries))
    }

    pub(crate) fn list(&self, path: &RelPath) -> LookResult<Vec<DirectoryEntry>> {
        self.add_source(ByteSource::Directory(path.clone()));
        self.open_directory(path)?.list()
    }

    /// Waits without holding any entry open.
    pub(crate) fn wait_for_entry_after(&self, number: u64, deadline: Instant) -> LookResult<()> {
        self.forget_open_entries();
        self.workspace.wait_for_entry_after(number, deadline)
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

    fn open_entries(&self) -> MutexGuard<'_, OpenEntriesOfCall> {
        self.open_entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn logged_sources(&self) -> MutexGuard<'_, BTreeSet<ByteSource>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
