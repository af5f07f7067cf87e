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

use disk::{DiskError, LockFile, Mode, watch::Bell};
use engine::Failure;
use path::RelPath;

use super::{
    append::Blind,
    batch::{Item, OPEN_WAIT},
    judge::{Excused, Judge},
    rows::{self, Kept, Stage},
    scopes::Scopes,
    tree::{Store, Tree, tops},
};
use crate::{failure, open::LocalWorkspace, store::hold};

/// The slot of the lock file that the recorder holds: beyond every slot that a path can have.
const RECORDER_SLOT: u64 = 1 << 62;
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
    tree: Tree,
    bell: Bell,
    lock: LockFile,
    role: Role,
    attached: HashSet<String>,
    excused: Excused,
    generation: Option<i64>,
    /// An entry that is older than everything that waits to be told.
    floor: u64,
    swept: Instant,
    /// When it is to be looked whether processes that watches are bound to have died, and how often more.
    mourning: Option<(Instant, u32)>,
}

impl Recorder {
    pub(super) fn new(workspace: &LocalWorkspace, bell: Bell) -> Result<Self, DiskError> {
        let lock = workspace.state.lock_file()?;
        let tree = Tree::new(workspace, &lock)?;
        let now = Instant::now();
        Ok(Self {
            tree,
            bell,
            lock,
            role: Role::Standby { tries: 0, next: now },
            attached: HashSet::new(),
            excused: Excused::default(),
            generation: None,
            floor: 0,
            swept: now,
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
                        self.tree.lose();
                    }
                }
            }
            let most = self.wait();
            match self.tree.wait(&self.bell, most) {
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
        let missed = self.tree.missed.map(|_| now + FAILED_PAUSE);
        let mourning = self.mourning.filter(|_| self.role == Role::Recording).map(|(due, _)| due);
        let due = [self.tree.batch.due(now), role, missed, mourning].into_iter().flatten().min();
        due.map_or(SWEEP_EVERY, |due| due.saturating_duration_since(now))
    }

    fn round(&mut self, workspace: &LocalWorkspace) -> Result<Next, Failure> {
        // Read before the queue is: what is heard in the next round happens after this entry.
        let settled = workspace.settled_number()?;
        let store = self.tree.gather(workspace, self.floor)?;
        if store.written {
            workspace.hear();
        }
        self.seek_role(workspace, &store)?;
        if self.role == Role::Recording {
            if self.tree.is_lost() {
                self.tree.look_anew(workspace, &self.lock)?;
            }
            self.mourn(workspace, &store)?;
            self.reconcile(workspace)?;
            let ready = self.tree.batch.ready(Instant::now());
            self.judge(workspace, ready)?;
            self.tree.tell_doubts(workspace)?;
            if !self.tree.batch.has_moves() {
                self.floor = settled;
            }
            self.sweep(workspace)?;
        }
        self.end_if_unwatched(workspace)
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
            self.tree.missed = None;
            self.floor = workspace.settled_number()?;
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
        self.tree.scopes = Scopes::new(kept.iter().map(|kept| &kept.watch));
        let ids: HashSet<&str> = kept.iter().map(|kept| kept.watch.id.as_str()).collect();
        let before = self.attached.len();
        self.attached.retain(|id| ids.contains(id.as_str()));
        if self.attached.len() < before {
            self.tree.prune(None)?;
        }
        let new: Vec<&Kept> = kept.iter().filter(|kept| !self.attached.contains(&kept.watch.id)).collect();
        let mut stages = Vec::new();
        for kept in &new {
            stages.push(self.attach_row(workspace, kept)?);
            self.attached.insert(kept.watch.id.clone());
        }
        if !new.is_empty() {
            // What happened before a watch begins is none of its concern, so it is recorded first.
            self.tree.gather(workspace, self.floor)?;
            let waiting = self.tree.batch.ready(Instant::now() + OPEN_WAIT);
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
        let Ok(attached) = self.tree.begin(workspace, place) else { return Ok(Stage::Deaf) };
        workspace.record_rescan(&attached.denied, Blind::Denied)?;
        if attached.beyond_limit.is_empty() {
            return Ok(Stage::Attached);
        }
        if kept.watch.started > 0 {
            workspace.record_rescan(&attached.beyond_limit, Blind::Limit)?;
        }
        Ok(Stage::Full)
    }

    /// Looks at these, and records what is news.
    fn judge(&mut self, workspace: &LocalWorkspace, items: Vec<Item>) -> Result<(), Failure> {
        if items.is_empty() {
            return Ok(());
        }
        let judge = Judge::new(workspace, &self.tree.scopes, &mut self.excused, self.floor);
        let mut judgement = judge.all(items)?;
        let adrift = self.tree.adrift()?;
        let is_adrift = |path: &RelPath| {
            !adrift.is_empty()
                && (adrift.contains(path) || path.ancestors().any(|above| adrift.contains(&above)))
        };
        judgement.news.retain_mut(|judged| judged.trust_without(is_adrift));
        let mut again = workspace.record_outside(judgement.news, judgement.head)?;
        again.append(&mut judgement.later);
        let told = again.iter().all(|item| matches!(item, Item::Touched { .. }));
        // What was touched is judged as if the moves were told. If one is not, it is judged again.
        let doubtful = judgement.touched.into_iter().filter(|item| match item {
            Item::Touched { path, .. } => !told || is_adrift(path),
            Item::Moved(_) => false,
        });
        self.tree.batch.again(again.into_iter().chain(doubtful), Instant::now());
        self.tree.doubt(judgement.doubted);
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
