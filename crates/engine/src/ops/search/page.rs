//! Renders a page of the native `search` outcome: the best hits first, within a budget, and the start of the next page.
//! The text of a search page groups lines by file and shows equal lines only once. The JSON of a search page has the
//! locations of the hits without their text.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};
use stead_path::RelPath;
use stead_text::{
    rank::{ScoredSearchHit, SymbolRole, natural_language, rank_order},
    visible::escape_deceptive_line,
};

use super::matcher::SearchHit;
use crate::ops::outcome_builder::OutcomeBuilder;

pub(super) type FileHits = (RelPath, Vec<SearchHit>);

#[derive(Debug, Clone, Copy)]
pub(super) struct SearchPageRequest {
    /// The number of search hits on the pages before the requested page.
    pub(super) start: usize,
    pub(super) hits_max: usize,
    /// The maximum number of characters on a search page; the first hit is shown even if it is longer.
    pub(super) budget_chars: usize,
}

#[derive(Debug)]
pub(super) struct SearchPage {
    pub(super) files: Vec<Map<String, Value>>,
    pub(super) text: String,
    /// The number of search hits up to the end of this page; `None` on the last page.
    pub(super) next_start: Option<usize>,
}

/// The search hits in display order, each as the index of its file and its index in the file.
pub(super) type OrderedHitIndices = Vec<(usize, usize)>;

/// The maximum number of hits per file that a search by words shows before all other hits.
const WORD_RANKED_LINES: usize = 3;

pub(super) fn order_by_role(files: &[FileHits]) -> OrderedHitIndices {
    let paths: Vec<String> = files.iter().map(|(path, _)| path.to_string()).collect();
    let mut positions = Vec::new();
    let mut candidates = Vec::new();
    for (at, (_, hits)) in files.iter().enumerate() {
        for (number, hit) in hits.iter().enumerate() {
            positions.push((at, number));
            candidates.push(ScoredSearchHit { path: &paths[at], line: hit.line, score: hit.weight });
        }
    }
    rank_order(&candidates).into_iter().map(|index| positions[index]).collect()
}

