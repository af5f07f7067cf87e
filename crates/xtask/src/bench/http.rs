//! `cargo xtask bench http`: reading one kilobyte over HTTP, beside the least that the same libraries do and beside a
//! published server, in one interleaved run; and ten thousand clients that listen.
//!
//! Clients and servers share the machine's cores, for each server alike. Promises that every answer is held against the
//! file, and that no process outlives the run.

mod crowd;
mod idle;
mod servers;

use std::{fs, path::PathBuf};

use super::{
    files::{SMALL, text},
    quiet::Quiet,
    statistics::shown,
};
use crate::web::Server;
use crowd::Turn;
use servers::Reading;

/// Turns of each server at each number of connections.
const ROUNDS_DEFAULT: usize = 5;
/// Requests of one turn.
const REQUESTS: usize = 3_000;
/// Connections at a time.
const CONNECTIONS: [usize; 3] = [1, 16, 64];

/// What is asked for.
struct Wish {
    rounds: usize,
    parts: Vec<Part>,
}

/// What can be measured alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Calls,
    Idle,
}

/// Measures and reports.
pub(super) fn run(arguments: &[String]) -> Result<(), String> {
    let wish = wish(arguments)?;
    let binary = super::build()?;
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    let make = |name: &str| -> Result<PathBuf, String> {
        let made = place.path().join(name);
        fs::create_dir_all(&made).map_err(|error| error.to_string())?;
        fs::write(made.join(SMALL.name), text(SMALL.bytes, 0)).map_err(|error| error.to_string())?;
        Ok(made)
    };
    let state = place.path().join("state");
    if wish.parts.contains(&Part::Calls) {
        let (own, others) = (make("own")?, make("others")?);
        let stead = Server::stead(&binary, &own, &state.join("calls"))?;
        let (bare, peer) = (servers::bare()?, servers::peer(&others)?);
        let readings = [
            servers::fetched(&bare),
            servers::plain(&stead),
            servers::posted(&bare),
            servers::mcp(&stead),
            servers::published(&peer, &others),
        ];
        calls(&readings, wish.rounds)?;
    }
    if wish.parts.contains(&Part::Idle) {
        idle::run(&binary, &make("idle")?, &state.join("idle"))?;
    }
    Ok(())
}

/// Every server at every number of connections, in turns.
fn calls(readings: &[Reading], rounds: usize) -> Result<(), String> {
    let mut quiet = Quiet::default();
    println!(
        "reading 1 KB, {rounds} turns of {REQUESTS} requests each; clients share the cores; peer: {}@{}",
        servers::PEER.0,
        servers::PEER.1
    );
    println!("| server | connections | calls a second | p50 ms | p99 ms |");
    println!("| --- | --- | --- | --- | --- |");
    for connections in CONNECTIONS {
        let mut turns: Vec<Turn> = readings.iter().map(|_| Turn::default()).collect();
        for _ in 0..rounds {
            for (reading, turn) in readings.iter().zip(&mut turns) {
                quiet.wait();
                crowd::ask(reading, connections, REQUESTS, turn)?;
            }
        }
        for (reading, turn) in readings.iter().zip(&turns) {
            println!(
                "| {} | {connections} | {} | {} | {} |",
                reading.name,
                shown(turn.rate.median().unwrap_or_default()),
                shown(turn.waits.median().unwrap_or_default()),
                shown(turn.waits.slowest().unwrap_or_default()),
            );
        }
    }
    println!("{} of {} turns began on a busy machine", quiet.busy, quiet.turns);
    Ok(())
}

fn wish(arguments: &[String]) -> Result<Wish, String> {
    let mut wish = Wish { rounds: ROUNDS_DEFAULT, parts: vec![Part::Calls, Part::Idle] };
    let mut left = arguments.iter();
    while let Some(flag) = left.next() {
        let value = left.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match (flag.as_str(), value.as_str()) {
            ("--rounds", given) => {
                let rounds = given.parse().ok().filter(|rounds| *rounds > 0);
                wish.rounds = rounds.ok_or_else(|| format!("'{given}' is no number of rounds"))?;
            }
            ("--only", "calls") => wish.parts = vec![Part::Calls],
            ("--only", "idle") => wish.parts = vec![Part::Idle],
            _ => return Err("knows --rounds N and --only calls|idle".to_owned()),
        }
    }
    Ok(wish)
}
