//! The native outcome of `search` has a summary, the ranked hits and the arguments of the next page. If a query has no
//! hits, the native outcome of `search` shows the hits of a similar query. For a dialect with its own outcome format,
//! `search` returns all hits with their lines.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};
use stead_path::RelPath;
use stead_text::visible::escape_deceptive_line;

use crate::{
    call_context::CallContext,
    call_notation::CallNotation,
    errors::{Error, ErrorKind},
    limits,
    operation::{OperationPlanningResult, ResolvedTarget},
    ops::{
        outcome_builder::OutcomeBuilder,
        search::{
            FileToSearch, SearchArgs, SearchPatternAndLimits, SearchResults, large_file_deadline,
            matcher::{SearchHit, cut_around_column},
            page::{
                FileHits, SearchPage, SearchPageRequest, describe_definitions, file_json, order_by_role,
                order_by_words, render_page,
            },
            query::{self, AlternativeQueryInterpretation},
        },
        walk::{self, IgnoredFileInclusionPolicy, WalkOmissions},
    },
    plan::FileKind,
};

pub(super) fn native_outcome(
    search: &SearchArgs,
    search_context: &SearchPatternAndLimits<'_>,
    target: &ResolvedTarget,
    hits_max: usize,
) -> Result<OperationPlanningResult, Error> {
    let request = page_request(search, hits_max)?;
    let notation = search_context.context.options.call_notation;
    let started = Instant::now();
    let (mut found, omissions) = search.search_tree(search_context, target)?;
    if found.hits_total == 0 {
        return no_match_outcome(search, search_context, target, (&found, omissions), started.elapsed());
    }
    if search.context.is_none() && request.start == 0 {
        add_context_lines(search_context, &mut found)?;
    }
    let order = order_by_role(&found.files);
    let page = render_page(&found.files, &order, request);
    let unlisted = found.hits_total - order.len();
    let mut text = render_summary(search, &found, request);
    text.push_str(&page.text);
    if let Some(next) = page.next_start {
        let call = match notation {
            CallNotation::ToolCall => format!("cursor \"{next}\""),
            CallNotation::Command(render) => render("search", &continuation_args(search, next)),
        };
        text.push_str(&format!("[{} more: {call}]\n", found.hits_total - next));
    } else if unlisted > 0 {
        let glob = notation.render_argument_name("glob");
        text.push_str(&format!("[{unlisted} more not listed: pass a narrower path or {glob}]\n"));
    }
    text.push_str(&render_notes(&found, omissions, notation));
    let truncated = omissions.limit_reached || page.next_start.is_some() || unlisted > 0;
    let next = page.next_start.map(|next| continuation_args(search, next));
    let fields = OutcomeBuilder::new()
        .with_field("path", target.path.to_string())
        .with_field("files", page.files)
        .with_field("total", found.hits_total)
        .with_fields(counts_json(&found, omissions))
        .with_field("truncated", truncated)
        .with_some("next", next);
    Ok(OperationPlanningResult::Read { outcome: fields.build(text.trim_end()), bytes: found.bytes_searched })
}

fn page_request(search: &SearchArgs, hits_max: usize) -> Result<SearchPageRequest, Error> {
    let bad = |detail: String, next_step: &str| Error::new(ErrorKind::BadRequest, detail).with_next_step(next_step);
    let start = match search.cursor.as_deref().map(str::parse) {
        None => 0,
        Some(Ok(start)) => start,
        Some(Err(_)) => {
            return Err(bad(
                "the cursor is not one that search returned".to_owned(),
                "omit the cursor, or pass the one in the previous result of the same search",
            ));
        }
    };
    let budget_chars = match search.budget.map(usize::try_from) {
        None => limits::SEARCH_BUDGET_CHARS_DEFAULT,
        Some(Ok(budget)) if (1..=limits::OUTCOME_PAGE_CHARS).contains(&budget) => budget,
        Some(_) => {
            let detail = format!("budget must be from 1 to {} characters", limits::OUTCOME_PAGE_CHARS);
            return Err(bad(
                detail,
                "omit budget, or pass a number in this range; the cursor of the result gives further hits",
            ));
        }
    };
    Ok(SearchPageRequest { start, hits_max, budget_chars })
}

