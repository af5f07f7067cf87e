//! Writes the request log to standard error, one line per request. A separate thread writes the lines, and lines are
//! dropped when the queue is full, so that logging never blocks requests.

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
use serde_json::{Map, Value, json};
use stead_protocols::http::{HttpRequestLogEntry, RequestLogCall, RequestLogSink};

use crate::output::{self, CommandError, OutputFormat};
use stead_engine::UtcTime;

const QUEUED_LINES_MAX: usize = 8_192;
const BATCH_BYTES_MAX: usize = 64 << 10;
const FLUSH_WAIT: Duration = Duration::from_secs(1);
const SERVER_ERROR_STATUS: u16 = 500;
const CLIENT_ERROR_STATUS: u16 = 400;

#[derive(Debug, Args)]
pub(crate) struct RequestLogFlags {
    /// Requests to log on standard error: error = status 500 and above, warn = 400 and above, info = all
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "info")]
    log: LogLevel,
    /// Log format: auto = plain at a terminal and JSON otherwise
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "auto")]
    log_format: LogFormatArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormatArg {
    Auto,
    Plain,
    Json,
}

impl RequestLogFlags {
    pub(crate) fn apply_format(&self) {
        if self.log_format == LogFormatArg::Json {
            output::use_json_messages();
        }
    }

    /// Starts the request log. The sandbox must already be active, because the request log starts a thread.
    pub(crate) fn start(&self) -> Result<Option<Arc<StderrRequestLog>>, CommandError> {
        let form = match self.log_format {
            LogFormatArg::Plain => OutputFormat::Text,
            LogFormatArg::Json => OutputFormat::Json,
            LogFormatArg::Auto if std::io::stderr().is_terminal() => OutputFormat::Text,
            LogFormatArg::Auto => OutputFormat::Json,
        };
        match self.log {
            LogLevel::Off => Ok(None),
            level @ (LogLevel::Error | LogLevel::Warn | LogLevel::Info) => {
                StderrRequestLog::start(level, form).map(|lines| Some(Arc::new(lines)))
            }
        }
    }
}

enum RequestLogWriterCommand {
    Line(String),
    /// Asks the log thread to confirm that it has written all earlier lines.
    Flush(SyncSender<()>),
}

pub(crate) struct StderrRequestLog {
    level: LogLevel,
    format: OutputFormat,
    clock: stead_disk::SystemClock,
    sender: SyncSender<RequestLogWriterCommand>,
    dropped_lines: Arc<AtomicU64>,
}

impl StderrRequestLog {
    fn start(level: LogLevel, form: OutputFormat) -> Result<Self, CommandError> {
        let (sender, receiver) = sync_channel(QUEUED_LINES_MAX);
        let dropped_lines = Arc::new(AtomicU64::new(0));
        let thread_dropped = dropped_lines.clone();
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_lines(&receiver, &thread_dropped, form))
            .map_err(|error| CommandError::System(format!("cannot start the log thread: {error}")))?;
        Ok(Self { level, format: form, clock: stead_disk::SystemClock::default(), sender, dropped_lines })
    }

    pub(crate) fn flush(&self) {
        let (done, flushed) = sync_channel(1);
        if self.sender.try_send(RequestLogWriterCommand::Flush(done)).is_ok() {
            // Lines that are not written within this time are lost.
            flushed.recv_timeout(FLUSH_WAIT).unwrap_or_default();
        }
    }
}

