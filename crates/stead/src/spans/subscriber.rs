//! Collects open spans of the protocols, and sends each to the exporter when it ends.

use std::{
    collections::HashMap,
    fmt::Debug,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::SyncSender,
    },
};

use serde_json::{Value, json};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Open spans; more are dropped.
const OPEN_SPANS_MAX: usize = 10_000;
/// Fields that describe the span itself.
const NAME_FIELD: &str = "otel.name";
const PARENT_FIELD: &str = "traceparent";
const ERROR_FIELD: &str = "error.type";

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

    /// The span in OTLP form.
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

struct SpanSubscriber {
    next_id: AtomicU64,
    open_spans: Mutex<HashMap<u64, (usize, OpenSpan)>>,
    clock: stead_disk::SystemClock,
    sender: SyncSender<Value>,
}

/// Installs the subscriber for the rest of the process.
pub(super) fn install(to: SyncSender<Value>) -> Result<(), String> {
    tracing::subscriber::set_global_default(SpanSubscriber {
        next_id: AtomicU64::new(1),
        open_spans: Mutex::default(),
        clock: stead_disk::SystemClock::new(),
        sender: to,
    })
    .map_err(|error| error.to_string())
}

impl SpanSubscriber {
    fn with_span<T>(&self, id: &Id, act: impl FnOnce(&mut (usize, OpenSpan)) -> T) -> Option<T> {
        let mut open_spans = self.open_spans.lock().unwrap_or_else(PoisonError::into_inner);
        open_spans.get_mut(&id.into_u64()).map(act)
    }
}

impl Subscriber for SpanSubscriber {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        of.is_span() && of.target() == stead_protocols::SPAN_TARGET
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
    use super::*;

    #[test]
    fn span_uses_otlp_attribute_names() {
        let (to, from) = std::sync::mpsc::sync_channel(1);
        let (next, lasting, clock) = (AtomicU64::new(1), Mutex::default(), stead_disk::SystemClock::new());
        let collector = SpanSubscriber { next_id: next, open_spans: lasting, clock, sender: to };
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
            tracing::info_span!("of somebody else");
        });
        let told = from.try_recv().unwrap();
        assert_eq!(told["traceId"], "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(told["parentSpanId"], "b7ad6b7169203331");
        assert_eq!((&told["name"], &told["status"]["code"]), (&json!("tools/call read"), &json!(2)));
        let members = told["attributes"].as_array().unwrap();
        let keys: Vec<&str> = members.iter().filter_map(|member| member["key"].as_str()).collect();
        assert_eq!(keys, ["mcp.method.name", "jsonrpc.request.id", "error.type"]);
        assert!(from.try_recv().is_err(), "nothing else is sent");
    }
}
