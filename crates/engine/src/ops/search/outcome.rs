//! The native outcome of `search` has a summary, the ranked hits and the arguments of the next page. If a query has no
//! hits, the native outcome of `search` shows the hits of a similar query. For a dialect with its own outcome format,
//! `search` returns all hits with their lines.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;
use stead_path::RelPath;
use stead_text::rank::SymbolRole;

use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{OperationPlanningResult, ResolvedTarget},
    ops::{
        search::{
            FileToSearch, SearchArgs, SearchPatternAndLimits, SearchResults, large_file_deadline,
            matcher::{SearchHit, serialize_lines},
            page::{SearchHitsPage, SearchPageRequest, order_by_role, order_by_words, select_page},
            query::{self, AlternativeQueryInterpretation, SearchQueryTexts},
            results::{FileHitsRow, SearchedFileCountFields},
        },
        walk::{self, IgnoredFileInclusionPolicy},
    },
    outcome::{Completeness, FileShownInOutcome, OperationOutcome, SavedAndUnsavedVersion},
    plan::FileKind,
};

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum SearchOutcome {
    Page(Box<NativeSearchOutcome>),
    ByRelevance(SearchHitsByRelevance),
    ByPath(SearchHitsByPath),
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct NativeSearchOutcome {
    pub path: RelPath,
    #[serde(flatten)]
    pub page: SearchHitsPage,
    pub total: usize,
    #[serde(flatten)]
    pub counts: SearchedFileCountFields,
    #[serde(flatten)]
    pub completeness: Completeness<SearchArgs>,
    /// The alternatives that `search` offers for a query without hits; `None` if the query has hits.
    #[serde(flatten)]
    pub alternatives: Option<NoHitsSearchSuggestions>,
    #[serde(skip)]
    pub query: SearchQueryTexts,
    /// The number of search hits on all earlier pages.
    #[serde(skip)]
    pub start: usize,
    /// The number of search hits that are not listed on any page.
    #[serde(skip)]
    pub unlisted: usize,
    #[serde(skip)]
    pub files_with_hits: usize,
    #[serde(skip)]
    pub definitions: usize,
    #[serde(skip)]
    pub likely_definitions: usize,
}

/// The similar queries and file names that `search` tries for a query without hits.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct NoHitsSearchSuggestions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<AlternativeQuerySearchHits>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<RelPath>,
    /// The alternative interpretations of the query that were tried without finding hits.
    #[serde(skip)]
    pub tried: Vec<AlternativeQueryInterpretation>,
    /// Whether time ran out before every alternative interpretation of the query was tried.
    #[serde(skip)]
    pub out_of_time: bool,
}

