//! `stead log`: the journal for people.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use engine::{EntryFilter, Failure, Kind, Order, Stored, Which, Workspace};
use journal::Decision;
use local::Wall;
use path::RelPath;
use serde_json::{Value, json};

use crate::{
    audit,
    cli::WorkspaceFlags,
    show::{self, Exit, Form, Outcome, Problem},
    time,
    wire::{self, Opened},
};

mod export;
mod verify;

/// Entries shown when nothing is said.
const LIMIT_DEFAULT: usize = 50;
/// Entries asked of the journal at a time.
const BATCH: usize = 500;

/// The flags of `stead log`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct LogArguments {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    filter: Filter,
    /// Answer with one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Filter {
    /// Only entries about this path and what is below it
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Only entries of this principal
    #[arg(long, value_name = "PRINCIPAL")]
    principal: Option<String>,
    /// Only entries of this operation
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,
    /// Only from this time on: 2026-05-09, 2026-05-09T07:29, 2h
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only up to this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only entries that changed something
    #[arg(long)]
    changes: bool,
    /// At most this many, newest first; 0 for all
    #[arg(long, value_name = "COUNT", default_value_t = LIMIT_DEFAULT)]
    limit: usize,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Check every entry, link and signature
    Verify(verify::VerifyArguments),
    /// Print the newest signed checkpoint, to be kept elsewhere and held against the journal later
    Checkpoint,
    /// Write the journal as JSON lines that verify without the database
    Export {
        /// A file that does not exist yet [default: standard output]
        file: Option<PathBuf>,
    },
    /// Sign with a new key from now on
    RotateKey,
}

/// Runs one of them.
pub(crate) fn run(flags: &WorkspaceFlags, arguments: &LogArguments) -> Outcome {
    let opened = wire::open(flags, Wall::Leave)?;
    match &arguments.action {
        None => show_entries(&opened, &arguments.filter, Form::from(arguments.json)),
        Some(Action::Verify(arguments)) => verify::run(&opened, arguments),
        Some(Action::Checkpoint) => match opened.local.latest_checkpoint()? {
            Some(note) => {
                show::text(&note)?;
                Ok(Exit::Fine)
            }
            None => Err(Failure::new(Kind::NotFound, "the journal is empty").into()),
        },
        Some(Action::Export { file }) => export::run(&opened, file.as_deref()),
        Some(Action::RotateKey) => {
            opened.local.rotate_key()?;
            show::text("the next checkpoint is signed with a new key, which the old one vouches for")?;
            Ok(Exit::Fine)
        }
    }
}

fn show_entries(opened: &Opened, filter: &Filter, form: Form) -> Outcome {
    let now_ms = opened.local.now_ms();
    let mut wanted = entry_filter(filter, now_ms)?;
    let mut left = if filter.limit == 0 { usize::MAX } else { filter.limit };
    while left > 0 {
        wanted.limit = left.min(BATCH);
        let entries = opened.local.entries(&wanted)?;
        let Some(last) = entries.last() else { break };
        wanted.before = Some(last.entry.number);
        left -= entries.len();
        for stored in &entries {
            match form {
                Form::Json => show::json(&object(stored))?,
                Form::Text => show::text(&line(stored))?,
            }
        }
    }
    Ok(Exit::Fine)
}

/// An entry as it is kept, with its chain hash and the rows of its audit.
fn object(stored: &Stored) -> Value {
    let audit: Vec<Value> = audit::rows(stored).into_iter().map(|row| Value::Object(row.facts)).collect();
    json!({ "entry": stored.entry, "hash": stored.hash.to_string(), "audit": audit })
}

fn entry_filter(filter: &Filter, now_ms: i64) -> Result<EntryFilter, Problem> {
    let moment = |text: &Option<String>| match text {
        Some(text) => match time::parse(text, now_ms) {
            Some(unix_ms) => Ok(Some(unix_ms)),
            None => Err(show::usage(format!("'{text}' is not a time; write 2026-05-09T07:29 or 2h"))),
        },
        None => Ok(None),
    };
    let path = filter.path.as_deref().map(RelPath::from_wire).transpose();
    Ok(EntryFilter {
        path: path.map_err(|error| show::usage(format!("--path: {error}")))?,
        principal: filter.principal.clone(),
        operation: filter.operation.clone(),
        since_ms: moment(&filter.since)?,
        until_ms: moment(&filter.until)?,
        what: if filter.changes { Which::Changes } else { Which::All },
        order: Order::NewestFirst,
        ..EntryFilter::default()
    })
}

/// One entry in one line.
fn line(stored: &Stored) -> String {
    let entry = &stored.entry;
    let outcome = match (entry.decision, &entry.reason) {
        (Decision::Allowed, _) => String::new(),
        (Decision::Refused, reason) => {
            format!("  refused: {}", reason.as_deref().unwrap_or("no reason kept"))
        }
        (Decision::Failed, reason) => format!("  failed: {}", reason.as_deref().unwrap_or("no reason kept")),
    };
    let changes: Vec<&str> =
        entry.changes.iter().take(CHANGES_SHOWN).map(|change| change.path.as_str()).collect();
    let more = entry.changes.len().saturating_sub(CHANGES_SHOWN);
    let what = match (changes.is_empty(), more) {
        (true, _) => format!("  {}", entry.arguments),
        (false, 0) => format!("  {}", changes.join(", ")),
        (false, more) => format!("  {} and {more} more", changes.join(", ")),
    };
    let tool = entry.tool.as_ref().map_or_else(String::new, |tool| format!("  as {tool}"));
    let approval = entry.approval.as_ref().map_or_else(String::new, |id| format!("  approval: {id}"));
    let (number, time) = (entry.number, time::iso_utc(entry.time_ms));
    let who = &entry.caller.principal;
    format!("r{number}  {time}  {who}  {}{what}{outcome}{tool}{approval}", entry.operation)
}

/// Paths in one line.
const CHANGES_SHOWN: usize = 3;
