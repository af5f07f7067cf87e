//! `stead watch`: prints changes by agents, people and other programs until it is interrupted.

mod supervisor;

use clap::Args;
use serde_json::{Map, Value, json};
use stead_engine::{Call, Caller, Error, Workspace};
use stead_local::LandlockMode;

use crate::{
    cli::{CallerFlags, WorkspaceFlags},
    host_files,
    open_workspace::{self, CallerKind, CommandWorkspace},
    output::{self, CommandError, CommandResult, OutputFormat},
};

use supervisor::{SupervisorWatchOptions, WhenCaughtUp};

const WAIT_MS: u64 = 60_000;

#[derive(Debug, Args)]
pub(crate) struct WatchCliArgs {
    /// Paths to watch
    #[arg(default_value = ".")]
    paths: Vec<String>,
    /// Watch only the direct children of a directory
    #[arg(long)]
    shallow: bool,
    /// Print only these events: create, modify, delete, rename (repeatable)
    #[arg(long = "type", value_name = "EVENT")]
    types: Vec<String>,
    /// Print only paths that match this pattern
    #[arg(long, value_name = "PATTERN")]
    glob: Option<String>,
    /// Print supervisor events instead: reported calls, policy refusals, approvals and alerts
    #[arg(long, conflicts_with_all = ["paths", "shallow", "types", "glob"])]
    supervisor: bool,
    /// Start after this journal entry [default: the latest]
    #[arg(long, value_name = "ENTRY", requires = "supervisor")]
    since: Option<u64>,
    /// Print existing events and exit instead of waiting for more
    #[arg(long, requires = "since")]
    no_wait: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    caller: CallerFlags,
}

pub(crate) fn run(flags: &WorkspaceFlags, arguments: &WatchCliArgs) -> CommandResult {
    let form = OutputFormat::from(arguments.json);
    if arguments.supervisor {
        let then = if arguments.no_wait { WhenCaughtUp::Exit } else { WhenCaughtUp::Wait };
        return supervisor::run(
            flags,
            &SupervisorWatchOptions { since: arguments.since, when_caught_up: then, format: form },
        );
    }
    let caller = open_workspace::caller_from_flags(&arguments.caller, CallerKind::Person)?;
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    end_stale_watches(&opened, &caller)?;
    let (mut cursor, mut own) = (Value::Null, Vec::new());
    for path in &arguments.paths {
        let options = json!({
            "path": path,
            "recursive": !arguments.shallow,
            "types": arguments.types,
            "glob": arguments.glob,
        });
        let started = call_operation(&opened, &caller, "watch", options)?;
        own.push(started["watch"].clone());
        if cursor.is_null() {
            cursor = started["cursor"].clone();
        }
    }
    loop {
        let page = call_operation(&opened, &caller, "watched", json!({ "cursor": cursor, "wait_ms": WAIT_MS }))?;
        cursor = page["cursor"].clone();
        let events = page["events"].as_array().into_iter().flatten();
        for event in events.filter(|event| own.contains(&event["watch"])) {
            match form {
                OutputFormat::Json => output::print_json(event)?,
                OutputFormat::Text => output::print_text(&event_line(event))?,
            }
        }
    }
}

fn event_line(event: &Value) -> String {
    let word = |name: &str| event[name].as_str().unwrap_or_default();
    let mut line = format!("{} {} {} {}", word("time"), word("actor"), word("event"), word("path"));
    if let Some(new_path) = event["new_path"].as_str() {
        line.push_str(&format!(" -> {new_path}"));
    }
    line
}

/// Ends watches of earlier runs of this command whose process has exited.
fn end_stale_watches(opened: &CommandWorkspace, caller: &Caller) -> Result<(), CommandError> {
    for watch in opened.local.watches(&caller.principal)? {
        let process = watch.session.strip_prefix("cli-").and_then(|number| number.parse::<u32>().ok());
        if process.is_some_and(|process| !host_files::is_process_running(process)) {
            call_operation(opened, caller, "unwatch", json!({ "watch": watch.id }))?;
        }
    }
    Ok(())
}

fn call_operation(
    opened: &CommandWorkspace,
    caller: &Caller,
    operation: &str,
    arguments: Value,
) -> Result<Map<String, Value>, Error> {
    let given = arguments.as_object().cloned().unwrap_or_default();
    let given = given.into_iter().filter(|(_, value)| !value.is_null()).collect();
    opened.engine.call(&Call::new(caller, operation, given)).map(|answer| answer.json)
}
