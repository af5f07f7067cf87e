//! What can be typed. The fixed commands are declared here; the operations come from the definitions.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, Subcommand, ValueEnum, parser::ValueSource};
use clap_complete::Shell;
use faces::definition::Definition;

use crate::{
    alerts::AlertsArguments, approvals::ApprovalsArguments, config::ConfigArguments, index::IndexArguments,
    log::LogArguments, operation, policy::PolicyArguments, replay::ReplayArguments, serve::ServeFlags,
    settings, status::StatusArguments, token::TokenArguments, trash::TrashArguments, watch::WatchArguments,
    workspaces::WorkspaceArguments,
};

const ABOUT: &str = "The file server between AI agents and a workspace";
const AFTER_HELP: &str = "\
Exit codes: 0 done; 1 failed; 2 wrong usage; 3 refused by a rule; 4 stale or in conflict; 5 the log was tampered with.";

/// Which workspace, and how it is opened.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Workspace")]
pub(crate) struct WorkspaceFlags {
    /// The directory to serve
    #[arg(long, global = true, value_name = "DIR", default_value = ".")]
    pub(crate) workspace: PathBuf,
    /// Where the journal and kept bytes live [default: below $XDG_STATE_HOME/stead]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// The rules that callers are bound by [default: policy.toml in the state directory, if it is there]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// When a change is acknowledged: after it survives a power cut, or only the death of the process
    #[arg(long, global = true, value_enum, default_value = "full")]
    pub(crate) durability: Durability,
    /// Which new names are accepted
    #[arg(long, global = true, value_enum, default_value = "portable")]
    pub(crate) names: Names,
    /// A mount point inside the workspace that belongs to it
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) mount: Vec<String>,
    /// Whose journal: the workspace's, or that of callers who were let out of it (weaver with restrict=false)
    #[arg(long, global = true, value_enum, default_value = "workspace")]
    pub(crate) reach: Reach,
    /// The search index in the state directory: kept by servers, only used where there is one, or off
    #[arg(long, global = true, value_enum, default_value = "on")]
    pub(crate) index: Indexing,
    /// How paths are resolved
    #[arg(long, global = true, value_enum, default_value = "auto", hide = true)]
    pub(crate) resolver: Resolver,
}

