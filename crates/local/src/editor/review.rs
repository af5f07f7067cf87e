//! What an agent's session changed, as an editor shows it: files with hunks, to be kept or rejected.

use engine::Failure;
use serde_json::{Value, json};

use super::{Editor, list, word};

/// The work of one session.
pub struct Reviewing<'e> {
    editor: &'e Editor,
    principal: String,
    session: String,
}

/// A file that the session changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnderReview {
    /// The file.
    pub path: String,
    /// What happened to it: create, modify, remove or move.
    pub change: String,
    /// Everybody who changed it since.
    pub actors: Vec<String>,
    /// Its hunks, in order.
    pub hunks: Vec<HunkUnderReview>,
    /// The difference, as a unified diff.
    pub diff: String,
}

/// Lines that were replaced by lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HunkUnderReview {
    /// Its name, which stays while the hunk does.
    pub name: String,
    /// First line and number of lines before.
    pub before: (u64, u64),
    /// First line and number of lines now.
    pub after: (u64, u64),
    /// Who made it.
    pub by: Vec<String>,
}

impl<'e> Reviewing<'e> {
    pub(super) fn new(editor: &'e Editor, principal: &str, session: &str) -> Self {
        Self { editor, principal: principal.to_owned(), session: session.to_owned() }
    }

    /// What was changed and not kept yet.
    pub fn files(&self) -> Result<Vec<UnderReview>, Failure> {
        let answer = self.editor.call("review", self.arguments(None, None))?;
        Ok(list(&answer, "files").iter().map(file).collect())
    }

    /// A file, or one hunk of it, stands.
    pub fn keep(&self, path: &str, hunk: Option<&str>) -> Result<(), Failure> {
        self.editor.call("keep", self.arguments(Some(path), hunk)).map(|_| ())
    }

    /// A file, or one hunk of it, is taken back.
    pub fn reject(&self, path: &str, hunk: Option<&str>) -> Result<(), Failure> {
        self.editor.call("reject", self.arguments(Some(path), hunk)).map(|_| ())
    }

    /// Everything since the last turn is taken back, all files together.
    pub fn reject_turn(&self) -> Result<(), Failure> {
        let mut arguments = self.arguments(None, None);
        arguments["since"] = "turn".into();
        self.editor.call("reject", arguments).map(|_| ())
    }

    fn arguments(&self, path: Option<&str>, hunk: Option<&str>) -> Value {
        let mut arguments = json!({ "author": self.principal, "session": self.session });
        for (name, value) in [("path", path), ("hunk", hunk)] {
            if let Some(value) = value {
                arguments[name] = value.into();
            }
        }
        arguments
    }
}

fn file(file: &Value) -> UnderReview {
    let hunks = file["hunks"].as_array().map_or(&[][..], Vec::as_slice);
    UnderReview {
        path: word(file, "path"),
        change: word(file, "change"),
        actors: words(&file["actors"]),
        hunks: hunks.iter().map(hunk).collect(),
        diff: word(file, "diff"),
    }
}

fn hunk(hunk: &Value) -> HunkUnderReview {
    let range = |side: &Value| {
        (side["from"].as_u64().unwrap_or_default(), side["lines"].as_u64().unwrap_or_default())
    };
    HunkUnderReview {
        name: word(hunk, "hunk"),
        before: range(&hunk["before"]),
        after: range(&hunk["after"]),
        by: words(&hunk["by"]),
    }
}

fn words(list: &Value) -> Vec<String> {
    let items = list.as_array().map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
