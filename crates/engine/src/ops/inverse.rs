//! The plan that takes an entry back. Works change by change, last one first, on what is there now: what is still as
//! the entry left it is put back, text that was changed elsewhere is merged, and everything else is left alone and
//! reported. Never writes over a later change, and never brings back set-id bits.
//!
//! Changes of one plan become true in order: a file may be put where an earlier change of the same plan made room.

mod file;
mod sketch;
mod trash;

use std::{collections::HashSet, fmt};

use journal::{ChangeKind, Entry, State};
use path::RelPath;

use self::{
    sketch::{Found, Sketch},
    trash::Removal,
};
use super::{
    parents,
    standing::{self, MODE_BITS},
};
use crate::{
    failure::{Failure, Kind},
    operation::{Ask, Need, Target},
    plan::{Change, Content, Expect, Mode, Top},
    version::Version,
    view::View,
    workspace::{Last, Node},
};

/// What to do with a file that was changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Merge where the edits do not touch.
    Merge,
    /// Leave it alone.
    Exact,
}

/// Why something was left as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It is gone, as it would be.
    AlreadyGone,
    /// It is already what it would become.
    AlreadySo,
    /// Somebody changed it later.
    Changed,
    /// Somebody changed the same lines later.
    Touching,
    /// Something else stands in its place.
    Taken,
    /// Something else stands where it was moved from.
    OldPlaceTaken,
    /// It is another kind of thing now.
    OtherKind,
    /// The directory has got other things in it.
    NotEmpty,
    /// Its bytes passed their retention.
    NotKept,
    /// It left the trash.
    NotInTrash,
    /// A link above it leads to another place inside.
    Elsewhere,
    /// What was a directory above it is none.
    NoParent,
    /// Another change of the same entry is in the way.
    Twice,
}

impl Reason {
    /// Whether it stands in the way of making an entry again.
    pub(crate) fn blocks(self) -> bool {
        match self {
            Reason::AlreadyGone | Reason::AlreadySo | Reason::NotEmpty => false,
            Reason::Changed
            | Reason::Touching
            | Reason::Taken
            | Reason::OldPlaceTaken
            | Reason::OtherKind
            | Reason::NotKept
            | Reason::NotInTrash
            | Reason::Elsewhere
            | Reason::NoParent
            | Reason::Twice => true,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::AlreadyGone => "it is already gone",
            Reason::AlreadySo => "it is already as it would be",
            Reason::Changed => "it was changed since",
            Reason::Touching => "it was changed since, in the same lines",
            Reason::Taken => "something else is there now",
            Reason::OldPlaceTaken => "something else is at its old place",
            Reason::OtherKind => "it is another kind of thing now",
            Reason::NotEmpty => "other things are in it",
            Reason::NotKept => "its bytes are no longer kept",
            Reason::NotInTrash => "it is no longer in the trash",
            Reason::Elsewhere => "its path now leads elsewhere through a link",
            Reason::NoParent => "something above it is no longer a directory",
            Reason::Twice => "the same entry changed it more than once",
        })
    }
}

/// Something that was left alone.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) path: RelPath,
    pub(crate) reason: Reason,
}

/// What taking an entry back comes to.
#[derive(Debug, Default)]
pub(crate) struct Inverse {
    pub(crate) changes: Vec<Change>,
    pub(crate) kept: Vec<Kept>,
    pub(crate) merged: Vec<RelPath>,
}

/// One recorded change, with the places it is about checked as far as that can be done before they are locked.
#[derive(Debug)]
pub(crate) struct Step {
    path: RelPath,
    to: Option<RelPath>,
    kind: ChangeKind,
    before: State,
    after: State,
    /// The entry that recorded it.
    entry: u64,
    /// Why nothing can be done, known from the start.
    lost: Option<Reason>,
}

/// The steps that take an entry back, in the order they must be taken.
pub(crate) fn steps(view: &View<'_>, entry: &Entry) -> Result<Vec<Step>, Failure> {
    entry.changes.iter().rev().map(|change| step(view, change, entry.number)).collect()
}

