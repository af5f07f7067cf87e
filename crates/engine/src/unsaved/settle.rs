//! From a plan that was made on unsaved text to one that fits the disk. What a call changed relative to the text it saw
//! is merged into the file, and the buffer goes forward with it; whatever would touch the lines that somebody has not
//! saved is refused.
//!
//! Promises: no plan that passes here takes an unsaved line away, neither from the buffer nor, by leaving the two with
//! nothing in common, from the file.

use std::{borrow::Cow, ops::Range};

use path::RelPath;
use text::{
    diff::hunks,
    merge::{Merged, merge},
};

use super::{By, Mark, Unsaved, Versions};
use crate::{
    buffers::{Becomes, Buffer, BufferStep},
    failure::{Failure, Kind},
    limits,
    ops::{answer::span, encode_like, text_of},
    plan::{Change, Content, Expect, Mode, Plan, Seen},
    version::Version,
    view::View,
    workspace::Want,
};

/// Brings a plan to the disk. Answers which files then have a text beside the saved one.
pub(crate) fn settle(view: &View<'_>, plan: &mut Plan) -> Result<Vec<Mark>, Failure> {
    if view.buffers()?.is_empty() {
        return Ok(Vec::new());
    }
    let mut marks = Vec::new();
    let mut steps: Vec<BufferStep> = Vec::new();
    for change in &mut plan.changes {
        match change {
            Change::Put { .. } => {
                let own = plan.buffers.iter().map(|step| step.id.as_str()).collect::<Vec<_>>();
                let (step, mark) = put(view, change, &own)?;
                steps.extend(step);
                marks.extend(mark);
            }
            Change::Remove { path, expect, .. } => {
                refuse_unsaved(view, path, "removed")?;
                saved(view, path, expect)?;
            }
            Change::Move { from, to, expect, over, .. } => {
                if *over != Expect::Absent {
                    refuse_unsaved(view, to, "replaced")?;
                    saved(view, to, over)?;
                }
                if let Some(unsaved) = view.unsaved(from)? {
                    let versions = Versions { saved: unsaved.saved.version, text: unsaved.buffer.version };
                    let owner = unsaved.buffer.owner.clone();
                    marks.push(Mark { path: to.clone(), owner, versions, by: By::Writing });
                }
                saved(view, from, expect)?;
                steps.extend(carried(view, from, to)?);
            }
            Change::MakeDirectory { .. }
            | Change::MakeLink { .. }
            | Change::RemoveDirectory { .. }
            | Change::Restore { .. } => {}
        }
    }
    plan.buffers.extend(steps);
    Ok(marks)
}

/// What a put does to the buffer of its file, after it was brought to the disk.
fn put(
    view: &View<'_>,
    change: &mut Change,
    own: &[&str],
) -> Result<(Option<BufferStep>, Option<Mark>), Failure> {
    let Change::Put { path, expect, content, version, size, mode } = change else { return Ok((None, None)) };
    copied(view, content, size)?;
    if let Mode::Like(from, seen) = mode {
        *seen = saved_as(view, from, *seen)?;
    }
    let Some(buffer) = view.open_buffer(path)?.filter(|buffer| !own.contains(&buffer.id.as_str())) else {
        return Ok((None, None));
    };
    if *expect == Expect::Absent {
        // There is no file, so the text of the editor is all there is of it.
        let unsaved = buffer.is_unsaved(None);
        return if unsaved { Err(refused(view, &buffer, "written", &[])) } else { Ok((None, None)) };
    }
    let result = bytes(view, content)?;
    let Some(unsaved) = view.unsaved(path)? else {
        let step = text_of(&result).is_some().then(|| follow(&buffer, result.into_owned(), *version));
        return Ok((step, None));
    };
    let on_disk = merged(view, &unsaved, &result)?;
    let step = follow(&unsaved.buffer, result.into_owned(), on_disk.1);
    let versions = Versions { saved: on_disk.1, text: *version };
    let mark = Mark { path: path.clone(), owner: buffer.owner, versions, by: By::Writing };
    *expect = Expect::File(unsaved.saved);
    *size = on_disk.0.len() as u64;
    *version = on_disk.1;
    *content = Content::Bytes(on_disk.0);
    Ok((Some(step), Some(mark)))
}

/// The buffer gets what the call made of its text.
fn follow(buffer: &Buffer, text: Vec<u8>, base: Version) -> BufferStep {
    let becomes = Becomes::Text { text, base };
    BufferStep { id: buffer.id.clone(), revision: buffer.revision, becomes }
}

/// What the file becomes when a call made `result` of its unsaved text.
fn merged(view: &View<'_>, unsaved: &Unsaved, result: &[u8]) -> Result<(Vec<u8>, Version), Failure> {
    let buffer = &unsaved.buffer;
    let want = Want::Whole { limit_bytes: limits::WRITE_BYTES_MAX };
    let file = view.workspace().read(&buffer.path, want)?;
    if file.version != unsaved.saved.version {
        return Err(Failure::new(Kind::Busy, format!("{} changes while the call runs", buffer.path))
            .hint("call again"));
    }
    let texts = (text_of(&unsaved.text), text_of(result), text_of(&file.bytes));
    let (Some(base), Some(ours), Some(theirs)) = texts else {
        return Err(refused(view, buffer, "replaced by what is no text", &[]));
    };
    let touched = touched(&base, &ours, &theirs);
    if !touched.is_empty() {
        return Err(refused(view, buffer, "changed", &touched));
    }
    match merge(&base, &ours, &theirs) {
        Merged::Clean(text) => {
            let bytes = encode_like(&text, &file.bytes)?;
            let version = Version::of(&bytes);
            Ok((bytes, version))
        }
        Merged::Conflict(ranges) => {
            let ranges: Vec<Range<usize>> = ranges.into_iter().map(|range| range.base).collect();
            Err(refused(view, buffer, "changed", &ranges))
        }
    }
}

