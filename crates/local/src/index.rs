//! The search index: which files can hold what is looked for, so that the others need not be opened. Lives in the state
//! directory, is built by a thread in the background, and can be deleted at any time.
//!
//! Promises: an answer is the same with and without it. A file is ruled out only under the stamp it was read with, or
//! while watches tell that nothing happened to it. Whatever is damaged, foreign, stale or missing is not used. Never
//! decides what a caller may see: that is the engine's, which asks about one file at a time or sees everything anyway.

mod build;
mod caretaker;
mod ground;
mod model;
mod seal;
mod segment;
mod snapshot;
mod wire;

use std::{
    fmt,
    sync::{
        Arc, Condvar, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use disk::{Stamp, watch::watches_max};
use engine::{
    Failure,
    index::{Need, Sieve, Survey},
};
use ground::Ground;
use model::{Fresh, Model};
use path::RelPath;
use seal::Key;
use snapshot::{Sifting, Snapshot, manifest_stamp};

use crate::{
    failure,
    open::LocalWorkspace,
    options::{Indexing, Options},
    store::hold,
};

/// Directories that a search lists again by itself; what is touched beyond that is left to the thread.
const LISTED_BY_SEARCH_MAX: usize = 256;
/// The share of all watches that this user may have which one workspace takes.
const WATCHES_SHARE: usize = 2;
/// How long watching is not tried again where it could not be done.
const UNWATCHED: Duration = Duration::from_secs(10 * 60);

/// The index of an open workspace.
pub(crate) struct Index {
    indexing: Indexing,
    files_min: u64,
    settled: Duration,
    /// How many directories may be watched; asked before the second wall is up.
    watches_max: usize,
    shared: OnceLock<Arc<Shared>>,
    thread: Mutex<Thread>,
}

/// The thread that builds.
#[derive(Default)]
enum Thread {
    /// Nothing was worth it yet.
    #[default]
    None,
    Runs(JoinHandle<()>),
    /// The workspace is closed, and none starts any more.
    Over,
}

/// What searches and the thread share.
struct Shared {
    ground: Ground,
    loaded: Mutex<Loaded>,
    /// The tree, while it is watched.
    model: Mutex<Option<Model>>,
    rest: Mutex<Rest>,
    woken: Condvar,
    stopped: AtomicBool,
    /// A block was not what was written.
    distrusted: Arc<AtomicBool>,
    sifted: AtomicU64,
    surveyed: AtomicU64,
}

/// The index as this process last read it.
#[derive(Default)]
struct Loaded {
    manifest: Option<Stamp>,
    snapshot: Option<Arc<Snapshot>>,
}

/// What the thread does between two rounds.
struct Rest {
    searched: Instant,
    /// Until when watching is not tried again.
    unwatched: Option<Instant>,
    remark: Option<String>,
    /// Something to do came up.
    rung: bool,
    /// Files in the tree and files that the index knows, as last counted.
    files: Option<(u64, u64)>,
}

/// How the index stands, for people and tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexFacts {
    /// Segments there are.
    pub segments: usize,
    /// Files they know, those that have changed since included.
    pub files: u64,
    /// Bytes on the disk.
    pub bytes: u64,
    /// Whether the index has reached its largest size.
    pub is_cut: bool,
    /// Whether the tree is watched, so that a search need not walk it.
    pub is_watched: bool,
    /// Files that are in the tree and known as they are, when last counted.
    pub known: Option<u64>,
    /// Searches that went by a walk and opened only what could match.
    pub sifted: u64,
    /// Searches that needed no walk.
    pub surveyed: u64,
    /// What stands in the way of building it.
    pub remark: Option<String>,
}

impl fmt::Display for IndexFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments == 0 {
            f.write_str("none")?;
        } else {
            let megabytes = self.bytes.div_ceil(1 << 20);
            write!(f, "{} files in {} segments, {megabytes} MB", self.files, self.segments)?;
        }
        if self.is_cut {
            f.write_str(", as large as it may get: other files are looked into")?;
        }
        if self.is_watched {
            f.write_str(", watched")?;
        }
        match &self.remark {
            Some(remark) => write!(f, "; {remark}"),
            None => Ok(()),
        }
    }
}

impl Index {
    pub(crate) fn new(options: &Options) -> Self {
        let Options { indexing, index_files_min: files_min, index_settled: settled, .. } = *options;
        let watches_max = if indexing == Indexing::Keep { watches_max() / WATCHES_SHARE } else { 0 };
        let (shared, thread) = (OnceLock::new(), Mutex::default());
        Self { indexing, files_min, settled, watches_max, shared, thread }
    }