fn step(view: &View<'_>, change: &journal::Change, entry: u64) -> Result<Step, Failure> {
    view.control.check()?;
    let path = RelPath::from_wire(&change.path)?;
    let to = change.to.as_deref().map(RelPath::from_wire).transpose()?;
    let mut lost = None;
    let touched = match change.kind {
        // Where a copy came from does not matter.
        ChangeKind::Copy => None,
        ChangeKind::Create
        | ChangeKind::Modify
        | ChangeKind::Remove
        | ChangeKind::Rename
        | ChangeKind::MakeDir
        | ChangeKind::MakeLink
        | ChangeKind::SetMode
        | ChangeKind::Rescan => Some(&path),
    };
    for place in touched.into_iter().chain(&to) {
        match view.workspace().locate(place, Last::Keep) {
            Ok(found) if found == *place => {}
            Ok(_) => lost = Some(Reason::Elsewhere),
            Err(failure) if failure.kind == Kind::NotDirectory => lost = Some(Reason::NoParent),
            Err(failure) => return Err(failure),
        }
    }
    let (kind, before, after) = (change.kind, change.before.clone(), change.after.clone());
    Ok(Step { path, to, kind, before, after, entry, lost })
}

/// The places that these steps are about.
pub(crate) fn asks(steps: &[Step]) -> Vec<Ask> {
    let mut asks = Vec::new();
    for step in steps.iter().filter(|step| step.lost.is_none()) {
        match step.kind {
            ChangeKind::Create | ChangeKind::MakeDir | ChangeKind::MakeLink => {
                asks.push(Ask::known(step.path.clone(), Need::Remove).tree());
            }
            ChangeKind::Modify | ChangeKind::SetMode | ChangeKind::Remove | ChangeKind::Rescan => {
                asks.push(Ask::known(step.path.clone(), Need::Write));
            }
            ChangeKind::Rename => {
                asks.push(Ask::known(step.place().clone(), Need::Remove).tree());
                asks.push(Ask::known(step.path.clone(), Need::Write));
            }
            ChangeKind::Copy => asks.push(Ask::known(step.place().clone(), Need::Remove).tree()),
        }
    }
    asks
}

/// Takes the steps on what is there now.
pub(crate) fn plan(
    view: &View<'_>,
    steps: &[Step],
    targets: &[Target],
    policy: Policy,
) -> Result<Inverse, Failure> {
    let mut maker = Maker { view, policy, sketch: Sketch::new(view), inverse: Inverse::default() };
    let resolved: HashSet<&RelPath> = targets.iter().map(|target| &target.path).collect();
    for step in steps {
        view.control.check()?;
        let reason = match step.lost {
            Some(reason) => Some(reason),
            None if !step.places().all(|place| resolved.contains(place)) => Some(Reason::Elsewhere),
            None => maker.take_back(step)?,
        };
        if let Some(reason) = reason {
            maker.inverse.kept.push(Kept { path: step.place().clone(), reason });
        }
    }
    Ok(maker.inverse)
}

impl Step {
    /// Where the thing is now.
    fn place(&self) -> &RelPath {
        self.to.as_ref().unwrap_or(&self.path)
    }

    /// Every place that taking it back touches.
    fn places(&self) -> impl Iterator<Item = &RelPath> {
        let origin = (self.kind == ChangeKind::Rename).then_some(&self.path);
        std::iter::once(self.place()).chain(origin)
    }
}

/// Whether a step was taken: the reason to leave its place alone, or nothing when it was.
type Outcome = Result<Option<Reason>, Failure>;

/// Collects the inverse while it looks at the tree as the plan so far would leave it.
struct Maker<'a> {
    view: &'a View<'a>,
    policy: Policy,
    sketch: Sketch<'a>,
    inverse: Inverse,
}

