//! `list_directory`: the entries of a directory, level by level, directories before files before links.

use std::cmp::Ordering;

use engine::Answer;
use serde_json::{Map, Value, json};

use super::{
    Scene, collation,
    envelope::{Envelope, Fields},
};

/// Levels of a recursive listing when nothing is said.
const DEPTH_DEFAULT: u64 = 8;
/// Most levels of any listing.
const DEPTH_MAX: u64 = 32;
/// Most entries of any listing.
pub(super) const ENTRIES_MAX: usize = 5000;

/// How names are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// By their bytes.
    Bytes,
    /// As the origin's collation does.
    Collated,
}

impl Order {
    pub(super) fn compare(self, a: &str, b: &str) -> Ordering {
        match self {
            Order::Bytes => a.as_bytes().cmp(b.as_bytes()),
            Order::Collated => collation::compare(a, b),
        }
    }
}

/// One entry.
struct Entry {
    name: String,
    below: String,
    kind: &'static str,
    size: u64,
    modified: String,
    depth: usize,
}

fn depth(scene: &Scene<'_>) -> u64 {
    match scene.asked.is_set("recursive") {
        true => scene.asked.number("maxDepth").unwrap_or(DEPTH_DEFAULT).min(DEPTH_MAX),
        false => 1,
    }
}

pub(super) fn arguments(scene: &Scene<'_>) -> Map<String, Value> {
    let all = scene.asked.is_set("includeHidden");
    super::object(json!({ "path": scene.spot(), "depth": depth(scene), "all": all }))
}

pub(super) fn reply(scene: &Scene<'_>, answer: &Answer) -> Envelope {
    let top = answer.json.get("path").and_then(Value::as_str).unwrap_or(".");
    let listed = answer.json.get("entries").and_then(Value::as_array);
    let mut entries: Vec<Entry> = listed.into_iter().flatten().map(|listed| entry(top, listed)).collect();
    entries.sort_by(|a, b| {
        let rank = |entry: &Entry| {
            (entry.depth, ["directory", "file", "symlink"].iter().position(|kind| *kind == entry.kind))
        };
        rank(a)
            .cmp(&rank(b))
            .then_with(|| scene.order.compare(&a.name, &b.name))
            .then_with(|| a.below.cmp(&b.below))
    });
    let truncated = answer.json.get("truncated").and_then(Value::as_bool).unwrap_or_default();
    let path = scene.spot();
    let output = match entries.len() {
        0 => format!("Listed {path} — empty directory."),
        count => {
            let noun = if count == 1 { "entry" } else { "entries" };
            let mark = if truncated { " (truncated)" } else { "" };
            let lines: Vec<String> = entries.iter().map(line).collect();
            format!("Listed {path} — {count} {noun}{mark}\n{}", lines.join("\n"))
        }
    };
    let objects: Vec<Value> = entries.into_iter().map(object).collect();
    let data = Fields::new()
        .with("path", path)
        .with("entries", objects)
        .with("maxDepth", depth(scene))
        .with("truncated", truncated);
    Envelope::done(output, data)
}

/// The published word for what an entry is.
pub(super) fn kind_word(listed: &Value) -> &'static str {
    match listed["type"].as_str() {
        Some("directory") => "directory",
        Some("link") => "symlink",
        Some(_) | None => "file",
    }
}

fn entry(top: &str, listed: &Value) -> Entry {
    let path = listed["path"].as_str().unwrap_or_default();
    let below = match top {
        "." => path,
        top => path.strip_prefix(top).map_or(path, |rest| rest.trim_start_matches('/')),
    };
    let kind = kind_word(listed);
    let size = if kind == "file" { listed["size"].as_u64().unwrap_or_default() } else { 0 };
    Entry {
        name: below.rsplit('/').next().unwrap_or(below).to_owned(),
        below: below.to_owned(),
        kind,
        size,
        modified: listed["modified"].as_str().unwrap_or(EPOCH).to_owned(),
        depth: below.split('/').count(),
    }
}

/// The time of what has none.
const EPOCH: &str = "1970-01-01T00:00:00.000Z";

fn line(entry: &Entry) -> String {
    let mark = match entry.kind {
        "directory" => "/",
        "symlink" => " -> (symlink)",
        _ => "",
    };
    format!("{}{}{mark}", "  ".repeat(entry.depth.saturating_sub(1)), entry.name)
}

fn object(entry: Entry) -> Value {
    Fields::new()
        .with("name", entry.name)
        .with("relativePath", entry.below)
        .with("type", entry.kind)
        .with("size", entry.size)
        .with("mtime", entry.modified)
        .with("depth", entry.depth)
        .into()
}