    /// Ends the thread and waits for it.
    pub(crate) fn stop(&self) {
        // First of all, so that no search starts one that nobody would stop.
        let thread = std::mem::replace(&mut *hold(&self.thread), Thread::Over);
        if let Some(shared) = self.shared.get() {
            shared.stop();
        }
        match thread {
            Thread::Runs(thread) => match thread.join() {
                // A thread that panicked has nothing to say here; the next one starts from what is on the disk.
                Ok(()) | Err(_) => {}
            },
            Thread::None | Thread::Over => {}
        }
        if let Some(shared) = self.shared.get() {
            *hold(&shared.model) = None;
        }
    }
}

impl LocalWorkspace {
    /// What the index stands on; nothing when it is not to be used, or the store gives no key.
    fn index_shared(&self) -> Option<&Arc<Shared>> {
        if self.index.indexing == Indexing::Off {
            return None;
        }
        if let Some(shared) = self.index.shared.get() {
            return Some(shared);
        }
        let key = Key::of(&self.store, &self.root, &self.profile.id).ok()?;
        let ground = Ground {
            root: self.root.clone(),
            state: self.state.clone(),
            key,
            settled: self.index.settled,
            watches_max: self.index.watches_max,
            mounts: self.mounts.len(),
        };
        Some(self.index.shared.get_or_init(|| Arc::new(Shared::new(ground))))
    }

    pub(crate) fn sieve_for(&self, need: &Need) -> Option<Box<dyn Sieve + '_>> {
        // Nothing is made or asked for where there is no index.
        if *need == Need::Anything || !self.has_index() {
            return None;
        }
        let shared = self.index_shared()?;
        let snapshot = shared.current()?;
        match snapshot.files_with(need) {
            Ok(files) => {
                shared.sifted.fetch_add(1, Ordering::Relaxed);
                let distrusted = Arc::clone(&shared.distrusted);
                let broken = Arc::new(move || distrusted.store(true, Ordering::Relaxed));
                Some(Box::new(Sifting { snapshot, files, broken }))
            }
            Err(segment::Broken) => {
                shared.distrust();
                None
            }
        }
    }

    fn has_index(&self) -> bool {
        self.index.shared.get().is_some_and(|shared| hold(&shared.loaded).snapshot.is_some())
            || self.state.existing_directory(ground::PLACE).is_ok_and(|place| place.is_some())
    }

    pub(crate) fn survey_for(&self, start: &RelPath, need: &Need) -> Option<Survey> {
        if *need == Need::Anything {
            return None;
        }
        self.index.shared.get()?.survey(start, need)
    }

    /// A search has met so many files.
    pub(crate) fn note_search(&self, files: u64) {
        if self.index.indexing != Indexing::Keep || files < self.index.files_min {
            return;
        }
        let Some(shared) = self.index_shared() else { return };
        shared.searched();
        let mut thread = hold(&self.index.thread);
        match *thread {
            Thread::None => {
                let own = Arc::clone(shared);
                let builder = std::thread::Builder::new().name("index".to_owned());
                let started = builder.spawn(move || caretaker::run(&own));
                *thread = started.map_or(Thread::None, Thread::Runs);
            }
            Thread::Runs(_) | Thread::Over => {}
        }
    }

    /// How the index stands.
    pub fn index_facts(&self) -> IndexFacts {
        // To ask is not to make: without an index there is no key yet.
        let known = self.index.shared.get().is_some() || self.has_index();
        let shared = known.then(|| self.index_shared()).flatten();
        shared.map_or_else(IndexFacts::default, |shared| shared.facts())
    }

    /// Builds the index here and now. Young files are left for later.
    pub fn build_index(&self) -> Result<IndexFacts, Failure> {
        let off = || Failure::new(engine::Kind::Denied, "the index is switched off");
        let shared = self.index_shared().ok_or_else(off)?;
        caretaker::build_once(shared).map_err(|error| failure::own(&error))?;
        if let (Some(current), Some(model)) = (shared.current(), hold(&shared.model).as_mut()) {
            model.adopt(current);
        }
        Ok(shared.facts())
    }

    /// Deletes the index. Searches look into every file again.
    pub fn drop_index(&self) -> Result<(), Failure> {
        let own = |error: disk::DiskError| failure::own(&error);
        let Some(shared) = self.index_shared() else { return Ok(()) };
        let Some(place) = shared.ground.place() else { return Ok(()) };
        let busy =
            || Failure::new(engine::Kind::Busy, "another process is building the index").hint("call again");
        let _building = shared.ground.build().map_err(own)?.ok_or_else(busy)?;
        *hold(&shared.model) = None;
        build::clear(&place).map_err(own)
    }
}

