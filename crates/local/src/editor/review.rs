//! Review of the changes of an agent's session: files and hunks, to be accepted or rejected.

use serde_json::{Value, json};
use stead_engine::Error;

use super::{EditorWorkspace, array_field, string_field};

/// The changes of one session.
pub struct EditorReview<'e> {
    editor: &'e EditorWorkspace,
    principal: String,
    session: String,
}

/// A file changed by the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorReviewedFile {
    /// The path of the file.
    pub path: String,
    /// Kind of change: create, modify, remove or move.
    pub change: String,
    /// Principals that changed the file since.
    pub actors: Vec<String>,
    /// The hunks in order.
    pub hunks: Vec<EditorReviewHunk>,
    /// The changes as a unified diff.
    pub diff: String,
}

/// A range of replaced lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditorReviewHunk {
    /// Stable name of the hunk.
    pub name: String,
    /// First line and number of lines before.
    pub before: (u64, u64),
    /// First line and number of lines now.
    pub after: (u64, u64),
    /// Principals that made the hunk.
    pub authors: Vec<String>,
}

impl<'e> EditorReview<'e> {
    pub(super) fn new(editor: &'e EditorWorkspace, principal: &str, session: &str) -> Self {
        Self { editor, principal: principal.to_owned(), session: session.to_owned() }
    }

    /// The changed files that are not accepted yet.
    pub fn files(&self) -> Result<Vec<EditorReviewedFile>, Error> {
        let outcome = self.editor.call("review", self.arguments(None, None))?;
        Ok(array_field(&outcome, "files").iter().map(reviewed_file_from_json).collect())
    }

    /// Accepts a file or one of its hunks.
    pub fn accept(&self, path: &str, hunk: Option<&str>) -> Result<(), Error> {
        self.editor.call("keep", self.arguments(Some(path), hunk)).map(|_| ())
    }

    /// Reverts a file or one of its hunks.
    pub fn reject(&self, path: &str, hunk: Option<&str>) -> Result<(), Error> {
        self.editor.call("reject", self.arguments(Some(path), hunk)).map(|_| ())
    }

    /// Reverts all changes since the last turn began.
    pub fn reject_turn(&self) -> Result<(), Error> {
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

fn reviewed_file_from_json(file: &Value) -> EditorReviewedFile {
    let hunks = file["hunks"].as_array().map_or(&[][..], Vec::as_slice);
    EditorReviewedFile {
        path: string_field(file, "path"),
        change: string_field(file, "change"),
        actors: string_list(&file["actors"]),
        hunks: hunks.iter().map(hunk_from_json).collect(),
        diff: string_field(file, "diff"),
    }
}

fn hunk_from_json(hunk: &Value) -> EditorReviewHunk {
    let range = |side: &Value| (side["from"].as_u64().unwrap_or_default(), side["lines"].as_u64().unwrap_or_default());
    EditorReviewHunk {
        name: string_field(hunk, "hunk"),
        before: range(&hunk["before"]),
        after: range(&hunk["after"]),
        authors: string_list(&hunk["by"]),
    }
}

fn string_list(list: &Value) -> Vec<String> {
    let items = list.as_array().map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
