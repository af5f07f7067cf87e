//! The tools `search_files` and `glob` find paths by pattern, and lines by text or regular expression. Search results
//! are sorted by path in byte order; the original code returns them in the order of the file system.

use std::sync::Arc;

use serde_json::{Value, json};
use stead_engine::{
    CallOptions, Error, ErrorKind, FileKind, GlobPatternSet, ListingPageSizeAndDetail, WalkFilter, limits,
    ops::{FindArgs, FindOutcome, FoundPathRow, SearchArgs, SearchHit, SearchOutcome, SearchQueryTexts},
};
use stead_path::RelPath;

use super::{
    super::DialectToolCall,
    CommaErrorKind, CommaPreparedCall, CommaToolCall,
    envelope::{CommaReplyEnvelope, CommaToolError},
    inputs::{CommaGlobInput, CommaSearchFilesInput, CommaSearchMode, CommaToolInput},
    list_directory::{entry_type_and_size, path_below},
};
use crate::limits::{COMMA_GLOB_PATHS_MAX, COMMA_SEARCH_MATCHES_MAX};

const DEFAULT_EXCLUDES: &[&str] =
    &["**/node_modules/**", "**/.git/**", "**/dist/**", "**/build/**", "**/.next/**", "**/.turbo/**", "**/coverage/**"];

pub(super) fn search_call(call: &Arc<CommaToolCall>, input: &Arc<CommaSearchFilesInput>) -> CommaPreparedCall {
    let exclude = excluded_globs(input.exclude_globs.as_deref());
    if input.mode == CommaSearchMode::Path {
        let (arguments, options) = find_arguments(call, &input.query, &input.root, &input.include_globs, exclude);
        let input = input.clone();
        return call.prepare(arguments, options, move |_, find| path_search_reply(&input, &find.outcome));
    }
    let arguments = SearchArgs {
        query: SearchQueryTexts::Text(input.query.clone()),
        path: Some(input.root.clone()),
        regex: Some(input.mode == CommaSearchMode::Regex),
        context: Some(input.context_lines.min(limits::SEARCH_CONTEXT_MAX as u64)),
        all: Some(true),
        max: Some(result_limit(input.max_results, COMMA_SEARCH_MATCHES_MAX) as u64),
        ..SearchArgs::default()
    };
    let options = find_options(call, walk_filter(&input.include_globs, &exclude));
    let input = input.clone();
    call.prepare(arguments, options, move |_, search| text_search_reply(&input, &search.outcome))
}

pub(super) fn glob_call(call: &Arc<CommaToolCall>, input: &Arc<CommaGlobInput>) -> CommaPreparedCall {
    let exclude = excluded_globs(input.exclude_globs.as_deref());
    let (arguments, options) = find_arguments(call, &input.pattern, &input.root, &[], exclude);
    let input = input.clone();
    call.prepare(arguments, options, move |_, find| glob_reply(&input, &find.outcome))
}

fn excluded_globs(requested: Option<&[String]>) -> Vec<&str> {
    requested.map_or_else(|| DEFAULT_EXCLUDES.to_vec(), |globs| globs.iter().map(String::as_str).collect())
}

fn find_options(call: &CommaToolCall, walk_filter: WalkFilter) -> CallOptions {
    let listing_style = ListingPageSizeAndDetail::DetailedEntries(COMMA_GLOB_PATHS_MAX);
    CallOptions { listing_style, walk_filter, ..call.options.clone() }
}

fn walk_filter(include: &[String], exclude: &[&str]) -> WalkFilter {
    let include: Vec<&str> = include.iter().map(String::as_str).collect();
    WalkFilter { include: compile_globs(&include), exclude: compile_globs(exclude) }
}

