//! Each error of `patch` names the file, the section and the line of the patch, and says that nothing was written. If a
//! chunk cannot be placed, the error of `patch` shows similar lines, matching locations, or a fitting older revision.

use std::collections::VecDeque;

use stead_path::RelPath;
use stead_text::{
    edit::{AmbiguousQuoteCandidate, describe_matches},
    locate::{MatchBoundaryRule, QuoteMatch, QuoteSearchHaystack},
    patch::{FilePatch, PatchApplyError, PatchApplyErrorKind, PatchParseError, PatchSectionKind},
};

use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    ops::{
        ReadArgs,
        edit::errors::{
            describe_difference, describe_place, render_location, render_numbered_lines, shorten_text, with_nearest,
        },
        r#move::OverwriteAllowed,
        older_revisions::{self, CurrentFileText},
        patch::base_versions,
        planning::not_found_error,
    },
    plan::FileKind,
};

const NOTHING_WRITTEN: &str = "nothing was written";

#[derive(Clone, Copy)]
pub(super) struct PatchSectionLocation {
    pub(super) section: usize,
    pub(super) line: usize,
    pub(super) operation: &'static str,
}

impl PatchSectionLocation {
    pub(super) fn for_section(number: usize, section: &FilePatch) -> Self {
        let operation = match section.kind {
            PatchSectionKind::Add { .. } => "add",
            PatchSectionKind::Update { .. } => "update",
            PatchSectionKind::Delete { .. } => "delete",
            PatchSectionKind::Move { .. } => "move",
        };
        Self { section: number, line: section.line, operation }
    }

    pub(super) fn with_section(self, error: Error) -> Error {
        let has_line = error.details.line.is_some();
        let error = with_nothing_written(error).with_section(self.section).with_operation(self.operation);
        if has_line { error } else { error.with_line(self.line) }
    }
}

pub(super) fn with_nothing_written(mut error: Error) -> Error {
    if !error.message.ends_with(NOTHING_WRITTEN) {
        error.message = format!("{}; {NOTHING_WRITTEN}", error.message);
    }
    error
}

pub(super) fn malformed_patch_error(error: &PatchParseError) -> Error {
    let failure = Error::new(ErrorKind::MalformedPatch, format!("{error}; {NOTHING_WRITTEN}"))
        .with_next_step("correct that line and send the whole patch again")
        .with_line(error.line)
        .with_expected(error.fault.expected())
        .with_fault(error.fault.code());
    match error.fault.got() {
        Some(got) => failure.with_got(got),
        None => failure,
    }
}

pub(super) fn same_path_error(written: &str) -> Error {
    Error::new(ErrorKind::BadRequest, format!("the patch moves {written} to the same path"))
        .with_next_step("write *** Update File: to change it without a new path")
        .with_path(written)
        .with_reason("same_place")
}

pub(super) fn repeated_file_error(path: &RelPath) -> Error {
    Error::new(ErrorKind::BadRequest, format!("two sections of the patch name {path}"))
        .with_next_step("put all changes to one file into one section")
        .with_path(path.to_string())
        .with_reason("duplicate_path")
}

pub(super) fn is_directory_error(path: &RelPath) -> Error {
    Error::new(ErrorKind::IsDirectory, format!("{path} is a directory"))
        .with_next_step("a patch changes only files, not directories")
        .with_path(path.to_string())
}

pub(super) fn not_regular_error(path: &RelPath) -> Error {
    Error::new(ErrorKind::NotRegular, format!("{path} is not a regular file"))
        .with_next_step("a patch changes only regular files; name the file that a link points to")
        .with_path(path.to_string())
}

pub(super) fn delete_mismatch_error(path: &RelPath) -> Error {
    Error::new(ErrorKind::TextNotFound, format!("{path} contains more than the patch removes"))
        .with_next_step(
            NextStep::call(ReadArgs::new(path), "see the file")
                .or("write *** Delete File: to delete it whatever it contains"),
        )
        .with_path(path.to_string())
        .with_reason("more_than_deleted")
}

pub(super) fn require_replaceable(path: &RelPath, kind: FileKind, overwrite: OverwriteAllowed) -> Result<(), Error> {
    let next_step = match (kind, overwrite) {
        (FileKind::File, OverwriteAllowed::Yes) => return Ok(()),
        (FileKind::File, OverwriteAllowed::No) => NextStep::from("write *** Update File: to change it")
            .or(NextStep::repeat_with_flag("overwrite", "replace it")),
        (FileKind::Directory | FileKind::Link | FileKind::Special, OverwriteAllowed::Yes | OverwriteAllowed::No) => {
            "choose another path".into()
        }
    };
    let error = Error::new(ErrorKind::Exists, format!("{path} already exists"));
    Err(error.with_next_step(next_step).with_path(path.to_string()))
}

