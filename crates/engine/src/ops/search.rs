//! `search` finds the lines below a directory that contain a text or match a regular expression. Each line that matches
//! is one hit. The native outcome of `search` ranks hits by relevance; a dialect can get the hits in byte order of the
//! paths.

mod index_lookup;
mod interruptible;
mod large_files;
mod matcher;
mod outcome;
mod page;
mod query;
mod results;

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use index_lookup::IndexBasedFileSkipChecker;
pub(crate) use matcher::SearchCaseSensitivity;
use matcher::{QuerySyntax, SearchHitCollectionOptions, SearchHitsInOneText, SearchPattern, WordMatchMode};
pub use matcher::{SearchHit, SearchTextLine, SearchTextLineKind};
pub use outcome::{
    AlternativeQuerySearchHits, NativeSearchOutcome, NoHitsSearchSuggestions, RankedSearchHitRow, SearchHitsByPath,
    SearchHitsByRelevance, SearchOutcome,
};
pub use page::{SearchHitLocation, SearchHitsPage, SearchTextRow, SearchTextRowDetailLevel};
use query::SearchQueryOptions;
pub use query::{AlternativeQueryInterpretation, SearchQueryTexts};
use results::SearchResults;
pub use results::{FileHitsRow, IncompleteSearchReason, IncompletelySearchedFileRow, SearchedFileCountFields};
use serde::{Deserialize, Serialize};
use stead_path::RelPath;
use stead_text::rank::SearchHitScorer;

