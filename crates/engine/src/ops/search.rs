//! `search`: lines below a directory that contain a text or match a regular expression, one hit per line. The native
//! outcome ranks hits by relevance; a dialect with its own format gets byte order of paths. Binary files are counted
//! and partly searched files are named; nothing is silently skipped.

mod fallbacks;
mod incomplete;
mod index_lookup;
mod interruptible;
mod large_file_reader;
mod large_files;
mod matcher;
mod native_outcome;
mod page;
mod query;
mod ranked_outcome;

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc, time::Instant};

use fallbacks::QueryOptions;
use incomplete::{IncompleteFiles, IncompleteReason};
use index_lookup::DirectoryIndexCache;
pub(crate) use matcher::CaseSensitivity;
use matcher::{HitLimits, QuerySyntax, SearchHit, SearchPattern, TextMatches, WordMatch};
use query::SearchQuery;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stead_path::RelPath;
use stead_text::{rank::FileRanker, visible::escape_deceptive_line};

use super::{find::bounded_limit, list, outcome_builder::OutcomeBuilder, walk, walk::IgnoredFileFilter};
use crate::{
    call_context::CallContext,
    call_options::{BeforeAfterInclusion, HitRanking},
    errors::{Error, ErrorKind},
    glob::Globs,
    index::{decode_indexable_text, may_be_text},
    limits,
    operation::{Operation, PlannedEffect, RequestedPath, ResolvedTarget},
    plan::FileKind,
    unsaved::UnsavedFile,
    workspace::FileReader,
};

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchArgs {
    query: SearchQuery,
    path: Option<String>,
    regex: Option<bool>,
    word: Option<bool>,
    ignore_case: Option<bool>,
    glob: Option<String>,
    context: Option<u64>,
    all: Option<bool>,
    max: Option<u64>,
    budget: Option<u64>,
    cursor: Option<String>,
}

/// The results so far.
#[derive(Default)]
struct SearchResults {
    files: Vec<(RelPath, Vec<SearchHit>)>,
    hits_shown: usize,
    /// All hits, listed or not.
    hits_total: usize,
    /// All files with hits, listed or not.
    files_with_hits: usize,
    files_searched: u64,
    bytes_searched: u64,
    binary_files: u64,
    incomplete: IncompleteFiles,
    unreadable_files: u64,
    /// Reused read buffer.
    buffer: Vec<u8>,
}

impl Operation for SearchArgs {
    fn requested_paths(&self, context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        self.compile_pattern(context)?;
        Ok(vec![RequestedPath::read(self.path.as_deref().unwrap_or("."))])
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let target = &targets[0];
        let max = bounded_limit(self.max, limits::SEARCH_HITS_DEFAULT, limits::SEARCH_HITS_MAX)?;
        let (pattern, context_lines) = (self.compile_pattern(context)?, self.context_lines()?);
        // Loaded once, because the walk checks every file.
        let unsaved = &context.unsaved_files_within(&target.path)?;
        match (context.options.before_after, context.options.hit_ranking) {
            (BeforeAfterInclusion::Omit, _) => {
                let until = large_file_deadline(context, 1);
                let search_context = SearchContext {
                    context,
                    pattern: &pattern,
                    context_lines,
                    hits_max: limits::SEARCH_RANKED_HITS_MAX,
                    large_file_deadline: until,
                    unsaved,
                };
                native_outcome::native_outcome(self, &search_context, target, max)
            }
            (BeforeAfterInclusion::Include, HitRanking::ByRelevance) => {
                let until = large_file_deadline(context, 1);
                let search_context = SearchContext {
                    context,
                    pattern: &pattern,
                    context_lines,
                    hits_max: limits::SEARCH_RANKED_HITS_MAX,
                    large_file_deadline: until,
                    unsaved,
                };
                let (found, omissions) = self.search_tree(&search_context, target)?;
                Ok(ranked_outcome::ranked_outcome(&found, &target.path, omissions, max))
            }
            (BeforeAfterInclusion::Include, HitRanking::ByPath) => {
                let until = large_file_deadline(context, 1);
                let search_context = SearchContext {
                    context,
                    pattern: &pattern,
                    context_lines,
                    hits_max: max,
                    large_file_deadline: until,
                    unsaved,
                };
                let (found, omissions) = self.search_tree(&search_context, target)?;
                Ok(found.into_planned(&target.path, &self.query.display_text(), omissions))
            }
        }
    }
}

