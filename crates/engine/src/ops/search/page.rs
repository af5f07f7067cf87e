//! Pages of the native `search` outcome: best hits first, within a budget, and where to continue.
//!
//! The text is for models: lines grouped by file, equal lines once. The object has the locations of the same hits and
//! no text. Across pages no hit repeats, and omitted hits are counted.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use stead_path::RelPath;
use stead_text::{
    rank::{RankedHit, SymbolRole, natural_language, rank_order},
    visible::escape_deceptive_line,
};

use super::matcher::SearchHit;
use crate::ops::outcome_builder::OutcomeBuilder;

pub(super) type FileHits = (RelPath, Vec<SearchHit>);

#[derive(Debug, Clone, Copy)]
pub(super) struct SearchPageRequest {
    /// Hits on earlier pages.
    pub(super) start: usize,
    pub(super) hits_max: usize,
    /// Maximum characters of text; at least one hit is shown.
    pub(super) budget_chars: usize,
}

#[derive(Debug)]
pub(super) struct SearchPage {
    /// One object per file, in the order of their first hit.
    pub(super) files: Vec<Value>,
    pub(super) text: String,
    /// Start of the next page; `None` if all collected hits are shown.
    pub(super) next_start: Option<usize>,
}

/// Hits in display order: index of the file, index of the hit in it.
pub(super) type HitOrder = Vec<(usize, usize)>;

/// Hits of one file before those of the next, in a search by words.
const WORD_RANKED_LINES: usize = 3;

/// The order for a name or an expression.
pub(super) fn order_by_role(files: &[FileHits]) -> HitOrder {
    let paths: Vec<String> = files.iter().map(|(path, _)| path.to_string()).collect();
    let mut positions = Vec::new();
    let mut candidates = Vec::new();
    for (at, (_, hits)) in files.iter().enumerate() {
        for (number, hit) in hits.iter().enumerate() {
            positions.push((at, number));
            candidates.push(RankedHit { path: &paths[at], line: hit.line, score: hit.weight });
        }
    }
    rank_order(&candidates).into_iter().map(|index| positions[index]).collect()
}

/// The order for a natural-language query.
pub(super) fn order_by_words(files: &[FileHits], words: &[String], scanned: u64) -> HitOrder {
    let mut tallies = Vec::new();
    let mut worths: Vec<Vec<(u32, usize)>> = Vec::new();
    for (path, hits) in files {
        let length = hits.last().map_or(0, |hit| hit.line);
        let mut tally = natural_language::FileWordCounts::new(&path.to_string(), length, words);
        let worth = hits.iter().enumerate().map(|(number, hit)| (tally.add_line(&hit.text, words), number));
        let mut worth: Vec<(u32, usize)> = worth.collect();
        worth.sort_by_key(|(worth, number)| (std::cmp::Reverse(*worth), *number));
        worths.push(worth);
        tallies.push(tally);
    }
    let files = natural_language::rank_files(&tallies, scanned);
    let part = |at: &usize, from: usize, most: usize| {
        let at = *at;
        let mut part: Vec<usize> = worths[at].iter().skip(from).take(most).map(|(_, number)| *number).collect();
        part.sort_unstable();
        part.into_iter().map(move |number| (at, number)).collect::<Vec<_>>()
    };
    let first = files.iter().flat_map(|at| part(at, 0, WORD_RANKED_LINES));
    first.chain(files.iter().flat_map(|at| part(at, WORD_RANKED_LINES, usize::MAX))).collect()
}

/// A line of text, and the number of equal lines it stands for.
struct HitRow<'a> {
    path: &'a RelPath,
    hit: &'a SearchHit,
    text: String,
    repeat_count: usize,
    style: HitRowStyle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HitRowStyle {
    /// The line, below its file.
    Line,
    /// Only the location: an import next to its definition.
    LocationOnly,
}

/// Lines that are already shown, or will be shown as hits.
struct ShownLines(HashSet<(usize, u64)>);

impl ShownLines {
    fn from_hits(files: &[FileHits]) -> Self {
        let own = |(at, (_, hits)): (usize, &FileHits)| -> Vec<(usize, u64)> {
            hits.iter().filter(|hit| !hit.has_no_context()).map(|hit| (at, hit.line)).collect()
        };
        Self(files.iter().enumerate().flat_map(own).collect())
    }

    /// A single line is trimmed; with context the indentation stays.
    fn render_hit(&mut self, at: usize, hit: &SearchHit) -> String {
        if hit.has_no_context() {
            return format!("{} {}\n", hit.line, escape_deceptive_line(hit.text.trim()));
        }
        let mut text = String::new();
        hit.render_filtered(&mut text, &mut |number| self.0.insert((at, number)));
        text
    }
}

/// The hits after the previous page, as many as fit.
pub(super) fn render_page(files: &[FileHits], order: &HitOrder, wanted: SearchPageRequest) -> SearchPage {
    let mut rows: Vec<HitRow<'_>> = Vec::new();
    let mut known: HashMap<(SymbolRole, &str), usize> = HashMap::new();
    let mut locations: Vec<(usize, Vec<Value>)> = Vec::new();
    let mut lines = ShownLines::from_hits(files);
    let (mut used, mut shown) = (0usize, 0usize);
    for &(at, number) in order.iter().skip(wanted.start).take(wanted.hits_max) {
        let (path, hits) = &files[at];
        let hit = &hits[number];
        let key = (hit.weight.role, hit.text.trim());
        let brings = hit.weight.role == SymbolRole::Import && hit.has_no_context();
        let defined = rows.first().is_some_and(|row| row.hit.weight.role == SymbolRole::Definition);
        let form = if brings && defined { HitRowStyle::LocationOnly } else { HitRowStyle::Line };
        let same = known.get(&key).filter(|_| hit.has_no_context() && form == HitRowStyle::Line);
        match same.and_then(|row| rows.get_mut(*row)) {
            Some(row) => row.repeat_count += 1,
            None => {
                let text = match form {
                    HitRowStyle::Line => lines.render_hit(at, hit),
                    HitRowStyle::LocationOnly => {
                        format!("{}:{}", escape_deceptive_line(&path.to_wire()), hit.line)
                    }
                };
                let row = HitRow { path, hit, text, repeat_count: 1, style: form };
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
        let location = Value::Object(hit.location_json());
        match locations.iter_mut().find(|(file, _)| *file == at) {
            Some((_, hits)) => hits.push(location),
            None => locations.push((at, vec![location])),
        }
    }
    let file = |(at, hits): (usize, Vec<Value>)| {
        Value::Object(
            OutcomeBuilder::new().with_field("path", files[at].0.to_string()).with_field("hits", hits).into_json(),
        )
    };
    let end = wanted.start.saturating_add(shown);
    let next = (end < order.len()).then_some(end);
    SearchPage { files: locations.into_iter().map(file).collect(), text: render_rows(&rows), next_start: next }
}

/// Rows with their headings.
fn render_rows(rows: &[HitRow<'_>]) -> String {
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        text.push_str(&row.render_heading(number.checked_sub(1).and_then(|before| rows.get(before))));
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
    /// The file heading, if the file or the section differs from the previous row.
    fn render_heading(&self, before: Option<&HitRow<'_>>) -> String {
        let role = self.hit.weight.role;
        if self.style == HitRowStyle::LocationOnly {
            let first = before.is_none_or(|before| before.style == HitRowStyle::Line);
            return if first { "[import] ".to_owned() } else { String::new() };
        }
        if before.is_some_and(|before| before.path == self.path && before.hit.weight.role == role) {
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

/// The number of definitions among the hits, if any. Their locations follow in the list.
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
