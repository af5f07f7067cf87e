//! Converts a plan that was made on an editor's unsaved text into a plan for the file on disk. A call's changes of
//! unsaved text are merged into the file on disk and also written to the buffer. A call that would change an unsaved
//! line is refused, so that the editor can still save the line.

use std::{borrow::Cow, ops::Range};

use stead_path::RelPath;
use stead_text::{
    diff::hunks,
    merge::{MergeResult, merge},
};

use super::{UnsavedFile, UnsavedTextAccessKind, UnsavedTextNotice};
use crate::{
    buffers::{EditorBufferMetadata, PlannedBufferChange, PlannedBufferChangeKind},
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    ops::{ReadArgs, decode_diff_text, encode_like, text_pages::format_line_span},
    plan::{CommitExpectation, FileModeSource, Plan, PlanTimeFileVersion, PlannedChange, PlannedContent},
    tree::BytesToRead,
    version::Version,
};

/// Converts all changes of a plan, and returns a notice for each file with unsaved text.
pub(crate) fn rebase_plan_onto_disk(
    context: &CallContext<'_>,
    plan: &mut Plan,
) -> Result<Vec<UnsavedTextNotice>, Error> {
    if context.buffers()?.is_empty() {
        return Ok(Vec::new());
    }
    let mut notices = Vec::new();
    let mut buffer_changes: Vec<PlannedBufferChange> = Vec::new();
    for change in &mut plan.changes {
        match change {
            PlannedChange::Put { .. } => {
                let planned = plan.buffers.iter().map(|change| change.id.as_str()).collect::<Vec<_>>();
                let (buffer_change, notice) = rebase_put(context, change, &planned)?;
                buffer_changes.extend(buffer_change);
                notices.extend(notice);
            }
            PlannedChange::Remove { path, expectation, .. } => {
                refuse_unsaved(context, path, "removed")?;
                expect_saved(context, path, expectation)?;
            }
            PlannedChange::Move { from, to, expectation, replaced, .. } => {
                if *replaced != CommitExpectation::Absent {
                    refuse_unsaved(context, to, "replaced")?;
                    expect_saved(context, to, replaced)?;
                }
                if let Some(unsaved) = context.unsaved_file(from)? {
                    let notice = UnsavedTextNotice::new(&unsaved, UnsavedTextAccessKind::Written);
                    notices.push(UnsavedTextNotice { path: to.clone(), ..notice });
                }
                expect_saved(context, from, expectation)?;
                buffer_changes.extend(move_buffers(context, from, to)?);
            }
            PlannedChange::MakeDirectory { .. }
            | PlannedChange::MakeLink { .. }
            | PlannedChange::RemoveDirectory { .. }
            | PlannedChange::Restore { .. } => {}
        }
    }
    plan.buffers.extend(buffer_changes);
    Ok(notices)
}

/// Converts a planned file write; returns the change of the open buffer, unless `planned_buffers` lists the buffer.
fn rebase_put(
    context: &CallContext<'_>,
    change: &mut PlannedChange,
    planned_buffers: &[&str],
) -> Result<(Option<PlannedBufferChange>, Option<UnsavedTextNotice>), Error> {
    let PlannedChange::Put { path, expectation, content, version, size, mode } = change else {
        return Ok((None, None));
    };
    resolve_copied_content(context, content, size)?;
    if let FileModeSource::CopyFrom(from, seen) = mode {
        *seen = saved_version(context, from, *seen)?;
    }
    let Some(buffer) = context.open_buffer(path)?.filter(|buffer| !planned_buffers.contains(&buffer.id.as_str()))
    else {
        return Ok((None, None));
    };
    if *expectation == CommitExpectation::Absent {
        // There is no file on disk, so an unsaved text exists only in the editor and must not be replaced.
        let unsaved = buffer.is_unsaved(None);
        return if unsaved { Err(unsaved_text_error(context, &buffer, "written", &[])) } else { Ok((None, None)) };
    }
    let result = content_bytes(context, path, content)?;
    let Some(unsaved) = context.unsaved_file(path)? else {
        let is_text = decode_diff_text(&result).is_some();
        return Ok((is_text.then(|| update_buffer(&buffer, result.into_owned(), *version)), None));
    };
    let (merged, saved) = merge_with_unsaved(context, &unsaved, &result)?;
    let buffer_change = update_buffer(&unsaved.buffer, result.into_owned(), saved);
    let notice = UnsavedTextNotice {
        saved,
        unsaved: *version,
        ..UnsavedTextNotice::new(&unsaved, UnsavedTextAccessKind::Written)
    };
    *expectation = CommitExpectation::File(unsaved.saved_version);
    *size = merged.len() as u64;
    *version = saved;
    *content = PlannedContent::Bytes(merged);
    Ok((Some(buffer_change), Some(notice)))
}

