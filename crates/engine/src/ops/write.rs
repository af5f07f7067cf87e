//! `write` replaces the whole content of a file, or creates the file. By default, `write` replaces an existing file
//! only if the caller gives the version that it read. A written file keeps its encoding unless the call names another
//! encoding.

mod merge;

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};
use stead_path::RelPath;
use stead_text::diff;

use super::{
    decode_diff_text,
    encode_content::{self, EncodedBytesToWrite},
    planning,
};
use crate::{
    call_context::CallContext,
    call_options::{ChangeApplierChoice, LineEndingAndBomPolicy},
    engine::BeforeAfterBytes,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{
        CallDurationFactor, Operation, OperationPlanningResult, PathAccessRequest, PlanResult, ResolvedTarget,
    },
    ops::ReadArgs,
    outcome::{FileShownInOutcome, FileVersionFields, OperationOutcome, RecordedEntryFields, is_default},
    plan::{CommitExpectation, FileKind, PlanTimeFileVersion},
    resolve,
    tree::{BytesToRead, FileStat},
    version::{BaseVersion, Version},
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteArgs {
    pub path: String,
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub mode: StaleWriteHandling,
    #[serde(skip)]
    pub replace_without_base: bool,
    #[serde(skip)]
    pub replacement_format: LineEndingAndBomPolicy,
    /// The text of the file that the caller last saw, as the base for merging. Without a known text, the base is in the
    /// engine's cache of seen files.
    #[serde(skip)]
    pub known_text: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StaleWriteHandling {
    #[default]
    Exact,
    /// The mode `merge` merges the caller's changes with the changes of others since the base. Without a base, the mode
    /// `merge` uses the text that the session last saw.
    Merge,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct WriteOutcome {
    pub path: RelPath,
    #[serde(flatten)]
    pub version: FileVersionFields,
    pub size: u64,
    pub created: bool,
    pub changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<ChangedLineCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_endings: Option<&'static str>,
    #[serde(flatten)]
    pub recorded: Option<RecordedEntryFields>,
    #[serde(skip)]
    pub before_after: Option<BeforeAfterBytes>,
}

impl OperationOutcome for WriteOutcome {
    fn take_before_after(&mut self) -> Vec<BeforeAfterBytes> {
        self.before_after.take().into_iter().collect()
    }

    fn main_file(&mut self) -> Option<FileShownInOutcome<'_>> {
        Some(FileShownInOutcome::new(&self.path, &mut self.version))
    }
}

/// The number of lines that a change adds and removes.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct ChangedLineCounts {
    pub added: usize,
    pub removed: usize,
}

impl From<diff::DiffStat> for ChangedLineCounts {
    fn from(lines: diff::DiffStat) -> Self {
        Self { added: lines.added, removed: lines.removed }
    }
}

struct FileBeforeWrite {
    observed: PlanTimeFileVersion,
    /// The file's content before the write; `None` if the caller may not read it or if it exceeds the limit.
    bytes: Option<Vec<u8>>,
}

impl Operation for WriteArgs {
    type Paths = PathAccessRequest;
    type Outcome = WriteOutcome;

    fn duration_factor(&self) -> CallDurationFactor<'_> {
        CallDurationFactor::ContentBytes(self.content.len())
    }

    fn resolve(&self, _context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        let request = PathAccessRequest::write(&self.path);
        let base = self.base.as_deref().filter(|base| self.mode == StaleWriteHandling::Exact || base.is_empty());
        self.base.as_deref().map(BaseVersion::parse).transpose()?;
        request.with_base(base)
    }

    fn plan(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        let current = match target.stat {
            Some(stat) => Some(self.read_write_target(context, target, stat)?),
            None => None,
        };
        let now = WriteTargetCurrentContent::effective(context, current.as_ref());
        let before = now.as_ref().and_then(|now| now.bytes);
        let content = match_format(self.replacement_format, &self.content, before);
        let line_endings = adopted_line_endings(&self.content, &content);
        let (content, merged_from) = match (self.mode, &now) {
            (StaleWriteHandling::Merge, Some(now)) => self.merge_with_current(context, target, now, content)?,
            (StaleWriteHandling::Merge, None) | (StaleWriteHandling::Exact, _) => (content, None),
        };
        let encoded = encode_content::encode_file(&content, self.encoding.as_deref(), before)?;
        let version = Version::hash_bytes(&encoded.bytes);
        let size = encoded.bytes.len() as u64;
        if let Some(current) = &current
            && current.observed.version == version
            && context.options.applied_by == ChangeApplierChoice::Workspace
        {
            let outcome = WriteOutcome {
                path: target.path.clone(),
                version: FileVersionFields::new(version, context.revision_name(&target.path, &version)),
                size,
                created: false,
                changed: false,
                diff: None,
                merged: self.merged(None),
                merged_from: None,
                encoding: None,
                line_endings: None,
                recorded: None,
                before_after: context.before_after(&target.path, before, before),
            };
            return Ok(OperationPlanningResult::Read { outcome, bytes: 0 });
        }
        let created = current.is_none();
        let diff = count_changed_lines(if created { Some(b"") } else { before }, &encoded.bytes);
        let before_after = context.before_after(&target.path, before, Some(&encoded.bytes));
        let EncodedBytesToWrite { bytes, non_utf8_encoding } = encoded;
        let expectation =
            current.as_ref().map_or(CommitExpectation::Absent, |file| CommitExpectation::File(file.observed));
        let plan = planning::plan_file_write(context, &target.path, expectation, (version, bytes))?;
        let (path, merged) = (target.path.clone(), self.merged(merged_from.as_deref()));
        Ok(OperationPlanningResult::Files {
            plan,
            build_outcome: Box::new(move |receipt| WriteOutcome {
                path,
                version: FileVersionFields::written(version, receipt),
                size,
                created,
                changed: true,
                diff,
                merged,
                merged_from,
                encoding: non_utf8_encoding,
                line_endings,
                recorded: Some(receipt.into()),
                before_after,
            }),
        })
    }
}

