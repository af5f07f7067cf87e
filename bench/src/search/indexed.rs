//! Measures searches with an index: with a walk of the tree that opens only candidate files, and on a watched tree
//! without a walk. Also measures the cost of building the index.

use std::{path::Path, process::Command, thread, time::Duration, time::Instant};

use serde_json::{Value, json};

use super::{
    generated_tree,
    ripgrep::{BenchIgnoreRulesMode, Ripgrep},
    start_client,
};
use crate::{
    bench_servers,
    idle_wait::BenchIdleMachineWaiter,
    mcp_client::{McpBenchClient, to_milliseconds},
    rows::{BenchComparison, BenchComparisonSide, MeasurementUnit, alternate_sides},
    statistics::Samples,
};

/// The wait before indexing, because the server does not index recently modified files.
const SETTLE_TIME: Duration = Duration::from_secs(4);
/// The longest wait until searches use the index of the watched tree.
const READY_TIMEOUT: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The index counts as used once a search takes less than this share of the time of the first search.
const FASTER_SHARE_MAX: f64 = 0.5;

/// Compares indexed searches with ripgrep, and measures the cost of the index.
pub(super) fn measure_indexed_search(
    rounds: usize,
    ripgrep: &Ripgrep,
    binary: &Path,
    place: &Path,
    quiet: &mut BenchIdleMachineWaiter,
) -> Result<Vec<BenchComparison>, String> {
    let (workspace, state) = (place.join("tree"), place.join("indexed-state"));
    thread::sleep(SETTLE_TIME);
    let (built, build_ms) = build_index(binary, &workspace, &state)?;
    println!("bench: index built in {build_ms:.0} ms: {built}");
    let mut rows = Vec::new();
    for (how, index) in [("walked", "use"), ("watched", "on")] {
        let mut recipe = bench_servers::stead_launch(binary, &workspace, &state, "fast");
        recipe.arguments.extend(["--index".into(), index.into()]);
        let mut stead = start_client(&recipe)?;
        if index == "on" {
            let waited = wait_until_index_is_used(&mut stead)?;
            rows.push(single_value(
                "from the first search until the tree is watched",
                MeasurementUnit::Milliseconds,
                waited,
            ));
        }
        for (what, query) in
            [("a rare literal", generated_tree::RARE_TEXT), ("a frequent literal", generated_tree::FREQUENT_TEXT)]
        {
            println!("bench: {what}, {how} index");
            rows.push(compare_query(rounds, ripgrep, &mut stead, &workspace, (what, query, how), quiet)?);
        }
        rows.push(single_value(
            &format!("peak memory, {how} index"),
            MeasurementUnit::Megabytes,
            stead.peak_megabytes()?,
        ));
        stead.stop();
    }
    rows.push(single_value("building the index, from nothing", MeasurementUnit::Milliseconds, build_ms));
    let bytes = built["bytes"].as_f64().unwrap_or(0.0);
    rows.push(single_value("the index on the disk", MeasurementUnit::Megabytes, bytes / f64::from(1 << 20)));
    Ok(rows)
}

fn single_value(what: &str, unit: MeasurementUnit, value: f64) -> BenchComparison {
    BenchComparison { unit, stead: Samples::single(value), ..BenchComparison::new(what, "–") }
}

/// Builds the index with `stead index build`.
fn build_index(binary: &Path, workspace: &Path, state: &Path) -> Result<(Value, f64), String> {
    let began = Instant::now();
    let output = Command::new(binary)
        .args(["index", "build", "--json", "--durability", "fast", "--workspace"])
        .arg(workspace)
        .arg("--state")
        .arg(state)
        .output()
        .map_err(|error| error.to_string())?;
    let took = to_milliseconds(began.elapsed());
    let facts = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok((facts, took))
}

/// Repeats a search until it is much faster than the first time, which means that it uses the index.
fn wait_until_index_is_used(stead: &mut McpBenchClient) -> Result<f64, String> {
    let arguments = json!({ "query": generated_tree::RARE_TEXT });
    let began = Instant::now();
    let first = stead.call_tool("search", &arguments)?.milliseconds;
    loop {
        thread::sleep(POLL_INTERVAL);
        let now = stead.call_tool("search", &arguments)?.milliseconds;
        if now < first * FASTER_SHARE_MAX {
            return Ok(to_milliseconds(began.elapsed()));
        }
        if began.elapsed() > READY_TIMEOUT {
            return Err(format!("the tree is still not watched: {now:.1} ms of {first:.1} at first"));
        }
    }
}

fn compare_query(
    rounds: usize,
    ripgrep: &Ripgrep,
    stead: &mut McpBenchClient,
    workspace: &Path,
    (what, query, how): (&str, &str, &str),
    quiet: &mut BenchIdleMachineWaiter,
) -> Result<BenchComparison, String> {
    let mut row = BenchComparison::new(format!("search: {what}, {how} index"), "ripgrep");
    let arguments = json!({ "query": query });
    let expected = ripgrep.count_lines(workspace, query, BenchIgnoreRulesMode::Respect)?.0;
    alternate_sides(quiet, rounds, |side| {
        let (found, milliseconds) = match side {
            BenchComparisonSide::Stead => {
                let timed = stead.call_tool("search", &arguments)?;
                (timed.result["structuredContent"]["total"].as_u64(), timed.milliseconds)
            }
            BenchComparisonSide::Baseline => {
                let (count, milliseconds) = ripgrep.count_lines(workspace, query, BenchIgnoreRulesMode::Respect)?;
                (Some(count), milliseconds)
            }
        };
        row.push(side, milliseconds);
        if found == Some(expected) { Ok(()) } else { Err(format!("{found:?} of {expected} hits")) }
    })?;
    Ok(row)
}
