//! Ranks search hits by path and line alone, without a model, a parser or an index.
//!
//! The same search hits always get the same order, in whatever order they were found.

mod definition;
mod file_category;
mod language;
mod line_shape;
pub mod natural_language;

use std::{cmp::Reverse, collections::HashMap, ops::Range};

pub use definition::SymbolRole;
use definition::role_of_hit;
pub use file_category::SearchRankFileCategory;
use language::ProgrammingLanguage;

/// The points of a search hit on the whole name in a definition, before the points are scaled.
const DEFINITION_POINTS: u32 = 7000;
const LIKELY_DEFINITION_POINTS: u32 = 4000;
const PARTIAL_DEFINITION_POINTS: u32 = 2000;
const PARTIAL_LIKELY_POINTS: u32 = 800;
const USAGE_POINTS: u32 = 500;
const PARTIAL_USAGE_POINTS: u32 = 50;
const IMPORT_POINTS: u32 = 100;
const MINIFIED_LINE_BYTES: usize = 1000;
const MINIFIED_PERCENT: u32 = 20;
const COMMENT_PERCENT: u32 = 50;
const FILE_NAME_EQUAL_PERCENT: u32 = 150;
const FILE_NAME_CONTAINS_PERCENT: u32 = 115;
/// The most usages, and the most imports, that one file may have before its further hits are listed last.
const USAGES_PER_FILE: usize = 8;
/// The least number of hits of a search for which some usages and imports are listed last.
const DEFER_FROM_HITS: usize = 40;

/// A scorer for the search hits in one file.
#[derive(Debug, Clone)]
pub struct SearchHitScorer {
    language: ProgrammingLanguage,
    category_percent: u32,
    /// The file name without extension, in lower case and without separators.
    normalised_stem: String,
}

/// The role and the score of a search hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchHitScore {
    pub role: SymbolRole,
    /// The points of the search hit; a hit with more points ranks higher.
    pub points: u32,
}

/// A search hit with its score, to be ranked.
#[derive(Debug, Clone, Copy)]
pub struct ScoredSearchHit<'a> {
    pub path: &'a str,
    pub line: u64,
    pub score: SearchHitScore,
}

impl SearchHitScorer {
    /// Creates a scorer for the search hits in the file at `path`.
    pub fn from_path(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or(name);
        Self {
            language: ProgrammingLanguage::from_path(path),
            category_percent: SearchRankFileCategory::from_path(path).score_percent(),
            normalised_stem: normalise_name(stem),
        }
    }

    /// Scores a search hit at the byte range `hit` in a line of the file.
    pub fn score_hit(&self, line: &str, hit: &Range<usize>) -> SearchHitScore {
        let hit = &definition::prefer_whole_name(line, hit);
        let name = definition::name_at(line, hit);
        let whole = name.as_ref().is_none_or(|name| definition::is_whole_name(hit, name));
        let (role, mut points) = match (role_of_hit(self.language, line, hit), whole) {
            (SymbolRole::Definition, true) => (SymbolRole::Definition, DEFINITION_POINTS),
            (SymbolRole::Definition, false) => (SymbolRole::Usage, PARTIAL_DEFINITION_POINTS),
            (SymbolRole::LikelyDefinition, true) => (SymbolRole::LikelyDefinition, LIKELY_DEFINITION_POINTS),
            (SymbolRole::LikelyDefinition, false) => (SymbolRole::Usage, PARTIAL_LIKELY_POINTS),
            (SymbolRole::Usage, true) => (SymbolRole::Usage, USAGE_POINTS),
            (SymbolRole::Usage, false) => (SymbolRole::Usage, PARTIAL_USAGE_POINTS),
            (SymbolRole::Import, _) => (SymbolRole::Import, IMPORT_POINTS),
        };
        let mut scale = |percent: u32| points = points * percent / 100;
        scale(self.category_percent);
        if line.len() > MINIFIED_LINE_BYTES {
            scale(MINIFIED_PERCENT);
        } else if self.language.is_comment(line) {
            scale(COMMENT_PERCENT);
        }
        let name = name.and_then(|name| line.get(name)).map(normalise_name).unwrap_or_default();
        if !name.is_empty() && name == self.normalised_stem {
            scale(FILE_NAME_EQUAL_PERCENT);
        } else if name.len() > 2 && self.normalised_stem.contains(&name) {
            scale(FILE_NAME_CONTAINS_PERCENT);
        }
        SearchHitScore { role, points }
    }
}

