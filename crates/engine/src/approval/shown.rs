//! A plan as people see it before they answer: what happens to which place, how large it is, and the difference as far as
//! it can be shown. Whatever is left out is said.

use std::borrow::Cow;

use path::RelPath;
use serde_json::{Map, Value, json};
use text::{
    diff::summary,
    unified::{Labels, unified},
};

use crate::{
    limits,
    ops::text_of,
    plan::{Change, Content, Expect, Plan, Tree},
    version::Version,
    view::View,
    workspace::Want,
};

/// The plan as JSON.
pub(crate) fn shown(view: &View<'_>, plan: &Plan) -> Value {
    let mut lines_left = limits::APPROVAL_DIFF_LINES_MAX;
    let changes: Vec<Value> = plan
        .changes
        .iter()
        .take(limits::APPROVAL_CHANGES_SHOWN)
        .map(|change| Value::Object(one(view, change, &mut lines_left)))
        .collect();
    let left_out = plan.changes.len() - changes.len();
    let mut whole = json!({ "changes": changes });
    if left_out > 0 {
        whole["left_out"] = format!("{left_out} more changes are part of this plan").into();
    }
    whole
}

fn one(view: &View<'_>, change: &Change, lines_left: &mut usize) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    match change {
        Change::Put { path, expect, content, version, size, .. } => {
            let fresh = matches!(expect, Expect::Absent);
            put("change", if fresh { "create" } else { "modify" }.into());
            put("path", path.to_string().into());
            put("size", (*size).into());
            put("version", version.to_string().into());
            for (name, value) in difference(view, path, content, *size, fresh, lines_left) {
                put(name, value);
            }
        }
        Change::MakeDirectory { path, .. } => {
            put("change", "make_dir".into());
            put("path", path.to_string().into());
        }
        Change::MakeLink { path, target } => {
            put("change", "make_link".into());
            put("path", path.to_string().into());
            put("target", String::from_utf8_lossy(target).into());
        }
        Change::Move { from, to, over, tree, .. } => {
            put("change", "move".into());
            put("path", from.to_string().into());
            put("to", to.to_string().into());
            put("replaces", (!matches!(over, Expect::Absent)).into());
            amount(tree, &mut put);
        }
        Change::Remove { path, tree, .. } => {
            put("change", "remove".into());
            put("path", path.to_string().into());
            amount(tree, &mut put);
        }
        Change::RemoveDirectory { path } => {
            put("change", "remove_dir".into());
            put("path", path.to_string().into());
        }
        Change::Restore { trash, path, tree } => {
            put("change", "restore".into());
            put("path", path.to_string().into());
            put("trash", trash.clone().into());
            amount(tree, &mut put);
        }
    }
    fields
}

fn amount(tree: &Tree, put: &mut dyn FnMut(&str, Value)) {
    put("files", tree.files.into());
    put("bytes", tree.bytes.into());
}

/// What a file holds now and would hold then.
fn difference(
    view: &View<'_>,
    path: &RelPath,
    content: &Content,
    size: u64,
    fresh: bool,
    lines_left: &mut usize,
) -> Vec<(&'static str, Value)> {
    let note = |text: &str| vec![("diff_note", Value::from(text))];
    if !view.may_read(path) {
        return note("the caller may not read this file, so the difference is not shown");
    }
    let limit_bytes = limits::APPROVAL_DIFF_BYTES_MAX;
    if size > limit_bytes {
        return note("too large to compare");
    }
    let old = if fresh {
        Vec::new()
    } else {
        match view.workspace().read(path, Want::Whole { limit_bytes }) {
            Ok(file) => file.bytes,
            Err(_) => return note("the present file is too large to compare"),
        }
    };
    let Some(new) = bytes_of(view, content) else { return note("the new bytes cannot be shown") };
    let (Some(before), Some(after)) = (text_of(&old), text_of(&new)) else {
        return note("not text");
    };
    let name = path.to_string();
    let labels = Labels { old: if fresh { "nothing" } else { &name }, new: &name };
    let found = unified(&before, &after, labels, limits::DIFF_CONTEXT_LINES, *lines_left);
    let changed = summary(&before, &after);
    *lines_left = lines_left.saturating_sub(found.text.lines().count());
    let mut fields = vec![
        ("size_before", Value::from(old.len())),
        ("added", changed.added.into()),
        ("removed", changed.removed.into()),
        ("diff", found.text.into()),
    ];
    if found.omitted_lines > 0 {
        fields.push(("diff_note", format!("{} more lines are not shown", found.omitted_lines).into()));
    }
    fields
}

fn bytes_of<'c>(view: &View<'_>, content: &'c Content) -> Option<Cow<'c, [u8]>> {
    let whole = Want::Whole { limit_bytes: limits::APPROVAL_DIFF_BYTES_MAX };
    match content {
        Content::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
        Content::Kept(version) => kept(view, version).map(Cow::Owned),
        Content::CopyOf(path, _) => view.read(path, whole).ok().map(|file| Cow::Owned(file.bytes)),
    }
}

fn kept(view: &View<'_>, version: &Version) -> Option<Vec<u8>> {
    view.workspace().kept(version).ok().flatten()
}
