//! What a person reads: answers on standard output, everything else on standard error, and an exit code that scripts
//! can rely on. Nothing that came from a file reaches a terminal unescaped.

use std::{
    io::{self, IsTerminal, Write},
    sync::atomic::{AtomicBool, Ordering},
};

use engine::{Failure, Fault, Kind};
use serde_json::Value;
use text::visible::{visible, visible_line};

/// How the program ends. Documented in `docs/reference/exit-codes.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Fine,
    /// The world or the machine was in the way.
    Failed,
    /// The command line is wrong.
    Usage,
    /// A rule refused it.
    Refused,
    /// What the caller saw is no longer so.
    Stale,
    /// A verification found tampering.
    Tampered,
    /// As the program that was run for somebody ended.
    Other(u8),
}

impl Exit {
    /// The number the shell sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Fine => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Refused => 3,
            Exit::Stale => 4,
            Exit::Tampered => 5,
            Exit::Other(code) => code,
        }
    }
}

/// What a command answers.
pub(crate) type Outcome = Result<Exit, Problem>;

/// Why a command did not end well.
#[derive(Debug)]
pub(crate) enum Problem {
    /// A call failed.
    Failure(Box<Failure>),
    /// The command line is wrong.
    Usage(String),
    /// The reader of our output went away.
    Closed,
    /// Something outside the workspace could not be read or written.
    Outside(String),
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Problem::Failure(Box::new(failure))
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Problem::Closed;
        }
        Problem::Outside(format!("writing the answer failed: {error}"))
    }
}

/// A command line that clap could not catch.
pub(crate) fn usage(error: impl ToString) -> Problem {
    Problem::Usage(error.to_string())
}

/// Says what went wrong, and picks the exit code.
pub(crate) fn exit(outcome: Outcome) -> Exit {
    match outcome {
        Ok(exit) => exit,
        Err(Problem::Failure(failure)) => {
            complain(&format!("{}: {}", failure.kind.code(), failure.detail));
            for line in failure.shown().into_iter().flat_map(str::lines) {
                say(&mut io::stderr(), &format!("  {}", escaped(&line.replace('\t', "  "))));
            }
            if let Some(hint) = &failure.hint {
                say(&mut io::stderr(), &format!("  next: {}", escaped(hint)));
            }
            of_kind(failure.kind)
        }
        Err(Problem::Usage(message)) => {
            complain(&message);
            Exit::Usage
        }
        Err(Problem::Closed) => Exit::Fine,
        Err(Problem::Outside(message)) => {
            complain(&message);
            Exit::Failed
        }
    }
}

fn of_kind(kind: Kind) -> Exit {
    match (kind, kind.fault()) {
        (Kind::BadRequest | Kind::UnknownOperation, _) => Exit::Usage,
        (Kind::Stale | Kind::BaseRequired | Kind::Conflict | Kind::HistoryLost | Kind::ApprovalStale, _) => {
            Exit::Stale
        }
        (_, Fault::Refusal) => Exit::Refused,
        (_, Fault::World | Fault::Machine) => Exit::Failed,
    }
}

/// Set when everything on standard error is for programs.
static JSON: AtomicBool = AtomicBool::new(false);

/// From now on, remarks and complaints are JSON lines.
pub(crate) fn speak_json() {
    JSON.store(true, Ordering::Relaxed);
}

/// One line on standard error about something that went wrong.
pub(crate) fn complain(message: &str) {
    if JSON.load(Ordering::Relaxed) {
        return say(&mut io::stderr(), &object("error", message));
    }
    let mut err = io::stderr();
    let (start, end) = if colours(&err) { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    say(&mut err, &format!("{start}stead:{end} {}", escaped(message)));
}

/// One line on standard error that is good to know.
pub(crate) fn remark(message: &str) {
    if JSON.load(Ordering::Relaxed) {
        return say(&mut io::stderr(), &object("info", message));
    }
    say(&mut io::stderr(), &format!("stead: {}", escaped(message)));
}

fn object(level: &str, message: &str) -> String {
    serde_json::json!({ "level": level, "event": "message", "message": message }).to_string()
}

fn say(out: &mut impl Write, line: &str) {
    // Standard error may be closed; there is nobody left to tell.
    drop(writeln!(out, "{line}"));
}

fn colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn escaped(text: &str) -> String {
    visible_line(text).into_owned()
}

/// Text as an answer: escaped on a terminal, as it is elsewhere.
pub(crate) fn text(answer: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        out.write_all(visible(answer).as_bytes())?;
    } else {
        out.write_all(answer.as_bytes())?;
    }
    if !answer.is_empty() && !answer.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Bytes as an answer, as they are.
pub(crate) fn bytes(answer: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(answer)?;
    out.flush()
}

/// Whether the answer goes to a person's terminal.
pub(crate) fn to_terminal() -> bool {
    io::stdout().is_terminal()
}

/// An object as an answer, on one line.
pub(crate) fn json(answer: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{answer}")?;
    out.flush()
}

/// How an answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// For people.
    Text,
    /// For machines.
    Json,
}

impl From<bool> for Form {
    fn from(json: bool) -> Self {
        if json { Form::Json } else { Form::Text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_exit_code() {
        for (kind, code) in [
            (Kind::BadRequest, 2),
            (Kind::ProtectedPath, 3),
            (Kind::InvalidPath, 3),
            (Kind::Stale, 4),
            (Kind::Conflict, 4),
            (Kind::NotFound, 1),
            (Kind::NoSpace, 1),
        ] {
            assert_eq!(of_kind(kind).code(), code, "{kind:?}");
        }
    }
}
