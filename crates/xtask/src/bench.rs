//! `cargo xtask bench`: the server and the reference server measured side by side, over MCP on standard streams.
//!
//! Owns the order of a run: build, install, make files, measure, report. Promises that both servers work on equal files
//! in one interleaved run, that every answer is checked for being whole, and that no process outlives the run. Never
//! reaches beyond this machine except to install the reference server. `cargo xtask bench edits`,
//! `cargo xtask bench estate`, `cargo xtask bench patches`, `cargo xtask bench search`, `cargo xtask bench rank`, `cargo xtask bench watch`,
//! `cargo xtask bench acp` and `cargo xtask bench http` are measures of their own.

mod edits;
mod estate;
mod field;
mod files;
mod http;
mod patches;
mod peer;
mod proxied;
mod quiet;
mod rank;
mod reference;
mod report;
mod rows;
mod search;
mod speaker;
mod statistics;
mod watch;

use std::{path::PathBuf, process::Command};

use field::Field;
use quiet::Quiet;
use report::{Report, Run};
use rows::{ROWS, Row};

/// Rounds when nothing is said: each server has this many turns at every row.
const ROUNDS_DEFAULT: usize = 20;

/// A measure of its own: its name, and what it does with its arguments.
type Measure = (&'static str, fn(&[String]) -> Result<(), String>);

/// Every one of them.
const MEASURES: &[Measure] = &[
    ("acp", proxied::run),
    ("edits", edits::run),
    ("estate", estate::run),
    ("http", http::run),
    ("patches", patches::run),
    ("rank", rank::run),
    ("search", search::run),
    ("watch", watch::run),
];

/// What is asked for.
#[derive(Debug)]
struct Wish {
    rounds: usize,
    /// Names of rows; all of them when empty.
    only: Vec<String>,
}

/// Measures and reports.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    if let Some((first, own)) = arguments.split_first() {
        let measure = MEASURES.iter().find(|(name, _)| name == first);
        if let Some((_, measure)) = measure {
            return measure(own);
        }
    }
    let wish = wish(arguments)?;
    let binary = build()?;
    let reference = reference::install()?;
    let target = crate::needs::target_directory();
    // Not in the system's temporary directory: that is often memory, where a sync costs nothing.
    let place = tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(&target)
        .map_err(|error| format!("{}: {error}", target.display()))?;
    let mut quiet = Quiet::default();
    let mut field = Field::set_up(place.path(), &binary, &reference.script)?;
    let mut comparisons = Vec::new();
    for row in ROWS.iter().filter(|row| wish.wants(row)) {
        println!("bench: {}", row.name);
        comparisons.extend((row.measure)(&mut field, &mut quiet, wish.rounds)?);
    }
    comparisons.push(rows::memory(&field)?);
    field.stop();
    let run = Run { rounds: wish.rounds, reference: reference.version, quiet };
    let report = Report::new(run, comparisons);
    report.write(&target)
}

impl Wish {
    fn wants(&self, row: &Row) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == row.name)
    }
}

fn wish(arguments: &[String]) -> Result<Wish, String> {
    let mut wish = Wish { rounds: ROUNDS_DEFAULT, only: Vec::new() };
    let mut left = arguments.iter();
    while let Some(flag) = left.next() {
        let mut value = || left.next().ok_or_else(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--rounds" => {
                let given = value()?;
                wish.rounds = given
                    .parse()
                    .ok()
                    .filter(|rounds| *rounds > 0)
                    .ok_or_else(|| format!("'{given}' is no number of rounds"))?;
            }
            "--only" => {
                let given = value()?;
                if !ROWS.iter().any(|row| row.name == given) {
                    let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
                    return Err(format!("there is no row '{given}'; rows are {}", names.join(", ")));
                }
                wish.only.push(given.clone());
            }
            other => return Err(format!("knows --rounds N and --only ROW, not '{other}'")),
        }
    }
    Ok(wish)
}

/// The binary as it is shipped.
fn build() -> Result<PathBuf, String> {
    crate::succeed(Command::new("cargo").args(["build", "--release", "--locked", "-p", "stead"]))?;
    Ok(crate::needs::target_directory().join("release").join("stead"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Wish, String> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        wish(&arguments)
    }

    #[test]
    fn rounds_and_rows_are_understood() {
        let wish = parsed(&["--rounds", "3", "--only", "read-1k", "--only", "list-10k"]).unwrap();
        assert_eq!((wish.rounds, wish.only), (3, vec!["read-1k".to_owned(), "list-10k".to_owned()]));
        assert_eq!(parsed(&[]).unwrap().rounds, ROUNDS_DEFAULT);
    }

    #[test]
    fn what_cannot_be_measured_is_refused_with_what_can() {
        assert!(parsed(&["--only", "raed"]).unwrap_err().contains("read-1k"));
        for bad in [&["--rounds", "0"][..], &["--rounds", "x"], &["--rounds"], &["--fast"]] {
            assert!(parsed(bad).is_err(), "{bad:?}");
        }
    }
}