/// The hits of an alternative interpretation of a query that itself has no hits.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AlternativeQuerySearchHits {
    pub read: &'static str,
    pub total: usize,
    #[serde(flatten)]
    pub page: SearchHitsPage,
    #[serde(skip)]
    pub files_with_hits: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchHitsByRelevance {
    pub path: RelPath,
    pub hits: Vec<RankedSearchHitRow>,
    pub total: usize,
    pub scanned: u64,
    #[serde(flatten)]
    pub completeness: Completeness<SearchArgs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<SavedAndUnsavedVersion>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct RankedSearchHitRow {
    pub path: RelPath,
    pub line: u64,
    pub column: usize,
    pub text: String,
    #[serde(serialize_with = "serialize_lines")]
    pub before: Vec<Arc<str>>,
    #[serde(serialize_with = "serialize_lines")]
    pub after: Vec<Arc<str>>,
    pub points: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchHitsByPath {
    pub path: RelPath,
    pub files: Vec<FileHitsRow<SearchHit>>,
    pub total: usize,
    #[serde(flatten)]
    pub counts: SearchedFileCountFields,
    #[serde(flatten)]
    pub completeness: Completeness<SearchArgs>,
    #[serde(skip)]
    pub query: SearchQueryTexts,
}

impl OperationOutcome for SearchOutcome {
    fn shown_files(&mut self) -> Vec<FileShownInOutcome<'_>> {
        match self {
            Self::Page(outcome) => {
                let nearest = outcome.alternatives.as_mut().and_then(|alternatives| alternatives.nearest.as_mut());
                let page = nearest.map_or(&mut outcome.page, |nearest| &mut nearest.page);
                page.files.iter_mut().map(FileHitsRow::shown_file).collect()
            }
            Self::ByRelevance(SearchHitsByRelevance { path, unsaved, .. }) => {
                vec![FileShownInOutcome { path, version: None, unsaved }]
            }
            Self::ByPath(outcome) => outcome.files.iter_mut().map(FileHitsRow::shown_file).collect(),
        }
    }
}

pub(super) fn native_outcome(
    search: &SearchArgs,
    search_context: &SearchPatternAndLimits<'_>,
    target: &ResolvedTarget,
    hits_max: usize,
) -> Result<OperationPlanningResult<SearchOutcome>, Error> {
    let request = page_request(search, hits_max)?;
    let started = Instant::now();
    let mut found = search.search_tree(search_context, target)?;
    let mut bytes = found.bytes_searched;
    let mut alternatives = None;
    if found.hits_total == 0 {
        alternatives = Some(search_alternatives(search, search_context, target, started.elapsed(), &mut bytes)?);
    } else if search.context.is_none() && request.start == 0 {
        add_context_lines(search_context, &mut found)?;
    }
    let outcome = NativeSearchOutcome { alternatives, ..page_outcome(search, found, target, request) };
    Ok(OperationPlanningResult::Read { outcome: SearchOutcome::Page(Box::new(outcome)), bytes })
}

fn page_outcome(
    search: &SearchArgs,
    found: SearchResults,
    target: &ResolvedTarget,
    request: SearchPageRequest,
) -> NativeSearchOutcome {
    let order = order_by_role(&found.files);
    let page = select_page(&found.files, &order, request);
    let unlisted = found.hits_total - order.len();
    let completeness = match page.next_start {
        Some(next) => {
            let is_full = next - request.start == request.hits_max;
            let limit = if is_full { "SEARCH_HITS_MAX" } else { "SEARCH_BUDGET_CHARS_DEFAULT" };
            Completeness::continued_by(SearchArgs { cursor: Some(next.to_string()), ..search.clone() }, limit)
        }
        None if unlisted > 0 => Completeness::narrowed_by("path", "SEARCH_RANKED_HITS_MAX"),
        None => walk_completeness(&found),
    };
    let count_role =
        |role: SymbolRole| found.files.iter().flat_map(|file| &file.hits).filter(|hit| hit.weight.role == role).count();
    NativeSearchOutcome {
        path: target.path.clone(),
        page,
        total: found.hits_total,
        completeness,
        alternatives: None,
        query: search.query.clone(),
        start: request.start,
        unlisted,
        files_with_hits: found.files_with_hits,
        definitions: count_role(SymbolRole::Definition),
        likely_definitions: count_role(SymbolRole::LikelyDefinition),
        counts: found.counts,
    }
}

fn walk_completeness(found: &SearchResults) -> Completeness<SearchArgs> {
    if found.walk_limit_reached {
        return Completeness::narrowed_by("path", "TREE_ENTRIES_MAX");
    }
    Completeness::Complete
}

fn page_request(search: &SearchArgs, hits_max: usize) -> Result<SearchPageRequest, Error> {
    let bad = |detail: String, next_step: NextStep| Error::new(ErrorKind::BadRequest, detail).with_next_step(next_step);
    let start = match search.cursor.as_deref().map(str::parse) {
        None => 0,
        Some(Ok(start)) => start,
        Some(Err(_)) => {
            return Err(bad(
                "the cursor is not one that search returned".to_owned(),
                NextStep::repeat_without("cursor").or("pass the one in the previous result of the same search"),
            ));
        }
    };
    let budget_chars = match search.budget.map(usize::try_from) {
        None => limits::SEARCH_BUDGET_CHARS_DEFAULT,
        Some(Ok(budget)) if (1..=limits::OUTCOME_PAGE_CHARS).contains(&budget) => budget,
        Some(_) => {
            let detail = format!("budget must be from 1 to {} characters", limits::OUTCOME_PAGE_CHARS);
            return Err(bad(detail, NextStep::repeat_without("budget")));
        }
    };
    Ok(SearchPageRequest { start, hits_max, budget_chars })
}

/// Adds context lines to a search with few hits by searching the files with hits again.
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
    for file in &found.files {
        wide.search_file(&mut again, &FileToSearch::ByPath(&file.path))?;
    }
    // If the files changed between both searches, the hits stay without context lines.
    if again.hits_total == found.hits_total && again.files.len() == found.files.len() {
        found.files = again.files;
    }
    Ok(())
}