fn update_buffer(buffer: &EditorBufferMetadata, text: Vec<u8>, base: Version) -> PlannedBufferChange {
    let kind = PlannedBufferChangeKind::ReplaceText { text, base };
    PlannedBufferChange { id: buffer.id.clone(), expected_revision: buffer.revision, kind }
}

/// Merges the call's change of the unsaved text into the file on disk; `result` is the changed text.
fn merge_with_unsaved(
    context: &CallContext<'_>,
    unsaved: &UnsavedFile,
    result: &[u8],
) -> Result<(Vec<u8>, Version), Error> {
    let buffer = &unsaved.buffer;
    let want = BytesToRead::Whole { limit_bytes: limits::WRITE_BYTES_MAX };
    let file = context.workspace().read(&buffer.path, want)?;
    if file.version != unsaved.saved_version.version {
        return Err(Error::new(ErrorKind::Busy, format!("{} changed while the call ran", buffer.path))
            .with_next_step(NextStep::repeat()));
    }
    let texts = (decode_diff_text(&unsaved.text), decode_diff_text(result), decode_diff_text(&file.bytes));
    let (Some(base), Some(ours), Some(theirs)) = texts else {
        return Err(unsaved_text_error(context, buffer, "replaced by binary content", &[]));
    };
    let touched = unsaved_lines_touched(&base, &ours, &theirs);
    if !touched.is_empty() {
        return Err(unsaved_text_error(context, buffer, "changed", &touched));
    }
    match merge(&base, &ours, &theirs) {
        MergeResult::Clean(text) => {
            let bytes = encode_like(&text, &file.bytes)?;
            let version = Version::hash_bytes(&bytes);
            Ok((bytes, version))
        }
        MergeResult::Conflict(ranges) => {
            let ranges: Vec<Range<usize>> = ranges.into_iter().map(|range| range.base).collect();
            Err(unsaved_text_error(context, buffer, "changed", &ranges))
        }
    }
}

/// Finds the unsaved lines that a call would change. A merge alone would not detect that a call removes a line that
/// exists only in the unsaved text.
fn unsaved_lines_touched(base: &str, ours: &str, saved: &str) -> Vec<Range<usize>> {
    let unsaved: Vec<Range<usize>> = hunks(saved, base).into_iter().map(|hunk| hunk.new).collect();
    let overlaps = |one: &Range<usize>, other: &Range<usize>| one.start.max(other.start) < one.end.min(other.end);
    let changed = hunks(base, ours).into_iter().map(|hunk| hunk.old);
    changed.filter(|old| unsaved.iter().any(|lines| overlaps(lines, old))).collect()
}

fn content_bytes<'c>(
    context: &CallContext<'_>,
    path: &RelPath,
    content: &'c PlannedContent,
) -> Result<Cow<'c, [u8]>, Error> {
    match content {
        PlannedContent::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
        PlannedContent::Retained(version) => match context.workspace().retained_bytes(path, version)? {
            Some(bytes) => Ok(Cow::Owned(bytes)),
            None => Err(Error::new(ErrorKind::Expired, "the content of this version is no longer stored")
                .with_next_step("read the file and write the wanted content")),
        },
        PlannedContent::CopyOf(from, _) => {
            let want = BytesToRead::Whole { limit_bytes: limits::WRITE_BYTES_MAX };
            Ok(Cow::Owned(context.workspace().read(from, want)?.bytes))
        }
    }
}

