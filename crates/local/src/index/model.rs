//! The tree as the index last saw it: every directory that a walk of plain names enters, which of its files are known to
//! which segment, what the others are called, and what was left out. Told of changes by watches, where there are any.
//!
//! Promises: after [`Model::refresh`] it is what a walk begun at that moment would meet, as far as the kernel tells
//! changes. A directory is watched before it is listed, and is listed again after anything happened in it. What cannot be
//! kept up ([`Halt`]) ends the model; it is never used half right. Costs some thirty bytes for each file.

mod listing;
mod survey;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use disk::watch::{About, Drained, Event, Happened, Watch, WatchId};
use engine::index::Ignored;
use path::{Name, RelPath};

use super::{ground::Ground, segment::Broken, snapshot::Snapshot};

/// Stands for "no directory".
const NOBODY: u32 = u32::MAX;
/// Most times the queue is drained before the model counts as being left behind.
const DRAINS_MAX: usize = 4;

/// Why a model cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    /// Changes were lost, or come faster than they can be followed.
    Lost,
    /// Something cannot be watched.
    Unwatchable,
    /// The index is not what was written.
    Broken,
    /// Somebody wants the work to end.
    Stopped,
    /// Changes can be made here that nobody tells, and stamps may lie.
    Unsupported,
}

impl From<Broken> for Halt {
    fn from(_: Broken) -> Self {
        Self::Broken
    }
}

/// Whether everything that happened is in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fresh {
    Yes,
    /// There is more to do than was allowed.
    NotYet,
}

/// The tree.
pub(super) struct Model {
    snapshot: Arc<Snapshot>,
    watch: Option<Watch>,
    watches_max: usize,
    /// Directories by number; the first one is the root.
    directories: Vec<Option<Folder>>,
    free: Vec<u32>,
    watched: HashMap<WatchId, (u32, Role)>,
    /// For every segment the directory in which each of its files stands now.
    owners: Vec<Vec<u32>>,
    /// Directories that must be listed again.
    touched: BTreeSet<u32>,
    /// Where the slow round of looking again has come to.
    round: u32,
    /// Whether every directory has been listed once.
    complete: bool,
}

/// Why a directory is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// For what is in it.
    Own,
    /// As the `.git` of the directory.
    Git,
    /// As the `.git/info` of the directory.
    GitInfo,
}

/// One directory.
struct Folder {
    path: RelPath,
    above: u32,
    below: Vec<u32>,
    ignored: Ignored,
    watches: Vec<WatchId>,
    /// Files that segments know: segment and number.
    known: Vec<(u16, u32)>,
    /// Files that must be looked into.
    others: Vec<(Name, Why)>,
    /// Files with more names than one.
    linked: Vec<Name>,
    counts: Counts,
}

/// Why a file must be looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// No segment knows it as it is.
    New,
    /// The index cannot help, or watches cannot tell.
    Always,
}

/// What a walk counts in one directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    entries: u64,
    texts: u64,
    bytes: u64,
    binary: u64,
    ignored: u64,
    closed: u64,
}

impl Model {
    /// An empty model; everything is still to be listed.
    pub(super) fn new(snapshot: Arc<Snapshot>, watch: Option<Watch>, watches_max: usize) -> Self {
        let owners = snapshot.segments.iter().map(|segment| vec![NOBODY; segment.files as usize]).collect();
        let root = Folder::new(RelPath::root(), NOBODY, Ignored::default());
        Self {
            snapshot,
            watch,
            watches_max,
            directories: vec![Some(root)],
            free: Vec::new(),
            watched: HashMap::new(),
            owners,
            touched: BTreeSet::from([0]),
            round: 0,
            complete: false,
        }
    }

