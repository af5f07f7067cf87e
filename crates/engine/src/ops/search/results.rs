//! The results of a search: the hits by file, and the numbers of searched and skipped files.

use std::cmp::Reverse;

use serde_json::{Map, Value};
use stead_path::RelPath;
use stead_text::visible::escape_deceptive_line;

use super::{matcher::SearchHit, walk};
use crate::{
    call_options::SearchHitOrder, index::IndexBasedFileSkipReason, limits, ops::outcome_builder::OutcomeBuilder,
};

#[derive(Default)]
pub(super) struct SearchResults {
    pub(super) files: Vec<(RelPath, Vec<SearchHit>)>,
    pub(super) hits_listed: usize,
    /// The number of all hits of the search, including hits that are not in `files`.
    pub(super) hits_total: usize,
    /// The number of all files with hits, including files that are not in `files`.
    pub(super) files_with_hits: usize,
    pub(super) files_searched: u64,
    pub(super) bytes_searched: u64,
    pub(super) binary_files: u64,
    pub(super) incomplete: IncompletelySearchedFiles,
    pub(super) unreadable_files: u64,
    pub(super) buffer: Vec<u8>,
}

impl SearchResults {
    pub(super) fn merge_all(results: impl Iterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for one in results {
            all.files.extend(one.files);
            all.hits_listed += one.hits_listed;
            all.hits_total += one.hits_total;
            all.files_searched += one.files_searched;
            all.bytes_searched += one.bytes_searched;
            all.binary_files += one.binary_files;
            all.incomplete.merge(one.incomplete);
            all.unreadable_files += one.unreadable_files;
            all.files_with_hits += one.files_with_hits;
        }
        all
    }

    /// Sorts the files by path and keeps at most `max` hits: the best hits if hits are ranked, otherwise the first.
    pub(super) fn truncate(&mut self, max: usize, ranking: SearchHitOrder) {
        self.files.sort_unstable_by(|(one, _), (two, _)| walk::compare_by_path(one, two));
        if ranking == SearchHitOrder::ByRelevance && self.hits_listed > max {
            self.truncate_to_best(max);
        }
        let mut room = max;
        self.files.retain_mut(|(_, hits)| {
            hits.truncate(room);
            room -= hits.len();
            !hits.is_empty()
        });
        self.hits_listed = max - room;
    }

    /// Keeps the `max` best hits; the caller must have sorted `files` by path.
    fn truncate_to_best(&mut self, max: usize) {
        let rank = |file: usize, hit: &SearchHit| (hit.weight.role, Reverse(hit.weight.points), file, hit.line);
        let files = self.files.iter().enumerate();
        let mut ranks: Vec<_> =
            files.flat_map(|(file, (_, hits))| hits.iter().map(move |hit| rank(file, hit))).collect();
        if ranks.len() <= max {
            return;
        }
        let (_, first_dropped, _) = ranks.select_nth_unstable(max);
        let first_dropped = *first_dropped;
        for (file, (_, hits)) in self.files.iter_mut().enumerate() {
            hits.retain(|hit| rank(file, hit) < first_dropped);
        }
    }

    pub(super) fn count_verdict(&mut self, verdict: IndexBasedFileSkipReason) {
        match verdict {
            IndexBasedFileSkipReason::TextWithoutMatch { bytes } => {
                self.files_searched += 1;
                self.bytes_searched += bytes;
            }
            IndexBasedFileSkipReason::Binary => self.binary_files += 1,
        }
    }

    pub(super) fn files_visited(&self) -> u64 {
        self.files_searched + self.binary_files + self.incomplete.count() + self.unreadable_files
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IncompleteSearchReason {
    FileTooLarge,
    OutOfTime,
    LineTooLong,
}

impl IncompleteSearchReason {
    fn as_str(self) -> &'static str {
        match self {
            Self::FileTooLarge => "size",
            Self::OutOfTime => "time",
            Self::LineTooLong => "line",
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::FileTooLarge => "too large",
            Self::OutOfTime => "out of time",
            Self::LineTooLong => "line too long",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct IncompletelySearchedFiles {
    count: u64,
    named_files: Vec<(RelPath, IncompleteSearchReason)>,
}

impl IncompletelySearchedFiles {
    pub(super) fn add(&mut self, path: &RelPath, reason: IncompleteSearchReason) {
        self.count += 1;
        self.add_named(path.clone(), reason);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.count += other.count;
        for (path, reason) in other.named_files {
            self.add_named(path, reason);
        }
    }

    fn add_named(&mut self, path: RelPath, reason: IncompleteSearchReason) {
        let at = self.named_files.partition_point(|(named, _)| walk::compare_by_path(named, &path).is_lt());
        if at < limits::SEARCH_INCOMPLETE_NAMED_MAX {
            self.named_files.insert(at, (path, reason));
            self.named_files.truncate(limits::SEARCH_INCOMPLETE_NAMED_MAX);
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn named_files_json(&self) -> Option<Vec<Map<String, Value>>> {
        let one = |(path, reason): &(RelPath, IncompleteSearchReason)| {
            OutcomeBuilder::new().with_field("path", path.to_string()).with_field("why", reason.as_str()).into_json()
        };
        (!self.named_files.is_empty()).then(|| self.named_files.iter().map(one).collect())
    }

    pub(super) fn render_note(&self) -> Option<String> {
        let one = |(path, reason): &(RelPath, IncompleteSearchReason)| {
            format!("{} ({})", escape_deceptive_line(&path.to_wire()), reason.describe())
        };
        let named: Vec<String> = self.named_files.iter().map(one).collect();
        let more = self.count - self.named_files.len() as u64;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (self.count > 0).then(|| format!("not fully searched: {}{more}", named.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_incomplete_files_named_all_counted() {
        let mut incomplete = IncompletelySearchedFiles::default();
        assert_eq!((incomplete.count(), incomplete.named_files_json(), incomplete.render_note()), (0, None, None));
        for number in (0..7).rev() {
            let mut one = IncompletelySearchedFiles::default();
            one.add(&RelPath::from_wire(&format!("f{number}")).unwrap(), IncompleteSearchReason::LineTooLong);
            incomplete.merge(one);
        }
        assert_eq!((incomplete.count(), incomplete.named_files_json().unwrap().len()), (7, 5));
        let note = incomplete.render_note().unwrap();
        assert!(note.starts_with("not fully searched: f0 (line too long), f1"), "{note}");
        assert!(note.ends_with("f4 (line too long) and 2 more"), "{note}");
    }
}
