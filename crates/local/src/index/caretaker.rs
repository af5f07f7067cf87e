//! The thread that builds the index and keeps the model up. Started by the first search that is worth it, ended with the
//! workspace; nobody waits for it, and it lets everybody else go first.

use std::{
    sync::{Arc, MutexGuard},
    time::{Duration, Instant},
};

use disk::watch::Watch;
use path::{Name, RelPath};

use super::{
    Shared, UNWATCHED, build,
    build::Built,
    model::{Fresh, Halt, Model},
    segment::Segment,
    snapshot::Snapshot,
};
use crate::store::hold;

/// Between two looks at what happened, while searches come.
const TICK: Duration = Duration::from_secs(1);
/// Without a search for so long watches are given up, and the next one starts anew.
const IDLE: Duration = Duration::from_secs(15 * 60);
/// Between two tries after something failed.
const RETRY: Duration = Duration::from_secs(60);
/// Files that are too young or new are put in when they have waited so long.
const GATHER: Duration = Duration::from_secs(4);
/// In so many ticks every directory is listed again, whatever watches tell.
const ROUND_TICKS: usize = 300;
/// Directories that are listed before others may have a turn.
const STEP: usize = 64;
/// Segments with fewer files are small.
const SMALL_FILES: u32 = 4_000;
/// So many small segments are made into one.
const SMALL_MAX: usize = 8;
/// Files that segments know and that are no longer so, above those that are; beyond it everything is built anew.
const STALE_FILES: u64 = 10_000;

/// How long to rest.
struct Pause(Duration, Wake);

/// What ends a rest early, besides the end of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// A search.
    BySearch,
    /// Nothing.
    Never,
}

/// Works until the workspace closes.
pub(super) fn run(shared: &Arc<Shared>) {
    disk::work_in_background();
    let mut next_build = Instant::now();
    loop {
        let Pause(pause, wake) = match round(shared, &mut next_build) {
            Ok(pause) => pause,
            Err(halt) => {
                *hold(&shared.model) = None;
                match halt {
                    Halt::Stopped => return,
                    Halt::Lost => {}
                    Halt::Unwatchable => hold(&shared.rest).unwatched = Some(Instant::now() + UNWATCHED),
                    Halt::Broken => shared.distrust(),
                    Halt::Unsupported => {
                        shared.remark(Some("changes cannot be followed on this file system".to_owned()));
                        return;
                    }
                }
                Pause(TICK, Wake::Never)
            }
        };
        if !shared.sleep(pause, wake) {
            return;
        }
    }
}

fn round(shared: &Shared, next_build: &mut Instant) -> Result<Pause, Halt> {
    if hold(&shared.rest).searched.elapsed() >= IDLE {
        *hold(&shared.model) = None;
        return Ok(Pause(IDLE, Wake::BySearch));
    }
    let has_model = hold(&shared.model).is_some();
    let unwatched = if has_model { None } else { prepare(shared)? };
    if let Some(mut model) = unwatched {
        if Instant::now() >= *next_build {
            *next_build = extend(shared, &mut model)?;
        }
        shared.count(&model);
        // Walks go on as before, and the next one comes back here.
        return Ok(Pause(RETRY, Wake::Never));
    }
    follow(shared)?;
    if Instant::now() >= *next_build {
        let mut held = hold(&shared.model);
        if let Some(model) = held.as_mut()
            && model.has_unknown()
        {
            *next_build = extend_watched(shared, held)?;
            follow(shared)?;
        }
    }
    Ok(Pause(TICK, Wake::Never))
}

/// Makes a model of the whole tree. One that is watched is left where searches find it.
fn prepare(shared: &Shared) -> Result<Option<Model>, Halt> {
    let top = shared.ground.root.open_directory(&RelPath::root()).map_err(|_| Halt::Unsupported)?;
    let watch = Watch::new(&top).map_err(|error| {
        let unsupported = error.kind == disk::ErrorKind::Unsupported;
        if unsupported { Halt::Unsupported } else { Halt::Unwatchable }
    });
    let may_watch = hold(&shared.rest).unwatched.is_none_or(|until| until <= Instant::now());
    let watch = match watch {
        Ok(watch) if may_watch && shared.ground.mounts == 0 => Some(watch),
        Ok(_) => None,
        Err(Halt::Unwatchable) if !may_watch => None,
        Err(halt) => return Err(halt),
    };
    let snapshot = shared.current().unwrap_or_else(|| Arc::new(Snapshot::empty()));
    let mut model = Model::new(snapshot, watch, shared.ground.watches_max);
    model.refresh(&shared.ground, usize::MAX, &|| shared.is_stopped())?;
    if !model.is_watched() {
        return Ok(Some(model));
    }
    *hold(&shared.model) = Some(model);
    Ok(None)
}

/// Takes in what happened, in small steps, so that a search never waits long.
fn follow(shared: &Shared) -> Result<(), Halt> {
    let current = shared.current();
    if let Some(model) = hold(&shared.model).as_mut() {
        model.touch_some(u32::try_from(model.directories().div_ceil(ROUND_TICKS)).unwrap_or(1));
        if let Some(current) = current {
            model.adopt(current);
        }
    }
    loop {
        let mut held = hold(&shared.model);
        let Some(model) = held.as_mut() else { return Ok(()) };
        if model.refresh(&shared.ground, STEP, &|| shared.is_stopped())? == Fresh::Yes {
            shared.count(model);
            return Ok(());
        }
    }
}

