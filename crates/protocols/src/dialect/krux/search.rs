//! The krux searches by name and by content. Searches do not apply ignore files such as `.gitignore`, because the
//! dialect's document does not mention them. Hidden files are excluded, unless the call requests hidden files.

use crate::native::RenderedOutcome;
use serde_json::{Map, Value, json};
use stead_engine::{
    BeforeAfterContentInclusion, CallOptions, Error, GlobPatternSet, ListingPageSizeAndDetail, SearchHitOrder,
    WalkFilter, limits,
};

use super::{
    super::{TranslatedCall, rendering::CallOutcomeFieldsExt},
    KruxCall, files,
    inputs::KruxSearchInput,
    paths::require_absolute,
};

const HIDDEN_FILE_GLOBS: &[&str] = &["**/.*", "**/.*/**"];

pub(super) fn translate(input: &KruxSearchInput, options: CallOptions) -> Result<TranslatedCall, Error> {
    let (path, include_hidden) = match input {
        KruxSearchInput::ByName(input) => (&input.path, input.include_hidden),
        KruxSearchInput::ByContent(input) => (&input.path, input.include_hidden),
    };
    let path = require_absolute("path", path)?;
    let exclude = if include_hidden { &[][..] } else { HIDDEN_FILE_GLOBS };
    let walk_filter =
        WalkFilter { include: GlobPatternSet::default(), exclude: GlobPatternSet::new(exclude.iter().copied())? };
    Ok(match input {
        KruxSearchInput::ByName(input) => {
            let pattern = match input.pattern.as_str() {
                pattern if pattern.contains('/') => pattern.to_owned(),
                pattern => format!("**/{pattern}"),
            };
            let max = result_limit(input.max_results, limits::FIND_MATCHES_MAX).max(1);
            let arguments = json!({ "path": path, "pattern": pattern, "all": true, "max": max });
            let listing_style = ListingPageSizeAndDetail::DetailedEntries(max);
            TranslatedCall::new("find", arguments, CallOptions { listing_style, walk_filter, ..options })
        }
        KruxSearchInput::ByContent(input) => {
            let max = if input.files_only {
                limits::SEARCH_HITS_MAX
            } else {
                result_limit(input.max_results, limits::SEARCH_HITS_MAX).max(1)
            };
            let mut arguments = json!({
                "query": input.pattern,
                "path": path,
                "regex": input.regex,
                "ignore_case": !input.case_sensitive,
                "context": input.context_lines.min(limits::SEARCH_CONTEXT_MAX as u64),
                "all": true,
                "max": max,
            });
            if let Some(glob) = &input.include_glob {
                arguments["glob"] = glob.as_str().into();
            }
            let (before_after, hit_ranking) = (BeforeAfterContentInclusion::Include, SearchHitOrder::ByRelevance);
            let options = CallOptions { walk_filter, before_after, hit_ranking, ..options };
            TranslatedCall::new("search", arguments, options)
        }
    })
}

fn result_limit(requested: u64, max: usize) -> usize {
    usize::try_from(requested).unwrap_or(max).min(max)
}

pub(super) fn render_outcome(call: &KruxCall<'_>, input: &KruxSearchInput, outcome: &RenderedOutcome) -> Value {
    let (total, truncated) = (outcome.number_field("total"), outcome.is_set("truncated"));
    let items = |name: &str| outcome.list_field(name).iter();
    match input {
        KruxSearchInput::ByName(input) => {
            let max = result_limit(input.max_results, limits::FIND_MATCHES_MAX);
            let matches: Vec<Value> = items("matches").take(max).map(|item| render_name_match(call, item)).collect();
            let truncated = truncated || (matches.len() as u64) < total;
            json!({ "matches": matches, "total_matches": total, "truncated": truncated })
        }
        KruxSearchInput::ByContent(input) => {
            let max = result_limit(input.max_results, limits::SEARCH_HITS_MAX);
            let results: Vec<Value> = if input.files_only {
                group_by_file(call, items("hits")).into_iter().take(max).collect()
            } else {
                items("hits").take(max).map(|hit| render_content_match(call, hit)).collect()
            };
            let fewer = !input.files_only && (results.len() as u64) < total;
            json!({
                "results": results,
                "total_matches": total,
                "files_searched": outcome.json.get("scanned"),
                "truncated": truncated || fewer,
            })
        }
    }
}

fn absolute_match_path(call: &KruxCall<'_>, item: &Value) -> String {
    call.dialect.paths.absolute_path(item["path"].as_str().unwrap_or("."))
}

fn render_name_match(call: &KruxCall<'_>, item: &Value) -> Value {
    json!({
        "path": absolute_match_path(call, item),
        "type": files::entry_type_name(&item["type"]),
        "size": item["size"],
        "modified": item["modified"],
    })
}

fn render_content_match(call: &KruxCall<'_>, hit: &Value) -> Value {
    json!({
        "path": absolute_match_path(call, hit),
        "line": hit["line"],
        "column": hit["column"],
        "match": hit["text"],
        "context_before": hit["before"],
        "context_after": hit["after"],
        "score": hit["points"],
    })
}

fn group_by_file<'a>(call: &KruxCall<'_>, hits: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    let mut counts: Map<String, Value> = Map::new();
    for hit in hits {
        let count = counts.entry(absolute_match_path(call, hit)).or_insert(Value::from(0));
        *count = Value::from(count.as_u64().unwrap_or_default() + 1);
    }
    counts.into_iter().map(|(path, count)| json!({ "path": path, "match_count": count })).collect()
}
