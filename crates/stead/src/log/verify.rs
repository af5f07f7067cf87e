//! Runs `stead log verify`, which checks the integrity of the journal.

use std::path::{Path, PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stead_engine::{Error, ErrorKind};
use stead_journal::{JournalCheckpoint, MerkleLeafHash, VerifiedJournalPrefix};
use stead_local::JournalVerifyReport;

use crate::{
    host_files,
    open_workspace::CommandLineWorkspace,
    output::{self, CliCommandResult, CommandError, CommandExit, OutputFormat},
};

#[derive(Debug, Args)]
pub(super) struct LogVerifyCliArgs {
    /// Verify from the first entry on (the default)
    #[arg(long, conflicts_with = "from_checkpoint")]
    full: bool,
    /// Continue from a file that --save wrote after an earlier verification
    #[arg(long, value_name = "FILE")]
    from_checkpoint: Option<PathBuf>,
    /// Prove that this entry is in the signed journal
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["full", "from_checkpoint", "against", "save"])]
    entry: Option<u64>,
    /// Verify the journal against a checkpoint that was stored elsewhere (repeatable)
    #[arg(long, value_name = "FILE")]
    against: Vec<PathBuf>,
    /// Save the verified state for --from-checkpoint
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Print the answer as one JSON object
    #[arg(long)]
    json: bool,
}

/// The file format of `stead log verify --save`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedJournalVerification {
    trusted: String,
    checkpoint: Option<String>,
}

pub(super) fn run(opened: &CommandLineWorkspace, arguments: &LogVerifyCliArgs) -> CliCommandResult {
    let format = OutputFormat::from(arguments.json);
    match arguments.entry {
        Some(number) => verify_entry(opened, number, format),
        None => verify_journal(opened, arguments, format),
    }
}

fn verify_journal(
    opened: &CommandLineWorkspace,
    arguments: &LogVerifyCliArgs,
    format: OutputFormat,
) -> CliCommandResult {
    let mut against =
        arguments.against.iter().map(|path| host_files::read_text(path)).collect::<Result<Vec<_>, _>>()?;
    let from = match &arguments.from_checkpoint {
        Some(path) => {
            let (trusted, checkpoint) = load_saved(path)?;
            against.extend(checkpoint);
            Some(trusted)
        }
        None => None,
    };
    let report = opened.local.verify_journal(from, &against)?;
    print_report(&report, format)?;
    if report.integrity_error.is_some() {
        return Ok(CommandExit::Tampered);
    }
    if let Some(path) = &arguments.save {
        save_verification(opened, path, &report)?;
    }
    Ok(CommandExit::Success)
}

fn print_report(report: &JournalVerifyReport, format: OutputFormat) -> Result<(), CommandError> {
    let size = report.verified_prefix.frontier.size();
    match (format, &report.integrity_error) {
        (OutputFormat::Json, tamper) => output::print_json(&json!({
            "ok": tamper.is_none(),
            "checked": report.entries,
            "entries": size,
            "covered": report.covered_by_checkpoint,
            "checkpoints": report.checkpoint_count,
            "head": report.verified_prefix.head.to_string(),
            "tamper": tamper,
        }))?,
        (OutputFormat::Text, Some(tamper)) => output::print_text(&format!(
            "TAMPERED: {tamper}\nThe journal was changed outside stead. Keep a copy of the state directory, and compare it with a backup."
        ))?,
        (OutputFormat::Text, None) => output::print_text(&format!(
            "intact: {} entries checked, {size} in total, {} covered by {} signed checkpoints, head {}",
            report.entries, report.covered_by_checkpoint, report.checkpoint_count, report.verified_prefix.head
        ))?,
    }
    Ok(())
}

fn verify_entry(opened: &CommandLineWorkspace, number: u64, format: OutputFormat) -> CliCommandResult {
    let proof = opened.local.prove_entry(number)?;
    let unreadable =
        |error: stead_journal::JournalCheckpointVerifyError| Error::new(ErrorKind::CorruptHistory, error.to_string());
    let checkpoint = JournalCheckpoint::parse(&proof.checkpoint).map_err(unreadable)?;
    let is_proven = proof.proof.verify(&MerkleLeafHash::from_entry_hash(&proof.hash), &checkpoint.root).is_ok();
    match (format, is_proven) {
        (OutputFormat::Json, _) => output::print_json(&json!({
            "ok": is_proven,
            "entry": number,
            "hash": proof.hash.to_string(),
            "proof": proof.proof,
            "checkpoint": proof.checkpoint,
        }))?,
        (OutputFormat::Text, true) => output::print_text(&format!(
            "intact: r{number} with hash {} is in the signed journal of {} entries",
            proof.hash, proof.proof.size
        ))?,
        (OutputFormat::Text, false) => output::print_text(&format!(
            "TAMPERED: r{number} does not match the signed journal\nTo check all entries, run: stead log verify"
        ))?,
    }
    Ok(if is_proven { CommandExit::Success } else { CommandExit::Tampered })
}

fn load_saved(path: &Path) -> Result<(VerifiedJournalPrefix, Option<String>), CommandError> {
    let invalid = |reason: &str| CommandError::Usage(format!("{}: {reason}", path.display()));
    let saved: SavedJournalVerification = serde_json::from_str(&host_files::read_text(path)?)
        .map_err(|_| invalid("this is not a file that stead log verify --save wrote"))?;
    let bytes = STANDARD
        .decode(&saved.trusted)
        .map_err(|_| invalid("this is not a file that stead log verify --save wrote"))?;
    let trusted = VerifiedJournalPrefix::from_bytes(&bytes).map_err(|error| invalid(&error.to_string()))?;
    Ok((trusted, saved.checkpoint))
}

fn save_verification(
    opened: &CommandLineWorkspace,
    path: &Path,
    report: &JournalVerifyReport,
) -> Result<(), CommandError> {
    let size = report.verified_prefix.frontier.size();
    let same_size = |note: &String| JournalCheckpoint::parse(note).is_ok_and(|checkpoint| checkpoint.size == size);
    let checkpoint = opened.local.latest_checkpoint()?.filter(same_size);
    let saved = SavedJournalVerification { trusted: STANDARD.encode(report.verified_prefix.to_bytes()), checkpoint };
    let text = serde_json::to_string(&saved).map_err(|error| CommandError::System(error.to_string()))?;
    host_files::replace_text(path, &format!("{text}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_state_has_the_fields_of_0_1_0() {
        let saved = SavedJournalVerification { trusted: "t".to_owned(), checkpoint: Some("c".to_owned()) };
        assert_eq!(serde_json::to_string(&saved).unwrap(), r#"{"trusted":"t","checkpoint":"c"}"#);
    }
}