/// Searches the files of a search with few hits again to add context lines.
fn add_context_lines(search_context: &SearchPatternAndLimits<'_>, found: &mut SearchResults) -> Result<(), Error> {
    let Some((_, context)) = limits::SEARCH_AUTO_CONTEXT.iter().find(|(most, _)| found.hits_total <= *most) else {
        return Ok(());
    };
    let wide = SearchPatternAndLimits {
        context_lines: *context,
        large_file_deadline: large_file_deadline(search_context.context, 2),
        ..*search_context
    };
    let mut again = SearchResults::default();
    for (path, _) in &found.files {
        wide.search_file(&mut again, &FileToSearch::ByPath(path))?;
    }
    // If the files changed between both searches, the hits stay without context lines.
    if again.hits_total == found.hits_total && again.files.len() == found.files.len() {
        found.files = again.files;
    }
    Ok(())
}

fn render_summary(search: &SearchArgs, found: &SearchResults, request: SearchPageRequest) -> String {
    let (total, files) = (found.hits_total, found.files_with_hits);
    if request.start > 0 {
        return format!(
            "{}: from hit {} of {total}\n",
            escape_deceptive_line(&search.query.display_text()),
            request.start + 1
        );
    }
    let defined = describe_definitions(&found.files).map(|count| format!(", {count}")).unwrap_or_default();
    format!("{}{defined}\n", render_hit_count(total, files))
}

fn render_hit_count(total: usize, files: usize) -> String {
    let plural = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    format!("{} in {}", plural(total, "hit"), plural(files, "file"))
}

fn continuation_args(search: &SearchArgs, cursor: usize) -> Map<String, Value> {
    let arguments = match serde_json::to_value(search) {
        Ok(Value::Object(arguments)) => arguments,
        Ok(_) | Err(_) => Map::new(),
    };
    let mut arguments: Map<String, Value> = arguments.into_iter().filter(|(_, value)| !value.is_null()).collect();
    arguments.insert("cursor".to_owned(), cursor.to_string().into());
    arguments
}

fn counts_json(found: &SearchResults, omissions: WalkOmissions) -> Map<String, Value> {
    let some = |count: u64| (count > 0).then_some(count);
    OutcomeBuilder::new()
        .with_field("scanned", found.files_searched)
        .with_some("binary", some(found.binary_files))
        .with_some("large", some(found.incomplete.count()))
        .with_some("left", found.incomplete.named_files_json())
        .with_some("unreadable", some(found.unreadable_files))
        .with_some("ignored", omissions.ignored_count())
        .into_json()
}

fn render_notes(found: &SearchResults, omissions: WalkOmissions, notation: CallNotation) -> String {
    let counts = [(found.binary_files, "not text"), (found.unreadable_files, "not readable")];
    let mut notes: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    notes.extend(found.incomplete.render_note());
    notes.extend(match (found.hits_total, notation) {
        (0, _) | (_, CallNotation::Command(_)) => omissions.render_note(notation),
        (_, CallNotation::ToolCall) => omissions.ignored_count().map(|count| format!("{count} ignored")),
    });
    if notes.is_empty() { String::new() } else { format!("[{}]\n", notes.join("; ")) }
}

