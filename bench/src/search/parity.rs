//! `cargo xtask bench search --parity` compares the lines that the server finds with the lines that ripgrep finds, for
//! queries made from the searched files, with and without ignore rules. Every difference needs an explanation;
//! otherwise the benchmark fails.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::{Value, json};

use super::{
    copied_trees::{self, BenchSourceTreeCopy},
    queries::{BenchSearchQuery, QueryRng, query_for_line},
    ripgrep::{BenchIgnoreRulesMode, Ripgrep, RipgrepBenchPatternKind, SearchBenchHitLine},
    start_client,
};
use crate::{bench_servers, mcp_client::McpBenchClient};

/// The number of queries on each source tree; each query runs with and without ignore rules.
const QUERIES_PER_TREE: usize = 80;
const SEED: u64 = 20;
/// The number of matches per page that the benchmark requests from the server.
const PAGE_HITS_MAX: u64 = 1_000;
const DIFFERENCES_SHOWN_MAX: usize = 20;
/// The most matches that the server returns for one search.
const SERVER_HITS_MAX: usize = 2_000;
const PART_HITS_MAX: usize = 1_500;
const PART_FILES_MAX: usize = 100;

#[derive(Default)]
struct RipgrepParityCounts {
    queries: usize,
    hits: usize,
    counted_lines: usize,
    /// The number of lines that ripgrep finds, with ignore rules and without.
    lines_with_ignore_rules: usize,
    lines_without_ignore_rules: usize,
    /// The number of differences for each explanation.
    explained: BTreeMap<&'static str, usize>,
    unexplained: Vec<String>,
}

/// Compares the search results of the server and ripgrep on every copied source tree.
pub(super) fn run(ripgrep: &Ripgrep, binary: &Path, place: &Path) -> Result<(), String> {
    let mut unexplained = 0;
    for source in copied_trees::copy_trees(place)? {
        let mut chance = QueryRng::from_seed(SEED);
        source.plant_ignore_files(&mut chance)?;
        source.plant_large_file()?;
        let state = place.join(format!("{}-state", source.name));
        let mut stead = start_client(&bench_servers::stead_launch(binary, &source.directory, &state, "fast"))?;
        let mut tally = RipgrepParityCounts::default();
        for query in generate_queries(&source, &mut chance) {
            for rules in [BenchIgnoreRulesMode::Respect, BenchIgnoreRulesMode::Ignore] {
                compare_query(ripgrep, &mut stead, &source, &query, rules, &mut tally)?;
            }
        }
        stead.stop();
        tally.print_report(source.name, &ripgrep.version);
        unexplained += tally.unexplained.len();
    }
    if unexplained == 0 { Ok(()) } else { Err(format!("{unexplained} differences that nothing explains")) }
}

/// Queries that match lines of the files.
fn generate_queries(source: &BenchSourceTreeCopy, chance: &mut QueryRng) -> Vec<BenchSearchQuery> {
    let mut queries: Vec<BenchSearchQuery> = Vec::new();
    while queries.len() < QUERIES_PER_TREE {
        let Some(Ok(bytes)) = chance.pick(&source.files).map(fs::read) else { continue };
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let lines: Vec<&str> = text.lines().collect();
        let query = chance.pick(&lines).copied().and_then(|line| query_for_line(chance, line));
        queries.extend(query.filter(|query| !queries.contains(query)));
    }
    queries
}

