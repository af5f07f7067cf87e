//! Edits that were written against an old text, applied to the text as it is now.
//!
//! Owns how two sides of a change are made from history, how one of them is cut into edits as a caller would quote
//! them, and the comparison of every result with `git merge-file`. Promises that a result is compared byte for byte
//! wherever git merges without a conflict. Never takes git's word for more than that: what git does not merge is
//! counted apart.

use std::{fmt, fs, ops::Range, process::Command};

use tempfile::TempDir;
use text::{
    diff::{self, Hunk},
    edit::{Edit, Rules, Splice, anchored, apply},
    locate::{Finder, Matching},
    merge::{Merged, merge},
};

use super::{Fork, Pair};

/// The most lines that a quote takes in on each side to be unique.
const CONTEXT_LINES_MAX: usize = 20;

/// What came of the edits.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) files: usize,
    edits: usize,
    /// Files whose edits applied, by each way, and by one of them.
    anchored: usize,
    merged: usize,
    either: usize,
    /// Files that git merges without a conflict.
    clean: usize,
    /// Results that differ from git's where that is clean.
    anchored_differing: usize,
    merged_differing: usize,
}

impl Tally {
    pub(super) fn differing(&self) -> usize {
        self.anchored_differing + self.merged_differing
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, edits, anchored, merged, either, clean, .. } = self;
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

/// The two ways of applying edits, beside git.
#[derive(Debug)]
pub(super) struct Judge {
    place: TempDir,
}

impl Judge {
    pub(super) fn new() -> Result<Self, String> {
        let place = tempfile::tempdir().map_err(|error| format!("temporary directory: {error}"))?;
        Ok(Self { place })
    }

    /// Applies one side of a fork to the other, by quotes and by merging, and compares with git.
    pub(super) fn apply(&mut self, fork: &Fork, tally: &mut Tally) -> Result<(), String> {
        let quotes = quotes(&fork.base, &fork.wanted);
        let edits: Vec<Edit<'_>> = quotes.iter().map(|(old, new)| Edit::new(old, new)).collect();
        let by_quote = anchored(&fork.base, &fork.current, &edits, Rules::NATIVE).ok().map(|made| made.text);
        let by_merge = match merge(&fork.base, &fork.wanted, &fork.current) {
            Merged::Clean(text) => Some(text),
            Merged::Conflict(_) => None,
        };
        let by_git = self.merged_by_git(fork)?;
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
        tally.clean += usize::from(by_git.is_some());
        tally.anchored_differing += usize::from(differs(&by_quote));
        tally.merged_differing += usize::from(differs(&by_merge));
        Ok(())
    }

