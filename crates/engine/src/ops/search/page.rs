//! Selects the hits of a page of the native `search` outcome: the best hits first, within a budget. The text of a
//! search page groups lines by file and shows equal lines only once. The JSON of a search page has the locations of the
//! hits without their text.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use stead_path::RelPath;
use stead_text::{
    rank::{ScoredSearchHit, SymbolRole, natural_language, rank_order},
    visible::escape_deceptive_line,
};

use super::{
    matcher::{SearchHit, SearchTextLine, SearchTextLineKind},
    results::FileHitsRow,
};
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchPageRequest {
    /// The number of search hits on the pages before the requested page.
    pub(super) start: usize,
    pub(super) hits_max: usize,
    /// The maximum number of characters on a search page; the first hit is shown even if it exceeds the maximum.
    pub(super) budget_chars: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchHitsPage {
    pub files: Vec<FileHitsRow<SearchHitLocation>>,
    #[serde(skip)]
    pub rows: Vec<SearchTextRow>,
    /// The number of search hits up to the end of this page; `None` on the last page.
    #[serde(skip)]
    pub next_start: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchHitLocation {
    pub line: u64,
    pub column: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
}

impl From<&SearchHit> for SearchHitLocation {
    fn from(hit: &SearchHit) -> Self {
        let kind = match hit.weight.role {
            SymbolRole::Definition => Some("definition"),
            SymbolRole::LikelyDefinition => Some("likely"),
            SymbolRole::Usage => None,
            SymbolRole::Import => Some("import"),
        };
        Self { line: hit.line, column: hit.column, kind }
    }
}

/// The search hits in display order; each hit is a file index and the index of the hit in the file.
pub(super) type OrderedHitIndices = Vec<(usize, usize)>;

/// The maximum number of hits per file that a natural-language search lists before further hits of any file.
const WORD_RANKED_LINES: usize = 3;

pub(super) fn order_by_role(files: &[FileHitsRow<SearchHit>]) -> OrderedHitIndices {
    let paths: Vec<String> = files.iter().map(|file| file.path.to_string()).collect();
    let mut positions = Vec::new();
    let mut candidates = Vec::new();
    for (at, file) in files.iter().enumerate() {
        for (number, hit) in file.hits.iter().enumerate() {
            positions.push((at, number));
            candidates.push(ScoredSearchHit { path: &paths[at], line: hit.line, score: hit.weight });
        }
    }
    rank_order(&candidates).into_iter().map(|index| positions[index]).collect()
}

/// Orders hits for a natural-language query: by how well files, and then lines, cover the query's words.
pub(super) fn order_by_words(files: &[FileHitsRow<SearchHit>], words: &[String], scanned: u64) -> OrderedHitIndices {
    let mut word_counts = Vec::new();
    let mut line_scores: Vec<Vec<(u32, usize)>> = Vec::new();
    for FileHitsRow { path, hits, .. } in files {
        let length = hits.last().map_or(0, |hit| hit.line);
        let mut counts = natural_language::FileQueryWordCounts::new(&path.to_string(), length, words);
        let scores = hits.iter().enumerate().map(|(number, hit)| (counts.add_line(&hit.text, words), number));
        let mut scores: Vec<(u32, usize)> = scores.collect();
        scores.sort_by_key(|(score, number)| (std::cmp::Reverse(*score), *number));
        line_scores.push(scores);
        word_counts.push(counts);
    }
    let files = natural_language::rank_files(&word_counts, scanned);
    let part = |at: &usize, from: usize, most: usize| {
        let at = *at;
        let mut part: Vec<usize> = line_scores[at].iter().skip(from).take(most).map(|(_, number)| *number).collect();
        part.sort_unstable();
        part.into_iter().map(move |number| (at, number)).collect::<Vec<_>>()
    };
    let first = files.iter().flat_map(|at| part(at, 0, WORD_RANKED_LINES));
    first.chain(files.iter().flat_map(|at| part(at, WORD_RANKED_LINES, usize::MAX))).collect()
}

/// One row in the text of a search page; hits with equal lines share a row.
#[derive(Debug)]
pub struct SearchTextRow {
    pub path: RelPath,
    pub role: SymbolRole,
    pub style: SearchTextRowDetailLevel,
    pub lines: Vec<SearchTextLine>,
    pub repeat_count: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchTextRowDetailLevel {
    LineOnly,
    LineWithContext,
    /// The row shows only the location of an import, because the page starts with a definition.
    LocationOnly,
}

pub(super) fn select_page(
    files: &[FileHitsRow<SearchHit>],
    order: &OrderedHitIndices,
    wanted: SearchPageRequest,
) -> SearchHitsPage {
    let mut rows: Vec<SearchTextRow> = Vec::new();
    let mut known: HashMap<(SymbolRole, &str), usize> = HashMap::new();
    let mut locations: Vec<(usize, Vec<SearchHitLocation>)> = Vec::new();
    let mut shown_lines = hit_lines_with_context(files);
    let (mut used, mut shown) = (0usize, 0usize);
    for &(at, number) in order.iter().skip(wanted.start).take(wanted.hits_max) {
        let hit = &files[at].hits[number];
        let key = (hit.weight.role, hit.text.trim());
        let style = row_style(hit, rows.first());
        let same = known.get(&key).filter(|_| style == SearchTextRowDetailLevel::LineOnly);
        match same.and_then(|row| rows.get_mut(*row)) {
            Some(row) => row.repeat_count += 1,
            None => {
                // No context line repeats a line that the page shows elsewhere.
                let is_new = |line: &SearchTextLine| {
                    line.kind == SearchTextLineKind::Hit || shown_lines.insert((at, line.number))
                };
                let lines = hit.text_lines().filter(is_new).collect();
                let (path, role) = (files[at].path.clone(), hit.weight.role);
                let row = SearchTextRow { path, role, style, lines, repeat_count: 1 };
                let cost = row.count_chars(rows.last());
                if used + cost > wanted.budget_chars && shown > 0 {
                    break;
                }
                used += cost;
                known.insert(key, rows.len());
                rows.push(row);
            }
        }
        shown += 1;
        match locations.iter_mut().find(|(file, _)| *file == at) {
            Some((_, hits)) => hits.push(hit.into()),
            None => locations.push((at, vec![hit.into()])),
        }
    }
    let end = wanted.start.saturating_add(shown);
    SearchHitsPage {
        files: locations.into_iter().map(|(at, hits)| FileHitsRow::new(files[at].path.clone(), hits)).collect(),
        rows,
        next_start: (end < order.len()).then_some(end),
    }
}

fn hit_lines_with_context(files: &[FileHitsRow<SearchHit>]) -> HashSet<(usize, u64)> {
    let hit_lines = |(at, file): (usize, &FileHitsRow<SearchHit>)| -> Vec<(usize, u64)> {
        file.hits.iter().filter(|hit| !hit.has_no_context()).map(|hit| (at, hit.line)).collect()
    };
    files.iter().enumerate().flat_map(hit_lines).collect()
}

fn row_style(hit: &SearchHit, first: Option<&SearchTextRow>) -> SearchTextRowDetailLevel {
    let has_definition = first.is_some_and(|row| row.role == SymbolRole::Definition);
    if !hit.has_no_context() {
        SearchTextRowDetailLevel::LineWithContext
    } else if hit.weight.role == SymbolRole::Import && has_definition {
        SearchTextRowDetailLevel::LocationOnly
    } else {
        SearchTextRowDetailLevel::LineOnly
    }
}

impl SearchTextRow {
    /// Counts the characters of a row in the page text; a row with only a location has no line break.
    fn count_chars(&self, previous: Option<&Self>) -> usize {
        let line_break = usize::from(self.style != SearchTextRowDetailLevel::LocationOnly);
        self.render_heading(previous).chars().count() + self.render_lines().chars().count() + line_break
    }

    pub fn render_lines(&self) -> String {
        let render = |line: &SearchTextLine| match self.style {
            SearchTextRowDetailLevel::LineOnly => {
                format!("{} {}", line.number, escape_deceptive_line(line.text.trim()))
            }
            SearchTextRowDetailLevel::LineWithContext => line.render(),
            SearchTextRowDetailLevel::LocationOnly => {
                format!("{}:{}", escape_deceptive_line(&self.path.to_wire()), line.number)
            }
        };
        self.lines.iter().map(render).collect::<Vec<_>>().join("\n")
    }

    pub fn render_heading(&self, previous: Option<&Self>) -> String {
        if self.style == SearchTextRowDetailLevel::LocationOnly {
            let first = previous.is_none_or(|row| row.style != SearchTextRowDetailLevel::LocationOnly);
            return if first { "[import] ".to_owned() } else { String::new() };
        }
        if previous.is_some_and(|row| row.path == self.path && row.role == self.role) {
            return String::new();
        }
        let mark = match self.role {
            SymbolRole::Definition => " [def]",
            SymbolRole::LikelyDefinition => " [def?]",
            SymbolRole::Usage => "",
            SymbolRole::Import => " [import]",
        };
        format!("{}{mark}\n", escape_deceptive_line(&self.path.to_wire()))
    }
}
