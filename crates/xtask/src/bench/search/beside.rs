//! Small reads while a long search runs: how long a caller waits who asks beside one that has all cores at work.

use std::{fs, path::Path};

use serde_json::json;

use super::tree;
use crate::bench::{
    quiet::Quiet,
    rows::{Comparison, Side},
    speaker::Speaker,
    statistics::shown,
};

/// What is read, and how large it is.
const NAME: &str = "read-me.txt";
const BYTES: usize = 1 << 10;
/// Reads of one turn beside nothing.
const ALONE: usize = 200;

/// Reads beside searches, held against reads alone.
pub(super) fn reads(
    rounds: usize,
    workspace: &Path,
    stead: &mut Speaker,
    quiet: &mut Quiet,
) -> Result<Comparison, String> {
    println!("bench: a read beside a search");
    let path = workspace.join(NAME);
    fs::write(&path, "x".repeat(BYTES)).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut row = Comparison::new("read 1 KB while a search runs", "the same alone");
    let (long, short) = (json!({ "query": tree::FREQUENT, "all": true }), json!({ "path": NAME }));
    for _ in 0..rounds {
        quiet.wait();
        for _ in 0..ALONE {
            row.push(Side::Other, stead.call("read", &short)?.milliseconds);
        }
        quiet.wait();
        let (times, _) = stead.call_beside(("search", &long), ("read", &short))?;
        times.into_iter().for_each(|time| row.push(Side::Stead, time));
    }
    for (whose, samples) in [("beside a search", &row.stead), ("alone", &row.other)] {
        let cell = |value: Option<f64>| value.map_or_else(String::new, shown);
        let (middle, slow, slowest) = (cell(samples.median()), cell(samples.slow()), cell(samples.slowest()));
        println!("bench: {} reads {whose}: p50 {middle}, p90 {slow}, p99 {slowest} ms", samples.len());
    }
    Ok(row)
}