impl Shared {
    fn new(ground: Ground) -> Self {
        let rest = Rest { searched: Instant::now(), unwatched: None, remark: None, rung: false, files: None };
        Self {
            ground,
            loaded: Mutex::default(),
            model: Mutex::default(),
            rest: Mutex::new(rest),
            woken: Condvar::new(),
            stopped: AtomicBool::new(false),
            distrusted: Arc::default(),
            sifted: AtomicU64::new(0),
            surveyed: AtomicU64::new(0),
        }
    }

    /// The index as it is now on the disk; nothing when there is none that can be used.
    fn current(&self) -> Option<Arc<Snapshot>> {
        let mut loaded = hold(&self.loaded);
        let place = self.ground.place()?;
        let manifest = manifest_stamp(&place).ok()?;
        if self.distrusted.swap(false, Ordering::Relaxed) {
            // Until another one is written.
            *loaded = Loaded { manifest, snapshot: None };
        }
        if manifest != loaded.manifest {
            let snapshot = Snapshot::load(&place, &self.ground.key, loaded.snapshot.as_deref());
            *loaded = Loaded { manifest, snapshot: snapshot.ok().map(Arc::new) };
        }
        loaded.snapshot.clone()
    }

    /// What is on the disk is not what was written; it is not used again.
    fn distrust(&self) {
        self.distrusted.store(true, Ordering::Relaxed);
    }

    fn survey(&self, start: &RelPath, need: &Need) -> Option<Survey> {
        let mut held = hold(&self.model);
        let model = held.as_mut()?;
        let surveyed = match model.refresh(&self.ground, LISTED_BY_SEARCH_MAX, &|| false) {
            Ok(Fresh::Yes) => model.survey(start, need),
            Ok(Fresh::NotYet) => Ok(None),
            Err(halt) => Err(halt),
        };
        match surveyed {
            Ok(Some(survey)) => {
                self.surveyed.fetch_add(1, Ordering::Relaxed);
                hold(&self.rest).searched = Instant::now();
                Some(survey)
            }
            Ok(None) => None,
            Err(halt) => {
                *held = None;
                if halt == model::Halt::Broken {
                    self.distrust();
                }
                self.ring();
                None
            }
        }
    }

    fn facts(&self) -> IndexFacts {
        let snapshot = self.current();
        let is_watched = hold(&self.model).is_some();
        let rest = hold(&self.rest);
        let mut facts = IndexFacts {
            is_watched,
            known: rest.files.map(|(_, known)| known),
            sifted: self.sifted.load(Ordering::Relaxed),
            surveyed: self.surveyed.load(Ordering::Relaxed),
            remark: rest.remark.clone(),
            ..IndexFacts::default()
        };
        if let Some(snapshot) = snapshot {
            facts.segments = snapshot.segments.len();
            facts.files = snapshot.files();
            facts.bytes = snapshot.size();
            facts.is_cut = snapshot.extent == snapshot::Extent::Cut;
        }
        facts
    }

    fn searched(&self) {
        hold(&self.rest).searched = Instant::now();
        self.ring();
    }

    fn ring(&self) {
        hold(&self.rest).rung = true;
        self.woken.notify_all();
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.ring();
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Sleeps so long; says whether to go on.
    fn sleep(&self, pause: Duration, wake: caretaker::Wake) -> bool {
        let rest = hold(&self.rest);
        let woken = |rest: &Rest| rest.rung && wake == caretaker::Wake::BySearch;
        let sleeps = |rest: &mut Rest| !self.is_stopped() && !woken(rest);
        let (mut rest, _) =
            self.woken.wait_timeout_while(rest, pause, sleeps).unwrap_or_else(PoisonError::into_inner);
        rest.rung = false;
        !self.is_stopped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_starts_once_the_workspace_is_closed() {
        let (files, state) = (tempfile::tempdir().expect("a place"), tempfile::tempdir().expect("a place"));
        let options = Options::new(files.path().to_owned(), state.path().to_owned());
        let workspace = LocalWorkspace::open(options).expect("it opens");
        workspace.close();
        workspace.note_search(u64::MAX);
        assert!(matches!(*hold(&workspace.index.thread), Thread::Over));
    }
}
