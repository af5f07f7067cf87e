//! The walk of one page. Goes down in order with a stack of directories, stops when the page is full, and remembers
//! the last entry it showed. A directory below the top that cannot be listed is shown with the reason.

use path::{Name, RelPath};
use text::visible::visible_line;

use super::{
    Names,
    cursor::{After, Standing},
};
use crate::{
    failure::{Failure, Kind},
    limits,
    plan::Top,
    terms::Listing,
    view::View,
    workspace::{Last, Listed, Looked, Node},
};

/// One entry of a listing.
pub(super) struct Shown {
    pub(super) path: RelPath,
    pub(super) top: Top,
    /// Length of a file.
    pub(super) size: Option<u64>,
    /// Why a directory's names or a file's size are missing.
    pub(super) unlisted: Option<Kind>,
    /// How it reads.
    pub(super) line: String,
    /// What only a full listing tells.
    pub(super) more: Option<More>,
}

/// What only a full listing tells of an entry.
pub(super) struct More {
    pub(super) modified_ms: i64,
    /// What a link leads to, when that is inside and may be seen.
    pub(super) leads_to: Option<Node>,
}

/// A directory whose names are still to be gone through, last first.
struct Open {
    path: RelPath,
    rest: Vec<Listed>,
    after: Option<After>,
    /// What was seen of the next names, last first: as many as `rest` has at its end.
    ahead: Vec<Looked>,
}

impl Open {
    /// The next name, and what is there.
    fn next(&mut self, view: &View<'_>) -> Result<Option<(Listed, Looked)>, Failure> {
        if self.ahead.is_empty() {
            let start = self.rest.len().saturating_sub(LOOK_AHEAD);
            let names: Vec<Name> = self.rest[start..].iter().map(|listed| listed.name.clone()).collect();
            self.ahead = view.stat_names(&self.path, &names)?;
        }
        Ok(self.rest.pop().zip(self.ahead.pop()))
    }

    /// Passes over what was shown on earlier pages without looking at it.
    fn skip(&mut self) {
        let Some(after) = &self.after else { return };
        while self.rest.last().is_some_and(|listed| matches!(after.standing(&listed.name), Standing::Done)) {
            self.rest.pop();
        }
    }
}

/// How many names of a directory are looked at together.
const LOOK_AHEAD: usize = 128;

/// One page of a listing.
pub(super) struct Walk<'v, 'a> {
    view: &'v View<'a>,
    top: &'v RelPath,
    names: Names,
    open: Vec<Open>,
    pub(super) depth: usize,
    /// What is on the page.
    pub(super) shown: Vec<Shown>,
    /// Characters on the page.
    pub(super) chars: usize,
    /// Names in the top directory, hidden ones not counted.
    pub(super) total: usize,
    /// Names that were left out because they start with a dot.
    pub(super) hidden: usize,
    /// The last entry shown, when more is to come.
    pub(super) rest_after: Option<RelPath>,
}

impl<'v, 'a> Walk<'v, 'a> {
    pub(super) fn new(view: &'v View<'a>, top: &'v RelPath, depth: usize, names: Names) -> Self {
        Self {
            view,
            top,
            names,
            open: Vec::new(),
            depth,
            shown: Vec::new(),
            chars: 0,
            total: 0,
            hidden: 0,
            rest_after: None,
        }
    }

    /// Fills the page.
    pub(super) fn run(&mut self, after: Option<&After>) -> Result<(), Failure> {
        self.enter(self.top, after.cloned())?;
        while let Some(open) = self.open.last_mut() {
            self.view.control.check()?;
            let Some((listed, looked)) = open.next(self.view)? else {
                self.open.pop();
                continue;
            };
            let path = open.path.join(&listed.name)?;
            match open.after.as_ref().map_or(Standing::Ahead, |after| after.standing(&listed.name)) {
                Standing::Done => {}
                Standing::Inside(after) => self.descend(&path, listed.top, after)?,
                Standing::Ahead => {
                    if !self.show(&path, listed.top, looked) {
                        return Ok(());
                    }
                    self.descend(&path, listed.top, None)?;
                }
            }
        }
        Ok(())
    }

