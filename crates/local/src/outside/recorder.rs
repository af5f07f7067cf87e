//! The listening thread. Waits at one queue of the kernel's: for changes in the tree if it records, and in any case for
//! writes to the store by other processes and for the death of the one that records.

use std::{
    collections::HashSet,
    sync::{
        Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use disk::{
    DiskError, FileType, LockFile, Mode, Stat,
    watch::{About, Bell, Drained, Event, Happened, Watch as Queue, WatchId},
};
use engine::Failure;
use path::RelPath;

use super::{
    append::Blind,
    attach::{self, Finding},
    batch::{Batch, Hint, Item, OPEN_WAIT},
    judge::Judge,
    known::Knowledge,
    rows::{self, Kept, Stage},
    scopes::Scopes,
    watched::Watched,
};
use crate::{failure, open::LocalWorkspace, store::hold};

/// The slot of the lock file that the recorder holds: beyond every slot that a path can have.
const RECORDER_SLOT: u64 = 1 << 62;
/// How long more is let gather once something has happened.
const GATHER: Duration = Duration::from_millis(2);
/// How often a standby looks whether it should record, besides when it is told.
const STANDBY_LOOK: Duration = Duration::from_secs(30);
/// How soon a standby looks again after a process has let go of the lock file: the kernel tells of that before it
/// frees the lock.
const STANDBY_SOON: Duration = Duration::from_millis(20);
/// How many times in a row it looks soon.
const STANDBY_TRIES: u32 = 50;
/// How many times in a row it is looked who has died.
const MOURNING_TRIES: u32 = 10;
/// How long nothing is tried after a failure.
const FAILED_PAUSE: Duration = Duration::from_secs(1);
/// How often watches that nobody wants any more are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(60 * 60);
/// Most things that wait to be looked at; beyond it everything is looked at anew.
const WAITING_MAX: usize = 200_000;

/// What this process does for the watches of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Another process records; this one takes over when that one dies.
    Standby { tries: u32, next: Instant },
    /// This one records.
    Recording,
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Round,
    End,
}

/// The state of the thread.
pub(super) struct Recorder {
    queue: Queue,
    bell: Bell,
    /// The lock file among the watches of the queue: it is rung whenever a transaction has become true.
    store: WatchId,
    lock: LockFile,
    role: Role,
    watched: Watched,
    scopes: Scopes,
    attached: HashSet<String>,
    batch: Batch,
    generation: Option<i64>,
    swept: Instant,
    /// Something was missed, so everything must be looked at anew.
    missed: Option<Blind>,
    /// When it is to be looked whether processes that watches are bound to have died, and how often more.
    mourning: Option<(Instant, u32)>,
}

/// What the queue said about the store.
#[derive(Default)]
struct Store {
    written: bool,
    let_go: bool,
}

impl Recorder {
    pub(super) fn new(workspace: &LocalWorkspace, bell: Bell) -> Result<Self, DiskError> {
        let top = workspace.root.open_directory(&RelPath::root())?;
        let queue = Queue::new(&top)?;
        let lock = workspace.state.lock_file()?;
        let store = queue.add_lock_file(&lock)?;
        let now = Instant::now();
        Ok(Self {
            queue,
            bell,
            store,
            lock,
            role: Role::Standby { tries: 0, next: now },
            watched: Watched::default(),
            scopes: Scopes::default(),
            attached: HashSet::new(),
            batch: Batch::default(),
            generation: None,
            swept: now,
            missed: None,
            mourning: Some((now, 0)),
        })
    }

    pub(super) fn run(mut self, workspace: &Weak<LocalWorkspace>, stop: &AtomicBool) {
        loop {
            {
                let Some(workspace) = workspace.upgrade() else { return };
                if stop.load(Ordering::Acquire) {
                    workspace.outside.listening.store(false, Ordering::Release);
                    return;
                }
                workspace.outside.rounds.fetch_add(1, Ordering::Relaxed);
                workspace.outside.listening.store(true, Ordering::Release);
                match self.round(&workspace) {
                    Ok(Next::Round) => {}
                    Ok(Next::End) => return,
                    Err(_) => {
                        // What was gathered is lost, so it is told as missed once the store can be written again.
                        workspace.count_background_failure();
                        self.missed = Some(Blind::Gap);
                        self.batch.clear();
                    }
                }
            }
            let most = self.wait();
            match self.queue.wait_for(&self.bell, most) {
                Ok(()) => {}
                Err(_) => std::thread::sleep(FAILED_PAUSE),
            }
        }
    }

    /// How long nothing needs to be done unless something happens.
    fn wait(&self) -> Duration {
        let now = Instant::now();
        let role = match self.role {
            Role::Standby { next, .. } => Some(next),
            Role::Recording => Some(self.swept + SWEEP_EVERY),
        };
        let missed = self.missed.map(|_| now + FAILED_PAUSE);
        let mourning = self.mourning.filter(|_| self.role == Role::Recording).map(|(due, _)| due);
        let due = [self.batch.due(), role, missed, mourning].into_iter().flatten().min();
        due.map_or(SWEEP_EVERY, |due| due.saturating_duration_since(now))
    }

    fn round(&mut self, workspace: &LocalWorkspace) -> Result<Next, Failure> {
        let store = self.gather(workspace)?;
        if store.written {
            workspace.hear();
        }
        self.seek_role(workspace, &store)?;
        if self.role == Role::Recording {
            if self.missed.is_some() || self.batch.len() > WAITING_MAX {
                self.look_anew(workspace)?;
            }
            self.mourn(workspace, &store)?;
            self.reconcile(workspace)?;
            let ready = self.batch.ready(Instant::now());
            self.judge(workspace, ready)?;
            self.sweep(workspace)?;
        }
        self.end_if_unwatched(workspace)
    }

    /// Takes what is queued, letting a little more gather when the tree has changed.
    fn gather(&mut self, workspace: &LocalWorkspace) -> Result<Store, Failure> {
        let own = |error: DiskError| failure::own(&error);
        let mut store = Store::default();
        let mut events = Vec::new();
        let mut drained = self.queue.drain(&mut events).map_err(own)?;
        if events.iter().any(|event| event.watch != Some(self.store)) {
            std::thread::sleep(GATHER);
        }
        while drained == Drained::Some || !events.is_empty() {
            for event in events.drain(..) {
                if event.watch == Some(self.store) {
                    note_store(&event, &mut store);
                } else {
                    self.hear(workspace, event)?;
                }
            }
            drained = self.queue.drain(&mut events).map_err(own)?;
            if self.batch.len() > WAITING_MAX || (drained == Drained::All && events.is_empty()) {
                break;
            }
        }
        let now = Instant::now();
        for path in self.batch.gone(now) {
            self.leave(&path)?;
            self.touch(&path, Hint { left: true, ..Hint::default() });
        }
        Ok(store)
    }

    /// Takes in one event of the tree.
    fn hear(&mut self, workspace: &LocalWorkspace, event: Event) -> Result<(), Failure> {
        let Some(id) = event.watch else {
            self.missed = Some(Blind::Overflow);
            return Ok(());
        };
        if event.happened == Happened::Ended {
            self.watched.forget(id);
            return Ok(());
        }
        let place = self.watched.path(id).cloned();
        let (Some(place), Some(name)) = (place, event.name) else { return Ok(()) };
        let Ok(path) = place.join(&name) else { return Ok(()) };
        if attach::is_temporary(&name) {
            return Ok(());
        }
        let directory = event.about == About::Directory;
        let now = Instant::now();
        match event.happened {
            Happened::Created => {
                self.touch(&path, Hint { made: true, came: true, whole: directory, ..Hint::default() });
                if directory {
                    self.arrive(workspace, &path)?;
                }
            }
            Happened::Modified => self.touch(&path, Hint { content: true, ..Hint::default() }),
            Happened::Written => self.touch(&path, Hint { closed: true, ..Hint::default() }),
            Happened::Attributes => self.touch(&path, Hint::default()),
            Happened::Deleted => self.touch(&path, Hint { left: true, ..Hint::default() }),
            Happened::MovedFrom(cookie) => self.batch.leave(cookie, path, now),
            Happened::MovedTo(cookie) => match self.batch.arrive(cookie) {
                Some(from) => self.renamed(workspace, &from, &path, event.about)?,
                None => {
                    self.touch(&path, Hint { came: true, content: true, whole: true, ..Hint::default() });
                    if directory {
                        self.arrive(workspace, &path)?;
                    }
                }
            },
            Happened::SelfMoved | Happened::SelfDeleted | Happened::Ended | Happened::Overflow => {}
        }
        Ok(())
    }

    fn touch(&mut self, path: &RelPath, hint: Hint) {
        if self.scopes.matters(path) {
            self.batch.touch(path, hint, Instant::now());
        }
    }

    fn renamed(
        &mut self,
        workspace: &LocalWorkspace,
        from: &RelPath,
        to: &RelPath,
        about: About,
    ) -> Result<(), Failure> {
        if self.scopes.matters(from) || self.scopes.matters(to) {
            self.batch.rename(from, to, Instant::now());
        }
        if about == About::Directory {
            self.watched.rename(from, to);
            self.prune(Some(to))?;
            if self.scopes.needs(to) && !self.watched.has(to) {
                self.arrive(workspace, to)?;
            }
        }
        Ok(())
    }

    /// A directory came: it is watched with everything below it, and what is in it is looked at, unless it came through
    /// here and brought that along.
    fn arrive(&mut self, workspace: &LocalWorkspace, path: &RelPath) -> Result<(), Failure> {
        if !self.scopes.needs(path) {
            return Ok(());
        }
        let found = self.attach(workspace, path, Finding::Wanted)?;
        if found.is_empty() {
            return Ok(());
        }
        let brought_ms = Knowledge::new(&workspace.store).brought_ms(path)?;
        for found in found {
            let news = brought_ms.is_none_or(|brought_ms| {
                let stat = workspace.root.stat(&found).ok().flatten();
                stat.is_some_and(|stat| is_newer(&stat, brought_ms))
            });
            if news {
                self.touch(&found, Hint { came: true, content: true, whole: true, ..Hint::default() });
            }
        }
        Ok(())
    }

    /// A directory went out of sight: nothing below it is watched any more.
    fn leave(&mut self, path: &RelPath) -> Result<(), Failure> {
        for (_, id) in self.watched.branch(path) {
            self.queue.remove(id).map_err(|error| failure::own(&error))?;
            self.watched.forget(id);
        }
        Ok(())
    }

    /// Watches a branch. Answers what is in it; tells where it could not.
    fn attach(
        &mut self,
        workspace: &LocalWorkspace,
        top: &RelPath,
        finding: Finding,
    ) -> Result<Vec<RelPath>, Failure> {
        let attached = attach::attach(workspace, &self.queue, &self.scopes, &mut self.watched, top, finding)
            .map_err(|error| failure::own(&error))?;
        workspace.record_rescan(&attached.beyond_limit, Blind::Limit)?;
        workspace.record_rescan(&attached.denied, Blind::Denied)?;
        Ok(attached.found.into_iter().map(|(path, _)| path).collect())
    }

    /// Ends the watching of directories that no watch needs.
    fn prune(&mut self, branch: Option<&RelPath>) -> Result<(), Failure> {
        let watched = match branch {
            Some(top) => self.watched.branch(top),
            None => self.watched.all(),
        };
        for (path, id) in watched {
            if !self.scopes.needs(&path) {
                self.queue.remove(id).map_err(|error| failure::own(&error))?;
                self.watched.forget(id);
            }
        }
        Ok(())
    }

    /// Becomes the one that records, if nobody else is.
    fn seek_role(&mut self, workspace: &LocalWorkspace, store: &Store) -> Result<(), Failure> {
        let Role::Standby { tries, next } = self.role else { return Ok(()) };
        let now = Instant::now();
        if now < next && !store.let_go {
            return Ok(());
        }
        let mine =
            self.lock.try_lock(RECORDER_SLOT, Mode::Exclusive).map_err(|error| failure::own(&error))?;
        if mine {
            self.role = Role::Recording;
            // Rows that began before were listened for by somebody else, or by nobody.
            self.missed = None;
            return self.take_over(workspace);
        }
        let tries = if store.let_go { STANDBY_TRIES } else { tries.saturating_sub(1) };
        let next = now + if tries > 0 { STANDBY_SOON } else { STANDBY_LOOK };
        self.role = Role::Standby { tries, next };
        Ok(())
    }

    fn take_over(&mut self, workspace: &LocalWorkspace) -> Result<(), Failure> {
        // Taken before anything is attached: a watch that begins meanwhile misses nothing.
        let kept = workspace.store.look(rows::all)?;
        let begun = kept.iter().filter(|kept| kept.watch.started > 0);
        let places: HashSet<RelPath> = begun.map(|kept| kept.watch.path.clone()).collect();
        self.reconcile(workspace)?;
        workspace.record_rescan(&tops(places), Blind::Gap)
    }

    /// Watches what the watches need now, and nothing else.
    fn reconcile(&mut self, workspace: &LocalWorkspace) -> Result<(), Failure> {
        let generation = workspace.store.look(rows::generation)?;
        if self.generation == Some(generation) {
            return Ok(());
        }
        let kept = workspace.store.look(rows::all)?;
        self.scopes = Scopes::new(kept.iter().map(|kept| &kept.watch));
        let ids: HashSet<&str> = kept.iter().map(|kept| kept.watch.id.as_str()).collect();
        let before = self.attached.len();
        self.attached.retain(|id| ids.contains(id.as_str()));
        if self.attached.len() < before {
            self.prune(None)?;
        }
        let new: Vec<&Kept> = kept.iter().filter(|kept| !self.attached.contains(&kept.watch.id)).collect();
        let mut stages = Vec::new();
        for kept in &new {
            stages.push(self.attach_row(workspace, kept)?);
            self.attached.insert(kept.watch.id.clone());
        }
        if !new.is_empty() {
            // What happened before a watch begins is none of its concern, so it is recorded first.
            self.gather(workspace)?;
            let waiting = self.batch.ready(Instant::now() + OPEN_WAIT);
            self.judge(workspace, waiting)?;
        }
        for (kept, stage) in new.iter().zip(stages) {
            if kept.stage != stage && kept.watch.started == 0 {
                workspace.write_rows(|connection| rows::mark(connection, &kept.watch.id, stage))?;
            }
        }
        self.generation = Some(generation);
        workspace.hear();
        Ok(())
    }

    /// Watches what one watch needs. One that has begun stays, as far as it reaches; a new one that would hear only half
    /// is refused.
    fn attach_row(&mut self, workspace: &LocalWorkspace, kept: &Kept) -> Result<Stage, Failure> {
        let place = &kept.watch.path;
        let attached =
            attach::attach(workspace, &self.queue, &self.scopes, &mut self.watched, place, Finding::Unwanted);
        let Ok(attached) = attached else { return Ok(Stage::Deaf) };
        workspace.record_rescan(&attached.denied, Blind::Denied)?;
        if attached.beyond_limit.is_empty() {
            return Ok(Stage::Attached);
        }
        if kept.watch.started > 0 {
            workspace.record_rescan(&attached.beyond_limit, Blind::Limit)?;
        }
        Ok(Stage::Full)
    }

    /// Something was missed: every directory is found and watched anew, and that is told.
    fn look_anew(&mut self, workspace: &LocalWorkspace) -> Result<(), Failure> {
        let blind = self.missed.take().unwrap_or(Blind::Overflow);
        self.batch.clear();
        let old: HashSet<WatchId> = self.watched.all().into_iter().map(|(_, id)| id).collect();
        self.watched = Watched::default();
        let places: Vec<RelPath> = self.scopes.places().cloned().collect();
        for place in &places {
            self.attach(workspace, place, Finding::Unwanted)?;
        }
        let new: HashSet<WatchId> = self.watched.all().into_iter().map(|(_, id)| id).collect();
        for id in old.difference(&new) {
            self.queue.remove(*id).map_err(|error| failure::own(&error))?;
        }
        workspace.record_rescan(&tops(places.into_iter().collect()), blind)
    }

    /// Looks at these, and records what is news.
    fn judge(&mut self, workspace: &LocalWorkspace, items: Vec<Item>) -> Result<(), Failure> {
        if items.is_empty() {
            return Ok(());
        }
        let mut again = Vec::new();
        let news = Judge::new(workspace, &self.scopes).all(items, &mut again)?;
        again.extend(workspace.record_outside(news)?);
        for item in again {
            self.batch.again(item, Instant::now());
        }
        Ok(())
    }

    fn sweep(&mut self, workspace: &LocalWorkspace) -> Result<(), Failure> {
        if self.swept.elapsed() >= SWEEP_EVERY {
            self.swept = Instant::now();
            self.mourning = Some((self.swept, 0));
            let now_ms = workspace.clock.now().wall_ms;
            workspace.write_rows(|connection| rows::sweep(connection, now_ms))?;
        }
        Ok(())
    }

    /// Ends the watches of processes that have died. When one lets go of the lock file the kernel tells before it frees the
    /// lock, so it is looked a few times.
    fn mourn(&mut self, workspace: &LocalWorkspace, store: &Store) -> Result<(), Failure> {
        let now = Instant::now();
        if store.let_go {
            self.mourning = Some((now, MOURNING_TRIES));
        }
        let Some((_, tries)) = self.mourning.filter(|(due, _)| *due <= now) else { return Ok(()) };
        let others = workspace.store.look(|connection| rows::bound_to(connection, &workspace.process))?;
        let mut living = false;
        for process in others {
            if workspace.locks.is_alive(&process)? {
                living = true;
            } else {
                workspace.write_rows(|connection| rows::bury(connection, &process))?;
            }
        }
        self.mourning = (living && tries > 0).then(|| (now + STANDBY_SOON, tries - 1));
        Ok(())
    }

    /// Ends when nobody watches anything.
    fn end_if_unwatched(&self, workspace: &LocalWorkspace) -> Result<Next, Failure> {
        if workspace.store.look(rows::any)? {
            return Ok(Next::Round);
        }
        // Under this mutex nobody can believe that the thread still runs.
        let mut running = hold(&workspace.outside.running);
        if workspace.store.look(rows::any)? {
            return Ok(Next::Round);
        }
        workspace.outside.listening.store(false, Ordering::Release);
        if running.as_ref().is_some_and(|running| running.thread.thread().id() == std::thread::current().id())
        {
            *running = None;
        }
        Ok(Next::End)
    }
}

/// Whether something was made or changed after this time. The time of a directory changes with every name in it, so for one
/// it counts when it was made.
fn is_newer(stat: &Stat, than_ms: i64) -> bool {
    let than_ns = i128::from(than_ms) * 1_000_000;
    match stat.file_type {
        FileType::Directory => stat.born_ns.is_some_and(|born_ns| born_ns >= than_ns),
        FileType::File
        | FileType::Link
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharDevice
        | FileType::BlockDevice
        | FileType::Unknown => stat.stamp.changed_ns >= than_ns,
    }
}

fn note_store(event: &Event, store: &mut Store) {
    match event.happened {
        Happened::Modified => store.written = true,
        Happened::Written => store.let_go = true,
        Happened::Created
        | Happened::Attributes
        | Happened::MovedFrom(_)
        | Happened::MovedTo(_)
        | Happened::Deleted
        | Happened::SelfMoved
        | Happened::SelfDeleted
        | Happened::Ended
        | Happened::Overflow => {}
    }
}

/// The places that are below no other of them.
fn tops(places: HashSet<RelPath>) -> Vec<RelPath> {
    let below = |place: &RelPath| place.ancestors().any(|above| places.contains(&above));
    let mut tops: Vec<RelPath> = places.iter().filter(|place| !below(place)).cloned().collect();
    tops.sort();
    tops
}
