//! The hunks between two texts, each with its authors and a stable name. Pure.

use std::{collections::BTreeSet, ops::Range};

use serde_json::{Value, json};
use stead_text::{diff::hunks, lines};

use super::blame::Blame;
use crate::version::Version;

const HUNK_NAME_DIGITS: usize = 12;
/// The author of changes without a recorded author.
const EXTERNAL_AUTHOR: &str = "outside";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReviewHunk {
    pub(super) name: String,
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
    pub(super) authors: BTreeSet<String>,
}

impl ReviewHunk {
    pub(super) fn to_json(&self) -> Value {
        let range = |lines: &Range<usize>| json!({ "from": lines.start + 1, "lines": lines.len() });
        json!({ "hunk": self.name, "before": range(&self.old), "after": range(&self.new), "by": self.authors })
    }
}

/// The hunks from `before` to the text of the blame. Adjacent lines of different authors become separate hunks if
/// their old lines can be assigned.
pub(super) fn diff_hunks(before: &str, blame: &Blame) -> Vec<ReviewHunk> {
    let (old, new): (Vec<&str>, Vec<&str>) = (lines::iter(before).collect(), lines::iter(blame.text()).collect());
    let mut found: Vec<ReviewHunk> = Vec::new();
    for hunk in hunks(before, blame.text()) {
        for (old_lines, new_lines) in split_by_author(hunk.old, hunk.new, blame) {
            let mut by: BTreeSet<String> =
                new_lines.clone().filter_map(|line| blame.author(line)).map(str::to_owned).collect();
            by.extend(old[old_lines.clone()].iter().filter_map(|line| blame.remover(line)).map(str::to_owned));
            if by.is_empty() {
                by.insert(EXTERNAL_AUTHOR.to_owned());
            }
            let (was, is) = (old[old_lines.clone()].concat(), new[new_lines.clone()].concat());
            let name = stable_hunk_name(&was, &is, &found);
            found.push(ReviewHunk { name, old: old_lines, new: new_lines, authors: by });
        }
    }
    found
}

/// Splits a hunk where the author changes.
fn split_by_author(old: Range<usize>, new: Range<usize>, blame: &Blame) -> Vec<(Range<usize>, Range<usize>)> {
    if old.len() != new.len() {
        return vec![(old, new)];
    }
    let mut parts: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for (was, is) in old.zip(new) {
        match parts.last_mut() {
            Some((olds, news)) if blame.author(news.start) == blame.author(is) => {
                olds.end = was + 1;
                news.end = is + 1;
            }
            Some(_) | None => parts.push((was..was + 1, is..is + 1)),
        }
    }
    parts
}

/// A name derived from the content; equal hunks are numbered.
fn stable_hunk_name(was: &str, is: &str, before: &[ReviewHunk]) -> String {
    (0..)
        .map(|turn: usize| {
            let whole = format!("{}\0{was}\0{is}\0{turn}", was.len());
            Version::hash_bytes(whole.as_bytes()).to_string()[..HUNK_NAME_DIGITS].to_owned()
        })
        .find(|name| before.iter().all(|hunk| hunk.name != *name))
        .unwrap_or_default()
}

/// Replaces the lines of `before` with those of `after` in the chosen hunks.
pub(super) fn apply_hunks(before: &str, after: &str, chosen: &[&ReviewHunk]) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (lines::iter(before).collect(), lines::iter(after).collect());
    let (mut text, mut at) = (String::new(), 0);
    for hunk in chosen {
        text.extend(old[at..hunk.old.start].iter().copied());
        text.extend(new[hunk.new.clone()].iter().copied());
        at = hunk.old.end;
    }
    text.extend(old[at..].iter().copied());
    text
}

/// The text without an author's changes in these hunks: their removed lines return, their added lines go, lines of
/// others stay.
pub(super) fn revert_hunks(before: &str, blame: &Blame, chosen: &[&ReviewHunk], who: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (lines::iter(before).collect(), lines::iter(blame.text()).collect());
    let (mut text, mut at) = (String::new(), 0);
    for hunk in chosen {
        text.extend(new[at..hunk.new.start].iter().copied());
        let alone = hunk.authors.len() == 1;
        let theirs = |line: &&str| alone || blame.remover(line) == Some(who);
        text.extend(old[hunk.old.clone()].iter().copied().filter(theirs));
        let others = hunk.new.clone().filter(|line| blame.author(*line) != Some(who));
        text.extend(others.map(|line| new[line]));
        at = hunk.new.end;
    }
    text.extend(new[at..].iter().copied());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "a\nb\nc\nd\ne\nf\ng\n";

    fn blame() -> Blame {
        let mut blame = Blame::new(BEFORE);
        blame.apply_change("a\nB\nc\nd\ne\nF\nnew\ng\n", "agent:one");
        blame.apply_change("a\nB\nC\nd\ne\nF\nnew\ng\nh\n", "user:ann");
        blame
    }

    #[test]
    fn adjacent_hunks_split_by_author() {
        let blame = blame();
        let found = diff_hunks(BEFORE, &blame);
        let shown: Vec<(usize, usize, Vec<&str>)> = found
            .iter()
            .map(|hunk| (hunk.new.start, hunk.new.len(), hunk.authors.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(
            shown,
            [(1, 1, vec!["agent:one"]), (2, 1, vec!["user:ann"]), (5, 2, vec!["agent:one"]), (8, 1, vec!["user:ann"])]
        );
        let all: Vec<&ReviewHunk> = found.iter().collect();
        assert_eq!(apply_hunks(BEFORE, blame.text(), &all), blame.text());
        assert_eq!(apply_hunks(BEFORE, blame.text(), &all[..1]), "a\nB\nc\nd\ne\nf\ng\n");
        let agents: Vec<&ReviewHunk> = found.iter().filter(|hunk| hunk.authors.contains("agent:one")).collect();
        assert_eq!(revert_hunks(BEFORE, &blame, &agents, "agent:one"), "a\nb\nC\nd\ne\nf\ng\nh\n");
        assert_eq!(revert_hunks(BEFORE, &blame, &agents[1..], "agent:one"), "a\nB\nC\nd\ne\nf\ng\nh\n");
    }

    #[test]
    fn reverting_a_hunk_keeps_other_authors_lines() {
        let mut blame = Blame::new("a\nz\n");
        blame.apply_change("a\none\ntwo\nz\n", "agent:one");
        blame.apply_change("a\none\nmine\ntwo\nz\n", "user:ann");
        let found = diff_hunks("a\nz\n", &blame);
        let all: Vec<&ReviewHunk> = found.iter().collect();
        assert_eq!(revert_hunks("a\nz\n", &blame, &all, "agent:one"), "a\nmine\nz\n");
    }

    #[test]
    fn identical_hunks_get_distinct_names() {
        let mut blame = Blame::new("a\nb\nc\nd\n");
        blame.apply_change("a\nx\nb\nc\nx\nd\n", "agent:one");
        let found = diff_hunks("a\nb\nc\nd\n", &blame);
        assert_eq!(found.len(), 2);
        assert_ne!(found[0].name, found[1].name);
    }
}
