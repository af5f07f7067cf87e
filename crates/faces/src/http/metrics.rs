//! What the server counts about itself, in the text form that Prometheus reads. Names routes and statuses, never a path, a
//! principal or a token.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    body::Body,
    extract::State,
    http::{HeaderValue, Response, StatusCode, header},
};

use super::{hall::Hall, routes::Route};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4");
/// Upper ends of the classes of duration, in seconds.
const CLASSES: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 10.0];

/// How long the requests of one route took.
#[derive(Debug, Default, Clone, Copy)]
struct Durations {
    counts: [u64; CLASSES.len()],
    count: u64,
    seconds: f64,
}

/// Everything that is counted.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    answered: Mutex<BTreeMap<(Route, u16), u64>>,
    durations: Mutex<BTreeMap<Route, Durations>>,
    connections: AtomicI64,
    streams: AtomicI64,
    /// Connections that were closed because too many strangers came from their address.
    crowded_out: AtomicU64,
}

impl Metrics {
    pub(super) fn answered(&self, route: Route, status: StatusCode, took: Duration) {
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        *answered.entry((route, status.as_u16())).or_default() += 1;
        drop(answered);
        let mut durations = self.durations.lock().unwrap_or_else(PoisonError::into_inner);
        let of_route = durations.entry(route).or_default();
        let seconds = took.as_secs_f64();
        of_route.count += 1;
        of_route.seconds += seconds;
        if let Some(class) = CLASSES.iter().position(|end| seconds <= *end) {
            of_route.counts[class] += 1;
        }
    }

    pub(super) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn disconnected(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn crowded_out(&self) {
        self.crowded_out.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stream_opened(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stream_closed(&self) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    fn text(&self, guests: usize) -> String {
        let mut text = String::new();
        let mut line = |line: std::fmt::Arguments<'_>| text.push_str(&format!("{line}\n"));
        line(format_args!("# TYPE stead_http_requests_total counter"));
        for ((route, status), count) in &*self.answered.lock().unwrap_or_else(PoisonError::into_inner) {
            let route = route.word();
            line(format_args!("stead_http_requests_total{{route=\"{route}\",status=\"{status}\"}} {count}"));
        }
        line(format_args!("# TYPE stead_http_request_seconds histogram"));
        for (route, durations) in &*self.durations.lock().unwrap_or_else(PoisonError::into_inner) {
            let route = route.word();
            let mut below = 0;
            for (end, count) in CLASSES.iter().zip(durations.counts) {
                below += count;
                line(format_args!(
                    "stead_http_request_seconds_bucket{{route=\"{route}\",le=\"{end}\"}} {below}"
                ));
            }
            let Durations { count, seconds, .. } = durations;
            line(format_args!("stead_http_request_seconds_bucket{{route=\"{route}\",le=\"+Inf\"}} {count}"));
            line(format_args!("stead_http_request_seconds_sum{{route=\"{route}\"}} {seconds}"));
            line(format_args!("stead_http_request_seconds_count{{route=\"{route}\"}} {count}"));
        }
        let crowded_out = self.crowded_out.load(Ordering::Relaxed);
        line(format_args!("# TYPE stead_http_strangers_refused_total counter"));
        line(format_args!("stead_http_strangers_refused_total {crowded_out}"));
        let gauges = [
            ("stead_http_connections", self.connections.load(Ordering::Relaxed)),
            ("stead_http_streams", self.streams.load(Ordering::Relaxed)),
            ("stead_http_clients", i64::try_from(guests).unwrap_or(i64::MAX)),
        ];
        for (name, value) in gauges {
            line(format_args!("# TYPE {name} gauge\n{name} {value}"));
        }
        text
    }
}

/// `GET /metrics`.
pub(super) async fn show(State(hall): State<Arc<Hall>>) -> Response<Body> {
    let mut response = Response::new(Body::from(hall.metrics.text(hall.guests())));
    response.headers_mut().insert(header::CONTENT_TYPE, TEXT);
    response
}
