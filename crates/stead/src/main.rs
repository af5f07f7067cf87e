//! The `stead` binary parses the command line and the configuration, and starts servers and commands.

use std::process::ExitCode;

use clap::FromArgMatches;
use stead_protocols::definition::DialectDefinition;

mod acp;
mod approvals;
mod choices;
mod cli;
mod command_stream;
mod command_style;
mod config;
mod host_files;
mod limits;
mod open_workspace;
mod operation;
mod output;
mod policy;
mod progress_line;
mod replay;
mod serve;
mod settings;
#[cfg(feature = "spans")]
mod spans;
mod status;
mod stdio_server;
mod time;
mod trash;
mod watch;
mod workspaces;

#[cfg(not(feature = "spans"))]
mod spans {
    pub(crate) fn start_export() {}
}

use cli::{BuiltinCliCommand, WorkspaceFlags};
use output::{CliCommandResult, CommandExit};
use settings::LayeredCommandLine;

fn main() -> ExitCode {
    let exit = match DialectDefinition::native() {
        Ok(definition) => run(&definition),
        Err(error) => {
            output::print_error(&error.to_string());
            CommandExit::Failed
        }
    };
    ExitCode::from(exit.code())
}

fn run(definition: &DialectDefinition) -> CommandExit {
    let command = cli::build_command_line(definition);
    let layered = match settings::apply_layers(&command, std::env::args_os().collect(), &std::env::vars_os().collect())
    {
        Ok(layered) => layered,
        Err(error) => return output::report(Err(error)),
    };
    let matches = match command.try_get_matches_from(&layered.arguments) {
        Ok(matches) => matches,
        Err(error) => {
            if let Some(origin) = layered.origin_of_error(&error) {
                output::print_error(&format!("invalid value from {origin}:"));
            }
            // Clap reports help and version as errors; printing fails only if the output is closed.
            drop(error.print());
            return if error.use_stderr() { CommandExit::Usage } else { CommandExit::Success };
        }
    };
    output::report(dispatch(definition, &matches, &layered))
}

fn dispatch(
    definition: &DialectDefinition,
    matches: &clap::ArgMatches,
    layered: &LayeredCommandLine,
) -> CliCommandResult {
    let Some((name, below)) = matches.subcommand() else { return Ok(CommandExit::Usage) };
    let flags = WorkspaceFlags::from_arg_matches(cli::innermost_matches(matches)).map_err(output::usage_error)?;
    let words = below.subcommand_name().map_or_else(|| name.to_owned(), |action| format!("{name} {action}"));
    let mut operations = definition.operations.iter().filter(|operation| operation.command.is_some());
    if let Some(operation) = operations.find(|operation| operation.command_words() == words) {
        return operation::run(operation, &flags, cli::innermost_matches(matches));
    }
    match BuiltinCliCommand::from_arg_matches(matches).map_err(output::usage_error)? {
        BuiltinCliCommand::Acp(below) => acp::run(&flags, cli::flag_source(matches, "workspace"), &below),
        BuiltinCliCommand::Mcp(flags_below) => stdio_server::run_mcp(&flags, &flags_below),
        BuiltinCliCommand::Rpc(flags_below) => stdio_server::run_rpc(&flags, &flags_below),
        BuiltinCliCommand::Serve(flags_below) => serve::run(&flags, &flags_below),
        BuiltinCliCommand::Config(below) => {
            config::run(&flags, &below, &settings::all_settings(&cli::build_command_line(definition)), layered, matches)
        }
        // The commands below are operations, and clap refuses the command without one of them.
        BuiltinCliCommand::Token(_) | BuiltinCliCommand::Workspace(_) => Ok(CommandExit::Usage),
        BuiltinCliCommand::Approvals(below) => {
            approvals::run_approvals(&flags, &below, cli::innermost_matches(matches))
        }
        BuiltinCliCommand::Watch(below) => watch::run(&flags, &below),
        BuiltinCliCommand::Policy(below) => policy::run(&flags, &below),
        BuiltinCliCommand::Alerts(below) => approvals::run_alerts(&flags, &below),
        BuiltinCliCommand::Trash(below) => trash::run(&flags, &below),
        BuiltinCliCommand::Index(below) => status::run_index(&flags, &below),
        BuiltinCliCommand::Status(below) => status::run_status(&flags, &below),
        BuiltinCliCommand::Replay(below) => replay::run(&below),
        BuiltinCliCommand::Completions { shell } => cli::print_completions(definition, shell),
        BuiltinCliCommand::Man { directory } => cli::print_or_write_man_pages(definition, directory.as_deref()),
    }
}
