//! Line authorship of a text outside the workspace, such as an editor buffer that an agent writes to: it has hunks
//! with authors, which can be accepted and reverted like those of a file. Pure.

use serde_json::Value;

use super::{
    blame::Blame,
    hunks::{self, ReviewHunk},
};

/// A text with an author for each line.
pub struct AttributedText {
    before: String,
    blame: Blame,
}

impl AttributedText {
    /// Starts with the original text.
    pub fn new(before: &str) -> Self {
        Self { before: before.to_owned(), blame: Blame::new(before) }
    }

    /// Compares with another baseline: accepted hunks are no longer changes.
    #[must_use]
    pub fn with_baseline(mut self, before: &str) -> Self {
        before.clone_into(&mut self.before);
        self
    }

    /// Records a new text and its author.
    pub fn apply_change(&mut self, text: &str, author: &str) {
        self.blame.apply_change(text, author);
    }

    /// The current text.
    pub fn text(&self) -> &str {
        self.blame.text()
    }

    /// The hunks since the baseline, each with its name, its lines before and after, and its authors.
    pub fn hunks_json(&self) -> Vec<Value> {
        self.compute_hunks().iter().map(ReviewHunk::to_json).collect()
    }

    /// The baseline with one hunk or all hunks applied; `None` if there is no such hunk.
    pub fn accept_hunks(&self, name: Option<&str>) -> Option<String> {
        let found = self.compute_hunks();
        let chosen: Vec<&ReviewHunk> = found.iter().filter(|hunk| name.is_none_or(|name| hunk.name == name)).collect();
        (name.is_none() || !chosen.is_empty()).then(|| hunks::apply_hunks(&self.before, self.text(), &chosen))
    }

    /// The text without an author's changes in one hunk or in all; lines of others stay. `None` if there are no such
    /// changes.
    pub fn revert_author(&self, name: Option<&str>, who: &str) -> Option<String> {
        let found = self.compute_hunks();
        let theirs = |hunk: &&ReviewHunk| hunk.authors.contains(who) && name.is_none_or(|name| hunk.name == name);
        let chosen: Vec<&ReviewHunk> = found.iter().filter(theirs).collect();
        (!chosen.is_empty()).then(|| hunks::revert_hunks(&self.before, &self.blame, &chosen, who))
    }

    fn compute_hunks(&self) -> Vec<ReviewHunk> {
        hunks::diff_hunks(&self.before, &self.blame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_are_accepted_and_reverted_individually() {
        let mut traced = AttributedText::new("a\nb\nc\nd\ne\n");
        traced.apply_change("A\nb\nc\nd\nE\n", "agent:one");
        traced.apply_change("A\nb\nC\nd\nE\n", "user:ann");
        let hunks = traced.hunks_json();
        let by: Vec<&Value> = hunks.iter().map(|hunk| &hunk["by"][0]).collect();
        assert_eq!(by, ["agent:one", "user:ann", "agent:one"]);
        let name = |at: usize| hunks[at]["hunk"].as_str();
        assert_eq!(traced.revert_author(name(0), "agent:one").as_deref(), Some("a\nb\nC\nd\nE\n"));
        assert_eq!(traced.revert_author(None, "agent:one").as_deref(), Some("a\nb\nC\nd\ne\n"));
        assert_eq!(traced.revert_author(name(1), "agent:one"), None);
        assert_eq!(traced.accept_hunks(Some("none")), None);
        let kept = traced.accept_hunks(name(0)).unwrap();
        assert_eq!(kept, "A\nb\nc\nd\ne\n");
        assert_eq!(traced.with_baseline(&kept).hunks_json().len(), 2);
    }
}
