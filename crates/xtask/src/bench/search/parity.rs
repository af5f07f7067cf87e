//! `cargo xtask bench search --parity`: the same lines as ripgrep, for queries made from the files themselves, with
//! ignore rules and without. Every difference is listed with what explains it; one that nothing explains fails the run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::{Value, json};

use super::{
    queries::{Chance, Query, from_line},
    ripgrep::{Ripgrep, Rules, Spot, Syntax},
    sources::{self, Source},
    started,
};
use crate::bench::{field, speaker::Speaker};

/// Queries for each tree; each is asked with ignore rules and without.
const QUERIES: usize = 80;
const SEED: u64 = 20;
/// Most hits that are compared place by place; of more, the count is.
const HITS_MAX: u64 = 1_000;
/// Most differences that are shown one by one.
const SHOWN_MAX: usize = 20;
/// Hits that the server keeps; those of one part of an answer, and files that a part may name.
const KEPT_MAX: usize = 2_000;
const PART_HITS_MAX: usize = 1_500;
const PART_FILES_MAX: usize = 100;

/// What was compared, and what differed.
#[derive(Default)]
struct Tally {
    asked: usize,
    places: usize,
    counted: usize,
    /// Lines that ripgrep has with ignore rules, and without.
    obeying: usize,
    all: usize,
    /// Differing places by what explains them.
    explained: BTreeMap<&'static str, usize>,
    unexplained: Vec<String>,
}

/// Compares on every tree.
pub(super) fn run(ripgrep: &Ripgrep, binary: &Path, place: &Path) -> Result<(), String> {
    let mut unexplained = 0;
    for source in sources::copied(place)? {
        let mut chance = Chance::seeded(SEED);
        source.plant(&mut chance)?;
        source.plant_large()?;
        let state = place.join(format!("{}-state", source.name));
        let mut stead = started(&field::stead(binary, &source.directory, &state, "fast"))?;
        let mut tally = Tally::default();
        for query in queries(&source, &mut chance) {
            for rules in [Rules::Obeyed, Rules::Off] {
                compare(ripgrep, &mut stead, &source, &query, rules, &mut tally)?;
            }
        }
        stead.stop();
        tally.report(source.name, &ripgrep.version);
        unexplained += tally.unexplained.len();
    }
    if unexplained == 0 { Ok(()) } else { Err(format!("{unexplained} differences that nothing explains")) }
}

/// Queries that are true of lines of the files.
fn queries(source: &Source, chance: &mut Chance) -> Vec<Query> {
    let mut queries: Vec<Query> = Vec::new();
    while queries.len() < QUERIES {
        let Some(Ok(bytes)) = chance.pick(&source.files).map(fs::read) else { continue };
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let lines: Vec<&str> = text.lines().collect();
        let query = chance.pick(&lines).copied().and_then(|line| from_line(chance, line));
        queries.extend(query.filter(|query| !queries.contains(query)));
    }
    queries
}

fn compare(
    ripgrep: &Ripgrep,
    stead: &mut Speaker,
    source: &Source,
    query: &Query,
    rules: Rules,
    tally: &mut Tally,
) -> Result<(), String> {
    let mut theirs = ripgrep.spots(&source.directory, &query.text, query.syntax, rules)?;
    let (mut ours, total) = answered(stead, query, rules, None)?;
    tally.asked += 1;
    match rules {
        Rules::Obeyed => tally.obeying += theirs.len(),
        Rules::Off => tally.all += theirs.len(),
    }
    let what = format!("{} {query:?} {rules:?}", source.name);
    // More than one answer carries: file by file, and the number of all.
    if (ours.len() as u64) < total {
        ours = in_parts(stead, query, rules, &theirs)?;
        let crowded = crowded(&theirs);
        tally.counted += usize::from(!crowded.is_empty());
        if total != theirs.len() as u64 && differing(source, &theirs) == 0 {
            tally.unexplained.push(format!("{what}: {total} lines, ripgrep has {}", theirs.len()));
        }
        for spots in [&mut ours, &mut theirs] {
            spots.retain(|(path, _)| !crowded.contains(path));
        }
    }
    tally.places += theirs.len();
    for (path, line) in ours.symmetric_difference(&theirs) {
        match explanation(source, path) {
            Some(why) => *tally.explained.entry(why).or_default() += 1,
            None => {
                let whose = if theirs.contains(&(path.clone(), *line)) { "ripgrep" } else { "stead" };
                let path = String::from_utf8_lossy(path);
                tally.unexplained.push(format!("{what}: only {whose} has {path}:{line}"));
            }
        }
    }
    Ok(())
}

