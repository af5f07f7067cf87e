//! `search_files` and `glob`: paths by pattern, lines by text or regular expression. Results are in byte order of their
//! paths; the original returns disk order.

use serde_json::{Map, Value, json};
use stead_engine::{CallOptions, CallOutcome, Error, ErrorKind, Globs, ListingStyle, WalkFilter, limits};

use super::{
    CommaCall,
    envelope::{CommaEnvelope, CommaError, CommaJsonFields},
    list_directory,
    tool::CommaTool,
};

/// Excluded unless the call names its own globs.
const DEFAULT_EXCLUDES: &[&str] =
    &["**/node_modules/**", "**/.git/**", "**/dist/**", "**/build/**", "**/.next/**", "**/.turbo/**", "**/coverage/**"];
const SEARCH_MATCHES_MAX: usize = 100;
const GLOB_PATHS_MAX: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommaSearchMode {
    Path,
    Text,
    Regex,
}

fn search_mode(call: &CommaCall<'_>) -> CommaSearchMode {
    match call.args.text_or_empty("mode") {
        "path" => CommaSearchMode::Path,
        "regex" => CommaSearchMode::Regex,
        _ => CommaSearchMode::Text,
    }
}

/// The engine operation, its arguments and options.
pub(super) fn search_call(
    call: &CommaCall<'_>,
    options: CallOptions,
) -> (&'static str, Map<String, Value>, CallOptions) {
    let args = &call.args;
    let root = call.path_argument();
    let exclude = args.texts("excludeGlobs").unwrap_or_else(|| DEFAULT_EXCLUDES.to_vec());
    let include = args.texts("includeGlobs").unwrap_or_default();
    let options = CallOptions { listing_style: ListingStyle::DetailedEntries(GLOB_PATHS_MAX), ..options };
    let filtered = |exclude: &[&str]| WalkFilter { include: compile_globs(&include), exclude: compile_globs(exclude) };
    let pattern = match (call.tool, search_mode(call)) {
        (CommaTool::Glob, _) => args.text_or_empty("pattern"),
        (_, CommaSearchMode::Path) => args.text_or_empty("query"),
        (_, CommaSearchMode::Text | CommaSearchMode::Regex) => {
            let max = result_limit(call, SEARCH_MATCHES_MAX);
            let context = args.number("contextLines").unwrap_or(0).min(limits::SEARCH_CONTEXT_MAX as u64);
            let arguments = json!({
                "query": args.text_or_empty("query"), "path": root, "regex": search_mode(call) == CommaSearchMode::Regex, "context": context,
                "all": true, "max": max,
            });
            return (
                "search",
                super::into_object(arguments),
                CallOptions { walk_filter: filtered(&exclude), ..options },
            );
        }
    };
    // A leading exclamation mark negates the pattern.
    let (pattern, exclude) = match pattern.strip_prefix('!') {
        None => (pattern, exclude),
        Some(other) => ("**", exclude.into_iter().chain([other]).collect()),
    };
    let arguments = json!({ "pattern": pattern, "path": root, "all": true, "max": GLOB_PATHS_MAX });
    ("find", super::into_object(arguments), CallOptions { walk_filter: filtered(&exclude), ..options })
}

/// The valid patterns. An invalid one matches nothing, as in the original.
fn compile_globs(patterns: &[&str]) -> Globs {
    let valid = patterns.iter().filter(|pattern| Globs::new([**pattern]).is_ok()).copied();
    Globs::new(valid).unwrap_or_default()
}

fn result_limit(call: &CommaCall<'_>, max: usize) -> usize {
    let requested = call.args.number("maxResults").and_then(|number| usize::try_from(number).ok());
    requested.unwrap_or(max).min(max)
}

/// The reply for an invalid pattern; `None` for other errors.
pub(super) fn pattern_error(call: &CommaCall<'_>, error: &Error) -> Option<CommaEnvelope> {
    if error.kind != ErrorKind::BadRequest {
        return None;
    }
    match (call.tool, search_mode(call)) {
        (CommaTool::SearchFiles, CommaSearchMode::Regex) => {
            let reason = error.details.get("reason").and_then(Value::as_str).unwrap_or(&error.message);
            let comma_error = CommaError::new("command_failed", format!("Invalid regex: {reason}"));
            Some(comma_error.retry_with("Fix the regex syntax and call search_files again.").into())
        }
        (CommaTool::SearchFiles, CommaSearchMode::Path) => {
            Some(search_reply(call, Vec::new(), ResultTruncation::Complete, 0))
        }
        (CommaTool::Glob, _) => Some(glob_reply(call, Vec::new(), ResultTruncation::Complete)),
        (_, _) => None,
    }
}

