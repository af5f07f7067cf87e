//! `stead index`: builds, shows and deletes the search index. Servers maintain it without this command.

use clap::{Args, Subcommand};
use serde_json::json;
use stead_local::{IndexStatus, LandlockMode};

use crate::{
    cli::WorkspaceFlags,
    open_workspace,
    output::{self, CommandExit, CommandResult, OutputFormat},
};

#[derive(Debug, Args)]
pub(crate) struct IndexCliArgs {
    #[command(subcommand)]
    action: IndexSubcommand,
}

#[derive(Debug, Subcommand)]
enum IndexSubcommand {
    /// Build or update the index and wait until it is complete
    Build {
        /// Print the answer as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show the size of the index and how many files it covers
    Show {
        /// Print the answer as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Delete the index; search results stay the same, searches take longer
    Drop,
}

pub(crate) fn run(flags: &WorkspaceFlags, arguments: &IndexCliArgs) -> CommandResult {
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    match arguments.action {
        IndexSubcommand::Build { json } => print_index(&opened.local.build_index()?, OutputFormat::from(json)),
        IndexSubcommand::Show { json } => print_index(&opened.local.index_status(), OutputFormat::from(json)),
        IndexSubcommand::Drop => {
            opened.local.drop_index()?;
            output::print_text("index deleted")?;
            Ok(CommandExit::Success)
        }
    }
}

fn print_index(facts: &IndexStatus, form: OutputFormat) -> CommandResult {
    match form {
        OutputFormat::Text => output::print_text(&format!("index: {facts}"))?,
        OutputFormat::Json => output::print_json(&json!({
            "segments": facts.segments,
            "files": facts.files,
            "bytes": facts.bytes,
            "cut": facts.is_size_limited,
            "known": facts.model_files,
        }))?,
    }
    Ok(CommandExit::Success)
}
