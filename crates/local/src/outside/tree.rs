//! The watched tree: hears what the kernel queued, in its order, and keeps the names of what moves.
//!
//! A change is queued before the call that made it returns. So what is looked at later than the last event that was heard
//! may already have another name, but then the queue says so. Everything here rests on that: a directory is watched only
//! when all that was queued is heard, and again if the queue then says that it moved meanwhile; and whatever was looked at is
//! held once more against the queue before it is told (`adrift`).

use std::{
    collections::{BTreeSet, HashSet, VecDeque},
    time::{Duration, Instant},
};

use disk::{
    DiskError, FileType, LockFile, Stat,
    watch::{About, Bell, Drained, Event, Happened, Watch as Queue, WatchId},
};
use engine::Failure;
use path::RelPath;

use super::{
    append::Blind,
    attach::{self, Attach, Attached, Finding},
    batch::{Batch, Belief, Hint},
    known::{self, Knowledge},
    scopes::Scopes,
    watched::Watched,
};
use crate::{failure, open::LocalWorkspace};

/// How long more is let gather once something has happened.
const GATHER: Duration = Duration::from_millis(2);
/// How long one round hears before it tells.
const HEARING_MAX: Duration = Duration::from_millis(100);
/// How long the other half of a rename is waited for.
const PAIR_WAIT: Duration = Duration::from_millis(20);
/// How many events later the other half of a rename may come: other processors put theirs in between.
const PAIR_SPREAD: usize = 64;
/// Most things that wait to be looked at; beyond it everything is looked at anew.
const WAITING_MAX: usize = 200_000;

/// What the queue said about the store.
#[derive(Default)]
pub(super) struct Store {
    pub(super) written: bool,
    pub(super) let_go: bool,
}

/// The tree, as far as it was heard of.
pub(super) struct Tree {
    queue: Queue,
    /// The lock file among the watches of the queue: it is rung whenever a transaction has become true.
    store: WatchId,
    /// Taken from the kernel's queue and not heard yet.
    queued: VecDeque<Event>,
    watched: Watched,
    pub(super) scopes: Scopes,
    pub(super) batch: Batch,
    /// Directories that are to be watched, by the names they have so far.
    unreached: BTreeSet<RelPath>,
    /// Places that must be told to look at again, once what was gathered is told.
    doubted: BTreeSet<RelPath>,
    /// Something was missed, so everything must be looked at anew.
    pub(super) missed: Option<Blind>,
}

impl Tree {
    pub(super) fn new(workspace: &LocalWorkspace, lock: &LockFile) -> Result<Self, DiskError> {
        let (queue, store) = queue(workspace, lock)?;
        Ok(Self {
            queue,
            store,
            queued: VecDeque::new(),
            watched: Watched::default(),
            scopes: Scopes::default(),
            batch: Batch::default(),
            unreached: BTreeSet::new(),
            doubted: BTreeSet::new(),
            missed: None,
        })
    }

    /// Waits until something happens or the bell is rung, but not longer than this.
    pub(super) fn wait(&self, bell: &Bell, most: Duration) -> Result<(), DiskError> {
        let most = if self.queued.is_empty() { most } else { Duration::ZERO };
        self.queue.wait_for(bell, most)
    }

    /// Whether so much waits or was missed that everything must be looked at anew.
    pub(super) fn is_lost(&self) -> bool {
        self.missed.is_some() || self.batch.len() + self.unreached.len() > WAITING_MAX
    }

    /// What was gathered cannot be told.
    pub(super) fn lose(&mut self) {
        self.missed = Some(Blind::Gap);
        self.batch.clear();
    }

    /// Hears what is queued, letting a little more gather when the tree has changed. `floor` is an entry that is older than
    /// everything that was not told yet.
    pub(super) fn gather(&mut self, workspace: &LocalWorkspace, floor: u64) -> Result<Store, Failure> {
        let mut store = Store::default();
        self.fill()?;
        if self.queued.iter().any(|event| event.watch != Some(self.store)) {
            std::thread::sleep(GATHER);
            self.fill()?;
        }
        let end = Instant::now() + HEARING_MAX;
        while let Some(event) = self.queued.pop_front() {
            if event.watch == Some(self.store) {
                note_store(&event, &mut store);
            } else {
                self.hear(workspace, event)?;
            }
            if self.queued.is_empty() && Instant::now() < end {
                self.fill()?;
            }
        }
        self.reach(workspace, floor)?;
        Ok(store)
    }

    /// Takes what the kernel has queued.
    fn fill(&mut self) -> Result<(), Failure> {
        let mut events = Vec::new();
        while self.queue.drain(&mut events).map_err(|error| failure::own(&error))? == Drained::Some {}
        self.queued.extend(events);
        Ok(())
    }

