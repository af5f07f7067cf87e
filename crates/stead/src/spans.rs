//! Exports spans of MCP calls to a collector: OTLP as JSON over plain HTTP, to the address in the standard `OTEL_…` variables.
//! Without the feature `spans` nothing is compiled in. An unreachable or slow collector loses spans and never delays a call.

#[cfg(feature = "spans")]
mod otlp;
#[cfg(feature = "spans")]
mod subscriber;

/// Starts the export if an address is set. Starts a thread, so the sandbox must be active.
#[cfg(feature = "spans")]
pub(crate) fn start_export() {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let endpoint = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let base =
        || variable("OTEL_EXPORTER_OTLP_ENDPOINT").map(|base| format!("{}/v1/traces", base.trim_end_matches('/')));
    let Some(address) = endpoint.or_else(base) else { return };
    let name = variable("OTEL_SERVICE_NAME").unwrap_or_else(|| "stead".to_owned());
    let started = otlp::start_exporter(&address, &name).and_then(subscriber::install);
    if let Err(reason) = started {
        crate::output::print_error(&format!("spans are not exported: {reason}"));
    }
}

#[cfg(not(feature = "spans"))]
pub(crate) fn start_export() {}
