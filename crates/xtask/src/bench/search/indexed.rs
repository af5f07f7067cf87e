//! The same searches with a warm index: by a walk that opens only what can match, and on a watched tree without a walk.
//! What the index costs is told beside them.

use std::{path::Path, process::Command, thread, time::Duration, time::Instant};

use serde_json::{Value, json};

use super::{
    ripgrep::{Ripgrep, Rules},
    started, tree,
};
use crate::bench::{
    field,
    quiet::Quiet,
    rows::{Comparison, Side, Unit, alternate},
    speaker::{Speaker, milliseconds},
    statistics::Samples,
};

/// Files must have stood still for so long before an index takes them in.
const SETTLED: Duration = Duration::from_secs(4);
/// How long a server is given to watch the tree.
const READY: Duration = Duration::from_secs(300);
/// Between two looks whether it does.
const LOOK: Duration = Duration::from_millis(500);
/// A watched search takes no longer than this share of a walked one.
const SHARE: f64 = 0.5;

/// Searches with an index, beside ripgrep, and what the index costs.
pub(super) fn rows(
    rounds: usize,
    ripgrep: &Ripgrep,
    binary: &Path,
    place: &Path,
    quiet: &mut Quiet,
) -> Result<Vec<Comparison>, String> {
    let (workspace, state) = (place.join("tree"), place.join("indexed-state"));
    thread::sleep(SETTLED);
    let (built, build_ms) = built(binary, &workspace, &state)?;
    println!("bench: index built in {build_ms:.0} ms: {built}");
    let mut rows = Vec::new();
    for (how, index) in [("walked", "use"), ("watched", "on")] {
        let mut recipe = field::stead(binary, &workspace, &state, "fast");
        recipe.arguments.extend(["--index".into(), index.into()]);
        let mut stead = started(&recipe)?;
        if index == "on" {
            let waited = wait_until_watched(&mut stead)?;
            rows.push(alone("from the first search until the tree is watched", Unit::Milliseconds, waited));
        }
        for (what, query) in [("a rare literal", tree::RARE), ("a frequent literal", tree::FREQUENT)] {
            println!("bench: {what}, {how} index");
            rows.push(compared(rounds, ripgrep, &mut stead, &workspace, (what, query, how), quiet)?);
        }
        rows.push(alone(&format!("peak memory, {how} index"), Unit::Megabytes, stead.peak_megabytes()?));
        stead.stop();
    }
    rows.push(alone("building the index, from nothing", Unit::Milliseconds, build_ms));
    let bytes = built["bytes"].as_f64().unwrap_or(0.0);
    rows.push(alone("the index on the disk", Unit::Megabytes, bytes / f64::from(1 << 20)));
    Ok(rows)
}

fn alone(what: &str, unit: Unit, value: f64) -> Comparison {
    Comparison { unit, stead: Samples::one(value), ..Comparison::new(what, "–") }
}

/// Builds the index by the command line.
fn built(binary: &Path, workspace: &Path, state: &Path) -> Result<(Value, f64), String> {
    let began = Instant::now();
    let said = Command::new(binary)
        .args(["index", "build", "--json", "--durability", "fast", "--workspace"])
        .arg(workspace)
        .arg("--state")
        .arg(state)
        .output()
        .map_err(|error| error.to_string())?;
    let took = milliseconds(began.elapsed());
    let facts = serde_json::from_slice(&said.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&said.stderr)))?;
    Ok((facts, took))
}

/// Searches until it goes much faster than at first.
fn wait_until_watched(stead: &mut Speaker) -> Result<f64, String> {
    let arguments = json!({ "query": tree::RARE });
    let began = Instant::now();
    let first = stead.call("search", &arguments)?.milliseconds;
    loop {
        thread::sleep(LOOK);
        let now = stead.call("search", &arguments)?.milliseconds;
        if now < first * SHARE {
            return Ok(milliseconds(began.elapsed()));
        }
        if began.elapsed() > READY {
            return Err(format!("the tree is still not watched: {now:.1} ms of {first:.1} at first"));
        }
    }
}

fn compared(
    rounds: usize,
    ripgrep: &Ripgrep,
    stead: &mut Speaker,
    workspace: &Path,
    (what, query, how): (&str, &str, &str),
    quiet: &mut Quiet,
) -> Result<Comparison, String> {
    let mut row = Comparison::new(format!("search: {what}, {how} index"), "ripgrep");
    let arguments = json!({ "query": query });
    let expected = ripgrep.count(workspace, query, Rules::Obeyed)?.0;
    alternate(quiet, rounds, |side| {
        let (found, milliseconds) = match side {
            Side::Stead => {
                let timed = stead.call("search", &arguments)?;
                (timed.result["structuredContent"]["total"].as_u64(), timed.milliseconds)
            }
            Side::Other => {
                let (count, milliseconds) = ripgrep.count(workspace, query, Rules::Obeyed)?;
                (Some(count), milliseconds)
            }
        };
        row.push(side, milliseconds);
        if found == Some(expected) { Ok(()) } else { Err(format!("{found:?} of {expected} hits")) }
    })?;
    Ok(row)
}
