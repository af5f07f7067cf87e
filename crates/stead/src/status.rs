//! `stead status`: how the workspace is opened and where its journal stands.

use clap::Args;
use engine::Workspace;
use local::Wall;
use serde_json::{Value, json};

use crate::{
    cli::WorkspaceFlags,
    show::{self, Exit, Form, Outcome},
    wire,
};

/// The flags of `stead status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Answer with one JSON object
    #[arg(long)]
    json: bool,
}

/// Shows it.
pub(crate) fn run(flags: &WorkspaceFlags, arguments: &StatusArguments) -> Outcome {
    let opened = wire::open(flags, Wall::Leave)?;
    let workspace: &dyn Workspace = &*opened.local;
    let head = workspace.head()?;
    let mut facts = json!({
        "root": workspace.profile().roots.first(),
        "entries": head.number,
        "head": head.hash.to_string(),
        "trash": workspace.trash(None)?.len(),
    });
    if let (Value::Object(facts), Value::Object(more)) = (&mut facts, workspace.describe()) {
        facts.extend(more);
        facts.sort_keys();
    }
    match Form::from(arguments.json) {
        Form::Json => show::json(&facts)?,
        Form::Text => {
            let rows = facts.as_object().into_iter().flatten().map(|(name, value)| match value {
                Value::String(text) => format!("{name}: {text}"),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    format!("{name}: {value}")
                }
            });
            show::text(&rows.collect::<Vec<_>>().join("\n"))?;
        }
    }
    Ok(Exit::Fine)
}
