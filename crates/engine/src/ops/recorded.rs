//! How a recorded change is shown to a caller. Owns the words for kinds of change, and what of a change somebody may
//! see who may not read every place it touched.

use journal::{Change, ChangeKind, State};
use path::RelPath;
use serde::Deserialize;
use serde_json::{Map, Value};
use text::visible::visible_line;

use super::answer::{Facts, excerpt};
use crate::{
    failure::{Failure, Kind},
    version::Version,
    view::View,
};

/// An entry as callers write it: `12` or `"r12"`.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum EntryName {
    /// The bare number.
    Number(u64),
    /// The number with or without its `r`.
    Text(String),
}

impl EntryName {
    /// The number meant.
    pub(crate) fn number(&self) -> Result<u64, Failure> {
        match self {
            EntryName::Number(number) => Ok(*number),
            EntryName::Text(text) => entry_number(text).ok_or_else(|| {
                Failure::new(Kind::BadRequest, format!("'{}' is not an entry", excerpt(text)))
                    .hint("an entry is written \"r12\" or 12; history and changes name them")
            }),
        }
    }
}

/// Reads `r12` or `12`: digits and nothing else, so that one entry has one meaning.
pub(crate) fn entry_number(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('r').unwrap_or(text);
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

/// The failure of a caller that knows more of the journal than there is.
pub(crate) fn history_lost(number: u64, head: u64) -> Failure {
    Failure::new(Kind::HistoryLost, format!("you know entry r{number}, which is not in this journal; it ends at r{head}"))
        .hint("what you know of this workspace may be gone: list and read again, then call changes with since \"now\"")
        .fact("head", head)
}

/// One change as a caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The place it is about.
    pub(crate) path: String,
    /// What happened there.
    pub(crate) kind: &'static str,
    /// Where it went.
    pub(crate) to: Option<String>,
    /// The file it left.
    pub(crate) left: Option<Left>,
}

/// A file that a change left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) version: Version,
    pub(crate) size: u64,
}

impl Shown {
    /// The whole change, for whoever made it.
    pub(crate) fn whole(change: &Change) -> Self {
        Self {
            path: change.path.clone(),
            kind: kind(change.kind),
            to: change.to.clone(),
            left: left(&change.after),
        }
    }

    /// The change as far as this caller may see it: to somebody who sees one end of a move, it is a removal or a
    /// creation.
    pub(crate) fn seen_by(view: &View<'_>, change: &Change) -> Option<Self> {
        let sees = |wire: &str| RelPath::from_wire(wire).is_ok_and(|path| view.may_read(&path));
        match (sees(&change.path), change.to.as_deref()) {
            (true, None) => Some(Self::whole(change)),
            (false, None) => None,
            (true, Some(to)) if sees(to) => Some(Self::whole(change)),
            (false, Some(to)) if sees(to) => Some(Self {
                path: to.to_owned(),
                kind: kind(ChangeKind::Create),
                to: None,
                left: left(&change.after),
            }),
            (true, Some(_)) if change.kind == ChangeKind::Rename => {
                Some(Self { path: change.path.clone(), kind: kind(ChangeKind::Remove), to: None, left: None })
            }
            // A copy into a place that is out of sight leaves the source as it was.
            (true | false, Some(_)) => None,
        }
    }

    /// Whether it is about a place or something below it.
    pub(crate) fn is_within(&self, place: &RelPath) -> bool {
        let within = |wire: &str| RelPath::from_wire(wire).is_ok_and(|path| path.is_within(place));
        within(&self.path) || self.to.as_deref().is_some_and(within)
    }

    /// The object for machines.
    pub(crate) fn object(self) -> Map<String, Value> {
        Facts::new()
            .with("path", self.path)
            .with("kind", self.kind)
            .maybe("to", self.to)
            .maybe("size", self.left.map(|left| left.size))
            .maybe("version", self.left.map(|left| left.version.short()))
            .object()
    }

    /// One line for models.
    pub(crate) fn line(&self) -> String {
        let mut line = format!("{} {}", self.kind, visible_line(&self.path));
        if let Some(to) = &self.to {
            line.push_str(&format!(" -> {}", visible_line(to)));
        }
        if let Some(left) = self.left {
            line.push_str(&format!(" ({} bytes)", left.size));
        }
        line
    }
}

fn kind(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Create => "create",
        ChangeKind::Modify => "modify",
        ChangeKind::Remove => "remove",
        ChangeKind::Rename => "rename",
        ChangeKind::Copy => "copy",
        ChangeKind::MakeDir => "make_dir",
        ChangeKind::MakeLink => "make_link",
        ChangeKind::SetMode => "set_mode",
        ChangeKind::Rescan => "rescan",
    }
}

fn left(state: &State) -> Option<Left> {
    match state {
        State::File { version, size, .. } => Some(Left { version: Version(*version), size: *size }),
        State::Absent
        | State::Directory { .. }
        | State::Link { .. }
        | State::Tree { .. }
        | State::Unknown { .. } => None,
    }
}