fn compare_query(
    ripgrep: &Ripgrep,
    stead: &mut McpBenchClient,
    source: &BenchSourceTreeCopy,
    query: &BenchSearchQuery,
    rules: BenchIgnoreRulesMode,
    tally: &mut RipgrepParityCounts,
) -> Result<(), String> {
    let mut theirs = ripgrep.find_hits(&source.directory, &query.text, query.syntax, rules)?;
    let (mut ours, total) = server_hits(stead, query, rules, None)?;
    tally.queries += 1;
    match rules {
        BenchIgnoreRulesMode::Respect => tally.lines_with_ignore_rules += theirs.len(),
        BenchIgnoreRulesMode::Ignore => tally.lines_without_ignore_rules += theirs.len(),
    }
    let what = format!("{} {query:?} {rules:?}", source.name);
    // More matches than one result has: query in parts, and compare the total.
    if (ours.len() as u64) < total {
        ours = server_hits_in_parts(stead, query, rules, &theirs)?;
        let crowded = files_with_too_many_hits(&theirs);
        tally.counted_lines += usize::from(!crowded.is_empty());
        if total != theirs.len() as u64 && count_known_differences(source, &theirs) == 0 {
            tally.unexplained.push(format!("{what}: {total} lines, ripgrep has {}", theirs.len()));
        }
        for spots in [&mut ours, &mut theirs] {
            spots.retain(|(path, _)| !crowded.contains(path));
        }
    }
    tally.hits += theirs.len();
    for (path, line) in ours.symmetric_difference(&theirs) {
        match explain_difference(source, path) {
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

/// All matches of a query that the server returns on all pages, and the total number that it reports.
fn server_hits(
    stead: &mut McpBenchClient,
    query: &BenchSearchQuery,
    rules: BenchIgnoreRulesMode,
    glob: Option<&str>,
) -> Result<(BTreeSet<SearchBenchHitLine>, u64), String> {
    let mut spots = BTreeSet::new();
    let regex = query.syntax == RipgrepBenchPatternKind::Regex;
    let mut arguments = json!({ "query": query.text, "regex": regex, "all": rules == BenchIgnoreRulesMode::Ignore, "max": PAGE_HITS_MAX });
    if let Some(glob) = glob {
        arguments["glob"] = glob.into();
    }
    loop {
        let mut answer = stead.call_tool("search", &arguments)?.result["structuredContent"].take();
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

/// All matches of the server in the files where ripgrep has matches; a query for a part of the files never exceeds the
/// server's limit.
fn server_hits_in_parts(
    stead: &mut McpBenchClient,
    query: &BenchSearchQuery,
    rules: BenchIgnoreRulesMode,
    theirs: &BTreeSet<SearchBenchHitLine>,
) -> Result<BTreeSet<SearchBenchHitLine>, String> {
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
        let escaped: Vec<String> = paths.iter().map(|path| escape_glob(path)).collect();
        let glob = format!("{{{}}}", escaped.join(","));
        let (part, _) = server_hits(stead, query, rules, Some(&glob))?;
        // A name without a slash matches at any depth; other directories belong to other parts.
        spots.extend(part.into_iter().filter(|(path, _)| paths.contains(&path.as_slice())));
    }
    Ok(spots)
}

/// The files that have more matches than the server returns for one search.
fn files_with_too_many_hits(spots: &BTreeSet<SearchBenchHitLine>) -> BTreeSet<Vec<u8>> {
    let mut counts: BTreeMap<&[u8], usize> = BTreeMap::new();
    for (path, _) in spots {
        *counts.entry(path).or_default() += 1;
    }
    counts.into_iter().filter(|(_, count)| *count > SERVER_HITS_MAX).map(|(path, _)| path.to_vec()).collect()
}

/// A glob that matches only this path.
fn escape_glob(path: &[u8]) -> String {
    let mut pattern = String::new();
    for letter in String::from_utf8_lossy(path).chars() {
        if "*?[]{},\\!".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// The number of matches in files that the server and ripgrep may treat differently.
fn count_known_differences(source: &BenchSourceTreeCopy, spots: &BTreeSet<SearchBenchHitLine>) -> usize {
    spots.iter().filter(|(path, _)| explain_difference(source, path).is_some()).count()
}

/// Why the server and ripgrep may find different lines in a file; `None` if they must find the same lines.
fn explain_difference(source: &BenchSourceTreeCopy, path: &[u8]) -> Option<&'static str> {
    let bytes = fs::read(source.directory.join(String::from_utf8_lossy(path).as_ref())).ok()?;
    if bytes.contains(&0) {
        return Some("has a NUL byte: binary for stead; ripgrep shows the lines before it");
    }
    std::str::from_utf8(&bytes).is_err().then_some("not UTF-8: read in the encoding it has; ripgrep reads bytes")
}

impl RipgrepParityCounts {
    fn print_report(&self, name: &str, version: &str) {
        let Self {
            queries: query_count,
            hits: places,
            counted_lines: counted,
            lines_with_ignore_rules: obeying,
            lines_without_ignore_rules: all,
            explained,
            unexplained,
        } = self;
        println!(
            "parity: {name}: {query_count} searches beside {version}, {places} lines compared, \
             {counted} searches with a file by count alone; {obeying} of {all} lines are left by ignore rules"
        );
        for (why, count) in explained {
            println!("  {count} lines differ: {why}");
        }
        for line in unexplained.iter().take(DIFFERENCES_SHOWN_MAX) {
            println!("  UNEXPLAINED {line}");
        }
        if unexplained.len() > DIFFERENCES_SHOWN_MAX {
            println!("  … and {} more", unexplained.len() - DIFFERENCES_SHOWN_MAX);
        }
    }
}
