//! Spans while they last: what is known of each is kept until it ends, and then sent on. Knows only the spans of the faces.

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

/// Spans that last at the same time; more are not kept.
const LASTING_MAX: usize = 10_000;
/// Members that say something about the span itself.
const NAME: &str = "otel.name";
const PARENT: &str = "traceparent";
const ERROR: &str = "error.type";

/// What is known of one span.
#[derive(Default)]
struct Known {
    name: String,
    parent: Option<String>,
    is_error: bool,
    begun_ms: u64,
    members: Vec<Value>,
}

impl Known {
    fn take(&mut self, name: &str, value: Value) {
        match name {
            NAME => self.name = value["stringValue"].as_str().unwrap_or_default().to_owned(),
            PARENT => self.parent = value["stringValue"].as_str().map(str::to_owned),
            _ => {
                self.is_error |= name == ERROR;
                self.members.push(json!({ "key": name, "value": value }));
            }
        }
    }

    /// The span as a collector takes it.
    fn told(self, ended_ms: u64) -> Value {
        let random = |digits: usize| -> String {
            let bytes: [u8; 16] = disk::random_bytes().unwrap_or_default();
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
            "startTimeUnixNano": format!("{}000000", self.begun_ms),
            "endTimeUnixNano": format!("{ended_ms}000000"),
            "attributes": self.members,
            "status": { "code": if self.is_error { 2 } else { 0 } },
        })
    }
}

impl Visit for Known {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field.name(), json!({ "stringValue": value }));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.take(field.name(), json!({ "intValue": value.to_string() }));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.take(field.name(), json!({ "stringValue": format!("{value:?}") }));
    }
}

/// Takes every span of the faces.
struct Collector {
    next: AtomicU64,
    lasting: Mutex<HashMap<u64, (usize, Known)>>,
    clock: disk::SystemClock,
    to: SyncSender<Value>,
}

/// Collects from now on, for the rest of the process.
pub(super) fn install(to: SyncSender<Value>) -> Result<(), String> {
    let (next, lasting, clock) = (AtomicU64::new(1), Mutex::default(), disk::SystemClock::new());
    tracing::subscriber::set_global_default(Collector { next, lasting, clock, to })
        .map_err(|error| error.to_string())
}

impl Collector {
    fn with<T>(&self, id: &Id, act: impl FnOnce(&mut (usize, Known)) -> T) -> Option<T> {
        let mut lasting = self.lasting.lock().unwrap_or_else(PoisonError::into_inner);
        lasting.get_mut(&id.into_u64()).map(act)
    }
}

impl Subscriber for Collector {
    fn enabled(&self, of: &Metadata<'_>) -> bool {
        of.is_span() && of.target() == faces::SPANS
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut known = Known { begun_ms: self.clock.now_ms(), ..Known::default() };
        span.record(&mut known);
        let mut lasting = self.lasting.lock().unwrap_or_else(PoisonError::into_inner);
        if lasting.len() < LASTING_MAX {
            lasting.insert(id, (1, known));
        }
        Id::from_u64(id)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        self.with(id, |(_, known)| values.record(known));
    }

    fn record_follows_from(&self, _id: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {}

    fn enter(&self, _id: &Id) {}

    fn exit(&self, _id: &Id) {}

    fn clone_span(&self, id: &Id) -> Id {
        self.with(id, |(count, _)| *count += 1);
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let left = self.with(&id, |(count, _)| {
            *count -= 1;
            *count
        });
        if left != Some(0) {
            return false;
        }
        let ended = self.lasting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id.into_u64());
        if let Some((_, known)) = ended {
            // A collector that is too slow costs spans.
            drop(self.to.try_send(known.told(self.clock.now_ms())));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_told_with_the_names_of_the_conventions() {
        let (to, from) = std::sync::mpsc::sync_channel(1);
        let (next, lasting, clock) = (AtomicU64::new(1), Mutex::default(), disk::SystemClock::new());
        let collector = Collector { next, lasting, clock, to };
        tracing::subscriber::with_default(collector, || {
            let span = tracing::info_span!(
                target: faces::SPANS,
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
