//! The way through an index: files that it rules out are counted as if they had been looked into, the others are looked
//! into. Never takes its word for more than that, so an answer is the same with and without it.

use path::RelPath;

use super::{Found, Look, Search, Source};
use crate::{
    failure::Failure,
    index::{Known, Shelf, Sieve, Survey},
    ops::seek::{Met, Names, Unseen},
    view::View,
};

/// What the index says about the directory that a thread is in.
pub(super) struct Shelves<'s> {
    sieve: Option<&'s dyn Sieve>,
    here: Option<(RelPath, Option<Box<dyn Shelf + 's>>)>,
}

impl<'s> Shelves<'s> {
    pub(super) fn new(sieve: Option<&'s dyn Sieve>) -> Self {
        Self { sieve, here: None }
    }

    /// What is known of a file as it is now; nothing when it must be looked into.
    pub(super) fn known(&mut self, met: &Met<'_, '_>) -> Option<Known> {
        let sieve = self.sieve?;
        if self.here.as_ref().is_none_or(|(directory, _)| directory != met.directory) {
            self.here = Some((met.directory.clone(), sieve.shelf(met.directory)));
        }
        let shelf = self.here.as_ref()?.1.as_deref()?;
        if shelf.has(met.name) { shelf.known(met.name, &met.stamp()?) } else { None }
    }
}

impl Found {
    /// Counts a file that was not opened.
    pub(super) fn count(&mut self, known: Known) {
        match known {
            Known::Text { bytes } => {
                self.scanned += 1;
                self.bytes += bytes;
            }
            Known::Binary => self.binary += 1,
        }
    }

    /// Files that were met.
    pub(super) fn files_met(&self) -> u64 {
        self.scanned + self.binary + self.left.count() + self.unreadable
    }
}

impl Search {
    /// The whole search by an index that is told of every change; nothing when there is none, or when the call is not
    /// about everything that a plain walk meets.
    pub(super) fn surveyed(
        &self,
        look: &Look<'_>,
        start: &RelPath,
    ) -> Result<Option<(Found, Unseen)>, Failure> {
        let view = look.view;
        let plain = Names::from(self.all) == Names::Plain
            && self.glob.is_none()
            && sees_plainly(view)
            && look.typed.is_empty();
        let survey = plain.then(|| view.workspace().survey(start, look.pattern.need())).flatten();
        let Some(Survey { candidates, texts, bytes, binary, ignored, closed }) = survey else {
            return Ok(None);
        };
        let mut found = Found { scanned: texts, bytes, binary, unreadable: closed, ..Found::default() };
        for path in &candidates {
            view.control.check()?;
            look.at_file(&mut found, &Source::Known(path))?;
        }
        found.cut(look.max, look.weighs());
        Ok(Some((found, Unseen { closed, cut: false, ignored })))
    }
}

/// Whether nothing is taken away from what this caller meets.
fn sees_plainly(view: &View<'_>) -> bool {
    let filter = &view.terms.filter;
    view.sees_all() && filter.include.is_empty() && filter.exclude.is_empty()
}
