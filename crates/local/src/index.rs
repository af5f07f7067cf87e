//! The search index: decides which files can contain a match, so that the others need not be opened. It lives in the
//! state directory, is built by a background thread, and can be deleted at any time.
//!
//! Promises: results are the same with and without the index. A file is excluded only if its stamp is unchanged or
//! watches report no change. A damaged, foreign, stale or missing part is not used. Never decides what a caller may
//! see: the engine does, which queries single files or may read everything.

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

use blocks::IndexKey;
use snapshot::{IndexSnapshot, SnapshotIndexFilter, manifest_fingerprint};
use stead_disk::{
    DirectoryHandle, DiskError, DiskStat, FileType, InodeFingerprint, LockFile, LockMode, RootDirectory,
    StateDirectory, StateError, fs_events::watch_limit,
};
use stead_engine::{
    DirectoryEntry, Error, ErrorKind,
    index::{IndexFilter, IndexedWalk, RequiredTrigrams},
    limits,
};
use stead_path::{FileName, RelPath, TEMPORARY_PREFIX};
use tree_model::{IndexTreeModel, ModelFreshness};

use crate::{
    errors,
    open::LocalWorkspace,
    options::{IndexMode, LocalWorkspaceOptions},
    store::lock_ignoring_poison,
    workspace::to_engine_file_type,
};

/// Most directories that a search lists again itself; the thread lists the others.
const RELISTED_BY_SEARCH_MAX: usize = 256;
/// Fraction of the user's watch limit that one workspace may use.
const WATCH_SHARE_DIVISOR: usize = 2;
/// Pause after watching failed.
const WATCH_RETRY_PAUSE: Duration = Duration::from_secs(10 * 60);

/// The index of an open workspace.
pub(crate) struct SearchIndex {
    mode: IndexMode,
    files_min: u64,
    min_file_age: Duration,
    /// Limit of watched directories, read before the Landlock sandbox is active.
    watches_max: usize,
    state: OnceLock<Arc<IndexState>>,
    thread: Mutex<IndexThread>,
}

/// The background thread.
#[derive(Default)]
enum IndexThread {
    /// No search needed an index yet.
    #[default]
    NotStarted,
    Running(JoinHandle<()>),
    /// The workspace is closed; no thread starts any more.
    Ended,
}

/// State shared by searches and the thread.
struct IndexState {
    context: IndexContext,
    loaded: Mutex<LoadedIndex>,
    /// The tree model, while the tree is watched.
    model: Mutex<Option<IndexTreeModel>>,
    thread_status: Mutex<IndexThreadStatus>,
    wake_signal: Condvar,
    stopped: AtomicBool,
    /// Whether a block failed verification.
    is_distrusted: Arc<AtomicBool>,
    filtered_searches: AtomicU64,
    indexed_walks: AtomicU64,
}

/// The index as last loaded by this process.
#[derive(Default)]
struct LoadedIndex {
    manifest: Option<InodeFingerprint>,
    snapshot: Option<Arc<IndexSnapshot>>,
}

/// State of the thread between two rounds.
struct IndexThreadStatus {
    last_search: Instant,
    /// Watching is not retried before this time.
    unwatched_until: Option<Instant>,
    message: Option<String>,
    wake_requested: bool,
    /// Files in the tree and indexed files, as last counted.
    files: Option<(u64, u64)>,
}

/// Status of the search index, for display and tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexStatus {
    /// Number of segments.
    pub segments: usize,
    /// Indexed files, including those that changed since.
    pub files: u64,
    /// Size on disk.
    pub bytes: u64,
    /// Whether the index has reached its size limit.
    pub is_size_limited: bool,
    /// Whether the tree is watched, so that a search need not walk it.
    pub is_watched: bool,
    /// Files in the tree whose index data is current, as last counted.
    pub model_files: Option<u64>,
    /// Searches that walked the tree and used the index to skip files.
    pub filtered_searches: u64,
    /// Searches that needed no walk.
    pub indexed_walks: u64,
    /// Why the index cannot be built.
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
            Some(remark) => write!(f, "; {remark}"),
            None => Ok(()),
        }
    }
}

impl SearchIndex {
    pub(crate) fn new(options: &LocalWorkspaceOptions) -> Self {
        let LocalWorkspaceOptions {
            index_mode: mode,
            index_files_min: files_min,
            index_min_file_age: min_file_age,
            ..
        } = *options;
        let watches_max = if mode == IndexMode::Maintain { watch_limit() / WATCH_SHARE_DIVISOR } else { 0 };
        let (state, thread) = (OnceLock::new(), Mutex::default());
        Self { mode, files_min, min_file_age, watches_max, state, thread }
    }

