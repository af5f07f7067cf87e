//! What `patch` answers: one row for each section, in the order written. Owns the words and fields, for what was done
//! and for what would be.

use std::fmt::Write as _;

use path::RelPath;
use serde_json::{Map, Value, json};
use text::{
    locate::Pass,
    patch::{Applied, FinalNewline, Ground},
};

use crate::{
    engine::{Answer, Held},
    ops::answer::{Facts, iso_utc},
    plan::{Change, Plan},
    version::Version,
    view::View,
    workspace::Committed,
};

/// How a chunk is said to be placed that quotes nothing and has no anchor.
const NO_CONTEXT: &str = "no_context";

/// What a section does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Add,
    Update,
    Delete,
    Move,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Move => "move",
        }
    }

    /// As version control has it.
    fn letter(self) -> char {
        match self {
            Self::Add => 'A',
            Self::Update => 'M',
            Self::Delete => 'D',
            Self::Move => 'R',
        }
    }
}

/// What one section does to one file.
pub(super) struct Row {
    kind: Kind,
    path: RelPath,
    to: Option<RelPath>,
    version: Option<Version>,
    added: usize,
    removed: usize,
    chunks: usize,
    /// Chunks that were found by more than what they say.
    matched: Vec<Value>,
    final_newline: FinalNewline,
    done: Done,
    held: Option<Held>,
}

/// When a section was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    Now,
    Before,
}

impl Row {
    pub(super) fn new(kind: Kind, path: &RelPath) -> Self {
        Self {
            kind,
            path: path.clone(),
            to: None,
            version: None,
            added: 0,
            removed: 0,
            chunks: 0,
            matched: Vec::new(),
            final_newline: FinalNewline::Same,
            done: Done::Now,
            held: None,
        }
    }

    pub(super) fn to(mut self, to: &RelPath) -> Self {
        self.to = Some(to.clone());
        self
    }

    /// The same for a section that was applied before.
    pub(super) fn before(kind: Kind, path: &RelPath) -> Self {
        Self { done: Done::Before, ..Self::new(kind, path) }
    }

    pub(super) fn is_before(&self) -> bool {
        self.done == Done::Before
    }

    pub(super) fn lines(mut self, added: usize, removed: usize) -> Self {
        (self.added, self.removed) = (added, removed);
        self
    }

    pub(super) fn version(mut self, version: Version) -> Self {
        self.version = Some(version);
        self
    }

    /// The bytes that the file then has.
    pub(super) fn left(self, bytes: &[u8]) -> Self {
        self.version(Version::of(bytes))
    }

    /// How its chunks were placed.
    pub(super) fn placed(mut self, applied: &Applied) -> Self {
        let lenient = applied.matched.iter().enumerate().filter(|(_, matched)| {
            let is_alone = matched.ground == Ground::Nothing;
            matched.pass > Pass::Endings || matched.rescue.is_some() || is_alone
        });
        self.matched = lenient
            .map(|(chunk, matched)| {
                let by = if matched.ground == Ground::Nothing { NO_CONTEXT } else { matched.pass.name() };
                let mut object = json!({ "chunk": chunk, "line": matched.line, "by": by });
                if let (Value::Object(fields), Some(rescue)) = (&mut object, matched.rescue) {
                    fields.insert("reading".to_owned(), rescue.name().into());
                }
                object
            })
            .collect();
        self.final_newline = applied.final_newline;
        self.chunks = applied.matched.len();
        self.lines(applied.added, applied.removed)
    }

    pub(super) fn evidence(mut self, view: &View<'_>, before: Option<Vec<u8>>, after: Option<&[u8]>) -> Self {
        let path = self.to.as_ref().unwrap_or(&self.path);
        self.held = view.evidence(path, before.as_deref(), after);
        self
    }

    fn object(&self, rev: Option<&str>, trash: Option<&str>) -> Map<String, Value> {
        let newline = match self.final_newline {
            FinalNewline::Same => None,
            FinalNewline::Added => Some("added"),
            FinalNewline::Dropped => Some("dropped"),
        };
        Facts::new()
            .with("operation", self.kind.name())
            .with("path", self.path.to_string())
            .maybe("to", self.to.as_ref().map(ToString::to_string))
            .maybe("version", self.version.map(|version| version.to_string()))
            .maybe("rev", self.version.and(rev))
            .with("added", self.added)
            .with("removed", self.removed)
            .with("chunks", self.chunks)
            .maybe("matched", (!self.matched.is_empty()).then(|| self.matched.clone()))
            .maybe("final_newline", newline)
            .maybe("already_applied", self.is_before().then_some(true))
            .maybe("trash", trash)
            .object()
    }

