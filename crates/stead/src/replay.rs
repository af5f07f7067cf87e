//! Runs `stead replay`, which replays recorded tool calls of a published server and compares the answers of a dialect.
//! Replayed calls pass through the dialect and the engine like the calls of a client. The command `stead replay`
//! changes only directories that it created.

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use serde::Deserialize;

use crate::{
    cli::DialectFlags,
    host_files,
    output::{self, CliCommandResult, CommandError, CommandExit},
};

mod compare;
mod directory;
mod placeholders;
mod player;
mod recording;

use compare::RecordingReplayMismatch;
use player::RecordingPlayer;
use recording::RecordingStep;

#[derive(Debug, Args)]
pub(crate) struct ReplayCliArgs {
    /// Recording: one JSON step per line
    file: PathBuf,
    #[command(flatten)]
    dialects: DialectFlags,
    /// File with the lines that are expected to differ: a JSON list of {"line", "reason"}
    #[arg(long, value_name = "FILE")]
    deviations: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedReplayDeviation {
    line: usize,
    reason: String,
}

#[derive(Debug, Default)]
struct RecordingReplayCounts {
    passed: usize,
    failed: usize,
    deviations: usize,
}

pub(crate) fn run(arguments: &ReplayCliArgs) -> CliCommandResult {
    let [dialect] = arguments.dialects.dialect.as_slice() else {
        return Err(output::usage_error("a recording belongs to one dialect; pass --dialect exactly once"));
    };
    let expected = load_deviations(arguments)?;
    let steps = recording::parse_recording(&host_files::read_text(&arguments.file)?)
        .map_err(|problem| output::usage_error(format!("{}: {problem}", arguments.file.display())))?;
    if let Some(line) = expected.keys().find(|line| steps.iter().all(|step| step.line != **line)) {
        return Err(output::usage_error(format!(
            "the file of --deviations lists line {line}, but the recording has no step there; remove it from the file"
        )));
    }
    let mut player = RecordingPlayer::new(dialect, &arguments.dialects.dialect_option)?;
    let mut summary = RecordingReplayCounts::default();
    for RecordingStep { line, source_line: text, action } in steps {
        match (player.play_step(action)?, expected.get(&line)) {
            (None, _) => {}
            (Some(Ok(())), None) => summary.passed += 1,
            (Some(Ok(())), Some(_)) => {
                summary.failed += 1;
                output::print_text(&format!(
                    "line {line} does not differ from the recording, but --deviations lists it; remove it from that file: {text}"
                ))?;
            }
            (Some(Err(mismatch)), None) => {
                summary.failed += 1;
                output::print_text(&mismatch_text(line, &text, &mismatch))?;
            }
            (Some(Err(_)), Some(reason)) => {
                summary.deviations += 1;
                output::print_text(&format!(
                    "line {line} differs from the recording, as --deviations expects: {reason}"
                ))?;
            }
        }
    }
    print_summary(&summary)
}

fn print_summary(summary: &RecordingReplayCounts) -> CliCommandResult {
    let counted = format!("{} passed, {} failed", summary.passed, summary.failed);
    output::print_text(&match summary.deviations {
        0 => counted,
        deviations => format!("{counted}, expected deviations: {deviations}"),
    })?;
    Ok(if summary.failed == 0 { CommandExit::Success } else { CommandExit::Failed })
}

fn mismatch_text(line: usize, text: &str, mismatch: &RecordingReplayMismatch) -> String {
    let start: String = text.chars().take(STEP_CHARS_SHOWN).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("line {line} differs from the recording: {start}{more}\n{}", mismatch.diff_text())
}

const STEP_CHARS_SHOWN: usize = 160;

fn load_deviations(arguments: &ReplayCliArgs) -> Result<BTreeMap<usize, String>, CommandError> {
    let Some(file) = &arguments.deviations else { return Ok(BTreeMap::new()) };
    let listed: Vec<ExpectedReplayDeviation> = serde_json::from_str(&host_files::read_text(file)?)
        .map_err(|error| output::usage_error(format!("{}: {error}", file.display())))?;
    Ok(listed.into_iter().map(|deviation| (deviation.line, deviation.reason)).collect())
}
