//! Verifies and exports the journal, and proves that the journal contains an entry. Verification and export read the
//! journal entry by entry, so the journal need not fit in memory.

use std::io::Write;

use rusqlite::{Row, params};
use stead_engine::{Error, ErrorKind, NextStep};
use stead_journal::{
    Digest, InclusionProof, JournalCheckpoint, JournalExportLine, JournalIntegrityError, JournalIntegrityErrorKind,
    JournalVerifier, MerkleFrontier, MerkleLeafHash, VerifiedJournalPrefix, VerifiedJournalSummary,
};

use crate::{
    entry_index::EntryIndexVerifier,
    open::LocalWorkspace,
    store::{self, number_at, to_sql_integer},
};

/// The result of verifying the journal.
#[derive(Debug, Clone)]
pub struct JournalVerifyReport {
    pub entries: u64,
    /// The number of journal entries that the last signed checkpoint covers.
    pub covered_by_checkpoint: u64,
    pub checkpoint_count: u64,
    /// The verified part of the journal, after which the next verification can continue.
    pub verified_prefix: VerifiedJournalPrefix,
    /// The first integrity error of the journal, or `None` if the journal is intact.
    pub integrity_error: Option<JournalIntegrityError>,
}

/// A proof that the signed journal contains an entry.
#[derive(Debug, Clone)]
pub struct EntryProof {
    pub number: u64,
    /// The chain hash of the proved journal entry.
    pub hash: Digest,
    pub proof: InclusionProof,
    /// The signed checkpoint that covers the proved journal entry.
    pub checkpoint: String,
}

impl LocalWorkspace {
    /// Checks every entry, the index of the entries, the hash chain and every signature of the journal. If `from` is given, the verification
    /// skips that part of the journal, which was verified before. The checkpoints in `against` were kept outside the
    /// workspace and are compared with the journal.
    pub fn verify_journal(
        &self,
        from: Option<VerifiedJournalPrefix>,
        against: &[String],
    ) -> Result<JournalVerifyReport, Error> {
        // Verification signs no checkpoint, because the checkpoint would cover unverified entries.
        self.flush()?;
        let ring = self.load_key_ring()?;
        let start = from.as_ref().map_or(0, |prefix| prefix.frontier.size());
        let mut verifier = match from {
            Some(prefix) => JournalVerifier::resume(ring, prefix),
            None => JournalVerifier::new(ring),
        };
        let mut entries = 0;
        let tip = self.store.run_query(|connection| store::load_tip(connection, &self.store.origin))?;
        let expected = if tip.number > start { verifier.expect_head(tip.number, tip.hash) } else { Ok(()) };
        let outcome = match expected {
            Ok(()) => self.feed_verifier(&mut verifier, start, against, &mut entries)?,
            Err(error) => Err(error),
        };
        let (summary, integrity_error) = match outcome.and_then(|()| verifier.finish()) {
            Ok(summary) => (summary, None),
            Err(error) => {
                let head = stead_journal::genesis_hash(&self.store.origin);
                let prefix = VerifiedJournalPrefix { head, frontier: MerkleFrontier::new() };
                (VerifiedJournalSummary { prefix, covered_by_checkpoint: 0, checkpoint_count: 0 }, Some(error))
            }
        };
        let VerifiedJournalSummary { prefix: verified_prefix, covered_by_checkpoint, checkpoint_count } = summary;
        Ok(JournalVerifyReport { entries, covered_by_checkpoint, checkpoint_count, verified_prefix, integrity_error })
    }

    fn feed_verifier(
        &self,
        verifier: &mut JournalVerifier,
        start: u64,
        against: &[String],
        entries: &mut u64,
    ) -> Result<Result<(), JournalIntegrityError>, Error> {
        let mut checkpoints = self.checkpoints_from(start)?;
        for note in against {
            let malformed = |error| {
                Error::new(ErrorKind::BadRequest, format!("the given checkpoint cannot be read: {error}"))
                    .with_next_step("pass a file with the output of `stead log checkpoint`")
            };
            checkpoints.push((JournalCheckpoint::parse(note).map_err(malformed)?.size, note.clone()));
        }
        checkpoints.sort_by_key(|(size, _)| *size);
        let mut checkpoints = checkpoints.into_iter().peekable();
        self.store.run_query(|connection| {
            // The transaction gives all queries the same state.
            let transaction = connection.unchecked_transaction()?;
            let mut index = EntryIndexVerifier::new(&transaction, start);
            let mut statement = transaction.prepare("SELECT * FROM entries WHERE number > ?1 ORDER BY number")?;
            let mut rows = statement.query(params![to_sql_integer(start)])?;
            loop {
                while let Some((_, note)) = checkpoints.next_if(|(size, _)| *size <= verifier.size()) {
                    if let Err(error) = verifier.push_checkpoint(&note) {
                        return Ok(Err(error));
                    }
                }
                let Some(row) = rows.next()? else { break };
                let (number, bytes) = (number_at(row, "number")?, row.get_ref("bytes")?.as_blob()?);
                match verifier.push_entry(number, bytes, &store::digest_at(row, "hash")?) {
                    Ok(entry) if index.check_entry(&entry, row)? => *entries += 1,
                    Ok(_) => return Ok(Err(JournalIntegrityErrorKind::IndexMismatch.at_entry(number))),
                    Err(error) => return Ok(Err(error)),
                }
            }
            if let Some(number) = index.finish()? {
                return Ok(Err(JournalIntegrityErrorKind::IndexMismatch.at_entry(number)));
            }
            Ok(checkpoints.try_for_each(|(_, note)| verifier.push_checkpoint(&note)))
        })
    }