    /// Puts an entry on the page; says whether it fitted.
    fn show(&mut self, path: &RelPath, top: Top, looked: Looked) -> bool {
        let more = self.more(path, &looked);
        let (size, unlisted) = match top {
            Top::File if self.view.may_read(path) => match looked {
                Ok(Some(node)) => (Some(node.size), None),
                // Gone since it was listed.
                Ok(None) => return true,
                // One place that is closed, such as a file of another mount, does not hide the others.
                Err(failure) => (None, Some(failure.kind)),
            },
            Top::File | Top::Directory | Top::Link | Top::Special => (None, None),
        };
        let line = line(self.top, path, top, size);
        let chars = line.chars().count() + 1;
        let full = match self.view.terms.listing {
            Listing::Page => self.chars + chars > limits::PAGE_CHARS,
            Listing::Entries(most) => self.shown.len() >= most,
        };
        if full && let Some(last) = self.shown.last() {
            self.rest_after = Some(last.path.clone());
            return false;
        }
        self.chars += chars;
        self.shown.push(Shown { path: path.clone(), top, size, unlisted, line, more });
        true
    }

    fn more(&self, path: &RelPath, looked: &Looked) -> Option<More> {
        match (self.view.terms.listing, looked) {
            (Listing::Page, _) | (Listing::Entries(_), Ok(None) | Err(_)) => None,
            (Listing::Entries(_), Ok(Some(node))) => {
                let leads_to = (node.top == Top::Link).then(|| self.leads_to(path)).flatten();
                Some(More { modified_ms: node.modified_ms, leads_to })
            }
        }
    }

    fn leads_to(&self, link: &RelPath) -> Option<Node> {
        let workspace = self.view.workspace();
        let place = workspace.locate(link, Last::Follow).ok().filter(|place| self.view.may_read(place))?;
        workspace.stat(&place).ok()?
    }

    /// Goes into a directory, unless the listing ends at its depth.
    fn descend(&mut self, path: &RelPath, top: Top, after: Option<After>) -> Result<(), Failure> {
        if top != Top::Directory || self.open.len() >= self.depth {
            return Ok(());
        }
        match self.enter(path, after) {
            Ok(()) => Ok(()),
            Err(failure) => {
                if let Some(shown) = self.shown.last_mut().filter(|shown| shown.path == *path) {
                    shown.unlisted = Some(failure.kind);
                }
                Ok(())
            }
        }
    }

    fn enter(&mut self, path: &RelPath, after: Option<After>) -> Result<(), Failure> {
        let mut names = self.view.list(path)?;
        let all = names.len();
        if self.names == Names::Plain {
            names.retain(|listed| !listed.name.as_bytes().starts_with(b"."));
        }
        // On a later page the hidden names of a directory were counted before; those of the top are counted always.
        if after.is_none() || self.open.is_empty() {
            self.hidden += all - names.len();
        }
        names.reverse();
        let mut open = Open { path: path.clone(), rest: names, after, ahead: Vec::new() };
        let total = open.rest.len();
        open.skip();
        if self.open.is_empty() {
            self.total = total;
        }
        self.open.push(open);
        Ok(())
    }
}

/// How an entry reads: its path below the top, a mark for its type, its size.
fn line(top: &RelPath, path: &RelPath, kind: Top, size: Option<u64>) -> String {
    let below = path.below(top).unwrap_or_default();
    let wire = below.to_wire();
    let name = visible_line(&wire);
    match (kind, size) {
        (Top::Directory, _) => format!("{name}/"),
        (Top::Link, _) => format!("{name}@"),
        (Top::Special, _) => format!("{name}  (other)"),
        (Top::File, Some(size)) => format!("{name}  {size}"),
        (Top::File, None) => name.into_owned(),
    }
}
