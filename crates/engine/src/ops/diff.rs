//! `diff` returns a unified diff between two versions of one file. `diff` accepts a version only if it belongs to the
//! named file, so that nobody reads the stored content of other files by guessing hashes.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};
use stead_journal::ChangeKind;
use stead_path::RelPath;
use stead_text::{
    diff::{DiffStat, diff_stat},
    encoding::decode_detected,
    unified::{DiffLabels, unified_diff},
};

use super::{
    read,
    text_pages::{TextPageEnd, first_page},
    visible_change::recorded_file,
};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{Operation, OperationPlanningResult, PathAccessRequest, PlanResult, ResolvedTarget},
    ops::{HistoryArgs, ReadArgs},
    outcome::{Completeness, OperationOutcome},
    plan::FileKind,
    resolve,
    tree::{BytesToRead, FileBytesWithVersion},
    version::{BaseVersion, Version},
    workspace::{JournalEntryOrder, JournalEntryQuery},
};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffArgs {
    pub path: String,
    pub from: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct DiffOutcome {
    pub path: RelPath,
    /// The version of the file on the old side of the diff; `None` if the file did not exist.
    #[serde(serialize_with = "serialize_version_or_absent")]
    #[schemars(with = "String")]
    pub from: Option<Version>,
    #[serde(serialize_with = "serialize_version_or_absent")]
    #[schemars(with = "String")]
    pub to: Option<Version>,
    pub diff: String,
    #[serde(flatten)]
    pub lines: DiffLineCountFields,
    #[serde(flatten)]
    pub completeness: Completeness<DiffArgs>,
    #[serde(skip)]
    pub same_bytes: bool,
}

impl OperationOutcome for DiffOutcome {}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct DiffLineCountFields {
    pub added: usize,
    pub removed: usize,
}

impl From<DiffStat> for DiffLineCountFields {
    fn from(stat: DiffStat) -> Self {
        Self { added: stat.added, removed: stat.removed }
    }
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn serialize_version_or_absent<S: Serializer>(version: &Option<Version>, serializer: S) -> Result<S::Ok, S::Error> {
    match version {
        Some(version) => version.serialize(serializer),
        None => serializer.serialize_str("absent"),
    }
}

pub(crate) struct DiffSideContent {
    pub(crate) label: String,
    pub(crate) version: Option<Version>,
    pub(crate) bytes: Vec<u8>,
}

impl Operation for DiffArgs {
    type Paths = PathAccessRequest;
    type Outcome = DiffOutcome;

    fn resolve(&self, _context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        BaseVersion::parse(&self.from)?;
        self.to.as_deref().map(BaseVersion::parse).transpose()?;
        Ok(PathAccessRequest::read(&self.path))
    }

    fn plan(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        let current = current_side(context, target)?;
        let old = side_at_version(context, &target.path, &self.from, &current)?;
        let new = match &self.to {
            Some(to) => side_at_version(context, &target.path, to, &current)?,
            None => current,
        };
        let outcome = diff_sides(&target.path, &old, &new)?;
        Ok(OperationPlanningResult::Read { outcome, bytes: (old.bytes.len() + new.bytes.len()) as u64 })
    }
}

fn current_side(context: &CallContext<'_>, target: &ResolvedTarget) -> Result<DiffSideContent, Error> {
    match target.stat.map(|stat| stat.kind) {
        None => Ok(absent_side("now")),
        Some(FileKind::File) => {
            let extent = BytesToRead::Whole { limit_bytes: limits::DIFF_BYTES_MAX };
            let file = context.read(&target.path, extent).map_err(|error| {
                if error.kind == ErrorKind::TooLarge { file_too_large_error(&target.path) } else { error }
            })?;
            Ok(DiffSideContent { label: "now".to_owned(), version: Some(file.version), bytes: file.bytes })
        }
        Some(FileKind::Directory | FileKind::Link | FileKind::Special) => {
            read::require_file(target).map(|_| absent_side("now"))
        }
    }
}

fn absent_side(label: &str) -> DiffSideContent {
    DiffSideContent { label: label.to_owned(), version: None, bytes: Vec::new() }
}

pub(crate) fn side_at_version(
    context: &CallContext<'_>,
    path: &RelPath,
    written: &str,
    current: &DiffSideContent,
) -> Result<DiffSideContent, Error> {
    let version = match BaseVersion::parse(written)? {
        BaseVersion::Absent => return Ok(absent_side("nothing")),
        BaseVersion::Rev(number) => match resolve::version_at(context, number, path) {
            Ok(version) => version,
            Err(_) if entry_removed_path(context, number, path)? => return Ok(absent_side(written)),
            Err(error) => return Err(error),
        },
        BaseVersion::Version(version) => {
            find_version_in_history(context, path, written, current, &|known| *known == version)?
        }
        BaseVersion::HashPrefix(digits) => {
            find_version_in_history(context, path, written, current, &|known| known.to_string().starts_with(&digits))?
        }
    };
    let label = match BaseVersion::parse(written)? {
        BaseVersion::Rev(_) => written.to_owned(),
        BaseVersion::Absent | BaseVersion::Version(_) | BaseVersion::HashPrefix(_) => version.short_form(),
    };
    if current.version == Some(version) {
        return Ok(DiffSideContent { label, version: Some(version), bytes: current.bytes.clone() });
    }
    let remembered = context.last_seen(path).filter(|seen| seen.unsaved && seen.version == version);
    if let Some(bytes) = remembered.and_then(|seen| seen.bytes) {
        return Ok(DiffSideContent { label, version: Some(version), bytes: bytes.to_vec() });
    }
    if let Some(saved) = read_saved_file(context, path)?.filter(|saved| saved.version == version) {
        return Ok(DiffSideContent { label, version: Some(version), bytes: saved.bytes });
    }
    let bytes =
        context.workspace().retained_bytes(path, &version)?.ok_or_else(|| expired_version_error(path, written))?;
    if bytes.len() as u64 > limits::DIFF_BYTES_MAX {
        return Err(file_too_large_error(path));
    }
    Ok(DiffSideContent { label, version: Some(version), bytes })
}

fn read_saved_file(context: &CallContext<'_>, path: &RelPath) -> Result<Option<FileBytesWithVersion>, Error> {
    if context.readable_unsaved_file(path).is_none() {
        return Ok(None);
    }
    match context.workspace().read(path, BytesToRead::Whole { limit_bytes: limits::DIFF_BYTES_MAX }) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind == ErrorKind::TooLarge => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn diff_since(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    written: &str,
    limit_lines: usize,
) -> Option<String> {
    let new = current_side(context, target).ok()?;
    let old = side_at_version(context, &target.path, written, &new).ok()?;
    let labels = DiffLabels { old: &old.label, new: &new.label };
    let (before, after) = (decode_diff_text(&old.bytes)?, decode_diff_text(&new.bytes)?);
    let diff = unified_diff(&before, &after, labels, limits::DIFF_CONTEXT_LINES, limit_lines);
    let omitted = match diff.omitted_lines {
        0 => String::new(),
        lines => format!("… and {lines} more lines\n"),
    };
    Some(first_page(&diff.text, limits::OUTCOME_PAGE_CHARS).text.to_owned() + &omitted)
}

fn entry_removed_path(context: &CallContext<'_>, number: u64, path: &RelPath) -> Result<bool, Error> {
    let Some(stored) = context.workspace().entry(number)? else { return Ok(false) };
    let removed = stored.entry.changes.iter().any(|change| {
        let above = RelPath::from_wire(&change.path).is_ok_and(|changed| path.is_within(&changed));
        above && matches!(change.kind, ChangeKind::Remove | ChangeKind::Rename)
    });
    Ok(removed)
}

fn find_version_in_history(
    context: &CallContext<'_>,
    path: &RelPath,
    written: &str,
    current: &DiffSideContent,
    matches: &dyn Fn(&Version) -> bool,
) -> Result<Version, Error> {
    if let Some(version) = current.version.filter(|version| matches(version)) {
        return Ok(version);
    }
    if let Some(seen) = context.last_seen(path).filter(|seen| seen.unsaved && matches(&seen.version)) {
        return Ok(seen.version);
    }
    let on_disk = context.readable_unsaved_file(path).map(|unsaved| unsaved.saved_version.version);
    if let Some(version) = on_disk.filter(|version| matches(version)) {
        return Ok(version);
    }
    let newest = JournalEntryQuery::changes(JournalEntryOrder::NewestFirst, limits::ENTRIES_SCANNED_MAX);
    let entries = context.workspace().entries(&JournalEntryQuery { path: Some(path.clone()), ..newest })?;
    let wire = path.to_wire();
    let known = entries.iter().flat_map(|stored| &stored.entry.changes).flat_map(|change| {
        let before = (change.path == wire).then_some(&change.before);
        let after = (change.to.as_deref().unwrap_or(&change.path) == wire).then_some(&change.after);
        [before, after]
    });
    known
        .flatten()
        .filter_map(|state| recorded_file(state).map(|file| file.version))
        .find(|version| matches(version))
        .ok_or_else(|| expired_version_error(path, written))
}

fn expired_version_error(path: &RelPath, written: &str) -> Error {
    Error::new(ErrorKind::Expired, format!("version {written} of {path} is no longer stored")).with_next_step(
        NextStep::call(HistoryArgs::of_path(path), "find stored versions")
            .or(NextStep::call(ReadArgs::new(path), "see the current version")),
    )
}

fn file_too_large_error(path: &RelPath) -> Error {
    let limit = limits::DIFF_BYTES_MAX;
    Error::new(ErrorKind::TooLarge, format!("{path} has more than {limit} bytes, the limit of diff"))
        .with_next_step(NextStep::call(ReadArgs::first_bytes(path), "see a part of the file"))
}

fn diff_sides(path: &RelPath, old: &DiffSideContent, new: &DiffSideContent) -> Result<DiffOutcome, Error> {
    let (Some(before), Some(after)) = (decode_diff_text(&old.bytes), decode_diff_text(&new.bytes)) else {
        let same = if old.bytes == new.bytes { "the same" } else { "different" };
        return Err(Error::new(ErrorKind::NotText, format!("{path} is not text; its bytes are {same}"))
            .with_next_step("compare the sha256 of the versions, or read both as base64")
            .with_from_size(old.bytes.len())
            .with_to_size(new.bytes.len()));
    };
    let labels = DiffLabels { old: &format!("{path} {}", old.label), new: &format!("{path} {}", new.label) };
    let diff = unified_diff(&before, &after, labels, limits::DIFF_CONTEXT_LINES, limits::DIFF_LINES_MAX);
    let page = first_page(&diff.text, limits::OUTCOME_PAGE_CHARS);
    let limit = match page.end {
        TextPageEnd::AtLine | TextPageEnd::InsideLine => Some("OUTCOME_PAGE_CHARS"),
        TextPageEnd::Complete => diff.is_truncated().then_some("DIFF_LINES_MAX"),
    };
    Ok(DiffOutcome {
        path: path.clone(),
        from: old.version,
        to: new.version,
        diff: page.text.to_owned(),
        lines: diff_stat(&before, &after).into(),
        completeness: limit.map_or(Completeness::Complete, |limit| Completeness::narrowed_by("from", limit)),
        same_bytes: old.bytes == new.bytes,
    })
}

/// Decodes bytes as text in their detected encoding; `None` if the bytes are binary or cannot be decoded exactly.
pub(crate) fn decode_diff_text(bytes: &[u8]) -> Option<Cow<'_, str>> {
    decode_detected(bytes)
}
