//! Sections that were applied before, as when a call is repeated whose answer was lost. Owns what proves it: the bytes or
//! the lines that are there, and for what is gone the journal. Never says so of a place that the patch itself touched.

use path::RelPath;
use text::patch::{Chunk, standing};

use super::{Done, Work, places, report::Row};
use crate::{
    failure::Failure,
    operation::Target,
    ops::older::{Left, left},
    patching::Again,
    plan::Top,
};

impl Work<'_, '_> {
    fn notices(&self) -> bool {
        match self.view.terms.patching.again {
            Again::Answered => true,
            Again::Refused => false,
        }
    }

    /// Whether chunks were applied to these bytes.
    pub(super) fn holds(&self, path: &RelPath, bytes: &[u8], chunks: &[Chunk]) -> Result<bool, Failure> {
        if !self.notices() || !self.places.is_untouched(path) {
            return Ok(false);
        }
        let (text, _) = places::decoded(path, bytes, self.view.terms.patching.binary)?;
        let name = path.to_string();
        Ok(standing(&text, chunks, &self.rules(&name)).is_some())
    }

    /// The row of a file that already is what would be added.
    pub(super) fn added_before(&mut self, content: &str, target: &Target) -> Result<Option<Row>, Failure> {
        let path = &target.path;
        let is_same_size = target.node.is_some_and(|node| node.size == content.len() as u64);
        if !self.notices()
            || !is_same_size
            || self.places.top(path) != Some(Top::File)
            || !self.places.is_untouched(path)
            || self.places.bytes(path)? != content.as_bytes()
        {
            return Ok(None);
        }
        Ok(Some(Row::before(Done::Add, path).left(content.as_bytes())))
    }

    /// Whether what would be deleted was.
    pub(super) fn removed_before(&self, target: &Target) -> bool {
        self.notices()
            && self.places.is_untouched(&target.path)
            && matches!(left(self.view, &target.path), Some(Left::Removed))
    }

    /// The row of a file that has its new name, and what its chunks would make of it.
    pub(super) fn moved_before(
        &mut self,
        chunks: &[Chunk],
        source: &Target,
        place: &Target,
    ) -> Result<Option<Row>, Failure> {
        let is_gone = self.places.top(&source.path).is_none() && self.places.is_untouched(&source.path);
        if !self.notices() || !is_gone || self.places.top(&place.path) != Some(Top::File) {
            return Ok(None);
        }
        let moved = match left(self.view, &source.path) {
            Some(Left::To(to)) => to == place.path,
            // With chunks it is written anew, and the old one removed.
            Some(Left::Removed) => !chunks.is_empty(),
            None => false,
        };
        if !moved || !self.places.is_untouched(&place.path) {
            return Ok(None);
        }
        let bytes = self.places.bytes(&place.path)?;
        if !chunks.is_empty() && !self.holds(&place.path, &bytes, chunks)? {
            return Ok(None);
        }
        Ok(Some(Row::before(Done::Move, &source.path).to(&place.path).left(&bytes)))
    }
}
