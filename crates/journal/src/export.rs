//! The journal as JSON lines that verify without any store.
//!
//! Lines: a header (workspace, keys), entries with their hashes, checkpoints among them in order of size, and an end.
//! Promises: what verifies as an export is what was in the journal; a cut file is noticed by its missing end; memory
//! is bounded by one line.
//! An export carries its own keys, so by itself it proves only that it is whole. That it is *the* journal is shown by
//! what the reader already knows: see [`Expected`].

use std::io::{BufRead, Read as _};

use serde::{Deserialize, Serialize};

use crate::{
    BadRing, Digest, Entry, KeyRecord, KeyRing, Origin, Tamper, TamperKind, Verified, Verifier, VerifyingKey,
    encode,
};

/// The format this version writes and reads.
pub const EXPORT_FORMAT: u32 = 1;
/// Longest line that is written or read.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// One line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ExportLine {
    /// The first line.
    Header {
        /// [`EXPORT_FORMAT`].
        format: u32,
        /// Whose journal it is.
        workspace: Origin,
        /// Every key, oldest first.
        keys: Vec<KeyRecord>,
    },
    /// An entry and its hash in the chain.
    Entry {
        /// The recorded hash.
        hash: Digest,
        /// The entry.
        record: Box<Entry>,
    },
    /// A signed checkpoint.
    Checkpoint {
        /// The note as it was signed.
        note: String,
    },
    /// The last line.
    End {
        /// Number of entries.
        size: u64,
        /// Hash of the last one.
        head: Digest,
    },
}

/// What the reader of an export knows from elsewhere.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// The workspace.
    pub origin: Option<Origin>,
    /// The workspace's first key.
    pub first_key: Option<VerifyingKey>,
    /// Checkpoints kept from earlier.
    pub checkpoints: Vec<String>,
    /// Entry numbers and hashes kept from earlier.
    pub heads: Vec<(u64, Digest)>,
}

/// What an export has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportReport {
    /// Whose journal it is.
    pub origin: Origin,
    /// The key on which its trust rests.
    pub first_key: VerifyingKey,
    /// How far it goes and what covers it.
    pub verified: Verified,
}

