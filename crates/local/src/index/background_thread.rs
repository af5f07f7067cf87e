//! The background thread that builds the search index and keeps the tree model current. The first large search starts
//! the index thread, and closing the workspace ends the thread. The index thread runs with low priority, and no call
//! waits for the thread.

use std::{
    sync::{Arc, MutexGuard},
    time::{Duration, Instant},
};

use stead_disk::fs_events::FsEventQueue;
use stead_path::{FileName, RelPath};

use super::{
    IndexSharedState, WATCH_RETRY_PAUSE, build,
    build::IndexBuildOutcome,
    segment::IndexSegment,
    snapshot::IndexSnapshot,
    tree_model::{IndexedTreeCache, IndexedTreeCacheDiscardReason, TreeModelFreshness},
};
use crate::store::lock_ignoring_poison;

const POLL_INTERVAL: Duration = Duration::from_secs(1);
const UNWATCH_AFTER_IDLE: Duration = Duration::from_secs(15 * 60);
/// The pause before the next index build after a build that failed or indexed every file.
const RETRY_PAUSE: Duration = Duration::from_secs(60);
/// How long new or recently modified files wait before the index thread indexes them.
const NEW_FILES_WAIT: Duration = Duration::from_secs(4);
/// The index thread lists every directory again within this many rounds, even if the watches report no change.
const FULL_RELIST_TICKS: usize = 300;
/// The number of directories after which the index thread briefly releases the lock, so that searches can run.
const DIRECTORIES_PER_STEP: usize = 64;
const SMALL_SEGMENT_FILES: u32 = 4_000;
/// The most small segments of the search index before they are merged.
const SMALL_SEGMENTS_MAX: usize = 8;
/// The index is built from scratch if it has this many more files than twice the files of the tree.
const STALE_FILES_MAX: u64 = 10_000;

struct IndexThreadNextSleep(Duration, IndexThreadWakeBySearchPolicy);

/// Whether a search can wake the index thread; closing the workspace always wakes the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexThreadWakeBySearchPolicy {
    BySearch,
    Never,
}

pub(super) fn run_index_thread(shared: &Arc<IndexSharedState>) {
    stead_disk::lower_thread_priority();
    let mut next_build = Instant::now();
    loop {
        let IndexThreadNextSleep(pause, wake) = match run_round(shared, &mut next_build) {
            Ok(pause) => pause,
            Err(error) => {
                *lock_ignoring_poison(&shared.model) = None;
                match error {
                    IndexedTreeCacheDiscardReason::Stopped => return,
                    IndexedTreeCacheDiscardReason::EventsLost => {}
                    IndexedTreeCacheDiscardReason::WatchFailed => {
                        lock_ignoring_poison(&shared.thread_status).unwatched_until =
                            Some(Instant::now() + WATCH_RETRY_PAUSE)
                    }
                    IndexedTreeCacheDiscardReason::IndexCorrupt => shared.discard_loaded(),
                    IndexedTreeCacheDiscardReason::Unsupported => {
                        shared.set_message(Some("this file system does not report changes".to_owned()));
                        return;
                    }
                }
                IndexThreadNextSleep(POLL_INTERVAL, IndexThreadWakeBySearchPolicy::Never)
            }
        };
        if !shared.sleep(pause, wake) {
            return;
        }
    }
}

fn run_round(
    shared: &IndexSharedState,
    next_build: &mut Instant,
) -> Result<IndexThreadNextSleep, IndexedTreeCacheDiscardReason> {
    if lock_ignoring_poison(&shared.thread_status).last_search.elapsed() >= UNWATCH_AFTER_IDLE {
        *lock_ignoring_poison(&shared.model) = None;
        return Ok(IndexThreadNextSleep(UNWATCH_AFTER_IDLE, IndexThreadWakeBySearchPolicy::BySearch));
    }
    let has_model = lock_ignoring_poison(&shared.model).is_some();
    let unwatched = if has_model { None } else { prepare_model(shared)? };
    if let Some(mut model) = unwatched {
        if Instant::now() >= *next_build {
            *next_build = extend_index(shared, &mut model)?;
        }
        shared.update_file_count(&model);
        // The tree is not watched, so searches walk it themselves.
        return Ok(IndexThreadNextSleep(RETRY_PAUSE, IndexThreadWakeBySearchPolicy::Never));
    }
    apply_events(shared)?;
    if Instant::now() >= *next_build {
        let mut model_guard = lock_ignoring_poison(&shared.model);
        if let Some(model) = model_guard.as_mut()
            && model.has_unindexed()
        {
            *next_build = extend_watched_index(shared, model_guard)?;
            apply_events(shared)?;
        }
    }
    Ok(IndexThreadNextSleep(POLL_INTERVAL, IndexThreadWakeBySearchPolicy::Never))
}

