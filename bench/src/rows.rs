//! The rows of the benchmark report. Stead and the baseline run once in every round, and take turns in running first,
//! so that changes of the machine's load affect both.

use crate::{
    bench_server::ListTiming,
    bench_servers::BenchServers,
    idle_wait::BenchIdleMachineWaiter,
    statistics::Samples,
    workspace_files::{self, BenchWorkspaceFileSpec, FILE_POOL, LARGE_DIRECTORY, LARGE_FILE, MEDIUM_FILE, SMALL_FILE},
};

pub(crate) struct BenchDefinition {
    /// The name of the measurement for the option `--only`.
    pub(crate) name: &'static str,
    pub(crate) measure:
        fn(&mut BenchServers, &mut BenchIdleMachineWaiter, usize) -> Result<Vec<BenchComparison>, String>,
}

/// All measurements, in the order of the report.
pub(crate) const BENCH_ROWS: &[BenchDefinition] = &[
    BenchDefinition { name: "start", measure: measure_start },
    BenchDefinition {
        name: "read-1k",
        measure: |field, quiet, rounds| measure_read(field, quiet, rounds, SMALL_FILE, 20),
    },
    BenchDefinition {
        name: "read-100k",
        measure: |field, quiet, rounds| measure_read(field, quiet, rounds, MEDIUM_FILE, 5),
    },
    BenchDefinition {
        name: "read-10m",
        measure: |field, quiet, rounds| measure_read(field, quiet, rounds, LARGE_FILE, 1),
    },
    BenchDefinition { name: "write-1k", measure: measure_write },
    BenchDefinition { name: "list-10k", measure: measure_list },
    BenchDefinition { name: "pipelined", measure: measure_pipelined_reads },
];

const WRITES_PER_ROUND: usize = 10;
/// The number of reads in each round that are not timed.
const WARM_UP_READS: usize = 3;

/// Measurements of the same thing for stead and for a baseline.
pub(crate) struct BenchComparison {
    pub(crate) title: String,
    pub(crate) unit: MeasurementUnit,
    pub(crate) stead: Samples,
    pub(crate) baseline_name: &'static str,
    pub(crate) baseline: Samples,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MeasurementUnit {
    Milliseconds,
    Megabytes,
}

impl MeasurementUnit {
    pub(crate) fn name(self) -> &'static str {
        match self {
            MeasurementUnit::Milliseconds => "ms",
            MeasurementUnit::Megabytes => "MB",
        }
    }
}

/// The usual baseline.
const REFERENCE_BASELINE: &str = "reference";
const SYNC_BASELINE: &str = "one fdatasync";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BenchComparisonSide {
    Stead,
    Baseline,
}

impl BenchComparison {
    pub(crate) fn new(what: impl Into<String>, baseline_name: &'static str) -> Self {
        Self {
            title: what.into(),
            unit: MeasurementUnit::Milliseconds,
            stead: Samples::default(),
            baseline_name,
            baseline: Samples::default(),
        }
    }

    pub(crate) fn push(&mut self, side: BenchComparisonSide, milliseconds: f64) {
        match side {
            BenchComparisonSide::Stead => self.stead.push(milliseconds),
            BenchComparisonSide::Baseline => self.baseline.push(milliseconds),
        }
    }
}

/// Runs stead and the baseline once in every round, and alternates which of them is first.
pub(crate) fn alternate_sides(
    quiet: &mut BenchIdleMachineWaiter,
    rounds: usize,
    mut turn: impl FnMut(BenchComparisonSide) -> Result<(), String>,
) -> Result<(), String> {
    for round in 0..rounds {
        let order = if round % 2 == 0 {
            [BenchComparisonSide::Stead, BenchComparisonSide::Baseline]
        } else {
            [BenchComparisonSide::Baseline, BenchComparisonSide::Stead]
        };
        for side in order {
            quiet.wait_until_idle();
            turn(side).map_err(|failure| format!("{side:?}: {failure}"))?;
        }
    }
    Ok(())
}

fn measure_start(
    field: &mut BenchServers,
    quiet: &mut BenchIdleMachineWaiter,
    rounds: usize,
) -> Result<Vec<BenchComparison>, String> {
    let mut known = BenchComparison::new("start to tools/list", REFERENCE_BASELINE);
    let mut first = BenchComparison::new("first start of all in a workspace", REFERENCE_BASELINE);
    let starts = &mut field.start_recipes;
    // Creates the state that later starts find.
    starts.stead.start_once()?;
    alternate_sides(quiet, rounds, |side| match side {
        BenchComparisonSide::Stead => {
            known.push(side, starts.stead.start_once()?);
            first.push(side, starts.fresh_start().start_once()?);
            Ok(())
        }
        BenchComparisonSide::Baseline => {
            let milliseconds = starts.reference.start_once()?;
            known.push(side, milliseconds);
            first.push(side, milliseconds);
            Ok(())
        }
    })?;
    Ok(vec![known, first])
}