use super::{
    find::bounded_limit,
    list,
    walk::{self, IgnoredFileInclusionPolicy},
};
use crate::{
    call_context::CallContext,
    call_options::{BeforeAfterContentInclusion, SearchHitOrder},
    errors::{Error, ErrorKind},
    glob::GlobPatternSet,
    index::{decode_indexable_text, may_be_text},
    limits,
    next_step::NextStep,
    operation::{Operation, OperationPlanningResult, PathAccessRequest, PlanResult, ResolvedTarget},
    plan::FileKind,
    tree::FileReader,
    unsaved::UnsavedFile,
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchArgs {
    pub query: SearchQueryTexts,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub word: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_case: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glob: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The order of hits in the outcome of a dialect.
    #[serde(skip)]
    pub hit_order: SearchHitOrder,
}

impl Operation for SearchArgs {
    type Paths = PathAccessRequest;
    type Outcome = SearchOutcome;

    fn resolve(&self, context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        self.compile_pattern(context)?;
        Ok(PathAccessRequest::read(self.path.as_deref().unwrap_or(".")))
    }

    fn plan(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        let max = bounded_limit(self.max, limits::SEARCH_HITS_DEFAULT, limits::SEARCH_HITS_MAX)?;
        let (pattern, context_lines) = (self.compile_pattern(context)?, self.context_lines()?);
        // The unsaved files are listed once, because the walk looks up every file among them.
        let unsaved = &context.unsaved_files_within(&target.path)?;
        let before_after = context.options.before_after;
        // The native outcome always orders hits by relevance.
        let hit_order = match before_after {
            BeforeAfterContentInclusion::Omit => SearchHitOrder::ByRelevance,
            BeforeAfterContentInclusion::Include => self.hit_order,
        };
        let hits_max = match hit_order {
            SearchHitOrder::ByPath => max,
            SearchHitOrder::ByRelevance => limits::SEARCH_RANKED_HITS_MAX,
        };
        let large_file_deadline = large_file_deadline(context, 1);
        let search_context = SearchPatternAndLimits {
            context,
            pattern: &pattern,
            context_lines,
            hits_max,
            hit_order,
            large_file_deadline,
            unsaved,
        };
        if before_after == BeforeAfterContentInclusion::Omit {
            return outcome::native_outcome(self, &search_context, target, max);
        }
        let found = self.search_tree(&search_context, target)?;
        let bytes = found.bytes_searched;
        let outcome = match hit_order {
            SearchHitOrder::ByRelevance => outcome::hits_by_relevance(self, found, target, max),
            SearchHitOrder::ByPath => outcome::hits_by_path(self, found, target, max),
        };
        Ok(OperationPlanningResult::Read { outcome, bytes })
    }
}

impl SearchArgs {
    fn search_tree(
        &self,
        search_context: &SearchPatternAndLimits<'_>,
        target: &ResolvedTarget,
    ) -> Result<SearchResults, Error> {
        let (context, max) = (search_context.context, search_context.hits_max);
        let mut found = SearchResults::default();
        if target.stat.is_some_and(|stat| stat.kind == FileKind::File) {
            search_context.search_file(&mut found, &FileToSearch::ByPath(&target.path))?;
        } else {
            list::require_directory(target)?;
            let glob = GlobPatternSet::from_name_patterns(self.glob.as_deref())?;
            let include = &context.options.walk_filter.include;
            let is_selected = |below: &[u8]| {
                (glob.is_empty() || glob.matches_bytes(below)) && (include.is_empty() || include.matches_bytes(below))
            };
            if let Some(indexed) = self.search_by_index(search_context, &target.path)? {
                return Ok(indexed);
            }
            let index = context.workspace().search_index();
            let index_filter = index.and_then(|index| index.filter(search_context.pattern.required_trigrams()));
            let make = || (SearchResults::default(), IndexBasedFileSkipChecker::new(index_filter.as_deref()));
            let (thread_results, omissions) = walk::walk_tree(
                context,
                &target.path,
                IgnoredFileInclusionPolicy::from(self.all),
                &make,
                &|(found, index_cache), entry| {
                    if entry.kind != FileKind::File
                        || !is_selected(entry.path_below_start())
                        || !context.may_read(entry.path)
                    {
                        return Ok(());
                    }
                    // The index covers the content on disk, not unsaved text.
                    let is_unsaved = search_context.unsaved.contains_key(entry.path);
                    match if is_unsaved { None } else { index_cache.index_verdict(entry) } {
                        Some(verdict) => found.count_verdict(verdict),
                        None => search_context.search_file(found, &FileToSearch::OnWalk(entry))?,
                    }
                    Ok(())
                },
            )?;
            found = SearchResults::merge_all(thread_results.into_iter().map(|(found, _)| found));
            if let Some(index) = index {
                index.report_files_searched(found.files_visited());
            }
            found.counts.unreadable += omissions.unlistable_directories;
            found.counts.ignored = omissions.ignored;
            found.walk_limit_reached = omissions.limit_reached;
        }
        found.truncate(max, search_context.hit_order);
        Ok(found)
    }

    fn compile_pattern(&self, context: &CallContext<'_>) -> Result<SearchPattern, Error> {
        let options = self.query_options();
        SearchPattern::new(&self.query.texts(context)?, options.syntax, options.word_match, options.case_sensitivity)
    }

    fn query_options(&self) -> SearchQueryOptions {
        SearchQueryOptions {
            syntax: if self.regex == Some(true) { QuerySyntax::Regex } else { QuerySyntax::Literal },
            word_match: if self.word == Some(true) { WordMatchMode::WholeWord } else { WordMatchMode::Anywhere },
            case_sensitivity: if self.ignore_case == Some(true) {
                SearchCaseSensitivity::Insensitive
            } else {
                SearchCaseSensitivity::Sensitive
            },
        }
    }

    fn context_lines(&self) -> Result<usize, Error> {
        match usize::try_from(self.context.unwrap_or(0)) {
            Ok(lines) if lines <= limits::SEARCH_CONTEXT_MAX => Ok(lines),
            Ok(_) | Err(_) => Err(Error::new(
                ErrorKind::BadRequest,
                format!("context cannot exceed {} lines", limits::SEARCH_CONTEXT_MAX),
            )
            .with_next_step(
                NextStep::repeat_with_such("context", "that is smaller").or("read the lines around a hit"),
            )),
        }
    }
}

/// Returns the deadline for large files: seven eighths of the call's remaining time, divided by `parts`.
fn large_file_deadline(context: &CallContext<'_>, parts: u32) -> Instant {
    let now = Instant::now();
    now + context.control.deadline().saturating_duration_since(now) * 7 / 8 / parts
}

enum FileToSearch<'s, 'm> {
    ByPath(&'s RelPath),
    OnWalk(&'s walk::ParallelWalkEntry<'m>),
}

impl FileToSearch<'_, '_> {
    fn path(&self) -> &RelPath {
        match self {
            Self::ByPath(path) => path,
            Self::OnWalk(entry) => entry.path,
        }
    }

    fn read_bytes(&self, context: &CallContext<'_>, bytes: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Self::ByPath(path) => {
                *bytes = context.workspace().read_without_version(path, limits::SEARCH_IN_MEMORY_BYTES_MAX)?;
                Ok(())
            }
            Self::OnWalk(entry) => entry.read_bytes(&may_be_text, bytes),
        }
    }

    fn open_file(&self, context: &CallContext<'_>) -> Result<Box<dyn FileReader>, Error> {
        match self {
            Self::ByPath(path) => context.workspace().open_file(path),
            Self::OnWalk(entry) => entry.open_file(),
        }
    }
}