/// Builds a tree model: stores the model of a watched tree for searches, or returns the model of an unwatched tree.
fn prepare_model(shared: &IndexSharedState) -> Result<Option<IndexedTreeCache>, IndexedTreeCacheDiscardReason> {
    let top =
        shared.context.root.open_directory(&RelPath::root()).map_err(|_| IndexedTreeCacheDiscardReason::Unsupported)?;
    let may_watch =
        lock_ignoring_poison(&shared.thread_status).unwatched_until.is_none_or(|until| until <= Instant::now());
    let watch = match FsEventQueue::new(&top) {
        Ok(watch) => Some(watch).filter(|_| may_watch && shared.context.mount_count == 0),
        Err(error) if error.kind == stead_disk::DiskErrorKind::Unsupported => {
            return Err(IndexedTreeCacheDiscardReason::Unsupported);
        }
        Err(_) if may_watch => return Err(IndexedTreeCacheDiscardReason::WatchFailed),
        Err(_) => None,
    };
    let snapshot = shared.current_snapshot().unwrap_or_default();
    let mut model = IndexedTreeCache::new(snapshot, watch, shared.context.watches_max);
    model.refresh(&shared.context, usize::MAX, &|| shared.is_stopped())?;
    if !model.is_watched() {
        return Ok(Some(model));
    }
    *lock_ignoring_poison(&shared.model) = Some(model);
    Ok(None)
}

/// File system events are processed in small steps, so that searches never wait long for the lock.
fn apply_events(shared: &IndexSharedState) -> Result<(), IndexedTreeCacheDiscardReason> {
    let current = shared.current_snapshot();
    if let Some(model) = lock_ignoring_poison(&shared.model).as_mut() {
        model.mark_some_stale(u32::try_from(model.directory_count().div_ceil(FULL_RELIST_TICKS)).unwrap_or(1));
        if let Some(current) = current {
            model.adopt_snapshot(current);
        }
    }
    loop {
        let mut model_guard = lock_ignoring_poison(&shared.model);
        let Some(model) = model_guard.as_mut() else { return Ok(()) };
        if model.refresh(&shared.context, DIRECTORIES_PER_STEP, &|| shared.is_stopped())? == TreeModelFreshness::Current
        {
            shared.update_file_count(model);
            return Ok(());
        }
    }
}

/// The lock of the tree model is released before the index build, because searches use the tree model meanwhile.
fn extend_watched_index(
    shared: &IndexSharedState,
    mut model_guard: MutexGuard<'_, Option<IndexedTreeCache>>,
) -> Result<Instant, IndexedTreeCacheDiscardReason> {
    let Some(model) = model_guard.as_mut() else { return Ok(Instant::now()) };
    let (base, mut unknown) = (snapshot_without_stale(model), model.unindexed_files());
    drop(model_guard);
    if let Some(base) = &base {
        // A second model finds the files that the smaller snapshot no longer covers.
        let mut model = IndexedTreeCache::new(Arc::clone(base), None, 0);
        model.refresh(&shared.context, usize::MAX, &|| shared.is_stopped())?;
        unknown = model.unindexed_files();
    }
    build_and_adopt(shared, base, &unknown)
}

fn extend_index(
    shared: &IndexSharedState,
    model: &mut IndexedTreeCache,
) -> Result<Instant, IndexedTreeCacheDiscardReason> {
    let base = snapshot_without_stale(model);
    if let Some(base) = &base {
        model.adopt_snapshot(Arc::clone(base));
        model.refresh(&shared.context, usize::MAX, &|| shared.is_stopped())?;
    }
    build_and_adopt(shared, base, &model.unindexed_files())
}

