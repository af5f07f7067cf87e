//! The tools `search_files` and `glob` find paths by pattern, and lines by text or regular expression. Search results
//! are sorted by path in byte order; the original code returns them in the order of the file system.

use serde_json::{Value, json};
use stead_engine::{CallOptions, CallOutcome, Error, ErrorKind, Globs, ListingPageSizeAndDetail, WalkFilter, limits};

use super::{
    super::{TranslatedCall, rendering::CallOutcomeFieldsExt},
    CommaTool, CommaToolCall,
    envelope::{CommaReplyEnvelope, CommaReplyJsonBuilder},
    list_directory::{entry_type_and_size, path_below},
};
use crate::limits::{COMMA_GLOB_PATHS_MAX, COMMA_SEARCH_MATCHES_MAX};

const DEFAULT_EXCLUDES: &[&str] =
    &["**/node_modules/**", "**/.git/**", "**/dist/**", "**/build/**", "**/.next/**", "**/.turbo/**", "**/coverage/**"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommaSearchQueryKind {
    Path,
    Text,
    Regex,
}

fn search_mode(call: &CommaToolCall<'_>) -> CommaSearchQueryKind {
    match call.args.text_or_empty("mode") {
        "path" => CommaSearchQueryKind::Path,
        "regex" => CommaSearchQueryKind::Regex,
        _ => CommaSearchQueryKind::Text,
    }
}

pub(super) fn search_call(call: &CommaToolCall<'_>, options: CallOptions) -> TranslatedCall {
    let args = &call.args;
    let root = call.path_argument();
    let exclude = args.texts("excludeGlobs").unwrap_or_else(|| DEFAULT_EXCLUDES.to_vec());
    let include = args.texts("includeGlobs").unwrap_or_default();
    let options =
        CallOptions { listing_style: ListingPageSizeAndDetail::DetailedEntries(COMMA_GLOB_PATHS_MAX), ..options };
    let filtered = |exclude: &[&str]| WalkFilter { include: compile_globs(&include), exclude: compile_globs(exclude) };
    let pattern = match (call.tool, search_mode(call)) {
        (CommaTool::Glob, _) => args.text_or_empty("pattern"),
        (_, CommaSearchQueryKind::Path) => args.text_or_empty("query"),
        (_, CommaSearchQueryKind::Text | CommaSearchQueryKind::Regex) => {
            let max = result_limit(call, COMMA_SEARCH_MATCHES_MAX);
            let context = args.number("contextLines").unwrap_or(0).min(limits::SEARCH_CONTEXT_MAX as u64);
            let arguments = json!({
                "query": args.text_or_empty("query"),
                "path": root,
                "regex": search_mode(call) == CommaSearchQueryKind::Regex,
                "context": context,
                "all": true,
                "max": max,
            });
            let options = CallOptions { walk_filter: filtered(&exclude), ..options };
            return TranslatedCall::new("search", arguments, options);
        }
    };
    // A leading exclamation mark negates the pattern.
    let (pattern, exclude) = match pattern.strip_prefix('!') {
        None => (pattern, exclude),
        Some(other) => ("**", exclude.into_iter().chain([other]).collect()),
    };
    let arguments = json!({ "pattern": pattern, "path": root, "all": true, "max": COMMA_GLOB_PATHS_MAX });
    TranslatedCall::new("find", arguments, CallOptions { walk_filter: filtered(&exclude), ..options })
}

/// An invalid glob matches nothing, as in the dialect's original code.
fn compile_globs(patterns: &[&str]) -> Globs {
    let valid = patterns.iter().filter(|pattern| Globs::new([**pattern]).is_ok()).copied();
    Globs::new(valid).unwrap_or_default()
}

fn result_limit(call: &CommaToolCall<'_>, max: usize) -> usize {
    let requested = call.args.number("maxResults").and_then(|number| usize::try_from(number).ok());
    requested.unwrap_or(max).min(max)
}

/// A path search or a glob call with an invalid pattern gets an empty reply, not an error.
pub(super) fn reply_without_matches(call: &CommaToolCall<'_>, error: &Error) -> Option<CommaReplyEnvelope> {
    if error.kind != ErrorKind::BadRequest {
        return None;
    }
    match (call.tool, search_mode(call)) {
        (CommaTool::SearchFiles, CommaSearchQueryKind::Path) => {
            Some(search_reply(call, Vec::new(), CommaSearchTruncation::Complete, 0))
        }
        (CommaTool::Glob, _) => Some(glob_reply(call, Vec::new(), CommaSearchTruncation::Complete)),
        (_, _) => None,
    }
}

pub(super) fn search_or_glob_reply(call: &CommaToolCall<'_>, outcome: &CallOutcome) -> CommaReplyEnvelope {
    let truncated = outcome.is_set("truncated");
    let limit = |mut matches: Vec<Value>, max: usize| {
        let truncation = CommaSearchTruncation::from(truncated || matches.len() > max);
        matches.truncate(max);
        (matches, truncation)
    };
    let found = outcome.list_field("matches").iter();
    match (call.tool, search_mode(call)) {
        (CommaTool::Glob, _) => {
            let (matches, truncation) =
                limit(found.map(match_path).collect(), result_limit(call, COMMA_GLOB_PATHS_MAX));
            glob_reply(call, matches, truncation)
        }
        (_, CommaSearchQueryKind::Path) => {
            let top = outcome.text_field("path");
            let files = found.filter(|entry| entry["type"] == "file");
            let matches = files.map(|entry| render_path_match(top, entry)).collect();
            let (matches, truncation) = limit(matches, result_limit(call, COMMA_SEARCH_MATCHES_MAX));
            let scanned = matches.len() as u64;
            search_reply(call, matches, truncation, scanned)
        }
        (_, CommaSearchQueryKind::Text | CommaSearchQueryKind::Regex) => {
            let matches = outcome.list_field("files").iter().flat_map(render_line_matches).collect();
            search_reply(call, matches, CommaSearchTruncation::from(truncated), outcome.number_field("scanned"))
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommaSearchTruncation {
    Truncated,
    Complete,
}

impl From<bool> for CommaSearchTruncation {
    fn from(truncated: bool) -> Self {
        if truncated { CommaSearchTruncation::Truncated } else { CommaSearchTruncation::Complete }
    }
}

fn match_path(entry: &Value) -> Value {
    let (kind, size) = entry_type_and_size(entry);
    CommaReplyJsonBuilder::new()
        .with("path", entry["path"].clone())
        .with("type", kind)
        .with("size", size)
        .with("mtime", entry["modified"].clone())
        .into()
}

fn render_path_match(top: &str, entry: &Value) -> Value {
    let path = entry["path"].as_str().unwrap_or_default();
    CommaReplyJsonBuilder::new().with("path", path).with("preview", path_below(top, entry)).into()
}

fn render_line_matches(file: &Value) -> Vec<Value> {
    let hits = file["hits"].as_array();
    hits.into_iter().flatten().map(|hit| render_line_match(&file["path"], hit)).collect()
}

fn render_line_match(path: &Value, hit: &Value) -> Value {
    let line = hit["line"].as_u64().unwrap_or_default();
    let text = hit["text"].as_str().unwrap_or_default();
    let characters = usize::try_from(hit["column"].as_u64().unwrap_or(1)).unwrap_or(1).saturating_sub(1);
    let column = text.chars().take(characters).map(char::len_utf16).sum::<usize>() + 1;
    let around =
        |name: &str| -> Vec<&str> { hit[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect() };
    let before = around("before");
    let first = line - (before.len() as u64).min(line);
    let lines = before.into_iter().chain([text]).chain(around("after"));
    let preview: Vec<String> = (first..).zip(lines).map(|(number, text)| format!("{number}: {text}")).collect();
    CommaReplyJsonBuilder::new()
        .with("path", path.clone())
        .with("line", line)
        .with("column", column)
        .with("preview", preview.join("\n"))
        .into()
}

fn search_reply(
    call: &CommaToolCall<'_>,
    matches: Vec<Value>,
    truncation: CommaSearchTruncation,
    scanned: u64,
) -> CommaReplyEnvelope {
    let (mode, query, root) = (call.args.text_or_empty("mode"), call.args.text_or_empty("query"), call.path_argument());
    let output = match matches.len() {
        0 => format!("No matches for {mode}:\"{query}\" under {root} ({scanned} files scanned)"),
        count => {
            let noun = if count == 1 { "match" } else { "matches" };
            let suffix = if truncation == CommaSearchTruncation::Truncated { " (truncated)" } else { "" };
            let rendered: Vec<String> = matches.iter().map(match_text).collect();
            let head = format!("Found {count} {noun} for {mode}:\"{query}\" under {root}{suffix}");
            format!("{head} — {scanned} files scanned\n\n{}", rendered.join("\n\n"))
        }
    };
    let data = CommaReplyJsonBuilder::new()
        .with("mode", mode)
        .with("query", query)
        .with("root", root)
        .with("matches", matches)
        .with("truncated", truncation == CommaSearchTruncation::Truncated)
        .with("filesScanned", scanned);
    CommaReplyEnvelope::success(output, data)
}

fn match_text(entry: &Value) -> String {
    let path = entry["path"].as_str().unwrap_or_default();
    match (entry["line"].as_u64(), entry["column"].as_u64(), entry["preview"].as_str()) {
        (Some(line), Some(column), Some(preview)) => format!("{path}:{line}:{column}\n{preview}"),
        (_, _, _) => path.to_owned(),
    }
}

fn glob_reply(call: &CommaToolCall<'_>, matches: Vec<Value>, truncation: CommaSearchTruncation) -> CommaReplyEnvelope {
    let (pattern, root) = (call.args.text_or_empty("pattern"), call.path_argument());
    let output = match matches.len() {
        0 => format!("No matches for glob \"{pattern}\" under \"{root}\"."),
        count => {
            let noun = if count == 1 { "entry" } else { "entries" };
            let suffix = if truncation == CommaSearchTruncation::Truncated { " (truncated)" } else { "" };
            let line = |entry: &Value| {
                let path = entry["path"].as_str().unwrap_or_default();
                let kind = entry["type"].as_str().unwrap_or("file");
                let slash = if kind == "directory" { "/" } else { "" };
                format!("  {path}{slash} ({kind})")
            };
            let lines: Vec<String> = matches.iter().map(line).collect();
            format!("Matched {count} {noun} for glob \"{pattern}\" under \"{root}\"{suffix}:\n{}", lines.join("\n"))
        }
    };
    let data = CommaReplyJsonBuilder::new()
        .with("pattern", pattern)
        .with("root", root)
        .with("matches", matches)
        .with("truncated", truncation == CommaSearchTruncation::Truncated);
    CommaReplyEnvelope::success(output, data)
}
