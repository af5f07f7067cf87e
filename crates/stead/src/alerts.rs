//! `stead alerts`: messages from agents to people, and the answers.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use stead_engine::{Call, Caller};
use stead_local::LandlockMode;

use crate::{
    cli::{CallerFlags, WorkspaceFlags},
    open_workspace::{self, CallerKind},
    output::{self, CommandExit, CommandResult, OutputFormat},
};

#[derive(Debug, Args)]
pub(crate) struct AlertsCliArgs {
    #[command(subcommand)]
    action: AlertsSubcommand,
}

#[derive(Debug, Subcommand)]
enum AlertsSubcommand {
    /// List alerts and their answers, newest first
    List(AlertsFlags),
    /// Show one alert
    Show {
        #[command(flatten)]
        flags: AlertsFlags,
        /// Alert id
        id: String,
    },
    /// Answer an alert; the agent receives the answer as an event
    Answer {
        #[command(flatten)]
        flags: AlertsFlags,
        /// Alert id
        id: String,
        /// Text of the answer
        text: String,
    },
}

#[derive(Debug, Args)]
struct AlertsFlags {
    #[command(flatten)]
    caller: CallerFlags,
    /// Print the answer as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: &WorkspaceFlags, arguments: &AlertsCliArgs) -> CommandResult {
    let (call_flags, operation, call_arguments) = match &arguments.action {
        AlertsSubcommand::List(flags) => (flags, "alerts", json!({})),
        AlertsSubcommand::Show { flags, id } => (flags, "alerts", json!({ "id": id })),
        AlertsSubcommand::Answer { flags, id, text } => (flags, "respond", json!({ "alert": id, "text": text })),
    };
    let caller = open_workspace::caller_from_flags(&call_flags.caller, CallerKind::Person)?;
    call_operation(flags, &caller, operation, call_arguments, OutputFormat::from(call_flags.json))
}

fn call_operation(
    flags: &WorkspaceFlags,
    caller: &Caller,
    operation: &str,
    arguments: Value,
    format: OutputFormat,
) -> CommandResult {
    let arguments: Map<String, Value> = arguments.as_object().cloned().unwrap_or_default();
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    let answer = opened.engine.call(&Call::new(caller, operation, arguments))?;
    match format {
        OutputFormat::Json => output::print_json(&Value::Object(answer.json))?,
        OutputFormat::Text => output::print_text(&answer.text)?,
    }
    Ok(CommandExit::Success)
}
