//! `write` with `mode: merge` performs a three-way merge of the caller's changes with the changes of others. The common
//! ancestor of the merge is the text that the caller knows.

use std::borrow::Cow;

use stead_path::RelPath;
use stead_text::merge::{MergeConflictLineRanges, MergeResult, merge};

use super::{WriteArgs, WriteTargetCurrentContent, base_required_error, match_format};
use crate::{
    call_context::CallContext,
    call_options::{ChangeApplierChoice, LineEndingAndBomPolicy},
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::ResolvedTarget,
    ops::{
        ReadArgs, decode_diff_text,
        diff::{self, DiffSideContent},
        encode_content, encode_like,
        text_pages::format_line_span,
    },
    resolve,
    version::Version,
};

/// The maximum number of conflict locations in an error message; the error's details list more.
const CONFLICT_LINES_SHOWN: usize = 5;

struct MergeBase {
    version: Version,
    bytes: Vec<u8>,
}

impl WriteArgs {
    /// Returns the content to write and the revision of the common ancestor; no revision if nothing was merged.
    pub(super) fn merge_with_current<'c>(
        &self,
        context: &CallContext<'_>,
        target: &ResolvedTarget,
        now: &WriteTargetCurrentContent<'_>,
        content: Cow<'c, str>,
    ) -> Result<(Cow<'c, str>, Option<String>), Error> {
        context.set_submitted_content(None);
        if self.encoding.as_deref().is_some_and(encode_content::is_base64) {
            return Err(Error::new(ErrorKind::BadRequest, "base64 content cannot be merged")
                .with_next_step(NextStep::repeat_with("mode", "exact")));
        }
        let path = &target.path;
        let Some(known) = self.merge_base(context, target, now)? else {
            if self.replace_without_base {
                return Ok((content, None));
            }
            return Err(base_required_error(context, target, &now.version));
        };
        if known.version == now.version {
            return Ok((content, None));
        }
        let theirs = now.bytes.ok_or_else(|| {
            Error::new(
                ErrorKind::TooLarge,
                format!("{path} is too large to be merged, or you may not read it; nothing was written"),
            )
            .with_next_step(NextStep::repeat_with("mode", "exact"))
        })?;
        let (Some(base), Some(text)) = (decode_diff_text(&known.bytes), decode_diff_text(theirs)) else {
            return Err(Error::new(ErrorKind::NotText, format!("{path} is not text; nothing was written"))
                .with_next_step(NextStep::call(ReadArgs::new(path), "see it").then(resolve::repeat_with_base(
                    context,
                    path,
                    now.version,
                ))));
        };
        let (base, ours) = align_formats(self, &base, &content, theirs);
        if base == text {
            return Ok((content, None));
        }
        match merge(&base, &ours, &text) {
            // The merge result equals the content of the call, so the content already includes all changes of others.
            MergeResult::Clean(text) if text == ours => Ok((Cow::Owned(text), None)),
            MergeResult::Clean(text) => {
                context.set_submitted_content(Some((path.clone(), encode_like(&ours, theirs)?)));
                Ok((Cow::Owned(text), Some(context.revision_name(path, &known.version))))
            }
            MergeResult::Conflict(ranges) => Err(merge_conflict_error(context, path, now, &ranges)),
        }
    }

    /// The common ancestor is the text of the base, else the text that the protocol remembers, else the text that the
    /// session last saw.
    fn merge_base(
        &self,
        context: &CallContext<'_>,
        target: &ResolvedTarget,
        now: &WriteTargetCurrentContent<'_>,
    ) -> Result<Option<MergeBase>, Error> {
        let version = Some(now.version);
        let current_bytes = || now.bytes.unwrap_or_default().to_vec();
        if let Some(written) = &self.base {
            let side = DiffSideContent { label: "now".to_owned(), version, bytes: current_bytes() };
            let named = diff::side_at_version(context, &target.path, written, &side)?;
            return Ok(named.version.map(|version| MergeBase { version, bytes: named.bytes }));
        }
        if let Some(text) = &self.known_text {
            let bytes = text.as_bytes().to_vec();
            return Ok(Some(MergeBase { version: Version::hash_bytes(&bytes), bytes }));
        }
        let Some(seen) = context.last_seen(&target.path) else { return Ok(None) };
        if Some(seen.version) == version {
            return Ok(Some(MergeBase { version: seen.version, bytes: current_bytes() }));
        }
        let bytes = match seen.bytes {
            Some(bytes) => Some(bytes.to_vec()),
            None => context.workspace().retained_bytes(&target.path, &seen.version)?,
        };
        Ok(bytes.map(|bytes| MergeBase { version: seen.version, bytes }))
    }
}

/// Gives the base and the new content the same format, so that different line endings do not count as a change.
fn align_formats(arguments: &WriteArgs, base: &str, content: &str, theirs: &[u8]) -> (String, String) {
    let plain = |text: &str| text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
    let (base, content) = (plain(base), plain(content));
    match arguments.replacement_format {
        // The line endings of the text that the protocol remembers may differ from those of the file.
        LineEndingAndBomPolicy::AsGiven if arguments.known_text.is_some() => {
            (match_format(LineEndingAndBomPolicy::MatchLineEndings, &base, Some(theirs)).into_owned(), content)
        }
        LineEndingAndBomPolicy::AsGiven => (base, content),
        format @ (LineEndingAndBomPolicy::MatchReplaced | LineEndingAndBomPolicy::MatchLineEndings) => {
            // The content first adopts the line endings of the known text, because the file may contain both LF and
            // CRLF.
            let ours = stead_text::lines::adopt_line_endings(&content, &base).into_owned();
            (
                match_format(format, &base, Some(theirs)).into_owned(),
                match_format(format, &ours, Some(theirs)).into_owned(),
            )
        }
    }
}

fn merge_conflict_error(
    context: &CallContext<'_>,
    path: &RelPath,
    now: &WriteTargetCurrentContent<'_>,
    ranges: &[MergeConflictLineRanges],
) -> Error {
    let span = |range: &MergeConflictLineRanges| (range.theirs.start + 1, range.theirs.end.max(range.theirs.start + 1));
    let lines: Vec<(usize, usize)> = ranges.iter().take(limits::ERROR_LOCATIONS_MAX).map(span).collect();
    let spans: Vec<String> =
        lines.iter().take(CONFLICT_LINES_SHOWN).map(|(first, last)| format_line_span(*first, *last)).collect();
    let more = if ranges.len() > CONFLICT_LINES_SHOWN { " and more" } else { "" };
    let spans = spans.join(", ");
    let error = Error::new(
        ErrorKind::Conflict,
        format!(
            "this write and changes by others since you read {path} overlap in lines {spans}{more}; nothing was written"
        ),
    );
    let error = match &context.options.applied_by {
        ChangeApplierChoice::Workspace => resolve::with_current_version(context, error, path, now.version),
        ChangeApplierChoice::Editor(_) => error,
    };
    error
        .with_next_step(
            NextStep::call(ReadArgs::new(path), "see the current text")
                .then("apply your changes to it")
                .then(resolve::repeat_with_base(context, path, now.version)),
        )
        .with_lines(lines.iter().map(|(first, last)| [*first, *last]).collect::<Vec<_>>())
}
