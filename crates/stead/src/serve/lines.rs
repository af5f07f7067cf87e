//! The log of the server: one line a request on standard error, as JSON or for people. Lines are written by a thread of their
//! own: when nobody reads them, requests go on, lines are left out, and the next line says how many.

use std::{
    io::{IsTerminal, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::Duration,
};

use clap::{Args, ValueEnum};
use faces::http::{Answered, Called, Log};
use serde_json::{Map, Value, json};

use crate::{
    show::{self, Problem},
    time,
};

/// Lines that wait to be written.
const WAITING_MAX: usize = 8_192;
/// Bytes that are written at once.
const BATCH_BYTES_MAX: usize = 64 << 10;
/// How long a server that ends waits for its last lines.
const FLUSH_WAIT: Duration = Duration::from_secs(1);
/// The first status that says that the server failed, and the first that says that it refused.
const FAILED: u16 = 500;
const REFUSED: u16 = 400;

/// How the server tells what happens.
#[derive(Debug, Args)]
pub(crate) struct LogFlags {
    /// Which requests are told on standard error: none, those that failed, also those that were refused, or all
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "info")]
    log: Level,
    /// How: for people, as JSON lines, or by itself (for people at a terminal, else as JSON)
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "auto")]
    log_format: Format,
}

/// From which severity on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Level {
    Off,
    Error,
    Warn,
    Info,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Auto,
    Plain,
    Json,
}

impl LogFlags {
    /// From now on everything on standard error is JSON, if that was asked for.
    pub(crate) fn settle(&self) {
        match self.log_format {
            Format::Json => show::speak_json(),
            Format::Auto | Format::Plain => {}
        }
    }