fn measure_read(
    field: &mut BenchServers,
    quiet: &mut BenchIdleMachineWaiter,
    rounds: usize,
    sized: BenchWorkspaceFileSpec,
    calls: usize,
) -> Result<Vec<BenchComparison>, String> {
    let wanted = workspace_files::generate_text(sized.bytes, 0);
    let size =
        if sized.bytes < 1 << 20 { format!("{} KB", sized.bytes >> 10) } else { format!("{} MB", sized.bytes >> 20) };
    let mut comparison = BenchComparison::new(format!("read {size}"), REFERENCE_BASELINE);
    for _ in 0..WARM_UP_READS {
        field.fast.read_file(sized.name, &wanted)?;
        field.reference.read_file(sized.name, &wanted)?;
    }
    alternate_sides(quiet, rounds, |side| {
        let peer = match side {
            BenchComparisonSide::Stead => &mut field.fast,
            BenchComparisonSide::Baseline => &mut field.reference,
        };
        for _ in 0..calls {
            comparison.push(side, peer.read_file(sized.name, &wanted)?);
        }
        Ok(())
    })?;
    Ok(vec![comparison])
}

fn measure_write(
    field: &mut BenchServers,
    quiet: &mut BenchIdleMachineWaiter,
    rounds: usize,
) -> Result<Vec<BenchComparison>, String> {
    let mut fast = BenchComparison::new("overwrite 1 KB, durability fast", REFERENCE_BASELINE);
    alternate_sides(quiet, rounds, |side| {
        let peer = match side {
            BenchComparisonSide::Stead => &mut field.fast,
            BenchComparisonSide::Baseline => &mut field.reference,
        };
        for _ in 0..WRITES_PER_ROUND {
            fast.push(side, peer.overwrite()?);
        }
        Ok(())
    })?;
    let mut full = BenchComparison::new("overwrite 1 KB, durability full", SYNC_BASELINE);
    alternate_sides(quiet, rounds, |side| {
        for _ in 0..WRITES_PER_ROUND {
            let milliseconds = match side {
                BenchComparisonSide::Stead => field.full.overwrite()?,
                BenchComparisonSide::Baseline => field.time_sync()?,
            };
            full.push(side, milliseconds);
        }
        Ok(())
    })?;
    Ok(vec![fast, full])
}

fn measure_list(
    field: &mut BenchServers,
    quiet: &mut BenchIdleMachineWaiter,
    rounds: usize,
) -> Result<Vec<BenchComparison>, String> {
    let ListTiming { first_entries, pages, .. } = field.fast.list_directory()?;
    let entries = LARGE_DIRECTORY.1;
    let mut first =
        BenchComparison::new(format!("list {entries}: first page, {first_entries} entries"), REFERENCE_BASELINE);
    let mut all = BenchComparison::new(format!("list {entries}: all of them, {pages} pages"), REFERENCE_BASELINE);
    alternate_sides(quiet, rounds, |side| {
        let listed = match side {
            BenchComparisonSide::Stead => field.fast.list_directory()?,
            BenchComparisonSide::Baseline => field.reference.list_directory()?,
        };
        first.push(side, listed.first_milliseconds);
        all.push(side, listed.all_milliseconds);
        Ok(())
    })?;
    Ok(vec![first, all])
}

fn measure_pipelined_reads(
    field: &mut BenchServers,
    quiet: &mut BenchIdleMachineWaiter,
    rounds: usize,
) -> Result<Vec<BenchComparison>, String> {
    let mut comparison = BenchComparison::new(format!("{} pipelined reads of 1 KB", FILE_POOL.1), REFERENCE_BASELINE);
    field.fast.read_pool()?;
    field.reference.read_pool()?;
    alternate_sides(quiet, rounds, |side| {
        let milliseconds = match side {
            BenchComparisonSide::Stead => field.fast.read_pool()?,
            BenchComparisonSide::Baseline => field.reference.read_pool()?,
        };
        comparison.push(side, milliseconds);
        Ok(())
    })?;
    Ok(vec![comparison])
}

/// The peak memory of stead and of the reference server since their start.
pub(crate) fn measure_memory(field: &BenchServers) -> Result<BenchComparison, String> {
    Ok(BenchComparison {
        title: "peak memory".to_owned(),
        unit: MeasurementUnit::Megabytes,
        stead: Samples::single(field.fast.peak_megabytes()?),
        baseline_name: REFERENCE_BASELINE,
        baseline: Samples::single(field.reference.peak_megabytes()?),
    })
}
