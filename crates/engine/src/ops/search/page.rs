//! The native answer of `search`: what was meant first, as much as a budget allows, and where to go on.
//!
//! The text is for models: a verdict, then lines by file, each different line once. The object has the places of the same
//! hits and no line of text. Never shows a hit twice over the pages of one answer, and never leaves one out unsaid.

use std::collections::{HashMap, HashSet};

use path::RelPath;
use serde_json::Value;
use text::{
    rank::{Candidate, Role, order, prose},
    visible::visible_line,
};

use super::lines::Hit;
use crate::ops::answer::Facts;

/// A file and its hits.
pub(super) type FileHits = (RelPath, Vec<Hit>);

/// How much of the hits is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// Hits that earlier pages had.
    pub(super) start: usize,
    /// Most hits.
    pub(super) hits_max: usize,
    /// Most characters of text; one hit is shown whatever its length.
    pub(super) budget_chars: usize,
}

/// A part of the hits.
#[derive(Debug)]
pub(super) struct Page {
    /// One object per file, in the order of their first hit.
    pub(super) files: Vec<Value>,
    /// The lines by file.
    pub(super) text: String,
    /// Where the next page starts; nothing when all that was kept is shown.
    pub(super) next: Option<usize>,
}

/// Hits in the order they are shown: the file's index, the hit's index in it.
pub(super) type Order = Vec<(usize, usize)>;

/// Lines of one file that come before those of the next one, when words are looked for.
const WORDS_LINES: usize = 3;

/// The order for a name or an expression.
pub(super) fn by_role(files: &[FileHits]) -> Order {
    let paths: Vec<String> = files.iter().map(|(path, _)| path.to_string()).collect();
    let mut places = Vec::new();
    let mut candidates = Vec::new();
    for (at, (_, hits)) in files.iter().enumerate() {
        for (number, hit) in hits.iter().enumerate() {
            places.push((at, number));
            candidates.push(Candidate { path: &paths[at], line: hit.line, weight: hit.weight });
        }
    }
    order(&candidates).into_iter().map(|index| places[index]).collect()
}

/// The order for the words of a question.
pub(super) fn by_words(files: &[FileHits], words: &[String], scanned: u64) -> Order {
    let mut tallies = Vec::new();
    let mut worths: Vec<Vec<(u32, usize)>> = Vec::new();
    for (path, hits) in files {
        let length = hits.last().map_or(0, |hit| hit.line);
        let mut tally = prose::Tally::new(&path.to_string(), length, words);
        let worth = hits.iter().enumerate().map(|(number, hit)| (tally.add(&hit.text, words), number));
        let mut worth: Vec<(u32, usize)> = worth.collect();
        worth.sort_by_key(|(worth, number)| (std::cmp::Reverse(*worth), *number));
        worths.push(worth);
        tallies.push(tally);
    }
    let files = prose::order(&tallies, scanned);
    let part = |at: &usize, from: usize, most: usize| {
        let at = *at;
        let mut part: Vec<usize> =
            worths[at].iter().skip(from).take(most).map(|(_, number)| *number).collect();
        part.sort_unstable();
        part.into_iter().map(move |number| (at, number)).collect::<Vec<_>>()
    };
    let first = files.iter().flat_map(|at| part(at, 0, WORDS_LINES));
    first.chain(files.iter().flat_map(|at| part(at, WORDS_LINES, usize::MAX))).collect()
}

/// A line of the text, and how often it stands for others that read the same.
struct Row<'a> {
    path: &'a RelPath,
    hit: &'a Hit,
    text: String,
    times: usize,
    form: Form,
}

/// How a row is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The line itself, below its file.
    Line,
    /// Only where it is: an import beside the definition that it brings in.
    Place,
}

/// Which lines of which files are shown already, or will be for themselves.
struct Lines(HashSet<(usize, u64)>);

impl Lines {
    fn of(files: &[FileHits]) -> Self {
        let own = |(at, (_, hits)): (usize, &FileHits)| -> Vec<(usize, u64)> {
            hits.iter().filter(|hit| !hit.is_bare()).map(|hit| (at, hit.line)).collect()
        };
        Self(files.iter().enumerate().flat_map(own).collect())
    }