    fn checkpoints_from(&self, size: u64) -> Result<Vec<(u64, String)>, Error> {
        let sql = "SELECT size, note FROM checkpoints WHERE size >= ?1 ORDER BY size";
        self.store.query_rows(sql, params![to_sql_integer(size)], |row| Ok((number_at(row, 0)?, row.get(1)?)))
    }

    /// Signs the journal and proves that the journal contains the entry with this number.
    pub fn prove_entry(&self, number: u64) -> Result<EntryProof, Error> {
        self.flush()?;
        self.sign_checkpoint()?;
        let unknown = || {
            Error::new(ErrorKind::NotFound, format!("entry {number} is not in the journal"))
                .with_next_step(NextStep::person_command("log", "see the entries"))
        };
        let (size, checkpoint) = self.checkpoints_from(number)?.pop().ok_or_else(unknown)?;
        let sql = "SELECT hash FROM entries WHERE number <= ?1 ORDER BY number";
        let hashes: Vec<Vec<u8>> = self.store.query_rows(sql, params![to_sql_integer(size)], |row| row.get(0))?;
        let leaves = hashes
            .iter()
            .map(|bytes| store::digest_from_bytes(bytes).map(|hash| MerkleLeafHash::from_entry_hash(&hash)).ok_or(()));
        let index = number.checked_sub(1).ok_or_else(unknown)?;
        let proof = stead_journal::inclusion_proof(index, size, leaves).map_err(|_| unknown())?;
        let hash = usize::try_from(index).ok().and_then(|index| store::digest_from_bytes(hashes.get(index)?));
        Ok(EntryProof { number, hash: hash.ok_or_else(unknown)?, proof, checkpoint })
    }

    /// Signs the journal and returns the newest checkpoint.
    pub fn latest_checkpoint(&self) -> Result<Option<String>, Error> {
        self.flush()?;
        self.sign_checkpoint()?;
        Ok(self.checkpoints_from(0)?.pop().map(|(_, note)| note))
    }

    /// Exports the journal as JSON lines, which can be verified without a database. The export returns the number of
    /// lines that it wrote.
    pub fn export_journal(&self, out: &mut dyn Write) -> Result<u64, Error> {
        self.flush()?;
        self.sign_checkpoint()?;
        let ring = self.load_key_ring()?;
        let mut lines = 0;
        let mut write = |line: &JournalExportLine| -> Result<(), Error> {
            let text = line.to_json().map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
            lines += 1;
            writeln!(out, "{text}").map_err(|error| {
                Error::new(ErrorKind::Io, format!("cannot write the export: {}", error.kind()))
                    .with_next_step("check the free space and the permissions of the destination")
            })
        };
        write(&JournalExportLine::header(&ring))?;
        let mut checkpoints = self.checkpoints_from(0)?.into_iter().peekable();
        let (mut after, mut head) = (0, stead_journal::genesis_hash(&self.store.origin));
        loop {
            let sql = "SELECT number, bytes, hash FROM entries WHERE number > ?1 ORDER BY number LIMIT 1000";
            let read = |row: &Row<'_>| Ok((number_at(row, 0)?, row.get(1)?, row.get(2)?));
            let rows: Vec<(u64, Vec<u8>, Vec<u8>)> =
                self.store.query_rows(sql, params![to_sql_integer(after)], read)?;
            if rows.is_empty() {
                break;
            }
            for (number, bytes, hash) in rows {
                after = number;
                let unreadable = || {
                    Error::new(
                        ErrorKind::CorruptHistory,
                        format!("journal entry {number} is damaged and cannot be read"),
                    )
                    .with_next_step(NextStep::person_command("log verify", "check the journal"))
                };
                let entry = stead_journal::decode_entry(&bytes).map_err(|_| unreadable())?;
                let hash = store::digest_from_bytes(&hash).ok_or_else(unreadable)?;
                head = hash;
                write(&JournalExportLine::Entry { record: Box::new(entry), hash })?;
                while let Some((_, note)) = checkpoints.next_if(|(size, _)| *size <= after) {
                    write(&JournalExportLine::Checkpoint { note })?;
                }
            }
        }
        write(&JournalExportLine::End { size: after, head })?;
        Ok(lines)
    }
}