impl Maker<'_> {
    fn take_back(&mut self, step: &Step) -> Outcome {
        if step.kind == ChangeKind::Rename {
            return self.moved(&step.path, step.place(), &step.after);
        }
        let place = step.place();
        match (&step.before, &step.after) {
            (State::Absent, State::Absent) => Ok(None),
            (State::Absent, State::Directory { .. }) => self.made_directory(place),
            (State::Absent, after) => self.made(place, after),
            (before, State::Absent) => self.removed(place, before, step.entry),
            (State::File { version, size, mode }, State::File { version: left, mode: left_mode, .. }) => {
                let before = file::Recorded { version: Version(*version), size: *size, mode: *mode };
                let after = file::Recorded { version: Version(*left), size: *size, mode: *left_mode };
                self.modified(place, before, after)
            }
            (
                State::File { .. }
                | State::Directory { .. }
                | State::Link { .. }
                | State::Tree { .. }
                | State::Unknown { .. },
                State::File { .. }
                | State::Directory { .. }
                | State::Link { .. }
                | State::Tree { .. }
                | State::Unknown { .. },
            ) => Ok(Some(Reason::OtherKind)),
        }
    }

    /// Something came into being: it goes to the trash, if it is still what it was.
    fn made(&mut self, path: &RelPath, after: &State) -> Outcome {
        let node = match self.sketch.at(path)? {
            Found::Real(node) => node,
            Found::Absent => return Ok(Some(Reason::AlreadyGone)),
            Found::Planned(_) => return Ok(Some(Reason::Twice)),
        };
        let expect = standing::expected(self.view, path, node, None)?;
        let tree = standing::counted(self.view, path, node)?;
        let as_left = match (after, node.top) {
            (State::File { version, .. }, Top::File) => {
                standing::expected_file(&expect).is_some_and(|seen| seen.version == Version(*version))
            }
            (State::Link { target }, Top::Link) => {
                self.view.workspace().read_link(path)? == target.as_bytes()
            }
            (State::Tree { files, bytes, .. }, _) => (tree.files, tree.bytes) == (*files, *bytes),
            (
                State::File { .. }
                | State::Link { .. }
                | State::Directory { .. }
                | State::Absent
                | State::Unknown { .. },
                _,
            ) => return Ok(Some(Reason::OtherKind)),
        };
        if !as_left {
            return Ok(Some(Reason::Changed));
        }
        let keep_until_ms = self
            .view
            .workspace()
            .now_ms()
            .saturating_add(self.view.in_force.policy.trash_ms(&self.view.caller.principal));
        self.sketch.gone(path);
        self.inverse.changes.push(Change::Remove { path: path.clone(), expect, keep_until_ms, tree });
        Ok(None)
    }

    /// A directory came into being: it goes, if nothing else is in it.
    fn made_directory(&mut self, path: &RelPath) -> Outcome {
        Ok(match self.sketch.at(path)? {
            Found::Absent => Some(Reason::AlreadyGone),
            Found::Planned(_) => Some(Reason::Twice),
            Found::Real(node) if node.top != Top::Directory => Some(Reason::OtherKind),
            Found::Real(_) if !self.sketch.is_empty(path)? => Some(Reason::NotEmpty),
            Found::Real(_) => {
                self.sketch.gone(path);
                self.inverse.changes.push(Change::RemoveDirectory { path: path.clone() });
                None
            }
        })
    }

    /// Something was taken away: it comes back, if its place is free.
    fn removed(&mut self, path: &RelPath, before: &State, entry: u64) -> Outcome {
        match (self.sketch.at(path)?, before) {
            (Found::Absent, _) => {}
            (Found::Real(Node { top: Top::Directory, .. }), State::Directory { .. }) => {
                return Ok(Some(Reason::AlreadySo));
            }
            (Found::Real(_) | Found::Planned(_), _) => return Ok(Some(Reason::Taken)),
        }
        let (change, top) = match before {
            State::Tree { trash: id, .. } => {
                let item = match id {
                    Some(id) => trash::find(self.view, Removal { id: id.clone(), entry })?,
                    None => None,
                };
                let Some(item) = item else { return Ok(Some(Reason::NotInTrash)) };
                (Change::Restore { trash: item.id, path: path.clone(), tree: item.tree }, item.tree.top)
            }
            State::File { version, size, mode } => {
                let version = Version(*version);
                if self.view.workspace().kept(&version)?.is_none() {
                    return Ok(Some(Reason::NotKept));
                }
                let content = Content::Kept(version);
                let mode = Mode::Set(mode & MODE_BITS);
                let (path, expect) = (path.clone(), Expect::Absent);
                (Change::Put { path, expect, content, version, size: *size, mode }, Top::File)
            }
            State::Directory { mode } => {
                (Change::MakeDirectory { path: path.clone(), mode: mode & MODE_BITS }, Top::Directory)
            }
            // A replaced character means that the journal does not have the bytes.
            State::Link { target } if target.contains(char::REPLACEMENT_CHARACTER) => {
                return Ok(Some(Reason::NotKept));
            }
            State::Link { target } => {
                (Change::MakeLink { path: path.clone(), target: target.clone().into_bytes() }, Top::Link)
            }
            State::Absent => return Ok(None),
            State::Unknown { .. } => return Ok(Some(Reason::NotKept)),
        };
        if let Some(reason) = self.make_parents(path)? {
            return Ok(Some(reason));
        }
        self.sketch.planned(path, top);
        self.inverse.changes.push(change);
        Ok(None)
    }

    /// Something was moved: it goes back, with whatever was changed in it since.
    fn moved(&mut self, from: &RelPath, to: &RelPath, after: &State) -> Outcome {
        let node = match self.sketch.at(to)? {
            Found::Real(node) => node,
            Found::Absent => return Ok(Some(Reason::AlreadyGone)),
            Found::Planned(_) => return Ok(Some(Reason::Twice)),
        };
        match self.sketch.at(from)? {
            Found::Absent => {}
            Found::Real(_) | Found::Planned(_) => return Ok(Some(Reason::OldPlaceTaken)),
        }
        let expect = standing::expected(self.view, to, node, None)?;
        let problem = match (after, node.top) {
            (State::File { version, .. }, Top::File) => {
                let same =
                    standing::expected_file(&expect).is_some_and(|seen| seen.version == Version(*version));
                (!same && self.policy == Policy::Exact).then_some(Reason::Changed)
            }
            (State::Directory { .. }, Top::Directory)
            | (State::Link { .. }, Top::Link)
            | (State::Tree { .. }, _) => None,
            (
                State::File { .. }
                | State::Directory { .. }
                | State::Link { .. }
                | State::Absent
                | State::Unknown { .. },
                _,
            ) => Some(Reason::OtherKind),
        };
        if let Some(reason) = problem {
            return Ok(Some(reason));
        }
        let tree = standing::counted(self.view, to, node)?;
        if let Some(reason) = self.make_parents(from)? {
            return Ok(Some(reason));
        }
        self.sketch.moved(to, from, node.top);
        let (from, to) = (to.clone(), from.clone());
        self.inverse.changes.push(Change::Move { from, to, expect, over: Expect::Absent, tree });
        Ok(None)
    }

    /// Makes what is missing above a path, unless something else is in between.
    fn make_parents(&mut self, path: &RelPath) -> Outcome {
        let sketch = &self.sketch;
        match parents::missing_from(path, |above| Ok(sketch.at(above)?.top())) {
            Ok(missing) => {
                for change in &missing {
                    change.paths().for_each(|above| self.sketch.planned(above, Top::Directory));
                }
                self.inverse.changes.extend(missing);
                Ok(None)
            }
            Err(failure) if failure.kind == Kind::NotDirectory => Ok(Some(Reason::NoParent)),
            Err(failure) => Err(failure),
        }
    }
}
