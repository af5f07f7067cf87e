//! The binary: configuration, wiring, command line. Owns what a person types and reads; decides nothing that the engine
//! decides.

use std::process::ExitCode;

use clap::FromArgMatches;
use faces::definition::Definition;

mod acp;
mod alerts;
mod approvals;
mod audit;
mod cli;
mod config;
mod estate;
mod index;
mod log;
mod mcp;
mod operation;
mod outside;
mod pages;
mod policy;
mod progress;
mod replay;
mod rpc;
mod secret;
mod serve;
mod serving;
mod settings;
mod show;
mod spans;
mod status;
mod stdio;
mod time;
mod token;
mod trash;
mod watch;
mod wire;
mod workspaces;

use cli::{Fixed, WorkspaceFlags};
use settings::Layered;
use show::{Exit, Outcome};

fn main() -> ExitCode {
    let exit = match Definition::stead() {
        Ok(definition) => run(&definition),
        Err(error) => {
            show::complain(&error.to_string());
            Exit::Failed
        }
    };
    ExitCode::from(exit.code())
}

fn run(definition: &Definition) -> Exit {
    let command = cli::command(definition);
    let layered =
        match settings::layered(&command, std::env::args_os().collect(), &std::env::vars_os().collect()) {
            Ok(layered) => layered,
            Err(problem) => return show::exit(Err(problem)),
        };
    let matches = match command.try_get_matches_from(&layered.line) {
        Ok(matches) => matches,
        Err(error) => {
            if let Some(origin) = layered.blamed(&error) {
                show::complain(&format!("{origin} says what cannot be:"));
            }
            // Help and version are answers, not errors; a closed pipe is no failure of ours.
            drop(error.print());
            return if error.use_stderr() { Exit::Usage } else { Exit::Fine };
        }
    };
    show::exit(dispatch(definition, &matches, &layered))
}

fn dispatch(definition: &Definition, matches: &clap::ArgMatches, layered: &Layered) -> Outcome {
    let Some((name, below)) = matches.subcommand() else { return Ok(Exit::Usage) };
    let flags = WorkspaceFlags::from_arg_matches(cli::deepest(matches)).map_err(show::usage)?;
    if let Some(operation) = definition.operation(name).filter(|operation| cli::is_command(&operation.name)) {
        return operation::run(operation, &flags, below);
    }
    match Fixed::from_arg_matches(matches).map_err(show::usage)? {
        Fixed::Acp(below) => acp::run(&flags, cli::given(matches, "workspace"), &below),
        Fixed::Mcp(flags_below) => mcp::run(&flags, &flags_below),
        Fixed::Rpc(flags_below) => rpc::run(&flags, &flags_below),
        Fixed::Serve(flags_below) => serve::run(&flags, &flags_below),
        Fixed::Config(below) => {
            config::run(&flags, &below, &settings::table(&cli::command(definition)), layered, matches)
        }
        Fixed::Token(below) => token::run(&flags, &below),
        Fixed::Workspace(below) => workspaces::run(&flags, &below),
        Fixed::Approvals(below) => approvals::run(&flags, &below),
        Fixed::Watch(below) => watch::run(&flags, &below),
        Fixed::Policy(below) => policy::run(&flags, &below),
        Fixed::Log(below) => log::run(&flags, &below),
        Fixed::Alerts(below) => alerts::run(&flags, &below),
        Fixed::Trash(below) => trash::run(&flags, &below),
        Fixed::Index(below) => index::run(&flags, &below),
        Fixed::Status(below) => status::run(&flags, &below),
        Fixed::Replay(below) => replay::run(&below),
        Fixed::Completions { shell } => pages::completions(definition, shell),
        Fixed::Man { directory } => pages::man(definition, directory.as_deref()),
    }
}
