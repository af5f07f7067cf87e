//! `cargo xtask fuzz` runs every fuzz target for some time and prints the number of executions. Fuzzing needs a nightly
//! toolchain and cargo-fuzz, so it is not part of `cargo xtask test`.

use std::{fs, process::Command};

const SECONDS_DEFAULT: u64 = 60;
/// The number of seconds after which one input of a fuzz target counts as a hang.
const INPUT_SECONDS_MAX: u64 = 10;
const MEMORY_MIB_MAX: u64 = 2048;
const EXECUTED_UNITS_PREFIX: &str = "stat::number_of_executed_units:";

struct FuzzOptions {
    seconds: u64,
    only_target: Option<String>,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let wish = parse_options(arguments)?;
    let targets = fuzz_targets()?;
    let chosen: Vec<&String> =
        targets.iter().filter(|name| wish.only_target.as_ref().is_none_or(|only| only == *name)).collect();
    if chosen.is_empty() {
        return Err(format!("unknown target; available: {}", targets.join(", ")));
    }
    for target in chosen {
        let executed = run_target(target, wish.seconds)?;
        println!("fuzz: {target:<10} {executed:>12} executions in {} s, nothing found", wish.seconds);
    }
    Ok(())
}

fn parse_options(arguments: &[String]) -> Result<FuzzOptions, String> {
    let mut wish = FuzzOptions { seconds: SECONDS_DEFAULT, only_target: None };
    let mut rest = arguments.iter();
    while let Some(flag) = rest.next() {
        let value = rest.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--seconds" => {
                wish.seconds = value.parse().map_err(|_| format!("invalid number of seconds: '{value}'"))?;
            }
            "--only" => wish.only_target = Some(value.clone()),
            _ => return Err(format!("unknown argument '{flag}'; usage: --seconds N and --only TARGET")),
        }
    }
    Ok(wish)
}

fn fuzz_targets() -> Result<Vec<String>, String> {
    let directory = crate::repository_root().join("fuzz").join("fuzz_targets");
    let read = fs::read_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut names: Vec<String> =
        read.filter_map(|entry| entry.ok()?.path().file_stem()?.to_str().map(str::to_owned)).collect();
    names.sort();
    Ok(names)
}

fn run_target(target: &str, seconds: u64) -> Result<u64, String> {
    let output = Command::new("cargo")
        .args(["+nightly", "fuzz", "run", target, "--"])
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"))
        .arg("-print_final_stats=1")
        .current_dir(crate::repository_root())
        .output()
        .map_err(|error| format!("cargo cannot be started: {error}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{target} found a failure or could not run:\n{stderr}"));
    }
    let executed = stderr.lines().find_map(|line| line.strip_prefix(EXECUTED_UNITS_PREFIX)?.trim().parse().ok());
    executed.ok_or_else(|| format!("{target} did not report the number of executions:\n{stderr}"))
}