    /// What `git merge-file` makes of a fork; nothing if it finds a conflict.
    fn merged_by_git(&self, fork: &Fork) -> Result<Option<Vec<u8>>, String> {
        let names = ["wanted", "base", "current"];
        for (name, text) in names.iter().zip([&fork.wanted, &fork.base, &fork.current]) {
            fs::write(self.place.path().join(name), text).map_err(|error| format!("{name}: {error}"))?;
        }
        let mut command = Command::new("git");
        command.args(["merge-file", "-p", "-q"]).args(names).current_dir(self.place.path());
        let output = command.output().map_err(|error| format!("git: {error}"))?;
        match output.status.code() {
            Some(0) => Ok(Some(output.stdout)),
            // The number of conflicts.
            Some(1..=127) => Ok(None),
            Some(_) | None => Err(format!("git merge-file: {}", String::from_utf8_lossy(&output.stderr))),
        }
    }
}

/// Deals the changes of a text out in turn: one to the caller, one to those who were faster.
pub(super) fn deal(pair: &Pair) -> Option<Fork> {
    let hunks = diff::hunks(&pair.old, &pair.new);
    let (old, new) = (Finder::new(&pair.old), Finder::new(&pair.new));
    let side = |first: usize| {
        let splices = hunks.iter().skip(first).step_by(2).map(|hunk| splice(&old, &new, hunk));
        apply(&pair.old, &splices.collect::<Vec<_>>())
    };
    (hunks.len() > 1).then(|| Fork {
        name: pair.name.clone(),
        base: pair.old.clone(),
        wanted: side(0),
        current: side(1),
    })
}

/// The later change as it would have been made at the same time as the earlier one: what of it rests on lines that the
/// earlier one left alone.
pub(super) fn follow(earlier: &Pair, later: &Pair) -> Option<Fork> {
    let earlier_hunks = diff::hunks(&earlier.old, &earlier.new);
    let (base, old, new) = (Finder::new(&earlier.old), Finder::new(&later.old), Finder::new(&later.new));
    let mut splices = Vec::new();
    for hunk in diff::hunks(&later.old, &later.new) {
        let Some(shift) = shift(&earlier_hunks, &hunk) else { continue };
        let before = |line: usize| line.saturating_add_signed(shift);
        let bytes = bytes(&base, &(before(hunk.old.start)..before(hunk.old.end)));
        splices.push(Splice { bytes, ..splice(&old, &new, &hunk) });
    }
    (!splices.is_empty()).then(|| Fork {
        name: earlier.name.clone(),
        base: earlier.old.clone(),
        wanted: apply(&earlier.old, &splices),
        current: earlier.new.clone(),
    })
}

/// By how many lines the old lines of `later` stood elsewhere before `earlier`; nothing if that changed them.
fn shift(earlier: &[Hunk], later: &Hunk) -> Option<isize> {
    let mut shift = 0;
    for hunk in earlier {
        // Lines beside changed lines are untouched; a gap beside changed lines is not.
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

/// The difference of two texts as a caller would write it: each change with as few lines around it as make it unique.
fn quotes(base: &str, wanted: &str) -> Vec<(String, String)> {
    let (old, new) = (Finder::new(base), Finder::new(wanted));
    let hunks = diff::hunks(base, wanted);
    let mut quotes = Vec::new();
    for (at, hunk) in hunks.iter().enumerate() {
        // Changes that lie in each other's quotes are one edit; growing stops halfway, so that none overlap.
        let above = at.checked_sub(1).map_or(0, |before| hunks[before].old.end.midpoint(hunk.old.start));
        let below = hunks.get(at + 1).map_or(old.line_count(), |next| hunk.old.end.midpoint(next.old.start));
        let quoted = (0..=CONTEXT_LINES_MAX).map(|context| {
            let first = hunk.old.start.saturating_sub(context).max(above);
            let last = (hunk.old.end + context).min(below);
            (first, last)
        });
        let is_unique = |(first, last): &(usize, usize)| {
            let quote = &base[bytes(&old, &(*first..*last))];
            !quote.trim().is_empty() && old.find(quote, Matching::LENIENT).places.len() == 1
        };
        let Some((first, last)) = quoted.clone().find(is_unique).or_else(|| quoted.clone().next_back())
        else {
            continue;
        };
        let text = |lines: Range<usize>| &base[bytes(&old, &lines)];
        let Splice { text: made, .. } = splice(&old, &new, hunk);
        let replaced = [text(first..hunk.old.start), &made, text(hunk.old.end..last)].concat();
        quotes.push((text(first..last).to_owned(), replaced));
    }
    quotes
}

fn splice(old: &Finder<'_>, new: &Finder<'_>, hunk: &Hunk) -> Splice {
    let text = new.text()[bytes(new, &hunk.new)].to_owned();
    Splice { bytes: bytes(old, &hunk.old), text }
}

/// The bytes of 0-based lines.
fn bytes(finder: &Finder<'_>, lines: &Range<usize>) -> Range<usize> {
    finder.line_bytes(lines.start + 1).start..finder.line_bytes(lines.end + 1).start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(old: &str, new: &str) -> Pair {
        Pair { name: "a".to_owned(), old: old.to_owned(), new: new.to_owned() }
    }

    #[test]
    fn changes_are_dealt_out_in_turn() {
        let fork = deal(&pair("1\n2\n3\n4\n5\n", "one\n2\nthree\n4\nfive\n")).unwrap();
        assert_eq!(fork.wanted, "one\n2\n3\n4\nfive\n");
        assert_eq!(fork.current, "1\n2\nthree\n4\n5\n");
        assert!(deal(&pair("1\n", "2\n")).is_none());
    }

    #[test]
    fn a_later_change_is_made_earlier_where_its_lines_were_there() {
        let earlier = pair("1\n2\n3\n4\n", "0\n1\ntwo\n3\n4\n");
        let later = pair(&earlier.new, "0\n1\nTWO\n3\nfour\n");
        let fork = follow(&earlier, &later).unwrap();
        assert_eq!(fork.wanted, "1\n2\n3\nfour\n");
        assert!(follow(&earlier, &pair(&earlier.new, "0\n1\nTWO\n3\n4\n")).is_none());
    }

    #[test]
    fn quotes_grow_until_they_are_unique_and_never_overlap() {
        let made = quotes("a\nx\nb\nx\nc\n", "a\ny\nb\nx\nc\n");
        assert_eq!(made, [("a\nx\nb\n".to_owned(), "a\ny\nb\n".to_owned())]);
        let made = quotes("x\nx\nx\n", "y\nx\ny\n");
        assert_eq!(made.len(), 2);
    }

    #[test]
    fn results_are_compared_with_those_of_git() {
        let mut tally = Tally::default();
        let mut judge = Judge::new().unwrap();
        judge.apply(&deal(&pair("1\n2\n3\n", "one\n2\nthree\n")).unwrap(), &mut tally).unwrap();
        assert_eq!((tally.anchored, tally.merged, tally.clean, tally.differing()), (1, 1, 1, 0));
    }
}
