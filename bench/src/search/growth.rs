//! `cargo xtask bench search --growth` measures searches and their index on trees of ten thousand, a hundred thousand
//! and a million files.

use std::path::Path;

use super::{generated_tree, indexed, ripgrep::Ripgrep};
use crate::{
    idle_wait::BenchIdleMachineWaiter,
    report::{BenchReport, BenchRunConditions},
};

const FILE_COUNTS: [usize; 3] = [10_000, 100_000, 1_000_000];
const ROUNDS: usize = 5;
const REPORT_NAME: &str = "bench-search-growth";

pub(super) fn run(ripgrep: &Ripgrep, binary: &Path, place: &Path) -> Result<(), String> {
    let mut quiet = BenchIdleMachineWaiter::default();
    let mut comparisons = Vec::new();
    for files in FILE_COUNTS {
        let here = place.join(files.to_string());
        println!("bench: making {files} files in {}", here.display());
        generated_tree::generate_tree(&here.join("tree"), files)?;
        for mut row in indexed::measure_indexed_search(ROUNDS, ripgrep, binary, &here, &mut quiet)? {
            row.title = format!("{files} files: {}", row.title);
            comparisons.push(row);
        }
        std::fs::remove_dir_all(&here).map_err(|error| format!("{}: {error}", here.display()))?;
    }
    let run = BenchRunConditions { rounds: ROUNDS, reference: ripgrep.version.clone(), idle_waiter: quiet };
    BenchReport::new(run, comparisons).write_named(&crate::needs::target_directory(), REPORT_NAME)
}
