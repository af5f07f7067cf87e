//! Runs `stead log`, which shows, verifies and exports the journal.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use stead_engine::{
    Error, ErrorKind, JournalEntryOrder, JournalEntryQuery, JournalNoChangeEntryFilter, StoredJournalEntry, UtcSecond,
    Workspace,
};
use stead_journal::JournaledCallOutcomeStatus;
use stead_local::LandlockMode;
use stead_path::RelPath;

use crate::{
    audit_rows,
    cli::WorkspaceFlags,
    host_files,
    open_workspace::{self, CommandLineWorkspace},
    output::{self, CliCommandResult, CommandError, CommandExit, OutputFormat},
};

mod verify;

const ENTRIES_SHOWN_DEFAULT: usize = 50;
const ENTRIES_PER_PAGE: usize = 500;
const CHANGES_SHOWN: usize = 3;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct LogCliArgs {
    #[command(subcommand)]
    action: Option<LogSubcommand>,
    #[command(flatten)]
    filter: JournalFilterFlags,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct JournalFilterFlags {
    /// Only entries about this path and everything below it
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
    /// Only entries of this principal: agent:NAME or user:NAME
    #[arg(long, value_name = "PRINCIPAL")]
    principal: Option<String>,
    /// Only entries of this operation
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,
    /// Only entries from this time on (UTC): 2026-05-09, 2026-05-09T07:29, or 2h for two hours ago
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only entries up to this time, in the same form as --since
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only entries that changed files
    #[arg(long)]
    changes: bool,
    /// Maximum number of entries, newest first (0 = all)
    #[arg(long, value_name = "COUNT", default_value_t = ENTRIES_SHOWN_DEFAULT)]
    limit: usize,
}

#[derive(Debug, Subcommand)]
enum LogSubcommand {
    /// Verify the hash chain and the signatures of the journal
    Verify(verify::LogVerifyCliArgs),
    /// Print the newest signed checkpoint; store it on another machine, for stead log verify --against
    Checkpoint,
    /// Export the journal as JSON lines, which can be verified without the database
    Export {
        /// File to create [default: standard output]
        file: Option<PathBuf>,
    },
    /// Sign new checkpoints with a new key
    RotateKey,
}

pub(crate) fn run(flags: &WorkspaceFlags, arguments: &LogCliArgs) -> CliCommandResult {
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    match &arguments.action {
        None => show_entries(&opened, &arguments.filter, OutputFormat::from(arguments.json)),
        Some(LogSubcommand::Verify(arguments)) => verify::run(&opened, arguments),
        Some(LogSubcommand::Checkpoint) => match opened.local.latest_checkpoint()? {
            Some(note) => {
                output::print_text(&note)?;
                Ok(CommandExit::Success)
            }
            None => Err(Error::new(ErrorKind::NotFound, "the journal is empty, so it has no checkpoint")
                .with_next_step("repeat the command after the first call in this workspace")
                .into()),
        },
        Some(LogSubcommand::Export { file }) => export_journal(&opened, file.as_deref()),
        Some(LogSubcommand::RotateKey) => {
            opened.local.rotate_key()?;
            output::print_text("key rotated: the next checkpoint is signed with a new key, endorsed by the old one")?;
            Ok(CommandExit::Success)
        }
    }
}

fn show_entries(opened: &CommandLineWorkspace, filter: &JournalFilterFlags, format: OutputFormat) -> CliCommandResult {
    let now_ms = opened.local.now_ms();
    let mut query = entry_filter(filter, now_ms)?;
    let mut remaining = if filter.limit == 0 { usize::MAX } else { filter.limit };
    while remaining > 0 {
        query.limit = remaining.min(ENTRIES_PER_PAGE);
        let entries = opened.local.entries(&query)?;
        let Some(last) = entries.last() else { break };
        query.before = Some(last.entry.number);
        remaining -= entries.len();
        for stored in &entries {
            output::print_as(format, || entry_to_json(stored), || entry_line(stored))?;
        }
    }
    Ok(CommandExit::Success)
}

fn entry_to_json(stored: &StoredJournalEntry) -> Value {
    let audit: Vec<Value> = audit_rows::audit_rows(stored).into_iter().map(|row| Value::Object(row.fields)).collect();
    json!({ "entry": stored.entry, "hash": stored.hash.to_string(), "audit": audit })
}

fn entry_filter(filter: &JournalFilterFlags, now_ms: i64) -> Result<JournalEntryQuery, CommandError> {
    let parse_time = |text: &String| {
        stead_engine::parse_utc_time(text, now_ms).ok_or_else(|| {
            output::usage_error(format!("'{text}' is not a time; use a form such as 2026-05-09T07:29 or 2h"))
        })
    };
    let path = filter.path.as_deref().map(|path| open_workspace::parse_relative_path(&RelPath::root(), path));
    Ok(JournalEntryQuery {
        path: path.transpose()?,
        principal: filter.principal.clone(),
        operation: filter.operation.clone(),
        since_ms: filter.since.as_ref().map(parse_time).transpose()?,
        until_ms: filter.until.as_ref().map(parse_time).transpose()?,
        selection: if filter.changes {
            JournalNoChangeEntryFilter::WithChanges
        } else {
            JournalNoChangeEntryFilter::All
        },
        order: JournalEntryOrder::NewestFirst,
        ..JournalEntryQuery::default()
    })
}

fn entry_line(stored: &StoredJournalEntry) -> String {
    let entry = &stored.entry;
    let reason = entry.reason.as_deref().unwrap_or("no reason recorded");
    let outcome = match entry.decision {
        JournaledCallOutcomeStatus::Allowed => String::new(),
        JournaledCallOutcomeStatus::Refused => format!("  refused: {reason}"),
        JournaledCallOutcomeStatus::Failed => format!("  failed: {reason}"),
    };
    let changes: Vec<&str> = entry.changes.iter().take(CHANGES_SHOWN).map(|change| change.path.as_str()).collect();
    let more = entry.changes.len().saturating_sub(CHANGES_SHOWN);
    let subject = match (changes.is_empty(), more) {
        (true, _) => format!("  {}", entry.arguments),
        (false, 0) => format!("  {}", changes.join(", ")),
        (false, more) => format!("  {} and {more} more", changes.join(", ")),
    };
    let tool = entry.tool.as_ref().map_or_else(String::new, |tool| format!("  as {tool}"));
    let approval = entry.approval.as_ref().map_or_else(String::new, |id| format!("  approval: {id}"));
    let (number, time) = (entry.number, UtcSecond { unix_ms: entry.time_ms });
    let who = &entry.caller.principal;
    format!("r{number}  {time}  {who}  {}{subject}{outcome}{tool}{approval}", entry.operation)
}

fn export_journal(opened: &CommandLineWorkspace, file: Option<&Path>) -> CliCommandResult {
    let lines = match file {
        Some(path) => {
            let mut out = host_files::create_new(path)?;
            let lines = opened.local.export_journal(&mut out)?;
            out.flush().map_err(|error| host_files::file_error("write", path, &error))?;
            lines
        }
        None => {
            let mut out = BrokenPipeDetectingWriter {
                output: BufWriter::new(io::stdout().lock()),
                reader: OutputPipeStatus::Connected,
            };
            let exported = opened.local.export_journal(&mut out);
            // The journal reports a closed pipe like any other write error, so the closed pipe is detected here.
            let lines = match (exported, out.reader) {
                (Err(_), OutputPipeStatus::Disconnected) => return Err(CommandError::OutputClosed),
                (exported, _) => exported?,
            };
            out.flush()?;
            lines
        }
    };
    output::print_note(&format!("{lines} lines exported"));
    Ok(CommandExit::Success)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputPipeStatus {
    Connected,
    Disconnected,
}

struct BrokenPipeDetectingWriter<W> {
    output: W,
    reader: OutputPipeStatus,
}

impl<W> BrokenPipeDetectingWriter<W> {
    fn note_closed_pipe<T>(&mut self, outcome: io::Result<T>) -> io::Result<T> {
        if outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            self.reader = OutputPipeStatus::Disconnected;
        }
        outcome
    }
}

impl<W: Write> Write for BrokenPipeDetectingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let outcome = self.output.write(bytes);
        self.note_closed_pipe(outcome)
    }

    fn flush(&mut self) -> io::Result<()> {
        let outcome = self.output.flush();
        self.note_closed_pipe(outcome)
    }
}