/// The factor by which the collected hits may exceed `hits_max` before the worst hits are dropped.
const RETAINED_HITS_FACTOR: usize = 4;

struct SearchPatternAndLimits<'a> {
    context: &'a CallContext<'a>,
    pattern: &'a SearchPattern,
    context_lines: usize,
    hits_max: usize,
    hit_order: SearchHitOrder,
    large_file_deadline: Instant,
    unsaved: &'a BTreeMap<RelPath, Arc<UnsavedFile>>,
}

impl SearchPatternAndLimits<'_> {
    fn search_file(&self, found: &mut SearchResults, source: &FileToSearch<'_, '_>) -> Result<(), Error> {
        let path = source.path();
        if !self.context.may_read(path) {
            return Ok(());
        }
        if let Some(unsaved) = self.unsaved.get(path) {
            return self.search_bytes(found, path, &unsaved.text);
        }
        let mut bytes = std::mem::take(&mut found.buffer);
        let result = match source.read_bytes(self.context, &mut bytes) {
            Ok(()) => self.search_bytes(found, path, &bytes),
            Err(error) if error.kind == ErrorKind::TooLarge => self.search_large(found, source),
            // A file that was removed or became inaccessible during the walk does not hide the hits of other files.
            Err(_) => {
                found.counts.unreadable += 1;
                Ok(())
            }
        };
        found.buffer = bytes;
        result
    }

    fn search_bytes(&self, found: &mut SearchResults, path: &RelPath, bytes: &[u8]) -> Result<(), Error> {
        let Self { context, pattern, context_lines, .. } = *self;
        let Some(text) = decode_indexable_text(bytes) else {
            found.counts.binary += 1;
            return Ok(());
        };
        found.counts.scanned += 1;
        found.bytes_searched += bytes.len() as u64;
        let ranker = self.ranker(path);
        let mut matched = pattern.find_hits(&text, self.hit_limits(ranker.as_ref()), context.control)?;
        if self.hit_order == SearchHitOrder::ByPath && text.ends_with('\n') {
            let last = text.matches('\n').count() as u64 + 1;
            matched.hits.iter_mut().for_each(|hit| hit.add_final_empty_line(last, context_lines));
        }
        self.add_matches(found, path, matched);
        Ok(())
    }

    fn ranker(&self, path: &RelPath) -> Option<SearchHitScorer> {
        (self.hit_order == SearchHitOrder::ByRelevance).then(|| SearchHitScorer::from_path(&path.to_string()))
    }

    fn hit_limits<'t>(&self, ranker: Option<&'t SearchHitScorer>) -> SearchHitCollectionOptions<'t> {
        let chars_max = match self.hit_order {
            SearchHitOrder::ByRelevance => limits::SEARCH_LINE_CHARS_MAX,
            SearchHitOrder::ByPath => usize::MAX,
        };
        SearchHitCollectionOptions { context_lines: self.context_lines, hits_max: self.hits_max, chars_max, ranker }
    }

    fn add_matches(&self, found: &mut SearchResults, path: &RelPath, matched: SearchHitsInOneText) {
        let SearchHitsInOneText { hits, hits_total, skipped_long_lines } = matched;
        if skipped_long_lines {
            found.counts.add_incomplete(path, IncompleteSearchReason::LineTooLong);
        }
        found.hits_total += hits_total;
        self.context.control.report_found(hits_total as u64);
        found.hits_listed += hits.len();
        if !hits.is_empty() {
            found.files_with_hits += 1;
            found.files.push(FileHitsRow::new(path.clone(), hits));
        }
        if found.hits_listed >= self.hits_max.saturating_mul(RETAINED_HITS_FACTOR) {
            found.truncate(self.hits_max, self.hit_order);
        }
    }
}
