//! Applies edits of an old text to the current text.
//!
//! Two concurrent versions of a file are derived from the history, and one version is split into edits that quote the
//! old text. Wherever `git merge-file` merges without a conflict, the result is compared with Git's byte for byte.

use std::{fmt, fs, ops::Range, process::Command};

use stead_text::{
    diff::{self, DiffHunkRanges},
    edit::{EditMatchingRules, FindReplaceEdit, TextSplice, apply_splices, apply_to_newer_text},
    locate::{QuoteSearchHaystack, QuoteSearchOptions},
    merge::{MergeResult, merge},
};
use tempfile::TempDir;

use super::{BenchOldAndNewText, DivergedTextBenchCase};

/// The most context lines above and below a quote that are tried to make it unique.
const CONTEXT_LINES_MAX: usize = 20;

#[derive(Debug, Default)]
pub(super) struct StaleEditTally {
    pub(super) files: usize,
    edits: usize,
    /// The number of files whose change applied as edits (`anchored`), by a merge (`merged`), or in either way.
    anchored: usize,
    merged: usize,
    either: usize,
    /// The number of files that Git merges without a conflict.
    clean_by_git: usize,
    /// The number of results of edits that differ from a clean merge of Git.
    anchored_differing: usize,
    merged_differing: usize,
}

impl StaleEditTally {
    pub(super) fn count_differing(&self) -> usize {
        self.anchored_differing + self.merged_differing
    }
}

impl fmt::Display for StaleEditTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, edits, anchored, merged, either, clean_by_git: clean, .. } = self;
        let part = |count: &usize| 100.0 * *count as f64 / (*files).max(1) as f64;
        write!(
            f,
            "{files} files, {edits} edits; applied as anchored {anchored} ({:.1} %), as merge {merged} ({:.1} %), as one \
             of them {either} ({:.1} %), by git merge-file {clean} ({:.1} %); differing from git where that is clean: \
             anchored {}, merge {}",
            part(anchored),
            part(merged),
            part(either),
            part(clean),
            self.anchored_differing,
            self.merged_differing,
        )
    }
}

#[derive(Debug)]
pub(super) struct StaleEditGitMergeBenchRunner {
    directory: TempDir,
}

impl StaleEditGitMergeBenchRunner {
    pub(super) fn new() -> Result<Self, String> {
        let place = tempfile::tempdir().map_err(|error| format!("temporary directory: {error}"))?;
        Ok(Self { directory: place })
    }

    /// Applies the change of one version to the other version, as edits and by a merge, and compares both results with
    /// Git's.
    pub(super) fn apply(&mut self, fork: &DivergedTextBenchCase, tally: &mut StaleEditTally) -> Result<(), String> {
        let quotes = unique_quotes(&fork.base, &fork.wanted);
        let edits: Vec<FindReplaceEdit<'_>> = quotes.iter().map(|(old, new)| FindReplaceEdit::new(old, new)).collect();
        let by_quote = apply_to_newer_text(&fork.base, &fork.current, &edits, EditMatchingRules::NATIVE)
            .ok()
            .map(|made| made.text);
        let by_merge = match merge(&fork.base, &fork.wanted, &fork.current) {
            MergeResult::Clean(text) => Some(text),
            MergeResult::Conflict(_) => None,
        };
        let by_git = self.merge_with_git(fork)?;
        let differs = |made: &Option<String>| match (made, &by_git) {
            (Some(made), Some(git)) => made.as_bytes() != git,
            (None, _) | (_, None) => false,
        };
        for (made, way) in [(&by_quote, "anchored"), (&by_merge, "merge")] {
            if differs(made) {
                println!("{}: {way} differs from git merge-file", fork.name);
            }
        }
        tally.files += 1;
        tally.edits += edits.len();
        tally.anchored += usize::from(by_quote.is_some());
        tally.merged += usize::from(by_merge.is_some());
        tally.either += usize::from(by_quote.is_some() || by_merge.is_some());
        tally.clean_by_git += usize::from(by_git.is_some());
        tally.anchored_differing += usize::from(differs(&by_quote));
        tally.merged_differing += usize::from(differs(&by_merge));
        Ok(())
    }