    /// Stops the thread and waits for it.
    pub(crate) fn stop(&self) {
        // First, so that no search starts another thread.
        let thread = std::mem::replace(&mut *lock_ignoring_poison(&self.thread), IndexThread::Ended);
        if let Some(shared) = self.state.get() {
            shared.stop();
        }
        match thread {
            IndexThread::Running(thread) => match thread.join() {
                // A panic is ignored; the next thread starts from the files on disk.
                Ok(()) | Err(_) => {}
            },
            IndexThread::NotStarted | IndexThread::Ended => {}
        }
        if let Some(shared) = self.state.get() {
            *lock_ignoring_poison(&shared.model) = None;
        }
    }
}

impl LocalWorkspace {
    /// The state, or `None` if the index is off or the store provides no key.
    fn index_state(&self) -> Option<&Arc<IndexState>> {
        if self.index.mode == IndexMode::Off {
            return None;
        }
        if let Some(shared) = self.index.state.get() {
            return Some(shared);
        }
        let key = IndexKey::load_or_create(&self.store, &self.root, &self.syntax_profile.id).ok()?;
        let context = IndexContext {
            root: self.root.clone(),
            state: self.state.clone(),
            key,
            min_file_age: self.index.min_file_age,
            watches_max: self.index.watches_max,
            mount_count: self.allowed_mounts.len(),
        };
        Some(self.index.state.get_or_init(|| Arc::new(IndexState::new(context))))
    }

