//! Uses the search index to avoid reading files. A search reads every file unless the index shows that the file cannot
//! match, so the outcome is the same with and without the index.

use stead_path::RelPath;

use super::{FileToSearch, SearchArgs, SearchPatternAndLimits, SearchResults, results::SearchedFileCountFields};
use crate::{
    call_context::CallContext,
    errors::Error,
    index::{IndexBasedFileFilter, IndexBasedFileSkipReason, IndexBasedSearchFilter, IndexedSearchCandidates},
    ops::walk::{IgnoredFileInclusionPolicy, ParallelWalkEntry},
};

pub(super) struct IndexBasedFileSkipChecker<'s> {
    filter: Option<&'s dyn IndexBasedSearchFilter>,
    current: Option<(RelPath, Option<Box<dyn IndexBasedFileFilter + 's>>)>,
}

impl<'s> IndexBasedFileSkipChecker<'s> {
    pub(super) fn new(filter: Option<&'s dyn IndexBasedSearchFilter>) -> Self {
        Self { filter, current: None }
    }

    /// Returns the reason why the index lets a search skip a file; `None` if the file must be read.
    pub(super) fn index_verdict(&mut self, entry: &ParallelWalkEntry<'_>) -> Option<IndexBasedFileSkipReason> {
        let index_filter = self.filter?;
        if self.current.as_ref().is_none_or(|(directory, _)| directory != entry.directory) {
            self.current = Some((entry.directory.clone(), index_filter.directory_index(entry.directory)));
        }
        let index = self.current.as_ref()?.1.as_deref()?;
        if index.may_know(entry.name) { index.verdict(entry.name, &entry.stamp()?) } else { None }
    }
}

impl SearchArgs {
    /// Searches only the files that a live index names as candidates, instead of walking the tree. The function returns
    /// `None` if the tree must be walked, for example without a live index.
    pub(super) fn search_by_index(
        &self,
        search_context: &SearchPatternAndLimits<'_>,
        start: &RelPath,
    ) -> Result<Option<SearchResults>, Error> {
        let context = search_context.context;
        let plain = IgnoredFileInclusionPolicy::from(self.all) == IgnoredFileInclusionPolicy::Exclude
            && self.glob.is_none()
            && sees_unfiltered_tree(context)
            && search_context.unsaved.is_empty();
        let indexed = plain
            .then(|| context.workspace().search_index()?.walk(start, search_context.pattern.required_trigrams()))
            .flatten();
        let Some(IndexedSearchCandidates {
            candidates,
            text_files,
            bytes,
            binary_files,
            ignored,
            unlistable_directories,
        }) = indexed
        else {
            return Ok(None);
        };
        let mut found = SearchResults { bytes_searched: bytes, ..SearchResults::default() };
        found.counts = SearchedFileCountFields {
            scanned: text_files,
            binary: binary_files,
            unreadable: unlistable_directories,
            ignored,
            ..SearchedFileCountFields::default()
        };
        for path in &candidates {
            context.control.check()?;
            search_context.search_file(&mut found, &FileToSearch::ByPath(path))?;
        }
        found.truncate(search_context.hits_max, search_context.hit_order);
        Ok(Some(found))
    }
}

fn sees_unfiltered_tree(context: &CallContext<'_>) -> bool {
    let filter = &context.options.walk_filter;
    context.has_full_read_access() && filter.include.is_empty() && filter.exclude.is_empty()
}