/// Who asks, and what it may reach.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Caller")]
pub(crate) struct CallerFlags {
    /// Who asks: user:NAME or agent:NAME
    #[arg(long, value_name = "PRINCIPAL")]
    pub(crate) principal: Option<String>,
    /// Refuse every change
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Only this subtree may be read (repeatable)
    #[arg(long, value_name = "PATH")]
    pub(crate) readable: Vec<String>,
    /// Only this subtree may be changed (repeatable)
    #[arg(long, value_name = "PATH")]
    pub(crate) writable: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durability {
    Full,
    Fast,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Names {
    Portable,
    Posix,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Reach {
    Workspace,
    Machine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Indexing {
    On,
    Use,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Resolver {
    Auto,
    Kernel,
    Walker,
}

/// Which vocabularies are spoken.
#[derive(Debug, Args)]
pub(crate) struct DialectFlags {
    /// The vocabulary of tools (repeatable where names do not clash)
    #[arg(long, value_name = "NAME", default_value = "stead")]
    pub(crate) dialect: Vec<String>,
    /// A documented setting of the dialect (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) dialect_option: Vec<String>,
}

/// What is done about a call that needs a person's yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// The question waits for `stead approvals`
    Ask,
    /// The call is refused; nobody is asked
    Deny,
    /// The call runs as if approved, and the journal says so
    Allow,
    /// What the client sends back counts as a person's answer
    Client,
}

/// How a server asks people.
#[derive(Debug, Args)]
pub(crate) struct AskingFlags {
    /// What is done about a call that needs a person's approval
    #[arg(long, value_enum, default_value = "ask")]
    pub(crate) approve: Approve,
}

/// The flags of `stead acp`.
#[derive(Debug, Args)]
pub(crate) struct AcpFlags {
    #[command(flatten)]
    pub(crate) caller: CallerFlags,
    /// What is done about a write that needs a person's approval: client puts it before the editor's person
    #[arg(long, value_enum, default_value = "client")]
    pub(crate) approve: Approve,
    /// Which line endings an existing file has after an agent wrote text that has only LF
    #[arg(long, value_enum, default_value = "kept")]
    pub(crate) line_endings: LineEndings,
    /// Which encoding an existing file has after an agent wrote it
    #[arg(long, value_enum, default_value = "kept")]
    pub(crate) encoding: WrittenEncoding,
    /// Do not add stead's own MCP server to sessions
    #[arg(long)]
    pub(crate) no_mcp: bool,
    /// The agent and its arguments; without one, a conductor is on the other end
    #[arg(last = true, value_name = "AGENT")]
    pub(crate) agent: Vec<std::ffi::OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LineEndings {
    /// Those it had
    Kept,
    /// Those that the agent gave
    Given,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WrittenEncoding {
    /// The one it had, byte order mark included
    Kept,
    /// UTF-8
    #[value(name = "utf-8")]
    Utf8,
}

/// Whether a flag was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    Yes,
    No,
}

/// Whether a flag was given, as opposed to being what it is when it is not.
pub(crate) fn given(matches: &ArgMatches, flag: &str) -> Given {
    match deepest(matches).value_source(flag) {
        Some(ValueSource::CommandLine | ValueSource::EnvVariable) => Given::Yes,
        Some(_) | None => Given::No,
    }
}

/// The flags of `stead mcp`.
#[derive(Debug, Args)]
pub(crate) struct McpFlags {
    #[command(flatten)]
    pub(crate) dialects: DialectFlags,
    #[command(flatten)]
    pub(crate) caller: CallerFlags,
    #[command(flatten)]
    pub(crate) asking: AskingFlags,
}

/// The flags of `stead rpc`.
#[derive(Debug, Args)]
pub(crate) struct RpcFlags {
    /// The vocabulary of methods (repeatable where names do not clash) [default: stead and krux]
    #[arg(long, value_name = "NAME")]
    pub(crate) dialect: Vec<String>,
    /// A documented setting of the dialect (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) dialect_option: Vec<String>,
    #[command(flatten)]
    pub(crate) caller: CallerFlags,
    #[command(flatten)]
    pub(crate) asking: AskingFlags,
}

impl RpcFlags {
    /// Which vocabularies are spoken.
    pub(crate) fn dialects(&self) -> DialectFlags {
        let usual = || vec!["stead".to_owned(), "krux".to_owned()];
        let dialect = if self.dialect.is_empty() { usual() } else { self.dialect.clone() };
        DialectFlags { dialect, dialect_option: self.dialect_option.clone() }
    }
}

/// Operations that are no commands by their own name: people have commands made for them.
pub(crate) const OTHERWISE: &[&str] = &[
    "alerts",
    "respond",
    "policy",
    "approvals",
    "approve",
    "deny",
    "watch",
    // What a command opened would end with it.
    "buffer.open",
    "buffer.change",
    "buffer.save",
    "buffer.close",
];

/// The commands that are not operations.
#[derive(Debug, Subcommand)]
pub(crate) enum Fixed {
    /// Stand between an editor and an ACP agent, and serve the agent's files
    Acp(AcpFlags),
    /// Serve MCP, JSON-RPC, plain files and events over HTTP
    Serve(ServeFlags),
    /// Show or check what the server is set to, and where each setting came from
    Config(ConfigArguments),
    /// Make, list, replace and revoke what lets clients in over HTTP
    Token(TokenArguments),
    /// Make, list, show, end and take back the workspaces of an estate
    Workspace(WorkspaceArguments),
    /// Serve MCP over standard input and output
    Mcp(McpFlags),
    /// Serve JSON-RPC over standard input and output, one object a line
    Rpc(RpcFlags),
    /// See and answer what waits for a person
    Approvals(ApprovalsArguments),
    /// Tell what happens at places, or what a supervisor should see, until it is interrupted
    Watch(WatchArguments),
    /// Explain what the rules say
    Policy(PolicyArguments),
    /// Show, verify or export the journal
    Log(LogArguments),
    /// List, show or answer what agents sent to people
    Alerts(AlertsArguments),
    /// List, restore or purge what was removed
    Trash(TrashArguments),
    /// Build, show or drop the search index
    Index(IndexArguments),
    /// Show how the workspace is opened and where its journal stands
    Status(StatusArguments),
    /// Make recordings of a published original again and show what differs
    Replay(ReplayArguments),
    /// Print a completion script
    Completions {
        /// For which shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Print the manual page, or write one page per command into a directory
    Man {
        /// Where to write the pages
        directory: Option<PathBuf>,
    },
}

/// Whether an operation is a command by its own name.
pub(crate) fn is_command(operation: &str) -> bool {
    !OTHERWISE.contains(&operation)
}

/// The whole command line.
pub(crate) fn command(definition: &Definition) -> Command {
    let base = Command::new("stead")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true);
    let operations =
        definition.operations.iter().filter(|operation| is_command(&operation.name)).map(operation::command);
    // The parts bring explanations of their own, so the whole's comes after them.
    Fixed::augment_subcommands(WorkspaceFlags::augment_args(base.arg(config_flag())).subcommands(operations))
        .mut_subcommand(settings::SERVE, settings::with_both_ways)
        .mut_subcommand("config", |config| {
            ["show", "check"]
                .into_iter()
                .fold(config, |config, below| config.mut_subcommand(below, settings::with_both_ways))
        })
        .about(ABOUT)
        .long_about(ABOUT)
        .after_help(AFTER_HELP)
}

/// Where the settings of the server may lie.
fn config_flag() -> Arg {
    Arg::new(settings::CONFIG)
        .long(settings::CONFIG)
        .global(true)
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help_heading("Workspace")
        .help("A file with settings; those of the workspace hold for this command too [default for serve: see docs/operating.md]")
}

/// The matches of the innermost command: flags that are global are complete there.
pub(crate) fn deepest(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, below)| deepest(below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command(&Definition::stead().unwrap()).debug_assert();
    }
}
