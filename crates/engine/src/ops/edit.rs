//! `edit` replaces quoted text in one file. One `edit` call matches all of its edits against the same bytes, and
//! applies all edits or none. The argument `mode` of `edit` decides what happens if the file changed since the caller
//! read it.

mod args;
pub(in crate::ops) mod errors;
mod outcome;

use std::borrow::Cow;

use stead_text::{
    edit::{
        AppliedEdit, EditError, EditMatchingRules, EditedText, EmptyQuoteRule, FindReplaceEdit, QuoteMatchMethod,
        apply_edits, apply_ignoring_whitespace, apply_to_newer_text,
    },
    lines,
    locate::FuzzyTextMatchPass,
    merge::{self, MergeResult},
};

pub use self::{
    args::{EditArgs, EditItem, StaleEditHandling},
    outcome::{AppliedEditRow, EditOutcome, EditRebaseFields},
};
use crate::{
    authorization,
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    operation::{Operation, OperationPlanningResult, PathAccessRequest, PlanResult, ResolvedTarget},
    ops::{
        diff::{self, DiffSideContent},
        encode_content, older_revisions,
        planning::{self, too_large_to_change_error},
        write,
    },
    plan::CommitExpectation,
    tree::BytesToRead,
    version::{BaseVersion, Version},
    workspace::CommitReceipt,
};

pub(crate) struct FileToEdit {
    bytes: Vec<u8>,
    text: String,
    version: Version,
    rev: String,
    expectation: CommitExpectation,
}

struct AppliedEditsResult {
    text: String,
    /// The result of each edit of the call; `None` if whole texts were merged instead.
    per_edit: Option<EditedText>,
    rebased: Option<EditRebaseFields>,
}

impl Operation for EditArgs {
    type Paths = PathAccessRequest;
    type Outcome = EditOutcome;

    fn resolve(&self, _context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        // The pipeline checks a base which says that the file must not exist; `plan` checks every other base.
        let request = PathAccessRequest::write(&self.path);
        match self.base.as_deref().map(BaseVersion::parse).transpose()? {
            Some(BaseVersion::Absent) => request.with_base(Some("")),
            Some(BaseVersion::Version(_) | BaseVersion::Rev(_) | BaseVersion::HashPrefix(_)) | None => Ok(request),
        }
    }

    fn plan(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        let edits = self.quoted_edits()?;
        let current = self.read_edited_file(context, target)?;
        let result = self.apply_edits(context, target, &current, &edits)?;
        let encoded = encode_content::encode_file(&result.text, None, Some(&current.bytes))?;
        let version = Version::hash_bytes(&encoded.bytes);
        let outcome = EditOutcome::unchanged(context, target, &current, &result, &encoded);
        let created = current.expectation == CommitExpectation::Absent;
        if encoded.bytes == current.bytes && !created {
            return Ok(OperationPlanningResult::Read { outcome, bytes: 0 });
        }
        let written = (version, encoded.bytes);
        let plan = planning::plan_file_write(context, &target.path, current.expectation, written)?;
        if self.dry_run {
            // A dry run must pass the same authorization as the real call.
            authorization::check_plan(context, &plan)?;
            return Ok(OperationPlanningResult::Preview(outcome.preview(version, &current.text, &result.text)));
        }
        let build_outcome = Box::new(move |receipt: &CommitReceipt| outcome.committed(version, receipt));
        Ok(OperationPlanningResult::Files { plan, build_outcome })
    }
}

