//! The command line of `stead`. The commands for operations are built from the dialect definitions, and clap structs
//! declare all other commands.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Args, Command, Subcommand, parser::ValueSource};
use clap_complete::Shell;
use stead_disk::PathResolutionMethod;
use stead_engine::{ApprovalMode, FileNamePolicy};
use stead_local::{Durability, IndexBuildAndUseMode};
use stead_protocols::{
    acp::{WriteEncodingPolicy, WriteLineEndingPolicy},
    definition::DialectDefinition,
    dialect::DialectFilesystemReach,
};

use crate::{
    approvals::{AlertsCliArgs, ApprovalsCliArgs},
    choices::{
        APPROVAL_MODES, DURABILITIES, ENCODING_POLICIES, FILE_NAME_POLICIES, FILESYSTEM_REACHES, INDEX_MODES,
        LINE_ENDING_POLICIES, RESOLVERS, choice,
    },
    config::ConfigCommandArgs,
    host_files, operation,
    output::{self, CliCommandResult, CommandExit},
    policy::PolicyCliArgs,
    replay::ReplayCliArgs,
    serve::ServeFlags,
    settings,
    status::{IndexCliArgs, StatusCliArgs},
    trash::TrashCliArgs,
    watch::WatchCliArgs,
    workspaces::{TokenCliArgs, WorkspaceCliArgs},
};

const ABOUT: &str = "A file server between AI agents and a workspace";
pub(crate) const CALLER_HEADING: &str = "Caller";
const AFTER_HELP: &str = "\
Exit codes: 0 success; 1 failure; 2 usage error; 3 refused by a rule; 4 stale base or conflict; 5 journal tampered with.";

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Workspace")]
pub(crate) struct WorkspaceFlags {
    /// Workspace directory
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub(crate) workspace: PathBuf,
    /// Directory for the journal, retained versions and trash [default: below $XDG_STATE_HOME/stead]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// File with the rules for what callers may do [default: policy.toml in the state directory, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// When to acknowledge a change: full = synced to disk, fast = survives a crash of stead but not a power cut
    #[arg(long, global = true, value_parser = choice(DURABILITIES), default_value = "full")]
    pub(crate) durability: Durability,
    /// Names allowed for new files: portable = valid on all common file systems, posix = any
    #[arg(long, global = true, value_parser = choice(FILE_NAME_POLICIES), default_value = "portable")]
    pub(crate) names: FileNamePolicy,
    /// Let callers use the file system mounted at this path of the workspace; other mounts are refused (repeatable)
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) mount: Vec<String>,
    /// Journal to open: workspace = the usual one, machine = the one of callers that may access the whole machine
    /// (dialect weaver with restrict=false)
    #[arg(long, global = true, value_parser = choice(FILESYSTEM_REACHES), default_value = "workspace")]
    pub(crate) reach: DialectFilesystemReach,
    /// Search index: on = servers keep it up to date, use = searches read an existing one, off = no index
    #[arg(long, global = true, value_parser = choice(INDEX_MODES), default_value = "on")]
    pub(crate) index: IndexBuildAndUseMode,
    /// How paths are resolved: kernel = openat2, walker = one component at a time, auto = kernel if it is available
    #[arg(long, global = true, value_parser = choice(RESOLVERS), default_value = "auto", hide = true)]
    pub(crate) resolver: PathResolutionMethod,
}

/// The help heading is set on each flag, because clap would also apply a heading of the struct to later flags.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CallerAccessCliFlags {
    /// Identity that calls are made and recorded as: user:NAME or agent:NAME
    #[arg(long, value_name = "PRINCIPAL", help_heading = CALLER_HEADING)]
    pub(crate) principal: Option<String>,
    /// Refuse every call that would change a file
    #[arg(long, help_heading = CALLER_HEADING)]
    pub(crate) read_only: bool,
    /// Refuse to read outside this path of the workspace (repeatable)
    #[arg(long, value_name = "PATH", help_heading = CALLER_HEADING)]
    pub(crate) readable: Vec<String>,
    /// Refuse to change files outside this path of the workspace (repeatable)
    #[arg(long, value_name = "PATH", help_heading = CALLER_HEADING)]
    pub(crate) writable: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DialectFlags {
    /// Dialect: the set of tools to offer (repeatable if tool names do not collide)
    #[arg(long, value_name = "NAME", default_value = "stead")]
    pub(crate) dialect: Vec<String>,
    /// Option of the dialect, such as generation=newest (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) dialect_option: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ApprovalCliFlags {
    /// How to handle calls that need a person's approval
    #[arg(long, value_parser = choice(APPROVAL_MODES), default_value = "ask")]
    pub(crate) approve: ApprovalMode,
}

