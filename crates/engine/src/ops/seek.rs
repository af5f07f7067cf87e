//! The walk that `find` and `search` share: everything below a directory in byte order, through directory handles,
//! links not followed. Names with a leading dot, places the caller may not see and what the filter leaves out are not
//! visited; a directory that cannot be listed is counted, never silently skipped.

use path::{Name, RelPath};

use crate::{
    failure::Failure,
    limits,
    plan::Top,
    view::View,
    workspace::{Listed, Node},
};

/// Which names are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// All of them.
    All,
    /// Not those that start with a dot.
    Plain,
}

impl From<Option<bool>> for Names {
    fn from(all: Option<bool>) -> Self {
        if all == Some(true) { Self::All } else { Self::Plain }
    }
}

/// What a walk meets.
pub(super) struct Met {
    /// The place, from the root of the workspace.
    pub(super) path: RelPath,
    /// The place, from where the walk started.
    pub(super) below: RelPath,
    pub(super) top: Top,
}

/// Whether a walk goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    On,
    Stop,
}

/// What a walk could not or would not see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Unseen {
    /// Directories that could not be listed.
    pub(super) closed: u64,
    /// Whether the walk ended at the limit of entries.
    pub(super) cut: bool,
}

/// Visits everything below a directory, parents before children.
pub(super) fn walk(
    view: &View<'_>,
    start: &RelPath,
    names: Names,
    visit: &mut dyn FnMut(&Met) -> Result<Step, Failure>,
) -> Result<Unseen, Failure> {
    let mut unseen = Unseen::default();
    let mut met = 0u64;
    let mut waiting: Vec<(RelPath, Top)> = children(view, start, names)?;
    while let Some((path, top)) = waiting.pop() {
        view.control.check()?;
        met += 1;
        if met > limits::TREE_ENTRIES_MAX {
            unseen.cut = true;
            return Ok(unseen);
        }
        if met.is_multiple_of(PROGRESS_EVERY) {
            view.control.report(met);
        }
        let below = path.below(start).unwrap_or_default();
        let descend = top == Top::Directory && !view.terms.filter.exclude.match_below(&below);
        if !view.terms.filter.exclude.matches(&below)
            && visit(&Met { path: path.clone(), below, top })? == Step::Stop
        {
            return Ok(unseen);
        }
        if descend {
            match children(view, &path, names) {
                Ok(more) => waiting.extend(more),
                Err(_) => unseen.closed += 1,
            }
        }
    }
    Ok(unseen)
}

/// What is in a directory, last name first.
fn children(view: &View<'_>, path: &RelPath, names: Names) -> Result<Vec<(RelPath, Top)>, Failure> {
    let listed = view.list(path)?;
    let shown = |listed: &Listed| names == Names::All || !listed.name.as_bytes().starts_with(b".");
    // A name deeper than a path can say cannot be read either.
    let place = |listed: Listed| path.join(&listed.name).ok().map(|place| (place, listed.top));
    Ok(listed.into_iter().rev().filter(shown).filter_map(place).collect())
}

/// What is at a place now, with its size and time.
pub(super) fn node(view: &View<'_>, path: &RelPath) -> Option<Node> {
    let (parent, name): (RelPath, Name) = path.split()?;
    let looked = view.stat_names(&parent, &[name]).ok()?;
    looked.into_iter().next()?.ok()?
}

/// Entries between two progress reports.
const PROGRESS_EVERY: u64 = 512;
