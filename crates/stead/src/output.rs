//! Prints the answers of commands to standard output and messages to standard error. Text from files is escaped before
//! it reaches a terminal.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    sync::atomic::{AtomicBool, Ordering},
};

use clap::Args;
use serde_json::Value;
use stead_engine::Error;
pub(crate) use stead_protocols::error_rows::CommandExit;
use stead_text::visible::{escape_deceptive, escape_deceptive_line};

use crate::command_style::COMMAND_STYLE;

pub(crate) type CliCommandResult = Result<CommandExit, CommandError>;

#[derive(Debug)]
pub(crate) enum CommandError {
    Engine(Box<Error>),
    Usage(String),
    /// The program that reads the standard output of `stead` has closed the pipe.
    OutputClosed,
    System(String),
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        CommandError::Engine(Box::new(error))
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return CommandError::OutputClosed;
        }
        CommandError::System(format!("cannot read standard input or write the output: {error}"))
    }
}

pub(crate) fn usage_error(error: impl ToString) -> CommandError {
    CommandError::Usage(error.to_string())
}

pub(crate) fn report(outcome: CliCommandResult) -> CommandExit {
    match outcome {
        Ok(exit) => exit,
        Err(CommandError::Engine(error)) => {
            print_error(&format!("{}: {}", error.kind.code(), error.message));
            for line in error.excerpt().into_iter().flat_map(str::lines) {
                write_line(&mut io::stderr(), &format!("  {}", escape_controls(&line.replace('\t', "  "))));
            }
            if let Some(hint) = COMMAND_STYLE.render_hint(&error) {
                write_line(&mut io::stderr(), &format!("  next: {}", hint));
            }
            CommandExit::for_error(error.kind)
        }
        Err(CommandError::Usage(message)) => {
            print_error(&message);
            CommandExit::Usage
        }
        Err(CommandError::OutputClosed) => CommandExit::Success,
        Err(CommandError::System(message)) => {
            print_error(&message);
            CommandExit::Failed
        }
    }
}

static JSON_MESSAGES: AtomicBool = AtomicBool::new(false);

pub(crate) fn use_json_messages() {
    JSON_MESSAGES.store(true, Ordering::Relaxed);
}

pub(crate) fn print_error(message: &str) {
    if JSON_MESSAGES.load(Ordering::Relaxed) {
        return write_line(&mut io::stderr(), &message_json("error", message));
    }
    let mut err = io::stderr();
    let (start, end) = if supports_colour(&err) { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    write_line(&mut err, &format!("{start}stead:{end} {}", escape_controls(message)));
}

pub(crate) fn print_note(message: &str) {
    if JSON_MESSAGES.load(Ordering::Relaxed) {
        return write_line(&mut io::stderr(), &message_json("info", message));
    }
    write_line(&mut io::stderr(), &format!("stead: {}", escape_controls(message)));
}

fn message_json(level: &str, message: &str) -> String {
    serde_json::json!({ "level": level, "event": "message", "message": message }).to_string()
}

fn write_line(out: &mut impl Write, line: &str) {
    // Standard error may be closed.
    drop(writeln!(out, "{line}"));
}

fn supports_colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn escape_controls(text: &str) -> String {
    escape_deceptive_line(text).into_owned()
}

pub(crate) fn print_text(answer: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        out.write_all(escape_deceptive(answer).as_bytes())?;
    } else {
        out.write_all(answer.as_bytes())?;
    }
    if !answer.is_empty() && !answer.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

pub(crate) fn print_bytes(answer: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(answer)?;
    out.flush()
}

pub(crate) fn is_output_terminal() -> bool {
    io::stdout().is_terminal()
}

pub(crate) fn print_json(answer: &impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{answer}")?;
    out.flush()
}

pub(crate) fn print_as(
    format: OutputFormat,
    json: impl FnOnce() -> Value,
    text: impl FnOnce() -> String,
) -> io::Result<()> {
    match format {
        OutputFormat::Json => print_json(&json()),
        OutputFormat::Text => print_text(&text()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct AnswerFormatFlag {
    /// Print the answer as one JSON object
    #[arg(long)]
    json: bool,
}

impl From<AnswerFormatFlag> for OutputFormat {
    fn from(flag: AnswerFormatFlag) -> Self {
        flag.json.into()
    }
}

impl From<bool> for OutputFormat {
    fn from(json: bool) -> Self {
        if json { OutputFormat::Json } else { OutputFormat::Text }
    }
}

#[cfg(test)]
mod tests {
    use stead_engine::ErrorKind;

    use super::*;

    #[test]
    fn exit_code_follows_the_error_kind() {
        for (kind, code) in [
            (ErrorKind::BadRequest, 2),
            (ErrorKind::ProtectedPath, 3),
            (ErrorKind::InvalidPath, 3),
            (ErrorKind::Stale, 4),
            (ErrorKind::Conflict, 4),
            (ErrorKind::NotFound, 1),
            (ErrorKind::NoSpace, 1),
        ] {
            assert_eq!(CommandExit::for_error(kind).code(), code, "{kind:?}");
        }
    }
}
