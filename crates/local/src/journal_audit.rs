//! Verification, proofs and export of the journal. All of them stream, so the journal need not fit in memory.

use std::io::Write;

use rusqlite::params;
use stead_engine::{Error, ErrorKind};
use stead_journal::{
    Digest, ExportLine, InclusionProof, IntegrityError, JournalVerifier, MerkleLeaf, VerificationReport, VerifiedPrefix,
};

use crate::{
    open::LocalWorkspace,
    store::{self, to_sql_integer},
};

/// Result of a verification.
#[derive(Debug, Clone)]
pub struct JournalVerifyReport {
    /// Entries checked.
    pub entries: u64,
    /// Entries covered by the last signed checkpoint.
    pub covered_by_checkpoint: u64,
    /// Checkpoints checked.
    pub checkpoint_count: u64,
    /// The state from which the next verification can continue.
    pub verified_prefix: VerifiedPrefix,
    /// The first error, if any.
    pub integrity_error: Option<IntegrityError>,
}

/// Proof that an entry is in the signed tree.
#[derive(Debug, Clone)]
pub struct EntryProof {
    /// The number of the entry.
    pub number: u64,
    /// The chain hash of the entry.
    pub hash: Digest,
    /// The inclusion proof.
    pub proof: InclusionProof,
    /// The signed checkpoint that the proof leads to.
    pub checkpoint: String,
}

impl LocalWorkspace {
    /// Checks every entry, link and signature. `from` continues an earlier verification; `against` are checkpoints stored
    /// elsewhere.
    pub fn verify_journal(
        &self,
        from: Option<VerifiedPrefix>,
        against: &[String],
    ) -> Result<JournalVerifyReport, Error> {
        // Signs nothing: a new signature would cover unchecked entries.
        self.flush()?;
        let ring = self.load_key_ring()?;
        let start = from.as_ref().map_or(0, |trusted| trusted.frontier.size());
        let mut verifier = match from {
            Some(trusted) => JournalVerifier::resume(ring, trusted),
            None => JournalVerifier::new(ring),
        };
        let mut entries = 0;
        let tip = self.store.run_query(|connection| store::load_tip(connection, &self.store.origin))?;
        let expected = if tip.number > start { verifier.expect_head(tip.number, tip.hash) } else { Ok(()) };
        let outcome = match expected {
            Ok(()) => self.feed_verifier(&mut verifier, start, against, &mut entries)?,
            Err(tamper) => Err(tamper),
        };
        let verified = outcome.and_then(|()| verifier.finish());
        Ok(match verified {
            Ok(VerificationReport {
                prefix: trusted,
                covered_by_checkpoint: covered,
                checkpoint_count: checkpoints,
            }) => JournalVerifyReport {
                entries,
                covered_by_checkpoint: covered,
                checkpoint_count: checkpoints,
                verified_prefix: trusted,
                integrity_error: None,
            },
            Err(tamper) => JournalVerifyReport {
                entries,
                covered_by_checkpoint: 0,
                checkpoint_count: 0,
                verified_prefix: VerifiedPrefix {
                    head: stead_journal::genesis_hash(&self.store.origin),
                    frontier: stead_journal::MerkleFrontier::new(),
                },
                integrity_error: Some(tamper),
            },
        })
    }

    /// Feeds entries and checkpoints to the verifier in order.
    fn feed_verifier(
        &self,
        verifier: &mut JournalVerifier,
        start: u64,
        against: &[String],
        entries: &mut u64,
    ) -> Result<Result<(), IntegrityError>, Error> {
        let mut checkpoints = self.checkpoints_from(start)?;
        for note in against {
            let size = stead_journal::Checkpoint::parse(note)
                .map_err(|error| Error::new(ErrorKind::BadRequest, format!("not a checkpoint: {error}")))?
                .size;
            checkpoints.push((size, note.clone()));
        }
        checkpoints.sort_by_key(|(size, _)| *size);
        let mut checkpoints = checkpoints.into_iter().peekable();
        self.store.run_query(|connection| {
            let mut statement =
                connection.prepare("SELECT number, bytes, hash FROM entries WHERE number > ?1 ORDER BY number")?;
            let mut rows = statement.query(params![to_sql_integer(start)])?;
            loop {
                while let Some((_, note)) = checkpoints.next_if(|(size, _)| *size <= verifier.size()) {
                    if let Err(tamper) = verifier.push_checkpoint(&note) {
                        return Ok(Err(tamper));
                    }
                }
                let Some(row) = rows.next()? else { break };
                let number: i64 = row.get(0)?;
                let bytes = row.get_ref(1)?.as_blob()?;
                let hash = store::digest_from_bytes(row.get_ref(2)?.as_blob()?).ok_or(rusqlite::Error::InvalidQuery)?;
                if let Err(tamper) = verifier.push_entry(number.unsigned_abs(), bytes, &hash) {
                    return Ok(Err(tamper));
                }
                *entries += 1;
            }
            for (_, note) in checkpoints {
                if let Err(tamper) = verifier.push_checkpoint(&note) {
                    return Ok(Err(tamper));
                }
            }
            Ok(Ok(()))
        })
    }

