//! The search index knows which files can contain a match, so that a search need not open the other files. The index is
//! stored in the state directory, is built by a background thread, and can be deleted at any time.
//!
//! Promises: a search finds the same matches with and without the index. A search skips a file only if the file has the
//! timestamps and size that were indexed, or is watched without a reported change. A part of the index that is damaged,
//! outdated, missing or from another workspace is not used. The index never decides what a caller may see; the engine
//! does.

mod background_thread;
mod blocks;
mod build;
mod segment;
mod snapshot;
mod tree_model;

use std::{
    fmt,
    sync::{
        Arc, Condvar, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use blocks::SearchIndexBlockHashKey;
use snapshot::{IndexSnapshot, IndexSnapshotWithSearchCandidates, manifest_fingerprint};
use stead_disk::{
    DirectoryHandle, DiskError, InodeFingerprint, LockMode, MultiSlotLockFile, RootDirectory, StateDirectory,
    StateDirectoryAccessError, fs_events::watch_limit,
};
use stead_engine::{
    DirectoryEntry, Error, ErrorKind, NextStep,
    index::{FileSearchIndex, IndexBasedSearchFilter, IndexedSearchCandidates, RequiredTrigrams},
    limits,
};
use stead_path::{FileName, RelPath, TEMPORARY_PREFIX};
use tree_model::{IndexedTreeCache, TreeModelFreshness};

use crate::{
    errors,
    open::LocalWorkspace,
    options::{IndexBuildAndUseMode, LocalWorkspaceOptions},
    store::lock_ignoring_poison,
    tree::to_engine_file_type,
};

/// The most changed directories that a search lists again; more directories are left to the background thread.
const RELISTED_BY_SEARCH_MAX: usize = 256;
/// The search index of a workspace may use the user's watch limit divided by this number.
const WATCH_SHARE_DIVISOR: usize = 2;
const WATCH_RETRY_PAUSE: Duration = Duration::from_secs(10 * 60);

pub(crate) struct SearchIndex {
    mode: IndexBuildAndUseMode,
    files_min: u64,
    min_file_age: Duration,
    /// The search index may use half of the user's inotify watches, or a default if the Landlock sandbox hides that
    /// limit.
    watches_max: usize,
    state: OnceLock<Arc<IndexSharedState>>,
    thread: Mutex<IndexThread>,
}

#[derive(Default)]
enum IndexThread {
    /// The index thread starts with the first search that is large enough for an index.
    #[default]
    NotStarted,
    Running(JoinHandle<()>),
    /// The index thread never starts again, because the workspace is closed.
    Ended,
}

struct IndexSharedState {
    context: IndexContext,
    loaded: Mutex<LoadedIndex>,
    /// The model of the directory tree is `None` if the tree is not watched.
    model: Mutex<Option<IndexedTreeCache>>,
    thread_status: Mutex<IndexThreadSharedState>,
    wake_signal: Condvar,
    stopped: AtomicBool,
    /// Whether the hash of an index block was wrong, so that the loaded index must not be used.
    is_distrusted: Arc<AtomicBool>,
    filtered_searches: AtomicU64,
    indexed_walks: AtomicU64,
}

#[derive(Default)]
struct LoadedIndex {
    manifest: Option<InodeFingerprint>,
    snapshot: Option<Arc<IndexSnapshot>>,
}

struct IndexThreadSharedState {
    last_search: Instant,
    /// The time before which the index thread does not try again to watch the tree.
    unwatched_until: Option<Instant>,
    message: Option<String>,
    wake_requested: bool,
    /// The number of files in the workspace and the number of indexed files, at the last count.
    files: Option<(u64, u64)>,
}

/// The status of the search index, for display and tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexStatus {
    pub segments: usize,
    /// The number of indexed files, including files that changed after they were indexed.
    pub files: u64,
    /// The size of the search index on disk, in bytes.
    pub bytes: u64,
    pub is_size_limited: bool,
    /// Whether the directory tree is watched, so that a search need not walk it.
    pub is_watched: bool,
    /// The number of files in the workspace whose index data is current, at the last count.
    pub model_files: Option<u64>,
    /// The number of searches that walked the tree and skipped files with the index.
    pub filtered_searches: u64,
    /// The number of searches that found their files with the index and needed no walk over the tree.
    pub indexed_walks: u64,
    /// The reason why the search index cannot be built or cannot be used fully, if any.
    pub message: Option<String>,
}

impl fmt::Display for IndexStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments == 0 {
            f.write_str("none")?;
        } else {
            let megabytes = self.bytes.div_ceil(1 << 20);
            write!(f, "{} files in {} segments, {megabytes} MB", self.files, self.segments)?;
        }
        if self.is_size_limited {
            f.write_str(", size limit reached: the remaining files are searched without the index")?;
        }
        if self.is_watched {
            f.write_str(", watched")?;
        }
        match &self.message {
            Some(message) => write!(f, "; {message}"),
            None => Ok(()),
        }
    }
}

