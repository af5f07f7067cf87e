//! The results of a search: the hits by file, and the numbers of searched and skipped files.

use std::cmp::Reverse;

use serde::Serialize;
use stead_path::RelPath;

use super::{matcher::SearchHit, walk};
use crate::{
    call_options::SearchHitOrder,
    index::IndexBasedFileSkipReason,
    limits,
    outcome::{FileShownInOutcome, SavedAndUnsavedVersion, is_default},
};

#[derive(Default)]
pub(super) struct SearchResults {
    pub(super) files: Vec<FileHitsRow<SearchHit>>,
    pub(super) hits_listed: usize,
    /// The number of all hits of the search, including hits that are not in `files`.
    pub(super) hits_total: usize,
    /// The number of all files with hits, including files that are not in `files`.
    pub(super) files_with_hits: usize,
    pub(super) bytes_searched: u64,
    pub(super) counts: SearchedFileCountFields,
    pub(super) walk_limit_reached: bool,
    pub(super) buffer: Vec<u8>,
}

/// The search hits in one file, either with their text or only with their locations.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileHitsRow<H> {
    pub path: RelPath,
    pub hits: Vec<H>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<SavedAndUnsavedVersion>,
}

impl<H> FileHitsRow<H> {
    pub(super) fn new(path: RelPath, hits: Vec<H>) -> Self {
        Self { path, hits, unsaved: None }
    }

    pub(super) fn shown_file(&mut self) -> FileShownInOutcome<'_> {
        FileShownInOutcome { path: &self.path, version: None, unsaved: &mut self.unsaved }
    }
}

/// The numbers of files that a search read or skipped.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SearchedFileCountFields {
    pub scanned: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub binary: u64,
    /// The number of files that were not searched completely.
    #[serde(skip_serializing_if = "is_default")]
    pub large: u64,
    /// The first files, by path, that were not searched completely.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<IncompletelySearchedFileRow>,
    #[serde(skip_serializing_if = "is_default")]
    pub unreadable: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub ignored: u64,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct IncompletelySearchedFileRow {
    pub path: RelPath,
    pub why: IncompleteSearchReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum IncompleteSearchReason {
    #[serde(rename = "size")]
    FileTooLarge,
    #[serde(rename = "time")]
    OutOfTime,
    #[serde(rename = "line")]
    LineTooLong,
}

impl SearchedFileCountFields {
    pub(super) fn add_incomplete(&mut self, path: &RelPath, why: IncompleteSearchReason) {
        self.large += 1;
        self.name_incomplete(IncompletelySearchedFileRow { path: path.clone(), why });
    }

    fn name_incomplete(&mut self, file: IncompletelySearchedFileRow) {
        let at = self.left.partition_point(|named| walk::compare_by_path(&named.path, &file.path).is_lt());
        if at < limits::SEARCH_INCOMPLETE_NAMED_MAX {
            self.left.insert(at, file);
            self.left.truncate(limits::SEARCH_INCOMPLETE_NAMED_MAX);
        }
    }

    fn merge(&mut self, other: Self) {
        self.scanned += other.scanned;
        self.binary += other.binary;
        self.large += other.large;
        self.unreadable += other.unreadable;
        self.ignored += other.ignored;
        other.left.into_iter().for_each(|file| self.name_incomplete(file));
    }
}

impl SearchResults {
    pub(super) fn merge_all(results: impl Iterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for one in results {
            all.files.extend(one.files);
            all.hits_listed += one.hits_listed;
            all.hits_total += one.hits_total;
            all.bytes_searched += one.bytes_searched;
            all.files_with_hits += one.files_with_hits;
            all.counts.merge(one.counts);
            all.walk_limit_reached |= one.walk_limit_reached;
        }
        all
    }

    /// Sorts the files by path and keeps at most `max` hits: the best hits if hits are ranked, otherwise the first.
    pub(super) fn truncate(&mut self, max: usize, ranking: SearchHitOrder) {
        self.files.sort_unstable_by(|one, two| walk::compare_by_path(&one.path, &two.path));
        if ranking == SearchHitOrder::ByRelevance && self.hits_listed > max {
            self.truncate_to_best(max);
        }
        let mut room = max;
        self.files.retain_mut(|file| {
            file.hits.truncate(room);
            room -= file.hits.len();
            !file.hits.is_empty()
        });
        self.hits_listed = max - room;
    }

    /// Keeps the `max` best hits of a search; `files` must be sorted by path.
    fn truncate_to_best(&mut self, max: usize) {
        let rank = |file: usize, hit: &SearchHit| (hit.weight.role, Reverse(hit.weight.points), file, hit.line);
        let files = self.files.iter().enumerate();
        let mut ranks: Vec<_> = files.flat_map(|(at, file)| file.hits.iter().map(move |hit| rank(at, hit))).collect();
        if ranks.len() <= max {
            return;
        }
        let (_, first_dropped, _) = ranks.select_nth_unstable(max);
        let first_dropped = *first_dropped;
        for (at, file) in self.files.iter_mut().enumerate() {
            file.hits.retain(|hit| rank(at, hit) < first_dropped);
        }
    }

    pub(super) fn count_verdict(&mut self, verdict: IndexBasedFileSkipReason) {
        match verdict {
            IndexBasedFileSkipReason::TextWithoutMatch { bytes } => {
                self.counts.scanned += 1;
                self.bytes_searched += bytes;
            }
            IndexBasedFileSkipReason::Binary => self.counts.binary += 1,
        }
    }

    pub(super) fn files_visited(&self) -> u64 {
        self.counts.scanned + self.counts.binary + self.counts.large + self.counts.unreadable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_incomplete_files_named_all_counted() {
        let mut counts = SearchedFileCountFields::default();
        for number in (0..7).rev() {
            let mut one = SearchedFileCountFields::default();
            one.add_incomplete(
                &RelPath::from_wire(&format!("f{number}")).unwrap(),
                IncompleteSearchReason::LineTooLong,
            );
            counts.merge(one);
        }
        let named: Vec<String> = counts.left.iter().map(|file| file.path.to_string()).collect();
        assert_eq!((counts.large, named), (7, ["f0", "f1", "f2", "f3", "f4"].map(str::to_owned).to_vec()));
    }
}