impl SearchArgs {
    fn search_tree(
        &self,
        search_context: &SearchContext<'_>,
        target: &ResolvedTarget,
    ) -> Result<(SearchResults, walk::WalkOmissions), Error> {
        let (context, max) = (search_context.context, search_context.hits_max);
        let (mut found, mut omissions) = (SearchResults::default(), walk::WalkOmissions::default());
        if target.stat.is_some_and(|stat| stat.kind == FileKind::File) {
            search_context.search_file(&mut found, &SearchedFile::ByPath(&target.path))?;
        } else {
            list::require_directory(target)?;
            let glob = Globs::from_name_patterns(self.glob.as_deref())?;
            let include = &context.options.walk_filter.include;
            let wanted = |below: &[u8]| {
                (glob.is_empty() || glob.matches_bytes(below)) && (include.is_empty() || include.matches_bytes(below))
            };
            if let Some(indexed) = self.search_by_index(search_context, &target.path)? {
                return Ok(indexed);
            }
            let index_filter = context.workspace().index_filter(search_context.pattern.required_trigrams());
            let make = || (SearchResults::default(), DirectoryIndexCache::new(index_filter.as_deref()));
            let gathered;
            (gathered, omissions) = walk::walk_tree(
                context,
                &target.path,
                IgnoredFileFilter::from(self.all),
                &make,
                &|(own, index_cache), entry| {
                    if entry.kind != FileKind::File
                        || !wanted(entry.path_below_start())
                        || !context.may_read(entry.path)
                    {
                        return Ok(());
                    }
                    // The index knows the disk, not unsaved text.
                    let is_unsaved = search_context.unsaved.contains_key(entry.path);
                    match if is_unsaved { None } else { index_cache.index_verdict(entry) } {
                        Some(known) => own.count_verdict(known),
                        None => search_context.search_file(own, &SearchedFile::OnWalk(entry))?,
                    }
                    Ok(())
                },
            )?;
            found = SearchResults::merge_all(gathered.into_iter().map(|(found, _)| found));
            context.workspace().report_files_searched(found.files_visited());
            found.unreadable_files += omissions.unlistable_directories;
        }
        found.truncate(max, search_context.ranking());
        Ok((found, omissions))
    }

    fn compile_pattern(&self, context: &CallContext<'_>) -> Result<SearchPattern, Error> {
        let options = self.query_options();
        SearchPattern::new(&self.query.texts(context)?, options.syntax, options.word_match, options.case_sensitivity)
    }

    fn query_options(&self) -> QueryOptions {
        QueryOptions {
            syntax: if self.regex == Some(true) { QuerySyntax::Regex } else { QuerySyntax::Literal },
            word_match: if self.word == Some(true) { WordMatch::WholeWord } else { WordMatch::Anywhere },
            case_sensitivity: if self.ignore_case == Some(true) {
                CaseSensitivity::Insensitive
            } else {
                CaseSensitivity::Sensitive
            },
        }
    }

    fn context_lines(&self) -> Result<usize, Error> {
        match usize::try_from(self.context.unwrap_or(0)) {
            Ok(lines) if lines <= limits::SEARCH_CONTEXT_MAX => Ok(lines),
            Ok(_) | Err(_) => Err(Error::new(
                ErrorKind::BadRequest,
                format!("context is at most {} lines", limits::SEARCH_CONTEXT_MAX),
            )
            .with_next_step("read the lines around a hit instead")),
        }
    }
}

/// The deadline for large files, if this search may use one of `parts` parts of the remaining time, less a reserve
/// for the outcome.
fn large_file_deadline(context: &CallContext<'_>, parts: u32) -> Instant {
    let now = Instant::now();
    now + context.control.deadline().saturating_duration_since(now) * 7 / 8 / parts
}

