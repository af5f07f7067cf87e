//! The project's own chores, run as `cargo xtask <command>`. One module per command, one row per command.
//!
//! Owns the table of commands. Promises a non-zero exit for every failure. Never part of the shipped binary.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for people at a terminal")]

mod generate;
mod tidy;

use std::{path::PathBuf, process::ExitCode};

/// One chore.
struct Command {
    name: &'static str,
    purpose: &'static str,
    run: fn(&[String]) -> Result<(), String>,
}

/// Every chore. A new one is a module and a row here.
const COMMANDS: &[Command] = &[
    Command {
        name: "generate",
        purpose: "write what comes from definitions/; --check only compares",
        run: generate::run,
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
