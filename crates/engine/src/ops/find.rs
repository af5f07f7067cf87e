//! `find` returns the paths below a directory that match a pattern, in byte order, with size and time. A `find` pattern
//! without a slash matches a name at any depth. If no path matches, `find` returns paths that contain the pattern or
//! have similar names.

use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};
use stead_path::RelPath;

use crate::{
    call_context::CallContext,
    call_options::ListingPageSizeAndDetail,
    errors::{Error, ErrorKind},
    glob::GlobPatternSet,
    limits,
    next_step::NextStep,
    operation::{Operation, OperationPlanningResult, PathAccessRequest, PlanResult, ResolvedTarget},
    ops::{
        list,
        walk::{self, IgnoredFileInclusionPolicy, ParallelWalkEntry, WalkOmissions},
    },
    outcome::{Completeness, OperationOutcome, UtcTime},
    plan::FileKind,
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindArgs {
    pub pattern: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct FindOutcome {
    pub path: RelPath,
    pub matches: Vec<FoundPathRow>,
    pub total: u64,
    /// Whether `matches` lists paths that only contain the pattern, because no path matches it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The paths whose names are similar to the pattern; `None` if `find` did not look for similar names.
    #[serde(skip_serializing_if = "has_no_paths")]
    pub nearest: Option<Vec<RelPath>>,
    #[serde(flatten)]
    pub completeness: Completeness<FindArgs>,
    /// The number of directories that could not be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignored: Option<u64>,
    #[serde(skip)]
    pub pattern: String,
}

impl OperationOutcome for FindOutcome {}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn has_no_paths(paths: &Option<Vec<RelPath>>) -> bool {
    paths.as_ref().is_none_or(Vec::is_empty)
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundPathRow {
    pub path: RelPath,
    #[serde(rename = "type")]
    pub kind: FileKind,
    pub size: u64,
    pub modified: UtcTime,
}

impl Operation for FindArgs {
    type Paths = PathAccessRequest;
    type Outcome = FindOutcome;

    fn resolve(&self, _context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        Ok(PathAccessRequest::read(self.path.as_deref().unwrap_or(".")))
    }

    fn plan(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        let top = &target.path;
        list::require_directory(target)?;
        let pattern = match context.options.listing_style {
            ListingPageSizeAndDetail::NativePage => GlobPatternSet::from_name_patterns([self.pattern.as_str()])?,
            ListingPageSizeAndDetail::DetailedEntries(_) => GlobPatternSet::new([self.pattern.as_str()])?,
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
        let (mut partial, mut nearest) = (false, None);
        if total == 0 && context.options.listing_style == ListingPageSizeAndDetail::NativePage {
            let near = find_near_matches(context, top, self.all.into(), &self.pattern, max)?;
            (first, total, partial) = (near.substring_matches, near.total, near.total > 0);
            nearest = (!partial).then_some(near.nearest_names);
        }
        let matches: Vec<FoundPathRow> = first.into_iter().filter_map(|path| stat_match(context, path)).collect();
        let outcome = FindOutcome {
            path: top.clone(),
            completeness: self.completeness(top, total, matches.len(), omissions),
            matches,
            total,
            partial,
            nearest,
            closed: (omissions.unlistable_directories > 0).then_some(omissions.unlistable_directories),
            ignored: omissions.ignored_count(),
            pattern: self.pattern.clone(),
        };
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

impl FindArgs {
    fn completeness(
        &self,
        top: &RelPath,
        total: u64,
        shown: usize,
        omissions: WalkOmissions,
    ) -> Completeness<FindArgs> {
        if omissions.limit_reached {
            return Completeness::narrowed_by("path", "TREE_ENTRIES_MAX");
        }
        if total <= shown as u64 {
            return Completeness::Complete;
        }
        let max = self.max.unwrap_or(limits::FIND_MATCHES_DEFAULT as u64);
        let larger_max = total.min(limits::FIND_MATCHES_MAX as u64);
        let limit = if self.max.is_none() { "FIND_MATCHES_DEFAULT" } else { "FIND_MATCHES_MAX" };
        if larger_max <= max {
            return Completeness::narrowed_by("path", limit);
        }
        let next = Self { path: Some(top.to_string()), max: Some(larger_max), ..self.clone() };
        Completeness::continued_by(next, limit)
    }
}

fn stat_match(context: &CallContext<'_>, path: RelPath) -> Option<FoundPathRow> {
    let stat = walk::stat_entry(context, &path)?;
    let size = if stat.kind == FileKind::Directory { 0 } else { stat.size };
    Some(FoundPathRow { path, kind: stat.kind, size, modified: UtcTime { unix_ms: stat.modified_ms } })
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
        Some(_) => Err(Error::new(ErrorKind::BadRequest, format!("max must be from 1 to {most}")).with_next_step(
            NextStep::repeat_without("max").or("choose a narrower path or pattern, which has fewer matches"),
        )),
    }
}

struct FindFallbackNearMatches {
    substring_matches: Vec<RelPath>,
    total: u64,
    nearest_names: Vec<RelPath>,
}

fn find_near_matches(
    context: &CallContext<'_>,
    top: &RelPath,
    ignored: IgnoredFileInclusionPolicy,
    pattern: &str,
    max: usize,
) -> Result<FindFallbackNearMatches, Error> {
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
    Ok(FindFallbackNearMatches { substring_matches, total, nearest_names: names.map(|near| near.path).collect() })
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

/// The number of characters of a name in a `find` pattern for which one typo is tolerated.
const CHARACTERS_PER_TYPO: usize = 3;

#[derive(Default)]
struct NearFileNameMatchCollector {
    substring_matches: ThreadFirstMatchingPaths,
    nearest: BinaryHeap<SimilarFileName>,
}

impl NearFileNameMatchCollector {
    fn add_entry(&mut self, fuzzy: &FuzzyPattern, entry: &ParallelWalkEntry<'_>, max: usize) {
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

/// The derived `Ord` orders similar names by edit distance first, because `distance` is the first field.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SimilarFileName {
    distance: usize,
    path: RelPath,
}

/// The Levenshtein distance of two names in bytes; `None` if the distance exceeds `max` or `max` is 0.
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
