//! `cargo xtask bench rank`: how early ranking shows what was meant.
//!
//! Owns the order of a run and its report. Two questions are asked. A name: where in the order of its hits do the lines
//! stand that universal-ctags calls its definitions? A commit's subject line: where in the order of files does one stand
//! that the commit changed? Rules were tuned on the packages so marked; the others were only measured. Promises the same
//! figures for the same sources. Never changes what it reads; the server itself knows nothing of ctags.

mod fetch;
mod packages;
mod series;
mod subjects;
mod truth;

use std::{collections::HashMap, fmt, path::PathBuf, process::Command, time::Instant};

use packages::{Package, Purpose, Source};
use text::rank::{Candidate, Place, Weight, order};
use truth::{Defined, Sort};

/// Most names of one package that are asked for; they are taken evenly from all of them.
const NAMES_MAX: usize = 400;
/// A name that is found less often than this needs no order.
const OCCURRENCES_MIN: usize = 3;
/// Names of several definitions have at most this many, and they shall stand within as many hits.
const SEVERAL_MAX: usize = 5;
/// What must be reached over the packages that were only measured.
const ONCE_WANTED: f64 = 0.98;
const SEVERAL_WANTED: f64 = 0.95;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    repositories: Vec<PathBuf>,
    shows: Shows,
}

/// Whether the report names what was found late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shows {
    Figures,
    Misses,
}

/// How a set of names ended.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    once: usize,
    reciprocal: f64,
    first: usize,
    several: usize,
    within: usize,
}

/// Asks, and reports.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let wish = wish(arguments)?;
    if cfg!(debug_assertions) {
        let again = ["run", "--quiet", "--release", "--package", "xtask", "--", "bench", "rank"];
        return crate::succeed(Command::new("cargo").args(again).args(arguments));
    }
    let started = Instant::now();
    crate::needs::tags()?;
    let mut measured = Tally::default();
    for package in packages::all()? {
        let sources = package.sources()?;
        let truth = truth::of(&package.directory, &sources)?;
        let [main, members] = [Sort::Outer, Sort::Member].map(|sort| {
            // What was only measured stays unread.
            let reads = sort == Sort::Outer && package.purpose == Purpose::Tuned;
            ask(&package, &sources, &truth, sort, if reads { wish.shows } else { Shows::Figures })
        });
        println!("{package}: {main}; members: {members}");
        if package.purpose == Purpose::Measured {
            measured.add(main);
        }
    }
    println!("measured only: {measured}");
    for repository in &wish.repositories {
        println!("{}: {}", repository.display(), subjects::ask(repository)?);
    }
    for (name, purpose) in series::SERIES {
        println!("{name} (patches, {purpose}): {}", series::ask(name)?);
    }
    println!("took {:.1} s", started.elapsed().as_secs_f64());
    if measured.mean() < ONCE_WANTED || measured.share() < SEVERAL_WANTED {
        return Err(format!("{ONCE_WANTED} and {SEVERAL_WANTED} are wanted"));
    }
    Ok(())
}

/// Asks for every name of one sort.
fn ask(package: &Package, sources: &[Source], truth: &[Defined], sort: Sort, shows: Shows) -> Tally {
    let names: Vec<&Defined> = truth
        .iter()
        .filter(|name| name.sort == sort && name.places.len() <= SEVERAL_MAX && !name.is_in_tests())
        .collect();
    let step = names.len().div_ceil(NAMES_MAX).max(1);
    let mut tally = Tally::default();
    for name in names.into_iter().step_by(step) {
        let ranks = ranks(sources, name);
        let Some(ranks) = ranks else { continue };
        if name.places.len() == 1 {
            tally.once += 1;
            let rank = ranks.first().copied().flatten();
            tally.reciprocal += rank.map_or(0.0, |rank| 1.0 / rank as f64);
            tally.first += usize::from(rank == Some(1));
        } else {
            tally.several += 1;
            let near = |rank: &Option<usize>| rank.is_some_and(|rank| rank <= SEVERAL_MAX);
            tally.within += usize::from(ranks.iter().all(near));
        }
        let most = if name.places.len() == 1 { 1 } else { SEVERAL_MAX };
        let late = ranks.iter().any(|rank| rank.is_none_or(|rank| rank > most));
        if shows == Shows::Misses && late {
            println!("  {}: {} {:?} at {ranks:?}", package.name, name.name, name.places);
        }
    }
    tally
}