/// The unsaved lines that a call would take away or change. A merge alone would let a line go that is only in the unsaved
/// text, because the file does not have it either.
fn touched(base: &str, ours: &str, saved: &str) -> Vec<Range<usize>> {
    let unsaved: Vec<Range<usize>> = hunks(saved, base).into_iter().map(|hunk| hunk.new).collect();
    let meets =
        |one: &Range<usize>, other: &Range<usize>| one.start.max(other.start) < one.end.min(other.end);
    let changed = hunks(base, ours).into_iter().map(|hunk| hunk.old);
    changed.filter(|old| unsaved.iter().any(|lines| meets(lines, old))).collect()
}

/// The bytes that a put would write.
fn bytes<'c>(view: &View<'_>, content: &'c Content) -> Result<Cow<'c, [u8]>, Failure> {
    match content {
        Content::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
        Content::Kept(version) => match view.workspace().kept(version)? {
            Some(bytes) => Ok(Cow::Owned(bytes)),
            None => Err(Failure::new(Kind::Expired, "those bytes are no longer kept")),
        },
        Content::CopyOf(from, _) => {
            let want = Want::Whole { limit_bytes: limits::WRITE_BYTES_MAX };
            Ok(Cow::Owned(view.workspace().read(from, want)?.bytes))
        }
    }
}

/// A copy of a file with unsaved text is a copy of that text.
fn copied(view: &View<'_>, content: &mut Content, size: &mut u64) -> Result<(), Failure> {
    let Content::CopyOf(from, seen) = content else { return Ok(()) };
    if let Some(unsaved) = view.unsaved(from)?.filter(|unsaved| unsaved.buffer.version == seen.version) {
        *size = unsaved.text.len() as u64;
        *content = Content::Bytes(unsaved.text.clone());
    }
    Ok(())
}

/// What a commit finds where unsaved text was seen.
fn saved(view: &View<'_>, path: &RelPath, expect: &mut Expect) -> Result<(), Failure> {
    if let Expect::File(seen) = expect {
        *seen = saved_as(view, path, *seen)?;
    }
    Ok(())
}

fn saved_as(view: &View<'_>, path: &RelPath, seen: Seen) -> Result<Seen, Failure> {
    let unsaved = view.unsaved(path)?.filter(|unsaved| unsaved.buffer.version == seen.version);
    Ok(unsaved.map_or(seen, |unsaved| unsaved.saved))
}

/// Refuses to take away a file that somebody types into, or a tree with one in it.
fn refuse_unsaved(view: &View<'_>, top: &RelPath, what: &str) -> Result<(), Failure> {
    for path in view.open_within(top)? {
        if let Some(unsaved) = view.unsaved(&path)? {
            return Err(refused(view, &unsaved.buffer, what, &[]));
        }
    }
    Ok(())
}

/// The buffers and drafts of what moves go along.
fn carried(view: &View<'_>, from: &RelPath, to: &RelPath) -> Result<Vec<BufferStep>, Failure> {
    let mut steps = Vec::new();
    for buffer in view.buffers()? {
        if let Some(rest) = buffer.path.below(from) {
            let becomes = Becomes::Moved(to.append(&rest)?);
            steps.push(BufferStep { id: buffer.id, revision: buffer.revision, becomes });
        }
    }
    Ok(steps)
}

fn refused(view: &View<'_>, buffer: &Buffer, what: &str, ranges: &[Range<usize>]) -> Failure {
    let path = &buffer.path;
    if !view.may_read(path) {
        return Failure::new(Kind::Conflict, format!("{path} cannot be {what} now; nothing was changed"))
            .fact("path", path.to_string());
    }
    let owner = &buffer.owner;
    let lines: Vec<[usize; 2]> = ranges
        .iter()
        .take(limits::FAILURE_PLACES_MAX)
        .map(|range| [range.start + 1, range.end.max(range.start + 1)])
        .collect();
    let spans: Vec<String> = lines.iter().map(|[from, to]| span(*from, *to)).collect();
    let place = if spans.is_empty() { String::new() } else { format!(", in lines {}", spans.join(", ")) };
    let detail = format!(
        "{path} cannot be {what}: {owner} has unsaved text there{place}; nothing was changed and nothing lost"
    );
    let hint = match spans.is_empty() {
        true => format!("ask {owner} to save or close {path}"),
        false => format!("read {path} and leave those lines as they are, or ask {owner} to save it"),
    };
    Failure::new(Kind::Conflict, detail)
        .hint(hint)
        .fact("path", path.to_string())
        .fact("owner", owner.clone())
        .fact("version", buffer.version.to_string())
        .fact("lines", lines.iter().map(|span| span.to_vec()).collect::<Vec<_>>())
}
