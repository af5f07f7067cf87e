//! `cargo xtask bench http` measures reads of one kilobyte over HTTP, compared with a minimal server on the same
//! libraries and with a published server. It also measures ten thousand idle event streams.
//!
//! Clients and servers run on the same machine. Every response is compared with the file, and no process outlives the
//! benchmark.

mod idle_listeners;
mod load;
mod requests;

use std::{fs, path::PathBuf};

use crate::http_client::HttpServerProcess;
use crate::{
    idle_wait::BenchIdleMachineWaiter,
    statistics::format_significant,
    workspace_files::{SMALL_FILE, generate_text},
};
use load::HttpLoadBenchSamples;
use requests::BenchHttpRequest;

/// How often each server is measured with each number of connections.
const ROUNDS_DEFAULT: usize = 5;
const REQUESTS_PER_ROUND: usize = 3_000;
/// The measured numbers of concurrent connections.
const CONNECTION_COUNTS: [usize; 3] = [1, 16, 64];

struct HttpBenchOptions {
    rounds: usize,
    parts: Vec<HttpBenchPart>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HttpBenchPart {
    Calls,
    IdleListeners,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let wish = parse_options(arguments)?;
    let binary = crate::build_release_binary()?;
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let make = |name: &str| -> Result<PathBuf, String> {
        let made = place.path().join(name);
        fs::create_dir_all(&made).map_err(|error| error.to_string())?;
        fs::write(made.join(SMALL_FILE.name), generate_text(SMALL_FILE.bytes, 0)).map_err(|error| error.to_string())?;
        Ok(made)
    };
    let state = place.path().join("state");
    if wish.parts.contains(&HttpBenchPart::Calls) {
        let (own, others) = (make("own")?, make("others")?);
        let stead = HttpServerProcess::start_stead(&binary, &own, &state.join("calls"))?;
        let (bare, peer) = (requests::start_bare_server()?, requests::start_published_server(&others)?);
        let readings = [
            requests::bare_get_request(&bare),
            requests::rest_request(&stead),
            requests::bare_post_request(&bare),
            requests::mcp_request(&stead),
            requests::published_server_request(&peer, &others),
        ];
        measure_calls(&readings, wish.rounds)?;
    }
    if wish.parts.contains(&HttpBenchPart::IdleListeners) {
        idle_listeners::measure_idle_listeners(&binary, &make("idle")?, &state.join("idle"))?;
    }
    Ok(())
}

/// Measures every server with every number of connections, in turn.
fn measure_calls(readings: &[BenchHttpRequest], rounds: usize) -> Result<(), String> {
    let mut quiet = BenchIdleMachineWaiter::default();
    println!(
        "reading 1 KB, {rounds} turns of {REQUESTS_PER_ROUND} requests each; clients share the cores; peer: {}@{}",
        requests::PUBLISHED_SERVER.0,
        requests::PUBLISHED_SERVER.1
    );
    println!("| server | connections | calls a second | p50 ms | p99 ms |");
    println!("| --- | --- | --- | --- | --- |");
    for connections in CONNECTION_COUNTS {
        let mut turns: Vec<HttpLoadBenchSamples> = readings.iter().map(|_| HttpLoadBenchSamples::default()).collect();
        for _ in 0..rounds {
            for (reading, turn) in readings.iter().zip(&mut turns) {
                quiet.wait_until_idle();
                load::run_load(reading, connections, REQUESTS_PER_ROUND, turn)?;
            }
        }
        for (reading, turn) in readings.iter().zip(&turns) {
            println!(
                "| {} | {connections} | {} | {} | {} |",
                reading.name,
                format_significant(turn.rate.median().unwrap_or_default()),
                format_significant(turn.latencies.median().unwrap_or_default()),
                format_significant(turn.latencies.percentile_99().unwrap_or_default()),
            );
        }
    }
    println!("{} of {} turns began on a busy machine", quiet.busy_turns, quiet.turns);
    Ok(())
}

fn parse_options(arguments: &[String]) -> Result<HttpBenchOptions, String> {
    let mut wish =
        HttpBenchOptions { rounds: ROUNDS_DEFAULT, parts: vec![HttpBenchPart::Calls, HttpBenchPart::IdleListeners] };
    let mut left = arguments.iter();
    while let Some(flag) = left.next() {
        let value = left.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match (flag.as_str(), value.as_str()) {
            ("--rounds", given) => {
                let rounds = given.parse().ok().filter(|rounds| *rounds > 0);
                wish.rounds = rounds.ok_or_else(|| format!("invalid number of rounds: '{given}'"))?;
            }
            ("--only", "calls") => wish.parts = vec![HttpBenchPart::Calls],
            ("--only", "idle") => wish.parts = vec![HttpBenchPart::IdleListeners],
            _ => return Err("usage: --rounds N and --only calls|idle".to_owned()),
        }
    }
    Ok(wish)
}