impl RequestLogSink for StderrRequestLog {
    fn log_request(&self, request: HttpRequestLogEntry) {
        let level = level_of_status(request.status);
        if level > self.level {
            return;
        }
        let time = UtcTime { unix_ms: i64::try_from(self.clock.now_ms()).unwrap_or(i64::MAX) }.to_string();
        let line = match self.format {
            OutputFormat::Json => format!("{}\n", json_line(&time, level, &request)),
            OutputFormat::Text => plain_line(&time, level, &request),
        };
        if self.sender.try_send(RequestLogWriterCommand::Line(line)).is_err() {
            self.dropped_lines.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn level_of_status(status: u16) -> LogLevel {
    match status {
        SERVER_ERROR_STATUS.. => LogLevel::Error,
        CLIENT_ERROR_STATUS.. => LogLevel::Warn,
        _ => LogLevel::Info,
    }
}

fn level_name(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Off => "off",
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info",
    }
}

fn request_fields(request: &HttpRequestLogEntry) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut with = |name: &str, value: Value| fields.insert(name.to_owned(), value).map_or((), drop);
    with("id", request.id.clone().into());
    with("route", request.route.into());
    with("method", request.method.into());
    request.principal.iter().for_each(|principal| with("principal", principal.clone().into()));
    request.workspace.iter().for_each(|workspace| with("workspace", workspace.clone().into()));
    match request.calls.first_calls.as_slice() {
        [] => {}
        [RequestLogCall { operation, error_kind, entry }] if request.calls.count == 1 => {
            with("operation", (*operation).into());
            error_kind.iter().for_each(|kind| with("failed", (*kind).into()));
            entry.iter().for_each(|entry| with("entry", (*entry).into()));
        }
        several => {
            let to_json = |called: &RequestLogCall| json!({ "operation": called.operation, "failed": called.error_kind, "entry": called.entry });
            with("calls", several.iter().map(to_json).collect());
            with("calls_count", request.calls.count.into());
        }
    }
    with("status", request.status.into());
    with("duration_us", u64::try_from(request.duration.as_micros()).unwrap_or(u64::MAX).into());
    fields
}

fn json_line(time: &str, level: LogLevel, request: &HttpRequestLogEntry) -> Value {
    let mut line = Map::new();
    line.insert("time".to_owned(), time.into());
    line.insert("level".to_owned(), level_name(level).into());
    line.insert("event".to_owned(), "request".into());
    line.extend(request_fields(request));
    Value::Object(line)
}

fn plain_line(time: &str, level: LogLevel, request: &HttpRequestLogEntry) -> String {
    let mut line = format!("{time} {} request", level_name(level));
    for (name, value) in request_fields(request) {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        line.push_str(&format!(" {name}={value}"));
    }
    line.push('\n');
    line
}

fn write_lines(receiver: &Receiver<RequestLogWriterCommand>, dropped_lines: &AtomicU64, form: OutputFormat) {
    let mut err = std::io::stderr();
    while let Ok(first) = receiver.recv() {
        let (mut batch, mut done) = (String::new(), Vec::new());
        let mut next = Some(first);
        while let Some(message) = next.take() {
            match message {
                RequestLogWriterCommand::Line(line) => batch.push_str(&line),
                RequestLogWriterCommand::Flush(sender) => done.push(sender),
            }
            if batch.len() < BATCH_BYTES_MAX {
                next = receiver.try_recv().ok();
            }
        }
        let dropped_count = dropped_lines.swap(0, Ordering::Relaxed);
        if dropped_count > 0 {
            batch.push_str(&match form {
                OutputFormat::Json => {
                    format!("{}\n", json!({ "level": "warn", "event": "left_out", "lines": dropped_count }))
                }
                OutputFormat::Text => {
                    format!(
                        "stead: {dropped_count} log lines were dropped, because standard error was not read in time\n"
                    )
                }
            });
        }
        // Standard error may be closed.
        drop(err.write_all(batch.as_bytes()));
        // The caller of `flush` may have stopped waiting.
        done.iter().for_each(|sender| sender.send(()).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use stead_protocols::http::LoggedCallsOfHttpRequest;

    use super::*;

    fn request_with(status: u16, calls: Vec<RequestLogCall>) -> HttpRequestLogEntry {
        HttpRequestLogEntry {
            id: "7".to_owned(),
            route: "files",
            method: "PUT",
            principal: Some("agent:a".to_owned()),
            workspace: Some("one".to_owned()),
            calls: LoggedCallsOfHttpRequest { count: calls.len(), first_calls: calls },
            status,
            duration: Duration::from_micros(1500),
        }
    }

    #[test]
    fn log_line_has_client_request_and_status() {
        let write = RequestLogCall { operation: "write", error_kind: None, entry: Some(9) };
        let line = json_line("T", LogLevel::Info, &request_with(201, vec![write])).to_string();
        assert_eq!(
            line,
            "{\"time\":\"T\",\"level\":\"info\",\"event\":\"request\",\"id\":\"7\",\"route\":\"files\",\"method\":\"PUT\",\
             \"principal\":\"agent:a\",\"workspace\":\"one\",\"operation\":\"write\",\"entry\":9,\"status\":201,\"duration_us\":1500}"
        );
        let stale = RequestLogCall { operation: "write", error_kind: Some("stale"), entry: None };
        let line = plain_line("T", LogLevel::Warn, &request_with(412, vec![stale]));
        assert_eq!(
            line,
            "T warn request id=7 route=files method=PUT principal=agent:a workspace=one operation=write failed=stale \
             status=412 duration_us=1500\n"
        );
        let two = json_line("T", LogLevel::Info, &request_with(200, vec![write, stale]));
        assert_eq!((&two["calls"][1]["failed"], &two["calls_count"]), (&json!("stale"), &json!(2)));
    }

    #[test]
    fn log_level_follows_the_status() {
        assert_eq!(
            [200, 404, 499, 503].map(level_of_status),
            [LogLevel::Info, LogLevel::Warn, LogLevel::Warn, LogLevel::Error]
        );
    }
}
