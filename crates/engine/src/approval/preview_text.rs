//! The plan preview as text, identical for every protocol. Renders the JSON of [`super::preview_plan`] and adds
//! nothing to it.

use serde_json::Value;
use stead_text::visible::escape_deceptive_line;

/// The whole plan, line by line.
pub fn render_plan_lines(preview: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for change in array_items(preview, "changes") {
        lines.push(render_change_headline(change));
        for file in array_items(change, "holds") {
            let size = file["size"].as_u64().map(|size| format!(" ({})", render_byte_count(size))).unwrap_or_default();
            lines.push(format!("  holds {}{size}", escape_deceptive_line(str_field(file, "path"))));
        }
        for note in ["holds_note", "diff_note"] {
            lines.extend(change[note].as_str().map(|note| format!("  ({note})")));
        }
        lines.extend(str_field(change, "diff").lines().map(|line| format!("  {line}")));
    }
    lines.extend(preview["left_out"].as_str().map(|note| format!("({note})")));
    let paths = array_items(preview, "places").filter_map(Value::as_str);
    lines.extend(paths.map(|path| format!("looks at {}", escape_deceptive_line(path))));
    lines
}

/// The plan in a few words: its first change and the number of further changes.
pub fn summarize_plan(preview: &Value) -> String {
    let mut changes = array_items(preview, "changes");
    let Some(first) = changes.next() else {
        let mut paths = array_items(preview, "places").filter_map(Value::as_str);
        return paths.next().map(|path| format!("look at {}", escape_deceptive_line(path))).unwrap_or_default();
    };
    let more = changes.count();
    let left_out = preview.get("left_out").is_some();
    let more = match (more, left_out) {
        (0, false) => String::new(),
        (more, false) => format!(" and {}", format_count(more as u64, "more change", "more changes")),
        (more, true) => format!(" and more than {more} more changes"),
    };
    format!("{}{more}", render_change_headline(first))
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
    let facts = render_change_facts(change);
    if !facts.is_empty() {
        line.push_str(&format!(" ({})", facts.join("; ")));
    }
    line
}

/// Size and recoverability of a change.
fn render_change_facts(change: &Value) -> Vec<String> {
    let number = |name: &str| change[name].as_u64();
    let mut facts = Vec::new();
    match (number("size_before"), number("size")) {
        (Some(before), Some(size)) => facts.push(format!("{before} -> {}", render_byte_count(size))),
        (None, Some(size)) => facts.push(render_byte_count(size)),
        (_, None) => {}
    }
    if let (Some(files), Some(size)) = (number("files"), number("bytes")) {
        facts.push(format!("{}, {}", format_count(files, "file", "files"), render_byte_count(size)));
    }
    if change["replaces"] == true {
        facts.push("replaces an existing file (its content stays in the history)".to_owned());
    }
    if let Some(hours) = number("recoverable_hours") {
        facts.push(format!("can be restored for {}", format_count(hours, "hour", "hours")));
    }
    facts
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
        let lines = render_plan_lines(&plan);
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
        assert!(summarize_plan(&plan).ends_with(" and more than 3 more changes"), "{}", summarize_plan(&plan));
        assert_eq!(summarize_plan(&json!({ "changes": [], "places": ["a"] })), "look at a");
        assert_eq!(summarize_plan(&json!({ "changes": [{ "change": "create", "path": "x" }] })), "create x");
    }
}
