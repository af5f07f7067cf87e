//! `cargo xtask bench search` compares content search and search by file name with ripgrep and the reference server, on
//! a tree of 100,000 files. The option `--parity` compares matches with ripgrep's on real sources, `--huge` searches
//! files of 2 GiB, and `--growth` measures on trees of three sizes.
//!
//! All programs search the same files, and their measurements alternate. The time of a search counts only if its number
//! of matches equals ripgrep's. The reference server has no content search, and its slow search by file name runs once.

mod concurrent_reads;
mod copied_trees;
mod generated_tree;
mod growth;
mod huge_files;
mod indexed;
mod parity;
mod queries;
mod ripgrep;

use std::path::Path;

use ripgrep::{BenchIgnoreRulesMode, Ripgrep};
use serde_json::json;

use crate::{
    bench_server::BenchServerStartCommand,
    bench_servers,
    idle_wait::BenchIdleMachineWaiter,
    mcp_client::McpBenchClient,
    reference_server,
    report::{BenchReport, BenchRunConditions},
    rows::{BenchComparison, BenchComparisonSide, MeasurementUnit, alternate_sides},
    statistics::Samples,
};

/// How often each search is repeated per program.
const ROUNDS_DEFAULT: usize = 10;
const FILES_DEFAULT: usize = 100_000;
const REPORT_NAME: &str = "bench-search";

