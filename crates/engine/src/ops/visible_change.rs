//! The part of a recorded change that a caller may see, if the caller may not read all paths of the change.

use serde::Deserialize;
use serde_json::{Map, Value};
use stead_journal::{ChangeKind, PathState, RecordedChange};
use stead_path::RelPath;
use stead_text::visible::escape_deceptive_line;

use super::outcome_builder::{OutcomeBuilder, shorten_for_error};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    version::Version,
};

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum JournalEntryArgument {
    Number(u64),
    Text(String),
}

impl JournalEntryArgument {
    pub(crate) fn entry_number(&self) -> Result<u64, Error> {
        match self {
            JournalEntryArgument::Number(number) => Ok(*number),
            JournalEntryArgument::Text(text) => parse_entry_number(text).ok_or_else(|| {
                Error::new(ErrorKind::BadRequest, format!("'{}' is not an entry", shorten_for_error(text)))
                    .with_next_step("write an entry as \"r12\" or 12; call history to find one")
            }),
        }
    }
}

pub(crate) fn parse_entry_number(text: &str) -> Option<u64> {
    let digits = text.strip_prefix('r').unwrap_or(text);
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}

pub(crate) fn history_lost_error(number: u64, head: u64) -> Error {
    Error::new(ErrorKind::HistoryLost, format!("entry r{number} is not in this journal (last entry: r{head})"))
        .with_next_step("files may have changed unnoticed: list and read again, then call changes with since \"now\"")
        .with_detail("head", head)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VisibleChange {
    pub(crate) path: String,
    pub(crate) kind: &'static str,
    pub(crate) to: Option<String>,
    pub(crate) result: Option<RecordedFileVersion>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordedFileVersion {
    pub(crate) version: Version,
    pub(crate) size: u64,
}

impl VisibleChange {
    /// Returns the whole recorded change, for the caller that made the change.
    pub(crate) fn unfiltered(change: &RecordedChange) -> Self {
        Self {
            path: change.path.clone(),
            kind: change_kind_name(change.kind),
            to: change.to.clone(),
            result: recorded_file(&change.after),
        }
    }

    /// A caller who may read only one path of a move sees a removal or a creation.
    pub(crate) fn visible_to(context: &CallContext<'_>, change: &RecordedChange) -> Option<Self> {
        let may_read = |wire: &str| RelPath::from_wire(wire).is_ok_and(|path| context.may_read(&path));
        match (may_read(&change.path), change.to.as_deref()) {
            (true, None) => Some(Self::unfiltered(change)),
            (false, None) => None,
            (true, Some(to)) if may_read(to) => Some(Self::unfiltered(change)),
            (false, Some(to)) if may_read(to) => {
                let (path, kind) = (to.to_owned(), change_kind_name(ChangeKind::Create));
                Some(Self { path, kind, to: None, result: recorded_file(&change.after) })
            }
            (true, Some(_)) if change.kind == ChangeKind::Rename => {
                let (path, kind) = (change.path.clone(), change_kind_name(ChangeKind::Remove));
                Some(Self { path, kind, to: None, result: None })
            }
            // A copy to a hidden path does not change its source.
            (true | false, Some(_)) => None,
        }
    }

    pub(crate) fn is_within(&self, directory: &RelPath) -> bool {
        let within = |wire: &str| RelPath::from_wire(wire).is_ok_and(|path| path.is_within(directory));
        within(&self.path) || self.to.as_deref().is_some_and(within)
    }

    pub(crate) fn into_json(self) -> Map<String, Value> {
        OutcomeBuilder::new()
            .with_field("path", self.path)
            .with_field("kind", self.kind)
            .with_some("to", self.to)
            .with_some("size", self.result.map(|file| file.size))
            .with_some("version", self.result.map(|file| file.version.short_form()))
            .into_json()
    }

    pub(crate) fn render_line(&self) -> String {
        let mut line = format!("{} {}", self.kind, escape_deceptive_line(&self.path));
        if let Some(to) = &self.to {
            line.push_str(&format!(" -> {}", escape_deceptive_line(to)));
        }
        if let Some(file) = self.result {
            line.push_str(&format!(" ({} bytes)", file.size));
        }
        line
    }
}

fn change_kind_name(kind: ChangeKind) -> &'static str {
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

pub(super) fn recorded_file(state: &PathState) -> Option<RecordedFileVersion> {
    match state {
        PathState::File { version, size, .. } => Some(RecordedFileVersion { version: Version(*version), size: *size }),
        PathState::Absent
        | PathState::Directory { .. }
        | PathState::Link { .. }
        | PathState::Tree { .. }
        | PathState::Unknown { .. } => None,
    }
}
