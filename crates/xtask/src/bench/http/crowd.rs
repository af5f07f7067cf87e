//! Many connections that all ask at once, each for the next answer as soon as it has the last.

use std::{
    sync::{Barrier, Mutex, PoisonError},
    thread,
    time::Instant,
};

use super::servers::Reading;
use crate::{
    bench::statistics::Samples,
    web::{Answer, Connection},
};

/// What one turn of a crowd came to.
#[derive(Default)]
pub(super) struct Turn {
    /// Milliseconds of every answer.
    pub(super) waits: Samples,
    /// Answers in a second.
    pub(super) rate: Samples,
}

/// Asks this many times over this many connections. Every answer is held against what it must contain.
pub(super) fn ask(
    reading: &Reading,
    connections: usize,
    requests: usize,
    turn: &mut Turn,
) -> Result<(), String> {
    let (each, ready) = (requests.div_ceil(connections), Barrier::new(connections + 1));
    let (waits, failed) = (Mutex::new(Vec::new()), Mutex::new(None));
    let seconds = thread::scope(|scope| {
        let asking: Vec<_> = (0..connections)
            .map(|_| {
                scope.spawn(|| match one(reading, each, &ready) {
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
    waits.into_iter().for_each(|wait| turn.waits.push(wait));
    Ok(())
}

/// One connection's part.
fn one(reading: &Reading, requests: usize, ready: &Barrier) -> Result<Vec<f64>, String> {
    let opened = open(reading);
    // The others wait for this one whether it came to a connection or not.
    ready.wait();
    let (mut connection, mut answer) = opened?;
    let mut waits = Vec::with_capacity(requests);
    for _ in 0..requests {
        let asked = Instant::now();
        connection.ask(&reading.request, &mut answer).map_err(|error| error.to_string())?;
        waits.push(asked.elapsed().as_secs_f64() * 1e3);
        whole(reading, &answer)?;
    }
    Ok(waits)
}

/// A connection that has answered once.
fn open(reading: &Reading) -> Result<(Connection, Answer), String> {
    let mut connection = Connection::open(&reading.address).map_err(|error| error.to_string())?;
    let mut answer = Answer::default();
    connection.ask(&reading.request, &mut answer).map_err(|error| error.to_string())?;
    whole(reading, &answer)?;
    Ok((connection, answer))
}

fn whole(reading: &Reading, answer: &Answer) -> Result<(), String> {
    let contains = answer.body.windows(reading.contains.len()).any(|part| part == reading.contains);
    if answer.status == 200 && contains {
        return Ok(());
    }
    let body = String::from_utf8_lossy(&answer.body);
    Err(format!(
        "answered {} and not the whole file: {}",
        answer.status,
        body.chars().take(300).collect::<String>()
    ))
}
