//! Search through the index: files that it excludes are counted as searched, all others are read. The index decides
//! nothing else, so an outcome is the same with and without it.

use stead_path::RelPath;

use super::{SearchArgs, SearchContext, SearchResults, SearchedFile};
use crate::{
    call_context::CallContext,
    errors::Error,
    index::{DirectoryIndex, IndexFilter, IndexVerdict, IndexedWalk},
    ops::walk::{IgnoredFileFilter, ParallelWalkEntry, WalkOmissions},
};

/// The index of the directory that a thread is in.
pub(super) struct DirectoryIndexCache<'s> {
    filter: Option<&'s dyn IndexFilter>,
    current: Option<(RelPath, Option<Box<dyn DirectoryIndex + 's>>)>,
}

impl<'s> DirectoryIndexCache<'s> {
    pub(super) fn new(filter: Option<&'s dyn IndexFilter>) -> Self {
        Self { filter, current: None }
    }

    /// The index verdict for the current file; `None` if the file must be read.
    pub(super) fn index_verdict(&mut self, entry: &ParallelWalkEntry<'_, '_>) -> Option<IndexVerdict> {
        let index_filter = self.filter?;
        if self.current.as_ref().is_none_or(|(directory, _)| directory != entry.directory) {
            self.current = Some((entry.directory.clone(), index_filter.directory_index(entry.directory)));
        }
        let shelf = self.current.as_ref()?.1.as_deref()?;
        if shelf.may_know(entry.name) { shelf.verdict(entry.name, &entry.identity()?) } else { None }
    }
}

impl SearchResults {
    /// Counts a file without opening it.
    pub(super) fn count_verdict(&mut self, known: IndexVerdict) {
        match known {
            IndexVerdict::TextWithoutMatch { bytes } => {
                self.files_searched += 1;
                self.bytes_searched += bytes;
            }
            IndexVerdict::Binary => self.binary_files += 1,
        }
    }

    pub(super) fn files_visited(&self) -> u64 {
        self.files_searched + self.binary_files + self.incomplete.count() + self.unreadable_files
    }
}

impl SearchArgs {
    /// Searches with a live index; `None` if there is none, or if the call does not cover everything a plain walk
    /// visits.
    pub(super) fn search_by_index(
        &self,
        search_context: &SearchContext<'_>,
        start: &RelPath,
    ) -> Result<Option<(SearchResults, WalkOmissions)>, Error> {
        let context = search_context.context;
        let plain = IgnoredFileFilter::from(self.all) == IgnoredFileFilter::Exclude
            && self.glob.is_none()
            && sees_unfiltered_tree(context)
            && search_context.unsaved.is_empty();
        let survey = plain
            .then(|| context.workspace().indexed_walk(start, search_context.pattern.required_trigrams()))
            .flatten();
        let Some(IndexedWalk {
            candidates,
            text_files: texts,
            bytes,
            binary_files: binary,
            ignored,
            unlistable_directories: closed,
        }) = survey
        else {
            return Ok(None);
        };
        let mut found = SearchResults {
            files_searched: texts,
            bytes_searched: bytes,
            binary_files: binary,
            unreadable_files: closed,
            ..SearchResults::default()
        };
        for path in &candidates {
            context.control.check()?;
            search_context.search_file(&mut found, &SearchedFile::ByPath(path))?;
        }
        found.truncate(search_context.hits_max, search_context.ranking());
        Ok(Some((found, WalkOmissions { unlistable_directories: closed, limit_reached: false, ignored })))
    }
}

/// Whether no rule hides entries from this caller.
fn sees_unfiltered_tree(context: &CallContext<'_>) -> bool {
    let filter = &context.options.walk_filter;
    context.has_full_read_access() && filter.include.is_empty() && filter.exclude.is_empty()
}