impl WriteArgs {
    fn merged(&self, merged_from: Option<&str>) -> Option<bool> {
        (self.mode == StaleWriteHandling::Merge).then_some(merged_from.is_some())
    }

    fn read_write_target(
        &self,
        context: &CallContext<'_>,
        target: &ResolvedTarget,
        stat: FileStat,
    ) -> Result<FileBeforeWrite, Error> {
        require_regular_file(target, stat)?;
        let readable = context.may_read(&target.path) && stat.size <= limits::WRITE_BYTES_MAX;
        let whole = BytesToRead::Whole { limit_bytes: limits::WRITE_BYTES_MAX };
        let file = context.read_for_change(&target.path, if readable { whole } else { BytesToRead::VersionOnly })?;
        // A merge needs no base, because the text that the session last saw can be the common ancestor.
        if self.mode == StaleWriteHandling::Exact && target.base.is_none() && !self.replace_without_base {
            return Err(base_required_error(context, target, &file.version));
        }
        // The commit fails unless the file still has the version that was compared with the base.
        let observed = target.observed.unwrap_or(file.observed());
        Ok(FileBeforeWrite { observed, bytes: readable.then_some(file.bytes) })
    }
}

/// The content that `write` replaces: the file, or the text in the editor that applies the change.
struct WriteTargetCurrentContent<'n> {
    version: Version,
    bytes: Option<&'n [u8]>,
}

impl<'n> WriteTargetCurrentContent<'n> {
    fn effective(context: &'n CallContext<'_>, current: Option<&'n FileBeforeWrite>) -> Option<Self> {
        match &context.options.applied_by {
            ChangeApplierChoice::Workspace => {
                current.map(|current| Self { version: current.observed.version, bytes: current.bytes.as_deref() })
            }
            ChangeApplierChoice::Editor(known) => known.as_ref().map(|text| {
                let bytes = text.as_bytes();
                Self { version: Version::hash_bytes(bytes), bytes: Some(bytes) }
            }),
        }
    }
}

fn match_format<'c>(format: LineEndingAndBomPolicy, content: &'c str, before: Option<&[u8]>) -> Cow<'c, str> {
    let Some(before) = before else { return Cow::Borrowed(content) };
    match format {
        LineEndingAndBomPolicy::AsGiven => Cow::Borrowed(content),
        LineEndingAndBomPolicy::MatchLineEndings => encode_content::match_line_endings(content, before),
        LineEndingAndBomPolicy::MatchReplaced => Cow::Owned(encode_content::match_format(content, before)),
    }
}

fn adopted_line_endings(given: &str, formatted: &str) -> Option<&'static str> {
    let has_crlf = |text: &str| text.contains("\r\n");
    match (has_crlf(given), has_crlf(formatted)) {
        (false, true) => Some("crlf"),
        (true, false) => Some("lf"),
        (true, true) | (false, false) => None,
    }
}

pub(crate) fn require_regular_file(target: &ResolvedTarget, stat: FileStat) -> Result<(), Error> {
    let path = &target.path;
    match stat.kind {
        FileKind::File => Ok(()),
        FileKind::Directory => Err(Error::new(ErrorKind::IsDirectory, format!("{path} is a directory"))
            .with_next_step(format!("pass the path of a file, for example {path}/notes.txt"))),
        FileKind::Link | FileKind::Special => {
            Err(Error::new(ErrorKind::NotRegular, format!("{path} is not a regular file"))
                .with_next_step("choose another path"))
        }
    }
}

fn base_required_error(context: &CallContext<'_>, target: &ResolvedTarget, version: &Version) -> Error {
    let path = &target.path;
    let error = Error::new(ErrorKind::BaseRequired, format!("{path} already exists, and the call has no base"))
        .with_next_step(
            NextStep::call(ReadArgs::new(path), "see the file")
                .then(resolve::repeat_with_base(context, path, *version)),
        );
    // A hash lets a caller confirm guessed content, so only callers who may read the file get the hash.
    if context.may_read(path) { resolve::with_current_version(context, error, path, *version) } else { error }
}

fn count_changed_lines(before: Option<&[u8]>, after: &[u8]) -> Option<ChangedLineCounts> {
    let before = before?;
    if before.len().max(after.len()) as u64 > limits::DIFF_BYTES_MAX {
        return None;
    }
    Some(diff::diff_stat(&decode_diff_text(before)?, &decode_diff_text(after)?).into())
}