/// Why an export is not believed, or could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Reading failed.
    #[error("the export could not be read")]
    Read(#[from] std::io::Error),
    /// A line is longer than [`MAX_LINE_BYTES`].
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes")]
    LineTooLong {
        /// Line number from 1; 0 when writing.
        line: u64,
    },
    /// A line is not one of an export.
    #[error("line {line} is not a line of an export: {detail}")]
    Syntax {
        /// Line number from 1; 0 when writing.
        line: u64,
        /// What the parser said.
        detail: String,
    },
    /// A line of a kind that cannot stand here: no header first, a second header, or something after the end.
    #[error("line {line} cannot stand where it does")]
    Misplaced {
        /// Line number from 1.
        line: u64,
    },
    /// The export is of a format this version does not know.
    #[error("unknown export format {format}")]
    Format {
        /// The format it states.
        format: u32,
    },
    /// Its keys are not a chain of trust.
    #[error("the keys are not a chain of trust: {0}")]
    Keys(#[from] BadRing),
    /// It is the journal of another workspace than expected.
    #[error("the journal of another workspace")]
    OtherWorkspace,
    /// It rests on another first key than expected.
    #[error("the journal rests on another first key")]
    OtherFirstKey,
    /// The journal is not whole.
    #[error(transparent)]
    Tamper(#[from] Tamper),
}

impl ExportLine {
    /// The header of an export.
    pub fn header(ring: &KeyRing) -> Self {
        Self::Header {
            format: EXPORT_FORMAT,
            workspace: ring.origin().clone(),
            keys: ring.records().to_vec(),
        }
    }

    /// The line as text, without its newline.
    pub fn to_json(&self) -> Result<String, ExportError> {
        let syntax = |error: serde_json::Error| ExportError::Syntax { line: 0, detail: error.to_string() };
        let json = serde_json::to_string(self).map_err(syntax)?;
        if json.len() < MAX_LINE_BYTES { Ok(json) } else { Err(ExportError::LineTooLong { line: 0 }) }
    }
}

/// Verifies an export from its first line to its end.
pub fn verify_export(reader: impl BufRead, expected: &Expected) -> Result<ExportReport, ExportError> {
    let mut lines = Lines { reader, number: 0, buffer: Vec::new() };
    let ring = match lines.next()? {
        Some(ExportLine::Header { format, workspace, keys }) => {
            read_header(format, workspace, keys, expected)?
        }
        Some(ExportLine::Entry { .. } | ExportLine::Checkpoint { .. } | ExportLine::End { .. }) | None => {
            return Err(ExportError::Misplaced { line: 1 });
        }
    };
    let (origin, first_key) = (ring.origin().clone(), ring.first_key());
    let mut verifier = Verifier::new(ring);
    for note in &expected.checkpoints {
        verifier.checkpoint(note)?;
    }
    for (number, hash) in &expected.heads {
        verifier.expect_head(*number, *hash)?;
    }
    loop {
        match lines.next()? {
            Some(ExportLine::Entry { hash, record }) => {
                if let Err(tamper) = verifier.push(record.number, &encode(&record), &hash) {
                    return Err(sharpened(tamper, &mut lines)?.into());
                }
            }
            Some(ExportLine::Checkpoint { note }) => verifier.checkpoint(&note)?,
            Some(ExportLine::End { size, head }) => {
                end(&mut verifier, size, head)?;
                break;
            }
            Some(ExportLine::Header { .. }) => return Err(ExportError::Misplaced { line: lines.number }),
            None => return Err(Tamper::at_entry(TamperKind::Truncated, verifier.size() + 1).into()),
        }
    }
    if lines.next()?.is_some() {
        return Err(ExportError::Misplaced { line: lines.number });
    }
    Ok(ExportReport { origin, first_key, verified: verifier.finish()? })
}

fn read_header(
    format: u32,
    workspace: Origin,
    keys: Vec<KeyRecord>,
    expected: &Expected,
) -> Result<KeyRing, ExportError> {
    if format != EXPORT_FORMAT {
        return Err(ExportError::Format { format });
    }
    if expected.origin.as_ref().is_some_and(|origin| *origin != workspace) {
        return Err(ExportError::OtherWorkspace);
    }
    let ring = KeyRing::new(workspace, keys)?;
    if expected.first_key.is_some_and(|key| key != ring.first_key()) {
        return Err(ExportError::OtherFirstKey);
    }
    Ok(ring)
}

fn end(verifier: &mut Verifier, size: u64, head: Digest) -> Result<(), Tamper> {
    if size < verifier.size() {
        return Err(Tamper::at_entry(TamperKind::HeadMismatch, size.saturating_add(1)));
    }
    verifier.expect_head(size, head)
}

/// A gap in a stream may be a lost entry or a moved one; the rest of the export tells.
fn sharpened(tamper: Tamper, lines: &mut Lines<impl BufRead>) -> Result<Tamper, ExportError> {
    if tamper.kind != TamperKind::Missing {
        return Ok(tamper);
    }
    while let Some(line) = lines.next()? {
        if matches!(line, ExportLine::Entry { record, .. } if record.number == tamper.number) {
            return Ok(Tamper { kind: TamperKind::OutOfOrder, ..tamper });
        }
    }
    Ok(tamper)
}

/// Reads lines of bounded length.
struct Lines<R> {
    reader: R,
    number: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> Result<Option<ExportLine>, ExportError> {
        self.buffer.clear();
        self.number += 1;
        let line = self.number;
        let mut limited = self.reader.by_ref().take(MAX_LINE_BYTES as u64 + 1);
        match limited.read_until(b'\n', &mut self.buffer)? {
            0 => Ok(None),
            length if length > MAX_LINE_BYTES => Err(ExportError::LineTooLong { line }),
            _length => serde_json::from_slice(&self.buffer)
                .map(Some)
                .map_err(|error| ExportError::Syntax { line, detail: error.to_string() }),
        }
    }
}
