//! `stead log verify`: whether the journal is what it was.

use std::path::{Path, PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::Args;
use engine::{Failure, Kind};
use journal::{Checkpoint, Leaf, Trusted};
use local::LogReport;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    outside,
    show::{self, Exit, Form, Outcome, Problem},
    wire::Opened,
};

/// The flags of `stead log verify`.
#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// Check everything from the first entry on (the default)
    #[arg(long, conflicts_with = "from_checkpoint")]
    full: bool,
    /// Go on from what --save wrote after an earlier verification
    #[arg(long, value_name = "FILE")]
    from_checkpoint: Option<PathBuf>,
    /// Prove that this one entry is in the signed journal
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["full", "from_checkpoint", "against", "save"])]
    entry: Option<u64>,
    /// Hold the journal against a checkpoint that was kept elsewhere (repeatable)
    #[arg(long, value_name = "FILE")]
    against: Vec<PathBuf>,
    /// Write down where to go on next time
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Answer with one JSON object
    #[arg(long)]
    json: bool,
}

/// What `--save` writes: a verified state and the signed checkpoint that vouches for it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    trusted: String,
    checkpoint: Option<String>,
}

/// Verifies.
pub(super) fn run(opened: &Opened, arguments: &VerifyArguments) -> Outcome {
    let form = Form::from(arguments.json);
    match arguments.entry {
        Some(number) => one(opened, number, form),
        None => all(opened, arguments, form),
    }
}

fn all(opened: &Opened, arguments: &VerifyArguments, form: Form) -> Outcome {
    let mut against =
        arguments.against.iter().map(|path| outside::read(path)).collect::<Result<Vec<_>, _>>()?;
    let from = match &arguments.from_checkpoint {
        Some(path) => {
            let (trusted, checkpoint) = load(path)?;
            against.extend(checkpoint);
            Some(trusted)
        }
        None => None,
    };
    let report = opened.local.verify_log(from, &against)?;
    tell(&report, form)?;
    if report.tamper.is_some() {
        return Ok(Exit::Tampered);
    }
    if let Some(path) = &arguments.save {
        save(opened, path, &report)?;
    }
    Ok(Exit::Fine)
}

fn tell(report: &LogReport, form: Form) -> Result<(), Problem> {
    let size = report.trusted.frontier.size();
    match (form, &report.tamper) {
        (Form::Json, tamper) => show::json(&json!({
            "ok": tamper.is_none(),
            "checked": report.entries,
            "entries": size,
            "covered": report.covered,
            "checkpoints": report.checkpoints,
            "head": report.trusted.head.to_string(),
            "tamper": tamper,
        }))?,
        (Form::Text, Some(tamper)) => show::text(&format!("TAMPERED: {tamper}"))?,
        (Form::Text, None) => show::text(&format!(
            "intact: {} entries checked, {size} in all, {} covered by {} signed checkpoints, head {}",
            report.entries, report.covered, report.checkpoints, report.trusted.head
        ))?,
    }
    Ok(())
}

fn one(opened: &Opened, number: u64, form: Form) -> Outcome {
    let proof = opened.local.prove(number)?;
    let unreadable = |error: journal::CheckpointError| Failure::new(Kind::CorruptHistory, error.to_string());
    let checkpoint = Checkpoint::parse(&proof.checkpoint).map_err(unreadable)?;
    let holds = proof.proof.verify(&Leaf::of_entry(&proof.hash), &checkpoint.root).is_ok();
    match (form, holds) {
        (Form::Json, _) => show::json(&json!({
            "ok": holds,
            "entry": number,
            "hash": proof.hash.to_string(),
            "proof": proof.proof,
            "checkpoint": proof.checkpoint,
        }))?,
        (Form::Text, true) => show::text(&format!(
            "intact: r{number} with hash {} is in the signed journal of {} entries",
            proof.hash, proof.proof.size
        ))?,
        (Form::Text, false) => {
            show::text(&format!("TAMPERED: r{number} is not what the signed journal holds"))?
        }
    }
    Ok(if holds { Exit::Fine } else { Exit::Tampered })
}

fn load(path: &Path) -> Result<(Trusted, Option<String>), Problem> {
    let broken = |what: &str| Problem::Usage(format!("{}: {what}", path.display()));
    let saved: Saved =
        serde_json::from_str(&outside::read(path)?).map_err(|_| broken("not what --save writes"))?;
    let bytes = STANDARD.decode(&saved.trusted).map_err(|_| broken("not what --save writes"))?;
    let trusted = Trusted::from_bytes(&bytes).map_err(|error| broken(&error.to_string()))?;
    Ok((trusted, saved.checkpoint))
}

fn save(opened: &Opened, path: &Path, report: &LogReport) -> Result<(), Problem> {
    let size = report.trusted.frontier.size();
    let same_size = |note: &String| Checkpoint::parse(note).is_ok_and(|checkpoint| checkpoint.size == size);
    let checkpoint = opened.local.latest_checkpoint()?.filter(same_size);
    let saved = Saved { trusted: STANDARD.encode(report.trusted.to_bytes()), checkpoint };
    let text = serde_json::to_string(&saved).map_err(|error| Problem::Outside(error.to_string()))?;
    outside::write(path, &format!("{text}\n"))
}
