//! `stead replay`: recordings of a published original, made again on throw-away directories and held against what a
//! dialect answers. One process, no server: every call goes through the dialect and the engine as it would from a
//! client.
//!
//! Owns the command and its report. Never touches anything but directories it made itself.

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use serde::Deserialize;

use crate::{
    cli::DialectFlags,
    outside,
    show::{self, Exit, Outcome, Problem},
};

mod audit;
mod compare;
mod ground;
mod placeholders;
mod recording;
mod scene;

use compare::Mismatch;
use recording::Step;
use scene::Scene;

/// The flags of `stead replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// The recording: one step a line, as JSON
    file: PathBuf,
    #[command(flatten)]
    dialects: DialectFlags,
    /// Lines that are expected to differ: a JSON list of {"line", "reason"}
    #[arg(long, value_name = "FILE")]
    deviations: Option<PathBuf>,
}

/// One line that is expected to differ.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Deviation {
    line: usize,
    reason: String,
}

/// What came of a recording.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    failed: usize,
    deviations: usize,
}

/// Makes a recording again and says what differs.
pub(crate) fn run(arguments: &ReplayArguments) -> Outcome {
    let [dialect] = arguments.dialects.dialect.as_slice() else {
        return Err(show::usage("a recording is of one dialect"));
    };
    let expected = deviations(arguments)?;
    let steps = recording::read(&outside::read(&arguments.file)?)
        .map_err(|problem| show::usage(format!("{}: {problem}", arguments.file.display())))?;
    if let Some(line) = expected.keys().find(|line| steps.iter().all(|step| step.line != **line)) {
        return Err(show::usage(format!("line {line} is listed as a deviation, and there is no such line")));
    }
    let mut scene = Scene::new(dialect, &arguments.dialects.dialect_option)?;
    let mut tally = Tally::default();
    for Step { line, text, what } in steps {
        match (scene.play(what)?, expected.get(&line)) {
            (None, _) => {}
            (Some(Ok(())), None) => tally.passed += 1,
            (Some(Ok(())), Some(_)) => {
                tally.failed += 1;
                show::text(&format!("line {line} is listed as a deviation and does not differ: {text}"))?;
            }
            (Some(Err(mismatch)), None) => {
                tally.failed += 1;
                show::text(&told(line, &text, &mismatch))?;
            }
            (Some(Err(_)), Some(reason)) => {
                tally.deviations += 1;
                show::text(&format!("line {line} differs as it should: {reason}"))?;
            }
        }
    }
    report(&tally)
}

fn report(tally: &Tally) -> Outcome {
    let counted = format!("{} passed, {} failed", tally.passed, tally.failed);
    show::text(&match tally.deviations {
        0 => counted,
        deviations => format!("{counted}, {deviations} deviations"),
    })?;
    Ok(if tally.failed == 0 { Exit::Fine } else { Exit::Failed })
}

fn told(line: usize, text: &str, mismatch: &Mismatch) -> String {
    let start: String = text.chars().take(STEP_CHARS_SHOWN).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("line {line}: {start}{more}\n{}", mismatch.shown())
}

/// How much of a step is shown above its difference.
const STEP_CHARS_SHOWN: usize = 160;

fn deviations(arguments: &ReplayArguments) -> Result<BTreeMap<usize, String>, Problem> {
    let Some(file) = &arguments.deviations else { return Ok(BTreeMap::new()) };
    let listed: Vec<Deviation> = serde_json::from_str(&outside::read(file)?)
        .map_err(|error| show::usage(format!("{}: {error}", file.display())))?;
    Ok(listed.into_iter().map(|deviation| (deviation.line, deviation.reason)).collect())
}
