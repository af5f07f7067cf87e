//! `stead alerts`: what agents sent to people, and answering it.

use clap::{Args, Subcommand};
use engine::{Call, Caller};
use local::Wall;
use serde_json::{Map, Value, json};

use crate::{
    cli::{CallerFlags, WorkspaceFlags},
    show::{self, Exit, Form, Outcome},
    wire::{self, Asker},
};

/// The flags of `stead alerts`.
#[derive(Debug, Args)]
pub(crate) struct AlertsArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List alerts and their answers, newest first
    List(Asking),
    /// Show one alert
    Show {
        #[command(flatten)]
        asking: Asking,
        /// Which
        id: String,
    },
    /// Answer an alert; the agent is told with its events
    Answer {
        #[command(flatten)]
        asking: Asking,
        /// Which
        id: String,
        /// What to say
        text: String,
    },
}

#[derive(Debug, Args)]
struct Asking {
    #[command(flatten)]
    caller: CallerFlags,
    /// Answer with one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs one of them.
pub(crate) fn run(flags: &WorkspaceFlags, arguments: &AlertsArguments) -> Outcome {
    let (asking, operation, asked) = match &arguments.action {
        Action::List(asking) => (asking, "alerts", json!({})),
        Action::Show { asking, id } => (asking, "alerts", json!({ "id": id })),
        Action::Answer { asking, id, text } => (asking, "respond", json!({ "alert": id, "text": text })),
    };
    let caller = wire::caller(&asking.caller, Asker::Person)?;
    call(flags, &caller, operation, asked, Form::from(asking.json))
}

fn call(flags: &WorkspaceFlags, caller: &Caller, operation: &str, asked: Value, form: Form) -> Outcome {
    let arguments: Map<String, Value> = asked.as_object().cloned().unwrap_or_default();
    let opened = wire::open(flags, Wall::Leave)?;
    let answer = opened.engine.call(&Call::new(caller, operation, arguments))?;
    match form {
        Form::Json => show::json(&Value::Object(answer.json))?,
        Form::Text => show::text(&answer.text)?,
    }
    Ok(Exit::Fine)
}
