//! `cargo xtask test` runs every check that a change must pass, cheapest first.
//!
//! `cargo xtask test` stops at the first failed check with a non-zero exit code. No check is skipped silently.

use std::{path::PathBuf, process::Command, time::Instant};

use crate::{
    bench::{self, BENCH_MANIFEST},
    needs::{self, PEERS_MANIFEST, SystemPackageInstallConsent},
};

/// With `--long`, load, race and fault tests run for their full length.
const LONG_VARIABLE: &str = "STEAD_LONG";
const LONG_FLAG: &str = "--long";
const QUICK_FLAG: &str = "--quick";
/// The cargo features that `cargo xtask test` enables and plain `cargo test` does not.
const FEATURES: [&str; 2] = [
    "--features",
    "stead/spans,stead-protocols/spans,stead/tool-tests,stead-protocols/tool-tests,stead-local/tool-tests",
];

const DOC_FLAGS: [&str; 2] = ["--no-deps", "--document-private-items"];
const DENY_WARNINGS: &str = "-D warnings";

#[derive(Clone, Copy, PartialEq, Eq)]
enum XtaskTestThoroughness {
    /// The quick checks need nothing but Rust.
    Quick,
    Ordinary,
    Long,
}

#[derive(Clone, Copy)]
struct XtaskTestOptions {
    scope: XtaskTestThoroughness,
    consent: SystemPackageInstallConsent,
}

type XtaskTestCommandStep = (&'static str, fn(XtaskTestOptions) -> Result<(), String>);

const STEPS: &[XtaskTestCommandStep] = &[
    // First, because it may ask for consent.
    ("needs", |options| find_tools(options).map(|_| ())),
    ("format", |_| check_format()),
    ("generate", |_| crate::generate::run(&["--check".to_owned()])),
    ("tidy", |_| crate::tidy::run(&[])),
    ("deny", |_| crate::deny::run(&[])),
    ("clippy", |_| run_clippy()),
    ("tests", run_tests),
    ("examples", |_| run_doc_examples()),
    ("docs", |_| build_docs()),
    ("bench", test_benchmarks),
];

const QUICK_STEPS: &[&str] = &["format", "generate", "tidy", "tests"];

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let options = parse_options(arguments)?;
    let steps: Vec<&XtaskTestCommandStep> = STEPS
        .iter()
        .filter(|(name, _)| options.scope != XtaskTestThoroughness::Quick || QUICK_STEPS.contains(name))
        .collect();
    announce(options.scope, &steps);
    for (passed, (name, step)) in steps.iter().enumerate() {
        let started = Instant::now();
        let outcome = step(options);
        let seconds = started.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => println!("xtask: {name:<9} ok     {seconds:>6.1} s"),
            Err(error) => {
                println!("xtask: {name:<9} FAILED {seconds:>6.1} s");
                println!("xtask: {passed} passed, 1 failed");
                return Err(format!("{name}: {error}"));
            }
        }
    }
    println!("xtask: {} passed, 0 failed", steps.len());
    Ok(())
}

fn parse_options(arguments: &[String]) -> Result<XtaskTestOptions, String> {
    let mut scope = None;
    for argument in arguments {
        let chosen = match argument.as_str() {
            LONG_FLAG => XtaskTestThoroughness::Long,
            QUICK_FLAG => XtaskTestThoroughness::Quick,
            needs::YES_FLAG => continue,
            unknown => {
                let flags = format!("{QUICK_FLAG}, {LONG_FLAG} and {}", needs::YES_FLAG);
                return Err(format!("unknown argument '{unknown}'; the flags are {flags}"));
            }
        };
        if scope.replace(chosen).is_some() {
            return Err(format!("pass one of {QUICK_FLAG} and {LONG_FLAG}, once"));
        }
    }
    Ok(XtaskTestOptions {
        scope: scope.unwrap_or(XtaskTestThoroughness::Ordinary),
        consent: SystemPackageInstallConsent::from_arguments(arguments),
    })
}

fn announce(scope: XtaskTestThoroughness, steps: &[&XtaskTestCommandStep]) {
    let names: Vec<&str> = steps.iter().map(|(name, _)| *name).collect();
    println!("xtask: steps: {}", names.join(", "));
    match scope {
        XtaskTestThoroughness::Quick => {
            println!("xtask: needs only Rust and a C compiler; about a minute on two cores once compiled");
        }
        XtaskTestThoroughness::Ordinary | XtaskTestThoroughness::Long => {
            println!(
                "xtask: needs Rust, a C compiler, python3 with venv, npm and strace, and on the first run crates.io, PyPI"
            );
            println!("xtask: and npm; tools are installed in the user's cache, system packages only with consent");
            println!(
                "xtask: takes about 12 minutes on two cores in a fresh clone; for a quick check pass {QUICK_FLAG}"
            );
        }
    }
}