    fn text(&self) -> String {
        let mut text = format!("  {} {}", self.kind.letter(), self.path);
        if let Some(to) = &self.to {
            text.push_str(&format!(" -> {to}"));
        }
        if self.is_before() {
            text.push_str("; already applied");
        }
        if self.added + self.removed > 0 {
            text.push_str(&format!(" +{} -{}", self.added, self.removed));
        }
        for matched in &self.matched {
            let by = matched.get("reading").or(matched.get("by")).and_then(Value::as_str).unwrap_or_default();
            let (chunk, line) = (&matched["chunk"], &matched["line"]);
            let how = if by == NO_CONTEXT { "quotes nothing and went in" } else { "matched" };
            let by = if by == NO_CONTEXT { String::new() } else { format!(" by {by}") };
            // Writing to a `String` cannot fail.
            write!(text, "; chunk {chunk} {how} at line {line}{by}").unwrap_or_default();
        }
        match self.final_newline {
            FinalNewline::Same => {}
            FinalNewline::Added => text.push_str("; now ends with a newline"),
            FinalNewline::Dropped => text.push_str("; no longer ends with a newline"),
        }
        text
    }
}

/// Everything a patch does.
pub(super) struct Report {
    rows: Vec<Row>,
    /// The places that go to the trash, in the order of the plan.
    removed: Vec<RelPath>,
    keep_until_ms: Option<i64>,
    /// The short name of each row's version, where nothing changes.
    revs: Vec<Option<String>>,
}

impl Report {
    pub(super) fn new(view: &View<'_>, rows: Vec<Row>, plan: &Plan) -> Self {
        let mut removed = Vec::new();
        let mut keep = None;
        for change in &plan.changes {
            if let Change::Remove { path, keep_until_ms, .. } = change {
                removed.push(path.clone());
                keep = Some(*keep_until_ms);
            }
        }
        let rev =
            |row: &Row| row.version.filter(|_| plan.is_empty()).map(|version| view.rev(&row.path, &version));
        let revs = rows.iter().map(rev).collect();
        Self { rows, removed, keep_until_ms: keep, revs }
    }

    /// The answer after the commit.
    pub(super) fn done(self, committed: &Committed) -> Answer {
        let rev = format!("r{}", committed.number);
        let trash = |row: &Row| {
            let at = self.removed.iter().position(|path| row.kind == Kind::Delete && *path == row.path)?;
            committed.trash.get(at).map(String::as_str)
        };
        let files = self.rows.iter().map(|row| Value::Object(row.object(Some(&rev), trash(row)))).collect();
        let text = self.text(&format!("patched {} ({rev})", counted(self.rows.len())));
        let until = self.keep_until_ms.map(iso_utc);
        let facts = facts(files).with("changed", true).maybe("recoverable_until", until).with("rev", rev);
        facts
            .committed(committed)
            .answer(text)
            .with_evidence(self.rows.into_iter().filter_map(|row| row.held))
    }

    /// The answer when only the plan was wanted.
    pub(super) fn preview(self) -> Answer {
        let files = self.rows.iter().map(|row| Value::Object(row.object(None, None))).collect();
        let text = self.text(&format!("would patch {}; nothing was written", counted(self.rows.len())));
        facts(files)
            .with("dry_run", true)
            .answer(text)
            .with_evidence(self.rows.into_iter().filter_map(|row| row.held))
    }

    /// The answer when everything already is as the patch would have it.
    pub(super) fn unchanged(self) -> Answer {
        let rows = self.rows.iter().zip(&self.revs);
        let files = rows.map(|(row, rev)| Value::Object(row.object(rev.as_deref(), None))).collect();
        let text = self.text("everything already is as the patch would have it; nothing was written");
        facts(files)
            .with("changed", false)
            .answer(text)
            .with_evidence(self.rows.into_iter().filter_map(|row| row.held))
    }

    fn text(&self, first: &str) -> String {
        let mut text = first.to_owned();
        for row in &self.rows {
            text.push('\n');
            text.push_str(&row.text());
        }
        text
    }
}

fn facts(files: Vec<Value>) -> Facts {
    Facts::new().with("files", files)
}

fn counted(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}