enum SearchedFile<'s, 'm, 'v> {
    ByPath(&'s RelPath),
    OnWalk(&'s walk::ParallelWalkEntry<'m, 'v>),
}

impl SearchedFile<'_, '_, '_> {
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
            Self::OnWalk(entry) => entry.read_bytes(context, &may_be_text, bytes),
        }
    }

    fn open_file(&self, context: &CallContext<'_>) -> Result<Box<dyn FileReader>, Error> {
        match self {
            Self::ByPath(path) => context.workspace().open_file(path),
            Self::OnWalk(entry) => entry.open_file(context),
        }
    }
}

/// What to search for, and the limits.
struct SearchContext<'a> {
    context: &'a CallContext<'a>,
    pattern: &'a SearchPattern,
    context_lines: usize,
    hits_max: usize,
    /// Large files are skipped after this time.
    large_file_deadline: Instant,
    unsaved: &'a BTreeMap<RelPath, Arc<UnsavedFile>>,
}

impl SearchContext<'_> {
    /// The native outcome always ranks hits.
    fn ranking(&self) -> HitRanking {
        match self.context.options.before_after {
            BeforeAfterInclusion::Omit => HitRanking::ByRelevance,
            BeforeAfterInclusion::Include => self.context.options.hit_ranking,
        }
    }

    fn search_file(&self, found: &mut SearchResults, source: &SearchedFile<'_, '_, '_>) -> Result<(), Error> {
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
            // Removed or inaccessible since it was listed: one file does not hide the others.
            Err(_) => {
                found.unreadable_files += 1;
                Ok(())
            }
        };
        found.buffer = bytes;
        result
    }

    fn search_bytes(&self, found: &mut SearchResults, path: &RelPath, bytes: &[u8]) -> Result<(), Error> {
        let Self { context, pattern, context_lines, .. } = *self;
        let Some(text) = decode_indexable_text(bytes) else {
            found.binary_files += 1;
            return Ok(());
        };
        found.files_searched += 1;
        found.bytes_searched += bytes.len() as u64;
        let ranker = self.ranker(path);
        let mut matched = pattern.find_hits(&text, self.hit_limits(ranker.as_ref()), context.control)?;
        if self.ranking() == HitRanking::ByPath && text.ends_with('\n') {
            let last = text.matches('\n').count() as u64 + 1;
            matched.hits.iter_mut().for_each(|hit| hit.add_final_empty_line(last, context_lines));
        }
        self.add_matches(found, path, matched);
        Ok(())
    }

    /// The ranking data of a file, if hits are ranked.
    fn ranker(&self, path: &RelPath) -> Option<FileRanker> {
        (self.ranking() == HitRanking::ByRelevance).then(|| FileRanker::from_path(&path.to_string()))
    }

    fn hit_limits<'t>(&self, ranker: Option<&'t FileRanker>) -> HitLimits<'t> {
        let chars_max = match self.ranking() {
            HitRanking::ByRelevance => limits::SEARCH_LINE_CHARS_MAX,
            HitRanking::ByPath => usize::MAX,
        };
        HitLimits { context_lines: self.context_lines, hits_max: self.hits_max, chars_max, ranker }
    }

    fn add_matches(&self, found: &mut SearchResults, path: &RelPath, matched: TextMatches) {
        let TextMatches { hits, hits_total: total, skipped_long_lines: passed } = matched;
        if passed {
            found.incomplete.add(path, IncompleteReason::LineTooLong);
        }
        found.hits_total += total;
        self.context.control.report_found(total as u64);
        found.hits_shown += hits.len();
        if !hits.is_empty() {
            found.files_with_hits += 1;
            found.files.push((path.clone(), hits));
        }
        if found.hits_shown >= self.hits_max.saturating_mul(RETAINED_HITS_FACTOR) {
            found.truncate(self.hits_max, self.ranking());
        }
    }
}

/// How many times the maximum number of hits is collected before the excess is dropped.
const RETAINED_HITS_FACTOR: usize = 4;

impl SearchResults {
    /// Combines the results of several threads.
    fn merge_all(gathered: impl Iterator<Item = Self>) -> Self {
        let mut all = Self::default();
        for one in gathered {
            all.files.extend(one.files);
            all.hits_shown += one.hits_shown;
            all.hits_total += one.hits_total;
            all.files_searched += one.files_searched;
            all.bytes_searched += one.bytes_searched;
            all.binary_files += one.binary_files;
            all.incomplete.merge(one.incomplete);
            all.unreadable_files += one.unreadable_files;
            all.files_with_hits += one.files_with_hits;
        }
        all
    }