/// Where each definition of a name stands among its hits; nothing when there are too few hits for an order.
fn ranks(sources: &[Source], name: &Defined) -> Option<Vec<Option<usize>>> {
    let mut hits: Vec<(&str, u64, Weight)> = Vec::new();
    for source in sources.iter().filter(|source| source.text.contains(&name.name)) {
        let place = Place::of(&source.path);
        for (number, line) in (1..).zip(source.text.lines()) {
            if let Some(at) = line.find(&name.name) {
                hits.push((&source.path, number, place.weigh(line, &(at..at + name.name.len()))));
            }
        }
    }
    if hits.len() < OCCURRENCES_MIN {
        return None;
    }
    let candidates: Vec<Candidate<'_>> =
        hits.iter().map(|(path, line, weight)| Candidate { path, line: *line, weight: *weight }).collect();
    let at: HashMap<(&str, u64), usize> = order(&candidates)
        .into_iter()
        .zip(1..)
        .map(|(index, rank)| ((candidates[index].path, candidates[index].line), rank))
        .collect();
    Some(name.places.iter().map(|(path, line)| at.get(&(path.as_str(), *line)).copied()).collect())
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.once += other.once;
        self.reciprocal += other.reciprocal;
        self.first += other.first;
        self.several += other.several;
        self.within += other.within;
    }

    /// The mean reciprocal rank of names that are defined once.
    fn mean(&self) -> f64 {
        self.reciprocal / self.once.max(1) as f64
    }

    /// The share of names with several definitions that stand early, all of them.
    fn share(&self) -> f64 {
        self.within as f64 / self.several.max(1) as f64
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = 100.0 * self.first as f64 / self.once.max(1) as f64;
        write!(f, "{} names defined once, MRR {:.3}, first {first:.1} %", self.once, self.mean())?;
        write!(f, "; {} several times, all in the first five {:.1} %", self.several, 100.0 * self.share())
    }
}

fn wish(arguments: &[String]) -> Result<Wish, String> {
    let mut wish = Wish { repositories: vec![crate::root()], shows: Shows::Figures };
    let mut left = arguments.iter();
    while let Some(flag) = left.next() {
        match flag.as_str() {
            "--repository" => {
                let directory = left.next().ok_or_else(|| format!("{flag} needs a directory"))?;
                wish.repositories.push(directory.into());
            }
            "--misses" => wish.shows = Shows::Misses,
            other => return Err(format!("rank knows --repository DIR and --misses, not '{other}'")),
        }
    }
    Ok(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_ranked_among_their_hits() {
        let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let sources = [source("a.rs", "use b::run;\nrun();\n"), source("b.rs", "fn run() {}\n")];
        let name = |line| Defined {
            name: "run".to_owned(),
            sort: Sort::Outer,
            places: vec![("b.rs".to_owned(), line)],
        };
        assert_eq!(ranks(&sources, &name(1)), Some(vec![Some(1)]));
        assert_eq!(ranks(&sources, &name(9)), Some(vec![None]));
        assert_eq!(ranks(&sources[1..], &name(1)), None);
    }

    #[test]
    fn flags_are_understood_and_others_refused() {
        let parsed = |arguments: &[&str]| {
            wish(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
        };
        let wish = parsed(&["--misses", "--repository", "a"]).unwrap();
        assert_eq!((wish.shows, wish.repositories.len()), (Shows::Misses, 2));
        assert!(parsed(&["--repository"]).is_err());
        assert!(parsed(&["--rounds"]).unwrap_err().contains("--misses"));
    }
}