fn no_match_outcome(
    search: &SearchArgs,
    search_context: &SearchPatternAndLimits<'_>,
    target: &ResolvedTarget,
    (found, omissions): (&SearchResults, WalkOmissions),
    took: Duration,
) -> Result<OperationPlanningResult, Error> {
    let queries = search.query.texts(search_context.context)?;
    let query = search.query.display_text();
    let files = if found.files_searched == 1 { "file" } else { "files" };
    let mut text = format!("no match for \"{}\" in {} {files}", escape_deceptive_line(&query), found.files_searched);
    let mut bytes = found.bytes_searched;
    let mut tried: Vec<&str> = Vec::new();
    let mut nearest = None;
    for (fallback, pattern) in query::fallback_patterns(&queries, search.query_options()) {
        if !has_time_for(search_context.context, took) {
            text.push_str("; no time to try other interpretations");
            break;
        }
        let fallback_context = SearchPatternAndLimits {
            pattern: &pattern,
            large_file_deadline: large_file_deadline(search_context.context, 2),
            ..*search_context
        };
        let (other, _) = search.search_tree(&fallback_context, target)?;
        bytes += other.bytes_searched;
        if other.hits_total > 0 {
            nearest = Some((fallback, other));
            break;
        }
        tried.push(fallback.describe());
    }
    if !tried.is_empty() {
        text.push_str(&format!(" (also tried {})", tried.join(", ")));
    }
    let mut fields = OutcomeBuilder::new()
        .with_field("path", target.path.to_string())
        .with_field("files", Vec::<Value>::new())
        .with_field("total", 0)
        .with_fields(counts_json(found, omissions))
        .with_field("truncated", omissions.limit_reached);
    if let Some((fallback, other)) = nearest {
        let (interpretation, page) = (fallback.as_str(), fallback_page(&queries, fallback, &other));
        text.push_str(&format!(
            "\nnearest, {interpretation}: {}\n{}",
            render_hit_count(other.hits_total, other.files_with_hits),
            page.text
        ));
        let near = OutcomeBuilder::new()
            .with_field("read", interpretation)
            .with_field("total", other.hits_total)
            .with_field("files", page.files);
        fields = fields.with_field("nearest", near.into_json());
    }
    let names = if has_time_for(search_context.context, took) {
        similar_file_names(search, search_context, target)?
    } else {
        Vec::new()
    };
    if !names.is_empty() {
        let escaped: Vec<String> = names.iter().map(|name| escape_deceptive_line(name).into_owned()).collect();
        text = format!("{}\nfiles with similar names: {}", text.trim_end(), escaped.join(", "));
        fields = fields.with_field("names", names);
    }
    let text = format!(
        "{}\n{}",
        text.trim_end(),
        render_notes(found, omissions, search_context.context.options.call_notation)
    );
    Ok(OperationPlanningResult::Read { outcome: fields.build(text.trim_end()), bytes })
}

fn has_time_for(context: &CallContext<'_>, duration: Duration) -> bool {
    context.control.deadline().saturating_duration_since(Instant::now()) > duration.saturating_mul(2)
}

fn fallback_page(queries: &[&str], fallback: AlternativeQueryInterpretation, other: &SearchResults) -> SearchPage {
    let order = match fallback {
        AlternativeQueryInterpretation::SeparateWords => {
            order_by_words(&other.files, &query::split_words(queries), other.files_searched)
        }
        AlternativeQueryInterpretation::WordParts
        | AlternativeQueryInterpretation::IgnoreCase
        | AlternativeQueryInterpretation::AsRegex
        | AlternativeQueryInterpretation::AsLiteral
        | AlternativeQueryInterpretation::Misspelled => order_by_role(&other.files),
    };
    let request = SearchPageRequest {
        start: 0,
        hits_max: limits::SEARCH_FALLBACK_HITS_MAX,
        budget_chars: limits::SEARCH_BUDGET_CHARS_DEFAULT / 2,
    };
    render_page(&other.files, &order, request)
}

fn similar_file_names(
    search: &SearchArgs,
    search_context: &SearchPatternAndLimits<'_>,
    target: &ResolvedTarget,
) -> Result<Vec<String>, Error> {
    if target.stat.is_some_and(|stat| stat.kind == FileKind::File) {
        return Ok(Vec::new());
    }
    let queries = search.query.texts(search_context.context)?;
    let make: &(dyn Fn() -> Vec<String> + Sync) = &Vec::new;
    let (found, _) = walk::walk_tree(
        search_context.context,
        &target.path,
        IgnoredFileInclusionPolicy::from(search.all),
        make,
        &|found, entry| {
            let path = entry.path.to_string();
            let name = path.rsplit('/').next().unwrap_or(&path);
            let is_similar = queries.iter().any(|query| query::is_similar_name(name, query));
            if entry.kind == FileKind::File && is_similar && search_context.context.may_read(entry.path) {
                found.push(path);
            }
            Ok(())
        },
    )?;
    let mut names: Vec<String> = found.into_iter().flatten().collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    names.truncate(limits::SEARCH_SUGGESTED_FILES_MAX);
    Ok(names)
}

