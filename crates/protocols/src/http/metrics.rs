//! Metrics of the server in the Prometheus text format. The metric labels are routes and status codes, and never a
//! path, a principal or a token.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    body::Body,
    extract::State,
    http::{HeaderValue, Response, StatusCode, header},
};

use super::{routes::HttpRouteGroup, state::HttpServerState};

const METRICS_CONTENT_TYPE: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4");
/// The upper bounds of the request duration buckets, in seconds.
const DURATION_BUCKETS: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0];

#[derive(Debug, Default, Clone, Copy)]
struct HttpRequestDurationHistogram {
    bucket_counts: [u64; DURATION_BUCKETS.len()],
    total_count: u64,
    total_seconds: f64,
}

#[derive(Debug, Default)]
pub(super) struct HttpMetrics {
    responses: Mutex<BTreeMap<(HttpRouteGroup, u16), u64>>,
    durations: Mutex<BTreeMap<HttpRouteGroup, HttpRequestDurationHistogram>>,
    connections: AtomicI64,
    streams: AtomicI64,
    /// A connection is refused if its address has too many unauthenticated connections.
    refused_connections: AtomicU64,
}

impl HttpMetrics {
    pub(super) fn record_response(&self, route: HttpRouteGroup, status: StatusCode, elapsed: Duration) {
        let mut responses = crate::lock(&self.responses);
        *responses.entry((route, status.as_u16())).or_default() += 1;
        drop(responses);
        let mut durations = crate::lock(&self.durations);
        let histogram = durations.entry(route).or_default();
        let seconds = elapsed.as_secs_f64();
        histogram.total_count += 1;
        histogram.total_seconds += seconds;
        if let Some(bucket) = DURATION_BUCKETS.iter().position(|end| seconds <= *end) {
            histogram.bucket_counts[bucket] += 1;
        }
    }

    pub(super) fn connection_opened(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn connection_closed(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn count_refused_connection(&self) {
        self.refused_connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stream_opened(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stream_closed(&self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    fn render(&self, clients: usize) -> String {
        let mut text = String::new();
        let mut line = |line: std::fmt::Arguments<'_>| text.push_str(&format!("{line}\n"));
        line(format_args!("# TYPE stead_http_requests_total counter"));
        for ((route, status), count) in &*crate::lock(&self.responses) {
            let route = route.name();
            line(format_args!("stead_http_requests_total{{route=\"{route}\",status=\"{status}\"}} {count}"));
        }
        line(format_args!("# TYPE stead_http_request_seconds histogram"));
        for (route, durations) in &*crate::lock(&self.durations) {
            let route = route.name();
            let mut below = 0;
            for (end, count) in DURATION_BUCKETS.iter().zip(durations.bucket_counts) {
                below += count;
                line(format_args!("stead_http_request_seconds_bucket{{route=\"{route}\",le=\"{end}\"}} {below}"));
            }
            let HttpRequestDurationHistogram { total_count: count, total_seconds: seconds, .. } = durations;
            line(format_args!("stead_http_request_seconds_bucket{{route=\"{route}\",le=\"+Inf\"}} {count}"));
            line(format_args!("stead_http_request_seconds_sum{{route=\"{route}\"}} {seconds}"));
            line(format_args!("stead_http_request_seconds_count{{route=\"{route}\"}} {count}"));
        }
        let refused = self.refused_connections.load(Ordering::Relaxed);
        line(format_args!("# TYPE stead_http_strangers_refused_total counter"));
        line(format_args!("stead_http_strangers_refused_total {refused}"));
        let gauges = [
            ("stead_http_connections", self.connections.load(Ordering::Relaxed)),
            ("stead_http_streams", self.streams.load(Ordering::Relaxed)),
            ("stead_http_clients", i64::try_from(clients).unwrap_or(i64::MAX)),
        ];
        for (name, value) in gauges {
            line(format_args!("# TYPE {name} gauge\n{name} {value}"));
        }
        text
    }
}

pub(super) async fn serve_metrics(State(state): State<Arc<HttpServerState>>) -> Response<Body> {
    let mut response = Response::new(Body::from(state.metrics.render(state.client_count())));
    response.headers_mut().insert(header::CONTENT_TYPE, METRICS_CONTENT_TYPE);
    response
}