    /// How a hit reads: alone without its indent, with its neighbours as they stand.
    fn read(&mut self, at: usize, hit: &Hit) -> String {
        if hit.is_bare() {
            return format!("{} {}\n", hit.line, visible_line(hit.text.trim()));
        }
        let mut text = String::new();
        hit.write_with(&mut text, &mut |number| self.0.insert((at, number)));
        text
    }
}

/// The hits from where the page before ended, as many as fit.
pub(super) fn page(files: &[FileHits], order: &Order, wanted: Wanted) -> Page {
    let mut rows: Vec<Row<'_>> = Vec::new();
    let mut known: HashMap<(Role, &str), usize> = HashMap::new();
    let mut places: Vec<(usize, Vec<Value>)> = Vec::new();
    let mut lines = Lines::of(files);
    let (mut used, mut shown) = (0usize, 0usize);
    for &(at, number) in order.iter().skip(wanted.start).take(wanted.hits_max) {
        let (path, hits) = &files[at];
        let hit = &hits[number];
        let key = (hit.weight.role, hit.text.trim());
        let brings = hit.weight.role == Role::Import && hit.is_bare();
        let defined = rows.first().is_some_and(|row| row.hit.weight.role == Role::Definition);
        let form = if brings && defined { Form::Place } else { Form::Line };
        let same = known.get(&key).filter(|_| hit.is_bare() && form == Form::Line);
        match same.and_then(|row| rows.get_mut(*row)) {
            Some(row) => row.times += 1,
            None => {
                let text = match form {
                    Form::Line => lines.read(at, hit),
                    Form::Place => format!("{}:{}", visible_line(&path.to_wire()), hit.line),
                };
                let row = Row { path, hit, text, times: 1, form };
                let cost = row.heading(rows.last()).chars().count() + row.text.chars().count();
                if used + cost > wanted.budget_chars && shown > 0 {
                    break;
                }
                used += cost;
                known.insert(key, rows.len());
                rows.push(row);
            }
        }
        shown += 1;
        let place = Value::Object(hit.place());
        match places.iter_mut().find(|(file, _)| *file == at) {
            Some((_, hits)) => hits.push(place),
            None => places.push((at, vec![place])),
        }
    }
    let file = |(at, hits): (usize, Vec<Value>)| {
        Value::Object(Facts::new().with("path", files[at].0.to_string()).with("hits", hits).object())
    };
    let end = wanted.start.saturating_add(shown);
    let next = (end < order.len()).then_some(end);
    Page { files: places.into_iter().map(file).collect(), text: written(&rows), next }
}

/// The rows below their headings.
fn written(rows: &[Row<'_>]) -> String {
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        text.push_str(&row.heading(number.checked_sub(1).and_then(|before| rows.get(before))));
        text.push_str(row.text.trim_end_matches('\n'));
        if row.times > 1 {
            text.push_str(&format!(" (×{})", row.times));
        }
        let more = row.form == Form::Place && rows.get(number + 1).is_some_and(|row| row.form == Form::Place);
        text.push_str(if more { ", " } else { "\n" });
    }
    text
}

impl Row<'_> {
    /// The line that names the file, if it is another than before, or another part of the answer.
    fn heading(&self, before: Option<&Row<'_>>) -> String {
        let role = self.hit.weight.role;
        if self.form == Form::Place {
            let first = before.is_none_or(|before| before.form == Form::Line);
            return if first { "[import] ".to_owned() } else { String::new() };
        }
        if before.is_some_and(|before| before.path == self.path && before.hit.weight.role == role) {
            return String::new();
        }
        let mark = match role {
            Role::Definition => " [def]",
            Role::Likely => " [def?]",
            Role::Usage => "",
            Role::Import => " [import]",
        };
        format!("{}{mark}\n", visible_line(&self.path.to_wire()))
    }
}

/// How many definitions there are, as far as the hits tell; nothing when they tell of none. Where they are stands right
/// below, so the verdict does not say it twice.
pub(super) fn defined(files: &[FileHits]) -> Option<String> {
    let count =
        |role: Role| files.iter().flat_map(|(_, hits)| hits).filter(|hit| hit.weight.role == role).count();
    let (word, count) = match (count(Role::Definition), count(Role::Likely)) {
        (0, 0) => return None,
        (0, likely) => ("likely definition", likely),
        (sure, _) => ("definition", sure),
    };
    Some(format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
}
