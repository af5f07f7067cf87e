//! Searches the journal for a quoted text or a file that no longer exists. The search examines a limited number of
//! versions, and only versions that the caller may read.

use std::ops::RangeInclusive;

use stead_journal::{ChangeKind, PathState, RecordedChange};
use stead_path::RelPath;
use stead_text::{
    edit::map_lines,
    locate::{FuzzyTextMatchPass, MatchBoundaryRule, MatchOverlapRule, QuoteSearchHaystack, QuoteSearchOptions},
    unified::{DiffLabels, UnifiedDiffText, unified_diff},
};

use super::diff::decode_diff_text;
use crate::{
    call_context::CallContext,
    error_details::OlderRevisionDetails,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::ResolvedTarget,
    ops::{ListArgs, UndoArgs, WriteArgs},
    version::Version,
    workspace::{JournalEntryOrder, JournalEntryQuery, StoredJournalEntry},
};

pub(crate) struct OlderRevisionMatch {
    pub(crate) rev: String,
    /// The principal and the number of the journal entry that first changed the file after the older revision.
    changed_by: Option<(String, u64)>,
    pub(crate) diff: String,
    /// The range of current lines that correspond to the quoted text; `None` if the lines were removed.
    pub(crate) lines: Option<RangeInclusive<usize>>,
}

impl OlderRevisionMatch {
    pub(crate) fn describe(&self) -> String {
        match &self.changed_by {
            Some((principal, number)) => {
                format!("your text matches {}, which {principal} changed in r{number}", self.rev)
            }
            None => format!("your text matches {}", self.rev),
        }
    }

