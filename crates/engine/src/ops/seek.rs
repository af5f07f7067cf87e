//! The walk that `find` and `search` share: everything below a directory, through directory handles where the workspace
//! has them, links not followed. Places the caller may not see and what the filter leaves out are not visited. Names
//! with a leading dot and what ignore files leave out are counted, as is a directory that cannot be listed: nothing is
//! silently skipped.

mod crew;
mod patterns;
mod rules;

use std::cmp::Ordering;

use crew::Crew;
use path::{Name, RelPath};
pub(crate) use rules::Rules;
use rules::{Place, Verdict};

use crate::{
    failure::Failure,
    limits,
    plan::Top,
    view::View,
    workspace::{Branch, Node, Pieces, Stamp},
};

/// Which names are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// All of them.
    All,
    /// Not those that ignore files leave out, nor those that start with a dot unless an ignore file takes them in.
    Plain,
}

impl From<Option<bool>> for Names {
    fn from(all: Option<bool>) -> Self {
        if all == Some(true) { Self::All } else { Self::Plain }
    }
}

/// What a walk meets.
pub(super) struct Met<'m, 'v> {
    /// The directory it is in.
    pub(super) directory: &'m RelPath,
    /// The place, from the root of the workspace.
    pub(super) path: &'m RelPath,
    pub(super) top: Top,
    pub(super) name: &'m Name,
    /// Bytes of the path up to what is below the start.
    base: usize,
    /// The directory that holds it, where the workspace has handles.
    within: Option<&'m (dyn Branch<'v> + 'v)>,
}

impl Met<'_, '_> {
    /// The place from where the walk started, in bytes.
    pub(super) fn below(&self) -> &[u8] {
        self.path.as_bytes().get(self.base..).unwrap_or_default()
    }

    /// Its stamp now; nothing where the workspace has no handles, or where it is no longer there.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        self.within?.stat(self.name).ok()?.map(|node| node.stamp)
    }

    /// The bytes of a file, or only the first of them when `goes_on` says no to those.
    pub(super) fn scan(
        &self,
        view: &View<'_>,
        goes_on: &dyn Fn(&[u8]) -> bool,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let limit_bytes = limits::SEARCH_FILE_BYTES_MAX;
        match self.within {
            Some(within) => within.scan(self.name, limit_bytes, goes_on, bytes),
            None => {
                *bytes = view.workspace().scan(self.path, limit_bytes)?;
                Ok(())
            }
        }
    }

    /// The file, open to be read piece by piece.
    pub(super) fn pieces(&self, view: &View<'_>) -> Result<Box<dyn Pieces>, Failure> {
        match self.within {
            Some(within) => within.pieces(self.name),
            None => view.workspace().pieces(self.path),
        }
    }
}

/// What a walk could not or would not see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Unseen {
    /// Directories that could not be listed.
    pub(super) closed: u64,
    /// Whether the walk ended at the limit of entries.
    pub(super) cut: bool,
    /// Entries left out by ignore files or for their leading dot, each with all that is below it.
    pub(super) ignored: u64,
}

impl Unseen {
    /// The count of what was left out, for an answer.
    pub(super) fn ignored(&self) -> Option<u64> {
        (self.ignored > 0).then_some(self.ignored)
    }

    /// The same for people.
    pub(super) fn note(&self) -> String {
        self.ignored()
            .map_or_else(String::new, |count| format!("; {count} ignored (all: true takes them in)"))
    }

    fn add(&mut self, other: Self) {
        self.closed += other.closed;
        self.cut |= other.cut;
        self.ignored += other.ignored;
    }
}

/// What is done with each place, into the gathering of the thread that met it.
pub(super) type Visit<'a, A> = dyn Fn(&mut A, &Met<'_, '_>) -> Result<(), Failure> + Sync + 'a;

/// Visits everything below a directory, on several threads where there is enough of it. Every thread has its own
/// gathering, made by `make` and filled by `visit`. In which order and into which of them places go is not defined, so
/// what comes of them must not depend on it; [`by_place`] puts places in order.
pub(super) fn walk<A: Send>(
    view: &View<'_>,
    start: &RelPath,
    names: Names,
    make: &(dyn Fn() -> A + Sync),
    visit: &Visit<'_, A>,
) -> Result<(Vec<A>, Unseen), Failure> {
    let rules = match names {
        Names::Plain => Some(Rules::above(view, start)),
        Names::All => None,
    };
    Crew::new(view, start).run(rules, make, visit)
}

/// The order of places: byte order name by name, a directory before what it holds.
pub(super) fn by_place(one: &RelPath, two: &RelPath) -> Ordering {
    one.components().cmp(two.components())
}

/// What is at a place now, with its size and time.
pub(super) fn node(view: &View<'_>, path: &RelPath) -> Option<Node> {
    let (parent, name): (RelPath, Name) = path.split()?;
    let looked = view.stat_names(&parent, &[name]).ok()?;
    looked.into_iter().next()?.ok()?
}

/// Whether a place is visited by these rules.
pub(crate) fn is_taken(rules: &Rules, path: &RelPath, name: &Name, top: Top) -> bool {
    let place = if top == Top::Directory { Place::Directory } else { Place::Other };
    match rules.judge(path, place) {
        Verdict::Silent => !name.as_bytes().starts_with(b"."),
        Verdict::Left => false,
        Verdict::Taken => true,
    }
}
