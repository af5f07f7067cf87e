//! Journal exports: JSON lines that can be verified without a database.
//!
//! An export has a header with the workspace and its keys, then entries with their hashes and checkpoints, then an end
//! line. An export without an end line is truncated. Reading an export keeps only one line in memory. An export
//! contains its own keys, so a reader must compare the keys with facts from another source ([`JournalTrustAnchors`]).

use std::io::{BufRead, Read as _};

use serde::{Deserialize, Serialize};

use crate::{
    Digest, JournalEntry, JournalIntegrityError, JournalIntegrityErrorKind, JournalKeyRecord, JournalKeyTrustChain,
    JournalKeyTrustChainError, JournalVerifier, JournalWorkspaceId, VerifiedJournalSummary, VerifyingKey, encode_entry,
};

/// The number of the export format that this version of stead writes and reads.
pub const EXPORT_FORMAT: u32 = 1;
/// The length in bytes of the longest line that an export may have.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// One line of a journal export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum JournalExportLine {
    Header {
        format: u32,
        workspace: JournalWorkspaceId,
        /// Oldest first.
        keys: Vec<JournalKeyRecord>,
    },
    Entry {
        hash: Digest,
        record: Box<JournalEntry>,
    },
    Checkpoint {
        note: String,
    },
    End {
        size: u64,
        head: Digest,
    },
}

/// Facts about the journal that the reader of an export already knows.
#[derive(Debug, Clone, Default)]
pub struct JournalTrustAnchors {
    pub origin: Option<JournalWorkspaceId>,
    pub first_key: Option<VerifyingKey>,
    /// The signed notes of checkpoints that the reader saved earlier.
    pub checkpoints: Vec<String>,
    /// The numbers and hashes of journal entries that the reader saved earlier.
    pub heads: Vec<(u64, Digest)>,
}

/// The result of the successful verification of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportVerificationReport {
    pub origin: JournalWorkspaceId,
    /// The first key of the workspace, on which the trust in all later keys depends.
    pub first_key: VerifyingKey,
    pub verification: VerifiedJournalSummary,
}