/// Removes case and separators from a name, so that `read_only`, `ReadOnly` and `read-only` become equal.
fn normalise_name(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns a sort key that puts the best search hit first. Search hits in different lines have different sort keys.
fn sort_key<'a>(hit: &ScoredSearchHit<'a>) -> impl Ord + use<'a> {
    (hit.score.role, Reverse(hit.score.points), hit.path, hit.line)
}

/// Returns the indexes of search hits in display order: definitions, likely definitions, usages, imports. Among hits of
/// the same role, files are ordered by their best hit, and the hits of a file by line. Of many hits, usages and imports
/// beyond a limit per file come last.
pub fn rank_order(hits: &[ScoredSearchHit<'_>]) -> Vec<usize> {
    let deferred = deferred_hits(hits);
    let section = |at: usize| (deferred[at], hits[at].score.role, hits[at].path);
    let mut best_points: HashMap<(bool, SymbolRole, &str), u32> = HashMap::new();
    for (at, hit) in hits.iter().enumerate() {
        let points = best_points.entry(section(at)).or_default();
        *points = (*points).max(hit.score.points);
    }
    let mut order: Vec<usize> = (0..hits.len()).collect();
    order.sort_by_key(|&at| {
        let (deferred, role, path) = section(at);
        let points = best_points.get(&section(at)).copied().unwrap_or_default();
        (deferred, role, Reverse(points), path, hits[at].line)
    });
    order
}

fn deferred_hits(hits: &[ScoredSearchHit<'_>]) -> Vec<bool> {
    let mut deferred = vec![false; hits.len()];
    if hits.len() < DEFER_FROM_HITS {
        return deferred;
    }
    let mut best_first: Vec<usize> = (0..hits.len()).collect();
    best_first.sort_by_key(|&at| sort_key(&hits[at]));
    let mut counts: HashMap<(SymbolRole, &str), usize> = HashMap::new();
    for at in best_first {
        let hit = &hits[at];
        let count = counts.entry((hit.score.role, hit.path)).or_default();
        *count += 1;
        deferred[at] = *count > USAGES_PER_FILE && hit.score.role >= SymbolRole::Usage;
    }
    deferred
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank_lines(lines: &[(&str, &str)], name: &str) -> Vec<usize> {
        let hits = lines.iter().enumerate().map(|(number, (path, line))| {
            let at = line.find(name).unwrap();
            let score = SearchHitScorer::from_path(path).score_hit(line, &(at..at + name.len()));
            ScoredSearchHit { path, line: number as u64, score }
        });
        rank_order(&hits.collect::<Vec<_>>())
    }

    #[test]
    fn definitions_come_first_and_imports_last() {
        let lines = [
            ("a.rs", "use b::parse;"),
            ("a.rs", "    parse(x);"),
            ("b.rs", "// parse is fast"),
            ("tests/c.rs", "fn parse() {"),
            ("z.rs", "pub fn parse() {"),
            ("b.rs", "fn parse_all() {"),
        ];
        assert_eq!(rank_lines(&lines, "parse"), [4, 3, 2, 5, 1, 0]);
    }

    #[test]
    fn a_file_with_the_searched_name_ranks_first() {
        let lines = [("a.rs", "struct Parser;"), ("src/parser.rs", "struct Parser;")];
        assert_eq!(rank_lines(&lines, "Parser"), [1, 0]);
    }

    #[test]
    fn whole_words_rank_before_parts_and_source_before_minified() {
        let long = format!("{}parse(x);", "x;".repeat(600));
        let lines = [("a.js", "  reparse(x);"), ("b.js", long.as_str()), ("c.js", "  parse(x);")];
        assert_eq!(rank_lines(&lines, "parse"), [2, 1, 0]);
    }

    #[test]
    fn further_usages_in_a_file_rank_last() {
        let mut lines = vec![("a.rs", "    parse(x);"); 60];
        lines.push(("b.rs", "    parse(y);"));
        let order = rank_lines(&lines, "parse");
        assert_eq!(order.iter().position(|&at| at == 60), Some(USAGES_PER_FILE));
        assert_eq!(order.len(), 61);
    }
}
