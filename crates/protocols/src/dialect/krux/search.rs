//! The krux searches by name and by content. Searches do not apply ignore files such as `.gitignore`, because the
//! dialect's document does not mention them. Hidden files are excluded, unless the call requests hidden files.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use stead_engine::{
    BeforeAfterContentInclusion, CallOptions, Error, ErrorKind, GlobPatternSet, ListingPageSizeAndDetail,
    SearchHitOrder, WalkFilter, limits,
    ops::{FindArgs, FindOutcome, FoundPathRow, RankedSearchHitRow, SearchArgs, SearchOutcome, SearchQueryTexts},
};

use super::{
    super::DialectToolCall,
    KruxCall, KruxPreparedCall, files,
    inputs::{KruxContentSearchInput, KruxSearchInput},
    paths::require_absolute,
};

const HIDDEN_FILE_GLOBS: &[&str] = &["**/.*", "**/.*/**"];

pub(super) fn translate(call: &Arc<KruxCall>, input: &KruxSearchInput, options: CallOptions) -> KruxPreparedCall {
    let (path, include_hidden) = match input {
        KruxSearchInput::ByName(input) => (&input.path, input.include_hidden),
        KruxSearchInput::ByContent(input) => (&input.path, input.include_hidden),
    };
    let path = Some(require_absolute("path", path)?.to_owned());
    let exclude = if include_hidden { &[][..] } else { HIDDEN_FILE_GLOBS };
    let walk_filter =
        WalkFilter { include: GlobPatternSet::default(), exclude: GlobPatternSet::new(exclude.iter().copied())? };
    Ok(match input {
        KruxSearchInput::ByName(input) => {
            let pattern = match input.pattern.as_str() {
                pattern if pattern.contains('/') => pattern.to_owned(),
                pattern => format!("**/{pattern}"),
            };
            let shown = result_limit(input.max_results, limits::FIND_MATCHES_MAX);
            let max = shown.max(1);
            let arguments = FindArgs { path, pattern, all: Some(true), max: Some(max as u64) };
            let listing_style = ListingPageSizeAndDetail::DetailedEntries(max);
            let options = CallOptions { listing_style, walk_filter, ..options };
            call.prepare(arguments, options, move |call, find| Ok(render_name_matches(call, shown, &find.outcome)))
        }
        KruxSearchInput::ByContent(input) => {
            let max = if input.files_only {
                limits::SEARCH_HITS_MAX
            } else {
                result_limit(input.max_results, limits::SEARCH_HITS_MAX).max(1)
            };
            let arguments = SearchArgs {
                query: SearchQueryTexts::Text(input.pattern.clone()),
                path,
                regex: Some(input.regex),
                ignore_case: Some(!input.case_sensitive),
                context: Some(input.context_lines.min(limits::SEARCH_CONTEXT_MAX as u64)),
                glob: input.include_glob.clone(),
                all: Some(true),
                max: Some(max as u64),
                hit_order: SearchHitOrder::ByRelevance,
                ..SearchArgs::default()
            };
            let before_after = BeforeAfterContentInclusion::Include;
            let options = CallOptions { walk_filter, before_after, ..options };
            let input = input.clone();
            call.prepare(arguments, options, move |call, search| render_content_matches(call, &input, &search.outcome))
        }
    })
}

fn result_limit(requested: u64, max: usize) -> usize {
    usize::try_from(requested).unwrap_or(max).min(max)
}

fn render_name_matches(call: &KruxCall, max: usize, find: &FindOutcome) -> Value {
    let matches: Vec<Value> = find.matches.iter().take(max).map(|item| render_name_match(call, item)).collect();
    let truncated = find.completeness.is_truncated() || (matches.len() as u64) < find.total;
    json!({ "matches": matches, "total_matches": find.total, "truncated": truncated })
}

fn render_name_match(call: &KruxCall, item: &FoundPathRow) -> Value {
    json!({
        "path": call.dialect.paths.absolute_path(&item.path),
        "type": files::entry_type_name(item.kind),
        "size": item.size,
        "modified": item.modified,
    })
}

fn render_content_matches(
    call: &KruxCall,
    input: &KruxContentSearchInput,
    search: &SearchOutcome,
) -> Result<Value, Error> {
    let SearchOutcome::ByRelevance(search) = search else {
        return Err(Error::new(ErrorKind::Io, "internal error: the hits are not sorted by relevance"));
    };
    let max = result_limit(input.max_results, limits::SEARCH_HITS_MAX);
    let results: Vec<Value> = if input.files_only {
        group_by_file(call, &search.hits).into_iter().take(max).collect()
    } else {
        search.hits.iter().take(max).map(|hit| render_content_match(call, hit)).collect()
    };
    let fewer = !input.files_only && results.len() < search.total;
    Ok(json!({
        "results": results,
        "total_matches": search.total,
        "files_searched": search.scanned,
        "truncated": search.completeness.is_truncated() || fewer,
    }))
}

fn render_content_match(call: &KruxCall, hit: &RankedSearchHitRow) -> Value {
    let lines = |lines: &[Arc<str>]| lines.iter().map(|line| Value::from(&**line)).collect::<Vec<_>>();
    json!({
        "path": call.dialect.paths.absolute_path(&hit.path),
        "line": hit.line,
        "column": hit.column,
        "match": hit.text,
        "context_before": lines(&hit.before),
        "context_after": lines(&hit.after),
        "score": hit.points,
    })
}

fn group_by_file(call: &KruxCall, hits: &[RankedSearchHitRow]) -> Vec<Value> {
    let mut counts: Map<String, Value> = Map::new();
    for hit in hits {
        let count = counts.entry(call.dialect.paths.absolute_path(&hit.path)).or_insert(Value::from(0));
        *count = Value::from(count.as_u64().unwrap_or_default() + 1);
    }
    counts.into_iter().map(|(path, count)| json!({ "path": path, "match_count": count })).collect()
}
