//! The walk that `find` and `search` share: everything below a directory in byte order, through directory handles,
//! links not followed. Places the caller may not see and what the filter leaves out are not visited. Names with a
//! leading dot and what ignore files leave out are counted, as is a directory that cannot be listed: nothing is silently
//! skipped.

mod patterns;
mod rules;

use std::sync::Arc;

use path::{Name, RelPath};
use rules::{Place, Rules, Verdict};

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
    /// Not those that ignore files leave out, nor those that start with a dot unless an ignore file takes them in.
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
    let rules = (names == Names::Plain).then(|| Rules::above(view, start));
    let mut waiting: Vec<Child> = children(view, start, rules.as_ref(), &mut unseen)?;
    while let Some(Child { path, top, rules }) = waiting.pop() {
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
            match children(view, &path, rules.as_ref(), &mut unseen) {
                Ok(more) => waiting.extend(more),
                Err(_) => unseen.closed += 1,
            }
        }
    }
    Ok(unseen)
}

/// Something to visit, with the rules of the directory that holds it.
struct Child {
    path: RelPath,
    top: Top,
    rules: Option<Arc<Rules>>,
}

/// What is in a directory, last name first. Without rules, everything.
fn children(
    view: &View<'_>,
    path: &RelPath,
    rules: Option<&Arc<Rules>>,
    unseen: &mut Unseen,
) -> Result<Vec<Child>, Failure> {
    let listed = view.list(path)?;
    let rules = rules.map(|rules| Arc::clone(rules).within(view, path, &listed));
    let mut children = Vec::with_capacity(listed.len());
    for Listed { name, top } in listed.into_iter().rev() {
        // A name deeper than a path can say cannot be read either.
        let Ok(path) = path.join(&name) else { continue };
        if rules.as_ref().is_some_and(|rules| !is_taken(rules, &path, &name, top)) {
            unseen.ignored += 1;
            continue;
        }
        children.push(Child { path, top, rules: rules.clone() });
    }
    Ok(children)
}

/// Whether a place is visited by these rules.
fn is_taken(rules: &Rules, path: &RelPath, name: &Name, top: Top) -> bool {
    let place = if top == Top::Directory { Place::Directory } else { Place::Other };
    match rules.judge(path, place) {
        Verdict::Silent => !name.as_bytes().starts_with(b"."),
        Verdict::Left => false,
        Verdict::Taken => true,
    }
}

/// What is at a place now, with its size and time.
pub(super) fn node(view: &View<'_>, path: &RelPath) -> Option<Node> {
    let (parent, name): (RelPath, Name) = path.split()?;
    let looked = view.stat_names(&parent, &[name]).ok()?;
    looked.into_iter().next()?.ok()?
}

/// Entries between two progress reports.
const PROGRESS_EVERY: u64 = 512;