impl SearchIndex {
    pub(crate) fn new(options: &LocalWorkspaceOptions) -> Self {
        let maintains = options.index_mode == IndexBuildAndUseMode::Maintain;
        Self {
            mode: options.index_mode,
            files_min: options.index_files_min,
            min_file_age: options.index_min_file_age,
            watches_max: if maintains { watch_limit() / WATCH_SHARE_DIVISOR } else { 0 },
            state: OnceLock::new(),
            thread: Mutex::default(),
        }
    }

    pub(crate) fn stop(&self) {
        // The state `Ended` is set first, so that no search starts another thread.
        let thread = std::mem::replace(&mut *lock_ignoring_poison(&self.thread), IndexThread::Ended);
        if let Some(shared) = self.state.get() {
            shared.stop();
        }
        match thread {
            // A panic of the thread is ignored; the next thread starts from the files on disk.
            IndexThread::Running(thread) => thread.join().unwrap_or_default(),
            IndexThread::NotStarted | IndexThread::Ended => {}
        }
        if let Some(shared) = self.state.get() {
            *lock_ignoring_poison(&shared.model) = None;
        }
    }
}

impl FileSearchIndex for LocalWorkspace {
    fn filter(&self, required: &RequiredTrigrams) -> Option<Box<dyn IndexBasedSearchFilter + '_>> {
        // If there is no index, a search must not create any part of it.
        if *required == RequiredTrigrams::Anything || !self.has_index() {
            return None;
        }
        let shared = self.index_state()?;
        let snapshot = shared.current_snapshot()?;
        match snapshot.files_matching(required) {
            Ok(files) => {
                shared.filtered_searches.fetch_add(1, Ordering::Relaxed);
                let is_distrusted = Arc::clone(&shared.is_distrusted);
                Some(Box::new(IndexSnapshotWithSearchCandidates { snapshot, files, is_distrusted }))
            }
            Err(segment::IndexCorrupt) => {
                shared.discard_loaded();
                None
            }
        }
    }

    fn walk(&self, start: &RelPath, required: &RequiredTrigrams) -> Option<IndexedSearchCandidates> {
        if *required == RequiredTrigrams::Anything {
            return None;
        }
        self.index.state.get()?.indexed_walk(start, required)
    }

    /// A search of many files starts the index thread.
    fn report_files_searched(&self, files: u64) {
        if self.index.mode != IndexBuildAndUseMode::Maintain || files < self.index.files_min {
            return;
        }
        let Some(shared) = self.index_state() else { return };
        shared.record_search();
        let mut thread = lock_ignoring_poison(&self.index.thread);
        match *thread {
            IndexThread::NotStarted => {
                let own = Arc::clone(shared);
                let builder = std::thread::Builder::new().name("index".to_owned());
                let started = builder.spawn(move || background_thread::run_index_thread(&own));
                *thread = started.map_or(IndexThread::NotStarted, IndexThread::Running);
            }
            IndexThread::Running(_) | IndexThread::Ended => {}
        }
    }
}

impl LocalWorkspace {
    fn index_state(&self) -> Option<&Arc<IndexSharedState>> {
        if self.index.mode == IndexBuildAndUseMode::Off {
            return None;
        }
        if let Some(shared) = self.index.state.get() {
            return Some(shared);
        }
        let key = SearchIndexBlockHashKey::load_or_create(&self.store, &self.root, &self.syntax_profile.id).ok()?;
        let context = IndexContext {
            root: self.root.clone(),
            state: self.state.clone(),
            key,
            min_file_age: self.index.min_file_age,
            watches_max: self.index.watches_max,
            mount_count: self.allowed_mounts.len(),
        };
        Some(self.index.state.get_or_init(|| Arc::new(IndexSharedState::new(context))))
    }

