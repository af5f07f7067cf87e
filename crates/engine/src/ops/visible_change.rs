//! The part of a recorded change that a caller sees if some paths of the change are unreadable for the caller.

use serde::{Deserialize, Serialize, Serializer};
use stead_journal::{ChangeKind, PathState, RecordedChange};
use stead_path::RelPath;
use stead_text::visible::escape_deceptive_line;

use super::text_pages::shorten_for_error;
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    next_step::NextStep,
    ops::{ChangesArgs, HistoryArgs, JournalCursorArgument},
    version::Version,
};

/// The number of a journal entry as a caller writes it, such as `12` or `"r12"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(with = "String")]
pub enum JournalEntryArgument {
    Number(u64),
    Text(String),
}

impl JournalEntryArgument {
    pub fn from_number(number: u64) -> Self {
        Self::Text(format!("r{number}"))
    }

    pub(crate) fn entry_number(&self) -> Result<u64, Error> {
        match self {
            JournalEntryArgument::Number(number) => Ok(*number),
            JournalEntryArgument::Text(text) => parse_entry_number(text).ok_or_else(|| {
                Error::new(ErrorKind::BadRequest, format!("'{}' is not an entry", shorten_for_error(text)))
                    .with_next_step(
                        NextStep::from("write an entry as \"r12\" or 12")
                            .or(NextStep::call(HistoryArgs::default(), "find one")),
                    )
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
        .with_next_step(NextStep::from("files may have changed unnoticed: list and read them again").then(
            NextStep::call(
                ChangesArgs { since: JournalCursorArgument::Text("now".to_owned()), wait_ms: None },
                "get later changes",
            ),
        ))
        .with_head(head)
}

/// A recorded change as a caller sees it; a move or copy has two paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VisibleChange {
    pub path: RelPath,
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<RelPath>,
    #[serde(flatten)]
    pub result: Option<RecordedFileVersion>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RecordedFileVersion {
    pub size: u64,
    #[serde(serialize_with = "serialize_short_form")]
    pub version: Version,
}

fn serialize_short_form<S: Serializer>(version: &Version, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&version.short_form())
}

impl VisibleChange {
    /// Returns the whole recorded change for its own author; `None` if a recorded path is invalid.
    pub(crate) fn unfiltered(change: &RecordedChange) -> Option<Self> {
        Some(Self {
            path: RelPath::from_wire(&change.path).ok()?,
            kind: change_kind_name(change.kind),
            to: change.to.as_deref().map(RelPath::from_wire).transpose().ok()?,
            result: recorded_file(&change.after),
        })
    }

    /// Returns the visible part of a recorded change; a move with one visible path becomes a removal or a creation.
    pub(crate) fn visible_to(context: &CallContext<'_>, change: &RecordedChange) -> Option<Self> {
        let Self { path, kind, to, result } = Self::unfiltered(change)?;
        match (context.may_read(&path), to) {
            (true, None) => Some(Self { path, kind, to: None, result }),
            (false, None) => None,
            (may_read, Some(to)) if context.may_read(&to) => Some(if may_read {
                Self { path, kind, to: Some(to), result }
            } else {
                Self { path: to, kind: change_kind_name(ChangeKind::Create), to: None, result }
            }),
            (true, Some(_)) if change.kind == ChangeKind::Rename => {
                Some(Self { path, kind: change_kind_name(ChangeKind::Remove), to: None, result: None })
            }
            // A copy to a hidden path does not change its source.
            (true | false, Some(_)) => None,
        }
    }

    pub(crate) fn is_within(&self, directory: &RelPath) -> bool {
        self.path.is_within(directory) || self.to.as_ref().is_some_and(|to| to.is_within(directory))
    }

    pub fn render_line(&self) -> String {
        let mut line = format!("{} {}", self.kind, escape_deceptive_line(&self.path.to_wire()));
        if let Some(to) = &self.to {
            line.push_str(&format!(" -> {}", escape_deceptive_line(&to.to_wire())));
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
    let PathState::File { version, size, .. } = state else { return None };
    Some(RecordedFileVersion { version: Version(*version), size: *size })
}