    pub(crate) fn index_filter_for(&self, required: &RequiredTrigrams) -> Option<Box<dyn IndexFilter + '_>> {
        // Without an index nothing is created or queried.
        if *required == RequiredTrigrams::Anything || !self.has_index() {
            return None;
        }
        let shared = self.index_state()?;
        let snapshot = shared.current_snapshot()?;
        match snapshot.files_matching(required) {
            Ok(files) => {
                shared.filtered_searches.fetch_add(1, Ordering::Relaxed);
                let distrusted = Arc::clone(&shared.is_distrusted);
                let broken = Arc::new(move || distrusted.store(true, Ordering::Relaxed));
                Some(Box::new(SnapshotIndexFilter { snapshot, files, on_corrupt: broken }))
            }
            Err(segment::IndexCorrupt) => {
                shared.discard_loaded();
                None
            }
        }
    }

    fn has_index(&self) -> bool {
        self.index.state.get().is_some_and(|shared| lock_ignoring_poison(&shared.loaded).snapshot.is_some())
            || self.state.existing_subdirectory(INDEX_DIRECTORY).is_ok_and(|directory| directory.is_some())
    }

    pub(crate) fn indexed_walk_for(&self, start: &RelPath, required: &RequiredTrigrams) -> Option<IndexedWalk> {
        if *required == RequiredTrigrams::Anything {
            return None;
        }
        self.index.state.get()?.indexed_walk(start, required)
    }

    /// Notes a search that visited so many files.
    pub(crate) fn note_search(&self, files: u64) {
        if self.index.mode != IndexMode::Maintain || files < self.index.files_min {
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

    /// The status of the search index.
    pub fn index_status(&self) -> IndexStatus {
        // A query creates nothing: without an index there is no key yet.
        let known = self.index.state.get().is_some() || self.has_index();
        let shared = known.then(|| self.index_state()).flatten();
        shared.map_or_else(IndexStatus::default, |shared| shared.status())
    }

    /// Builds the index synchronously. Recently modified files are left out.
    pub fn build_index(&self) -> Result<IndexStatus, Error> {
        let off = || Error::new(ErrorKind::SystemDenied, "the search index is off");
        let shared = self.index_state().ok_or_else(off)?;
        background_thread::build_once(shared).map_err(errors::index_error)?;
        if let (Some(current), Some(model)) = (shared.current_snapshot(), lock_ignoring_poison(&shared.model).as_mut())
        {
            model.adopt_snapshot(current);
        }
        Ok(shared.status())
    }

    /// Deletes the index. Searches read every file again.
    pub fn drop_index(&self) -> Result<(), Error> {
        let Some(shared) = self.index_state() else { return Ok(()) };
        let Some(directory) = shared.context.open_directory() else { return Ok(()) };
        let busy = || Error::new(ErrorKind::Busy, "another process is building the index").with_next_step("call again");
        let _building = shared.context.try_lock_for_build().map_err(errors::state_directory_error)?.ok_or_else(busy)?;
        *lock_ignoring_poison(&shared.model) = None;
        build::delete_index_files(&directory).map_err(errors::index_error)
    }
}

impl IndexState {
    fn new(context: IndexContext) -> Self {
        let rest = IndexThreadStatus {
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
            thread_status: Mutex::new(rest),
            wake_signal: Condvar::new(),
            stopped: AtomicBool::new(false),
            is_distrusted: Arc::default(),
            filtered_searches: AtomicU64::new(0),
            indexed_walks: AtomicU64::new(0),
        }
    }

    /// The current index on disk, or `None` if there is no usable one.
    fn current_snapshot(&self) -> Option<Arc<IndexSnapshot>> {
        let mut loaded = lock_ignoring_poison(&self.loaded);
        let directory = self.context.open_directory()?;
        let manifest = manifest_fingerprint(&directory).ok()?;
        if self.is_distrusted.swap(false, Ordering::Relaxed) {
            // Not retried until another manifest is written.
            *loaded = LoadedIndex { manifest, snapshot: None };
        }
        if manifest != loaded.manifest {
            let snapshot = IndexSnapshot::load(&directory, &self.context.key, loaded.snapshot.as_deref());
            *loaded = LoadedIndex { manifest, snapshot: snapshot.ok().map(Arc::new) };
        }
        loaded.snapshot.clone()
    }

    /// Discards the loaded index after a block failed verification.
    fn discard_loaded(&self) {
        self.is_distrusted.store(true, Ordering::Relaxed);
    }

    fn indexed_walk(&self, start: &RelPath, required: &RequiredTrigrams) -> Option<IndexedWalk> {
        let mut model_guard = lock_ignoring_poison(&self.model);
        let model = model_guard.as_mut()?;
        let surveyed = match model.refresh(&self.context, RELISTED_BY_SEARCH_MAX, &|| false) {
            Ok(ModelFreshness::Current) => model.indexed_walk(start, required),
            Ok(ModelFreshness::Behind) => Ok(None),
            Err(halt) => Err(halt),
        };
        match surveyed {
            Ok(Some(walk)) => {
                self.indexed_walks.fetch_add(1, Ordering::Relaxed);
                lock_ignoring_poison(&self.thread_status).last_search = Instant::now();
                Some(walk)
            }
            Ok(None) => None,
            Err(halt) => {
                *model_guard = None;
                if halt == tree_model::IndexModelError::IndexCorrupt {
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
        let rest = lock_ignoring_poison(&self.thread_status);
        let mut facts = IndexStatus {
            is_watched,
            model_files: rest.files.map(|(_, known)| known),
            filtered_searches: self.filtered_searches.load(Ordering::Relaxed),
            indexed_walks: self.indexed_walks.load(Ordering::Relaxed),
            message: rest.message.clone(),
            ..IndexStatus::default()
        };
        if let Some(snapshot) = snapshot {
            facts.segments = snapshot.segments.len();
            facts.files = snapshot.files();
            facts.bytes = snapshot.size();
            facts.is_size_limited = snapshot.coverage == snapshot::IndexCoverage::SizeLimited;
        }
        facts
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

    /// Sleeps for a time. Returns whether to continue.
    fn sleep(&self, pause: Duration, wake: background_thread::WakeCondition) -> bool {
        let rest = lock_ignoring_poison(&self.thread_status);
        let woken =
            |rest: &IndexThreadStatus| rest.wake_requested && wake == background_thread::WakeCondition::BySearch;
        let sleeps = |rest: &mut IndexThreadStatus| !self.is_stopped() && !woken(rest);
        let (mut rest, _) =
            self.wake_signal.wait_timeout_while(rest, pause, sleeps).unwrap_or_else(PoisonError::into_inner);
        rest.wake_requested = false;
        !self.is_stopped()
    }
}

/// The directory of the index in the state directory.
const INDEX_DIRECTORY: &str = "index";
/// The builder's slot of the lock file, above every path slot.
const BUILDER_SLOT: u64 = (1 << 62) + 1;

struct IndexContext {
    root: RootDirectory,
    state: StateDirectory,
    key: IndexKey,
    /// How long a file must be unmodified before its stamp is reliable.
    min_file_age: Duration,
    /// Limit of watched directories.
    watches_max: usize,
    /// Number of mount points that may be crossed.
    mount_count: usize,
}

/// Excludes other builders until it is dropped.
struct IndexBuildLock {
    _lock: LockFile,
}

impl IndexContext {
    /// The directory of the index; `None` if it is missing or not a directory.
    fn open_directory(&self) -> Option<DirectoryHandle> {
        Some(self.state.existing_subdirectory(INDEX_DIRECTORY).ok()??.into_directory())
    }

    fn create_directory(&self) -> Result<DirectoryHandle, StateError> {
        Ok(self.state.create_subdirectory(INDEX_DIRECTORY)?.into_directory())
    }

    /// Locks the index for building; `None` if another process holds the lock.
    fn try_lock_for_build(&self) -> Result<Option<IndexBuildLock>, StateError> {
        let lock = self.state.open_lock_file()?;
        Ok(lock.try_lock(BUILDER_SLOT, LockMode::Exclusive)?.then_some(IndexBuildLock { _lock: lock }))
    }

    /// Lists a directory as a walk does, in byte order.
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

fn is_regular_file(stat: &DiskStat) -> bool {
    stat.file_type == FileType::File
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
        workspace.note_search(u64::MAX);
        assert!(matches!(*lock_ignoring_poison(&workspace.index.thread), IndexThread::Ended));
    }
}
