//! What a run found, as a table for people and as JSON for machines.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{
    quiet::Quiet,
    rows::Comparison,
    statistics::{Samples, ratio, shown},
};

/// What the files of a report are called, in the target directory.
const NAME: &str = "bench";
/// Stands for a number that there is not.
const NONE: &str = "–";

/// How it was measured.
pub(super) struct Run {
    pub(super) rounds: usize,
    /// Name and version of the reference server.
    pub(super) reference: String,
    pub(super) quiet: Quiet,
}

/// A run and what it found.
pub(super) struct Report {
    run: Run,
    comparisons: Vec<Comparison>,
}

impl Report {
    pub(super) fn new(run: Run, comparisons: Vec<Comparison>) -> Self {
        Self { run, comparisons }
    }

    /// Prints the table and keeps both forms.
    pub(super) fn write(&self, target: &Path) -> Result<(), String> {
        self.write_as(target, NAME)
    }

    /// The same, under another name.
    pub(super) fn write_as(&self, target: &Path, name: &str) -> Result<(), String> {
        let table = self.table();
        println!("\n{table}");
        for (ending, content) in [("md", table), ("json", format!("{:#}\n", self.json()))] {
            let path = target.join(format!("{name}.{ending}"));
            fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))?;
            println!("bench: written to {}", path.display());
        }
        Ok(())
    }

    fn table(&self) -> String {
        let Run { rounds, reference, quiet } = &self.run;
        let mut table = format!(
            "stead {} beside {reference}, over MCP on standard streams, {rounds} rounds, turns alternating.\n\
             {} of {} turns began on a busy machine. Medians; in brackets the 90th percentile.\n\n\
             | | unit | stead | held against | | ratio |\n\
             | --- | --- | --- | --- | --- | --- |\n",
            env!("CARGO_PKG_VERSION"),
            quiet.busy,
            quiet.turns,
        );
        for row in &self.comparisons {
            let ratio = ratio(&row.stead, &row.other).map_or_else(|| NONE.to_owned(), shown);
            let Comparison { what, unit, against, stead, other } = row;
            let (stead, other) = (cell(stead), cell(other));
            table.push_str(&format!(
                "| {what} | {} | {stead} | {against} | {other} | {ratio} |\n",
                unit.name()
            ));
        }
        table
    }

    fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .comparisons
            .iter()
            .map(|row| {
                json!({
                    "what": row.what,
                    "unit": row.unit.name(),
                    "stead": numbers(&row.stead),
                    "against": row.against,
                    "other": numbers(&row.other),
                    "ratio": ratio(&row.stead, &row.other),
                })
            })
            .collect();
        let Run { rounds, reference, quiet } = &self.run;
        json!({
            "stead": env!("CARGO_PKG_VERSION"),
            "reference": reference,
            "rounds": rounds,
            "turns": quiet.turns,
            "turns_busy": quiet.busy,
            "rows": rows,
        })
    }
}

fn cell(samples: &Samples) -> String {
    match (samples.median(), samples.slow()) {
        (Some(median), Some(_)) if samples.len() == 1 => shown(median),
        (Some(median), Some(slow)) => format!("{} ({})", shown(median), shown(slow)),
        (None, _) | (_, None) => NONE.to_owned(),
    }
}

fn numbers(samples: &Samples) -> Value {
    json!({
        "samples": samples.len(), "median": samples.median(), "p90": samples.slow(), "p99": samples.slowest(), "least": samples.least(),
    })
}

#[cfg(test)]
mod tests {
    use super::{super::rows::Unit, *};

    fn report() -> Report {
        let mut stead = Samples::one(1.0);
        stead.push(3.0);
        let row = Comparison {
            what: "read 1 KB".to_owned(),
            unit: Unit::Milliseconds,
            stead,
            against: "reference",
            other: Samples::one(8.0),
        };
        let empty = Comparison {
            what: "nothing".to_owned(),
            unit: Unit::Megabytes,
            stead: Samples::default(),
            against: "reference",
            other: Samples::default(),
        };
        let run = Run { rounds: 2, reference: "r@1".to_owned(), quiet: Quiet::default() };
        Report::new(run, vec![row, empty])
    }

    #[test]
    fn the_table_has_medians_the_slow_ones_and_ratios() {
        let table = report().table();
        assert!(table.contains("| read 1 KB | ms | 2.00 (3.00) | reference | 8.00 | 0.250 |\n"), "{table}");
        assert!(table.contains("| nothing | MB | – | reference | – | – |\n"), "{table}");
    }

    #[test]
    fn machines_get_the_same_numbers() {
        let json = report().json();
        assert_eq!(json["rows"][0]["stead"]["median"], 2.0);
        assert_eq!(json["rows"][0]["ratio"], 0.25);
        assert_eq!(json["rows"][1]["ratio"], Value::Null);
    }
}