    /// Names that something has left since the last event that was heard: nothing that was looked at there can be trusted.
    pub(super) fn adrift(&mut self) -> Result<HashSet<RelPath>, Failure> {
        self.fill()?;
        let left = self.queued.iter().filter(|event| matches!(event.happened, Happened::MovedFrom(_)));
        Ok(left.filter_map(|event| self.place(event)).collect())
    }

    /// Where something happened, by the names that were heard so far.
    fn place(&self, event: &Event) -> Option<RelPath> {
        let (place, name) = (self.watched.path(event.watch?)?, event.name.as_ref()?);
        place.join(name).ok().filter(|_| !attach::is_temporary(name))
    }

    /// Takes in one event.
    fn hear(&mut self, workspace: &LocalWorkspace, event: Event) -> Result<(), Failure> {
        let Some(id) = event.watch else {
            self.missed = Some(Blind::Overflow);
            return Ok(());
        };
        if event.happened == Happened::Ended {
            self.watched.forget(id);
            return Ok(());
        }
        let Some(path) = self.place(&event) else { return Ok(()) };
        let directory = event.about == About::Directory;
        match event.happened {
            Happened::Created => {
                self.touch(&path, Hint { made: true, came: true, whole: directory, ..Hint::NOTHING });
                if directory {
                    self.unreached.insert(path);
                }
            }
            Happened::Modified => self.touch(&path, Hint { content: true, ..Hint::NOTHING }),
            Happened::Written => self.touch(&path, Hint { closed: true, ..Hint::NOTHING }),
            Happened::Attributes => self.touch(&path, Hint::NOTHING),
            Happened::Deleted => {
                if self.unreached.contains(&path) {
                    // Nobody heard what was removed in it. Who put something there through here told of that.
                    self.batch.depart(&path, event.about);
                }
                self.touch(&path, Hint::LEFT);
                self.unreached.retain(|unreached| !unreached.is_within(&path));
            }
            Happened::MovedFrom(cookie) => self.left(workspace, &path, event.about, cookie)?,
            Happened::MovedTo(_) => {
                self.touch(&path, Hint::CAME);
                if directory {
                    self.unreached.insert(path);
                }
            }
            Happened::SelfMoved | Happened::SelfDeleted | Happened::Ended | Happened::Overflow => {}
        }
        Ok(())
    }

    fn touch(&mut self, path: &RelPath, hint: Hint) {
        if self.scopes.matters(path) {
            self.batch.touch(path, hint, Instant::now());
        }
    }

    /// Whether the moves of something must be followed.
    fn concerns(&self, path: &RelPath, about: About) -> bool {
        self.scopes.matters(path) || (about == About::Directory && self.scopes.needs(path))
    }

    /// A name left. Where it came is the next that was queued, or nearly.
    fn left(
        &mut self,
        workspace: &LocalWorkspace,
        from: &RelPath,
        about: About,
        cookie: u32,
    ) -> Result<(), Failure> {
        if !self.concerns(from, about) {
            return Ok(());
        }
        let Some(other) = self.other_half(cookie)? else {
            self.batch.depart(from, about);
            return self.leave(from);
        };
        if other.name.as_ref().is_some_and(attach::is_temporary) {
            // Put aside under a name of our own: the journal tells.
            self.touch(from, Hint::LEFT);
            return self.leave_if_gone(workspace, from);
        }
        match self.place(&other) {
            Some(to) if self.concerns(&to, about) => self.renamed(workspace, from, &to, about),
            Some(_) | None => {
                self.batch.depart(from, about);
                self.leave(from)
            }
        }
    }

    fn other_half(&mut self, cookie: u32) -> Result<Option<Event>, Failure> {
        let end = Instant::now() + PAIR_WAIT;
        loop {
            let mut near = self.queued.iter().take(PAIR_SPREAD);
            if let Some(at) = near.position(|event| event.happened == Happened::MovedTo(cookie)) {
                return Ok(self.queued.remove(at));
            }
            let left = end.saturating_duration_since(Instant::now());
            if self.queued.len() >= PAIR_SPREAD || left.is_zero() {
                return Ok(None);
            }
            self.queue.wait(left).map_err(|error| failure::own(&error))?;
            self.fill()?;
        }
    }

