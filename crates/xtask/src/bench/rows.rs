//! What is measured. A row takes turns: both sides once a round, the one that begins alternating, so that a machine
//! that gets slower or busier does so for both.

use super::{
    field::Field,
    files::{self, LARGE, MANY, MIDDLE, POOL, SMALL, Sized},
    peer::Listed,
    quiet::Quiet,
    statistics::Samples,
};

/// One thing to measure.
pub(super) struct Row {
    /// What `--only` calls it.
    pub(super) name: &'static str,
    pub(super) measure: fn(&mut Field, &mut Quiet, usize) -> Result<Vec<Comparison>, String>,
}

/// Every row, in the order of the table.
pub(super) const ROWS: &[Row] = &[
    Row { name: "start", measure: start },
    Row { name: "read-1k", measure: |field, quiet, rounds| read(field, quiet, rounds, SMALL, 20) },
    Row { name: "read-100k", measure: |field, quiet, rounds| read(field, quiet, rounds, MIDDLE, 5) },
    Row { name: "read-10m", measure: |field, quiet, rounds| read(field, quiet, rounds, LARGE, 1) },
    Row { name: "write-1k", measure: write },
    Row { name: "list-10k", measure: list },
    Row { name: "pipelined", measure: pipelined },
];

/// Writes in one turn.
const WRITES: usize = 10;
/// Reads in one turn before anything is timed.
const WARM_READS: usize = 3;

/// Two series of measurements of the same thing.
pub(super) struct Comparison {
    pub(super) what: String,
    pub(super) unit: Unit,
    pub(super) stead: Samples,
    /// What it is held against.
    pub(super) against: &'static str,
    pub(super) other: Samples,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Milliseconds,
    Megabytes,
}

impl Unit {
    pub(super) fn name(self) -> &'static str {
        match self {
            Unit::Milliseconds => "ms",
            Unit::Megabytes => "MB",
        }
    }
}

/// What times are held against, mostly.
const REFERENCE: &str = "reference";
const SYNC: &str = "one fdatasync";

/// Who has the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Stead,
    Other,
}

impl Comparison {
    pub(super) fn new(what: impl Into<String>, against: &'static str) -> Self {
        Self {
            what: what.into(),
            unit: Unit::Milliseconds,
            stead: Samples::default(),
            against,
            other: Samples::default(),
        }
    }

    pub(super) fn push(&mut self, side: Side, milliseconds: f64) {
        match side {
            Side::Stead => self.stead.push(milliseconds),
            Side::Other => self.other.push(milliseconds),
        }
    }
}

/// Gives both sides a turn in every round.
pub(super) fn alternate(
    quiet: &mut Quiet,
    rounds: usize,
    mut turn: impl FnMut(Side) -> Result<(), String>,
) -> Result<(), String> {
    for round in 0..rounds {
        let order = if round % 2 == 0 { [Side::Stead, Side::Other] } else { [Side::Other, Side::Stead] };
        for side in order {
            quiet.wait();
            turn(side).map_err(|failure| format!("{side:?}: {failure}"))?;
        }
    }
    Ok(())
}

fn start(field: &mut Field, quiet: &mut Quiet, rounds: usize) -> Result<Vec<Comparison>, String> {
    let mut known = Comparison::new("start to tools/list", REFERENCE);
    let mut first = Comparison::new("first start of all in a workspace", REFERENCE);
    let starts = &mut field.starts;
    // Makes the state that the later ones find.
    starts.stead.start_once()?;
    alternate(quiet, rounds, |side| match side {
        Side::Stead => {
            known.push(side, starts.stead.start_once()?);
            first.push(side, starts.first().start_once()?);
            Ok(())
        }
        Side::Other => {
            let milliseconds = starts.reference.start_once()?;
            known.push(side, milliseconds);
            first.push(side, milliseconds);
            Ok(())
        }
    })?;
    Ok(vec![known, first])
}

fn read(
    field: &mut Field,
    quiet: &mut Quiet,
    rounds: usize,
    sized: Sized,
    calls: usize,
) -> Result<Vec<Comparison>, String> {
    let wanted = files::text(sized.bytes, 0);
    let size = if sized.bytes < 1 << 20 {
        format!("{} KB", sized.bytes >> 10)
    } else {
        format!("{} MB", sized.bytes >> 20)
    };
    let mut comparison = Comparison::new(format!("read {size}"), REFERENCE);
    for _ in 0..WARM_READS {
        field.fast.read(sized.name, &wanted)?;
        field.reference.read(sized.name, &wanted)?;
    }
    alternate(quiet, rounds, |side| {
        let peer = match side {
            Side::Stead => &mut field.fast,
            Side::Other => &mut field.reference,
        };
        for _ in 0..calls {
            comparison.push(side, peer.read(sized.name, &wanted)?);
        }
        Ok(())
    })?;
    Ok(vec![comparison])
}

fn write(field: &mut Field, quiet: &mut Quiet, rounds: usize) -> Result<Vec<Comparison>, String> {
    let mut fast = Comparison::new("overwrite 1 KB, durability fast", REFERENCE);
    alternate(quiet, rounds, |side| {
        let peer = match side {
            Side::Stead => &mut field.fast,
            Side::Other => &mut field.reference,
        };
        for _ in 0..WRITES {
            fast.push(side, peer.overwrite()?);
        }
        Ok(())
    })?;
    let mut full = Comparison::new("overwrite 1 KB, durability full", SYNC);
    alternate(quiet, rounds, |side| {
        for _ in 0..WRITES {
            let milliseconds = match side {
                Side::Stead => field.full.overwrite()?,
                Side::Other => field.sync()?,
            };
            full.push(side, milliseconds);
        }
        Ok(())
    })?;
    Ok(vec![fast, full])
}

fn list(field: &mut Field, quiet: &mut Quiet, rounds: usize) -> Result<Vec<Comparison>, String> {
    let Listed { first_entries, pages, .. } = field.fast.list()?;
    let entries = MANY.1;
    let mut first =
        Comparison::new(format!("list {entries}: first page, {first_entries} entries"), REFERENCE);
    let mut all = Comparison::new(format!("list {entries}: all of them, {pages} pages"), REFERENCE);
    alternate(quiet, rounds, |side| {
        let listed = match side {
            Side::Stead => field.fast.list()?,
            Side::Other => field.reference.list()?,
        };
        first.push(side, listed.first_milliseconds);
        all.push(side, listed.all_milliseconds);
        Ok(())
    })?;
    Ok(vec![first, all])
}

fn pipelined(field: &mut Field, quiet: &mut Quiet, rounds: usize) -> Result<Vec<Comparison>, String> {
    let mut comparison = Comparison::new(format!("{} pipelined reads of 1 KB", POOL.1), REFERENCE);
    field.fast.read_pool()?;
    field.reference.read_pool()?;
    alternate(quiet, rounds, |side| {
        let milliseconds = match side {
            Side::Stead => field.fast.read_pool()?,
            Side::Other => field.reference.read_pool()?,
        };
        comparison.push(side, milliseconds);
        Ok(())
    })?;
    Ok(vec![comparison])
}

/// The most memory each held in everything before.
pub(super) fn memory(field: &Field) -> Result<Comparison, String> {
    Ok(Comparison {
        what: "peak memory".to_owned(),
        unit: Unit::Megabytes,
        stead: Samples::one(field.fast.peak_megabytes()?),
        against: REFERENCE,
        other: Samples::one(field.reference.peak_megabytes()?),
    })
}
