//! `cargo xtask bench`, `soak` and `powercut` build and start the program of the `bench/` workspace.
//!
//! The ordinary build and tests do not compile the `bench/` workspace.

use std::process::Command;

use crate::needs;

pub(crate) const BENCH_MANIFEST: &str = "bench/Cargo.toml";

pub(crate) fn run_benchmark(arguments: &[String]) -> Result<(), String> {
    run_bench_program(&[], arguments)
}

pub(crate) fn run_powercut(arguments: &[String]) -> Result<(), String> {
    run_bench_program(&["powercut"], arguments)
}

pub(crate) fn run_soak(arguments: &[String]) -> Result<(), String> {
    run_bench_program(&["soak"], arguments)
}

fn run_bench_program(command: &[&str], arguments: &[String]) -> Result<(), String> {
    let mut cargo = bench_cargo("run");
    crate::run_program(cargo.args(["--quiet", "--release", "--"]).args(command).args(arguments))
}

/// The `bench/` workspace builds into the target directory of the project, where the benchmarks also expect the server.
pub(crate) fn bench_cargo(command: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args([command, "--locked", "--manifest-path", BENCH_MANIFEST, "--target-dir"]);
    cargo.arg(needs::target_directory());
    cargo
}