impl EditArgs {
    /// Reads the file to edit; a single edit with an empty `old` creates a missing file.
    fn read_edited_file(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> Result<FileToEdit, Error> {
        let Some(stat) = target.stat else {
            // In a dialect that gives an empty quote another meaning, an empty quote does not create a file.
            let creates = self.rules.empty_quote == EmptyQuoteRule::Reject
                && matches!(self.edits.as_slice(), [only] if only.old.is_empty());
            if !creates || self.base.as_deref().is_some_and(|base| !base.is_empty()) {
                return Err(older_revisions::missing_file_error(context, target, self.base.as_deref()));
            }
            let (bytes, expectation) = (Vec::new(), CommitExpectation::Absent);
            let version = Version::hash_bytes(&bytes);
            return Ok(FileToEdit { bytes, text: String::new(), version, rev: String::new(), expectation });
        };
        write::require_regular_file(target, stat)?;
        let file = context
            .read(&target.path, BytesToRead::Whole { limit_bytes: limits::WRITE_BYTES_MAX })
            .map_err(|error| too_large_to_change_error(&target.path, error))?;
        let text = diff::decode_diff_text(&file.bytes).map(Cow::into_owned);
        let text = text.ok_or_else(|| errors::not_text_error(&target.path))?;
        let observed = file.observed();
        Ok(FileToEdit {
            text,
            version: file.version,
            rev: context.revision_name(&target.path, &file.version),
            expectation: CommitExpectation::File(observed),
            bytes: file.bytes,
        })
    }

    fn apply_edits(
        &self,
        context: &CallContext<'_>,
        target: &ResolvedTarget,
        current: &FileToEdit,
        edits: &[FindReplaceEdit<'_>],
    ) -> Result<AppliedEditsResult, Error> {
        let rules = self.rules;
        let refused = |refusals: Vec<EditError>, base: Option<&OlderFileText>| {
            errors::edits_refused_error(context, target, current, edits, &refusals, base)
        };
        let base = resolve_edit_base(context, target, current, self.base.as_deref())?;
        match (base, self.mode) {
            (EditBaseVersionStatus::Unspecified | EditBaseVersionStatus::Current, _) => {
                let edited = apply_edits(&current.text, edits, rules).map_err(|refusals| refused(refusals, None))?;
                Ok(AppliedEditsResult::from_edited(edited, None))
            }
            (EditBaseVersionStatus::Older(old), StaleEditHandling::Strict) => {
                Err(errors::stale_base_error(context, target, current, Some(&old)))
            }
            (EditBaseVersionStatus::Unavailable(_), StaleEditHandling::Strict) => {
                Err(errors::stale_base_error(context, target, current, None))
            }
            (EditBaseVersionStatus::Unavailable(written), StaleEditHandling::Anchored | StaleEditHandling::Merge) => {
                let edited = apply_edits(&current.text, edits, rules).map_err(|refusals| refused(refusals, None))?;
                // Without the text of the base, only exact matches of whole lines are safe. A quoted part of a line may
                // now match in a different line.
                let is_safe = |(applied, quoted): (&AppliedEdit, &FindReplaceEdit<'_>)| {
                    is_exact_match(&applied.method) && covers_whole_lines(&current.text, applied, quoted.old)
                };
                if edited.applied.iter().zip(edits).all(is_safe) {
                    let rebased = EditRebaseFields::unverified(written, current);
                    return Ok(AppliedEditsResult::from_edited(edited, Some(rebased)));
                }
                Err(errors::stale_base_error(context, target, current, None))
            }
            (EditBaseVersionStatus::Older(old), mode @ (StaleEditHandling::Anchored | StaleEditHandling::Merge)) => {
                match apply_to_newer_text(&old.text, &current.text, edits, rules) {
                    Ok(edited) => {
                        let rebased = EditRebaseFields::rebased(&old, current);
                        Ok(AppliedEditsResult::from_edited(edited, Some(rebased)))
                    }
                    Err(refusals) if mode == StaleEditHandling::Anchored => Err(refused(refusals, Some(&old))),
                    Err(refusals) => match apply_edits(&old.text, edits, rules) {
                        Ok(edited) => merge_edits(context, target, current, &old, (edits, rules), &edited.text),
                        Err(_) => Err(refused(refusals, Some(&old))),
                    },
                }
            }
        }
    }
}

impl AppliedEditsResult {
    fn from_edited(edited: EditedText, rebased: Option<EditRebaseFields>) -> Self {
        Self { text: edited.text.clone(), per_edit: Some(edited), rebased }
    }
}

fn merge_edits(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    current: &FileToEdit,
    old: &OlderFileText,
    (edits, rules): (&[FindReplaceEdit<'_>], EditMatchingRules),
    ours: &str,
) -> Result<AppliedEditsResult, Error> {
    let rebased = || Some(EditRebaseFields::merged(old, current));
    match merge::merge(&old.text, ours, &current.text) {
        MergeResult::Clean(text) => Ok(AppliedEditsResult { text, per_edit: None, rebased: rebased() }),
        MergeResult::Conflict(ranges) => {
            // A white space change by others, for example by a formatter, is not a conflict.
            if let Ok(edited) = apply_ignoring_whitespace(&old.text, &current.text, edits, rules) {
                return Ok(AppliedEditsResult::from_edited(edited, rebased()));
            }
            Err(errors::merge_conflict_error(context, target, current, old, ours, &ranges))
        }
    }
}

fn is_exact_match(method: &QuoteMatchMethod) -> bool {
    match method {
        QuoteMatchMethod::Pass(pass) => *pass <= FuzzyTextMatchPass::LineEndings,
        QuoteMatchMethod::NoChange | QuoteMatchMethod::AlreadyApplied => true,
        QuoteMatchMethod::LineNumbersStripped(_)
        | QuoteMatchMethod::EscapesDecoded(_)
        | QuoteMatchMethod::Similarity(_) => false,
    }
}

fn covers_whole_lines(text: &str, applied: &AppliedEdit, quote: &str) -> bool {
    let quoted: Vec<&str> = lines::iter(quote).map(str::trim).collect();
    applied.changed_lines.iter().all(|change| {
        let replaced = lines::slice_lines(text, change.before.clone()).unwrap_or_default();
        lines::iter(replaced).map(str::trim).eq(quoted.iter().copied())
    })
}

fn bad_request(detail: impl AsRef<str>) -> Error {
    Error::new(ErrorKind::BadRequest, detail)
}

enum EditBaseVersionStatus {
    Unspecified,
    Current,
    Older(OlderFileText),
    /// The base's text is no longer stored; the variant holds the base as the caller wrote it.
    Unavailable(String),
}

struct OlderFileText {
    version: Version,
    rev: String,
    text: String,
}

fn resolve_edit_base(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    current: &FileToEdit,
    written: Option<&str>,
) -> Result<EditBaseVersionStatus, Error> {
    let Some(written) = written else { return Ok(EditBaseVersionStatus::Unspecified) };
    if BaseVersion::parse(written)? == BaseVersion::Absent {
        // The pipeline already checked that the file is absent.
        return Ok(EditBaseVersionStatus::Current);
    }
    let now = DiffSideContent { label: "now".to_owned(), version: Some(current.version), bytes: current.bytes.clone() };
    let unavailable = || Ok(EditBaseVersionStatus::Unavailable(written.to_owned()));
    let side = match diff::side_at_version(context, &target.path, written, &now) {
        Ok(side) => side,
        Err(error) if matches!(error.kind, ErrorKind::Expired | ErrorKind::TooLarge) => return unavailable(),
        Err(error) => return Err(error),
    };
    let Some(version) = side.version else { return unavailable() };
    if version == current.version {
        return Ok(EditBaseVersionStatus::Current);
    }
    let Some(text) = diff::decode_diff_text(&side.bytes) else { return unavailable() };
    let (rev, text) = (context.revision_name(&target.path, &version), text.into_owned());
    Ok(EditBaseVersionStatus::Older(OlderFileText { version, rev, text }))
}
