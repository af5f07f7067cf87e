//! Benchmarks, the soak test and the power-cut test, which `cargo xtask bench`, `soak` and `powercut` build and start.
//!
//! The first argument names a row of [`COMMANDS`]; without a name, the program compares stead with the reference server
//! over standard streams. The program is not shipped, and the workspace of the project does not build it.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for people at a terminal")]

mod acp_proxy;
mod bench_server;
mod bench_servers;
mod edits;
mod http;
mod http_client;
mod idle_wait;
mod mcp_client;
mod multi_workspace;
mod patches;
mod powercut;
mod rank;
mod reference_server;
mod report;
mod rows;
mod search;
mod soak;
mod statistics;
mod stdio;
mod watch;
mod workspace_files;

use std::{
    path::PathBuf,
    process::{Command, ExitCode},
};

use xtask_tools::{is_installed, needs, repository_root, run_program};

/// The name of a benchmark or long test, and its entry point.
type BenchCommandDefinition = (&'static str, fn(&[String]) -> Result<(), String>);

const COMMANDS: &[BenchCommandDefinition] = &[
    ("acp", acp_proxy::run),
    ("edits", edits::run),
    ("estate", multi_workspace::run),
    ("http", http::run),
    ("patches", patches::run),
    ("powercut", powercut::run),
    ("rank", rank::run),
    ("search", search::run),
    ("soak", soak::run),
    ("watch", watch::run),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let named = arguments.split_first().and_then(|(first, rest)| {
        let (_, run) = COMMANDS.iter().find(|(name, _)| name == first)?;
        Some(run(rest))
    });
    match named.unwrap_or_else(|| stdio::run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn build_release_binary() -> Result<PathBuf, String> {
    run_program(Command::new("cargo").args(["build", "--release", "--locked", "-p", "stead"]))?;
    Ok(needs::target_directory().join("release").join("stead"))
}