fn find_arguments(
    call: &CommaToolCall,
    pattern: &str,
    root: &str,
    include: &[String],
    exclude: Vec<&str>,
) -> (FindArgs, CallOptions) {
    // A leading exclamation mark negates the pattern.
    let (pattern, exclude) = match pattern.strip_prefix('!') {
        None => (pattern, exclude),
        Some(other) => ("**", exclude.into_iter().chain([other]).collect()),
    };
    let (pattern, path, max) = (pattern.to_owned(), Some(root.to_owned()), Some(COMMA_GLOB_PATHS_MAX as u64));
    let options = find_options(call, walk_filter(include, &exclude));
    (FindArgs { pattern, path, all: Some(true), max }, options)
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
pub(super) fn reply_without_matches(call: &CommaToolCall, error: &Error) -> Option<CommaReplyEnvelope> {
    let none = CommaSearchMatches::default();
    match (error.kind, &call.input) {
        (ErrorKind::BadRequest, CommaToolInput::SearchFiles(input)) if input.mode == CommaSearchMode::Path => {
            Some(render_search(input, &none, 0))
        }
        (ErrorKind::BadRequest, CommaToolInput::Glob(input)) => Some(render_glob(input, &none)),
        (_, _) => None,
    }
}

fn path_search_reply(input: &CommaSearchFilesInput, find: &FindOutcome) -> CommaReplyEnvelope {
    let top = find.path.to_wire();
    let files = find.matches.iter().filter(|entry| entry.kind == FileKind::File);
    let rows = files.map(|entry| render_path_match(&top, entry)).collect();
    let max = result_limit(input.max_results, COMMA_SEARCH_MATCHES_MAX);
    let matches = CommaSearchMatches::from_paths(find, rows, max);
    render_search(input, &matches, matches.rows.len() as u64)
}

fn text_search_reply(input: &CommaSearchFilesInput, search: &SearchOutcome) -> CommaReplyEnvelope {
    let SearchOutcome::ByPath(search) = search else {
        let message = "internal error: the hits are not sorted by path";
        return CommaToolError::new(CommaErrorKind::Unknown, message).into();
    };
    let hits = search.files.iter().flat_map(|file| file.hits.iter().map(|hit| render_line_match(&file.path, hit)));
    let matches = CommaSearchMatches { rows: hits.collect(), truncated: search.completeness.is_truncated() };
    render_search(input, &matches, search.counts.scanned)
}

fn glob_reply(input: &CommaGlobInput, find: &FindOutcome) -> CommaReplyEnvelope {
    let rows = find.matches.iter().map(match_path).collect();
    let max = result_limit(input.max_results, COMMA_GLOB_PATHS_MAX);
    render_glob(input, &CommaSearchMatches::from_paths(find, rows, max))
}

#[derive(Default)]
struct CommaSearchMatches {
    rows: Vec<Value>,
    truncated: bool,
}

impl CommaSearchMatches {
    fn from_paths(find: &FindOutcome, mut rows: Vec<Value>, max: usize) -> Self {
        let truncated = find.completeness.is_truncated() || rows.len() > max;
        rows.truncate(max);
        Self { rows, truncated }
    }

    fn truncation_mark(&self) -> &'static str {
        if self.truncated { " (truncated)" } else { "" }
    }
}

fn match_path(entry: &FoundPathRow) -> Value {
    let (kind, size) = entry_type_and_size(entry.kind, Some(entry.size));
    json!({ "path": entry.path.to_wire(), "type": kind, "size": size, "mtime": entry.modified.to_string() })
}

fn render_path_match(top: &str, entry: &FoundPathRow) -> Value {
    let preview = path_below(top, &entry.path);
    json!({ "path": entry.path.to_wire(), "preview": preview })
}

fn render_line_match(path: &RelPath, hit: &SearchHit) -> Value {
    let characters = hit.column.saturating_sub(1);
    let column = hit.text.chars().take(characters).map(char::len_utf16).sum::<usize>() + 1;
    let first = hit.line.saturating_sub(hit.before.len() as u64);
    let lines =
        hit.before.iter().map(|line| &**line).chain([hit.text.as_str()]).chain(hit.after.iter().map(|line| &**line));
    let preview: Vec<String> = (first..).zip(lines).map(|(number, text)| format!("{number}: {text}")).collect();
    json!({ "path": path.to_wire(), "line": hit.line, "column": column, "preview": preview.join("\n") })
}

fn render_search(input: &CommaSearchFilesInput, matches: &CommaSearchMatches, scanned: u64) -> CommaReplyEnvelope {
    let (mode, query, root) = (input.mode.name(), input.query.as_str(), input.root.as_str());
    let output = match matches.rows.len() {
        0 => format!("No matches for {mode}:\"{query}\" under {root} ({scanned} files scanned)"),
        count => {
            let noun = if count == 1 { "match" } else { "matches" };
            let suffix = matches.truncation_mark();
            let rendered: Vec<String> = matches.rows.iter().map(match_text).collect();
            let head = format!("Found {count} {noun} for {mode}:\"{query}\" under {root}{suffix}");
            format!("{head} — {scanned} files scanned\n\n{}", rendered.join("\n\n"))
        }
    };
    let data = json!({
        "mode": mode,
        "query": query,
        "root": root,
        "matches": matches.rows,
        "truncated": matches.truncated,
        "filesScanned": scanned,
    });
    CommaReplyEnvelope::success(output, data)
}

fn match_text(entry: &Value) -> String {
    let path = entry["path"].as_str().unwrap_or_default();
    match (entry["line"].as_u64(), entry["column"].as_u64(), entry["preview"].as_str()) {
        (Some(line), Some(column), Some(preview)) => format!("{path}:{line}:{column}\n{preview}"),
        (_, _, _) => path.to_owned(),
    }
}

fn render_glob(input: &CommaGlobInput, matches: &CommaSearchMatches) -> CommaReplyEnvelope {
    let (pattern, root) = (input.pattern.as_str(), input.root.as_str());
    let output = match matches.rows.len() {
        0 => format!("No matches for glob \"{pattern}\" under \"{root}\"."),
        count => {
            let noun = if count == 1 { "entry" } else { "entries" };
            let suffix = matches.truncation_mark();
            let line = |entry: &Value| {
                let path = entry["path"].as_str().unwrap_or_default();
                let kind = entry["type"].as_str().unwrap_or("file");
                let slash = if kind == "directory" { "/" } else { "" };
                format!("  {path}{slash} ({kind})")
            };
            let lines: Vec<String> = matches.rows.iter().map(line).collect();
            format!("Matched {count} {noun} for glob \"{pattern}\" under \"{root}\"{suffix}:\n{}", lines.join("\n"))
        }
    };
    let data = json!({
        "pattern": pattern,
        "root": root,
        "matches": matches.rows,
        "truncated": matches.truncated,
    });
    CommaReplyEnvelope::success(output, data)
}
