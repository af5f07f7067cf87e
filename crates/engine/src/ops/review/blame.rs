//! Computes the author of each line, and of removed lines, from the successive texts. Pure.

use std::collections::HashMap;

use stead_text::{diff::hunks, lines};

/// The lines of a text with their authors.
pub(super) struct Blame {
    text: String,
    /// The author of each line; `None` for original lines.
    authors: Vec<Option<String>>,
    /// The author who last removed a line with this text.
    removed_by_line: HashMap<String, String>,
}

impl Blame {
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

    /// The author of a line, from 0.
    pub(super) fn author(&self, line: usize) -> Option<&str> {
        self.authors.get(line)?.as_deref()
    }

    pub(super) fn remover(&self, line: &str) -> Option<&str> {
        self.removed_by_line.get(line).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blame_tracks_authors_of_added_and_removed_lines() {
        let mut blame = Blame::new("a\nb\nc\nd\n");
        blame.apply_change("a\nB\nc\nd\ne\n", "agent:one");
        blame.apply_change("a\nB\nC\ne\n", "user:ann");
        let authors: Vec<Option<&str>> = (0..5).map(|line| blame.author(line)).collect();
        assert_eq!(authors, [None, Some("agent:one"), Some("user:ann"), Some("agent:one"), None]);
        assert_eq!(blame.remover("b\n"), Some("agent:one"));
        assert_eq!(blame.remover("d\n"), Some("user:ann"));
        assert_eq!(blame.remover("a\n"), None);
        assert_eq!(blame.text(), "a\nB\nC\ne\n");
    }
}