    fn checkpoints_from(&self, size: u64) -> Result<Vec<(u64, String)>, Error> {
        self.store.run_query(|connection| {
            connection
                .prepare("SELECT size, note FROM checkpoints WHERE size >= ?1 ORDER BY size")?
                .query_map(params![to_sql_integer(size)], |row| {
                    Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?))
                })?
                .collect()
        })
    }

    /// Proves that an entry is in the signed journal.
    pub fn prove_entry(&self, number: u64) -> Result<EntryProof, Error> {
        self.flush()?;
        self.sign_checkpoint()?;
        let unknown = || Error::new(ErrorKind::NotFound, format!("entry {number} is not in the journal"));
        let (size, checkpoint) = self.checkpoints_from(number)?.pop().ok_or_else(unknown)?;
        let hashes: Vec<Vec<u8>> = self.store.run_query(|connection| {
            connection
                .prepare("SELECT hash FROM entries WHERE number <= ?1 ORDER BY number")?
                .query_map(params![to_sql_integer(size)], |row| row.get(0))?
                .collect()
        })?;
        let leaves = hashes
            .iter()
            .map(|bytes| store::digest_from_bytes(bytes).map(|hash| MerkleLeaf::from_entry_hash(&hash)).ok_or(()));
        let index = number.checked_sub(1).ok_or_else(unknown)?;
        let proof = stead_journal::inclusion_proof(index, size, leaves).map_err(|_| unknown())?;
        let own = usize::try_from(index).ok().and_then(|index| hashes.get(index)).ok_or_else(unknown)?;
        Ok(EntryProof { number, hash: store::digest_from_bytes(own).ok_or_else(unknown)?, proof, checkpoint })
    }

    /// The newest signed checkpoint.
    pub fn latest_checkpoint(&self) -> Result<Option<String>, Error> {
        self.flush()?;
        self.sign_checkpoint()?;
        Ok(self.checkpoints_from(0)?.pop().map(|(_, note)| note))
    }

    /// Writes the journal as JSON lines that verify without the database.
    pub fn export_journal(&self, out: &mut dyn Write) -> Result<u64, Error> {
        self.flush()?;
        self.sign_checkpoint()?;
        let ring = self.load_key_ring()?;
        let mut lines = 0;
        let mut write = |line: &ExportLine| -> Result<(), Error> {
            let text = line.to_json().map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
            lines += 1;
            writeln!(out, "{text}")
                .map_err(|error| Error::new(ErrorKind::Io, format!("the export failed: {}", error.kind())))
        };
        write(&ExportLine::header(&ring))?;
        let mut checkpoints = self.checkpoints_from(0)?.into_iter().peekable();
        let (mut after, mut head) = (0, stead_journal::genesis_hash(&self.store.origin));
        loop {
            let rows: Vec<(i64, Vec<u8>, Vec<u8>)> = self.store.run_query(|connection| {
                connection
                    .prepare_cached(
                        "SELECT number, bytes, hash FROM entries WHERE number > ?1 ORDER BY number LIMIT 1000",
                    )?
                    .query_map(params![to_sql_integer(after)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                    .collect()
            })?;
            if rows.is_empty() {
                break;
            }
            for (number, bytes, hash) in rows {
                after = number.unsigned_abs();
                let unreadable = || Error::new(ErrorKind::CorruptHistory, format!("entry {number} cannot be read"));
                let entry = stead_journal::decode_entry(&bytes).map_err(|_| unreadable())?;
                let hash = store::digest_from_bytes(&hash).ok_or_else(unreadable)?;
                head = hash;
                write(&ExportLine::Entry { record: Box::new(entry), hash })?;
                while let Some((_, note)) = checkpoints.next_if(|(size, _)| *size <= after) {
                    write(&ExportLine::Checkpoint { note })?;
                }
            }
        }
        write(&ExportLine::End { size: after, head })?;
        Ok(lines)
    }
}
