//! Which of many hits is the one that was meant, judged from the path and the line alone: no model, no parser, no index.
//!
//! Owns what counts ([`Place::weigh`]), the order of hits for a name ([`order`]) and of files for a sentence
//! ([`prose`]). Promises a total order: the same hits come out the same way, however they came in. Never looks beyond
//! what it is given.

mod definition;
mod language;
pub mod prose;
mod shape;
mod standing;

use std::{cmp::Reverse, collections::HashMap, ops::Range};

pub use definition::{Role, role};
pub use language::Language;
pub use standing::Standing;

/// What a hit counts before its file is looked at: a name that is defined, one that seems to be, one that is part of a
/// longer name that is defined or seems to be, one that is used as a whole word or as part of one, one that is imported.
const DEFINED: u32 = 7000;
const LIKELY: u32 = 4000;
const PART_DEFINED: u32 = 2000;
const PART_LIKELY: u32 = 800;
const USED: u32 = 500;
const PART_USED: u32 = 50;
const IMPORTED: u32 = 100;
/// Lines longer than this were not written by hand.
const SQUEEZED_LINE_BYTES: usize = 1000;
/// What a hit in such a line counts, and one in a comment, in percent.
const SQUEEZED_PERCENT: u32 = 20;
const COMMENT_PERCENT: u32 = 50;
/// What a hit counts whose file is called like it, or has it in its name, in percent.
const SAME_NAME_PERCENT: u32 = 150;
const IN_NAME_PERCENT: u32 = 115;
/// Uses of one file that come before those of the next file; the others come at the end.
const USES_PER_FILE: usize = 8;
/// Fewer hits than this stay together, however many a file has.
const SPREAD_FROM: usize = 40;

/// A file as ranking sees it.
#[derive(Debug, Clone)]
pub struct Place {
    language: Language,
    percent: u32,
    /// The name of the file without its ending, in lower case and without separators.
    stem: String,
}

/// What a hit is and how much it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weight {
    /// What the line is to the name.
    pub role: Role,
    /// More is better.
    pub points: u32,
}

/// A hit among others.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Its file.
    pub path: &'a str,
    /// Its line.
    pub line: u64,
    /// What it counts.
    pub weight: Weight,
}

impl Place {
    /// What a path says about its file.
    pub fn of(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or(name);
        Self { language: Language::of(path), percent: Standing::of(path).percent(), stem: squeezed(stem) }
    }

    /// The language of the file.
    pub fn language(&self) -> Language {
        self.language
    }

    /// What a hit in one of its lines is, and counts.
    pub fn weigh(&self, line: &str, hit: &Range<usize>) -> Weight {
        let hit = &definition::settled(line, hit);
        let name = definition::name_at(line, hit);
        let whole = name.as_ref().is_none_or(|name| definition::is_whole(hit, name));
        let found = role(self.language, line, hit);
        let (role, mut points) = match (found, whole) {
            (Role::Definition, true) => (Role::Definition, DEFINED),
            (Role::Definition, false) => (Role::Usage, PART_DEFINED),
            (Role::Likely, true) => (Role::Likely, LIKELY),
            (Role::Likely, false) => (Role::Usage, PART_LIKELY),
            (Role::Usage, true) => (Role::Usage, USED),
            (Role::Usage, false) => (Role::Usage, PART_USED),
            (Role::Import, _) => (Role::Import, IMPORTED),
        };
        let mut times = |percent: u32| points = points * percent / 100;
        times(self.percent);
        if line.len() > SQUEEZED_LINE_BYTES {
            times(SQUEEZED_PERCENT);
        } else if self.language.is_comment(line) {
            times(COMMENT_PERCENT);
        }
        let name = name.and_then(|name| line.get(name)).map(squeezed).unwrap_or_default();
        if !name.is_empty() && name == self.stem {
            times(SAME_NAME_PERCENT);
        } else if name.len() > 2 && self.stem.contains(&name) {
            times(IN_NAME_PERCENT);
        }
        Weight { role, points }
    }
}

/// Lower case, letters and digits only: `read_only`, `ReadOnly` and `read-only` are one name.
fn squeezed(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// A key that sorts what matters first, and never leaves two hits equal.
pub fn key<'a>(hit: &Candidate<'a>) -> impl Ord + use<'a> {
    (hit.weight.role, Reverse(hit.weight.points), hit.path, hit.line)
}

/// The order in which hits are shown, as indexes: definitions, what seems to define, uses, imports; in each of them
/// the files by their best hit, and a file's lines from the top. When there are many, a file's further uses come last.
pub fn order(hits: &[Candidate<'_>]) -> Vec<usize> {
    let late = late(hits);
    let section = |at: usize| (late[at], hits[at].weight.role);
    let mut best: HashMap<(bool, Role, &str), u32> = HashMap::new();
    for (at, hit) in hits.iter().enumerate() {
        let (late, role) = section(at);
        let points = best.entry((late, role, hit.path)).or_default();
        *points = (*points).max(hit.weight.points);
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

/// Which hits come after those of all other files.
fn late(hits: &[Candidate<'_>]) -> Vec<bool> {
    let mut late = vec![false; hits.len()];
    if hits.len() < SPREAD_FROM {
        return late;
    }
    let mut by_worth: Vec<usize> = (0..hits.len()).collect();
    by_worth.sort_by_key(|&at| key(&hits[at]));
    let mut seen: HashMap<(Role, &str), usize> = HashMap::new();
    for at in by_worth {
        let hit = &hits[at];
        let count = seen.entry((hit.weight.role, hit.path)).or_default();
        *count += 1;
        late[at] = *count > USES_PER_FILE && hit.weight.role >= Role::Usage;
    }
    late
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(lines: &[(&str, &str)], name: &str) -> Vec<usize> {
        let weigh = |(number, (path, line)): (usize, &(&'static str, &'static str))| {
            let at = line.find(name).unwrap();
            let weight = Place::of(path).weigh(line, &(at..at + name.len()));
            (path.to_string(), number as u64, weight)
        };
        let lines: Vec<(&'static str, &'static str)> =
            lines.iter().map(|(path, line)| (&*path.to_string().leak(), &*line.to_string().leak())).collect();
        let weighed: Vec<_> = lines.iter().enumerate().map(weigh).collect();
        let hits: Vec<Candidate<'_>> = weighed
            .iter()
            .map(|(path, line, weight)| Candidate { path, line: *line, weight: *weight })
            .collect();
        order(&hits)
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
        assert_eq!(ordered(&lines, "parse"), [4, 3, 2, 5, 1, 0]);
    }

    #[test]
    fn a_file_of_that_name_comes_before_others() {
        let lines = [("a.rs", "struct Parser;"), ("src/parser.rs", "struct Parser;")];
        assert_eq!(ordered(&lines, "Parser"), [1, 0]);
    }

    #[test]
    fn whole_words_come_before_parts_and_hand_written_before_squeezed() {
        let long = format!("{}parse(x);", "x;".repeat(600));
        let lines = [("a.js", "  reparse(x);"), ("b.js", long.as_str()), ("c.js", "  parse(x);")];
        assert_eq!(ordered(&lines, "parse"), [2, 1, 0]);
    }

    #[test]
    fn further_uses_of_a_file_come_last_when_there_are_many() {
        let mut lines = vec![("a.rs", "    parse(x);"); 60];
        lines.push(("b.rs", "    parse(y);"));
        let order = ordered(&lines, "parse");
        assert_eq!(order.iter().position(|&at| at == 60), Some(USES_PER_FILE));
        assert_eq!(order.len(), 61);
    }
}