fn check_format() -> Result<(), String> {
    run_cargo(&["fmt", "--all", "--check"])?;
    for manifest in [BENCH_MANIFEST, PEERS_MANIFEST] {
        run_cargo(&["fmt", "--check", "--manifest-path", manifest])?;
    }
    Ok(())
}

/// In the ordinary run, only Clippy compiles the benchmarks.
fn run_clippy() -> Result<(), String> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--locked"];
    run_cargo(&[&arguments[..], &FEATURES, &["--", "-D", "warnings"]].concat())?;
    crate::run_program(bench::bench_cargo("clippy").args(["--all-targets", "--", "-D", "warnings"]))
}

fn find_tools(options: XtaskTestOptions) -> Result<[(&'static str, PathBuf); 3], String> {
    needs::require_strace(options.consent)?;
    needs::test_variables(options.consent)
}

fn run_tests(options: XtaskTestOptions) -> Result<(), String> {
    let mut command = Command::new("cargo");
    let has_nextest = crate::is_installed("cargo", &["nextest", "--version"]);
    match (options.scope, has_nextest) {
        (XtaskTestThoroughness::Quick, true) => command.args(["nextest", "run", "--workspace", "--profile", "quick"]),
        (XtaskTestThoroughness::Quick, false) => {
            println!("tests: cargo-nextest is not installed; cargo test runs the unit tests only");
            command.args(["test", "--workspace", "--lib", "--bins"])
        }
        (XtaskTestThoroughness::Ordinary | XtaskTestThoroughness::Long, true) => {
            command.args(["nextest", "run", "--workspace"])
        }
        (XtaskTestThoroughness::Ordinary | XtaskTestThoroughness::Long, false) => {
            println!("tests: cargo-nextest is not installed; cargo test runs the tests");
            command.args(["test", "--workspace", "--all-targets"])
        }
    };
    // A snapshot that differs fails its test and leaves no file behind.
    command.arg("--locked").args(FEATURES).env("INSTA_UPDATE", "no");
    if options.scope != XtaskTestThoroughness::Quick {
        command.envs(find_tools(options)?);
    }
    match options.scope {
        XtaskTestThoroughness::Quick | XtaskTestThoroughness::Ordinary => command.env_remove(LONG_VARIABLE),
        XtaskTestThoroughness::Long => command.env(LONG_VARIABLE, "1"),
    };
    crate::run_program(&mut command)
}

/// Runs the documentation examples, if any exist, because an empty run would still link every crate.
fn run_doc_examples() -> Result<(), String> {
    if crate::tidy::has_doc_examples()? {
        return run_cargo(&[&["test", "--doc", "--workspace", "--locked"][..], &FEATURES].concat());
    }
    println!("examples: no documentation comment has one");
    Ok(())
}

fn build_docs() -> Result<(), String> {
    let mut command = Command::new("cargo");
    command.args(["doc", "--workspace", "--locked"]).args(DOC_FLAGS);
    crate::run_program(command.env("RUSTDOCFLAGS", DENY_WARNINGS))
}

fn test_benchmarks(options: XtaskTestOptions) -> Result<(), String> {
    if options.scope != XtaskTestThoroughness::Long {
        println!("bench: the tests of the benchmarks run with {LONG_FLAG}");
        return Ok(());
    }
    crate::run_program(&mut bench::bench_cargo("test"))?;
    crate::run_program(bench::bench_cargo("doc").args(DOC_FLAGS).env("RUSTDOCFLAGS", DENY_WARNINGS))
}

fn run_cargo(arguments: &[&str]) -> Result<(), String> {
    crate::run_program(Command::new("cargo").args(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_arguments_are_rejected_before_running() {
        for bad in [&["--lnog"][..], &["--long", "more"], &["--long", "--quick"]] {
            let arguments: Vec<String> = bad.iter().map(|&argument| argument.to_owned()).collect();
            assert!(run(&arguments).is_err());
        }
    }

    #[test]
    fn quick_steps_exist() {
        assert!(QUICK_STEPS.iter().all(|quick| STEPS.iter().any(|(name, _)| name == quick)));
    }
}