    fn has_index(&self) -> bool {
        self.index.state.get().is_some_and(|shared| lock_ignoring_poison(&shared.loaded).snapshot.is_some())
            || self.state.existing_subdirectory(INDEX_DIRECTORY).is_ok_and(|directory| directory.is_some())
    }

    /// The current status of the search index.
    pub fn index_status(&self) -> IndexStatus {
        // If there is no index, the status query must not create any part of it, not even the key.
        let known = self.index.state.get().is_some() || self.has_index();
        let shared = known.then(|| self.index_state()).flatten();
        shared.map_or_else(IndexStatus::default, |shared| shared.status())
    }

    /// Builds the search index and waits until the build is done. Recently modified files are not indexed.
    pub fn build_index(&self) -> Result<IndexStatus, Error> {
        let off = || {
            Error::new(ErrorKind::SystemDenied, "the search index is switched off, so it cannot be built")
                .with_next_step("pass --index on")
        };
        let shared = self.index_state().ok_or_else(off)?;
        background_thread::build_once(shared).map_err(errors::index_error)?;
        if let (Some(current), Some(model)) = (shared.current_snapshot(), lock_ignoring_poison(&shared.model).as_mut())
        {
            model.adopt_snapshot(current);
        }
        Ok(shared.status())
    }

    /// Deletes the search index, so that searches read every file again.
    pub fn drop_index(&self) -> Result<(), Error> {
        let Some(shared) = self.index_state() else { return Ok(()) };
        let Some(directory) = shared.context.open_directory() else { return Ok(()) };
        let busy =
            || Error::new(ErrorKind::Busy, "another process is building the index").with_next_step(NextStep::repeat());
        let _building = shared.context.try_lock_for_build().map_err(errors::state_directory_error)?.ok_or_else(busy)?;
        *lock_ignoring_poison(&shared.model) = None;
        build::delete_index_files(&directory).map_err(errors::index_error)
    }
}

impl IndexSharedState {
    fn new(context: IndexContext) -> Self {
        let status = IndexThreadSharedState {
            last_search: Instant::now(),
            unwatched_until: None,
            message: None,
            wake_requested: false,
            files: None,
        };
        Self {
            context,
            loaded: Mutex::default(),
            model: Mutex::default(),
            thread_status: Mutex::new(status),
            wake_signal: Condvar::new(),
            stopped: AtomicBool::new(false),
            is_distrusted: Arc::default(),
            filtered_searches: AtomicU64::new(0),
            indexed_walks: AtomicU64::new(0),
        }
    }

    fn current_snapshot(&self) -> Option<Arc<IndexSnapshot>> {
        let mut loaded = lock_ignoring_poison(&self.loaded);
        let directory = self.context.open_directory()?;
        let manifest = manifest_fingerprint(&directory).ok()?;
        if self.is_distrusted.swap(false, Ordering::Relaxed) {
            // The index is not loaded again until another manifest is written.
            *loaded = LoadedIndex { manifest, snapshot: None };
        }
        if manifest != loaded.manifest {
            let snapshot = IndexSnapshot::load(&directory, &self.context.key, loaded.snapshot.as_deref());
            *loaded = LoadedIndex { manifest, snapshot: snapshot.ok().map(Arc::new) };
        }
        loaded.snapshot.clone()
    }

    fn discard_loaded(&self) {
        self.is_distrusted.store(true, Ordering::Relaxed);
    }

    fn indexed_walk(&self, start: &RelPath, required: &RequiredTrigrams) -> Option<IndexedSearchCandidates> {
        let mut model_guard = lock_ignoring_poison(&self.model);
        let model = model_guard.as_mut()?;
        let walked = match model.refresh(&self.context, RELISTED_BY_SEARCH_MAX, &|| false) {
            Ok(TreeModelFreshness::Current) => model.indexed_walk(start, required),
            Ok(TreeModelFreshness::Behind) => Ok(None),
            Err(error) => Err(error),
        };
        match walked {
            Ok(Some(walk)) => {
                self.indexed_walks.fetch_add(1, Ordering::Relaxed);
                lock_ignoring_poison(&self.thread_status).last_search = Instant::now();
                Some(walk)
            }
            Ok(None) => None,
            Err(error) => {
                *model_guard = None;
                if error == tree_model::IndexedTreeCacheDiscardReason::IndexCorrupt {
                    self.discard_loaded();
                }
                self.wake_thread();
                None
            }
        }
    }