/// Every place that the server answers, over all pages, and how many lines it says there are.
fn answered(
    stead: &mut Speaker,
    query: &Query,
    rules: Rules,
    glob: Option<&str>,
) -> Result<(BTreeSet<Spot>, u64), String> {
    let mut spots = BTreeSet::new();
    let regex = query.syntax == Syntax::Regex;
    let mut arguments =
        json!({ "query": query.text, "regex": regex, "all": rules == Rules::Off, "max": HITS_MAX });
    if let Some(glob) = glob {
        arguments["glob"] = glob.into();
    }
    loop {
        let mut answer = stead.call("search", &arguments)?.result["structuredContent"].take();
        let total = answer["total"].as_u64().ok_or_else(|| format!("no total: {answer}"))?;
        for file in answer["files"].as_array().into_iter().flatten() {
            let path = file["path"].as_str().unwrap_or_default().as_bytes();
            let lines = file["hits"].as_array().into_iter().flatten();
            spots.extend(lines.filter_map(|hit| Some((path.to_vec(), hit["line"].as_u64()?))));
        }
        arguments = answer.get_mut("next").map_or(Value::Null, Value::take);
        if !arguments.is_object() || spots.len() as u64 >= total {
            return Ok((spots, total));
        }
    }
}

/// Every place that the server answers in the files where ripgrep has some, asked in parts that one answer carries.
fn in_parts(
    stead: &mut Speaker,
    query: &Query,
    rules: Rules,
    theirs: &BTreeSet<Spot>,
) -> Result<BTreeSet<Spot>, String> {
    let mut counts: BTreeMap<&[u8], usize> = BTreeMap::new();
    for (path, _) in theirs {
        *counts.entry(path).or_default() += 1;
    }
    let mut parts: Vec<(usize, Vec<&[u8]>)> = Vec::new();
    for (path, count) in counts {
        match parts.last_mut() {
            Some((hits, paths)) if *hits + count <= PART_HITS_MAX && paths.len() < PART_FILES_MAX => {
                *hits += count;
                paths.push(path);
            }
            Some(_) | None => parts.push((count, vec![path])),
        }
    }
    let mut spots = BTreeSet::new();
    for (_, paths) in parts {
        let escaped: Vec<String> = paths.iter().map(|path| escaped(path)).collect();
        let glob = format!("{{{}}}", escaped.join(","));
        let (part, _) = answered(stead, query, rules, Some(&glob))?;
        // A name without a slash means any depth; what lies elsewhere belongs to another part.
        spots.extend(part.into_iter().filter(|(path, _)| paths.contains(&path.as_slice())));
    }
    Ok(spots)
}

/// Files with more hits than the server keeps.
fn crowded(spots: &BTreeSet<Spot>) -> BTreeSet<Vec<u8>> {
    let mut counts: BTreeMap<&[u8], usize> = BTreeMap::new();
    for (path, _) in spots {
        *counts.entry(path).or_default() += 1;
    }
    counts.into_iter().filter(|(_, count)| *count > KEPT_MAX).map(|(path, _)| path.to_vec()).collect()
}

/// A path as a pattern that means only it.
fn escaped(path: &[u8]) -> String {
    let mut pattern = String::new();
    for letter in String::from_utf8_lossy(path).chars() {
        if "*?[]{},\\!".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// How many of these places are in files that are known to differ.
fn differing(source: &Source, spots: &BTreeSet<Spot>) -> usize {
    spots.iter().filter(|(path, _)| explanation(source, path).is_some()).count()
}

/// Why the two may see a file differently; nothing when they must not.
fn explanation(source: &Source, path: &[u8]) -> Option<&'static str> {
    let bytes = fs::read(source.directory.join(String::from_utf8_lossy(path).as_ref())).ok()?;
    if bytes.contains(&0) {
        return Some("holds a zero byte: not text as a whole; ripgrep shows the lines before it");
    }
    std::str::from_utf8(&bytes)
        .is_err()
        .then_some("not UTF-8: read in the encoding it has; ripgrep reads bytes")
}

impl Tally {
    fn report(&self, name: &str, version: &str) {
        let Self { asked, places, counted, obeying, all, explained, unexplained } = self;
        println!(
            "parity: {name}: {asked} searches beside {version}, {places} lines compared, \
             {counted} searches with a file by count alone; {obeying} of {all} lines are left by ignore rules"
        );
        for (why, count) in explained {
            println!("  {count} lines differ: {why}");
        }
        for line in unexplained.iter().take(SHOWN_MAX) {
            println!("  UNEXPLAINED {line}");
        }
        if unexplained.len() > SHOWN_MAX {
            println!("  … and {} more", unexplained.len() - SHOWN_MAX);
        }
    }
}
