//! The plan preview of an approval request: each change with its path, size and diff. Anything omitted is counted or
//! explained.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use stead_path::RelPath;
use stead_text::{
    diff::diff_stat,
    unified::{DiffLabels, unified_diff},
};

use crate::{
    call_context::CallContext,
    call_options::CallOptions,
    limits,
    ops::{decode_diff_text, file_kind_name},
    plan::{CommitExpectation, FileKind, Plan, PlannedChange, PlannedContent, TreeSummary},
    version::Version,
    workspace::BytesToRead,
};

/// The diff label of a file that does not exist.
const NOTHING_TO_READ: &str = "nothing";
const READ_OPERATION: &str = "read";
const HOUR_MS: i64 = 60 * 60 * 1000;

pub(crate) fn preview_plan(context: &CallContext<'_>, plan: &Plan) -> Value {
    let mut lines_left = limits::APPROVAL_DIFF_LINES_MAX;
    let changes: Vec<Value> = plan
        .changes
        .iter()
        .take(limits::APPROVAL_CHANGES_SHOWN_MAX)
        .map(|change| Value::Object(preview_change(context, change, &mut lines_left)))
        .collect();
    let left_out = plan.changes.len() - changes.len();
    let mut whole = json!({ "changes": changes });
    if left_out > 0 {
        whole["left_out"] = format!("{left_out} more changes are part of this plan").into();
    }
    whole
}

fn preview_change(context: &CallContext<'_>, change: &PlannedChange, lines_left: &mut usize) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    match change {
        PlannedChange::Put { path, expectation, content, version, size, .. } => {
            let fresh = matches!(expectation, CommitExpectation::Absent);
            put("change", if fresh { "create" } else { "modify" }.into());
            put("path", path.to_string().into());
            put("size", (*size).into());
            put("version", version.to_string().into());
            let new = NewFileContent { content, size: *size };
            for (name, value) in preview_diff(context, path, fresh, &new, lines_left) {
                put(name, value);
            }
        }
        PlannedChange::MakeDirectory { path, .. } => {
            put("change", "make_dir".into());
            put("path", path.to_string().into());
        }
        PlannedChange::MakeLink { path, target } => {
            put("change", "make_link".into());
            put("path", path.to_string().into());
            put("target", String::from_utf8_lossy(target).into());
        }
        PlannedChange::Move { from, to, replaced, tree, .. } => {
            put("change", "move".into());
            put("path", from.to_string().into());
            put("to", to.to_string().into());
            put("replaces", (!matches!(replaced, CommitExpectation::Absent)).into());
            add_tree_size(tree, &mut put);
        }
        PlannedChange::Remove { path, expectation, retain_until_ms: keep_until_ms, tree } => {
            put("change", "remove".into());
            put("type", file_kind_name(tree.kind).into());
            put("path", path.to_string().into());
            add_tree_size(tree, &mut put);
            let kept_ms = keep_until_ms.saturating_sub(context.workspace().now_ms()).max(0);
            // Rounded to the nearest hour, because some time has passed since planning.
            put("recoverable_hours", ((kept_ms + HOUR_MS / 2) / HOUR_MS).into());
            for (name, value) in preview_removed_content(context, path, expectation, tree, lines_left) {
                put(name, value);
            }
        }
        PlannedChange::RemoveDirectory { path } => {
            put("change", "remove_dir".into());
            put("path", path.to_string().into());
        }
        PlannedChange::Restore { trash, path, tree } => {
            put("change", "restore".into());
            put("path", path.to_string().into());
            put("trash", trash.clone().into());
            add_tree_size(tree, &mut put);
        }
    }
    fields
}

fn add_tree_size(tree: &TreeSummary, put: &mut dyn FnMut(&str, Value)) {
    put("files", tree.files.into());
    put("bytes", tree.bytes.into());
}

/// The content of a removed entry: the text of a file, the files of a directory.
fn preview_removed_content(
    context: &CallContext<'_>,
    path: &RelPath,
    expectation: &CommitExpectation,
    tree: &TreeSummary,
    lines_left: &mut usize,
) -> Vec<(&'static str, Value)> {
    match (tree.kind, expectation) {
        (FileKind::File, CommitExpectation::File(seen)) => {
            let mut fields = vec![("version", Value::from(seen.version.to_string()))];
            fields.extend(match read_current_bytes(context, path) {
                Ok(old) => diff_fields(path, &old, None, lines_left),
                Err(why) => note_field(why),
            });
            fields
        }
        (FileKind::Directory, _) => preview_directory(context, path),
        (FileKind::Link, _) => match context.workspace().read_link(path) {
            Ok(target) => vec![("target", String::from_utf8_lossy(&target).into())],
            Err(_) => note_field("the target of the symlink cannot be read"),
        },
        (FileKind::File | FileKind::Special, _) => Vec::new(),
    }
}

