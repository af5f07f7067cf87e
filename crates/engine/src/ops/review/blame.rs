//! Who wrote each line of a text, and who took lines away, from the texts it was before. Pure.

use std::collections::HashMap;

use text::{diff::hunks, lines};

/// The lines of a text with who wrote them, as it grows.
pub(super) struct Blame {
    text: String,
    /// For each line who wrote it; nothing for what was there from the start.
    authors: Vec<Option<String>>,
    /// Who last took a line of this text away.
    removed: HashMap<String, String>,
}

impl Blame {
    pub(super) fn new(text: &str) -> Self {
        let authors = vec![None; lines::count(text.as_bytes())];
        Self { text: text.to_owned(), authors, removed: HashMap::new() }
    }

    /// Somebody made this of it.
    pub(super) fn becomes(&mut self, text: &str, author: &str) {
        let before: Vec<&str> = lines::iter(&self.text).collect();
        let (mut authors, mut at) = (Vec::with_capacity(self.authors.len()), 0);
        for hunk in hunks(&self.text, text) {
            authors.extend_from_slice(&self.authors[at..hunk.old.start]);
            authors.extend(hunk.new.clone().map(|_| Some(author.to_owned())));
            for line in &before[hunk.old.clone()] {
                self.removed.insert((*line).to_owned(), author.to_owned());
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

    /// Who wrote a line, from 0.
    pub(super) fn author(&self, line: usize) -> Option<&str> {
        self.authors.get(line)?.as_deref()
    }

    /// Who took a line away.
    pub(super) fn remover(&self, line: &str) -> Option<&str> {
        self.removed.get(line).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_authors_and_lost_ones_too() {
        let mut blame = Blame::new("a\nb\nc\nd\n");
        blame.becomes("a\nB\nc\nd\ne\n", "agent:one");
        blame.becomes("a\nB\nC\ne\n", "user:ann");
        let authors: Vec<Option<&str>> = (0..5).map(|line| blame.author(line)).collect();
        assert_eq!(authors, [None, Some("agent:one"), Some("user:ann"), Some("agent:one"), None]);
        assert_eq!(blame.remover("b\n"), Some("agent:one"));
        assert_eq!(blame.remover("d\n"), Some("user:ann"));
        assert_eq!(blame.remover("a\n"), None);
        assert_eq!(blame.text(), "a\nB\nC\ne\n");
    }
}
