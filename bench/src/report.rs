//! The report of a benchmark, as a table for people and as JSON for programs.

use std::{fs, path::Path};

use serde_json::{Value, json};
use xtask_tools::PROJECT_VERSION;

use crate::{
    idle_wait::BenchIdleMachineWaiter,
    rows::BenchComparison,
    statistics::{Samples, format_significant, median_ratio},
};

/// The name, without extension, of the report files in the target directory.
const REPORT_NAME: &str = "bench";
const NO_VALUE: &str = "–";

/// The conditions of a benchmark that its report states.
pub(crate) struct BenchRunConditions {
    pub(crate) rounds: usize,
    pub(crate) reference: String,
    pub(crate) idle_waiter: BenchIdleMachineWaiter,
}

pub(crate) struct BenchReport {
    run: BenchRunConditions,
    comparisons: Vec<BenchComparison>,
}

impl BenchReport {
    pub(crate) fn new(run: BenchRunConditions, comparisons: Vec<BenchComparison>) -> Self {
        Self { run, comparisons }
    }

    /// Prints the report and writes it to a Markdown and a JSON file.
    pub(crate) fn write(&self, target: &Path) -> Result<(), String> {
        self.write_named(target, REPORT_NAME)
    }

    /// Prints the report and writes it to files with the given name.
    pub(crate) fn write_named(&self, target: &Path, name: &str) -> Result<(), String> {
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
        let BenchRunConditions { rounds, reference, idle_waiter: quiet } = &self.run;
        let mut table = format!(
            "stead {} beside {reference}, over MCP on standard streams, {rounds} rounds, turns alternating.\n\
             {} of {} turns began on a busy machine. Medians; in brackets the 90th percentile.\n\n\
             | | unit | stead | held against | | ratio |\n\
             | --- | --- | --- | --- | --- | --- |\n",
            PROJECT_VERSION, quiet.busy_turns, quiet.turns,
        );
        for row in &self.comparisons {
            let ratio = median_ratio(&row.stead, &row.baseline).map_or_else(|| NO_VALUE.to_owned(), format_significant);
            let BenchComparison { title: what, unit, baseline_name: against, stead, baseline: other } = row;
            let (stead, other) = (table_cell(stead), table_cell(other));
            table.push_str(&format!("| {what} | {} | {stead} | {against} | {other} | {ratio} |\n", unit.name()));
        }
        table
    }

    fn json(&self) -> Value {
        let rows: Vec<Value> = self
            .comparisons
            .iter()
            .map(|row| {
                json!({
                    "what": row.title,
                    "unit": row.unit.name(),
                    "stead": samples_json(&row.stead),
                    "against": row.baseline_name,
                    "other": samples_json(&row.baseline),
                    "ratio": median_ratio(&row.stead, &row.baseline),
                })
            })
            .collect();
        let BenchRunConditions { rounds, reference, idle_waiter: quiet } = &self.run;
        json!({
            "stead": PROJECT_VERSION,
            "reference": reference,
            "rounds": rounds,
            "turns": quiet.turns,
            "turns_busy": quiet.busy_turns,
            "rows": rows,
        })
    }
}

fn table_cell(samples: &Samples) -> String {
    match (samples.median(), samples.percentile_90()) {
        (Some(median), Some(_)) if samples.len() == 1 => format_significant(median),
        (Some(median), Some(slow)) => {
            format!("{} ({})", format_significant(median), format_significant(slow))
        }
        (None, _) | (_, None) => NO_VALUE.to_owned(),
    }
}

fn samples_json(samples: &Samples) -> Value {
    json!({
        "samples": samples.len(), "median": samples.median(), "p90": samples.percentile_90(), "p99": samples.percentile_99(), "least": samples.minimum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::MeasurementUnit;

    fn sample_report() -> BenchReport {
        let mut stead = Samples::single(1.0);
        stead.push(3.0);
        let row = BenchComparison {
            title: "read 1 KB".to_owned(),
            unit: MeasurementUnit::Milliseconds,
            stead,
            baseline_name: "reference",
            baseline: Samples::single(8.0),
        };
        let empty = BenchComparison {
            title: "nothing".to_owned(),
            unit: MeasurementUnit::Megabytes,
            stead: Samples::default(),
            baseline_name: "reference",
            baseline: Samples::default(),
        };
        let run = BenchRunConditions {
            rounds: 2,
            reference: "r@1".to_owned(),
            idle_waiter: BenchIdleMachineWaiter::default(),
        };
        BenchReport::new(run, vec![row, empty])
    }

    #[test]
    fn table_has_medians_percentiles_and_ratios() {
        let table = sample_report().table();
        assert!(table.contains("| read 1 KB | ms | 2.00 (3.00) | reference | 8.00 | 0.250 |\n"), "{table}");
        assert!(table.contains("| nothing | MB | – | reference | – | – |\n"), "{table}");
    }

    #[test]
    fn json_has_the_same_numbers() {
        let json = sample_report().json();
        assert_ne!(json["stead"], env!("CARGO_PKG_VERSION"), "the version of the server, not of this program");
        assert_eq!(json["rows"][0]["stead"]["median"], 2.0);
        assert_eq!(json["rows"][0]["ratio"], 0.25);
        assert_eq!(json["rows"][1]["ratio"], Value::Null);
    }
}
