//! Computes the author of each line of a text from successive versions of the text. The type [`AuthoredTextWithReviewBaseline`]
//! computes line authors for a text outside the workspace, such as an editor buffer.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
};

use serde::Serialize;
use stead_text::{diff::hunks, lines};

use crate::version::Version;

pub(super) struct ReviewLineAuthorTracker {
    text: String,
    /// The author of each line of the text; `None` for lines of the original text.
    authors: Vec<Option<String>>,
    /// Maps the text of each removed line to the author who last removed a line with this text.
    removed_by_line: HashMap<String, String>,
}

impl ReviewLineAuthorTracker {
    pub(super) fn new(text: &str) -> Self {
        let authors = vec![None; lines::count_lines(text.as_bytes())];
        Self { text: text.to_owned(), authors, removed_by_line: HashMap::new() }
    }

    pub(super) fn apply_change(&mut self, text: &str, author: &str) {
        let before: Vec<&str> = lines::iter(&self.text).collect();
        let (mut authors, mut at) = (Vec::with_capacity(self.authors.len()), 0);
        for hunk in hunks(&self.text, text) {
            authors.extend_from_slice(&self.authors[at..hunk.old.start]);
            authors.extend(hunk.new.clone().map(|_| Some(author.to_owned())));
            for line in &before[hunk.old.clone()] {
                self.removed_by_line.insert((*line).to_owned(), author.to_owned());
            }
            at = hunk.old.end;
        }
        authors.extend_from_slice(&self.authors[at..]);
        self.authors = authors;
        text.clone_into(&mut self.text);
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The author of a line of the text; line numbers start at 0.
    pub(super) fn author(&self, line: usize) -> Option<&str> {
        self.authors.get(line)?.as_deref()
    }

    pub(super) fn remover(&self, line: &str) -> Option<&str> {
        self.removed_by_line.get(line).map(String::as_str)
    }
}

const HUNK_NAME_DIGITS: usize = 12;
/// The author of changes that the journal does not record.
pub(super) const EXTERNAL_AUTHOR: &str = "outside";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReviewHunk {
    pub(super) name: String,
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
    pub(super) authors: BTreeSet<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ReviewHunkRow {
    pub hunk: String,
    pub before: ReviewHunkLineSpan,
    pub after: ReviewHunkLineSpan,
    pub by: BTreeSet<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ReviewHunkLineSpan {
    /// Lines are counted from 1.
    pub from: usize,
    pub lines: usize,
}

impl From<&ReviewHunk> for ReviewHunkRow {
    fn from(hunk: &ReviewHunk) -> Self {
        let span = |lines: &Range<usize>| ReviewHunkLineSpan { from: lines.start + 1, lines: lines.len() };
        Self { hunk: hunk.name.clone(), before: span(&hunk.old), after: span(&hunk.new), by: hunk.authors.clone() }
    }
}

pub(super) fn diff_hunks(before: &str, blame: &ReviewLineAuthorTracker) -> Vec<ReviewHunk> {
    let (old, new): (Vec<&str>, Vec<&str>) = (lines::iter(before).collect(), lines::iter(blame.text()).collect());
    let mut found: Vec<ReviewHunk> = Vec::new();
    for hunk in hunks(before, blame.text()) {
        for (old_lines, new_lines) in split_by_author(hunk.old, hunk.new, blame) {
            let mut authors: BTreeSet<String> =
                new_lines.clone().filter_map(|line| blame.author(line)).map(str::to_owned).collect();
            authors.extend(old[old_lines.clone()].iter().filter_map(|line| blame.remover(line)).map(str::to_owned));
            if authors.is_empty() {
                authors.insert(EXTERNAL_AUTHOR.to_owned());
            }
            let (old_text, new_text) = (old[old_lines.clone()].concat(), new[new_lines.clone()].concat());
            let name = stable_hunk_name(&old_text, &new_text, &found);
            found.push(ReviewHunk { name, old: old_lines, new: new_lines, authors });
        }
    }
    found
}

/// Splits a hunk at each change of author, if the hunk has as many old lines as new lines.
fn split_by_author(
    old: Range<usize>,
    new: Range<usize>,
    blame: &ReviewLineAuthorTracker,
) -> Vec<(Range<usize>, Range<usize>)> {
    if old.len() != new.len() {
        return vec![(old, new)];
    }
    let mut parts: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for (old_line, new_line) in old.zip(new) {
        match parts.last_mut() {
            Some((old_part, new_part)) if blame.author(new_part.start) == blame.author(new_line) => {
                old_part.end = old_line + 1;
                new_part.end = new_line + 1;
            }
            Some(_) | None => parts.push((old_line..old_line + 1, new_line..new_line + 1)),
        }
    }
    parts
}

/// Names a hunk by a hash of its lines; a second hunk with the same lines gets another name.
fn stable_hunk_name(old: &str, new: &str, earlier: &[ReviewHunk]) -> String {
    let name = |repetition: usize| {
        let content = format!("{}\0{old}\0{new}\0{repetition}", old.len());
        Version::hash_bytes(content.as_bytes()).to_string()[..HUNK_NAME_DIGITS].to_owned()
    };
    (0..).map(name).find(|name| earlier.iter().all(|hunk| hunk.name != *name)).unwrap_or_default()
}

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

/// Reverts one author's lines in the chosen hunks and keeps the lines of other authors.
pub(super) fn revert_hunks(
    before: &str,
    blame: &ReviewLineAuthorTracker,
    chosen: &[&ReviewHunk],
    author: &str,
) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (lines::iter(before).collect(), lines::iter(blame.text()).collect());
    let (mut text, mut at) = (String::new(), 0);
    for hunk in chosen {
        text.extend(new[at..hunk.new.start].iter().copied());
        let sole_author = hunk.authors.len() == 1;
        let returns = |line: &&str| sole_author || blame.remover(line) == Some(author);
        text.extend(old[hunk.old.clone()].iter().copied().filter(returns));
        let others = hunk.new.clone().filter(|line| blame.author(*line) != Some(author));
        text.extend(others.map(|line| new[line]));
        at = hunk.new.end;
    }
    text.extend(new[at..].iter().copied());
    text
}

/// A text with an author for each line, and a baseline with which the text is compared.
pub struct AuthoredTextWithReviewBaseline {
    before: String,
    blame: ReviewLineAuthorTracker,
}

impl AuthoredTextWithReviewBaseline {
    /// Creates a text whose lines have no author and whose baseline is the same text.
    pub fn new(before: &str) -> Self {
        Self { before: before.to_owned(), blame: ReviewLineAuthorTracker::new(before) }
    }

    /// Replaces the baseline with which the text is compared, for example after a hunk is accepted.
    #[must_use]
    pub fn with_baseline(mut self, before: &str) -> Self {
        before.clone_into(&mut self.before);
        self
    }

    /// Replaces the text and makes `author` the author of the changed lines.
    pub fn apply_change(&mut self, text: &str, author: &str) {
        self.blame.apply_change(text, author);
    }

    /// Returns the current text, which includes all applied changes.
    pub fn text(&self) -> &str {
        self.blame.text()
    }

    /// Returns the hunks between the baseline and the text, with names, lines and authors.
    pub fn hunk_rows(&self) -> Vec<ReviewHunkRow> {
        self.compute_hunks().iter().map(ReviewHunkRow::from).collect()
    }

    /// Returns the baseline with one hunk applied, or with all hunks applied if `name` is `None`. The function returns
    /// `None` for an unknown hunk name.
    pub fn accept_hunks(&self, name: Option<&str>) -> Option<String> {
        let found = self.compute_hunks();
        let chosen: Vec<&ReviewHunk> = found.iter().filter(|hunk| name.is_none_or(|name| hunk.name == name)).collect();
        (name.is_none() || !chosen.is_empty()).then(|| apply_hunks(&self.before, self.text(), &chosen))
    }

    /// Returns the text without the author's changes in one hunk, or in all hunks if `name` is `None`. Lines of other
    /// authors are kept. The function returns `None` if the author changed none of the chosen hunks.
    pub fn revert_author(&self, name: Option<&str>, author: &str) -> Option<String> {
        let found = self.compute_hunks();
        let is_chosen = |hunk: &&ReviewHunk| hunk.authors.contains(author) && name.is_none_or(|name| hunk.name == name);
        let chosen: Vec<&ReviewHunk> = found.iter().filter(is_chosen).collect();
        (!chosen.is_empty()).then(|| revert_hunks(&self.before, &self.blame, &chosen, author))
    }

    fn compute_hunks(&self) -> Vec<ReviewHunk> {
        diff_hunks(&self.before, &self.blame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blame_tracks_authors_of_added_and_removed_lines() {
        let mut blame = ReviewLineAuthorTracker::new("a\nb\nc\nd\n");
        blame.apply_change("a\nB\nc\nd\ne\n", "agent:one");
        blame.apply_change("a\nB\nC\ne\n", "user:ann");
        let authors: Vec<Option<&str>> = (0..5).map(|line| blame.author(line)).collect();
        assert_eq!(authors, [None, Some("agent:one"), Some("user:ann"), Some("agent:one"), None]);
        assert_eq!(blame.remover("b\n"), Some("agent:one"));
        assert_eq!(blame.remover("d\n"), Some("user:ann"));
        assert_eq!(blame.remover("a\n"), None);
        assert_eq!(blame.text(), "a\nB\nC\ne\n");
    }

    const BEFORE: &str = "a\nb\nc\nd\ne\nf\ng\n";

    fn blame() -> ReviewLineAuthorTracker {
        let mut blame = ReviewLineAuthorTracker::new(BEFORE);
        blame.apply_change("a\nB\nc\nd\ne\nF\nnew\ng\n", "agent:one");
        blame.apply_change("a\nB\nC\nd\ne\nF\nnew\ng\nh\n", "user:ann");
        blame
    }

    #[test]
    fn adjacent_hunks_split_by_author() {
        let blame = blame();
        let found = diff_hunks(BEFORE, &blame);
        let positions: Vec<(usize, usize, Vec<&str>)> = found
            .iter()
            .map(|hunk| (hunk.new.start, hunk.new.len(), hunk.authors.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(
            positions,
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
        let mut blame = ReviewLineAuthorTracker::new("a\nz\n");
        blame.apply_change("a\none\ntwo\nz\n", "agent:one");
        blame.apply_change("a\none\nmine\ntwo\nz\n", "user:ann");
        let found = diff_hunks("a\nz\n", &blame);
        let all: Vec<&ReviewHunk> = found.iter().collect();
        assert_eq!(revert_hunks("a\nz\n", &blame, &all, "agent:one"), "a\nmine\nz\n");
    }

    #[test]
    fn identical_hunks_get_distinct_names() {
        let mut blame = ReviewLineAuthorTracker::new("a\nb\nc\nd\n");
        blame.apply_change("a\nx\nb\nc\nx\nd\n", "agent:one");
        let found = diff_hunks("a\nb\nc\nd\n", &blame);
        assert_eq!(found.len(), 2);
        assert_ne!(found[0].name, found[1].name);
    }

    #[test]
    fn hunks_are_accepted_and_reverted_individually() {
        let mut attributed = AuthoredTextWithReviewBaseline::new("a\nb\nc\nd\ne\n");
        attributed.apply_change("A\nb\nc\nd\nE\n", "agent:one");
        attributed.apply_change("A\nb\nC\nd\nE\n", "user:ann");
        let hunks = attributed.hunk_rows();
        let by: Vec<&String> = hunks.iter().flat_map(|hunk| &hunk.by).collect();
        assert_eq!(by, ["agent:one", "user:ann", "agent:one"]);
        let name = |at: usize| Some(hunks[at].hunk.as_str());
        assert_eq!(attributed.revert_author(name(0), "agent:one").as_deref(), Some("a\nb\nC\nd\nE\n"));
        assert_eq!(attributed.revert_author(None, "agent:one").as_deref(), Some("a\nb\nC\nd\ne\n"));
        assert_eq!(attributed.revert_author(name(1), "agent:one"), None);
        assert_eq!(attributed.accept_hunks(Some("none")), None);
        let kept = attributed.accept_hunks(name(0)).unwrap();
        assert_eq!(kept, "A\nb\nc\nd\ne\n");
        assert_eq!(attributed.with_baseline(&kept).hunk_rows().len(), 2);
    }
}
