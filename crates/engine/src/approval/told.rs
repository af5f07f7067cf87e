//! A shown plan in words, for whoever has to answer: the same on every face. Reads what [`super::shown()`] made and adds
//! nothing to it.

use serde_json::Value;
use text::visible::visible_line;

/// The whole plan, line by line.
pub fn plan_lines(shown: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for change in items(shown, "changes") {
        lines.push(headline(change));
        for held in items(change, "holds") {
            let size = held["size"].as_u64().map(|size| format!(" ({})", bytes(size))).unwrap_or_default();
            lines.push(format!("  holds {}{size}", visible_line(word(held, "path"))));
        }
        for note in ["holds_note", "diff_note"] {
            lines.extend(change[note].as_str().map(|note| format!("  ({note})")));
        }
        lines.extend(word(change, "diff").lines().map(|line| format!("  {line}")));
    }
    lines.extend(shown["left_out"].as_str().map(|note| format!("({note})")));
    let places = items(shown, "places").filter_map(Value::as_str);
    lines.extend(places.map(|place| format!("looks at {}", visible_line(place))));
    lines
}

/// The plan in a few words: its first change, and how many more there are.
pub fn plan_brief(shown: &Value) -> String {
    let mut changes = items(shown, "changes");
    let Some(first) = changes.next() else {
        let mut places = items(shown, "places").filter_map(Value::as_str);
        return places.next().map(|place| format!("look at {}", visible_line(place))).unwrap_or_default();
    };
    let more = changes.count();
    let left_out = shown.get("left_out").is_some();
    let more = match (more, left_out) {
        (0, false) => String::new(),
        (more, false) => format!(" and {}", counted(more as u64, "more change", "more changes")),
        (more, true) => format!(" and more than {more} more changes"),
    };
    format!("{}{more}", headline(first))
}

fn items<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value[name].as_array().into_iter().flatten()
}

fn word<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

fn bytes(count: u64) -> String {
    counted(count, "byte", "bytes")
}

fn headline(change: &Value) -> String {
    let verb = match word(change, "change") {
        "make_dir" => "make directory",
        "make_link" => "make link",
        "remove_dir" => "remove directory",
        "remove" if change["type"] == "directory" => "remove directory",
        plain => plain,
    };
    let mut line = format!("{verb} {}", visible_line(word(change, "path")));
    for target in ["to", "target"].into_iter().filter_map(|name| change[name].as_str()) {
        line.push_str(&format!(" -> {}", visible_line(target)));
    }
    let facts = facts(change);
    if !facts.is_empty() {
        line.push_str(&format!(" ({})", facts.join("; ")));
    }
    line
}

/// How much it is, and whether it can come back.
fn facts(change: &Value) -> Vec<String> {
    let number = |name: &str| change[name].as_u64();
    let mut facts = Vec::new();
    match (number("size_before"), number("size")) {
        (Some(before), Some(size)) => facts.push(format!("{before} -> {}", bytes(size))),
        (None, Some(size)) => facts.push(bytes(size)),
        (_, None) => {}
    }
    if let (Some(files), Some(size)) = (number("files"), number("bytes")) {
        facts.push(format!("{}, {}", counted(files, "file", "files"), bytes(size)));
    }
    if change["replaces"] == true {
        facts.push("replaces the file that is there, whose content is kept".to_owned());
    }
    if let Some(hours) = number("recoverable_hours") {
        facts.push(format!("can be restored for {}", counted(hours, "hour", "hours")));
    }
    facts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_is_told_in_words() {
        let plan = json!({ "changes": [
            { "change": "remove", "type": "file", "path": "a\u{1b}.txt", "files": 1, "bytes": 1, "recoverable_hours": 24,
              "diff": "-x\n", "diff_note": "2 more lines are not shown" },
            { "change": "remove", "type": "directory", "path": "d", "files": 2, "bytes": 7,
              "holds": [{ "path": "d/b", "size": 3 }], "holds_note": "1 more file is not shown" },
            { "change": "modify", "path": "c", "size": 5, "size_before": 4 },
            { "change": "move", "path": "c", "to": "e", "files": 1, "bytes": 5, "replaces": true },
        ], "left_out": "3 more changes are part of this plan" });
        let lines = plan_lines(&plan);
        assert!(lines[0].starts_with("remove a") && !lines[0].contains('\u{1b}'), "{}", lines[0]);
        assert!(lines[0].ends_with("(1 file, 1 byte; can be restored for 24 hours)"), "{}", lines[0]);
        assert_eq!(lines[1..3], ["  (2 more lines are not shown)", "  -x"]);
        assert_eq!(
            lines[3..6],
            [
                "remove directory d (2 files, 7 bytes)",
                "  holds d/b (3 bytes)",
                "  (1 more file is not shown)"
            ]
        );
        assert_eq!(lines[6], "modify c (4 -> 5 bytes)");
        assert_eq!(
            lines[7],
            "move c -> e (1 file, 5 bytes; replaces the file that is there, whose content is kept)"
        );
        assert_eq!(lines[8], "(3 more changes are part of this plan)");
        assert!(plan_brief(&plan).ends_with(" and more than 3 more changes"), "{}", plan_brief(&plan));
        assert_eq!(plan_brief(&json!({ "changes": [], "places": ["a"] })), "look at a");
        assert_eq!(plan_brief(&json!({ "changes": [{ "change": "create", "path": "x" }] })), "create x");
    }
}
