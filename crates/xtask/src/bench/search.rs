//! `cargo xtask bench search`: content search and search by name beside ripgrep and the reference server, on a tree of
//! 100,000 files with junk directories and ignore files, without an index and with one; `--parity` compares hits with
//! ripgrep's on real sources instead, `--huge` looks into files of 2 GiB, and `--growth` measures on trees of three sizes.
//!
//! Promises that all work on the same files in one interleaved run, and that every count is checked against ripgrep's
//! before its time counts. The reference server has no content search; its search by name takes long and has one turn.

mod beside;
mod growth;
mod huge;
mod indexed;
mod parity;
mod queries;
mod ripgrep;
mod sources;
mod tree;

use std::path::Path;

use ripgrep::{Ripgrep, Rules};
use serde_json::json;

use super::{
    field,
    peer::Recipe,
    quiet::Quiet,
    reference,
    report::{Report, Run},
    rows::{Comparison, Side, Unit, alternate},
    speaker::Speaker,
    statistics::Samples,
};

/// Turns of each side at every row, when nothing is said.
const ROUNDS_DEFAULT: usize = 10;
/// Files of the tree, when nothing is said.
const FILES_DEFAULT: usize = 100_000;
/// What the report's files are called.
const REPORT: &str = "bench-search";

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    what: What,
    rounds: usize,
    files: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Time,
    Parity,
    Huge,
    Growth,
}

/// Measures or compares, and reports.
pub(super) fn run(arguments: &[String]) -> Result<(), String> {
    let wish = wish(arguments)?;
    let ripgrep = Ripgrep::get()?;
    let binary = super::build()?;
    let target = crate::needs::target_directory();
    let place = tempfile::Builder::new()
        .prefix("bench-search-")
        .tempdir_in(&target)
        .map_err(|error| format!("{}: {error}", target.display()))?;
    match wish.what {
        What::Parity => parity::run(&ripgrep, &binary, place.path()),
        What::Huge => huge::run(&ripgrep, &binary, place.path()),
        What::Growth => growth::run(&ripgrep, &binary, place.path()),
        What::Time => time(&wish, &ripgrep, &binary, place.path()),
    }
}

fn time(wish: &Wish, ripgrep: &Ripgrep, binary: &Path, place: &Path) -> Result<(), String> {
    let reference = reference::install()?;
    let workspace = place.join("tree");
    println!("bench: making {} files in {}", wish.files, workspace.display());
    tree::make(&workspace, wish.files)?;
    let mut plain = field::stead(binary, &workspace, &place.join("state"), "fast");
    plain.arguments.extend(["--index".into(), "off".into()]);
    let mut stead = started(&plain)?;
    let mut other = started(&field::reference(&reference.script, &workspace))?;
    let mut quiet = Quiet::default();
    let mut comparisons = Vec::new();
    for (what, query) in [("a rare literal", tree::RARE), ("a frequent literal", tree::FREQUENT)] {
        for (how, rules) in [("", Rules::Obeyed), (", ignored files too", Rules::Off)] {
            println!("bench: {what}{how}");
            let mut row = Comparison::new(format!("search: {what}{how}"), "ripgrep");
            let arguments = json!({ "query": query, "all": rules == Rules::Off });
            let expected = ripgrep.count(&workspace, query, rules)?.0;
            alternate(&mut quiet, wish.rounds, |side| {
                let (found, milliseconds) = match side {
                    Side::Stead => {
                        let timed = stead.call("search", &arguments)?;
                        (timed.result["structuredContent"]["total"].as_u64(), timed.milliseconds)
                    }
                    Side::Other => {
                        let (count, milliseconds) = ripgrep.count(&workspace, query, rules)?;
                        (Some(count), milliseconds)
                    }
                };
                row.push(side, milliseconds);
                if found == Some(expected) { Ok(()) } else { Err(format!("{found:?} of {expected} hits")) }
            })?;
            comparisons.push(row);
        }
    }
    comparisons.extend(by_name(wish, ripgrep, &workspace, &mut stead, &mut other, &mut quiet)?);
    comparisons.push(beside::reads(wish.rounds, &workspace, &mut stead, &mut quiet)?);
    comparisons.push(Comparison {
        what: "peak memory of everything above".to_owned(),
        unit: Unit::Megabytes,
        stead: Samples::one(stead.peak_megabytes()?),
        against: "ripgrep, the frequent literal in all files",
        other: Samples::one(ripgrep.peak_megabytes(&workspace, tree::FREQUENT, Rules::Off)?),
    });
    comparisons.push(Comparison {
        what: "peak memory".to_owned(),
        unit: Unit::Megabytes,
        stead: Samples::one(stead.peak_megabytes()?),
        against: "reference",
        other: Samples::one(other.peak_megabytes()?),
    });
    stead.stop();
    other.stop();
    comparisons.extend(indexed::rows(wish.rounds, ripgrep, binary, place, &mut quiet)?);
    let beside = format!("{} and {}, {} files", ripgrep.version, reference.version, wish.files);
    let run = Run { rounds: wish.rounds, reference: beside, quiet };
    Report::new(run, comparisons).write_as(&crate::needs::target_directory(), REPORT)
}

