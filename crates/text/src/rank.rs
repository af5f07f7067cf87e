//! Ranking of search hits by path and line alone: no model, no parser, no index.
//!
//! Owns the score of a hit ([`FileRanker::score_hit`]), the order of hits for a name ([`rank_order`]) and of files for
//! a question ([`natural_language`]). Promises a total order: the same hits are ordered the same way, however they
//! arrive. Never reads anything but its input.

mod definition;
mod file_category;
mod language;
mod line_shape;
pub mod natural_language;

use std::{cmp::Reverse, collections::HashMap, ops::Range};

pub use definition::{SymbolRole, role_of_hit};
pub use file_category::FileCategory;
pub use language::Language;

/// Base points of a hit before its file is considered.
const DEFINITION_POINTS: u32 = 7000;
const LIKELY_DEFINITION_POINTS: u32 = 4000;
const PARTIAL_DEFINITION_POINTS: u32 = 2000;
const PARTIAL_LIKELY_POINTS: u32 = 800;
const USAGE_POINTS: u32 = 500;
const PARTIAL_USAGE_POINTS: u32 = 50;
const IMPORT_POINTS: u32 = 100;
/// Longer lines are treated as minified.
const MINIFIED_LINE_BYTES: usize = 1000;
/// Factors for hits in minified lines and in comments.
const MINIFIED_PERCENT: u32 = 20;
const COMMENT_PERCENT: u32 = 50;
/// Factors for hits whose file name equals or contains the name.
const FILE_NAME_EQUAL_PERCENT: u32 = 150;
const FILE_NAME_CONTAINS_PERCENT: u32 = 115;
/// Usages per file that come before those of the next file; the rest comes at the end.
const USAGES_PER_FILE: usize = 8;
/// With fewer hits, none is moved to the end.
const DEFER_FROM_HITS: usize = 40;

/// Scores the hits of one file.
#[derive(Debug, Clone)]
pub struct FileRanker {
    language: Language,
    category_percent: u32,
    /// The file name without extension, in lower case and without separators.
    normalised_stem: String,
}

/// The role and score of a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HitScore {
    /// The role of the line for the name.
    pub role: SymbolRole,
    /// Higher is better.
    pub points: u32,
}

/// A hit to be ranked.
#[derive(Debug, Clone, Copy)]
pub struct RankedHit<'a> {
    /// The path of its file.
    pub path: &'a str,
    /// Its line.
    pub line: u64,
    /// Its score.
    pub score: HitScore,
}

impl FileRanker {
    /// Classifies a file by its path.
    pub fn from_path(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or(name);
        Self {
            language: Language::from_path(path),
            category_percent: FileCategory::from_path(path).score_percent(),
            normalised_stem: normalise_name(stem),
        }
    }

    /// The language of the file.
    pub fn language(&self) -> Language {
        self.language
    }

    /// The role and score of a hit in a line of this file.
    pub fn score_hit(&self, line: &str, hit: &Range<usize>) -> HitScore {
        let hit = &definition::prefer_whole_name(line, hit);
        let name = definition::name_at(line, hit);
        let whole = name.as_ref().is_none_or(|name| definition::is_whole_name(hit, name));
        let found = role_of_hit(self.language, line, hit);
        let (role, mut points) = match (found, whole) {
            (SymbolRole::Definition, true) => (SymbolRole::Definition, DEFINITION_POINTS),
            (SymbolRole::Definition, false) => (SymbolRole::Usage, PARTIAL_DEFINITION_POINTS),
            (SymbolRole::LikelyDefinition, true) => (SymbolRole::LikelyDefinition, LIKELY_DEFINITION_POINTS),
            (SymbolRole::LikelyDefinition, false) => (SymbolRole::Usage, PARTIAL_LIKELY_POINTS),
            (SymbolRole::Usage, true) => (SymbolRole::Usage, USAGE_POINTS),
            (SymbolRole::Usage, false) => (SymbolRole::Usage, PARTIAL_USAGE_POINTS),
            (SymbolRole::Import, _) => (SymbolRole::Import, IMPORT_POINTS),
        };
        let mut times = |percent: u32| points = points * percent / 100;
        times(self.category_percent);
        if line.len() > MINIFIED_LINE_BYTES {
            times(MINIFIED_PERCENT);
        } else if self.language.is_comment(line) {
            times(COMMENT_PERCENT);
        }
        let name = name.and_then(|name| line.get(name)).map(normalise_name).unwrap_or_default();
        if !name.is_empty() && name == self.normalised_stem {
            times(FILE_NAME_EQUAL_PERCENT);
        } else if name.len() > 2 && self.normalised_stem.contains(&name) {
            times(FILE_NAME_CONTAINS_PERCENT);
        }
        HitScore { role, points }
    }
}

/// Lower case, letters and digits only: `read_only`, `ReadOnly` and `read-only` are one name.
fn normalise_name(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// A sort key with the best hit first; it never leaves two hits equal.
pub fn sort_key<'a>(hit: &RankedHit<'a>) -> impl Ord + use<'a> {
    (hit.score.role, Reverse(hit.score.points), hit.path, hit.line)
}

/// The display order of hits, as indexes: definitions, likely definitions, usages, imports; within each, files by
/// their best hit and lines from the top. With many hits, a file's further usages come last.
pub fn rank_order(hits: &[RankedHit<'_>]) -> Vec<usize> {
    let late = deferred_hits(hits);
    let section = |at: usize| (late[at], hits[at].score.role);
    let mut best: HashMap<(bool, SymbolRole, &str), u32> = HashMap::new();
    for (at, hit) in hits.iter().enumerate() {
        let (late, role) = section(at);
        let points = best.entry((late, role, hit.path)).or_default();
        *points = (*points).max(hit.score.points);
    }
    let mut order: Vec<usize> = (0..hits.len()).collect();
    order.sort_by_key(|&at| {
        let (late, role) = section(at);
        let hit = &hits[at];
        let points = best.get(&(late, role, hit.path)).copied().unwrap_or_default();
        (late, role, Reverse(points), hit.path, hit.line)
    });
    order
}

/// Whether each hit is moved after those of all other files.
fn deferred_hits(hits: &[RankedHit<'_>]) -> Vec<bool> {
    let mut late = vec![false; hits.len()];
    if hits.len() < DEFER_FROM_HITS {
        return late;
    }
    let mut by_worth: Vec<usize> = (0..hits.len()).collect();
    by_worth.sort_by_key(|&at| sort_key(&hits[at]));
    let mut seen: HashMap<(SymbolRole, &str), usize> = HashMap::new();
    for at in by_worth {
        let hit = &hits[at];
        let count = seen.entry((hit.score.role, hit.path)).or_default();
        *count += 1;
        late[at] = *count > USAGES_PER_FILE && hit.score.role >= SymbolRole::Usage;
    }
    late
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank_lines(lines: &[(&str, &str)], name: &str) -> Vec<usize> {
        let weigh = |(number, (path, line)): (usize, &(&'static str, &'static str))| {
            let at = line.find(name).unwrap();
            let weight = FileRanker::from_path(path).score_hit(line, &(at..at + name.len()));
            (path.to_string(), number as u64, weight)
        };
        let lines: Vec<(&'static str, &'static str)> =
            lines.iter().map(|(path, line)| (&*path.to_string().leak(), &*line.to_string().leak())).collect();
        let weighed: Vec<_> = lines.iter().enumerate().map(weigh).collect();
        let hits: Vec<RankedHit<'_>> =
            weighed.iter().map(|(path, line, weight)| RankedHit { path, line: *line, score: *weight }).collect();
        rank_order(&hits)
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
