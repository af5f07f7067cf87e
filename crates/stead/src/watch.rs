//! `stead watch`: tells what happens at places, until it is interrupted. Whoever does it: agents, other programs, people.

mod supervisor;

use clap::Args;
use engine::{Call, Caller, Failure, Workspace};
use local::Wall;
use serde_json::{Map, Value, json};

use crate::{
    cli::{CallerFlags, WorkspaceFlags},
    outside,
    show::{self, Form, Outcome, Problem},
    wire::{self, Asker, Opened},
};

use supervisor::{Then, Wish};

/// How long one call waits for the first event.
const WAIT_MS: u64 = 60_000;

/// The flags of `stead watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArguments {
    /// What to watch
    #[arg(default_value = ".")]
    paths: Vec<String>,
    /// Only the names in a directory, not everything below it
    #[arg(long)]
    shallow: bool,
    /// Only these events: create, modify, delete, rename (repeatable)
    #[arg(long = "type", value_name = "EVENT")]
    types: Vec<String>,
    /// Only names that match
    #[arg(long, value_name = "PATTERN")]
    glob: Option<String>,
    /// Instead, what a supervisor should see: told calls, refusals by the policy, questions and answers
    #[arg(long, conflicts_with_all = ["paths", "shallow", "types", "glob"])]
    supervisor: bool,
    /// Begin after this entry [default: what comes from now on]
    #[arg(long, value_name = "ENTRY", requires = "supervisor")]
    since: Option<u64>,
    /// Show what is there and end, instead of waiting for more
    #[arg(long, requires = "since")]
    no_wait: bool,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    caller: CallerFlags,
}

/// Tells until nobody listens.
pub(crate) fn run(flags: &WorkspaceFlags, arguments: &WatchArguments) -> Outcome {
    let form = Form::from(arguments.json);
    if arguments.supervisor {
        let then = if arguments.no_wait { Then::End } else { Then::Wait };
        return supervisor::run(flags, &Wish { since: arguments.since, then, form });
    }
    let caller = wire::caller(&arguments.caller, Asker::Person)?;
    let opened = wire::open(flags, Wall::Leave)?;
    end_forgotten(&opened, &caller)?;
    let (mut cursor, mut own) = (Value::Null, Vec::new());
    for path in &arguments.paths {
        let asked = json!({
            "path": path,
            "recursive": !arguments.shallow,
            "types": arguments.types,
            "glob": arguments.glob,
        });
        let begun = call(&opened, &caller, "watch", asked)?;
        own.push(begun["watch"].clone());
        if cursor.is_null() {
            cursor = begun["cursor"].clone();
        }
    }
    loop {
        let page = call(&opened, &caller, "watched", json!({ "cursor": cursor, "wait_ms": WAIT_MS }))?;
        cursor = page["cursor"].clone();
        let events = page["events"].as_array().into_iter().flatten();
        for event in events.filter(|event| own.contains(&event["watch"])) {
            match form {
                Form::Json => show::json(event)?,
                Form::Text => show::text(&line(event))?,
            }
        }
    }
}

/// One event for people.
fn line(event: &Value) -> String {
    let word = |name: &str| event[name].as_str().unwrap_or_default();
    let mut line = format!("{} {} {} {}", word("time"), word("actor"), word("event"), word("path"));
    if let Some(new_path) = event["new_path"].as_str() {
        line.push_str(&format!(" -> {new_path}"));
    }
    line
}

/// Ends watches of this command that was interrupted: their process is gone.
fn end_forgotten(opened: &Opened, caller: &Caller) -> Result<(), Problem> {
    for watch in opened.local.watches(&caller.principal)? {
        let process = watch.session.strip_prefix("cli-").and_then(|number| number.parse::<u32>().ok());
        if process.is_some_and(|process| !outside::runs(process)) {
            call(opened, caller, "unwatch", json!({ "watch": watch.id }))?;
        }
    }
    Ok(())
}

fn call(
    opened: &Opened,
    caller: &Caller,
    operation: &str,
    arguments: Value,
) -> Result<Map<String, Value>, Failure> {
    let given = arguments.as_object().cloned().unwrap_or_default();
    let given = given.into_iter().filter(|(_, value)| !value.is_null()).collect();
    opened.engine.call(&Call::new(caller, operation, given)).map(|answer| answer.json)
}
