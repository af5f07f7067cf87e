//! `stead status`: how the workspace is opened, and the head of its journal.

use clap::Args;
use serde_json::{Value, json};
use stead_engine::Workspace;
use stead_local::LandlockMode;

use crate::{
    cli::WorkspaceFlags,
    open_workspace,
    output::{self, CommandExit, CommandResult, OutputFormat},
};

#[derive(Debug, Args)]
pub(crate) struct StatusCliArgs {
    /// Print the answer as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: &WorkspaceFlags, arguments: &StatusCliArgs) -> CommandResult {
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    let workspace: &dyn Workspace = &*opened.local;
    let head = workspace.head()?;
    let mut facts = json!({
        "root": workspace.profile().root_spellings.first(),
        "entries": head.number,
        "head": head.hash.to_string(),
        "trash": workspace.trash(None)?.len(),
    });
    if let (Value::Object(facts), Value::Object(more)) = (&mut facts, workspace.describe()) {
        facts.extend(more);
        facts.sort_keys();
    }
    match OutputFormat::from(arguments.json) {
        OutputFormat::Json => output::print_json(&facts)?,
        OutputFormat::Text => {
            let rows = facts.as_object().into_iter().flatten().map(|(name, value)| match value {
                Value::String(text) => format!("{name}: {text}"),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    format!("{name}: {value}")
                }
            });
            output::print_text(&rows.collect::<Vec<_>>().join("\n"))?;
        }
    }
    Ok(CommandExit::Success)
}