    pub(crate) fn details(&self) -> OlderRevisionDetails {
        let (changed_by, changed_in) =
            self.changed_by.as_ref().map(|(principal, number)| (principal.clone(), format!("r{number}"))).unzip();
        OlderRevisionDetails { rev: self.rev.clone(), diff: self.diff.clone(), changed_by, changed_in }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct CurrentFileText<'a> {
    pub(crate) path: &'a RelPath,
    pub(crate) version: Version,
    pub(crate) text: &'a str,
}

pub(crate) fn find_older_revision(
    context: &CallContext<'_>,
    now: CurrentFileText<'_>,
    quote: &str,
    boundary: MatchBoundaryRule,
) -> Option<OlderRevisionMatch> {
    let entries = changing_entries(context, now.path)?;
    let passes = &[FuzzyTextMatchPass::Exact, FuzzyTextMatchPass::LineEndings];
    let options = QuoteSearchOptions { passes, overlap_rule: MatchOverlapRule::NonOverlapping, boundary };
    let mut tried = vec![now.version];
    let mut newer: Option<(String, u64)> = None;
    for stored in &entries {
        for (version, written_here) in versions_of_path(stored, now.path) {
            if tried.contains(&version) {
                continue;
            }
            if tried.len() > limits::OLDER_REVISIONS_MAX {
                return None;
            }
            tried.push(version);
            let Some(text) = retained_text(context, now.path, &version) else { continue };
            if let Some(found) = QuoteSearchHaystack::new(&text).find(quote, options).matches.first() {
                let rev = context.revision_name(now.path, &version);
                // If this entry wrote the found version, the next entry changed it; otherwise this entry changed it.
                let changed_by = if written_here { newer } else { Some(author_and_entry(stored)) };
                let labels = DiffLabels { old: &rev, new: "now" };
                let lines = limits::ERROR_LINES_MAX;
                let diff = unified_diff(&text, now.text, labels, limits::DIFF_CONTEXT_LINES, lines);
                let lines = map_lines(&text, now.text, &found.lines);
                return Some(OlderRevisionMatch { diff: render_bounded_diff(&diff), lines, changed_by, rev });
            }
        }
        newer = Some(author_and_entry(stored));
    }
    None
}

pub(crate) fn render_bounded_diff(diff: &UnifiedDiffText) -> String {
    match diff.omitted_lines {
        0 => diff.text.clone(),
        lines => format!("{}… and {lines} more lines\n", diff.text),
    }
}

fn author_and_entry(stored: &StoredJournalEntry) -> (String, u64) {
    (stored.entry.caller.principal.clone(), stored.entry.number)
}

fn retained_text(context: &CallContext<'_>, path: &RelPath, version: &Version) -> Option<String> {
    // Bytes that cannot be read count as not stored, because this lookup only improves an error.
    let bytes = context.workspace().retained_bytes(path, version).ok().flatten()?;
    (bytes.len() as u64 <= limits::OLDER_REVISION_BYTES_MAX)
        .then(|| decode_diff_text(&bytes).map(std::borrow::Cow::into_owned))
        .flatten()
}

fn changing_entries(context: &CallContext<'_>, path: &RelPath) -> Option<Vec<StoredJournalEntry>> {
    let newest = JournalEntryQuery::changes(JournalEntryOrder::NewestFirst, limits::OLDER_REVISIONS_MAX);
    context.workspace().entries(&JournalEntryQuery { path: Some(path.clone()), ..newest }).ok()
}

/// Returns the file versions of a journal entry: `true` marks a written version, `false` an overwritten version.
fn versions_of_path(stored: &StoredJournalEntry, path: &RelPath) -> Vec<(Version, bool)> {
    let wire = path.to_wire();
    let mut found = Vec::new();
    for change in &stored.entry.changes {
        if change.to.as_deref().unwrap_or(&change.path) == wire
            && let PathState::File { version, .. } = &change.after
        {
            found.push((Version(*version), true));
        }
        if change.path == wire
            && let PathState::File { version, .. } = &change.before
        {
            found.push((Version(*version), false));
        }
    }
    found
}

fn last_change_of_path(context: &CallContext<'_>, path: &RelPath) -> Option<(StoredJournalEntry, RecordedChange)> {
    let wire = path.to_wire();
    changing_entries(context, path)?.into_iter().find_map(|stored| {
        let change = stored.entry.changes.iter().find(|change| change.path == wire)?.clone();
        Some((stored, change))
    })
}

pub(crate) enum FileDisappearanceCause {
    Removed,
    MovedTo(RelPath),
}

pub(crate) fn find_removal_or_move(context: &CallContext<'_>, path: &RelPath) -> Option<FileDisappearanceCause> {
    let (_, change) = last_change_of_path(context, path)?;
    match change.kind {
        ChangeKind::Remove => Some(FileDisappearanceCause::Removed),
        ChangeKind::Rename => RelPath::from_wire(change.to.as_deref()?).ok().map(FileDisappearanceCause::MovedTo),
        ChangeKind::Create
        | ChangeKind::Modify
        | ChangeKind::MakeDir
        | ChangeKind::MakeLink
        | ChangeKind::Copy
        | ChangeKind::SetMode
        | ChangeKind::Rescan => None,
    }
}

pub(crate) fn missing_file_error(context: &CallContext<'_>, target: &ResolvedTarget, base: Option<&str>) -> Error {
    let path = &target.path;
    let (kind, detail) = match base {
        Some(_) => (ErrorKind::Stale, format!("{path} no longer exists; nothing was written")),
        None => (ErrorKind::NotFound, format!("{path} does not exist; nothing was written")),
    };
    let error = Error::new(kind, detail).with_path(path.to_string());
    let last = last_change_of_path(context, path);
    let moved = last.as_ref().filter(|(_, change)| change.kind == ChangeKind::Rename).and_then(|(stored, change)| {
        let to = RelPath::from_wire(change.to.as_deref()?).ok()?;
        context.may_read(&to).then_some((author_and_entry(stored), to))
    });
    if let Some(((principal, number), to)) = moved {
        return error
            .with_next_step(format!("{principal} moved it to {to} in r{number}; use the new path"))
            .with_moved_to(to.to_string())
            .with_changed_by(principal);
    }
    match last.filter(|(_, change)| change.kind == ChangeKind::Remove) {
        Some((stored, _)) => {
            let (principal, number) = author_and_entry(&stored);
            error
                .with_next_step(
                    NextStep::call(UndoArgs::of_entry(number), format!("restore the file, which {principal} removed"))
                        .or(NextStep::call(WriteArgs::of_new_content(path), "create the file")),
                )
                .with_changed_by(principal)
        }
        None => error.with_next_step(
            NextStep::call(ListArgs::of_parent(path), "see the names in the directory")
                .or(NextStep::call(WriteArgs::of_new_content(path), "create the file")),
        ),
    }
}
