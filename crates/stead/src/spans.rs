//! Exports the spans of MCP calls to a collector, as OTLP JSON over plain HTTP. Spans are dropped if the collector is
//! unreachable or slow, so that calls are never delayed.
//!
//! The crates `opentelemetry-otlp` and `tracing-opentelemetry` (0.33, 0.34) are not used. Two OpenTelemetry crates
//! would replace about half of the span export, but add 15 to 45 dependencies.

use std::{
    collections::HashMap,
    fmt::Debug,
    io::{Read, Write},
    net::{TcpStream, ToSocketAddrs},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::output;

const QUEUED_SPANS_MAX: usize = 4_096;
const BATCH_MAX: usize = 512;
const BATCH_WAIT: Duration = Duration::from_secs(1);
const COLLECTOR_WAIT: Duration = Duration::from_secs(5);
const OPEN_SPANS_MAX: usize = 10_000;
const NAME_FIELD: &str = "otel.name";
const PARENT_FIELD: &str = "traceparent";
const ERROR_FIELD: &str = "error.type";

/// Starts the export if the environment names a collector. The sandbox must already be active, because the export
/// starts a thread.
pub(crate) fn start_export() {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let endpoint = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let base =
        || variable("OTEL_EXPORTER_OTLP_ENDPOINT").map(|base| format!("{}/v1/traces", base.trim_end_matches('/')));
    let Some(address) = endpoint.or_else(base) else { return };
    let name = variable("OTEL_SERVICE_NAME").unwrap_or_else(|| "stead".to_owned());
    let started = start_exporter(&address, &name).and_then(install_subscriber);
    if let Err(reason) = started {
        output::print_error(&format!("tracing is off, because OTEL_EXPORTER_OTLP_ENDPOINT cannot be used: {reason}"));
    }
}

struct OtlpEndpoint {
    authority: String,
    path: String,
    service_name: String,
}

fn start_exporter(address: &str, name: &str) -> Result<SyncSender<Value>, String> {
    let rest = address.strip_prefix("http://").ok_or("the collector address must start with http://")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let collector =
        OtlpEndpoint { authority: authority.to_owned(), path: format!("/{path}"), service_name: name.to_owned() };
    let (to, from) = sync_channel(QUEUED_SPANS_MAX);
    let run = move || export_batches(&collector, &from);
    std::thread::Builder::new().name("spans".to_owned()).spawn(run).map_err(|error| error.to_string())?;
    Ok(to)
}

fn export_batches(collector: &OtlpEndpoint, from: &Receiver<Value>) {
    let mut was_failing = false;
    while let Ok(first) = from.recv() {
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX {
            match from.recv_timeout(BATCH_WAIT) {
                Ok(span) => batch.push(span),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        let sent = collector.send_batch(&batch);
        match (&sent, was_failing) {
            (Err(error), false) => output::print_error(&format!(
                "cannot send trace spans to the OpenTelemetry collector: {error}; stead tries again with the next spans"
            )),
            (Ok(()), true) => output::print_note("trace spans reach the OpenTelemetry collector again"),
            (Err(_), true) | (Ok(()), false) => {}
        }
        was_failing = sent.is_err();
    }
}

impl OtlpEndpoint {
    fn send_batch(&self, batch: &[Value]) -> std::io::Result<()> {
        let body = json!({ "resourceSpans": [{
            "resource": { "attributes": [{ "key": "service.name", "value": { "stringValue": self.service_name } }] },
            "scopeSpans": [{ "scope": { "name": "stead", "version": env!("CARGO_PKG_VERSION") }, "spans": batch }],
        }] })
        .to_string();
        let address = self.authority.to_socket_addrs()?.next().ok_or(std::io::ErrorKind::NotFound)?;
        let mut stream = TcpStream::connect_timeout(&address, COLLECTOR_WAIT)?;
        stream.set_write_timeout(Some(COLLECTOR_WAIT))?;
        stream.set_read_timeout(Some(COLLECTOR_WAIT))?;
        write!(
            stream,
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.path,
            self.authority,
            body.len()
        )?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        match &status[9..] {
            b"200" | b"202" => Ok(()),
            other => Err(std::io::Error::other(format!("status {}", String::from_utf8_lossy(other)))),
        }
    }
}

#[derive(Default)]
struct OpenSpan {
    name: String,
    parent: Option<String>,
    is_error: bool,
    started_ms: u64,
    attributes: Vec<Value>,
}

impl OpenSpan {
    fn record_attribute(&mut self, name: &str, value: Value) {
        match name {
            NAME_FIELD => self.name = value["stringValue"].as_str().unwrap_or_default().to_owned(),
            PARENT_FIELD => self.parent = value["stringValue"].as_str().map(str::to_owned),
            _ => {
                self.is_error |= name == ERROR_FIELD;
                self.attributes.push(json!({ "key": name, "value": value }));
            }
        }
    }

    fn into_otlp(self, ended_ms: u64) -> Value {
        let random = |digits: usize| -> String {
            let bytes: [u8; 16] = stead_disk::random_bytes().unwrap_or_default();
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()[..digits].to_owned()
        };
        let mut parts = self.parent.as_deref().unwrap_or_default().split('-').skip(1);
        let (trace, parent) = (parts.next().map(str::to_owned), parts.next().unwrap_or_default().to_owned());
        json!({
            "traceId": trace.unwrap_or_else(|| random(32)),
            "spanId": random(16),
            "parentSpanId": parent,
            "name": self.name,
            "kind": 2,
            "startTimeUnixNano": format!("{}000000", self.started_ms),
            "endTimeUnixNano": format!("{ended_ms}000000"),
            "attributes": self.attributes,
            "status": { "code": if self.is_error { 2 } else { 0 } },
        })
    }
}

impl Visit for OpenSpan {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_attribute(field.name(), json!({ "stringValue": value }));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.record_attribute(field.name(), json!({ "intValue": value.to_string() }));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_attribute(field.name(), json!({ "stringValue": format!("{value:?}") }));
    }
}

struct SpanExportSubscriber {
    next_id: AtomicU64,
    open_spans: Mutex<HashMap<u64, (usize, OpenSpan)>>,
    clock: stead_disk::SystemClock,
    sender: SyncSender<Value>,
}

fn install_subscriber(sender: SyncSender<Value>) -> Result<(), String> {
    tracing::subscriber::set_global_default(SpanExportSubscriber {
        next_id: AtomicU64::new(1),
        open_spans: Mutex::default(),
        clock: stead_disk::SystemClock::default(),
        sender,
    })
    .map_err(|error| error.to_string())
}

impl SpanExportSubscriber {
    fn with_span<T>(&self, id: &Id, act: impl FnOnce(&mut (usize, OpenSpan)) -> T) -> Option<T> {
        let mut open_spans = self.open_spans.lock().unwrap_or_else(PoisonError::into_inner);
        open_spans.get_mut(&id.into_u64()).map(act)
    }
}

impl Subscriber for SpanExportSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target() == stead_protocols::SPAN_TARGET
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut known = OpenSpan { started_ms: self.clock.now_ms(), ..OpenSpan::default() };
        span.record(&mut known);
        let mut open_spans = self.open_spans.lock().unwrap_or_else(PoisonError::into_inner);
        if open_spans.len() < OPEN_SPANS_MAX {
            open_spans.insert(id, (1, known));
        }
        Id::from_u64(id)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        self.with_span(id, |(_, known)| values.record(known));
    }

    fn record_follows_from(&self, _id: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {}

    fn enter(&self, _id: &Id) {}

    fn exit(&self, _id: &Id) {}

    fn clone_span(&self, id: &Id) -> Id {
        self.with_span(id, |(count, _)| *count += 1);
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let left = self.with_span(&id, |(count, _)| {
            *count -= 1;
            *count
        });
        if left != Some(0) {
            return false;
        }
        let ended = self.open_spans.lock().unwrap_or_else(PoisonError::into_inner).remove(&id.into_u64());
        if let Some((_, known)) = ended {
            // Spans are dropped if the collector is too slow.
            drop(self.sender.try_send(known.into_otlp(self.clock.now_ms())));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn batch_is_sent_in_one_request() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let to = start_exporter(&address, "mine").unwrap();
        to.send(json!({ "name": "a" })).unwrap();
        to.send(json!({ "name": "b" })).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(COLLECTOR_WAIT)).unwrap();
        let mut request = String::new();
        while !request.ends_with("}]}]}") {
            let mut some = [0; 4096];
            let read = stream.read(&mut some).unwrap();
            assert!(read > 0, "{request}");
            request.push_str(&String::from_utf8_lossy(&some[..read]));
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        assert!(request.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{request}");
        assert!(
            request.contains("\"spans\":[{\"name\":\"a\"},{\"name\":\"b\"}]") && request.contains("mine"),
            "{request}"
        );
        start_exporter("https://collector.example", "mine").unwrap_err();
    }

    #[test]
    fn span_uses_otlp_attribute_names() {
        let (to, from) = sync_channel(1);
        let (next_id, open_spans) = (AtomicU64::new(1), Mutex::default());
        let collector =
            SpanExportSubscriber { next_id, open_spans, clock: stead_disk::SystemClock::default(), sender: to };
        tracing::subscriber::with_default(collector, || {
            let span = tracing::info_span!(
                target: stead_protocols::SPAN_TARGET,
                "mcp",
                otel.name = "tools/call read",
                mcp.method.name = "tools/call",
                jsonrpc.request.id = Some(7_i64),
                gen_ai.tool.name = None::<&str>,
                traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
                "error.type" = tracing::field::Empty,
            );
            span.record("error.type", "tool_error");
            drop(span.clone());
            tracing::info_span!("from another library");
        });
        let sent = from.try_recv().unwrap();
        assert_eq!(sent["traceId"], "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(sent["parentSpanId"], "b7ad6b7169203331");
        assert_eq!((&sent["name"], &sent["status"]["code"]), (&json!("tools/call read"), &json!(2)));
        let members = sent["attributes"].as_array().unwrap();
        let keys: Vec<&str> = members.iter().filter_map(|member| member["key"].as_str()).collect();
        assert_eq!(keys, ["mcp.method.name", "jsonrpc.request.id", "error.type"]);
        assert!(from.try_recv().is_err(), "only the span of the MCP target is sent");
    }
}