/// Puts what no segment knows into the index, while searches go on with the model as it is.
fn extend_watched(shared: &Shared, mut held: MutexGuard<'_, Option<Model>>) -> Result<Instant, Halt> {
    let Some(model) = held.as_mut() else { return Ok(Instant::now()) };
    let (base, unknown) = (slimmed(model), model.unknown());
    drop(held);
    match base {
        None => put(shared, Base::Current, &unknown),
        Some(base) => {
            // A model of its own finds out what the others would no longer know.
            let mut model = Model::new(Arc::clone(&base), None, 0);
            model.refresh(&shared.ground, usize::MAX, &|| shared.is_stopped())?;
            put(shared, Base::Slimmed(base), &model.unknown())
        }
    }
}

/// The same with a model that nobody else has.
fn extend(shared: &Shared, model: &mut Model) -> Result<Instant, Halt> {
    match slimmed(model) {
        None => put(shared, Base::Current, &model.unknown()),
        Some(base) => {
            model.adopt(Arc::clone(&base));
            model.refresh(&shared.ground, usize::MAX, &|| shared.is_stopped())?;
            put(shared, Base::Slimmed(base), &model.unknown())
        }
    }
}

/// What new segments are added to.
enum Base {
    /// Whatever is there when building begins.
    Current,
    /// What is left of it when segments that are small or stale go.
    Slimmed(Arc<Snapshot>),
}

/// The snapshot of a model without segments that are not worth keeping; nothing when all are.
fn slimmed(model: &Model) -> Option<Arc<Snapshot>> {
    let snapshot = model.snapshot();
    let (files, _) = model.files();
    if snapshot.files() > files.saturating_mul(2).saturating_add(STALE_FILES) {
        return Some(Arc::new(Snapshot::empty()));
    }
    let is_small = |segment: &&Arc<Segment>| segment.files < SMALL_FILES;
    if snapshot.segments.iter().filter(is_small).count() <= SMALL_MAX {
        return None;
    }
    let segments = snapshot.segments.iter().filter(|segment| !is_small(segment)).cloned().collect();
    Some(Arc::new(Snapshot { segments, extent: snapshot.extent }))
}

/// Puts files into the index, if nobody else does. Tells when to come back.
fn put(shared: &Shared, base: Base, unknown: &[(RelPath, Vec<Name>)]) -> Result<Instant, Halt> {
    let now = Instant::now();
    match try_put(shared, base, unknown) {
        Ok(Some(Built::Stopped)) => Err(Halt::Stopped),
        Ok(Some(Built::Done { young: 0 })) => {
            shared.remark(None);
            Ok(now + RETRY)
        }
        Ok(Some(Built::Done { .. })) => {
            shared.remark(None);
            Ok(now + GATHER)
        }
        // Another process builds.
        Ok(None) => Ok(now + GATHER),
        Err(error) => {
            shared.remark(Some(format!("it could not be built: {error}")));
            Ok(now + RETRY)
        }
    }
}

fn try_put(
    shared: &Shared,
    base: Base,
    unknown: &[(RelPath, Vec<Name>)],
) -> Result<Option<Built>, disk::DiskError> {
    let place = shared.ground.make_place()?;
    let Some(_building) = shared.ground.build()? else { return Ok(None) };
    let base = match base {
        Base::Current => shared.current().unwrap_or_else(|| Arc::new(Snapshot::empty())),
        Base::Slimmed(base) => base,
    };
    build::add(&shared.ground, &place, &base, unknown, &|| shared.is_stopped()).map(Some)
}

/// Builds here and now, for whoever waits for it.
pub(super) fn build_once(shared: &Shared) -> Result<(), disk::DiskError> {
    let snapshot = shared.current().unwrap_or_else(|| Arc::new(Snapshot::empty()));
    let mut model = Model::new(snapshot, None, 0);
    let stopped = || shared.is_stopped();
    if model.refresh(&shared.ground, usize::MAX, &stopped).is_err() {
        // What is there cannot be used: all is built anew.
        shared.distrust();
        model = Model::new(Arc::new(Snapshot::empty()), None, 0);
        model.refresh(&shared.ground, usize::MAX, &stopped).unwrap_or(Fresh::NotYet);
    }
    let base = slimmed(&model);
    if let Some(base) = &base {
        model.adopt(Arc::clone(base));
        model.refresh(&shared.ground, usize::MAX, &stopped).unwrap_or(Fresh::NotYet);
    }
    try_put(shared, base.map_or(Base::Current, Base::Slimmed), &model.unknown())?;
    if let Some(current) = shared.current() {
        model.adopt(current);
        model.refresh(&shared.ground, usize::MAX, &stopped).unwrap_or(Fresh::NotYet);
    }
    shared.count(&model);
    Ok(())
}

impl Shared {
    fn remark(&self, remark: Option<String>) {
        hold(&self.rest).remark = remark;
    }

    /// Puts down how many files there are and how many the index knows.
    fn count(&self, model: &Model) {
        let counted = model.files();
        hold(&self.rest).files = Some(counted);
    }
}
