//! Spans of MCP calls on their way to a collector: OTLP as JSON over plain HTTP, to the address that the usual variables name.
//! Built with the feature `spans`; without it nothing happens here. A collector that is away or slow costs spans, never a call.

#[cfg(feature = "spans")]
mod collect;
#[cfg(feature = "spans")]
mod export;

/// Begins to send spans, if an address is named. Starts a thread, so the wall must stand.
#[cfg(feature = "spans")]
pub(crate) fn begin() {
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let whole = named("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let base = || {
        named("OTEL_EXPORTER_OTLP_ENDPOINT").map(|base| format!("{}/v1/traces", base.trim_end_matches('/')))
    };
    let Some(address) = whole.or_else(base) else { return };
    let name = named("OTEL_SERVICE_NAME").unwrap_or_else(|| "stead".to_owned());
    let begun = export::start(&address, &name).and_then(collect::install);
    if let Err(reason) = begun {
        crate::show::complain(&format!("spans are not sent: {reason}"));
    }
}

/// Begins nothing.
#[cfg(not(feature = "spans"))]
pub(crate) fn begin() {}