/// Orders hits by how well files, and then lines, cover the words of a query in natural language.
pub(super) fn order_by_words(files: &[FileHits], words: &[String], scanned: u64) -> OrderedHitIndices {
    let mut word_counts = Vec::new();
    let mut line_scores: Vec<Vec<(u32, usize)>> = Vec::new();
    for (path, hits) in files {
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

struct HitRow<'a> {
    path: &'a RelPath,
    hit: &'a SearchHit,
    text: String,
    repeat_count: usize,
    style: HitRowStyle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HitRowStyle {
    Line,
    /// The row of an import shows only the location, on a page that starts with a definition.
    LocationOnly,
}

/// The lines that a search page shows, so that no context line repeats them.
struct AlreadyShownSearchLines(HashSet<(usize, u64)>);

impl AlreadyShownSearchLines {
    fn from_hits(files: &[FileHits]) -> Self {
        let hit_lines = |(at, (_, hits)): (usize, &FileHits)| -> Vec<(usize, u64)> {
            hits.iter().filter(|hit| !hit.has_no_context()).map(|hit| (at, hit.line)).collect()
        };
        Self(files.iter().enumerate().flat_map(hit_lines).collect())
    }

    fn render_hit(&mut self, at: usize, hit: &SearchHit) -> String {
        if hit.has_no_context() {
            return format!("{} {}\n", hit.line, escape_deceptive_line(hit.text.trim()));
        }
        let mut text = String::new();
        hit.render_filtered(&mut text, &mut |number| self.0.insert((at, number)));
        text
    }
}

pub(super) fn render_page(files: &[FileHits], order: &OrderedHitIndices, wanted: SearchPageRequest) -> SearchPage {
    let mut rows: Vec<HitRow<'_>> = Vec::new();
    let mut known: HashMap<(SymbolRole, &str), usize> = HashMap::new();
    let mut locations: Vec<(usize, Vec<Map<String, Value>>)> = Vec::new();
    let mut lines = AlreadyShownSearchLines::from_hits(files);
    let (mut used, mut shown) = (0usize, 0usize);
    for &(at, number) in order.iter().skip(wanted.start).take(wanted.hits_max) {
        let (path, hits) = &files[at];
        let hit = &hits[number];
        let key = (hit.weight.role, hit.text.trim());
        let is_import = hit.weight.role == SymbolRole::Import && hit.has_no_context();
        let has_definition = rows.first().is_some_and(|row| row.hit.weight.role == SymbolRole::Definition);
        let style = if is_import && has_definition { HitRowStyle::LocationOnly } else { HitRowStyle::Line };
        let same = known.get(&key).filter(|_| hit.has_no_context() && style == HitRowStyle::Line);
        match same.and_then(|row| rows.get_mut(*row)) {
            Some(row) => row.repeat_count += 1,
            None => {
                let text = match style {
                    HitRowStyle::Line => lines.render_hit(at, hit),
                    HitRowStyle::LocationOnly => {
                        format!("{}:{}", escape_deceptive_line(&path.to_wire()), hit.line)
                    }
                };
                let row = HitRow { path, hit, text, repeat_count: 1, style };
                let cost = row.render_heading(rows.last()).chars().count() + row.text.chars().count();
                if used + cost > wanted.budget_chars && shown > 0 {
                    break;
                }
                used += cost;
                known.insert(key, rows.len());
                rows.push(row);
            }
        }
        shown += 1;
        let location = hit.location_json();
        match locations.iter_mut().find(|(file, _)| *file == at) {
            Some((_, hits)) => hits.push(location),
            None => locations.push((at, vec![location])),
        }
    }
    let file = |(at, hits): (usize, Vec<_>)| file_json(&files[at].0, hits);
    let end = wanted.start.saturating_add(shown);
    let next_start = (end < order.len()).then_some(end);
    SearchPage { files: locations.into_iter().map(file).collect(), text: render_rows(&rows), next_start }
}

pub(super) fn file_json(path: &RelPath, hits: Vec<Map<String, Value>>) -> Map<String, Value> {
    OutcomeBuilder::new().with_field("path", path.to_string()).with_field("hits", hits).into_json()
}

fn render_rows(rows: &[HitRow<'_>]) -> String {
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        text.push_str(&row.render_heading(number.checked_sub(1).and_then(|previous| rows.get(previous))));
        text.push_str(row.text.trim_end_matches('\n'));
        if row.repeat_count > 1 {
            text.push_str(&format!(" (×{})", row.repeat_count));
        }
        let more = row.style == HitRowStyle::LocationOnly
            && rows.get(number + 1).is_some_and(|row| row.style == HitRowStyle::LocationOnly);
        text.push_str(if more { ", " } else { "\n" });
    }
    text
}

impl HitRow<'_> {
    fn render_heading(&self, previous: Option<&HitRow<'_>>) -> String {
        let role = self.hit.weight.role;
        if self.style == HitRowStyle::LocationOnly {
            let first = previous.is_none_or(|row| row.style == HitRowStyle::Line);
            return if first { "[import] ".to_owned() } else { String::new() };
        }
        if previous.is_some_and(|row| row.path == self.path && row.hit.weight.role == role) {
            return String::new();
        }
        let mark = match role {
            SymbolRole::Definition => " [def]",
            SymbolRole::LikelyDefinition => " [def?]",
            SymbolRole::Usage => "",
            SymbolRole::Import => " [import]",
        };
        format!("{}{mark}\n", escape_deceptive_line(&self.path.to_wire()))
    }
}

pub(super) fn describe_definitions(files: &[FileHits]) -> Option<String> {
    let count =
        |role: SymbolRole| files.iter().flat_map(|(_, hits)| hits).filter(|hit| hit.weight.role == role).count();
    let (word, count) = match (count(SymbolRole::Definition), count(SymbolRole::LikelyDefinition)) {
        (0, 0) => return None,
        (0, likely) => ("likely definition", likely),
        (sure, _) => ("definition", sure),
    };
    Some(format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
}
