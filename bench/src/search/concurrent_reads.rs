//! Measures the latency of small reads while a long search uses all cores.

use std::{fs, path::Path};

use serde_json::json;

use super::generated_tree;
use crate::{
    idle_wait::BenchIdleMachineWaiter,
    mcp_client::McpBenchClient,
    rows::{BenchComparison, BenchComparisonSide},
    statistics::format_significant,
};

const READ_FILE_NAME: &str = "read-me.txt";
const READ_FILE_BYTES: usize = 1 << 10;
const READS_ALONE: usize = 200;

/// Compares the latency of reads during a search with the latency of reads alone.
pub(super) fn measure_concurrent_reads(
    rounds: usize,
    workspace: &Path,
    stead: &mut McpBenchClient,
    quiet: &mut BenchIdleMachineWaiter,
) -> Result<BenchComparison, String> {
    println!("bench: a read beside a search");
    let path = workspace.join(READ_FILE_NAME);
    fs::write(&path, "x".repeat(READ_FILE_BYTES)).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut row = BenchComparison::new("read 1 KB while a search runs", "the same alone");
    let (long, short) =
        (json!({ "query": generated_tree::FREQUENT_TEXT, "all": true }), json!({ "path": READ_FILE_NAME }));
    for _ in 0..rounds {
        quiet.wait_until_idle();
        for _ in 0..READS_ALONE {
            row.push(BenchComparisonSide::Baseline, stead.call_tool("read", &short)?.milliseconds);
        }
        quiet.wait_until_idle();
        let (times, _) = stead.call_concurrently(("search", &long), ("read", &short))?;
        times.into_iter().for_each(|time| row.push(BenchComparisonSide::Stead, time));
    }
    for (whose, samples) in [("beside a search", &row.stead), ("alone", &row.baseline)] {
        let cell = |value: Option<f64>| value.map_or_else(String::new, format_significant);
        let (middle, slow, slowest) =
            (cell(samples.median()), cell(samples.percentile_90()), cell(samples.percentile_99()));
        println!("bench: {} reads {whose}: p50 {middle}, p90 {slow}, p99 {slowest} ms", samples.len());
    }
    Ok(row)
}