    fn renamed(
        &mut self,
        workspace: &LocalWorkspace,
        from: &RelPath,
        to: &RelPath,
        about: About,
    ) -> Result<(), Failure> {
        let belief = self.batch.rename(from, to, about, Instant::now());
        if about != About::Directory {
            return Ok(());
        }
        let moved = |path: &RelPath| path.below(from).and_then(|rest| to.append(&rest).ok());
        self.unreached =
            self.unreached.iter().map(|path| moved(path).unwrap_or_else(|| path.clone())).collect();
        self.unreached.extend(self.watched.rename(from, to));
        if belief == Belief::ThereAndBack && matches!(workspace.root.stat(from), Ok(Some(_))) {
            self.unreached.extend([from.clone(), to.clone()]);
        }
        self.prune(Some(to))?;
        if !self.watched.has(to) {
            self.unreached.insert(to.clone());
        }
        Ok(())
    }

    /// Watches the directories that came, with everything below them, when all that was queued is heard. What is in them is
    /// looked at.
    fn reach(&mut self, workspace: &LocalWorkspace, floor: u64) -> Result<(), Failure> {
        // The second time for those that had a wrong name.
        for _ in 0..2 {
            if !self.queued.is_empty() || self.unreached.is_empty() {
                break;
            }
            let (mut tops, mut new, mut came) = (HashSet::new(), HashSet::new(), Vec::new());
            for top in std::mem::take(&mut self.unreached) {
                if self.scopes.needs(&top) {
                    let attached = self.attach(workspace, &top, Finding::Wanted);
                    let mut attached = attached.map_err(|error| failure::own(&error))?;
                    self.unreached.extend(attached.unreached.drain(..));
                    new.extend(attached.new.iter().copied());
                    tops.insert(top.clone());
                    came.push((top, attached));
                }
            }
            let moved = self.let_go_of_moved(&new)?;
            for (top, attached) in came {
                self.tell_unwatched(workspace, &attached)?;
                self.find(workspace, &top, attached.found, &moved)?;
                self.doubt_names(attached.misnamed)?;
            }
            self.seek_told(workspace, &tops, floor)?;
        }
        Ok(())
    }

    /// Directories that are watched under another name than they have. Either the queue tells how that came, or the events
    /// did not tell all: then nothing that was told of either place can be trusted.
    fn doubt_names(&mut self, misnamed: Vec<(WatchId, [RelPath; 2])>) -> Result<(), Failure> {
        for (id, names) in misnamed {
            if self.queued.is_empty() {
                self.queue.remove(id).map_err(|error| failure::own(&error))?;
                self.watched.forget(id);
                self.doubted.extend(names.clone());
            }
            self.unreached.extend(names);
        }
        Ok(())
    }

    /// What callers put into directories before those were watched is known from them, and may be gone unheard.
    fn seek_told(
        &mut self,
        workspace: &LocalWorkspace,
        tops: &HashSet<RelPath>,
        floor: u64,
    ) -> Result<(), Failure> {
        let Some(places) = workspace.store.look(|connection| known::changed_since(connection, floor))? else {
            self.doubted.extend(tops.iter().cloned());
            return Ok(());
        };
        for place in places {
            if tops.contains(&place) || place.ancestors().any(|above| tops.contains(&above)) {
                self.touch(&place, Hint::LEFT);
            }
        }
        Ok(())
    }

    /// Ends the watching of those among these directories that may be others than the ones that were heard of: the queue
    /// names them or something above them. They are sought again. Answers their names.
    fn let_go_of_moved(&mut self, new: &HashSet<WatchId>) -> Result<HashSet<RelPath>, Failure> {
        let mut moved = HashSet::new();
        for named in self.named_since()? {
            for (path, id) in self.watched.branch(&named) {
                if new.contains(&id) {
                    self.queue.remove(id).map_err(|error| failure::own(&error))?;
                    self.watched.forget(id);
                    self.unreached.insert(path.clone());
                    moved.insert(path);
                }
            }
        }
        Ok(moved)
    }

    /// Names of directories that something left or took since the last event that was heard.
    fn named_since(&mut self) -> Result<HashSet<RelPath>, Failure> {
        self.fill()?;
        let named = self.queued.iter().filter(|event| {
            event.about == About::Directory
                && matches!(event.happened, Happened::MovedFrom(_) | Happened::MovedTo(_) | Happened::Deleted)
        });
        Ok(named.filter_map(|event| self.place(event)).collect())
    }

    /// What is in directories that came is looked at, unless it came through here and was told with them.
    fn find(
        &mut self,
        workspace: &LocalWorkspace,
        top: &RelPath,
        found: Vec<RelPath>,
        moved: &HashSet<RelPath>,
    ) -> Result<(), Failure> {
        if found.is_empty() {
            return Ok(());
        }
        let brought_ms = Knowledge::new(&workspace.store).brought_ms(top)?;
        for found in found {
            let news = brought_ms.is_none_or(|brought_ms| {
                let stat = workspace.root.stat(&found).ok().flatten();
                stat.is_some_and(|stat| is_newer(&stat, brought_ms))
            });
            if news && !found.parent().is_some_and(|parent| moved.contains(&parent)) {
                self.touch(&found, Hint::CAME);
            }
        }
        Ok(())
    }