pub(super) fn search_or_glob_reply(call: &CommaCall<'_>, outcome: &CallOutcome) -> CommaEnvelope {
    let truncated = outcome.json.get("truncated").and_then(Value::as_bool).unwrap_or_default();
    match (call.tool, search_mode(call)) {
        (CommaTool::Glob, _) => {
            let mut matches: Vec<Value> = outcome_matches(outcome).map(match_path).collect();
            let max = result_limit(call, GLOB_PATHS_MAX);
            let truncation = ResultTruncation::from(truncated || matches.len() > max);
            matches.truncate(max);
            glob_reply(call, matches, truncation)
        }
        (_, CommaSearchMode::Path) => {
            let top = outcome.json.get("path").and_then(Value::as_str).unwrap_or(".");
            let files = outcome_matches(outcome).filter(|entry| entry["type"] == "file");
            let mut matches: Vec<Value> = files.map(|entry| render_path_match(top, entry)).collect();
            let max = result_limit(call, SEARCH_MATCHES_MAX);
            let truncation = ResultTruncation::from(truncated || matches.len() > max);
            matches.truncate(max);
            let scanned = matches.len() as u64;
            search_reply(call, matches, truncation, scanned)
        }
        (_, CommaSearchMode::Text | CommaSearchMode::Regex) => {
            let files = outcome.json.get("files").and_then(Value::as_array);
            let matches = files.into_iter().flatten().flat_map(render_line_matches).collect();
            let scanned = outcome.json.get("scanned").and_then(Value::as_u64).unwrap_or_default();
            search_reply(call, matches, ResultTruncation::from(truncated), scanned)
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultTruncation {
    Truncated,
    Complete,
}

impl From<bool> for ResultTruncation {
    fn from(truncated: bool) -> Self {
        if truncated { ResultTruncation::Truncated } else { ResultTruncation::Complete }
    }
}

fn outcome_matches(outcome: &CallOutcome) -> impl Iterator<Item = &Value> {
    outcome.json.get("matches").and_then(Value::as_array).into_iter().flatten()
}

fn match_path(entry: &Value) -> Value {
    let kind = list_directory::entry_type_name(entry);
    let size = if kind == "file" { entry["size"].as_u64().unwrap_or_default() } else { 0 };
    CommaJsonFields::new()
        .with("path", entry["path"].clone())
        .with("type", kind)
        .with("size", size)
        .with("mtime", entry["modified"].clone())
        .into()
}

fn render_path_match(top: &str, entry: &Value) -> Value {
    let path = entry["path"].as_str().unwrap_or_default();
    let below = match top {
        "." => path,
        top => path.strip_prefix(top).map_or(path, |rest| rest.trim_start_matches('/')),
    };
    CommaJsonFields::new().with("path", path).with("preview", below).into()
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
    CommaJsonFields::new()
        .with("path", path.clone())
        .with("line", line)
        .with("column", column)
        .with("preview", preview.join("\n"))
        .into()
}

fn search_reply(
    call: &CommaCall<'_>,
    matches: Vec<Value>,
    truncation: ResultTruncation,
    scanned: u64,
) -> CommaEnvelope {
    let (mode, query, root) = (call.args.text_or_empty("mode"), call.args.text_or_empty("query"), call.path_argument());
    let output = match matches.len() {
        0 => format!("No matches for {mode}:\"{query}\" under {root} ({scanned} files scanned)"),
        count => {
            let noun = if count == 1 { "match" } else { "matches" };
            let suffix = if truncation == ResultTruncation::Truncated { " (truncated)" } else { "" };
            let rendered: Vec<String> = matches.iter().map(match_text).collect();
            let head = format!("Found {count} {noun} for {mode}:\"{query}\" under {root}{suffix}");
            format!("{head} — {scanned} files scanned\n\n{}", rendered.join("\n\n"))
        }
    };
    let data = CommaJsonFields::new()
        .with("mode", mode)
        .with("query", query)
        .with("root", root)
        .with("matches", matches)
        .with("truncated", truncation == ResultTruncation::Truncated)
        .with("filesScanned", scanned);
    CommaEnvelope::success(output, data)
}

fn match_text(entry: &Value) -> String {
    let path = entry["path"].as_str().unwrap_or_default();
    match (entry["line"].as_u64(), entry["column"].as_u64(), entry["preview"].as_str()) {
        (Some(line), Some(column), Some(preview)) => format!("{path}:{line}:{column}\n{preview}"),
        (_, _, _) => path.to_owned(),
    }
}

fn glob_reply(call: &CommaCall<'_>, matches: Vec<Value>, truncation: ResultTruncation) -> CommaEnvelope {
    let (pattern, root) = (call.args.text_or_empty("pattern"), call.path_argument());
    let output = match matches.len() {
        0 => format!("No matches for glob \"{pattern}\" under \"{root}\"."),
        count => {
            let noun = if count == 1 { "entry" } else { "entries" };
            let suffix = if truncation == ResultTruncation::Truncated { " (truncated)" } else { "" };
            let line = |entry: &Value| {
                let (path, kind) = (entry["path"].as_str().unwrap_or_default(), entry_type_name(entry));
                let slash = if kind == "directory" { "/" } else { "" };
                format!("  {path}{slash} ({kind})")
            };
            let lines: Vec<String> = matches.iter().map(line).collect();
            format!("Matched {count} {noun} for glob \"{pattern}\" under \"{root}\"{suffix}:\n{}", lines.join("\n"))
        }
    };
    let data = CommaJsonFields::new()
        .with("pattern", pattern)
        .with("root", root)
        .with("matches", matches)
        .with("truncated", truncation == ResultTruncation::Truncated);
    CommaEnvelope::success(output, data)
}

fn entry_type_name(entry: &Value) -> &str {
    entry["type"].as_str().unwrap_or("file")
}
