//! The project's own chores, run as `cargo xtask <command>`. One module per command, one row per command.
//!
//! Owns the table of commands. Promises a non-zero exit for every failure. Never part of the shipped binary.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for people at a terminal")]

mod bench;
mod deny;
mod fuzz;
mod generate;
mod needs;
mod powercut;
mod soak;
mod test;
mod tidy;
mod web;

use std::{
    path::PathBuf,
    process::{self, ExitCode, Stdio},
};

/// One chore.
struct Command {
    name: &'static str,
    purpose: &'static str,
    run: fn(&[String]) -> Result<(), String>,
}

/// Every chore. A new one is a module and a row here.
const COMMANDS: &[Command] = &[
    Command {
        name: "bench",
        purpose: "measure beside the reference server; --rounds N, --only ROW; or acp, edits, http, patches, rank, search, watch",
        run: bench::run,
    },
    Command {
        name: "deny",
        purpose: "check licences, doubled versions and sources of dependencies",
        run: deny::run,
    },
    Command {
        name: "fuzz",
        purpose: "feed made-up input to what reads foreign input; --seconds N each, --only TARGET",
        run: fuzz::run,
    },
    Command {
        name: "generate",
        purpose: "write what comes from definitions/; --check only compares",
        run: generate::run,
    },
    Command { name: "needs", purpose: "get what the tests need, and say where it is", run: needs::run },
    Command {
        name: "powercut",
        purpose: "cut the power of a disk again and again; needs root; --rounds N, --fs ext4,xfs,btrfs",
        run: powercut::run,
    },
    Command {
        name: "soak",
        purpose: "serve clients that break off on a disk that fills up, for an hour; --minutes N",
        run: soak::run,
    },
    Command {
        name: "test",
        purpose: "run everything that must hold; --long for the rigs' full length",
        run: test::run,
    },
    Command { name: "tidy", purpose: "check the rules of the house that no lint knows", run: tidy::run },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(name) = arguments.first() else {
        print_usage();
        return ExitCode::from(2);
    };
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("xtask: there is no command '{name}'");
        print_usage();
        return ExitCode::from(2);
    };
    match (command.run)(&arguments[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask {name}: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn print_usage() {
    eprintln!("usage: cargo xtask <command>");
    for command in COMMANDS {
        eprintln!("  {:<10} {}", command.name, command.purpose);
    }
}

/// The repository's root directory.
fn root() -> PathBuf {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).map_or_else(|| own.clone(), PathBuf::from)
}

/// Runs a program in the repository's root and waits for it; what it says is shown.
fn succeed(command: &mut process::Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.current_dir(root()).status().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name}: {status}")) }
}

/// Whether a program is there and answers.
fn is_installed(program: &str, arguments: &[&str]) -> bool {
    let mut command = process::Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