    /// A directory went out of sight: nothing below it is watched any more.
    fn leave(&mut self, path: &RelPath) -> Result<(), Failure> {
        self.unreached.retain(|unreached| !unreached.is_within(path));
        for (_, id) in self.watched.branch(path) {
            self.queue.remove(id).map_err(|error| failure::own(&error))?;
            self.watched.forget(id);
        }
        Ok(())
    }

    /// The same, unless something has the name again: what is written changes places with what was there.
    fn leave_if_gone(&mut self, workspace: &LocalWorkspace, path: &RelPath) -> Result<(), Failure> {
        match workspace.root.stat(path) {
            Ok(Some(_)) => Ok(()),
            Ok(None) | Err(_) => self.leave(path),
        }
    }

    fn attach(
        &mut self,
        workspace: &LocalWorkspace,
        top: &RelPath,
        finding: Finding,
    ) -> Result<Attached, DiskError> {
        let (queue, scopes, watched) = (&self.queue, &self.scopes, &mut self.watched);
        Attach { workspace, queue, scopes, watched, finding }.branch(top)
    }

    fn tell_unwatched(&self, workspace: &LocalWorkspace, attached: &Attached) -> Result<(), Failure> {
        workspace.record_rescan(&attached.beyond_limit, Blind::Limit)?;
        workspace.record_rescan(&attached.denied, Blind::Denied)
    }

    /// Nothing certain can be told about these.
    pub(super) fn doubt(&mut self, places: Vec<RelPath>) {
        self.doubted.extend(places);
    }

    /// Tells which places cannot be trusted, after what was gathered about them.
    pub(super) fn tell_doubts(&mut self, workspace: &LocalWorkspace) -> Result<(), Failure> {
        if self.doubted.is_empty() {
            return Ok(());
        }
        let places = std::mem::take(&mut self.doubted).into_iter().collect();
        workspace.record_rescan(&tops(places), Blind::Gap)
    }

    /// Watches what one watch needs. The place itself need not be a directory, or there.
    pub(super) fn begin(&mut self, workspace: &LocalWorkspace, place: &RelPath) -> Result<Attached, Failure> {
        let attached = self.attach(workspace, place, Finding::Unwanted);
        let attached = attached.map_err(|error| failure::own(&error))?;
        let below = |path: &&RelPath| !place.is_within(path);
        self.unreached.extend(attached.unreached.iter().filter(below).cloned());
        self.unreached.extend(attached.misnamed.iter().flat_map(|(_, names)| names).cloned());
        self.let_go_of_moved(&attached.new.iter().copied().collect())?;
        Ok(attached)
    }

    /// Ends the watching of directories that no watch needs.
    pub(super) fn prune(&mut self, branch: Option<&RelPath>) -> Result<(), Failure> {
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

    /// Something was missed: every directory is found and watched anew, in a queue that holds nothing of before, and that
    /// is told.
    pub(super) fn look_anew(&mut self, workspace: &LocalWorkspace, lock: &LockFile) -> Result<(), Failure> {
        let blind = self.missed.unwrap_or(Blind::Overflow);
        let (queue, store) = queue(workspace, lock).map_err(|error| failure::own(&error))?;
        (self.queue, self.store) = (queue, store);
        self.queued.clear();
        self.batch.clear();
        self.unreached.clear();
        self.doubted.clear();
        self.watched = Watched::default();
        let places: Vec<RelPath> = self.scopes.places().cloned().collect();
        for place in &places {
            let attached = self.begin(workspace, place)?;
            self.tell_unwatched(workspace, &attached)?;
        }
        workspace.record_rescan(&tops(places.into_iter().collect()), blind)?;
        self.missed = None;
        // Whoever writes to the store meanwhile rang the queue that is gone.
        workspace.hear();
        Ok(())
    }
}

/// A queue that hears of the store.
fn queue(workspace: &LocalWorkspace, lock: &LockFile) -> Result<(Queue, WatchId), DiskError> {
    let queue = Queue::new(&workspace.root.open_directory(&RelPath::root())?)?;
    let store = queue.add_lock_file(lock)?;
    Ok((queue, store))
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
pub(super) fn tops(places: HashSet<RelPath>) -> Vec<RelPath> {
    let below = |place: &RelPath| place.ancestors().any(|above| places.contains(&above));
    let mut tops: Vec<RelPath> = places.iter().filter(|place| !below(place)).cloned().collect();
    tops.sort();
    tops
}