/// Replaces a planned copy of a file by the file's unsaved text, if the plan read the unsaved text.
fn resolve_copied_content(
    context: &CallContext<'_>,
    content: &mut PlannedContent,
    size: &mut u64,
) -> Result<(), Error> {
    let PlannedContent::CopyOf(from, seen) = content else { return Ok(()) };
    if let Some(unsaved) = context.unsaved_file(from)?.filter(|unsaved| unsaved.buffer.version == seen.version) {
        *size = unsaved.text.len() as u64;
        *content = PlannedContent::Bytes(unsaved.text.clone());
    }
    Ok(())
}

/// Replaces the expected version of unsaved text by the version on disk, which the commit checks.
fn expect_saved(context: &CallContext<'_>, path: &RelPath, expectation: &mut CommitExpectation) -> Result<(), Error> {
    if let CommitExpectation::File(seen) = expectation {
        *seen = saved_version(context, path, *seen)?;
    }
    Ok(())
}

fn saved_version(
    context: &CallContext<'_>,
    path: &RelPath,
    seen: PlanTimeFileVersion,
) -> Result<PlanTimeFileVersion, Error> {
    let unsaved = context.unsaved_file(path)?.filter(|unsaved| unsaved.buffer.version == seen.version);
    Ok(unsaved.map_or(seen, |unsaved| unsaved.saved_version))
}

/// Refuses to remove or replace a file with unsaved text, or a tree that contains such a file.
fn refuse_unsaved(context: &CallContext<'_>, top: &RelPath, participle: &str) -> Result<(), Error> {
    for path in context.open_within(top)? {
        if let Some(unsaved) = context.unsaved_file(&path)? {
            return Err(unsaved_text_error(context, &unsaved.buffer, participle, &[]));
        }
    }
    Ok(())
}

fn move_buffers(context: &CallContext<'_>, from: &RelPath, to: &RelPath) -> Result<Vec<PlannedBufferChange>, Error> {
    let mut changes = Vec::new();
    for buffer in context.buffers()? {
        if let Some(rest) = buffer.path.strip_prefix(from) {
            let kind = PlannedBufferChangeKind::Rename(to.append(&rest)?);
            changes.push(PlannedBufferChange { id: buffer.id, expected_revision: buffer.revision, kind });
        }
    }
    Ok(changes)
}

fn unsaved_text_error(
    context: &CallContext<'_>,
    buffer: &EditorBufferMetadata,
    participle: &str,
    ranges: &[Range<usize>],
) -> Error {
    let path = &buffer.path;
    if !context.may_read(path) {
        return Error::new(
            ErrorKind::Conflict,
            format!("{path} cannot be {participle}: an editor has unsaved text of it; nothing was changed"),
        )
        .with_next_step(NextStep::ask_person("save or close the file"))
        .with_path(path.to_string());
    }
    let owner = &buffer.owner;
    let lines: Vec<[usize; 2]> = ranges
        .iter()
        .take(limits::ERROR_LOCATIONS_MAX)
        .map(|range| [range.start + 1, range.end.max(range.start + 1)])
        .collect();
    let spans: Vec<String> = lines.iter().map(|[from, to]| format_line_span(*from, *to)).collect();
    let location = if spans.is_empty() { String::new() } else { format!(" in lines {}", spans.join(", ")) };
    let message = format!("{path} cannot be {participle}: {owner} has unsaved edits{location}; nothing was changed");
    let hint = if spans.is_empty() {
        NextStep::from(format!("ask {owner} to save or close {path}"))
    } else {
        NextStep::call(ReadArgs::new(path), "see its text")
            .then("do not change those lines")
            .or(format!("ask {owner} to save it"))
    };
    Error::new(ErrorKind::Conflict, message)
        .with_next_step(hint)
        .with_path(path.to_string())
        .with_owner(owner.clone())
        .with_version(buffer.version.to_string())
        .with_lines(lines)
}