    /// Who keeps the log. Starts a thread, so the wall must stand.
    pub(crate) fn keep(&self) -> Result<Option<Arc<Lines>>, Problem> {
        let form = match self.log_format {
            Format::Plain => Form::Plain,
            Format::Json => Form::Json,
            Format::Auto if std::io::stderr().is_terminal() => Form::Plain,
            Format::Auto => Form::Json,
        };
        match self.log {
            Level::Off => Ok(None),
            level @ (Level::Error | Level::Warn | Level::Info) => {
                Lines::start(level, form).map(|lines| Some(Arc::new(lines)))
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    Json,
}

/// What goes to the thread that writes.
enum Word {
    Line(String),
    /// Says when everything before it is out.
    Flush(SyncSender<()>),
}

/// The log.
pub(crate) struct Lines {
    level: Level,
    form: Form,
    clock: disk::SystemClock,
    to: SyncSender<Word>,
    lost: Arc<AtomicU64>,
}

impl Lines {
    fn start(level: Level, form: Form) -> Result<Self, Problem> {
        let (to, from) = sync_channel(WAITING_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let seen = lost.clone();
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write(&from, &seen, form))
            .map_err(|error| Problem::Outside(format!("the log cannot start: {error}")))?;
        Ok(Self { level, form, clock: disk::SystemClock::new(), to, lost })
    }

    /// Waits a little for the last lines.
    pub(crate) fn flush(&self) {
        let (done, out) = sync_channel(1);
        if self.to.try_send(Word::Flush(done)).is_ok() {
            // Whatever is not out by then is lost with the process.
            out.recv_timeout(FLUSH_WAIT).unwrap_or_default();
        }
    }
}

impl Log for Lines {
    fn answered(&self, request: Answered) {
        let level = level(request.status);
        if level > self.level {
            return;
        }
        let time = time::iso_utc_ms(i64::try_from(self.clock.now_ms()).unwrap_or(i64::MAX));
        let line = match self.form {
            Form::Json => format!("{}\n", object(&time, level, &request)),
            Form::Plain => plain(&time, level, &request),
        };
        if self.to.try_send(Word::Line(line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn level(status: u16) -> Level {
    match status {
        FAILED.. => Level::Error,
        REFUSED.. => Level::Warn,
        _ => Level::Info,
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Off => "off",
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
    }
}

/// The members of a line, but those that are the same in every one.
fn members(request: &Answered) -> Map<String, Value> {
    let mut members = Map::new();
    let mut with = |name: &str, value: Value| members.insert(name.to_owned(), value).map_or((), drop);
    with("id", request.id.clone().into());
    with("route", request.route.into());
    with("method", request.method.into());
    request.principal.iter().for_each(|principal| with("principal", principal.clone().into()));
    request.workspace.iter().for_each(|workspace| with("workspace", workspace.clone().into()));
    match request.calls.first.as_slice() {
        [] => {}
        [Called { operation, failed, entry }] if request.calls.count == 1 => {
            with("operation", (*operation).into());
            failed.iter().for_each(|failed| with("failed", (*failed).into()));
            entry.iter().for_each(|entry| with("entry", (*entry).into()));
        }
        several => {
            let told = |called: &Called| json!({ "operation": called.operation, "failed": called.failed, "entry": called.entry });
            with("calls", several.iter().map(told).collect());
            with("calls_count", request.calls.count.into());
        }
    }
    with("status", request.status.into());
    with("duration_us", u64::try_from(request.took.as_micros()).unwrap_or(u64::MAX).into());
    members
}

fn object(time: &str, level: Level, request: &Answered) -> Value {
    let mut line = Map::new();
    line.insert("time".to_owned(), time.into());
    line.insert("level".to_owned(), word(level).into());
    line.insert("event".to_owned(), "request".into());
    line.extend(members(request));
    Value::Object(line)
}

fn plain(time: &str, level: Level, request: &Answered) -> String {
    let mut line = format!("{time} {} request", word(level));
    for (name, value) in members(request) {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        line.push_str(&format!(" {name}={value}"));
    }
    line.push('\n');
    line
}

/// Writes what comes until nobody can send any more.
fn write(from: &Receiver<Word>, lost: &AtomicU64, form: Form) {
    let mut err = std::io::stderr();
    while let Ok(first) = from.recv() {
        let (mut batch, mut done) = (String::new(), Vec::new());
        let mut next = Some(first);
        while let Some(word) = next.take() {
            match word {
                Word::Line(line) => batch.push_str(&line),
                Word::Flush(tell) => done.push(tell),
            }
            if batch.len() < BATCH_BYTES_MAX {
                next = from.try_recv().ok();
            }
        }
        let left_out = lost.swap(0, Ordering::Relaxed);
        if left_out > 0 {
            batch.push_str(&match form {
                Form::Json => {
                    format!("{}\n", json!({ "level": "warn", "event": "left_out", "lines": left_out }))
                }
                Form::Plain => format!("stead: {left_out} lines were left out here: nobody read them\n"),
            });
        }
        // Standard error may be closed; there is nobody left to tell.
        drop(err.write_all(batch.as_bytes()));
        // Whoever asked may have stopped waiting.
        done.iter().for_each(|tell| tell.send(()).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use faces::http::Calls;

    use super::*;

    fn answered(status: u16, calls: Vec<Called>) -> Answered {
        Answered {
            id: "7".to_owned(),
            route: "files",
            method: "PUT",
            principal: Some("agent:a".to_owned()),
            workspace: Some("one".to_owned()),
            calls: Calls { count: calls.len(), first: calls },
            status,
            took: Duration::from_micros(1500),
        }
    }

    #[test]
    fn a_line_says_who_what_and_what_came_of_it() {
        let write = Called { operation: "write", failed: None, entry: Some(9) };
        let line = object("T", Level::Info, &answered(201, vec![write])).to_string();
        assert_eq!(
            line,
            "{\"time\":\"T\",\"level\":\"info\",\"event\":\"request\",\"id\":\"7\",\"route\":\"files\",\"method\":\"PUT\",\
             \"principal\":\"agent:a\",\"workspace\":\"one\",\"operation\":\"write\",\"entry\":9,\"status\":201,\"duration_us\":1500}"
        );
        let stale = Called { operation: "write", failed: Some("stale"), entry: None };
        let line = plain("T", Level::Warn, &answered(412, vec![stale]));
        assert_eq!(
            line,
            "T warn request id=7 route=files method=PUT principal=agent:a workspace=one operation=write failed=stale \
             status=412 duration_us=1500\n"
        );
        let two = object("T", Level::Info, &answered(200, vec![write, stale]));
        assert_eq!((&two["calls"][1]["failed"], &two["calls_count"]), (&json!("stale"), &json!(2)));
    }

    #[test]
    fn a_status_has_its_level() {
        assert_eq!([200, 404, 499, 503].map(level), [Level::Info, Level::Warn, Level::Warn, Level::Error]);
    }
}