    fn status(&self) -> IndexStatus {
        let snapshot = self.current_snapshot();
        let is_watched = lock_ignoring_poison(&self.model).is_some();
        let thread = lock_ignoring_poison(&self.thread_status);
        let mut status = IndexStatus {
            is_watched,
            model_files: thread.files.map(|(_, indexed)| indexed),
            filtered_searches: self.filtered_searches.load(Ordering::Relaxed),
            indexed_walks: self.indexed_walks.load(Ordering::Relaxed),
            message: thread.message.clone(),
            ..IndexStatus::default()
        };
        if let Some(snapshot) = snapshot {
            status.segments = snapshot.segments.len();
            status.files = snapshot.files();
            status.bytes = snapshot.size();
            status.is_size_limited = snapshot.coverage == snapshot::IndexCoverage::SizeLimited;
        }
        status
    }

    fn record_search(&self) {
        lock_ignoring_poison(&self.thread_status).last_search = Instant::now();
        self.wake_thread();
    }

    fn wake_thread(&self) {
        lock_ignoring_poison(&self.thread_status).wake_requested = true;
        self.wake_signal.notify_all();
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.wake_thread();
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Lets the index thread sleep for a limited time, and returns false if the index thread must end.
    fn sleep(&self, pause: Duration, wake: background_thread::IndexThreadWakeBySearchPolicy) -> bool {
        let status = lock_ignoring_poison(&self.thread_status);
        let is_woken = |status: &IndexThreadSharedState| {
            status.wake_requested && wake == background_thread::IndexThreadWakeBySearchPolicy::BySearch
        };
        let sleeps = |status: &mut IndexThreadSharedState| !self.is_stopped() && !is_woken(status);
        let (mut status, _) =
            self.wake_signal.wait_timeout_while(status, pause, sleeps).unwrap_or_else(PoisonError::into_inner);
        status.wake_requested = false;
        !self.is_stopped()
    }
}

const INDEX_DIRECTORY: &str = "index";
/// The position in the lock file that a process locks to build the index, above the positions of all paths.
const BUILDER_SLOT: u64 = (1 << 62) + 1;

/// The parts of a workspace that the index thread needs, so that the thread does not hold the workspace itself.
struct IndexContext {
    root: RootDirectory,
    state: StateDirectory,
    key: SearchIndexBlockHashKey,
    /// How long a file must be unmodified before the index relies on its timestamps.
    min_file_age: Duration,
    watches_max: usize,
    mount_count: usize,
}

impl IndexContext {
    fn open_directory(&self) -> Option<DirectoryHandle> {
        Some(self.state.existing_subdirectory(INDEX_DIRECTORY).ok()??.into_directory())
    }

    fn create_directory(&self) -> Result<DirectoryHandle, StateDirectoryAccessError> {
        Ok(self.state.create_subdirectory(INDEX_DIRECTORY)?.into_directory())
    }

    /// The lock is held until the returned lock file is dropped.
    fn try_lock_for_build(&self) -> Result<Option<MultiSlotLockFile>, StateDirectoryAccessError> {
        let file = self.state.open_lock_file()?;
        Ok(file.try_lock(BUILDER_SLOT, LockMode::Exclusive)?.then_some(file))
    }

    /// Lists a directory in the byte order of the names and without staged files, as a walk over the tree does.
    fn list_directory(&self, directory: &DirectoryHandle) -> Result<Vec<DirectoryEntry>, DiskError> {
        let temporary = |name: &FileName| name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes());
        let listed = directory.list()?.into_iter().filter(|entry| !temporary(&entry.name));
        let mut listed: Vec<DirectoryEntry> = listed
            .map(|entry| DirectoryEntry { name: entry.name, kind: to_engine_file_type(entry.file_type) })
            .collect();
        listed.sort_unstable_by(|one, two| one.name.cmp(&two.name));
        Ok(listed)
    }

    fn read_ignore_file(&self, path: &RelPath) -> Option<Vec<u8>> {
        let file = self.root.open_file(path).ok()?;
        let mut bytes = Vec::new();
        file.read_into(&mut bytes, limits::IGNORE_FILE_BYTES_MAX, &|_| true).ok()?;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_starts_once_the_workspace_is_closed() {
        let (files, state) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let options = LocalWorkspaceOptions::new(files.path().to_owned(), state.path().to_owned());
        let workspace = LocalWorkspace::open(options).expect("it opens");
        workspace.close();
        workspace.report_files_searched(u64::MAX);
        assert!(matches!(*lock_ignoring_poison(&workspace.index.thread), IndexThread::Ended));
    }
}