#[derive(Debug, Args)]
pub(crate) struct AcpFlags {
    #[command(flatten)]
    pub(crate) caller: CallerAccessCliFlags,
    /// How to handle writes that need a person's approval; client asks the user of the editor
    #[arg(long, value_parser = choice(APPROVAL_MODES), default_value = "client")]
    pub(crate) approve: ApprovalMode,
    /// Line endings of an existing file after an agent writes text with LF only
    #[arg(long, value_parser = choice(LINE_ENDING_POLICIES), default_value = "kept")]
    pub(crate) line_endings: WriteLineEndingPolicy,
    /// Encoding of an existing file after an agent writes it
    #[arg(long, value_parser = choice(ENCODING_POLICIES), default_value = "kept")]
    pub(crate) encoding: WriteEncodingPolicy,
    /// Do not offer stead's own MCP tools to the agent
    #[arg(long)]
    pub(crate) no_mcp: bool,
    /// Command that starts the agent, with its arguments; omit it if an ACP conductor starts stead acp
    #[arg(last = true, value_name = "AGENT")]
    pub(crate) agent: Vec<std::ffi::OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlagSource {
    CommandLine,
    Default,
}

pub(crate) fn flag_source(matches: &ArgMatches, flag: &str) -> FlagSource {
    if is_typed_flag(innermost_matches(matches), flag) { FlagSource::CommandLine } else { FlagSource::Default }
}

pub(crate) fn is_typed_flag(matches: &ArgMatches, flag: &str) -> bool {
    matches!(matches.value_source(flag), Some(ValueSource::CommandLine | ValueSource::EnvVariable))
}

#[derive(Debug, Args)]
pub(crate) struct McpFlags {
    #[command(flatten)]
    pub(crate) dialects: DialectFlags,
    #[command(flatten)]
    pub(crate) caller: CallerAccessCliFlags,
    #[command(flatten)]
    pub(crate) approval: ApprovalCliFlags,
}

#[derive(Debug, Args)]
pub(crate) struct RpcStdioServerCliFlags {
    /// Dialect: the set of methods to offer (repeatable if names do not collide) [default: stead and krux]
    #[arg(long, value_name = "NAME")]
    pub(crate) dialect: Vec<String>,
    /// Option of the dialect, such as generation=newest (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) dialect_option: Vec<String>,
    #[command(flatten)]
    pub(crate) caller: CallerAccessCliFlags,
    #[command(flatten)]
    pub(crate) approval: ApprovalCliFlags,
}

impl RpcStdioServerCliFlags {
    pub(crate) fn dialects(&self) -> DialectFlags {
        let default = || vec!["stead".to_owned(), "krux".to_owned()];
        let dialect = if self.dialect.is_empty() { default() } else { self.dialect.clone() };
        DialectFlags { dialect, dialect_option: self.dialect_option.clone() }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum BuiltinCliCommand {
    /// Run as an ACP proxy between an editor and an agent
    Acp(AcpFlags),
    /// Serve MCP, JSON-RPC, REST and events over HTTP
    Serve(ServeFlags),
    /// Show or check the settings of the server
    Config(ConfigCommandArgs),
    /// Create, list, rotate and revoke HTTP tokens
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Token(TokenCliArgs),
    /// Create, list, copy, delete and restore hosted workspaces
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Workspace(WorkspaceCliArgs),
    /// Serve MCP over standard input and output
    Mcp(McpFlags),
    /// Serve JSON-RPC over standard input and output, one object per line
    Rpc(RpcStdioServerCliFlags),
    /// List, approve and deny calls that need approval
    Approvals(ApprovalsCliArgs),
    /// Print file changes or supervisor events as they happen
    Watch(WatchCliArgs),
    /// Explain the policy and test calls against it
    Policy(PolicyCliArgs),
    /// List, show and answer alerts from agents
    Alerts(AlertsCliArgs),
    /// List, restore and purge removed files
    Trash(TrashCliArgs),
    /// Build, show and delete the search index
    Index(IndexCliArgs),
    /// Show the directory, journal, trash, search index and settings of the workspace
    Status(StatusCliArgs),
    /// Repeat recorded tool calls and report answers that differ from the recording
    Replay(ReplayCliArgs),
    /// Print a shell completion script
    Completions {
        /// Shell to generate the script for
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page, or write one page per command to a directory
    Man {
        /// Directory to write the pages to
        directory: Option<PathBuf>,
    },
}

/// The commands that serve a workspace. `config` shows their settings.
const SERVER_COMMANDS: [&str; 5] = ["serve", "mcp", "rpc", "acp", "config"];
/// Flags that hardly matter for a single command, so that only the help of `stead` and of servers shows them.
const FLAGS_SHOWN_FOR_SERVERS: [&str; 5] = ["durability", "names", "mount", "reach", "index"];

pub(crate) fn build_command_line(definition: &DialectDefinition) -> Command {
    let base =
        Command::new("stead").version(env!("CARGO_PKG_VERSION")).subcommand_required(true).arg_required_else_help(true);
    let commands = definition
        .operations
        .iter()
        .filter_map(|operation| Some((operation.command_words(), operation::operation_command(operation)?)));
    let (below, top): (Vec<_>, Vec<_>) = commands.partition(|(words, _)| words.contains(' '));
    let base = WorkspaceFlags::augment_args(base.arg(config_flag()));
    let server_flags: Vec<Arg> = base
        .get_arguments()
        .filter(|flag| FLAGS_SHOWN_FOR_SERVERS.contains(&flag.get_id().as_str()))
        .map(|flag| flag.clone().hide(true))
        .collect();
    let base = base.subcommands(top.into_iter().map(|(_, command)| command));
    // `augment_…` sets a description from doc comments, so the description of the program is set afterwards.
    below
        .into_iter()
        .fold(BuiltinCliCommand::augment_subcommands(base), |base, (words, command)| {
            let parent = words.split(' ').next().unwrap_or_default().to_owned();
            base.mut_subcommand(parent, |parent| parent.subcommand(command))
        })
        .mut_subcommand("log", |log| log.args_conflicts_with_subcommands(true))
        .mut_subcommands(|command| with_hidden_flags(command, &server_flags))
        .mut_subcommand(settings::SERVE_COMMAND, settings::with_negatable_switches)
        .mut_subcommand("config", |config| {
            ["show", "check"]
                .into_iter()
                .fold(config, |config, below| config.mut_subcommand(below, settings::with_negatable_switches))
        })
        .about(ABOUT)
        .long_about(ABOUT)
        .after_help(AFTER_HELP)
}

/// Hides the flags in the help of every command that is not a server. A flag that a command declares itself is not
/// replaced by the global flag.
fn with_hidden_flags(command: Command, flags: &[Arg]) -> Command {
    if SERVER_COMMANDS.contains(&command.get_name()) {
        return command;
    }
    command.args(flags).mut_subcommands(|below| with_hidden_flags(below, flags))
}

fn config_flag() -> Arg {
    Arg::new(settings::CONFIG_FLAG)
        .long(settings::CONFIG_FLAG)
        .global(true)
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help_heading("Workspace")
        .help(
            "File with settings [default: none; serve reads ~/.config/stead/config.toml, then /etc/stead/config.toml]",
        )
}

pub(crate) fn innermost_matches(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, below)| innermost_matches(below))
}

pub(crate) fn print_completions(definition: &DialectDefinition, shell: Shell) -> CliCommandResult {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut build_command_line(definition), "stead", &mut script);
    output::print_bytes(&script)?;
    Ok(CommandExit::Success)
}

pub(crate) fn print_or_write_man_pages(definition: &DialectDefinition, directory: Option<&Path>) -> CliCommandResult {
    let command = build_command_line(definition);
    match directory {
        Some(directory) => {
            clap_mangen::generate_to(command, directory)
                .map_err(|error| host_files::file_error("write to", directory, &error))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            output::print_bytes(&page)?;
        }
    }
    Ok(CommandExit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(command: &Command, above: &str, out: &mut String) {
        let name = format!("{above}{}", command.get_name());
        let aliases: String = command.get_all_aliases().map(|alias| format!(" or {alias}")).collect();
        out.push_str(&format!("{name}{aliases}\n"));
        let is_listed = |arg: &&Arg| above.is_empty() || !arg.is_global_set();
        for arg in command.get_arguments().filter(is_listed) {
            let flag = arg.get_long().map_or_else(|| format!("<{}>", arg.get_id()), |long| format!("--{long}"));
            let short = arg.get_short().map(|short| format!(" -{short}")).unwrap_or_default();
            let aliases: String =
                arg.get_all_aliases().unwrap_or_default().iter().map(|alias| format!(" or --{alias}")).collect();
            let takes_value = arg.get_action().takes_values();
            let values: Vec<&str> =
                arg.get_value_names().unwrap_or_default().iter().map(|name| name.as_str()).collect();
            let choices: Vec<String> =
                arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
            let default: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
            let mut line = format!("    {flag}{short}{aliases}");
            for (label, words) in [
                ("value", if takes_value { values.join(" ") } else { String::new() }),
                ("choices", if takes_value { choices.join(" ") } else { String::new() }),
                ("default", if takes_value { default.join(" ") } else { String::new() }),
            ] {
                if !words.is_empty() {
                    line.push_str(&format!("; {label} {words}"));
                }
            }
            out.push_str(&line);
            out.push('\n');
        }
        for below in command.get_subcommands() {
            list(below, &format!("{name} "), out);
        }
    }

    #[test]
    fn commands_flags_and_settings_are_those_of_0_1_0() {
        let command = build_command_line(&DialectDefinition::native().unwrap());
        let mut out = String::new();
        list(&command, "", &mut out);
        for setting in settings::all_settings(&command) {
            out.push_str(&format!("setting {} {}\n", setting.name, setting.variable));
        }
        testkit::pin::check(env!("CARGO_MANIFEST_DIR"), "commands.txt", &out);
    }

    #[test]
    fn json_keys_are_those_of_0_1_0() {
        let keys = testkit::pin::json_keys(env!("CARGO_MANIFEST_DIR"));
        testkit::pin::check(env!("CARGO_MANIFEST_DIR"), "json_keys.txt", &keys);
    }

    #[test]
    fn command_line_passes_clap_checks() {
        build_command_line(&DialectDefinition::native().unwrap()).debug_assert();
    }

    #[test]
    fn every_command_and_flag_has_help() {
        fn check(command: &Command) {
            assert!(command.get_about().is_some_and(|about| !about.to_string().is_empty()), "{}", command.get_name());
            for argument in command.get_arguments() {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(!help.is_empty(), "{} {}", command.get_name(), argument.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        check(&build_command_line(&DialectDefinition::native().unwrap()));
    }

    #[test]
    fn examples_of_commands_parse() {
        let definition = DialectDefinition::native().unwrap();
        for help in definition.operations.iter().filter_map(|operation| operation.command.as_ref()) {
            let after_pipe = help.example.rsplit("| ").next().unwrap();
            let words = after_pipe.split(" < ").next().unwrap();
            let arguments = words.split('\'').enumerate().flat_map(|(at, part)| match at % 2 {
                0 => part.split_whitespace().collect::<Vec<_>>(),
                _ => vec![part],
            });
            let parsed = build_command_line(&definition).try_get_matches_from(arguments);
            assert!(parsed.is_ok(), "{}: {}", help.example, parsed.unwrap_err());
        }
    }
}
