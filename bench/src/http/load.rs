//! Load of concurrent HTTP connections, each of which sends its next request as soon as it has received a response.

use std::{
    sync::{Barrier, Mutex, PoisonError},
    thread,
    time::Instant,
};

use super::requests::BenchHttpRequest;
use crate::{
    http_client::{BenchHttpClientConnection, HttpAnswer},
    statistics::Samples,
};

#[derive(Default)]
pub(super) struct HttpLoadBenchSamples {
    /// The latency of each response in milliseconds.
    pub(super) latencies: Samples,
    /// The number of responses per second, one sample per round.
    pub(super) rate: Samples,
}

/// Sends about `requests` requests over `connections` connections and checks the content of every response.
pub(super) fn run_load(
    reading: &BenchHttpRequest,
    connections: usize,
    requests: usize,
    turn: &mut HttpLoadBenchSamples,
) -> Result<(), String> {
    let (each, ready) = (requests.div_ceil(connections), Barrier::new(connections + 1));
    let (waits, failed) = (Mutex::new(Vec::new()), Mutex::new(None));
    let seconds = thread::scope(|scope| {
        let asking: Vec<_> = (0..connections)
            .map(|_| {
                scope.spawn(|| match run_connection(reading, each, &ready) {
                    Ok(own) => waits.lock().unwrap_or_else(PoisonError::into_inner).extend(own),
                    Err(failure) => *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure),
                })
            })
            .collect();
        ready.wait();
        let started = Instant::now();
        for thread in asking {
            drop(thread.join());
        }
        started.elapsed().as_secs_f64()
    });
    if let Some(failure) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(format!("{}: {failure}", reading.name));
    }
    let waits = waits.into_inner().unwrap_or_else(PoisonError::into_inner);
    #[expect(clippy::cast_precision_loss, reason = "a count of answers")]
    turn.rate.push(waits.len() as f64 / seconds);
    waits.into_iter().for_each(|wait| turn.latencies.push(wait));
    Ok(())
}

fn run_connection(reading: &BenchHttpRequest, requests: usize, ready: &Barrier) -> Result<Vec<f64>, String> {
    let opened = open_warm_connection(reading);
    // The other connections wait at the barrier even if this one failed.
    ready.wait();
    let (mut connection, mut answer) = opened?;
    let mut waits = Vec::with_capacity(requests);
    for _ in 0..requests {
        let sent_at = Instant::now();
        connection.send_request(&reading.request, &mut answer).map_err(|error| error.to_string())?;
        waits.push(sent_at.elapsed().as_secs_f64() * 1e3);
        check_answer(reading, &answer)?;
    }
    Ok(waits)
}

/// Opens a connection and sends one request that is not measured.
fn open_warm_connection(reading: &BenchHttpRequest) -> Result<(BenchHttpClientConnection, HttpAnswer), String> {
    let mut connection = BenchHttpClientConnection::open(&reading.address).map_err(|error| error.to_string())?;
    let mut answer = HttpAnswer::default();
    connection.send_request(&reading.request, &mut answer).map_err(|error| error.to_string())?;
    check_answer(reading, &answer)?;
    Ok((connection, answer))
}

fn check_answer(reading: &BenchHttpRequest, answer: &HttpAnswer) -> Result<(), String> {
    let contains = answer.body.windows(reading.expected_content.len()).any(|part| part == reading.expected_content);
    if answer.status == 200 && contains {
        return Ok(());
    }
    let body = String::from_utf8_lossy(&answer.body);
    Err(format!("status {} without the whole file: {}", answer.status, body.chars().take(300).collect::<String>()))
}