/// Search by name, beside both.
fn by_name(
    wish: &Wish,
    ripgrep: &Ripgrep,
    workspace: &Path,
    stead: &mut Speaker,
    other: &mut Speaker,
    quiet: &mut Quiet,
) -> Result<[Comparison; 2], String> {
    println!("bench: names");
    let mut beside = Comparison::new("find: a name", "ripgrep --files");
    let obeyed = json!({ "pattern": tree::NAME });
    alternate(quiet, wish.rounds, |side| {
        let (found, milliseconds) = match side {
            Side::Stead => {
                let timed = stead.call("find", &obeyed)?;
                (timed.result["structuredContent"]["total"].as_u64().unwrap_or(0), timed.milliseconds)
            }
            Side::Other => ripgrep.names(workspace, tree::NAME)?,
        };
        beside.push(side, milliseconds);
        if found == tree::NAMED { Ok(()) } else { Err(format!("{found} of {} names", tree::NAMED)) }
    })?;
    let mut before = Comparison::new("find: a name, ignored files too", "reference, one turn");
    for _ in 0..wish.rounds {
        let timed = stead.call("find", &json!({ "pattern": tree::NAME, "all": true }))?;
        before.push(Side::Stead, timed.milliseconds);
    }
    let pattern = format!("**/{}", tree::NAME);
    let timed =
        other.call("search_files", &json!({ "path": workspace.to_string_lossy(), "pattern": pattern }))?;
    before.push(Side::Other, timed.milliseconds);
    Ok([beside, before])
}

fn started(recipe: &Recipe) -> Result<Speaker, String> {
    let mut speaker = Speaker::start(&mut recipe.command())?;
    speaker.open()?;
    Ok(speaker)
}

fn wish(arguments: &[String]) -> Result<Wish, String> {
    let mut wish = Wish { what: What::Time, rounds: ROUNDS_DEFAULT, files: FILES_DEFAULT };
    let mut left = arguments.iter();
    while let Some(flag) = left.next() {
        let mut number = || -> Result<usize, String> {
            let given = left.next().ok_or_else(|| format!("{flag} needs a number"))?;
            let number = given.parse().ok().filter(|number| *number > 0);
            number.ok_or_else(|| format!("'{given}' is no number for {flag}"))
        };
        match flag.as_str() {
            "--parity" => wish.what = What::Parity,
            "--huge" => wish.what = What::Huge,
            "--growth" => wish.what = What::Growth,
            "--rounds" => wish.rounds = number()?,
            "--files" => wish.files = number()?,
            other => {
                let known = "--parity, --huge, --growth, --rounds N and --files N";
                return Err(format!("knows {known}, not '{other}'"));
            }
        }
    }
    Ok(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_understood() {
        let parsed = |arguments: &[&str]| {
            wish(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(parsed(&["--parity"]).unwrap().what, What::Parity);
        assert_eq!(parsed(&["--huge"]).unwrap().what, What::Huge);
        let timed = parsed(&["--files", "1000", "--rounds", "2"]).unwrap();
        assert_eq!((timed.what, timed.files, timed.rounds), (What::Time, 1000, 2));
        assert!(parsed(&["--files", "0"]).is_err() && parsed(&["--fast"]).is_err());
    }
}