/// Returns the segments that an index build keeps, if small segments must be merged or the index is outdated. If an
/// index build keeps all segments, `None` is returned.
fn snapshot_without_stale(model: &IndexedTreeCache) -> Option<Arc<IndexSnapshot>> {
    let snapshot = model.snapshot();
    let (files, _) = model.files();
    if snapshot.files() > files.saturating_mul(2).saturating_add(STALE_FILES_MAX) {
        return Some(Arc::default());
    }
    let is_small = |segment: &&Arc<IndexSegment>| segment.files < SMALL_SEGMENT_FILES;
    if snapshot.segments.iter().filter(is_small).count() <= SMALL_SEGMENTS_MAX {
        return None;
    }
    let segments = snapshot.segments.iter().filter(|segment| !is_small(segment)).cloned().collect();
    Some(Arc::new(IndexSnapshot { segments, coverage: snapshot.coverage }))
}

/// Indexes files and returns the time of the next index build. Without `base`, the index build keeps all segments that
/// exist when the build begins.
fn build_and_adopt(
    shared: &IndexSharedState,
    base: Option<Arc<IndexSnapshot>>,
    unknown: &[(RelPath, Vec<FileName>)],
) -> Result<Instant, IndexedTreeCacheDiscardReason> {
    let now = Instant::now();
    match try_build(shared, base, unknown) {
        Ok(Some(IndexBuildOutcome::Stopped)) => Err(IndexedTreeCacheDiscardReason::Stopped),
        Ok(Some(IndexBuildOutcome::Done { recently_modified })) => {
            shared.set_message(None);
            Ok(now + if recently_modified == 0 { RETRY_PAUSE } else { NEW_FILES_WAIT })
        }
        // Another process is building the index.
        Ok(None) => Ok(now + NEW_FILES_WAIT),
        Err(error) => {
            shared.set_message(Some(format!("build failed: {error}")));
            Ok(now + RETRY_PAUSE)
        }
    }
}

fn try_build(
    shared: &IndexSharedState,
    base: Option<Arc<IndexSnapshot>>,
    unknown: &[(RelPath, Vec<FileName>)],
) -> Result<Option<IndexBuildOutcome>, stead_disk::DiskError> {
    let directory = shared.context.create_directory()?;
    let Some(_building) = shared.context.try_lock_for_build()? else { return Ok(None) };
    let base = base.or_else(|| shared.current_snapshot()).unwrap_or_default();
    build::build_segments(&shared.context, &directory, &base, unknown, &|| shared.is_stopped()).map(Some)
}

pub(super) fn build_once(shared: &IndexSharedState) -> Result<(), stead_disk::DiskError> {
    let snapshot = shared.current_snapshot().unwrap_or_default();
    let mut model = IndexedTreeCache::new(snapshot, None, 0);
    let stopped = || shared.is_stopped();
    if model.refresh(&shared.context, usize::MAX, &stopped).is_err() {
        // The existing index is unusable, so all files are indexed again.
        shared.discard_loaded();
        model = IndexedTreeCache::new(Arc::default(), None, 0);
        model.refresh(&shared.context, usize::MAX, &stopped).unwrap_or(TreeModelFreshness::Behind);
    }
    let base = snapshot_without_stale(&model);
    if let Some(base) = &base {
        model.adopt_snapshot(Arc::clone(base));
        model.refresh(&shared.context, usize::MAX, &stopped).unwrap_or(TreeModelFreshness::Behind);
    }
    try_build(shared, base, &model.unindexed_files())?;
    if let Some(current) = shared.current_snapshot() {
        model.adopt_snapshot(current);
        model.refresh(&shared.context, usize::MAX, &stopped).unwrap_or(TreeModelFreshness::Behind);
    }
    shared.update_file_count(&model);
    Ok(())
}

impl IndexSharedState {
    fn set_message(&self, message: Option<String>) {
        lock_ignoring_poison(&self.thread_status).message = message;
    }

    fn update_file_count(&self, model: &IndexedTreeCache) {
        let counted = model.files();
        lock_ignoring_poison(&self.thread_status).files = Some(counted);
    }
}
