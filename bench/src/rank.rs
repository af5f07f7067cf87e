//! `cargo xtask bench rank` measures how early the ranking of search results shows the intended result.
//!
//! The first measurement is the rank of the definitions of a name (according to universal-ctags) among all matches of
//! the name. The second measurement is the rank of a file changed by a commit among the search results for the commit's
//! subject line. The ranking rules were tuned on some packages; the other packages are only measured.

mod commit_subjects;
mod debian_patches;
mod definitions;
mod fetch;
mod packages;

use std::{collections::HashMap, fmt, path::PathBuf, time::Instant};

use definitions::{RankBenchDefinedName, RankBenchDefinitionLevel};
use packages::{BenchPackageSourceFile, RankBenchPackagePurpose, RankBenchSourcePackage};
use stead_text::rank::{ScoredSearchHit, SearchHitScore, SearchHitScorer, rank_order};

/// The most names of a package that are measured; they are sampled evenly.
const NAMES_MAX: usize = 400;
/// Names with fewer occurrences than this are not measured.
const OCCURRENCES_MIN: usize = 3;
/// Names with more definitions than this are skipped. The definitions of a name rank early if all are among this many
/// first matches.
const DEFINITIONS_MAX: usize = 5;
/// The mean reciprocal rank that names with one definition must reach in the packages that are only measured.
const SINGLE_RANK_MIN: f64 = 0.98;
const SEVERAL_SHARE_MIN: f64 = 0.95;

#[derive(Debug, PartialEq, Eq)]
struct RankBenchOptions {
    repositories: Vec<PathBuf>,
    detail: RankBenchReportDetail,
}

/// Whether the report lists the names whose definitions rank late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RankBenchReportDetail {
    Summary,
    WithMisses,
}

#[derive(Debug, Default, Clone, Copy)]
struct RankTally {
    defined_once: usize,
    reciprocal_rank_sum: f64,
    ranked_first: usize,
    defined_several_times: usize,
    ranked_early: usize,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let wish = parse_options(arguments)?;
    let started = Instant::now();
    crate::needs::require_ctags()?;
    let mut measured = RankTally::default();
    for package in packages::load_packages()? {
        let sources = package.source_texts()?;
        let truth = definitions::defined_names(&package.directory, &sources)?;
        let [main, members] = [RankBenchDefinitionLevel::TopLevel, RankBenchDefinitionLevel::Member].map(|sort| {
            // Packages that are only measured must not be inspected.
            let reads =
                sort == RankBenchDefinitionLevel::TopLevel && package.purpose == RankBenchPackagePurpose::Tuning;
            measure_names(
                &package,
                &sources,
                &truth,
                sort,
                if reads { wish.detail } else { RankBenchReportDetail::Summary },
            )
        });
        println!("{package}: {main}; members: {members}");
        if package.purpose == RankBenchPackagePurpose::MeasurementOnly {
            measured.add(main);
        }
    }
    println!("measured only: {measured}");
    for repository in &wish.repositories {
        println!("{}: {}", repository.display(), commit_subjects::measure_repository(repository)?);
    }
    for (name, purpose) in debian_patches::PATCHED_PACKAGES {
        println!("{name} (patches, {purpose}): {}", debian_patches::measure_package(name)?);
    }
    println!("took {:.1} s", started.elapsed().as_secs_f64());
    if measured.mean_reciprocal_rank() < SINGLE_RANK_MIN || measured.early_share() < SEVERAL_SHARE_MIN {
        return Err(format!("{SINGLE_RANK_MIN} and {SEVERAL_SHARE_MIN} are wanted"));
    }
    Ok(())
}

/// Measures the ranks of all top-level names, or of all member names, of a package.
fn measure_names(
    package: &RankBenchSourcePackage,
    sources: &[BenchPackageSourceFile],
    truth: &[RankBenchDefinedName],
    sort: RankBenchDefinitionLevel,
    shows: RankBenchReportDetail,
) -> RankTally {
    let names: Vec<&RankBenchDefinedName> = truth
        .iter()
        .filter(|name| name.sort == sort && name.locations.len() <= DEFINITIONS_MAX && !name.is_in_tests())
        .collect();
    let step = names.len().div_ceil(NAMES_MAX).max(1);
    let mut tally = RankTally::default();
    for name in names.into_iter().step_by(step) {
        let ranks = definition_ranks(sources, name);
        let Some(ranks) = ranks else { continue };
        if name.locations.len() == 1 {
            tally.defined_once += 1;
            let rank = ranks.first().copied().flatten();
            tally.reciprocal_rank_sum += rank.map_or(0.0, |rank| 1.0 / rank as f64);
            tally.ranked_first += usize::from(rank == Some(1));
        } else {
            tally.defined_several_times += 1;
            let near = |rank: &Option<usize>| rank.is_some_and(|rank| rank <= DEFINITIONS_MAX);
            tally.ranked_early += usize::from(ranks.iter().all(near));
        }
        let most = if name.locations.len() == 1 { 1 } else { DEFINITIONS_MAX };
        let late = ranks.iter().any(|rank| rank.is_none_or(|rank| rank > most));
        if shows == RankBenchReportDetail::WithMisses && late {
            println!("  {}: {} {:?} at {ranks:?}", package.name, name.name, name.locations);
        }
    }
    tally
}

