//! The commands of `cargo xtask`, one module and one table row each. The `xtask` program is not shipped.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool for people at a terminal")]

mod bench;
mod deny;
mod fuzz;
mod generate;
mod test;
mod tidy;

use std::process::ExitCode;

use xtask_tools::{is_installed, needs, repository_root, run_program};

struct XtaskCommandDefinition {
    name: &'static str,
    purpose: &'static str,
    run: fn(&[String]) -> Result<(), String>,
}

const COMMANDS: &[XtaskCommandDefinition] = &[
    XtaskCommandDefinition {
        name: "bench",
        purpose: "compare with the reference server; --rounds N, --only ROW; or acp, edits, estate, http, patches, rank, search, watch",
        run: bench::run_benchmark,
    },
    XtaskCommandDefinition {
        name: "deny",
        purpose: "check licences, duplicate versions and sources of dependencies",
        run: deny::run,
    },
    XtaskCommandDefinition {
        name: "fuzz",
        purpose: "run the fuzz targets; --seconds N each, --only TARGET",
        run: fuzz::run,
    },
    XtaskCommandDefinition {
        name: "generate",
        purpose: "generate files from definitions/; --check only compares",
        run: generate::run,
    },
    XtaskCommandDefinition {
        name: "needs",
        purpose: "install what the tests need; --yes for system packages",
        run: needs::run,
    },
    XtaskCommandDefinition {
        name: "powercut",
        purpose: "simulate power failures of a disk; needs root; --rounds N, --fs ext4,xfs,btrfs",
        run: bench::run_powercut,
    },
    XtaskCommandDefinition {
        name: "soak",
        purpose: "run the server for an hour with disconnecting clients and a full disk; --minutes N",
        run: bench::run_soak,
    },
    XtaskCommandDefinition {
        name: "test",
        purpose: "run every check and test; --quick for the inner loop, --long for full-length load tests, --yes to install",
        run: test::run,
    },
    XtaskCommandDefinition { name: "tidy", purpose: "check project rules that no lint covers", run: tidy::run },
];

const HELP_FLAGS: [&str; 2] = ["--help", "-h"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(name) = arguments.first() else {
        print_usage();
        return ExitCode::from(2);
    };
    if arguments.iter().any(|argument| HELP_FLAGS.contains(&argument.as_str())) {
        print_usage();
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("xtask: unknown command '{name}'");
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