#[derive(Debug, PartialEq, Eq)]
struct SearchBenchOptions {
    mode: SearchBenchMode,
    rounds: usize,
    files: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchBenchMode {
    Time,
    Parity,
    Huge,
    Growth,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let wish = parse_options(arguments)?;
    let ripgrep = Ripgrep::install()?;
    let binary = crate::build_release_binary()?;
    let target = crate::needs::target_directory();
    let place = tempfile::Builder::new()
        .prefix("bench-search-")
        .tempdir_in(&target)
        .map_err(|error| format!("{}: {error}", target.display()))?;
    match wish.mode {
        SearchBenchMode::Parity => parity::run(&ripgrep, &binary, place.path()),
        SearchBenchMode::Huge => huge_files::run(&ripgrep, &binary, place.path()),
        SearchBenchMode::Growth => growth::run(&ripgrep, &binary, place.path()),
        SearchBenchMode::Time => measure_time(&wish, &ripgrep, &binary, place.path()),
    }
}

fn measure_time(wish: &SearchBenchOptions, ripgrep: &Ripgrep, binary: &Path, place: &Path) -> Result<(), String> {
    let reference = reference_server::install_reference()?;
    let workspace = place.join("tree");
    println!("bench: making {} files in {}", wish.files, workspace.display());
    generated_tree::generate_tree(&workspace, wish.files)?;
    let mut plain = bench_servers::stead_launch(binary, &workspace, &place.join("state"), "fast");
    plain.arguments.extend(["--index".into(), "off".into()]);
    let mut stead = start_client(&plain)?;
    let mut other = start_client(&bench_servers::reference_launch(&reference.script, &workspace))?;
    let mut quiet = BenchIdleMachineWaiter::default();
    let mut comparisons = Vec::new();
    for (what, query) in
        [("a rare literal", generated_tree::RARE_TEXT), ("a frequent literal", generated_tree::FREQUENT_TEXT)]
    {
        for (how, rules) in [("", BenchIgnoreRulesMode::Respect), (", ignored files too", BenchIgnoreRulesMode::Ignore)]
        {
            println!("bench: {what}{how}");
            let mut row = BenchComparison::new(format!("search: {what}{how}"), "ripgrep");
            let arguments = json!({ "query": query, "all": rules == BenchIgnoreRulesMode::Ignore });
            let expected = ripgrep.count_lines(&workspace, query, rules)?.0;
            alternate_sides(&mut quiet, wish.rounds, |side| {
                let (found, milliseconds) = match side {
                    BenchComparisonSide::Stead => {
                        let timed = stead.call_tool("search", &arguments)?;
                        (timed.result["structuredContent"]["total"].as_u64(), timed.milliseconds)
                    }
                    BenchComparisonSide::Baseline => {
                        let (count, milliseconds) = ripgrep.count_lines(&workspace, query, rules)?;
                        (Some(count), milliseconds)
                    }
                };
                row.push(side, milliseconds);
                if found == Some(expected) { Ok(()) } else { Err(format!("{found:?} of {expected} hits")) }
            })?;
            comparisons.push(row);
        }
    }
    comparisons.extend(measure_by_name(wish, ripgrep, &workspace, &mut stead, &mut other, &mut quiet)?);
    comparisons.push(concurrent_reads::measure_concurrent_reads(wish.rounds, &workspace, &mut stead, &mut quiet)?);
    comparisons.push(BenchComparison {
        title: "peak memory of everything above".to_owned(),
        unit: MeasurementUnit::Megabytes,
        stead: Samples::single(stead.peak_megabytes()?),
        baseline_name: "ripgrep, the frequent literal in all files",
        baseline: Samples::single(ripgrep.peak_megabytes(
            &workspace,
            generated_tree::FREQUENT_TEXT,
            BenchIgnoreRulesMode::Ignore,
        )?),
    });
    comparisons.push(BenchComparison {
        title: "peak memory".to_owned(),
        unit: MeasurementUnit::Megabytes,
        stead: Samples::single(stead.peak_megabytes()?),
        baseline_name: "reference",
        baseline: Samples::single(other.peak_megabytes()?),
    });
    stead.stop();
    other.stop();
    comparisons.extend(indexed::measure_indexed_search(wish.rounds, ripgrep, binary, place, &mut quiet)?);
    let beside = format!("{} and {}, {} files", ripgrep.version, reference.version, wish.files);
    let run = BenchRunConditions { rounds: wish.rounds, reference: beside, idle_waiter: quiet };
    BenchReport::new(run, comparisons).write_named(&crate::needs::target_directory(), REPORT_NAME)
}

/// Compares the search by file name with ripgrep and with the reference server.
fn measure_by_name(
    wish: &SearchBenchOptions,
    ripgrep: &Ripgrep,
    workspace: &Path,
    stead: &mut McpBenchClient,
    other: &mut McpBenchClient,
    quiet: &mut BenchIdleMachineWaiter,
) -> Result<[BenchComparison; 2], String> {
    println!("bench: names");
    let mut beside = BenchComparison::new("find: a name", "ripgrep --files");
    let obeyed = json!({ "pattern": generated_tree::RARE_NAME_PATTERN });
    alternate_sides(quiet, wish.rounds, |side| {
        let (found, milliseconds) = match side {
            BenchComparisonSide::Stead => {
                let timed = stead.call_tool("find", &obeyed)?;
                (timed.result["structuredContent"]["total"].as_u64().unwrap_or(0), timed.milliseconds)
            }
            BenchComparisonSide::Baseline => ripgrep.count_names(workspace, generated_tree::RARE_NAME_PATTERN)?,
        };
        beside.push(side, milliseconds);
        if found == generated_tree::RARE_NAME_COUNT {
            Ok(())
        } else {
            Err(format!("{found} of {} names", generated_tree::RARE_NAME_COUNT))
        }
    })?;
    let mut before = BenchComparison::new("find: a name, ignored files too", "reference, one turn");
    for _ in 0..wish.rounds {
        let timed = stead.call_tool("find", &json!({ "pattern": generated_tree::RARE_NAME_PATTERN, "all": true }))?;
        before.push(BenchComparisonSide::Stead, timed.milliseconds);
    }
    let pattern = format!("**/{}", generated_tree::RARE_NAME_PATTERN);
    let timed = other.call_tool("search_files", &json!({ "path": workspace.to_string_lossy(), "pattern": pattern }))?;
    before.push(BenchComparisonSide::Baseline, timed.milliseconds);
    Ok([beside, before])
}

fn start_client(recipe: &BenchServerStartCommand) -> Result<McpBenchClient, String> {
    let mut speaker = McpBenchClient::start(&mut recipe.command())?;
    speaker.initialize()?;
    Ok(speaker)
}

fn parse_options(arguments: &[String]) -> Result<SearchBenchOptions, String> {
    let mut wish = SearchBenchOptions { mode: SearchBenchMode::Time, rounds: ROUNDS_DEFAULT, files: FILES_DEFAULT };
    let mut left = arguments.iter();
    while let Some(flag) = left.next() {
        let mut number = || -> Result<usize, String> {
            let given = left.next().ok_or_else(|| format!("{flag} needs a number"))?;
            let number = given.parse().ok().filter(|number| *number > 0);
            number.ok_or_else(|| format!("invalid number for {flag}: '{given}'"))
        };
        match flag.as_str() {
            "--parity" => wish.mode = SearchBenchMode::Parity,
            "--huge" => wish.mode = SearchBenchMode::Huge,
            "--growth" => wish.mode = SearchBenchMode::Growth,
            "--rounds" => wish.rounds = number()?,
            "--files" => wish.files = number()?,
            other => {
                let known = "--parity, --huge, --growth, --rounds N and --files N";
                return Err(format!("unknown argument '{other}'; usage: {known}"));
            }
        }
    }
    Ok(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_options_are_parsed() {
        let parsed = |arguments: &[&str]| {
            parse_options(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(parsed(&["--parity"]).unwrap().mode, SearchBenchMode::Parity);
        assert_eq!(parsed(&["--huge"]).unwrap().mode, SearchBenchMode::Huge);
        let timed = parsed(&["--files", "1000", "--rounds", "2"]).unwrap();
        assert_eq!((timed.mode, timed.files, timed.rounds), (SearchBenchMode::Time, 1000, 2));
        assert!(parsed(&["--files", "0"]).is_err() && parsed(&["--fast"]).is_err());
    }
}