/// The reason why an export is rejected or cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum JournalExportFileError {
    #[error("the export could not be read: {0}")]
    Read(#[from] std::io::Error),
    /// The line number is 0 while the export is written.
    #[error("line {0} is longer than {MAX_LINE_BYTES} bytes")]
    LineTooLong(u64),
    #[error("line {line} is not valid: {detail}")]
    Syntax {
        /// Counted from 1; 0 while the export is written.
        line: u64,
        detail: String,
    },
    #[error("line {0} is not allowed at this position")]
    MisplacedLine(u64),
    #[error("unknown export format {0}")]
    UnsupportedFormat(u32),
    #[error("the keys are not a chain of trust: {0}")]
    InvalidKeys(#[from] JournalKeyTrustChainError),
    #[error("the journal does not belong to the expected workspace")]
    OtherWorkspace,
    #[error("the first key of the journal is not the expected one")]
    OtherFirstKey,
    #[error(transparent)]
    Integrity(#[from] JournalIntegrityError),
}

impl JournalExportLine {
    /// The header line of an export, with the workspace and its keys.
    pub fn header(ring: &JournalKeyTrustChain) -> Self {
        Self::Header { format: EXPORT_FORMAT, workspace: ring.origin().clone(), keys: ring.records().to_vec() }
    }

    /// The export line as JSON, without a newline.
    pub fn to_json(&self) -> Result<String, JournalExportFileError> {
        let syntax = |error: serde_json::Error| JournalExportFileError::Syntax { line: 0, detail: error.to_string() };
        let json = serde_json::to_string(self).map_err(syntax)?;
        if json.len() < MAX_LINE_BYTES { Ok(json) } else { Err(JournalExportFileError::LineTooLong(0)) }
    }
}

/// Verifies an export of a journal from its first line to its end line.
pub fn verify_export(
    reader: impl BufRead,
    expected: &JournalTrustAnchors,
) -> Result<ExportVerificationReport, JournalExportFileError> {
    let mut lines = JournalExportLineReader { reader, number: 0, buffer: Vec::new() };
    let ring = match lines.next()? {
        Some(JournalExportLine::Header { format, workspace, keys }) => read_header(format, workspace, keys, expected)?,
        Some(
            JournalExportLine::Entry { .. } | JournalExportLine::Checkpoint { .. } | JournalExportLine::End { .. },
        )
        | None => {
            return Err(JournalExportFileError::MisplacedLine(1));
        }
    };
    let (origin, first_key) = (ring.origin().clone(), ring.first_key());
    let mut verifier = JournalVerifier::new(ring);
    for note in &expected.checkpoints {
        verifier.push_checkpoint(note)?;
    }
    for (number, hash) in &expected.heads {
        verifier.expect_head(*number, *hash)?;
    }
    loop {
        match lines.next()? {
            Some(JournalExportLine::Entry { hash, record }) => {
                if let Err(error) = verifier.push_entry(record.number, &encode_entry(&record), &hash) {
                    return Err(refine_gap_error(error, &mut lines)?.into());
                }
            }
            Some(JournalExportLine::Checkpoint { note }) => verifier.push_checkpoint(&note)?,
            Some(JournalExportLine::End { size, head }) => {
                check_end_line(&mut verifier, size, head)?;
                break;
            }
            Some(JournalExportLine::Header { .. }) => return Err(JournalExportFileError::MisplacedLine(lines.number)),
            None => {
                return Err(JournalIntegrityErrorKind::Truncated.at_entry(verifier.size() + 1).into());
            }
        }
    }
    if lines.next()?.is_some() {
        return Err(JournalExportFileError::MisplacedLine(lines.number));
    }
    Ok(ExportVerificationReport { origin, first_key, verification: verifier.finish()? })
}

fn read_header(
    format: u32,
    workspace: JournalWorkspaceId,
    keys: Vec<JournalKeyRecord>,
    expected: &JournalTrustAnchors,
) -> Result<JournalKeyTrustChain, JournalExportFileError> {
    if format != EXPORT_FORMAT {
        return Err(JournalExportFileError::UnsupportedFormat(format));
    }
    if expected.origin.as_ref().is_some_and(|origin| *origin != workspace) {
        return Err(JournalExportFileError::OtherWorkspace);
    }
    let ring = JournalKeyTrustChain::new(workspace, keys)?;
    if expected.first_key.is_some_and(|key| key != ring.first_key()) {
        return Err(JournalExportFileError::OtherFirstKey);
    }
    Ok(ring)
}

fn check_end_line(verifier: &mut JournalVerifier, size: u64, head: Digest) -> Result<(), JournalIntegrityError> {
    if size < verifier.size() {
        return Err(JournalIntegrityErrorKind::HeadMismatch.at_entry(size.saturating_add(1)));
    }
    verifier.expect_head(size, head)
}

/// Reads the remaining lines of the export to distinguish a lost entry from a misplaced entry.
fn refine_gap_error(
    error: JournalIntegrityError,
    lines: &mut JournalExportLineReader<impl BufRead>,
) -> Result<JournalIntegrityError, JournalExportFileError> {
    if error.kind != JournalIntegrityErrorKind::Missing {
        return Ok(error);
    }
    while let Some(line) = lines.next()? {
        if matches!(line, JournalExportLine::Entry { record, .. } if record.number == error.number) {
            return Ok(JournalIntegrityError { kind: JournalIntegrityErrorKind::OutOfOrder, ..error });
        }
    }
    Ok(error)
}

struct JournalExportLineReader<R> {
    reader: R,
    number: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> JournalExportLineReader<R> {
    fn next(&mut self) -> Result<Option<JournalExportLine>, JournalExportFileError> {
        self.buffer.clear();
        self.number += 1;
        let line = self.number;
        let mut limited = self.reader.by_ref().take(MAX_LINE_BYTES as u64 + 1);
        match limited.read_until(b'\n', &mut self.buffer)? {
            0 => Ok(None),
            length if length > MAX_LINE_BYTES => Err(JournalExportFileError::LineTooLong(line)),
            _length => serde_json::from_slice(&self.buffer)
                .map(Some)
                .map_err(|error| JournalExportFileError::Syntax { line, detail: error.to_string() }),
        }
    }
}