    /// Takes in what happened and lists again what it touched, at most so many directories. The work ends early when
    /// `stopped` says so.
    pub(super) fn refresh(
        &mut self,
        ground: &Ground,
        directories_max: usize,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Fresh, Halt> {
        self.take_events()?;
        let mut listed = 0;
        while let Some(number) = self.touched.pop_first() {
            if listed >= directories_max {
                self.touched.insert(number);
                return Ok(Fresh::NotYet);
            }
            if stopped() {
                return Err(Halt::Stopped);
            }
            self.list_again(ground, number)?;
            listed += 1;
        }
        self.complete = true;
        Ok(Fresh::Yes)
    }

    fn take_events(&mut self) -> Result<(), Halt> {
        let Some(watch) = &self.watch else { return Ok(()) };
        let (mut events, mut drained) = (Vec::new(), Drained::Some);
        for _ in 0..DRAINS_MAX {
            drained = watch.drain(&mut events).map_err(|_| Halt::Lost)?;
            if drained == Drained::All {
                break;
            }
        }
        if drained != Drained::All {
            return Err(Halt::Lost);
        }
        events.into_iter().try_for_each(|event| self.take(&event))
    }

    fn take(&mut self, event: &Event) -> Result<(), Halt> {
        let Some(watch) = event.watch else { return Err(Halt::Lost) };
        // Of a watch that was given up: what it tells is about a directory that is no longer here.
        let Some((number, role)) = self.watched.get(&watch).copied() else { return Ok(()) };
        let name = event.name.as_ref().map(Name::as_bytes);
        let is_over = matches!(event.happened, Happened::Ended | Happened::SelfDeleted | Happened::SelfMoved);
        if event.happened == Happened::Ended {
            self.watched.remove(&watch);
        }
        match role {
            Role::Git if is_over || name == Some(b"info") => self.judge_again(number),
            Role::GitInfo if is_over || name == Some(b"exclude") => self.judge_again(number),
            Role::Git | Role::GitInfo => {}
            Role::Own => match name {
                Some(name) if self.obeys(number, name).is_some() => {
                    let above = self.obeys(number, name).unwrap_or(number);
                    self.judge_again(above);
                }
                Some(b".git" | b".gitignore" | b".ignore") => self.judge_again(number),
                Some(name) if event.about == About::Directory => {
                    if let Some(below) = self.below(number, name) {
                        self.forget(below);
                    }
                    self.touched.insert(number);
                }
                Some(_) | None => {
                    self.touched.insert(number);
                }
            },
        }
        Ok(())
    }

    /// The directory that obeys the patterns of git under this name, where the walk enters a `.git`.
    fn obeys(&self, number: u32, name: &[u8]) -> Option<u32> {
        let folder = self.folder(number)?;
        match (folder.name(), name) {
            (b".git", b"info") => Some(folder.above),
            (b"info", b"exclude") => {
                let git = self.folder(folder.above)?;
                (git.name() == b".git").then_some(git.above)
            }
            _ => None,
        }
    }

    /// What ignore files say may have changed: everything below is met anew.
    fn judge_again(&mut self, number: u32) {
        for below in self.folder(number).map(|folder| folder.below.clone()).unwrap_or_default() {
            self.forget(below);
        }
        self.touched.insert(number);
    }

    fn folder(&self, number: u32) -> Option<&Folder> {
        self.directories.get(number as usize)?.as_ref()
    }

    fn folder_mut(&mut self, number: u32) -> Option<&mut Folder> {
        self.directories.get_mut(number as usize)?.as_mut()
    }

    /// The directory of this name in another one.
    fn below(&self, number: u32, name: &[u8]) -> Option<u32> {
        let has_name = |below: &&u32| self.folder(**below).is_some_and(|folder| folder.name() == name);
        self.folder(number)?.below.iter().find(has_name).copied()
    }

    /// Forgets a directory with everything below it.
    fn forget(&mut self, number: u32) {
        if let Some(above) = self.folder(number).map(|folder| folder.above)
            && let Some(above) = self.folder_mut(above)
        {
            above.below.retain(|below| *below != number);
        }
        let mut waiting = vec![number];
        while let Some(number) = waiting.pop() {
            let Some(folder) = self.directories.get_mut(number as usize).and_then(Option::take) else {
                continue;
            };
            waiting.extend(&folder.below);
            self.disown(&folder.known);
            for watch in folder.watches {
                self.unwatch(watch, number);
            }
            self.touched.remove(&number);
            self.free.push(number);
        }
    }

    /// Ends a watch, unless the directory has come elsewhere and is watched for that by now.
    fn unwatch(&mut self, watch: WatchId, number: u32) {
        if self.watched.get(&watch).is_some_and(|(owner, _)| *owner == number) {
            self.watched.remove(&watch);
            if let Some(queue) = &self.watch {
                queue.remove(watch).unwrap_or_default();
            }
        }
    }

    fn disown(&mut self, known: &[(u16, u32)]) {
        for (segment, file) in known {
            if let Some(owner) =
                self.owners.get_mut(*segment as usize).and_then(|own| own.get_mut(*file as usize))
            {
                *owner = NOBODY;
            }
        }
    }

    /// The segments it knows files by.
    pub(super) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// Whether there are files that no segment knows as they are.
    pub(super) fn has_unknown(&self) -> bool {
        let is_new = |folder: &Folder| folder.others.iter().any(|(_, why)| *why == Why::New);
        self.directories.iter().flatten().any(is_new)
    }

    /// Whether watches tell it of changes.
    pub(super) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// How many files there are, and how many of them segments know.
    pub(super) fn files(&self) -> (u64, u64) {
        let folders = self.directories.iter().flatten();
        folders.fold((0, 0), |(files, known), folder| {
            (files + (folder.known.len() + folder.others.len()) as u64, known + folder.known.len() as u64)
        })
    }

    /// The files that no segment knows as they are, directory by directory.
    pub(super) fn unknown(&self) -> Vec<(RelPath, Vec<Name>)> {
        let names = |folder: &Folder| -> Vec<Name> {
            folder.others.iter().filter(|(_, why)| *why == Why::New).map(|(name, _)| name.clone()).collect()
        };
        let folders = self.directories.iter().flatten();
        folders
            .map(|folder| (folder.path.clone(), names(folder)))
            .filter(|(_, names)| !names.is_empty())
            .collect()
    }

    /// Goes on with another snapshot: what only the old one knew is looked up again.
    pub(super) fn adopt(&mut self, snapshot: Arc<Snapshot>) {
        let (old, new) = (self.snapshot.names(), snapshot.names());
        if old == new {
            return;
        }
        let grown = new.starts_with(&old);
        let kept = if grown { old.len() } else { 0 };
        self.owners.truncate(kept);
        let more = snapshot.segments.iter().skip(kept);
        self.owners.extend(more.map(|segment| vec![NOBODY; segment.files as usize]));
        for (number, folder) in self.directories.iter_mut().enumerate() {
            let (Some(folder), Ok(number)) = (folder, u32::try_from(number)) else { continue };
            if !grown {
                folder.known.clear();
            }
            if !grown || folder.others.iter().any(|(_, why)| *why == Why::New) {
                self.touched.insert(number);
            }
        }
        self.snapshot = snapshot;
    }

    /// Has everything looked at again: something happened that is not told where it matters.
    fn touch_all(&mut self) {
        for (number, folder) in self.directories.iter().enumerate() {
            if let (Some(_), Ok(number)) = (folder, u32::try_from(number)) {
                self.touched.insert(number);
            }
        }
    }

    /// Has the next few directories listed again, whatever watches tell: what they cannot tell is then seen sooner or
    /// later.
    pub(super) fn touch_some(&mut self, count: u32) {
        let total = u32::try_from(self.directories.len()).unwrap_or(u32::MAX);
        for _ in 0..count.min(total) {
            self.round = if self.round + 1 < total { self.round + 1 } else { 0 };
            if self.folder(self.round).is_some() {
                self.touched.insert(self.round);
            }
        }
    }

    /// How many directories there are.
    pub(super) fn directories(&self) -> usize {
        self.directories.len() - self.free.len()
    }
}

impl Folder {
    fn new(path: RelPath, above: u32, ignored: Ignored) -> Self {
        Self {
            path,
            above,
            below: Vec::new(),
            ignored,
            watches: Vec::new(),
            known: Vec::new(),
            others: Vec::new(),
            linked: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// The last name of its path.
    fn name(&self) -> &[u8] {
        self.path.components().next_back().unwrap_or_default()
    }
}
