//! `cargo xtask fuzz`: every fuzz target for a while, with the number of executions. Needs a nightly toolchain and
//! cargo-fuzz, so it is no part of the test command; property tests stand in for it there.

use std::{fs, process::Command};

/// Seconds for each target when nothing is said.
const SECONDS_DEFAULT: u64 = 60;
/// What one input may take: more is a hang.
const INPUT_SECONDS_MAX: u64 = 10;
/// What one target may hold.
const MEMORY_MIB_MAX: u64 = 2048;
/// The line in which the fuzzer says how often it ran.
const EXECUTED: &str = "stat::number_of_executed_units:";

struct Wish {
    seconds: u64,
    only: Option<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let wish = wish(arguments)?;
    let targets = targets()?;
    let chosen: Vec<&String> =
        targets.iter().filter(|name| wish.only.as_ref().is_none_or(|only| only == *name)).collect();
    if chosen.is_empty() {
        return Err(format!("there is no such target; there are {}", targets.join(", ")));
    }
    for target in chosen {
        let executed = fuzz(target, wish.seconds)?;
        println!("fuzz: {target:<10} {executed:>12} executions in {} s, nothing found", wish.seconds);
    }
    Ok(())
}

fn wish(arguments: &[String]) -> Result<Wish, String> {
    let mut wish = Wish { seconds: SECONDS_DEFAULT, only: None };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--seconds" => {
                wish.seconds = value.parse().map_err(|_| format!("'{value}' is no number of seconds"))?;
            }
            "--only" => wish.only = Some(value.clone()),
            _ => return Err(format!("knows --seconds N and --only TARGET, not '{flag}'")),
        }
    }
    Ok(wish)
}

/// The names of all targets: one file each.
fn targets() -> Result<Vec<String>, String> {
    let directory = crate::root().join("fuzz").join("fuzz_targets");
    let read = fs::read_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut names: Vec<String> =
        read.filter_map(|entry| entry.ok()?.path().file_stem()?.to_str().map(str::to_owned)).collect();
    names.sort();
    Ok(names)
}

fn fuzz(target: &str, seconds: u64) -> Result<u64, String> {
    let output = Command::new("cargo")
        .args(["+nightly", "fuzz", "run", target, "--"])
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"))
        .arg("-print_final_stats=1")
        .current_dir(crate::root())
        .output()
        .map_err(|error| format!("cargo cannot be started: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{target} found something, or could not run:\n{said}"));
    }
    let executed = said.lines().find_map(|line| line.strip_prefix(EXECUTED)?.trim().parse().ok());
    executed.ok_or_else(|| format!("{target} does not say how often it ran:\n{said}"))
}
