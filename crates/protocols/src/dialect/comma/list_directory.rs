//! `list_directory`: the entries of a directory by level, directories before files before links.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};
use stead_engine::CallOutcome;

use super::{
    CommaCall, collation,
    envelope::{CommaEnvelope, CommaJsonFields},
};

/// Depth of a recursive listing without `maxDepth`.
const DEPTH_DEFAULT: u64 = 8;
const DEPTH_MAX: u64 = 32;
pub(super) const ENTRIES_MAX: usize = 5000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommaNameOrder {
    Bytes,
    /// The original's collation.
    Collation,
}

impl CommaNameOrder {
    pub(super) fn compare(self, a: &str, b: &str) -> Ordering {
        match self {
            CommaNameOrder::Bytes => a.as_bytes().cmp(b.as_bytes()),
            CommaNameOrder::Collation => collation::compare_names(a, b),
        }
    }
}

struct CommaListEntry {
    name: String,
    relative_path: String,
    kind: &'static str,
    size: u64,
    modified_at: String,
    depth: usize,
}

fn listing_depth(call: &CommaCall<'_>) -> u64 {
    match call.args.is_set("recursive") {
        true => call.args.number("maxDepth").unwrap_or(DEPTH_DEFAULT).min(DEPTH_MAX),
        false => 1,
    }
}

pub(super) fn engine_arguments(call: &CommaCall<'_>) -> Map<String, Value> {
    let all = call.args.is_set("includeHidden");
    super::into_object(json!({ "path": call.path_argument(), "depth": listing_depth(call), "all": all }))
}

pub(super) fn list_reply(call: &CommaCall<'_>, outcome: &CallOutcome) -> CommaEnvelope {
    let top = outcome.json.get("path").and_then(Value::as_str).unwrap_or(".");
    let listed = outcome.json.get("entries").and_then(Value::as_array);
    let mut entries: Vec<CommaListEntry> =
        listed.into_iter().flatten().map(|listed| parse_entry(top, listed)).collect();
    entries.sort_by(|a, b| {
        let rank = |entry: &CommaListEntry| {
            (entry.depth, ["directory", "file", "symlink"].iter().position(|kind| *kind == entry.kind))
        };
        rank(a)
            .cmp(&rank(b))
            .then_with(|| call.name_order.compare(&a.name, &b.name))
            .then_with(|| a.relative_path.cmp(&b.relative_path))
    });
    let truncated = outcome.json.get("truncated").and_then(Value::as_bool).unwrap_or_default();
    let path = call.path_argument();
    let output = match entries.len() {
        0 => format!("Listed {path} — empty directory."),
        count => {
            let noun = if count == 1 { "entry" } else { "entries" };
            let mark = if truncated { " (truncated)" } else { "" };
            let lines: Vec<String> = entries.iter().map(entry_line).collect();
            format!("Listed {path} — {count} {noun}{mark}\n{}", lines.join("\n"))
        }
    };
    let objects: Vec<Value> = entries.into_iter().map(entry_to_json).collect();
    let data = CommaJsonFields::new()
        .with("path", path)
        .with("entries", objects)
        .with("maxDepth", listing_depth(call))
        .with("truncated", truncated);
    CommaEnvelope::success(output, data)
}

pub(super) fn entry_type_name(entry: &Value) -> &'static str {
    match entry["type"].as_str() {
        Some("directory") => "directory",
        Some("link") => "symlink",
        Some(_) | None => "file",
    }
}

fn parse_entry(top: &str, entry: &Value) -> CommaListEntry {
    let path = entry["path"].as_str().unwrap_or_default();
    let relative = match top {
        "." => path,
        top => path.strip_prefix(top).map_or(path, |rest| rest.trim_start_matches('/')),
    };
    let kind = entry_type_name(entry);
    let size = if kind == "file" { entry["size"].as_u64().unwrap_or_default() } else { 0 };
    CommaListEntry {
        name: relative.rsplit('/').next().unwrap_or(relative).to_owned(),
        relative_path: relative.to_owned(),
        kind,
        size,
        modified_at: entry["modified"].as_str().unwrap_or(EPOCH_TIMESTAMP).to_owned(),
        depth: relative.split('/').count(),
    }
}

/// For entries without a time.
const EPOCH_TIMESTAMP: &str = "1970-01-01T00:00:00.000Z";

fn entry_line(entry: &CommaListEntry) -> String {
    let mark = match entry.kind {
        "directory" => "/",
        "symlink" => " -> (symlink)",
        _ => "",
    };
    format!("{}{}{mark}", "  ".repeat(entry.depth.saturating_sub(1)), entry.name)
}

fn entry_to_json(entry: CommaListEntry) -> Value {
    CommaJsonFields::new()
        .with("name", entry.name)
        .with("relativePath", entry.relative_path)
        .with("type", entry.kind)
        .with("size", entry.size)
        .with("mtime", entry.modified_at)
        .with("depth", entry.depth)
        .into()
}
