//! `search_files` and `glob`: places by pattern, and lines by text or regular expression. Results stand in byte order of
//! their paths, where the origin's stand as the disk has them.

use engine::{Answer, Failure, Filter, Globs, Kind, Listing, Terms, limits};
use serde_json::{Map, Value, json};

use super::{
    Scene,
    envelope::{Envelope, Fields, Sorry},
    list_directory,
    tool::Tool,
};

/// What is not looked into unless the call says otherwise.
const EXCLUDED: &[&str] = &[
    "**/node_modules/**",
    "**/.git/**",
    "**/dist/**",
    "**/build/**",
    "**/.next/**",
    "**/.turbo/**",
    "**/coverage/**",
];
/// Most matches of one search.
const MATCHES_MAX: usize = 100;
/// Most places of one glob.
const PLACES_MAX: usize = 1000;

/// How a search is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Path,
    Text,
    Regex,
}

fn mode(scene: &Scene<'_>) -> Mode {
    match scene.asked.text("mode") {
        "path" => Mode::Path,
        "regex" => Mode::Regex,
        _ => Mode::Text,
    }
}

/// The engine's operation, its arguments and its terms.
pub(super) fn seeking(scene: &Scene<'_>, terms: Terms) -> (&'static str, Map<String, Value>, Terms) {
    let asked = &scene.asked;
    let root = scene.spot();
    let exclude = asked.texts("excludeGlobs").unwrap_or_else(|| EXCLUDED.to_vec());
    let include = asked.texts("includeGlobs").unwrap_or_default();
    let terms = Terms { listing: Listing::Entries(PLACES_MAX), ..terms };
    let filtered = |exclude: &[&str]| Filter { include: globs(&include), exclude: globs(exclude) };
    let pattern = match (scene.tool, mode(scene)) {
        (Tool::Glob, _) => asked.text("pattern"),
        (_, Mode::Path) => asked.text("query"),
        (_, Mode::Text | Mode::Regex) => {
            let max = wanted(scene, MATCHES_MAX);
            let context = asked.number("contextLines").unwrap_or(0).min(limits::SEARCH_CONTEXT_MAX as u64);
            let arguments = json!({
                "query": asked.text("query"), "path": root, "regex": mode(scene) == Mode::Regex, "context": context,
                "all": true, "max": max,
            });
            return ("search", super::object(arguments), Terms { filter: filtered(&exclude), ..terms });
        }
    };
    // A pattern behind an exclamation mark means everything else.
    let (pattern, exclude) = match pattern.strip_prefix('!') {
        None => (pattern, exclude),
        Some(other) => ("**", exclude.into_iter().chain([other]).collect()),
    };
    let arguments = json!({ "pattern": pattern, "path": root, "all": true, "max": PLACES_MAX });
    ("find", super::object(arguments), Terms { filter: filtered(&exclude), ..terms })
}

/// Patterns that can be read; one that cannot matches nothing, as in the origin.
fn globs(patterns: &[&str]) -> Globs {
    let readable = patterns.iter().filter(|pattern| Globs::new([**pattern]).is_ok()).copied();
    Globs::new(readable).unwrap_or_default()
}

fn wanted(scene: &Scene<'_>, most: usize) -> usize {
    let asked = scene.asked.number("maxResults").and_then(|number| usize::try_from(number).ok());
    asked.unwrap_or(most).min(most)
}

/// What is said when a pattern cannot be read; nothing for any other failure.
pub(super) fn unreadable(scene: &Scene<'_>, failure: &Failure) -> Option<Envelope> {
    if failure.kind != Kind::BadRequest {
        return None;
    }
    match (scene.tool, mode(scene)) {
        (Tool::SearchFiles, Mode::Regex) => {
            let reason = failure.facts.get("reason").and_then(Value::as_str).unwrap_or(&failure.detail);
            let sorry = Sorry::new("command_failed", format!("Invalid regex: {reason}"));
            Some(sorry.next("Fix the regex syntax and call search_files again.").into())
        }
        (Tool::SearchFiles, Mode::Path) => Some(searched(scene, Vec::new(), Cut::No, 0)),
        (Tool::Glob, _) => Some(globbed(scene, Vec::new(), Cut::No)),
        (_, _) => None,
    }
}

pub(super) fn reply(scene: &Scene<'_>, answer: &Answer) -> Envelope {
    let truncated = answer.json.get("truncated").and_then(Value::as_bool).unwrap_or_default();
    match (scene.tool, mode(scene)) {
        (Tool::Glob, _) => {
            let mut found: Vec<Value> = matches(answer).map(place).collect();
            let most = wanted(scene, PLACES_MAX);
            let cut = Cut::from(truncated || found.len() > most);
            found.truncate(most);
            globbed(scene, found, cut)
        }
        (_, Mode::Path) => {
            let top = answer.json.get("path").and_then(Value::as_str).unwrap_or(".");
            let files = matches(answer).filter(|found| found["type"] == "file");
            let mut found: Vec<Value> = files.map(|found| path_match(top, found)).collect();
            let most = wanted(scene, MATCHES_MAX);
            let cut = Cut::from(truncated || found.len() > most);
            found.truncate(most);
            let scanned = found.len() as u64;
            searched(scene, found, cut, scanned)
        }
        (_, Mode::Text | Mode::Regex) => {
            let files = answer.json.get("files").and_then(Value::as_array);
            let found = files.into_iter().flatten().flat_map(line_matches).collect();
            let scanned = answer.json.get("scanned").and_then(Value::as_u64).unwrap_or_default();
            searched(scene, found, Cut::from(truncated), scanned)
        }
    }
}

