//! Suggestions for a pattern without matches: paths that contain it, and similar names. Runs only after the pattern
//! failed, so a matching pattern costs nothing extra.

use std::collections::BinaryHeap;

use stead_path::RelPath;

use super::FirstMatches;
use crate::{
    call_context::CallContext,
    errors::Error,
    limits,
    ops::{
        walk,
        walk::{IgnoredFileFilter, ParallelWalkEntry},
    },
};

pub(super) struct NearPathMatches {
    /// Paths that contain the pattern, in order, up to a limit.
    pub(super) substring_matches: Vec<RelPath>,
    /// How many paths contain it.
    pub(super) total: u64,
    /// Paths with the most similar names, best first.
    pub(super) nearest_names: Vec<RelPath>,
}

pub(super) fn find_near_matches(
    context: &CallContext<'_>,
    top: &RelPath,
    names: IgnoredFileFilter,
    pattern: &str,
    max: usize,
) -> Result<NearPathMatches, Error> {
    let fuzzy = FuzzyPattern::new(pattern);
    let (results, _) = walk::walk_tree(context, top, names, &NearMatchCollector::default, &|own, entry| {
        if context.may_read(entry.path) {
            own.add_entry(&fuzzy, entry, max);
        }
        Ok(())
    })?;
    let (mut parts, mut nearest) = (Vec::new(), BinaryHeap::new());
    for one in results {
        parts.push(one.substring_matches);
        nearest.extend(one.nearest);
    }
    let (parts, total) = FirstMatches::merge_all(parts, max);
    let names = nearest.into_sorted_vec().into_iter().take(limits::FIND_NEAREST_MAX);
    Ok(NearPathMatches { substring_matches: parts, total, nearest_names: names.map(|near| near.path).collect() })
}

struct FuzzyPattern {
    /// The whole pattern in lower case; `None` unless it is a plain name or path.
    substring: Option<Vec<u8>>,
    /// Its last component in lower case, without wildcards.
    name: Vec<u8>,
    /// Maximum edit distance.
    distance_max: usize,
}

impl FuzzyPattern {
    fn new(pattern: &str) -> Self {
        let is_wild = |byte: &u8| b"*?[]{}\\".contains(byte);
        let lower = pattern.as_bytes().to_ascii_lowercase();
        let last = lower.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let name: Vec<u8> = last.iter().copied().filter(|byte| !is_wild(byte)).collect();
        let distance_max = name.len() / CHARACTERS_PER_SLIP;
        Self { substring: (!lower.iter().any(is_wild)).then_some(lower), name, distance_max }
    }
}

/// A name may differ in one of this many characters.
const CHARACTERS_PER_SLIP: usize = 3;

#[derive(Default)]
struct NearMatchCollector {
    substring_matches: FirstMatches,
    nearest: BinaryHeap<NearbyName>,
}

impl NearMatchCollector {
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
            self.nearest.push(NearbyName { distance, path: entry.path.clone() });
            if self.nearest.len() > limits::FIND_NEAREST_MAX {
                self.nearest.pop();
            }
        }
    }
}

/// A similar name, ordered by distance, then by path.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct NearbyName {
    distance: usize,
    path: RelPath,
}

/// Levenshtein distance, or `None` if it exceeds `max`.
fn bounded_edit_distance(one: &[u8], two: &[u8], max: usize) -> Option<usize> {
    if max == 0 || one.len().abs_diff(two.len()) > max {
        return None;
    }
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (at, byte) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, other) in two.iter().enumerate() {
            let replaced = diagonal + usize::from(byte != other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
        if row.iter().all(|cost| *cost > max) {
            return None;
        }
    }
    row.last().copied().filter(|cost| *cost <= max)
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