fn search_alternatives(
    search: &SearchArgs,
    search_context: &SearchPatternAndLimits<'_>,
    target: &ResolvedTarget,
    took: Duration,
    bytes: &mut u64,
) -> Result<NoHitsSearchSuggestions, Error> {
    let context = search_context.context;
    let queries = search.query.texts(context)?;
    let mut alternatives = NoHitsSearchSuggestions::default();
    for (fallback, pattern) in query::fallback_patterns(&queries, search.query_options()) {
        if !has_time_for(context, took) {
            alternatives.out_of_time = true;
            break;
        }
        let large_file_deadline = large_file_deadline(context, 2);
        let fallback_context = SearchPatternAndLimits { pattern: &pattern, large_file_deadline, ..*search_context };
        let other = search.search_tree(&fallback_context, target)?;
        *bytes += other.bytes_searched;
        if other.hits_total > 0 {
            alternatives.nearest = Some(AlternativeQuerySearchHits {
                read: fallback.as_str(),
                total: other.hits_total,
                page: fallback_page(&queries, fallback, &other),
                files_with_hits: other.files_with_hits,
            });
            break;
        }
        alternatives.tried.push(fallback);
    }
    if has_time_for(context, took) {
        alternatives.names = similar_file_names(search, search_context, target)?;
    }
    Ok(alternatives)
}

fn has_time_for(context: &CallContext<'_>, duration: Duration) -> bool {
    context.control.deadline().saturating_duration_since(Instant::now()) > duration.saturating_mul(2)
}

fn fallback_page(queries: &[&str], fallback: AlternativeQueryInterpretation, other: &SearchResults) -> SearchHitsPage {
    let order = match fallback {
        AlternativeQueryInterpretation::SeparateWords => {
            order_by_words(&other.files, &query::split_words(queries), other.counts.scanned)
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
    select_page(&other.files, &order, request)
}

fn similar_file_names(
    search: &SearchArgs,
    search_context: &SearchPatternAndLimits<'_>,
    target: &ResolvedTarget,
) -> Result<Vec<RelPath>, Error> {
    if target.stat.is_some_and(|stat| stat.kind == FileKind::File) {
        return Ok(Vec::new());
    }
    let queries = search.query.texts(search_context.context)?;
    let make: &(dyn Fn() -> Vec<RelPath> + Sync) = &Vec::new;
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
                found.push(entry.path.clone());
            }
            Ok(())
        },
    )?;
    let mut names: Vec<RelPath> = found.into_iter().flatten().collect();
    names.sort_by_cached_key(|path| {
        let name = path.to_string();
        (name.len(), name)
    });
    names.truncate(limits::SEARCH_SUGGESTED_FILES_MAX);
    Ok(names)
}

pub(super) fn hits_by_relevance(
    search: &SearchArgs,
    found: SearchResults,
    target: &ResolvedTarget,
    max: usize,
) -> SearchOutcome {
    let order = order_by_role(&found.files);
    let row = |&(at, number): &(usize, usize)| {
        let FileHitsRow { path, hits, .. } = found.files.get(at)?;
        let SearchHit { line, column, text, before, after, weight } = hits.get(number)?;
        Some(RankedSearchHitRow {
            path: path.clone(),
            line: *line,
            column: *column,
            text: text.clone(),
            before: before.clone(),
            after: after.clone(),
            points: weight.points,
        })
    };
    let hits: Vec<RankedSearchHitRow> = order.iter().take(max).filter_map(row).collect();
    SearchOutcome::ByRelevance(SearchHitsByRelevance {
        path: target.path.clone(),
        completeness: listing_completeness(search, &found, hits.len(), max),
        hits,
        total: found.hits_total,
        scanned: found.counts.scanned,
        unsaved: None,
    })
}

pub(super) fn hits_by_path(
    search: &SearchArgs,
    found: SearchResults,
    target: &ResolvedTarget,
    max: usize,
) -> SearchOutcome {
    SearchOutcome::ByPath(SearchHitsByPath {
        path: target.path.clone(),
        completeness: listing_completeness(search, &found, found.hits_listed, max),
        files: found.files,
        total: found.hits_total,
        counts: SearchedFileCountFields { left: Vec::new(), ..found.counts },
        query: search.query.clone(),
    })
}

/// Returns whether the listing is complete; if not, suggests a larger `max` or a narrower path.
fn listing_completeness(
    search: &SearchArgs,
    found: &SearchResults,
    listed: usize,
    max: usize,
) -> Completeness<SearchArgs> {
    let (limit, most) = ("SEARCH_HITS_MAX", limits::SEARCH_HITS_MAX);
    if listed == found.hits_total {
        walk_completeness(found)
    } else if max == most {
        Completeness::narrowed_by("path", limit)
    } else {
        Completeness::continued_by(SearchArgs { max: Some(most as u64), ..search.clone() }, limit)
    }
}
