//! The tools `search_files` and `glob` find paths by pattern, and lines by text or regular expression. Search results
//! are sorted by path in byte order; the original code returns them in the order of the file system.

use crate::native::RenderedOutcome;
use serde_json::{Value, json};
use stead_engine::{CallOptions, Error, ErrorKind, GlobPatternSet, ListingPageSizeAndDetail, WalkFilter, limits};

use super::{
    super::{TranslatedCall, rendering::CallOutcomeFieldsExt},
    CommaToolCall,
    envelope::{CommaReplyEnvelope, CommaReplyJsonBuilder},
    inputs::{CommaGlobInput, CommaSearchFilesInput, CommaSearchMode, CommaToolInput},
    list_directory::{entry_type_and_size, path_below},
};
use crate::limits::{COMMA_GLOB_PATHS_MAX, COMMA_SEARCH_MATCHES_MAX};

const DEFAULT_EXCLUDES: &[&str] =
    &["**/node_modules/**", "**/.git/**", "**/dist/**", "**/build/**", "**/.next/**", "**/.turbo/**", "**/coverage/**"];

pub(super) fn search_call(input: &CommaSearchFilesInput, options: CallOptions) -> TranslatedCall {
    let exclude = excluded_globs(input.exclude_globs.as_deref());
    if input.mode == CommaSearchMode::Path {
        return find_call(&input.query, &input.root, &input.include_globs, exclude, options);
    }
    let arguments = json!({
        "query": input.query,
        "path": input.root,
        "regex": input.mode == CommaSearchMode::Regex,
        "context": input.context_lines.min(limits::SEARCH_CONTEXT_MAX as u64),
        "all": true,
        "max": result_limit(input.max_results, COMMA_SEARCH_MATCHES_MAX),
    });
    let options = CallOptions { walk_filter: walk_filter(&input.include_globs, &exclude), ..find_options(options) };
    TranslatedCall::new("search", arguments, options)
}

pub(super) fn glob_call(input: &CommaGlobInput, options: CallOptions) -> TranslatedCall {
    let exclude = excluded_globs(input.exclude_globs.as_deref());
    find_call(&input.pattern, &input.root, &[], exclude, options)
}

fn excluded_globs(requested: Option<&[String]>) -> Vec<&str> {
    requested.map_or_else(|| DEFAULT_EXCLUDES.to_vec(), |globs| globs.iter().map(String::as_str).collect())
}

fn find_options(options: CallOptions) -> CallOptions {
    CallOptions { listing_style: ListingPageSizeAndDetail::DetailedEntries(COMMA_GLOB_PATHS_MAX), ..options }
}

fn walk_filter(include: &[String], exclude: &[&str]) -> WalkFilter {
    let include: Vec<&str> = include.iter().map(String::as_str).collect();
    WalkFilter { include: compile_globs(&include), exclude: compile_globs(exclude) }
}

fn find_call(
    pattern: &str,
    root: &str,
    include: &[String],
    exclude: Vec<&str>,
    options: CallOptions,
) -> TranslatedCall {
    // A leading exclamation mark negates the pattern.
    let (pattern, exclude) = match pattern.strip_prefix('!') {
        None => (pattern, exclude),
        Some(other) => ("**", exclude.into_iter().chain([other]).collect()),
    };
    let arguments = json!({ "pattern": pattern, "path": root, "all": true, "max": COMMA_GLOB_PATHS_MAX });
    let options = CallOptions { walk_filter: walk_filter(include, &exclude), ..find_options(options) };
    TranslatedCall::new("find", arguments, options)
}

/// An invalid glob matches nothing, as in the dialect's original code.
fn compile_globs(patterns: &[&str]) -> GlobPatternSet {
    let valid = patterns.iter().filter(|pattern| GlobPatternSet::new([**pattern]).is_ok()).copied();
    GlobPatternSet::new(valid).unwrap_or_default()
}

fn result_limit(requested: u64, max: usize) -> usize {
    usize::try_from(requested).unwrap_or(max).min(max)
}

/// A path search or a glob call with an invalid pattern gets an empty reply, not an error.
pub(super) fn reply_without_matches(call: &CommaToolCall<'_>, error: &Error) -> Option<CommaReplyEnvelope> {
    let complete = CommaSearchTruncation::Complete;
    match (error.kind, &call.input) {
        (ErrorKind::BadRequest, CommaToolInput::SearchFiles(input)) if input.mode == CommaSearchMode::Path => {
            Some(render_search(input, Vec::new(), complete, 0))
        }
        (ErrorKind::BadRequest, CommaToolInput::Glob(input)) => Some(render_glob(input, Vec::new(), complete)),
        (_, _) => None,
    }
}

pub(super) fn search_reply(input: &CommaSearchFilesInput, outcome: &RenderedOutcome) -> CommaReplyEnvelope {
    match input.mode {
        CommaSearchMode::Path => {
            let top = outcome.text_field("path");
            let files = outcome.list_field("matches").iter().filter(|entry| entry["type"] == "file");
            let matches = files.map(|entry| render_path_match(top, entry)).collect();
            let max = result_limit(input.max_results, COMMA_SEARCH_MATCHES_MAX);
            let (matches, truncation) = limit_matches(outcome, matches, max);
            let scanned = matches.len() as u64;
            render_search(input, matches, truncation, scanned)
        }
        CommaSearchMode::Text | CommaSearchMode::Regex => {
            let matches = outcome.list_field("files").iter().flat_map(render_line_matches).collect();
            let truncation = CommaSearchTruncation::from(outcome.is_set("truncated"));
            render_search(input, matches, truncation, outcome.number_field("scanned"))
        }
    }
}

pub(super) fn glob_reply(input: &CommaGlobInput, outcome: &RenderedOutcome) -> CommaReplyEnvelope {
    let matches = outcome.list_field("matches").iter().map(match_path).collect();
    let (matches, truncation) = limit_matches(outcome, matches, result_limit(input.max_results, COMMA_GLOB_PATHS_MAX));
    render_glob(input, matches, truncation)
}

fn limit_matches(
    outcome: &RenderedOutcome,
    mut matches: Vec<Value>,
    max: usize,
) -> (Vec<Value>, CommaSearchTruncation) {
    let truncation = CommaSearchTruncation::from(outcome.is_set("truncated") || matches.len() > max);
    matches.truncate(max);
    (matches, truncation)
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

fn render_search(
    input: &CommaSearchFilesInput,
    matches: Vec<Value>,
    truncation: CommaSearchTruncation,
    scanned: u64,
) -> CommaReplyEnvelope {
    let (mode, query, root) = (input.mode.name(), input.query.as_str(), input.root.as_str());
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

fn render_glob(input: &CommaGlobInput, matches: Vec<Value>, truncation: CommaSearchTruncation) -> CommaReplyEnvelope {
    let (pattern, root) = (input.pattern.as_str(), input.root.as_str());
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