/// The ranks of the definitions of a name among its matches; `None` if the name has too few matches.
fn definition_ranks(sources: &[BenchPackageSourceFile], name: &RankBenchDefinedName) -> Option<Vec<Option<usize>>> {
    let mut hits: Vec<(&str, u64, SearchHitScore)> = Vec::new();
    for source in sources.iter().filter(|source| source.text.contains(&name.name)) {
        let place = SearchHitScorer::from_path(&source.path);
        for (number, line) in (1..).zip(source.text.lines()) {
            if let Some(at) = line.find(&name.name) {
                hits.push((&source.path, number, place.score_hit(line, &(at..at + name.name.len()))));
            }
        }
    }
    if hits.len() < OCCURRENCES_MIN {
        return None;
    }
    let candidates: Vec<ScoredSearchHit<'_>> =
        hits.iter().map(|(path, line, weight)| ScoredSearchHit { path, line: *line, score: *weight }).collect();
    let at: HashMap<(&str, u64), usize> = rank_order(&candidates)
        .into_iter()
        .zip(1..)
        .map(|(index, rank)| ((candidates[index].path, candidates[index].line), rank))
        .collect();
    Some(name.locations.iter().map(|(path, line)| at.get(&(path.as_str(), *line)).copied()).collect())
}

impl RankTally {
    fn add(&mut self, other: Self) {
        self.defined_once += other.defined_once;
        self.reciprocal_rank_sum += other.reciprocal_rank_sum;
        self.ranked_first += other.ranked_first;
        self.defined_several_times += other.defined_several_times;
        self.ranked_early += other.ranked_early;
    }

    /// The mean reciprocal rank of the definition, over the names with one definition.
    fn mean_reciprocal_rank(&self) -> f64 {
        self.reciprocal_rank_sum / self.defined_once.max(1) as f64
    }

    /// The share of names whose definitions all rank early, among the names with several definitions.
    fn early_share(&self) -> f64 {
        self.ranked_early as f64 / self.defined_several_times.max(1) as f64
    }
}

impl fmt::Display for RankTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = 100.0 * self.ranked_first as f64 / self.defined_once.max(1) as f64;
        write!(
            f,
            "{} names defined once, MRR {:.3}, first {first:.1} %",
            self.defined_once,
            self.mean_reciprocal_rank()
        )?;
        write!(
            f,
            "; {} several times, all in the first five {:.1} %",
            self.defined_several_times,
            100.0 * self.early_share()
        )
    }
}

fn parse_options(arguments: &[String]) -> Result<RankBenchOptions, String> {
    let mut wish =
        RankBenchOptions { repositories: vec![crate::repository_root()], detail: RankBenchReportDetail::Summary };
    let mut left = arguments.iter();
    while let Some(flag) = left.next() {
        match flag.as_str() {
            "--repository" => {
                let directory = left.next().ok_or_else(|| format!("{flag} needs a directory"))?;
                wish.repositories.push(directory.into());
            }
            "--misses" => wish.detail = RankBenchReportDetail::WithMisses,
            other => {
                return Err(format!("unknown argument '{other}'; usage: rank --repository DIR --misses"));
            }
        }
    }
    Ok(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_ranked_among_their_hits() {
        let source = |path: &str, text: &str| BenchPackageSourceFile { path: path.to_owned(), text: text.to_owned() };
        let sources = [source("a.rs", "use b::run;\nrun();\n"), source("b.rs", "fn run() {}\n")];
        let name = |line| RankBenchDefinedName {
            name: "run".to_owned(),
            sort: RankBenchDefinitionLevel::TopLevel,
            locations: vec![("b.rs".to_owned(), line)],
        };
        assert_eq!(definition_ranks(&sources, &name(1)), Some(vec![Some(1)]));
        assert_eq!(definition_ranks(&sources, &name(9)), Some(vec![None]));
        assert_eq!(definition_ranks(&sources[1..], &name(1)), None);
    }

    #[test]
    fn known_flags_are_parsed_and_others_rejected() {
        let parsed = |arguments: &[&str]| {
            parse_options(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
        };
        let wish = parsed(&["--misses", "--repository", "a"]).unwrap();
        assert_eq!((wish.detail, wish.repositories.len()), (RankBenchReportDetail::WithMisses, 2));
        assert!(parsed(&["--repository"]).is_err());
        assert!(parsed(&["--rounds"]).unwrap_err().contains("--misses"));
    }
}