    /// The result of `git merge-file`; `None` for a conflict.
    fn merge_with_git(&self, fork: &DivergedTextBenchCase) -> Result<Option<Vec<u8>>, String> {
        let names = ["wanted", "base", "current"];
        for (name, text) in names.iter().zip([&fork.wanted, &fork.base, &fork.current]) {
            fs::write(self.directory.path().join(name), text).map_err(|error| format!("{name}: {error}"))?;
        }
        let mut command = Command::new("git");
        command.args(["merge-file", "-p", "-q"]).args(names).current_dir(self.directory.path());
        let output = command.output().map_err(|error| format!("git: {error}"))?;
        match output.status.code() {
            Some(0) => Ok(Some(output.stdout)),
            // The number of conflicts.
            Some(1..=127) => Ok(None),
            Some(_) | None => Err(format!("git merge-file: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }
}

/// Splits a change into two concurrent versions, which get its hunks alternately.
pub(super) fn split_changes(pair: &BenchOldAndNewText) -> Option<DivergedTextBenchCase> {
    let hunks = diff::hunks(&pair.old, &pair.new);
    let (old, new) = (QuoteSearchHaystack::new(&pair.old), QuoteSearchHaystack::new(&pair.new));
    let side = |first: usize| {
        let splices = hunks.iter().skip(first).step_by(2).map(|hunk| splice_of_hunk(&old, &new, hunk));
        apply_splices(&pair.old, &splices.collect::<Vec<_>>())
    };
    (hunks.len() > 1).then(|| DivergedTextBenchCase {
        name: pair.name.clone(),
        base: pair.old.clone(),
        wanted: side(0),
        current: side(1),
    })
}

/// Converts two successive changes to concurrent ones: hunks of the later change on lines that the earlier change left
/// unchanged are applied to the old text.
pub(super) fn as_concurrent_change(
    earlier: &BenchOldAndNewText,
    later: &BenchOldAndNewText,
) -> Option<DivergedTextBenchCase> {
    let earlier_hunks = diff::hunks(&earlier.old, &earlier.new);
    let (base, old, new) = (
        QuoteSearchHaystack::new(&earlier.old),
        QuoteSearchHaystack::new(&later.old),
        QuoteSearchHaystack::new(&later.new),
    );
    let mut splices = Vec::new();
    for hunk in diff::hunks(&later.old, &later.new) {
        let Some(shift) = line_offset(&earlier_hunks, &hunk) else { continue };
        let before = |line: usize| line.saturating_add_signed(shift);
        let bytes = byte_range(&base, &(before(hunk.old.start)..before(hunk.old.end)));
        splices.push(TextSplice { bytes, ..splice_of_hunk(&old, &new, &hunk) });
    }
    (!splices.is_empty()).then(|| DivergedTextBenchCase {
        name: earlier.name.clone(),
        base: earlier.old.clone(),
        wanted: apply_splices(&earlier.old, &splices),
        current: earlier.new.clone(),
    })
}

/// The number to add to line numbers of `later` to get lines of the text before `earlier`; `None` if `earlier` changed
/// these lines.
fn line_offset(earlier: &[DiffHunkRanges], later: &DiffHunkRanges) -> Option<isize> {
    let mut shift = 0;
    for hunk in earlier {
        // Lines next to changed lines are unchanged; a gap next to changed lines is not.
        let apart = usize::from(!hunk.new.is_empty() && !later.old.is_empty());
        if later.old.end < hunk.new.start + apart {
            break;
        }
        if later.old.start + apart <= hunk.new.end {
            return None;
        }
        shift += hunk.old.len().cast_signed() - hunk.new.len().cast_signed();
    }
    Some(shift)
}

/// The diff of two texts as edits, each with the fewest context lines that make it unique.
fn unique_quotes(base: &str, wanted: &str) -> Vec<(String, String)> {
    let (old, new) = (QuoteSearchHaystack::new(base), QuoteSearchHaystack::new(wanted));
    let hunks = diff::hunks(base, wanted);
    let mut quotes = Vec::new();
    for (at, hunk) in hunks.iter().enumerate() {
        // Changes within each other's context become one edit; context grows at most halfway, so that edits do not
        // overlap.
        let above = at.checked_sub(1).map_or(0, |before| hunks[before].old.end.midpoint(hunk.old.start));
        let below = hunks.get(at + 1).map_or(old.line_count(), |next| hunk.old.end.midpoint(next.old.start));
        let quoted = (0..=CONTEXT_LINES_MAX).map(|context| {
            let first = hunk.old.start.saturating_sub(context).max(above);
            let last = (hunk.old.end + context).min(below);
            (first, last)
        });
        let is_unique = |(first, last): &(usize, usize)| {
            let quote = &base[byte_range(&old, &(*first..*last))];
            !quote.trim().is_empty() && old.find(quote, QuoteSearchOptions::LENIENT).matches.len() == 1
        };
        let Some((first, last)) = quoted.clone().find(is_unique).or_else(|| quoted.clone().next_back()) else {
            continue;
        };
        let text = |lines: Range<usize>| &base[byte_range(&old, &lines)];
        let TextSplice { text: made, .. } = splice_of_hunk(&old, &new, hunk);
        let replaced = [text(first..hunk.old.start), &made, text(hunk.old.end..last)].concat();
        quotes.push((text(first..last).to_owned(), replaced));
    }
    quotes
}

fn splice_of_hunk(old: &QuoteSearchHaystack<'_>, new: &QuoteSearchHaystack<'_>, hunk: &DiffHunkRanges) -> TextSplice {
    let text = new.text()[byte_range(new, &hunk.new)].to_owned();
    TextSplice { bytes: byte_range(old, &hunk.old), text }
}

/// Converts a range of 0-based lines to a byte range.
fn byte_range(finder: &QuoteSearchHaystack<'_>, lines: &Range<usize>) -> Range<usize> {
    finder.line_bytes(lines.start + 1).start..finder.line_bytes(lines.end + 1).start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_change(old: &str, new: &str) -> BenchOldAndNewText {
        BenchOldAndNewText { name: "a".to_owned(), old: old.to_owned(), new: new.to_owned() }
    }

    #[test]
    fn changes_are_split_alternately() {
        let fork = split_changes(&text_change("1\n2\n3\n4\n5\n", "one\n2\nthree\n4\nfive\n")).unwrap();
        assert_eq!(fork.wanted, "one\n2\n3\n4\nfive\n");
        assert_eq!(fork.current, "1\n2\nthree\n4\n5\n");
        assert!(split_changes(&text_change("1\n", "2\n")).is_none());
    }

    #[test]
    fn later_change_is_rebased_where_its_lines_existed() {
        let earlier = text_change("1\n2\n3\n4\n", "0\n1\ntwo\n3\n4\n");
        let later = text_change(&earlier.new, "0\n1\nTWO\n3\nfour\n");
        let fork = as_concurrent_change(&earlier, &later).unwrap();
        assert_eq!(fork.wanted, "1\n2\n3\nfour\n");
        assert!(as_concurrent_change(&earlier, &text_change(&earlier.new, "0\n1\nTWO\n3\n4\n")).is_none());
    }

    #[test]
    fn quotes_grow_until_they_are_unique_and_never_overlap() {
        let made = unique_quotes("a\nx\nb\nx\nc\n", "a\ny\nb\nx\nc\n");
        assert_eq!(made, [("a\nx\nb\n".to_owned(), "a\ny\nb\n".to_owned())]);
        let made = unique_quotes("x\nx\nx\n", "y\nx\ny\n");
        assert_eq!(made.len(), 2);
    }

    #[test]
    fn results_are_compared_with_git() {
        let mut tally = StaleEditTally::default();
        let mut judge = StaleEditGitMergeBenchRunner::new().unwrap();
        judge.apply(&split_changes(&text_change("1\n2\n3\n", "one\n2\nthree\n")).unwrap(), &mut tally).unwrap();
        assert_eq!((tally.anchored, tally.merged, tally.clean_by_git, tally.count_differing()), (1, 1, 1, 0));
    }
}
