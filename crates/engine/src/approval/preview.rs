//! The plan preview of an approval request: each change with its path, size and diff, as stored JSON and as text. A
//! shortened plan preview says how much was omitted or why. The text form of a plan preview is the same in every
//! protocol and contains only information of the JSON form.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json};
use stead_path::RelPath;
use stead_text::{
    diff::diff_stat,
    unified::{DiffLabels, unified_diff},
    visible::escape_deceptive_line,
};

use crate::{
    call_context::{CallContext, TooDeepEntryPolicy},
    call_options::CallOptions,
    limits,
    operation::ResolvedTarget,
    ops::{decode_diff_text, file_kind_name},
    plan::{CommitExpectation, FileKind, Plan, PlannedChange, PlannedContent, TreeSummary},
    policy::{Policy, PolicyVerdictReason},
    tree::BytesToRead,
};

const NO_FILE_LABEL: &str = "nothing";
const HOUR_MS: i64 = 60 * 60 * 1000;

type ApprovalPreviewFields = Vec<(&'static str, Value)>;

/// The planned changes of a call that needs approval, in the form that the approval request stores.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[schemars(extend("type" = "object"))]
pub struct ApprovalPlanPreview(Value);

pub(crate) fn preview_reads(targets: &[ResolvedTarget]) -> ApprovalPlanPreview {
    let paths: Vec<String> = targets.iter().map(|target| target.path.to_string()).collect();
    ApprovalPlanPreview(json!({ "changes": [], "places": paths }))
}

pub(crate) fn preview_plan(context: &CallContext<'_>, plan: &Plan) -> ApprovalPlanPreview {
    let mut lines_left = limits::APPROVAL_DIFF_LINES_MAX;
    let changes: Vec<Value> = plan
        .changes
        .iter()
        .take(limits::APPROVAL_CHANGES_SHOWN_MAX)
        .map(|change| preview_change(context, change, &mut lines_left))
        .collect();
    let omitted = plan.changes.len() - changes.len();
    let mut preview = json!({ "changes": changes });
    if omitted > 0 {
        preview["left_out"] = format!("{omitted} more changes are part of this plan").into();
    }
    ApprovalPlanPreview(preview)
}

fn preview_change(context: &CallContext<'_>, change: &PlannedChange, lines_left: &mut usize) -> Value {
    let (mut preview, further) = match change {
        PlannedChange::Put { path, expectation, content, version, size, .. } => {
            let is_new = *expectation == CommitExpectation::Absent;
            let preview = json!({
                "change": if is_new { "create" } else { "modify" },
                "path": path.to_string(),
                "size": size,
                "version": version.to_string(),
            });
            (preview, preview_diff(context, path, is_new, (content, *size), lines_left))
        }
        PlannedChange::MakeDirectory { path, .. } => {
            (json!({ "change": "make_dir", "path": path.to_string() }), Vec::new())
        }
        PlannedChange::MakeLink { path, target } => {
            let target = String::from_utf8_lossy(target);
            (json!({ "change": "make_link", "path": path.to_string(), "target": target }), Vec::new())
        }
        PlannedChange::Move { from, to, replaced, tree, .. } => {
            let replaces = *replaced != CommitExpectation::Absent;
            let (from, to) = (from.to_string(), to.to_string());
            (json!({ "change": "move", "path": from, "to": to, "replaces": replaces }), tree_size_fields(tree))
        }
        PlannedChange::Remove { path, expectation, retain_until_ms, tree } => {
            let retained_ms = retain_until_ms.saturating_sub(context.workspace().now_ms()).max(0);
            let preview = json!({ "change": "remove", "type": file_kind_name(tree.kind), "path": path.to_string() });
            let mut fields = tree_size_fields(tree);
            // The time is rounded to the nearest hour, because some time has passed since planning.
            fields.push(("recoverable_hours", ((retained_ms + HOUR_MS / 2) / HOUR_MS).into()));
            fields.extend(preview_removed_content(context, path, expectation, tree, lines_left));
            (preview, fields)
        }
        PlannedChange::RemoveDirectory { path } => {
            (json!({ "change": "remove_dir", "path": path.to_string() }), Vec::new())
        }
        PlannedChange::Restore { trash, path, tree } => {
            (json!({ "change": "restore", "path": path.to_string(), "trash": trash }), tree_size_fields(tree))
        }
    };
    for (name, value) in further {
        preview[name] = value;
    }
    preview
}

fn tree_size_fields(tree: &TreeSummary) -> ApprovalPreviewFields {
    vec![("files", tree.files.into()), ("bytes", tree.bytes.into())]
}

fn preview_removed_content(
    context: &CallContext<'_>,
    path: &RelPath,
    expectation: &CommitExpectation,
    tree: &TreeSummary,
    lines_left: &mut usize,
) -> ApprovalPreviewFields {
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

fn preview_directory(context: &CallContext<'_>, path: &RelPath) -> ApprovalPreviewFields {
    let unlistable = || vec![("holds_note", Value::from("the files of this directory cannot be listed"))];
    let Ok(Some(stat)) = context.workspace().stat(path) else { return unlistable() };
    // A policy rule about removal must not hide files from the preview that the caller could read in another call.
    let plain = CallOptions::default();
    let reader = context.for_other_caller(context.caller, "read", &plain);
    let (mut shown, mut hidden, mut more) = (Vec::new(), 0_u64, 0_u64);
    let walked = context.walk(path, stat, TooDeepEntryPolicy::Skip, &mut |entry| {
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
        return unlistable();
    }
    let mut notes = Vec::new();
    if more > 0 {
        notes.push(format_count(more, "more file is not shown", "more files are not shown"));
    }
    if hidden > 0 {
        notes.push(format_count(
            hidden,
            "file that the caller may not read is not shown",
            "files that the caller may not read are not shown",
        ));
    }
    let mut fields = vec![("holds", Value::from(shown))];
    fields.extend((!notes.is_empty()).then(|| ("holds_note", notes.join("; ").into())));
    fields
}

fn note_field(text: &str) -> ApprovalPreviewFields {
    vec![("diff_note", text.into())]
}

fn read_current_bytes(context: &CallContext<'_>, path: &RelPath) -> Result<Vec<u8>, &'static str> {
    if !context.may_read(path) {
        return Err("the caller may not read this file, so its content is not shown");
    }
    let whole = BytesToRead::Whole { limit_bytes: limits::APPROVAL_DIFF_BYTES_MAX };
    context.workspace().read(path, whole).map(|file| file.bytes).map_err(|_| "the current file is too large to show")
}

fn preview_diff(
    context: &CallContext<'_>,
    path: &RelPath,
    is_new: bool,
    (content, size): (&PlannedContent, u64),
    lines_left: &mut usize,
) -> ApprovalPreviewFields {
    if !context.may_read(path) {
        return note_field("the caller may not read this file, so the diff is not shown");
    }
    if size > limits::APPROVAL_DIFF_BYTES_MAX {
        return note_field("the new content is too large to compare");
    }
    let Some(bytes) = planned_bytes(context, path, content) else {
        return note_field("the new content cannot be shown");
    };
    if is_new {
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

fn diff_fields(path: &RelPath, old: &[u8], new: Option<&[u8]>, lines_left: &mut usize) -> ApprovalPreviewFields {
    let (Some(before), Some(after)) = (decode_diff_text(old), decode_diff_text(new.unwrap_or_default())) else {
        return note_field("the content is not text");
    };
    let name = path.to_string();
    let labels = DiffLabels {
        old: if old.is_empty() && new.is_some() { NO_FILE_LABEL } else { &name },
        new: if new.is_some() { &name } else { NO_FILE_LABEL },
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

fn planned_bytes<'c>(context: &CallContext<'_>, path: &RelPath, content: &'c PlannedContent) -> Option<Cow<'c, [u8]>> {
    let whole = BytesToRead::Whole { limit_bytes: limits::APPROVAL_DIFF_BYTES_MAX };
    match content {
        PlannedContent::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
        PlannedContent::Retained(version) => {
            context.workspace().retained_bytes(path, version).ok().flatten().map(Cow::Owned)
        }
        PlannedContent::CopyOf(from, _) => context.read(from, whole).ok().map(|file| Cow::Owned(file.bytes)),
    }
}

impl ApprovalPlanPreview {
    /// Parses the stored preview of an approval request. The preview is empty if the stored text is invalid.
    pub fn parse(stored: &str) -> Self {
        Self(serde_json::from_str(stored).unwrap_or_default())
    }

    /// The stored form of the preview, with the reason why the plan needs approval.
    pub(super) fn with_cause(mut self, reason: PolicyVerdictReason, policy: &Policy) -> String {
        self.0["cause"] = match reason {
            PolicyVerdictReason::ToolDefault => json!({ "by": "definition" }),
            PolicyVerdictReason::LayerDefault { .. } => json!({ "by": "default" }),
            PolicyVerdictReason::Rule { layer, rule } => {
                json!({ "by": "rule", "line": policy.rule(layer, rule).map(|rule| rule.line) })
            }
            PolicyVerdictReason::ProtectedPath(_) => json!({ "by": "protected" }),
            PolicyVerdictReason::RateLimit { .. } => json!({ "by": "rate" }),
            PolicyVerdictReason::ApprovalCall => json!({ "by": "answering" }),
        };
        self.0.to_string()
    }

    /// Renders the plan preview of an approval request as lines of text.
    pub fn render_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for change in array_items(&self.0, "changes") {
            lines.push(render_change_headline(change));
            for file in array_items(change, "holds") {
                let size = file["size"].as_u64().map(|size| format!(" ({})", render_byte_count(size)));
                let path = escape_deceptive_line(str_field(file, "path"));
                lines.push(format!("  holds {path}{}", size.unwrap_or_default()));
            }
            for note in ["holds_note", "diff_note"] {
                lines.extend(change[note].as_str().map(|note| format!("  ({note})")));
            }
            lines.extend(str_field(change, "diff").lines().map(|line| format!("  {line}")));
        }
        lines.extend(self.0["left_out"].as_str().map(|note| format!("({note})")));
        lines.extend(self.paths_read().map(|path| format!("looks at {}", escape_deceptive_line(path))));
        lines
    }

    /// Summarizes the plan preview of an approval request: the first change and the number of further changes.
    pub fn summarize(&self) -> String {
        let mut changes = array_items(&self.0, "changes");
        let Some(first) = changes.next() else {
            let first = self.paths_read().next();
            return first.map(|path| format!("look at {}", escape_deceptive_line(path))).unwrap_or_default();
        };
        let more = match (changes.count(), self.0.get("left_out").is_some()) {
            (0, false) => String::new(),
            (more, false) => format!(" and {}", format_count(more as u64, "more change", "more changes")),
            (more, true) => format!(" and more than {more} more changes"),
        };
        format!("{}{more}", render_change_headline(first))
    }

    fn paths_read(&self) -> impl Iterator<Item = &str> {
        array_items(&self.0, "places").filter_map(Value::as_str)
    }
}

fn array_items<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value[name].as_array().into_iter().flatten()
}

fn str_field<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn format_count(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

fn render_byte_count(count: u64) -> String {
    format_count(count, "byte", "bytes")
}

fn render_change_headline(change: &Value) -> String {
    let verb = match str_field(change, "change") {
        "make_dir" => "make directory",
        "make_link" => "make link",
        "remove_dir" => "remove directory",
        "remove" if change["type"] == "directory" => "remove directory",
        plain => plain,
    };
    let mut line = format!("{verb} {}", escape_deceptive_line(str_field(change, "path")));
    for target in ["to", "target"].into_iter().filter_map(|name| change[name].as_str()) {
        line.push_str(&format!(" -> {}", escape_deceptive_line(target)));
    }
    let properties = render_change_properties(change);
    if !properties.is_empty() {
        line.push_str(&format!(" ({})", properties.join("; ")));
    }
    line
}

fn render_change_properties(change: &Value) -> Vec<String> {
    let number = |name: &str| change[name].as_u64();
    let mut properties = Vec::new();
    match (number("size_before"), number("size")) {
        (Some(before), Some(size)) => properties.push(format!("{before} -> {}", render_byte_count(size))),
        (None, Some(size)) => properties.push(render_byte_count(size)),
        (_, None) => {}
    }
    if let (Some(files), Some(size)) = (number("files"), number("bytes")) {
        properties.push(format!("{}, {}", format_count(files, "file", "files"), render_byte_count(size)));
    }
    if change["replaces"] == true {
        properties.push("replaces an existing file (its content stays in the history)".to_owned());
    }
    if let Some(hours) = number("recoverable_hours") {
        properties.push(format!("can be restored for {}", format_count(hours, "hour", "hours")));
    }
    properties
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plan_preview_renders_as_text() {
        let plan = json!({ "changes": [
            { "change": "remove", "type": "file", "path": "a\u{1b}.txt", "files": 1, "bytes": 1, "recoverable_hours": 24,
              "diff": "-x\n", "diff_note": "2 more lines are not shown" },
            { "change": "remove", "type": "directory", "path": "d", "files": 2, "bytes": 7,
              "holds": [{ "path": "d/b", "size": 3 }], "holds_note": "1 more file is not shown" },
            { "change": "modify", "path": "c", "size": 5, "size_before": 4 },
            { "change": "move", "path": "c", "to": "e", "files": 1, "bytes": 5, "replaces": true },
        ], "left_out": "3 more changes are part of this plan" });
        let plan = ApprovalPlanPreview(plan);
        let lines = plan.render_lines();
        assert!(lines[0].starts_with("remove a") && !lines[0].contains('\u{1b}'), "{}", lines[0]);
        assert!(lines[0].ends_with("(1 file, 1 byte; can be restored for 24 hours)"), "{}", lines[0]);
        assert_eq!(lines[1..3], ["  (2 more lines are not shown)", "  -x"]);
        assert_eq!(
            lines[3..6],
            ["remove directory d (2 files, 7 bytes)", "  holds d/b (3 bytes)", "  (1 more file is not shown)"]
        );
        assert_eq!(lines[6], "modify c (4 -> 5 bytes)");
        assert_eq!(
            lines[7],
            "move c -> e (1 file, 5 bytes; replaces an existing file (its content stays in the history))"
        );
        assert_eq!(lines[8], "(3 more changes are part of this plan)");
        assert!(plan.summarize().ends_with(" and more than 3 more changes"), "{}", plan.summarize());
        for (plan, summary) in [
            (json!({ "changes": [], "places": ["a"] }), "look at a"),
            (json!({ "changes": [{ "change": "create", "path": "x" }] }), "create x"),
        ] {
            assert_eq!(ApprovalPlanPreview(plan).summarize(), summary);
        }
    }
}
