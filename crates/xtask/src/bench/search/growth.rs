//! `cargo xtask bench search --growth`: what searches and their index cost on trees of ten thousand, a hundred thousand and
//! a million files. Opt-in: it takes long and needs room.

use std::path::Path;

use super::{indexed, ripgrep::Ripgrep, tree};
use crate::bench::{
    quiet::Quiet,
    report::{Report, Run},
};

/// Files of the trees, the smallest first.
const FILES: [usize; 3] = [10_000, 100_000, 1_000_000];
/// Turns of each side.
const ROUNDS: usize = 5;
/// What the report's files are called.
const REPORT: &str = "bench-search-growth";

/// Measures on every tree and reports.
pub(super) fn run(ripgrep: &Ripgrep, binary: &Path, place: &Path) -> Result<(), String> {
    let mut quiet = Quiet::default();
    let mut comparisons = Vec::new();
    for files in FILES {
        let here = place.join(files.to_string());
        println!("bench: making {files} files in {}", here.display());
        tree::make(&here.join("tree"), files)?;
        for mut row in indexed::rows(ROUNDS, ripgrep, binary, &here, &mut quiet)? {
            row.what = format!("{files} files: {}", row.what);
            comparisons.push(row);
        }
        std::fs::remove_dir_all(&here).map_err(|error| format!("{}: {error}", here.display()))?;
    }
    let run = Run { rounds: ROUNDS, reference: ripgrep.version.clone(), quiet };
    Report::new(run, comparisons).write_as(&crate::needs::target_directory(), REPORT)
}
