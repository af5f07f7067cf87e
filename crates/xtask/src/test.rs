//! The one test command: everything that must hold before a change is kept, in the order of cost.
//!
//! Owns the list of steps. Promises one line per step with its seconds, a stop at the first failure, and a non-zero
//! exit then. Nothing is skipped in silence: what is done another way says so.

use std::{process::Command, time::Instant};

/// Set for the tests when `--long` is given: rigs then run for their full length.
const LONG: &str = "STEAD_LONG";

/// How long the rigs run.
#[derive(Clone, Copy)]
enum Length {
    Ordinary,
    Long,
}

/// One step: its name, and what it does.
type Step = (&'static str, fn(Length) -> Result<(), String>);

/// Every step.
const STEPS: &[Step] = &[
    ("format", |_| cargo(&["fmt", "--all", "--check"])),
    ("generate", |_| crate::generate::run(&["--check".to_owned()])),
    ("tidy", |_| crate::tidy::run(&[])),
    ("deny", |_| crate::deny::run(&[])),
    ("clippy", |_| cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])),
    ("tests", tests),
    ("spans", |_| spans()),
    ("examples", |_| examples()),
    ("docs", |_| docs()),
];

/// Runs every step.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let length = match arguments {
        [] => Length::Ordinary,
        [only] if only == "--long" => Length::Long,
        [first, ..] => return Err(format!("knows only --long, not '{first}'")),
    };
    for (passed, (name, step)) in STEPS.iter().enumerate() {
        let started = Instant::now();
        let outcome = step(length);
        let seconds = started.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => println!("xtask: {name:<9} ok     {seconds:>6.1} s"),
            Err(failure) => {
                println!("xtask: {name:<9} FAILED {seconds:>6.1} s");
                println!("xtask: {passed} passed, 1 failed");
                return Err(format!("{name}: {failure}"));
            }
        }
    }
    println!("xtask: {} passed, 0 failed", STEPS.len());
    Ok(())
}

/// Every test of every crate.
fn tests(length: Length) -> Result<(), String> {
    crate::needs::tracer()?;
    let python = crate::needs::python()?;
    let inspector = crate::needs::inspector()?;
    let peers = crate::needs::peers()?;
    let mut command = Command::new("cargo");
    if crate::is_installed("cargo", &["nextest", "--version"]) {
        command.args(["nextest", "run", "--workspace", "--locked"]);
    } else {
        println!("tests: cargo-nextest is not installed; cargo test runs them");
        command.args(["test", "--workspace", "--all-targets", "--locked"]);
    }
    command.env(crate::needs::PYTHON_VARIABLE, python);
    command.env(crate::needs::INSPECTOR_VARIABLE, inspector);
    command.env(crate::needs::PEERS_VARIABLE, peers);
    match length {
        Length::Ordinary => command.env_remove(LONG),
        Length::Long => command.env(LONG, "1"),
    };
    crate::succeed(&mut command)
}

/// What is built only when somebody asks for it. Its tests are few, and it brings no crate of its own.
fn spans() -> Result<(), String> {
    let features = ["--features", "stead/spans,faces/spans", "--locked"];
    let of = ["test", "--quiet", "-p", "stead", "-p", "faces", "--bin", "stead", "--lib"];
    cargo(&[&of[..], &features, &["span"]].concat())
}

/// The examples in documentation, where there are any: without them every crate would be linked for nothing.
fn examples() -> Result<(), String> {
    if crate::tidy::has_doc_examples()? {
        return cargo(&["test", "--doc", "--workspace", "--locked"]);
    }
    println!("examples: no documentation holds one");
    Ok(())
}

/// The documentation builds, private parts included, without a warning.
fn docs() -> Result<(), String> {
    let mut command = Command::new("cargo");
    command.args(["doc", "--no-deps", "--workspace", "--document-private-items", "--locked"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    crate::succeed(&mut command)
}

fn cargo(arguments: &[&str]) -> Result<(), String> {
    crate::succeed(Command::new("cargo").args(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_arguments_are_refused_before_anything_runs() {
        for bad in [&["--lnog"][..], &["--long", "more"]] {
            let arguments: Vec<String> = bad.iter().map(|&argument| argument.to_owned()).collect();
            assert!(run(&arguments).is_err());
        }
    }
}
