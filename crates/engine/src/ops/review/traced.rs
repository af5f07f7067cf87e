//! A text on its way through several hands, for whoever holds it outside the workspace: an editor's buffer that an agent
//! writes to has hunks with authors like a file, kept and taken back alike. Pure.

use serde_json::Value;

use super::{
    blame::Blame,
    hunk::{self, Hunk},
};

/// A text with who wrote what of it.
pub struct Traced {
    before: String,
    blame: Blame,
}

impl Traced {
    /// What it was at first.
    pub fn new(before: &str) -> Self {
        Self { before: before.to_owned(), blame: Blame::new(before) }
    }

    /// The same, looked at from another text on: what was kept of it is no change any more.
    #[must_use]
    pub fn since(mut self, before: &str) -> Self {
        before.clone_into(&mut self.before);
        self
    }

    /// Somebody made this of it.
    pub fn becomes(&mut self, text: &str, author: &str) {
        self.blame.becomes(text, author);
    }

    /// What it is.
    pub fn text(&self) -> &str {
        self.blame.text()
    }

    /// What changed since the start, each with its name, its lines before and after, and who made it.
    pub fn hunks(&self) -> Vec<Value> {
        self.found().iter().map(Hunk::object).collect()
    }

    /// The start with one hunk, or all of them: what the next look begins with. Nothing when there is no such hunk.
    pub fn kept(&self, name: Option<&str>) -> Option<String> {
        let found = self.found();
        let chosen: Vec<&Hunk> =
            found.iter().filter(|hunk| name.is_none_or(|name| hunk.name == name)).collect();
        (name.is_none() || !chosen.is_empty()).then(|| hunk::applied(&self.before, self.text(), &chosen))
    }

    /// The text without what somebody did in one hunk, or in all of them; lines of others stay. Nothing when there is
    /// nothing of theirs.
    pub fn without(&self, name: Option<&str>, who: &str) -> Option<String> {
        let found = self.found();
        let theirs = |hunk: &&Hunk| hunk.by.contains(who) && name.is_none_or(|name| hunk.name == name);
        let chosen: Vec<&Hunk> = found.iter().filter(theirs).collect();
        (!chosen.is_empty()).then(|| hunk::taken_back(&self.before, &self.blame, &chosen, who))
    }

    fn found(&self) -> Vec<Hunk> {
        hunk::between(&self.before, &self.blame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_are_kept_and_taken_back_one_by_one() {
        let mut traced = Traced::new("a\nb\nc\nd\ne\n");
        traced.becomes("A\nb\nc\nd\nE\n", "agent:one");
        traced.becomes("A\nb\nC\nd\nE\n", "user:ann");
        let hunks = traced.hunks();
        let by: Vec<&Value> = hunks.iter().map(|hunk| &hunk["by"][0]).collect();
        assert_eq!(by, ["agent:one", "user:ann", "agent:one"]);
        let name = |at: usize| hunks[at]["hunk"].as_str();
        assert_eq!(traced.without(name(0), "agent:one").as_deref(), Some("a\nb\nC\nd\nE\n"));
        assert_eq!(traced.without(None, "agent:one").as_deref(), Some("a\nb\nC\nd\ne\n"));
        assert_eq!(traced.without(name(1), "agent:one"), None);
        assert_eq!(traced.kept(Some("none")), None);
        let kept = traced.kept(name(0)).unwrap();
        assert_eq!(kept, "A\nb\nc\nd\ne\n");
        assert_eq!(traced.since(&kept).hunks().len(), 2);
    }
}