/// The first files of a directory.
fn preview_directory(context: &CallContext<'_>, path: &RelPath) -> Vec<(&'static str, Value)> {
    let unseen = || vec![("holds_note", Value::from("its files cannot be listed"))];
    let Ok(Some(node)) = context.workspace().stat(path) else { return unseen() };
    // Rules about removal do not restrict reading: files that the caller could read are shown.
    let plain = CallOptions::default();
    let reader = context.for_other_caller(context.caller, READ_OPERATION, &plain);
    let (mut shown, mut hidden, mut more) = (Vec::new(), 0_u64, 0_u64);
    let walked = context.walk_skipping_deep_entries(path, node, &mut |entry| {
        if entry.stat.kind == FileKind::Directory {
            return Ok(());
        }
        if !context.may_read(entry.path) && !reader.may_read(entry.path) {
            hidden += 1;
        } else if shown.len() < limits::APPROVAL_FILES_SHOWN_MAX {
            shown.push(json!({ "path": entry.path.to_string(), "size": entry.stat.size }));
        } else {
            more += 1;
        }
        Ok(())
    });
    if walked.is_err() {
        return unseen();
    }
    let mut notes = Vec::new();
    if more > 0 {
        notes.push(format!("{more} more are not shown"));
    }
    if hidden > 0 {
        notes.push(format!("{hidden} that the caller may not read are not shown"));
    }
    let mut fields = vec![("holds", Value::from(shown))];
    fields.extend((!notes.is_empty()).then(|| ("holds_note", notes.join("; ").into())));
    fields
}

fn note_field(text: &str) -> Vec<(&'static str, Value)> {
    vec![("diff_note", text.into())]
}

/// The current content of a file, or the reason for not showing it.
fn read_current_bytes(context: &CallContext<'_>, path: &RelPath) -> Result<Vec<u8>, &'static str> {
    if !context.may_read(path) {
        return Err("the caller may not read this file, so its content is not shown");
    }
    let whole = BytesToRead::Whole { limit_bytes: limits::APPROVAL_DIFF_BYTES_MAX };
    context.workspace().read(path, whole).map(|file| file.bytes).map_err(|_| "the current file is too large to show")
}

struct NewFileContent<'c> {
    content: &'c PlannedContent,
    size: u64,
}

/// The diff between the current and the planned content.
fn preview_diff(
    context: &CallContext<'_>,
    path: &RelPath,
    fresh: bool,
    new: &NewFileContent<'_>,
    lines_left: &mut usize,
) -> Vec<(&'static str, Value)> {
    if !context.may_read(path) {
        return note_field("the caller may not read this file, so the diff is not shown");
    }
    if new.size > limits::APPROVAL_DIFF_BYTES_MAX {
        return note_field("too large to compare");
    }
    let Some(bytes) = planned_bytes(context, new.content) else {
        return note_field("the new content cannot be shown");
    };
    if fresh {
        return diff_fields(path, &[], Some(&bytes), lines_left);
    }
    match read_current_bytes(context, path) {
        Ok(old) => {
            let mut fields = vec![("size_before", Value::from(old.len()))];
            fields.extend(diff_fields(path, &old, Some(&bytes), lines_left));
            fields
        }
        Err(why) => note_field(why),
    }
}

/// The diff of two texts, up to the remaining lines. `new` is `None` for a removed file.
fn diff_fields(path: &RelPath, old: &[u8], new: Option<&[u8]>, lines_left: &mut usize) -> Vec<(&'static str, Value)> {
    let (Some(before), Some(after)) = (decode_diff_text(old), decode_diff_text(new.unwrap_or_default())) else {
        return note_field("not text");
    };
    let name = path.to_string();
    let labels = DiffLabels {
        old: if old.is_empty() && new.is_some() { NOTHING_TO_READ } else { &name },
        new: if new.is_some() { &name } else { NOTHING_TO_READ },
    };
    let found = unified_diff(&before, &after, labels, limits::DIFF_CONTEXT_LINES, *lines_left);
    let changed = diff_stat(&before, &after);
    *lines_left = lines_left.saturating_sub(found.text.lines().count());
    let mut fields =
        vec![("added", Value::from(changed.added)), ("removed", changed.removed.into()), ("diff", found.text.into())];
    if found.omitted_lines > 0 {
        fields.push(("diff_note", format!("{} more lines are not shown", found.omitted_lines).into()));
    }
    fields
}

fn planned_bytes<'c>(context: &CallContext<'_>, content: &'c PlannedContent) -> Option<Cow<'c, [u8]>> {
    let whole = BytesToRead::Whole { limit_bytes: limits::APPROVAL_DIFF_BYTES_MAX };
    match content {
        PlannedContent::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
        PlannedContent::Retained(version) => retained_bytes(context, version).map(Cow::Owned),
        PlannedContent::CopyOf(path, _) => context.read(path, whole).ok().map(|file| Cow::Owned(file.bytes)),
    }
}

fn retained_bytes(context: &CallContext<'_>, version: &Version) -> Option<Vec<u8>> {
    context.workspace().retained_bytes(version).ok().flatten()
}