    /// Sorts the files and keeps the first or the best hits.
    fn truncate(&mut self, max: usize, ranking: HitRanking) {
        self.files.sort_unstable_by(|(one, _), (two, _)| walk::compare_by_path(one, two));
        if ranking == HitRanking::ByRelevance && self.hits_shown > max {
            self.truncate_to_best(max);
        }
        let mut room = max;
        self.files.retain_mut(|(_, hits)| {
            hits.truncate(room);
            room -= hits.len();
            !hits.is_empty()
        });
        self.hits_shown = max - room;
    }

    /// Keeps the best hits. The files are sorted and unique.
    fn truncate_to_best(&mut self, max: usize) {
        let worth = |at: usize, hit: &SearchHit| (hit.weight.role, Reverse(hit.weight.points), at, hit.line);
        let files = self.files.iter().enumerate();
        let mut worths: Vec<_> = files.flat_map(|(at, (_, hits))| hits.iter().map(move |hit| worth(at, hit))).collect();
        if worths.len() <= max {
            return;
        }
        let (_, first_out, _) = worths.select_nth_unstable(max);
        let first_out = *first_out;
        for (at, (_, hits)) in self.files.iter_mut().enumerate() {
            hits.retain(|hit| worth(at, hit) < first_out);
        }
    }

    fn into_planned(self, top: &RelPath, query: &str, omissions: walk::WalkOmissions) -> PlannedEffect {
        let text = self.render_text(query, &omissions);
        let truncated = omissions.limit_reached || self.hits_shown < self.hits_total;
        let files: Vec<Value> = self.files.iter().map(|(path, hits)| file_hits_json(path, hits)).collect();
        let some = |count: u64| (count > 0).then_some(count);
        let answer = OutcomeBuilder::new()
            .with_field("path", top.to_string())
            .with_field("files", files)
            .with_field("total", self.hits_total)
            .with_field("scanned", self.files_searched)
            .with_some("binary", some(self.binary_files))
            .with_some("large", some(self.incomplete.count()))
            .with_some("unreadable", some(self.unreadable_files))
            .with_some("ignored", omissions.ignored_count())
            .with_field("truncated", truncated)
            .build(text);
        PlannedEffect::Read { outcome: answer, bytes: self.bytes_searched }
    }

    fn render_text(&self, query: &str, omissions: &walk::WalkOmissions) -> String {
        let mut text = String::new();
        for (path, hits) in &self.files {
            let wire = path.to_wire();
            text.push_str(&format!("{}\n", escape_deceptive_line(&wire)));
            for hit in hits {
                hit.render(&mut text);
            }
        }
        let (query, total, files) = (escape_deceptive_line(query), self.hits_total, self.files.len());
        match (total, total - self.hits_shown) {
            (0, _) => text.push_str(&format!("[no match for \"{query}\" in {} files", self.files_searched)),
            (_, 0) => text.push_str(&format!("[{total} hits in {files} files")),
            (_, left) => text.push_str(&format!(
                "[{} hits in {files} files; truncated, {left} more: pass a narrower path or a glob, or raise max up to {}",
                self.hits_shown,
                limits::SEARCH_HITS_MAX
            )),
        }
        for (count, what) in [
            (self.binary_files, "not text"),
            (self.incomplete.count(), "too large"),
            (self.unreadable_files, "not readable"),
        ] {
            if count > 0 {
                text.push_str(&format!("; {count} {what}"));
            }
        }
        text.push_str(&omissions.render_note());
        text.push(']');
        text
    }
}

fn file_hits_json(path: &RelPath, hits: &[SearchHit]) -> Value {
    let hits: Vec<Value> = hits.iter().map(|hit| Value::Object(hit.to_json())).collect();
    let mut fields = Map::new();
    fields.insert("path".into(), path.to_string().into());
    fields.insert("hits".into(), hits.into());
    Value::Object(fields)
}
