//! Search by name and by content. Searches do not apply ignore files such as `.gitignore`, because the dialect's
//! document does not mention them. Hidden files are excluded, unless the call requests hidden files.

use serde_json::{Map, Value, json};
use stead_engine::{
    BeforeAfterContentInclusion, CallOptions, CallOutcome, Error, Globs, ListingPageSizeAndDetail, SearchHitOrder,
    WalkFilter, limits,
};

use super::{
    super::{TranslatedCall, rendering::CallOutcomeFieldsExt},
    KruxCall,
    args::require_absolute,
    capability::KruxSearchTool,
    files,
};

const RESULTS_DEFAULT: usize = 100;
const CONTEXT_LINES_DEFAULT: u64 = 2;
const HIDDEN_FILE_GLOBS: &[&str] = &["**/.*", "**/.*/**"];

pub(super) fn translate(
    call: &KruxCall<'_>,
    capability: KruxSearchTool,
    options: CallOptions,
) -> Result<TranslatedCall, Error> {
    let inputs = &call.inputs;
    let path = require_absolute("path", inputs.text_or_empty("path"))?;
    let exclude = if inputs.is_set("include_hidden") { &[][..] } else { HIDDEN_FILE_GLOBS };
    let walk_filter = WalkFilter { include: Globs::default(), exclude: Globs::new(exclude.iter().copied())? };
    Ok(match capability {
        KruxSearchTool::ByName => {
            let pattern = inputs.text_or_empty("pattern");
            let pattern = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
            let max = result_limit(call, limits::FIND_MATCHES_MAX).max(1);
            let arguments = json!({ "path": path, "pattern": pattern, "all": true, "max": max });
            let listing_style = ListingPageSizeAndDetail::DetailedEntries(max);
            TranslatedCall::new("find", arguments, CallOptions { listing_style, walk_filter, ..options })
        }
        KruxSearchTool::ByContent => {
            let context = inputs.number("context_lines").unwrap_or(CONTEXT_LINES_DEFAULT);
            let max = if inputs.is_set("files_only") {
                limits::SEARCH_HITS_MAX
            } else {
                result_limit(call, limits::SEARCH_HITS_MAX).max(1)
            };
            let mut arguments = json!({
                "query": inputs.text_or_empty("pattern"),
                "path": path,
                "regex": inputs.is_set("regex"),
                "ignore_case": inputs.is_explicitly_false("case_sensitive"),
                "context": context.min(limits::SEARCH_CONTEXT_MAX as u64),
                "all": true,
                "max": max,
            });
            if let Some(glob) = inputs.optional_text("include_glob") {
                arguments["glob"] = glob.into();
            }
            let (before_after, hit_ranking) = (BeforeAfterContentInclusion::Include, SearchHitOrder::ByRelevance);
            let options = CallOptions { walk_filter, before_after, hit_ranking, ..options };
            TranslatedCall::new("search", arguments, options)
        }
    })
}

fn result_limit(call: &KruxCall<'_>, max: usize) -> usize {
    let requested = call.inputs.number("max_results").map(usize::try_from);
    requested.map_or(RESULTS_DEFAULT, |requested| requested.unwrap_or(max)).min(max)
}

pub(super) fn render_outcome(call: &KruxCall<'_>, capability: KruxSearchTool, outcome: &CallOutcome) -> Value {
    let (total, truncated) = (outcome.number_field("total"), outcome.is_set("truncated"));
    let items = |name: &str| outcome.list_field(name).iter();
    match capability {
        KruxSearchTool::ByName => {
            let max = result_limit(call, limits::FIND_MATCHES_MAX);
            let matches: Vec<Value> = items("matches").take(max).map(|item| render_name_match(call, item)).collect();
            let truncated = truncated || (matches.len() as u64) < total;
            json!({ "matches": matches, "total_matches": total, "truncated": truncated })
        }
        KruxSearchTool::ByContent => {
            let max = result_limit(call, limits::SEARCH_HITS_MAX);
            let results: Vec<Value> = if call.inputs.is_set("files_only") {
                group_by_file(call, items("hits")).into_iter().take(max).collect()
            } else {
                items("hits").take(max).map(|hit| render_content_match(call, hit)).collect()
            };
            let fewer = !call.inputs.is_set("files_only") && (results.len() as u64) < total;
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
