//! The tree as a half-made plan would leave it: what is really there, with the plan's own changes drawn over it.
//! Never writes; a plan that relies on a drawing is checked change by change when it is committed.

use std::collections::BTreeMap;

use path::RelPath;

use crate::{failure::Failure, plan::Top, view::View, workspace::Node};

/// What is at a place once the plan so far is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Absent,
    /// Something that the plan puts there.
    Planned(Top),
    /// What is there already, untouched by the plan.
    Real(Node),
}

impl Found {
    pub(crate) fn top(self) -> Option<Top> {
        match self {
            Found::Absent => None,
            Found::Planned(top) => Some(top),
            Found::Real(node) => Some(node.top),
        }
    }
}

/// What the plan does to one place.
#[derive(Debug, Clone)]
enum Drawn {
    Gone,
    Made(Top),
    MovedFrom(RelPath, Top),
}

/// A view with a plan's changes drawn over it.
pub(crate) struct Sketch<'a> {
    view: &'a View<'a>,
    drawn: BTreeMap<RelPath, Drawn>,
    /// How many things the plan puts directly into a directory.
    added: BTreeMap<RelPath, usize>,
}

impl<'a> Sketch<'a> {
    pub(crate) fn new(view: &'a View<'a>) -> Self {
        Self { view, drawn: BTreeMap::new(), added: BTreeMap::new() }
    }

    pub(crate) fn gone(&mut self, path: &RelPath) {
        if let Some(Drawn::Made(_) | Drawn::MovedFrom(..)) = self.drawn.insert(path.clone(), Drawn::Gone)
            && let Some(count) = path.parent().and_then(|parent| self.added.get_mut(&parent))
        {
            *count = count.saturating_sub(1);
        }
    }

    pub(crate) fn planned(&mut self, path: &RelPath, top: Top) {
        self.draw(path, Drawn::Made(top));
    }

    pub(crate) fn moved(&mut self, from: &RelPath, to: &RelPath, top: Top) {
        self.gone(from);
        self.draw(to, Drawn::MovedFrom(from.clone(), top));
    }

    fn draw(&mut self, path: &RelPath, drawn: Drawn) {
        match self.drawn.insert(path.clone(), drawn) {
            Some(Drawn::Made(_) | Drawn::MovedFrom(..)) => {}
            Some(Drawn::Gone) | None => {
                if let Some(parent) = path.parent() {
                    *self.added.entry(parent).or_default() += 1;
                }
            }
        }
    }

    /// What is at a place. Links in it were resolved before.
    pub(crate) fn at(&self, path: &RelPath) -> Result<Found, Failure> {
        match self.drawn.get(path) {
            Some(Drawn::Gone) => return Ok(Found::Absent),
            Some(Drawn::Made(top) | Drawn::MovedFrom(_, top)) => return Ok(Found::Planned(*top)),
            None => {}
        }
        let mut above = path.parent();
        while let Some(place) = above {
            match self.drawn.get(&place) {
                // What is made is made empty, and what comes back from the trash is not looked into.
                Some(Drawn::Gone | Drawn::Made(_)) => return Ok(Found::Absent),
                Some(Drawn::MovedFrom(origin, _)) => {
                    let Some(rest) = path.below(&place) else { return Ok(Found::Absent) };
                    let node = self.view.workspace().stat(&origin.append(&rest)?)?;
                    return Ok(node.map_or(Found::Absent, |node| Found::Planned(node.top)));
                }
                None => above = place.parent(),
            }
        }
        Ok(self.view.workspace().stat(path)?.map_or(Found::Absent, Found::Real))
    }

    /// Whether nothing will be in a directory that is really there.
    pub(crate) fn is_empty(&self, path: &RelPath) -> Result<bool, Failure> {
        if self.added.get(path).is_some_and(|count| *count > 0) {
            return Ok(false);
        }
        for listed in self.view.workspace().list(path)? {
            match self.drawn.get(&path.join(&listed.name)?) {
                Some(Drawn::Gone) => {}
                Some(Drawn::Made(_) | Drawn::MovedFrom(..)) | None => return Ok(false),
            }
        }
        Ok(true)
    }
}
