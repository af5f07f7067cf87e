//! Runs `stead status` and `stead index`, which show the state of the workspace and of its search index.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use stead_engine::Workspace;
use stead_local::{IndexStatus, LandlockMode};

use crate::{
    cli::WorkspaceFlags,
    open_workspace,
    output::{self, AnswerFormatFlag, CliCommandResult, CommandExit, OutputFormat},
};

#[derive(Debug, Args)]
pub(crate) struct StatusCliArgs {
    #[command(flatten)]
    format: AnswerFormatFlag,
}

pub(crate) fn run_status(flags: &WorkspaceFlags, arguments: &StatusCliArgs) -> CliCommandResult {
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    let workspace: &dyn Workspace = &*opened.local;
    let head = workspace.head()?;
    let mut facts = json!({
        "root": workspace.profile().root_spellings.first(),
        "entries": head.number,
        "head": head.hash.to_string(),
        "trash": workspace.trash(None)?.len(),
    });
    for (name, fact) in opened.local.status_facts() {
        facts[name] = fact.into();
    }
    facts.sort_all_objects();
    let text = render_status(&facts);
    output::print_as(arguments.format.into(), || facts, || text)?;
    Ok(CommandExit::Success)
}

/// The lines of `stead status`: the JSON key of each value, its label, and an explanation.
const STATUS_LINES: &[(&str, &str, &str)] = &[
    ("root", "Workspace directory", ""),
    ("workspace", "Workspace id", ""),
    ("entries", "Journal entries", ""),
    ("head", "Hash of the last entry", ""),
    ("trash", "Items in the trash", " (to list them, run: stead trash list)"),
    ("index", "Search index", ""),
    ("durability", "Durability", " (full: changes are synced to disk; fast: a power cut can lose changes)"),
    ("resolver", "Path resolver", " (kernel: the system call openat2; walker: one path component at a time)"),
    ("background_failures", "Failed background tasks", ""),
];

fn render_status(facts: &Value) -> String {
    let lines = STATUS_LINES.iter().map(|(key, label, explanation)| {
        let value = facts[key].as_str().map_or_else(|| facts[key].to_string(), str::to_owned);
        format!("{label}: {value}{explanation}\n")
    });
    // This command never activates the sandbox, so the fact `wall` says nothing about a server.
    lines
        .chain(["Landlock sandbox: off for this command; stead mcp, stead rpc and stead serve use it\n".to_owned()])
        .collect()
}

#[derive(Debug, Args)]
pub(crate) struct IndexCliArgs {
    #[command(subcommand)]
    action: IndexSubcommand,
}

#[derive(Debug, Subcommand)]
enum IndexSubcommand {
    /// Build or update the index and wait until it is complete
    Build {
        #[command(flatten)]
        format: AnswerFormatFlag,
    },
    /// Show the size of the index and how many files it covers
    Show {
        #[command(flatten)]
        format: AnswerFormatFlag,
    },
    /// Delete the index; search results stay the same, searches take longer
    Drop,
}

pub(crate) fn run_index(flags: &WorkspaceFlags, arguments: &IndexCliArgs) -> CliCommandResult {
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    match arguments.action {
        IndexSubcommand::Build { format } => print_index(&opened.local.build_index()?, format.into()),
        IndexSubcommand::Show { format } => print_index(&opened.local.index_status(), format.into()),
        IndexSubcommand::Drop => {
            opened.local.drop_index()?;
            output::print_text("index deleted")?;
            Ok(CommandExit::Success)
        }
    }
}

fn print_index(status: &IndexStatus, format: OutputFormat) -> CliCommandResult {
    let to_json = || {
        json!({
            "segments": status.segments,
            "files": status.files,
            "bytes": status.bytes,
            "cut": status.is_size_limited,
            "known": status.model_files,
        })
    };
    output::print_as(format, to_json, || format!("index: {status}"))?;
    Ok(CommandExit::Success)
}