pub(super) fn partly_applied_error(sections: &[FilePatch], applied: &[usize]) -> Error {
    let describe = |section: &FilePatch| {
        format!("{} (line {} of the patch)", base_versions::written_paths(section).join(" -> "), section.line)
    };
    let listed: Vec<String> = applied.iter().filter_map(|at| sections.get(*at)).map(describe).collect();
    let what = format!("some sections of the patch are already applied: {}", listed.join(", "));
    with_nothing_written(Error::new(ErrorKind::AlreadyApplied, what))
        .with_next_step("remove those sections from the patch")
        .with_already_applied(applied.to_vec())
}

pub(super) fn chunk_not_placed_error(
    context: &CallContext<'_>,
    now: CurrentFileText<'_>,
    error: &PatchApplyError,
    at: PatchSectionLocation,
) -> Error {
    let error_context = PatchChunkErrorBuilder { context, now, error, finder: QuoteSearchHaystack::new(now.text) };
    let failure = error_context.placement_error();
    let path = now.path.to_string();
    at.with_section(failure.with_path(path).with_chunk(error.chunk).with_line(error.line))
}

struct PatchChunkErrorBuilder<'a> {
    context: &'a CallContext<'a>,
    now: CurrentFileText<'a>,
    error: &'a PatchApplyError,
    finder: QuoteSearchHaystack<'a>,
}

impl PatchChunkErrorBuilder<'_> {
    fn error_message(&self, what: &str) -> String {
        let PatchApplyError { chunk, line, .. } = self.error;
        format!("{}, chunk {chunk} (line {line} of the patch): {what}", self.now.path)
    }

    fn placement_error(&self) -> Error {
        let new = |kind, what: &str| Error::new(kind, self.error_message(what));
        match &self.error.reason {
            PatchApplyErrorKind::NotFound { already: Some(line), .. } => {
                new(ErrorKind::AlreadyApplied, &format!("the chunk is already applied at line {line}"))
                    .with_next_step("remove the chunk from the patch")
                    .with_at(*line)
            }
            PatchApplyErrorKind::NotFound { quoted, already: None } => self.not_found_error(quoted),
            PatchApplyErrorKind::AnchorNotFound { anchor } => self.anchor_not_found_error(anchor),
            PatchApplyErrorKind::Ambiguous { lines, count } => self.ambiguous_error(lines, *count),
            PatchApplyErrorKind::Overlap { other, line } => {
                new(ErrorKind::Overlap, &format!("chunk {other} already changes line {line}"))
                    .with_next_step("put both changes into one chunk")
                    .with_other_chunk(*other)
                    .with_at(*line)
            }
            PatchApplyErrorKind::NumberOnly { line } => {
                let what = format!("it has no context lines, and its line number {line} does not fit this file");
                new(ErrorKind::Ambiguous, &what)
                    .with_next_step("add the line before the new ones as context")
                    .with_at(*line)
                    .with_reason("number_only")
            }
            PatchApplyErrorKind::Exhausted => {
                new(ErrorKind::TooLarge, "the file is too repetitive to find the place of the chunk")
                    .with_next_step("add more context lines")
            }
        }
    }

    fn ambiguous_error(&self, lines: &[usize], count: usize) -> Error {
        let to_match = |first: &usize| {
            let last = (*first + count.max(1) - 1).min(self.finder.line_count());
            let bytes = self.finder.line_bytes(*first).start..self.finder.line_bytes(last).end;
            QuoteMatch { bytes, lines: *first..=last, indentation_shift: None }
        };
        let matches: Vec<QuoteMatch> = lines.iter().map(to_match).collect();
        let mut locations: Vec<AmbiguousQuoteCandidate> = describe_matches(&self.finder, &matches);
        locations.truncate(limits::ERROR_LOCATIONS_MAX);
        let next_step = if locations.iter().any(|location| location.disambiguating_context.is_some()) {
            "add the lines that make the match unique as context, or the line of its definition after @@"
        } else {
            "add more context lines, or the line of its definition after @@"
        };
        let what = format!("it fits at lines {}", list_line_numbers(lines));
        Error::new(ErrorKind::Ambiguous, self.error_message(&what))
            .with_next_step(next_step)
            .with_excerpt(locations.iter().map(render_location).collect::<String>())
            .with_places(locations.iter().map(describe_place).collect::<Vec<_>>())
            .with_places_total(lines.len())
    }

    fn not_found_error(&self, quoted: &str) -> Error {
        let mut what = format!("its lines, starting with {:?}, are not in the file", shorten_text(quoted));
        let older = older_revisions::find_older_revision(self.context, self.now, quoted, MatchBoundaryRule::WholeLines);
        if let Some(older) = &older {
            what.push_str(&format!("; {}", older.describe()));
        }
        let error = Error::new(ErrorKind::TextNotFound, self.error_message(&what)).with_quoted(shorten_quote(quoted));
        let Some(older) = older else {
            return self.with_nearest_lines(
                error,
                quoted,
                NextStep::call(ReadArgs::new(self.now.path), "see the file, which has no similar lines")
                    .then("write the chunk for its current text"),
            );
        };
        // If the journal shows the current form of the quoted lines, the error shows them instead of similar lines.
        let mut excerpt = String::new();
        let mut error = error.with_older(older.details());
        if let Some(lines) = &older.lines {
            excerpt = render_numbered_lines(&self.finder, lines, limits::ERROR_LINES_MAX);
            error = with_nearest(error, lines, excerpt.clone());
        }
        excerpt.push_str(&older.diff);
        error
            .with_excerpt(excerpt)
            .with_next_step(format!("read the diff since {}, then quote the current text", older.rev))
    }

    fn anchor_not_found_error(&self, anchor: &str) -> Error {
        let error = Error::new(ErrorKind::TextNotFound, self.error_message(&format!("no line matches {anchor:?}")));
        self.with_nearest_lines(error, anchor, "put a whole line of the file after @@, or nothing".into())
    }

    fn with_nearest_lines(&self, error: Error, quoted: &str, otherwise: NextStep) -> Error {
        let Some(nearest) = self.finder.nearest_candidate(quoted) else {
            return error.with_next_step(otherwise);
        };
        let (first, last) = nearest.lines.clone().into_inner();
        let numbered = render_numbered_lines(&self.finder, &nearest.lines, limits::ERROR_LINES_MAX);
        let mut error = with_nearest(error.with_excerpt(&numbered), &nearest.lines, numbered);
        let differs: Vec<_> = nearest.differences.iter().map(describe_difference).collect();
        if !differs.is_empty() {
            error = error.with_differs(differs);
        }
        error.with_next_step(format!("the most similar lines are {first}-{last}: quote them as they are now"))
    }
}