pub(super) fn ranked_outcome(
    found: &SearchResults,
    top: &RelPath,
    omissions: WalkOmissions,
    max: usize,
) -> OperationPlanningResult {
    let order = order_by_role(&found.files);
    let best = order.iter().take(max).filter_map(|(file, number)| {
        let (path, hits) = found.files.get(*file)?;
        Some(ranked_hit_json(path, hits.get(*number)?))
    });
    let hits: Vec<_> = best.collect();
    let count = hits.len();
    let outcome = OutcomeBuilder::new()
        .with_field("path", top.to_string())
        .with_field("hits", hits)
        .with_field("total", found.hits_total)
        .with_field("scanned", found.files_searched)
        .with_field("truncated", omissions.limit_reached || count < found.hits_total)
        .build_one_line(format!("{count} of {} hits", found.hits_total));
    OperationPlanningResult::Read { outcome, bytes: found.bytes_searched }
}

fn ranked_hit_json(path: &RelPath, hit: &SearchHit) -> Map<String, Value> {
    let context_lines = |lines: &[Arc<str>]| -> Vec<String> {
        lines.iter().map(|line| cut_around_column(line, 1, limits::SEARCH_LINE_CHARS_MAX)).collect()
    };
    OutcomeBuilder::new()
        .with_field("path", path.to_string())
        .with_field("line", hit.line)
        .with_field("column", hit.column)
        .with_field("text", hit.text.clone())
        .with_field("before", context_lines(&hit.before))
        .with_field("after", context_lines(&hit.after))
        .with_field("points", hit.weight.points)
        .into_json()
}

pub(super) fn by_path_outcome(
    found: &SearchResults,
    target: &ResolvedTarget,
    query: &str,
    omissions: WalkOmissions,
) -> OperationPlanningResult {
    let text = render_by_path(found, query, omissions);
    let truncated = omissions.limit_reached || found.hits_listed < found.hits_total;
    let file = |(path, hits): &FileHits| file_json(path, hits.iter().map(SearchHit::to_json).collect());
    let files: Vec<_> = found.files.iter().map(file).collect();
    let some = |count: u64| (count > 0).then_some(count);
    let outcome = OutcomeBuilder::new()
        .with_field("path", target.path.to_string())
        .with_field("files", files)
        .with_field("total", found.hits_total)
        .with_field("scanned", found.files_searched)
        .with_some("binary", some(found.binary_files))
        .with_some("large", some(found.incomplete.count()))
        .with_some("unreadable", some(found.unreadable_files))
        .with_some("ignored", omissions.ignored_count())
        .with_field("truncated", truncated)
        .build(text);
    OperationPlanningResult::Read { outcome, bytes: found.bytes_searched }
}

fn render_by_path(found: &SearchResults, query: &str, omissions: WalkOmissions) -> String {
    let mut text = String::new();
    for (path, hits) in &found.files {
        text.push_str(&format!("{}\n", escape_deceptive_line(&path.to_wire())));
        for hit in hits {
            hit.render(&mut text);
        }
    }
    let (query, total, files) = (escape_deceptive_line(query), found.hits_total, found.files.len());
    match (total, total - found.hits_listed) {
        (0, _) => text.push_str(&format!("[no match for \"{query}\" in {} files", found.files_searched)),
        (_, 0) => text.push_str(&format!("[{total} hits in {files} files")),
        (_, left) => text.push_str(&format!(
            "[{} hits in {files} files; truncated, {left} more: pass a narrower path or a glob, or raise max up to {}",
            found.hits_listed,
            limits::SEARCH_HITS_MAX
        )),
    }
    for (count, what) in [
        (found.binary_files, "not text"),
        (found.incomplete.count(), "too large"),
        (found.unreadable_files, "not readable"),
    ] {
        if count > 0 {
            text.push_str(&format!("; {count} {what}"));
        }
    }
    text.extend(omissions.render_note(CallNotation::ToolCall).map(|note| format!("; {note}")));
    text.push(']');
    text
}