/// Whether something was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Yes,
    No,
}

impl From<bool> for Cut {
    fn from(cut: bool) -> Self {
        if cut { Cut::Yes } else { Cut::No }
    }
}

fn matches(answer: &Answer) -> impl Iterator<Item = &Value> {
    answer.json.get("matches").and_then(Value::as_array).into_iter().flatten()
}

fn place(found: &Value) -> Value {
    let kind = list_directory::kind_word(found);
    let size = if kind == "file" { found["size"].as_u64().unwrap_or_default() } else { 0 };
    Fields::new()
        .with("path", found["path"].clone())
        .with("type", kind)
        .with("size", size)
        .with("mtime", found["modified"].clone())
        .into()
}

fn path_match(top: &str, found: &Value) -> Value {
    let path = found["path"].as_str().unwrap_or_default();
    let below = match top {
        "." => path,
        top => path.strip_prefix(top).map_or(path, |rest| rest.trim_start_matches('/')),
    };
    Fields::new().with("path", path).with("preview", below).into()
}

fn line_matches(file: &Value) -> Vec<Value> {
    let hits = file["hits"].as_array();
    hits.into_iter().flatten().map(|hit| line_match(&file["path"], hit)).collect()
}

fn line_match(path: &Value, hit: &Value) -> Value {
    let line = hit["line"].as_u64().unwrap_or_default();
    let text = hit["text"].as_str().unwrap_or_default();
    let characters = usize::try_from(hit["column"].as_u64().unwrap_or(1)).unwrap_or(1).saturating_sub(1);
    let column = text.chars().take(characters).map(char::len_utf16).sum::<usize>() + 1;
    let around = |name: &str| -> Vec<&str> {
        hit[name].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let before = around("before");
    let first = line - (before.len() as u64).min(line);
    let lines = before.into_iter().chain([text]).chain(around("after"));
    let preview: Vec<String> =
        (first..).zip(lines).map(|(number, text)| format!("{number}: {text}")).collect();
    Fields::new()
        .with("path", path.clone())
        .with("line", line)
        .with("column", column)
        .with("preview", preview.join("\n"))
        .into()
}

fn searched(scene: &Scene<'_>, found: Vec<Value>, cut: Cut, scanned: u64) -> Envelope {
    let (mode, query, root) = (scene.asked.text("mode"), scene.asked.text("query"), scene.spot());
    let output = match found.len() {
        0 => format!("No matches for {mode}:\"{query}\" under {root} ({scanned} files scanned)"),
        count => {
            let noun = if count == 1 { "match" } else { "matches" };
            let mark = if cut == Cut::Yes { " (truncated)" } else { "" };
            let shown: Vec<String> = found.iter().map(shown).collect();
            let head = format!("Found {count} {noun} for {mode}:\"{query}\" under {root}{mark}");
            format!("{head} — {scanned} files scanned\n\n{}", shown.join("\n\n"))
        }
    };
    let data = Fields::new()
        .with("mode", mode)
        .with("query", query)
        .with("root", root)
        .with("matches", found)
        .with("truncated", cut == Cut::Yes)
        .with("filesScanned", scanned);
    Envelope::done(output, data)
}

fn shown(found: &Value) -> String {
    let path = found["path"].as_str().unwrap_or_default();
    match (found["line"].as_u64(), found["column"].as_u64(), found["preview"].as_str()) {
        (Some(line), Some(column), Some(preview)) => format!("{path}:{line}:{column}\n{preview}"),
        (_, _, _) => path.to_owned(),
    }
}

fn globbed(scene: &Scene<'_>, found: Vec<Value>, cut: Cut) -> Envelope {
    let (pattern, root) = (scene.asked.text("pattern"), scene.spot());
    let output = match found.len() {
        0 => format!("No matches for glob \"{pattern}\" under \"{root}\"."),
        count => {
            let noun = if count == 1 { "entry" } else { "entries" };
            let mark = if cut == Cut::Yes { " (truncated)" } else { "" };
            let line = |found: &Value| {
                let (path, kind) = (found["path"].as_str().unwrap_or_default(), list_kind(found));
                let slash = if kind == "directory" { "/" } else { "" };
                format!("  {path}{slash} ({kind})")
            };
            let lines: Vec<String> = found.iter().map(line).collect();
            format!(
                "Matched {count} {noun} for glob \"{pattern}\" under \"{root}\"{mark}:\n{}",
                lines.join("\n")
            )
        }
    };
    let data = Fields::new()
        .with("pattern", pattern)
        .with("root", root)
        .with("matches", found)
        .with("truncated", cut == Cut::Yes);
    Envelope::done(output, data)
}

fn list_kind(found: &Value) -> &str {
    found["type"].as_str().unwrap_or("file")
}
