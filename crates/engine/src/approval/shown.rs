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
    ops::{text_of, type_name},
    plan::{Change, Content, Expect, Plan, Top, Tree},
    terms::Terms,
    version::Version,
    view::View,
    workspace::Want,
};

/// What stands in a difference for a file that is not there.
const NOTHING: &str = "nothing";
/// The operation that looks into a file.
const READ: &str = "read";
/// One hour.
const HOUR_MS: i64 = 60 * 60 * 1000;

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
            let new = New { content, size: *size };
            for (name, value) in difference(view, path, fresh, &new, lines_left) {
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
        Change::Remove { path, expect, keep_until_ms, tree } => {
            put("change", "remove".into());
            put("type", type_name(tree.top).into());
            put("path", path.to_string().into());
            amount(tree, &mut put);
            let kept_ms = keep_until_ms.saturating_sub(view.workspace().now_ms()).max(0);
            // To the nearest hour: some time has passed since it was planned.
            put("recoverable_hours", ((kept_ms + HOUR_MS / 2) / HOUR_MS).into());
            for (name, value) in lost(view, path, expect, tree, lines_left) {
                put(name, value);
            }
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

/// What goes with something that is removed: the text of a file, the names in a directory.
fn lost(
    view: &View<'_>,
    path: &RelPath,
    expect: &Expect,
    tree: &Tree,
    lines_left: &mut usize,
) -> Vec<(&'static str, Value)> {
    match (tree.top, expect) {
        (Top::File, Expect::File(seen)) => {
            let mut fields = vec![("version", Value::from(seen.version.to_string()))];
            fields.extend(match present(view, path) {
                Ok(old) => compared(path, &old, None, lines_left),
                Err(why) => note(why),
            });
            fields
        }
        (Top::Directory, _) => held(view, path),
        (Top::Link, _) => match view.workspace().read_link(path) {
            Ok(target) => vec![("target", String::from_utf8_lossy(&target).into())],
            Err(_) => note("where the link leads cannot be read"),
        },
        (Top::File | Top::Special, _) => Vec::new(),
    }
}

/// The files of a directory, the first of them.
fn held(view: &View<'_>, path: &RelPath) -> Vec<(&'static str, Value)> {
    let unseen = || vec![("holds_note", Value::from("what it holds cannot be listed"))];
    let Ok(Some(node)) = view.workspace().stat(path) else { return unseen() };
    // A rule about removing says nothing about reading: what the caller could read itself is shown.
    let plain = Terms::default();
    let reader = view.of(view.caller, READ, &plain);
    let (mut shown, mut hidden, mut more) = (Vec::new(), 0_u64, 0_u64);
    let walked = view.walk_whole(path, node, &mut |met| {
        if met.node.top == Top::Directory {
            return Ok(());
        }
        if !view.may_read(met.path) && !reader.may_read(met.path) {
            hidden += 1;
        } else if shown.len() < limits::APPROVAL_FILES_SHOWN {
            shown.push(json!({ "path": met.path.to_string(), "size": met.node.size }));
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

fn note(text: &str) -> Vec<(&'static str, Value)> {
    vec![("diff_note", text.into())]
}

/// What a file holds now, or why that is not shown.
fn present(view: &View<'_>, path: &RelPath) -> Result<Vec<u8>, &'static str> {
    if !view.may_read(path) {
        return Err("the caller may not read this file, so its content is not shown");
    }
    let whole = Want::Whole { limit_bytes: limits::APPROVAL_DIFF_BYTES_MAX };
    view.workspace()
        .read(path, whole)
        .map(|file| file.bytes)
        .map_err(|_| "the present file is too large to show")
}

/// What a file is to hold.
struct New<'c> {
    content: &'c Content,
    size: u64,
}

/// What a file holds now and would hold then.
fn difference(
    view: &View<'_>,
    path: &RelPath,
    fresh: bool,
    new: &New<'_>,
    lines_left: &mut usize,
) -> Vec<(&'static str, Value)> {
    if !view.may_read(path) {
        return note("the caller may not read this file, so the difference is not shown");
    }
    if new.size > limits::APPROVAL_DIFF_BYTES_MAX {
        return note("too large to compare");
    }
    let Some(bytes) = bytes_of(view, new.content) else { return note("the new bytes cannot be shown") };
    if fresh {
        return compared(path, &[], Some(&bytes), lines_left);
    }
    match present(view, path) {
        Ok(old) => {
            let mut fields = vec![("size_before", Value::from(old.len()))];
            fields.extend(compared(path, &old, Some(&bytes), lines_left));
            fields
        }
        Err(why) => note(why),
    }
}

/// The difference of two texts, as much of it as fits. Nothing comes where a file is removed.
fn compared(
    path: &RelPath,
    old: &[u8],
    new: Option<&[u8]>,
    lines_left: &mut usize,
) -> Vec<(&'static str, Value)> {
    let (Some(before), Some(after)) = (text_of(old), text_of(new.unwrap_or_default())) else {
        return note("not text");
    };
    let name = path.to_string();
    let labels = Labels {
        old: if old.is_empty() && new.is_some() { NOTHING } else { &name },
        new: if new.is_some() { &name } else { NOTHING },
    };
    let found = unified(&before, &after, labels, limits::DIFF_CONTEXT_LINES, *lines_left);
    let changed = summary(&before, &after);
    *lines_left = lines_left.saturating_sub(found.text.lines().count());
    let mut fields = vec![
        ("added", Value::from(changed.added)),
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
