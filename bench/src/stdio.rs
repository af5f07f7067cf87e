//! `cargo xtask bench` compares stead with the reference server, over MCP on standard streams.
//!
//! Both servers work on equal files, and their measurements alternate. Every response is checked for completeness, and
//! no process outlives the benchmark. The benchmark uses the network only to install the reference server.

use crate::{
    bench_servers::BenchServers,
    build_release_binary,
    idle_wait::BenchIdleMachineWaiter,
    reference_server,
    report::{BenchReport, BenchRunConditions},
    rows::{self, BENCH_ROWS, BenchDefinition},
};

/// How often each measurement of the benchmark is repeated per server.
const ROUNDS_DEFAULT: usize = 20;

#[derive(Debug)]
struct BenchOptions {
    rounds: usize,
    /// The names of the measurements to run; all if empty.
    only_rows: Vec<String>,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let wish = parse_options(arguments)?;
    let binary = build_release_binary()?;
    let reference = reference_server::install_reference()?;
    let target = crate::needs::target_directory();
    // The temporary directory of the system is often a tmpfs, where a sync costs nothing.
    let place = tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(&target)
        .map_err(|error| format!("{}: {error}", target.display()))?;
    let mut quiet = BenchIdleMachineWaiter::default();
    let mut field = BenchServers::start_all(place.path(), &binary, &reference.script)?;
    let mut comparisons = Vec::new();
    for row in BENCH_ROWS.iter().filter(|row| wish.includes(row)) {
        println!("bench: {}", row.name);
        comparisons.extend((row.measure)(&mut field, &mut quiet, wish.rounds)?);
    }
    comparisons.push(rows::measure_memory(&field)?);
    field.stop_all();
    let run = BenchRunConditions { rounds: wish.rounds, reference: reference.version, idle_waiter: quiet };
    let report = BenchReport::new(run, comparisons);
    report.write(&target)
}

impl BenchOptions {
    fn includes(&self, row: &BenchDefinition) -> bool {
        self.only_rows.is_empty() || self.only_rows.iter().any(|name| name == row.name)
    }
}

fn parse_options(arguments: &[String]) -> Result<BenchOptions, String> {
    let mut wish = BenchOptions { rounds: ROUNDS_DEFAULT, only_rows: Vec::new() };
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
                    .ok_or_else(|| format!("invalid number of rounds: '{given}'"))?;
            }
            "--only" => {
                let given = value()?;
                if !BENCH_ROWS.iter().any(|row| row.name == given) {
                    let names: Vec<&str> = BENCH_ROWS.iter().map(|row| row.name).collect();
                    return Err(format!("unknown row '{given}'; rows: {}", names.join(", ")));
                }
                wish.only_rows.push(given.clone());
            }
            other => return Err(format!("unknown argument '{other}'; usage: --rounds N and --only ROW")),
        }
    }
    Ok(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(arguments: &[&str]) -> Result<BenchOptions, String> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        parse_options(&arguments)
    }

    #[test]
    fn rounds_and_row_names_are_parsed() {
        let wish = parse_words(&["--rounds", "3", "--only", "read-1k", "--only", "list-10k"]).unwrap();
        assert_eq!((wish.rounds, wish.only_rows), (3, vec!["read-1k".to_owned(), "list-10k".to_owned()]));
        assert_eq!(parse_words(&[]).unwrap().rounds, ROUNDS_DEFAULT);
    }

    #[test]
    fn unknown_row_is_rejected_with_the_known_ones() {
        assert!(parse_words(&["--only", "raed"]).unwrap_err().contains("read-1k"));
        for bad in [&["--rounds", "0"][..], &["--rounds", "x"], &["--rounds"], &["--fast"]] {
            assert!(parse_words(bad).is_err(), "{bad:?}");
        }
    }
}