fn list_line_numbers(lines: &[usize]) -> String {
    let numbers: Vec<String> = lines.iter().take(limits::ERROR_LOCATIONS_MAX).map(ToString::to_string).collect();
    let more = if lines.len() > numbers.len() { ", …" } else { "" };
    numbers.join(", ") + more
}

fn shorten_quote(quoted: &str) -> String {
    let mut lines: Vec<&str> = quoted.lines().take(limits::ERROR_LINES_MAX).collect();
    if quoted.lines().count() > lines.len() {
        lines.push("…");
    }
    lines.join("\n")
}

const SUGGESTED_NAME_EDITS_MAX: usize = 2;

pub(super) fn missing_file_error(context: &CallContext<'_>, path: &RelPath) -> Error {
    let error = not_found_error(path).with_path(path.to_string());
    match similar_sibling(context, path).or_else(|| same_name_elsewhere(context, path)) {
        Some(closest) => error.with_next_step(format!("did you mean {closest}?")).with_closest(closest.to_string()),
        None => error,
    }
}

fn similar_sibling(context: &CallContext<'_>, path: &RelPath) -> Option<RelPath> {
    let (parent, name) = path.split()?;
    let wanted = name.as_bytes().to_ascii_lowercase();
    let files = context.list_visible(&parent).ok()?.into_iter().filter(|listed| listed.kind == FileKind::File);
    files
        .take(limits::SUGGESTION_ENTRIES_MAX)
        .map(|listed| (strsim::generic_levenshtein(&wanted, &listed.name.as_bytes().to_ascii_lowercase()), listed.name))
        .filter(|(edits, name)| *edits <= SUGGESTED_NAME_EDITS_MAX && edits * 2 <= name.as_bytes().len())
        .min_by_key(|(edits, name)| (*edits, name.as_bytes().to_vec()))
        .and_then(|(_, name)| parent.join(&name).ok())
}

/// Finds the file with the name of the missing file that is closest to the workspace root.
fn same_name_elsewhere(context: &CallContext<'_>, path: &RelPath) -> Option<RelPath> {
    let (_, name) = path.split()?;
    let mut queue = VecDeque::from([RelPath::root()]);
    let mut visited = 0;
    while let Some(directory) = queue.pop_front() {
        for listed in context.list_visible(&directory).ok()? {
            visited += 1;
            if visited > limits::SUGGESTION_ENTRIES_MAX || context.control.check().is_err() {
                return None;
            }
            let Ok(path) = directory.join(&listed.name) else { continue };
            match listed.kind {
                FileKind::File if listed.name == name => return Some(path),
                FileKind::Directory => queue.push_back(path),
                FileKind::File | FileKind::Link | FileKind::Special => {}
            }
        }
    }
    None
}
