//! `find` returns the paths below a directory that match a pattern, in byte order, with size and time. A `find` pattern
//! without a slash matches a name at any depth. If no path matches, `find` returns paths that contain the pattern or
//! have similar names.

use std::collections::BinaryHeap;

use serde::Deserialize;
use serde_json::{Map, Value};
use stead_path::RelPath;
use stead_text::visible::escape_deceptive_line;

use crate::{
    call_context::CallContext,
    call_notation::CallNotation,
    call_options::ListingPageSizeAndDetail,
    engine::CallOutcome,
    errors::{Error, ErrorKind},
    glob::Globs,
    limits,
    operation::{
        Operation, OperationPlanningResult, PlanResult, RequestedPath, RequestedPathIndex, RequestedPaths,
        ResolvedTargets,
    },
    ops::{
        list,
        outcome_builder::{OutcomeBuilder, format_iso_utc},
        stat::file_kind_name,
        walk::{self, IgnoredFileInclusionPolicy, ParallelWalkEntry},
    },
    plan::FileKind,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FindArgs {
    pattern: String,
    path: Option<String>,
    all: Option<bool>,
    max: Option<u64>,
}

struct FileNameMatch {
    path: RelPath,
    kind: FileKind,
    size: u64,
    modified_ms: i64,
}

impl Operation for FindArgs {
    type Resolved = RequestedPathIndex;
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, paths: &mut RequestedPaths) -> Result<Self::Resolved, Error> {
        Ok(paths.add(RequestedPath::read(self.path.as_deref().unwrap_or("."))))
    }

    fn plan(&self, context: &CallContext<'_>, path: RequestedPathIndex, targets: &ResolvedTargets) -> PlanResult<Self> {
        let top = &targets[path].path;
        list::require_directory(&targets[path])?;
        let pattern = match context.options.listing_style {
            ListingPageSizeAndDetail::NativePage => Globs::from_name_patterns([self.pattern.as_str()])?,
            ListingPageSizeAndDetail::DetailedEntries(_) => Globs::new([self.pattern.as_str()])?,
        };
        let max = bounded_limit(self.max, limits::FIND_MATCHES_DEFAULT, limits::FIND_MATCHES_MAX)?;
        context.control.report_found(0);
        let (results, omissions) =
            walk::walk_tree(context, top, self.all.into(), &ThreadFirstMatchingPaths::default, &|found, entry| {
                if pattern.matches_bytes(entry.path_below_start()) && context.may_read(entry.path) {
                    found.add(entry.path, max);
                    context.control.report_found(1);
                }
                Ok(())
            })?;
        let (mut first, mut total) = ThreadFirstMatchingPaths::merge_all(results, max);
        let mut match_kind = FindFallbackMatchKind::Pattern;
        if total == 0 && context.options.listing_style == ListingPageSizeAndDetail::NativePage {
            let near = find_near_matches(context, top, self.all.into(), &self.pattern, max)?;
            match_kind = if near.total > 0 {
                FindFallbackMatchKind::Substring
            } else {
                FindFallbackMatchKind::NearestNames(near.nearest_names)
            };
            (first, total) = (near.substring_matches, near.total);
        }
        let found: Vec<FileNameMatch> = first.into_iter().filter_map(|path| stat_match(context, path)).collect();
        let omitted = total.saturating_sub(found.len() as u64);
        let truncated = omissions.limit_reached || omitted > 0;
        let notation = context.options.call_notation;
        let mut text = render_text(&found, omitted, &self.pattern, &match_kind, notation);
        text.extend(omissions.render_note(notation).map(|note| format!("; {note}")));
        text.push(']');
        let matches: Vec<_> = found.iter().map(FileNameMatch::to_json).collect();
        let outcome = OutcomeBuilder::new()
            .with_field("path", top.to_string())
            .with_field("matches", matches)
            .with_field("total", total)
            .with_some("partial", (match_kind == FindFallbackMatchKind::Substring).then_some(true))
            .with_some("nearest", match_kind.nearest_names_json())
            .with_field("truncated", truncated)
            .with_some("closed", (omissions.unlistable_directories > 0).then_some(omissions.unlistable_directories))
            .with_some("ignored", omissions.ignored_count())
            .build(text);
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

#[derive(Debug, PartialEq, Eq)]
enum FindFallbackMatchKind {
    Pattern,
    Substring,
    NearestNames(Vec<RelPath>),
}

impl FindFallbackMatchKind {
    fn nearest_names_json(&self) -> Option<Vec<Value>> {
        match self {
            FindFallbackMatchKind::NearestNames(names) if !names.is_empty() => {
                Some(names.iter().map(|path| path.to_string().into()).collect())
            }
            FindFallbackMatchKind::NearestNames(_)
            | FindFallbackMatchKind::Pattern
            | FindFallbackMatchKind::Substring => None,
        }
    }
}

impl FileNameMatch {
    fn to_json(&self) -> Map<String, Value> {
        OutcomeBuilder::new()
            .with_field("path", self.path.to_string())
            .with_field("type", file_kind_name(self.kind))
            .with_field("size", self.size)
            .with_field("modified", format_iso_utc(self.modified_ms))
            .into_json()
    }
}

fn stat_match(context: &CallContext<'_>, path: RelPath) -> Option<FileNameMatch> {
    let stat = walk::stat_entry(context, &path)?;
    let size = if stat.kind == FileKind::Directory { 0 } else { stat.size };
    Some(FileNameMatch { path, kind: stat.kind, size, modified_ms: stat.modified_ms })
}

#[derive(Default)]
struct ThreadFirstMatchingPaths {
    paths: Vec<RelPath>,
    total: u64,
}

impl ThreadFirstMatchingPaths {
    fn add(&mut self, path: &RelPath, max: usize) {
        self.total += 1;
        self.paths.push(path.clone());
        if self.paths.len() >= max.saturating_mul(2) {
            self.truncate(max);
        }
    }

    fn truncate(&mut self, max: usize) {
        self.paths.sort_unstable_by(walk::compare_by_path);
        self.paths.truncate(max);
    }

    fn merge_all(results: Vec<Self>, max: usize) -> (Vec<RelPath>, u64) {
        let mut all = Self::default();
        for one in results {
            all.total += one.total;
            all.paths.extend(one.paths);
        }
        all.truncate(max);
        (all.paths, all.total)
    }
}

pub(super) fn bounded_limit(requested: Option<u64>, default: usize, most: usize) -> Result<usize, Error> {
    match requested.map(usize::try_from) {
        None => Ok(default),
        Some(Ok(number)) if (1..=most).contains(&number) => Ok(number),
        Some(_) => Err(Error::new(ErrorKind::BadRequest, format!("max must be from 1 to {most}"))
            .with_next_step("omit max, or pass a number in this range; a narrower path or pattern has fewer matches")),
    }
}

/// Renders one line per match and a summary line, whose closing bracket the caller adds.
fn render_text(
    found: &[FileNameMatch],
    omitted: u64,
    pattern: &str,
    match_kind: &FindFallbackMatchKind,
    notation: CallNotation,
) -> String {
    let mut text = String::new();
    for found in found {
        text.push_str(&escape_deceptive_line(&found.path.to_wire()));
        match found.kind {
            FileKind::Directory => text.push('/'),
            FileKind::Link => text.push('@'),
            FileKind::File | FileKind::Special => text.push_str(&format!("  {}", found.size)),
        }
        text.push('\n');
    }
    let pattern = escape_deceptive_line(pattern);
    let count = found.len();
    match match_kind {
        FindFallbackMatchKind::Pattern => text.push_str(&format!("[{count} match {pattern}")),
        FindFallbackMatchKind::Substring => text.push_str(&format!("[no match for {pattern}; {count} contain it")),
        FindFallbackMatchKind::NearestNames(names) => {
            text.push_str(&format!("[no match for {pattern}"));
            for (at, path) in names.iter().enumerate() {
                text.push_str(if at == 0 { "; did you mean " } else { ", " });
                text.push_str(&escape_deceptive_line(&path.to_wire()));
            }
        }
    }
    if omitted > 0 {
        text.push_str(&format!(
            "; truncated, {omitted} more: pass a narrower path, or raise {} up to {}",
            notation.render_argument_name("max"),
            limits::FIND_MATCHES_MAX
        ));
    }
    text
}

struct NearPathMatches {
    substring_matches: Vec<RelPath>,
    /// The number of all paths that contain the pattern.
    total: u64,
    nearest_names: Vec<RelPath>,
}

fn find_near_matches(
    context: &CallContext<'_>,
    top: &RelPath,
    ignored: IgnoredFileInclusionPolicy,
    pattern: &str,
    max: usize,
) -> Result<NearPathMatches, Error> {
    let fuzzy = FuzzyPattern::new(pattern);
    let (results, _) =
        walk::walk_tree(context, top, ignored, &NearFileNameMatchCollector::default, &|found, entry| {
            if context.may_read(entry.path) {
                found.add_entry(&fuzzy, entry, max);
            }
            Ok(())
        })?;
    let (mut substring_matches, mut nearest) = (Vec::new(), BinaryHeap::new());
    for one in results {
        substring_matches.push(one.substring_matches);
        nearest.extend(one.nearest);
    }
    let (substring_matches, total) = ThreadFirstMatchingPaths::merge_all(substring_matches, max);
    let names = nearest.into_sorted_vec().into_iter().take(limits::FIND_NEAREST_MAX);
    Ok(NearPathMatches { substring_matches, total, nearest_names: names.map(|near| near.path).collect() })
}

struct FuzzyPattern {
    /// The whole `find` pattern in lower case; `None` if the pattern contains wildcards.
    substring: Option<Vec<u8>>,
    /// The last path component of the `find` pattern in lower case, without wildcard characters.
    name: Vec<u8>,
    distance_max: usize,
}

impl FuzzyPattern {
    fn new(pattern: &str) -> Self {
        let is_wild = |byte: &u8| b"*?[]{}\\".contains(byte);
        let lower = pattern.as_bytes().to_ascii_lowercase();
        let last = lower.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let name: Vec<u8> = last.iter().copied().filter(|byte| !is_wild(byte)).collect();
        let distance_max = name.len() / CHARACTERS_PER_TYPO;
        Self { substring: (!lower.iter().any(is_wild)).then_some(lower), name, distance_max }
    }
}

/// One typo is tolerated per this many characters of the name in the pattern.
const CHARACTERS_PER_TYPO: usize = 3;

#[derive(Default)]
struct NearFileNameMatchCollector {
    substring_matches: ThreadFirstMatchingPaths,
    nearest: BinaryHeap<SimilarFileName>,
}

impl NearFileNameMatchCollector {
    fn add_entry(&mut self, fuzzy: &FuzzyPattern, entry: &ParallelWalkEntry<'_, '_>, max: usize) {
        let below = entry.path_below_start().to_ascii_lowercase();
        let name = below.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if let Some(part) = &fuzzy.substring {
            let within = if part.contains(&b'/') { &below[..] } else { name };
            if !part.is_empty() && within.windows(part.len()).any(|window| window == part) {
                self.substring_matches.add(entry.path, max);
            }
        }
        if let Some(distance) = bounded_edit_distance(name, &fuzzy.name, fuzzy.distance_max) {
            self.nearest.push(SimilarFileName { distance, path: entry.path.clone() });
            if self.nearest.len() > limits::FIND_NEAREST_MAX {
                self.nearest.pop();
            }
        }
    }
}

/// The order of the fields makes the derived `Ord` compare edit distances first, then paths.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SimilarFileName {
    distance: usize,
    path: RelPath,
}

/// The Levenshtein distance of two names in bytes; `None` if it exceeds `max` or if `max` is 0.
fn bounded_edit_distance(name: &[u8], wanted: &[u8], max: usize) -> Option<usize> {
    if max == 0 || name.len().abs_diff(wanted.len()) > max {
        return None;
    }
    Some(strsim::generic_levenshtein(&name.to_vec(), &wanted.to_vec())).filter(|distance| *distance <= max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_stops_at_bound() {
        for (one, two, max, expected) in [
            ("readme.md", "redame.md", 3, Some(2)),
            ("readme.md", "readme.md", 3, Some(0)),
            ("readme", "readme.md", 3, Some(3)),
            ("readme", "license", 2, None),
            ("a", "b", 0, None),
            ("", "abc", 3, Some(3)),
        ] {
            assert_eq!(bounded_edit_distance(one.as_bytes(), two.as_bytes(), max), expected, "{one} {two}");
        }
    }
}
