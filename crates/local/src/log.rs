//! The journal for people: verification, proofs, export. Streams, so a journal of any length fits in memory.

use std::io::Write;

use engine::{Failure, Kind};
use journal::{Digest, ExportLine, InclusionProof, Leaf, Tamper, Trusted, Verified, Verifier};
use rusqlite::params;

use crate::{
    open::LocalWorkspace,
    store::{self, sql},
};

/// What a verification found.
#[derive(Debug, Clone)]
pub struct LogReport {
    /// Entries checked.
    pub entries: u64,
    /// Entries covered by the last signed checkpoint.
    pub covered: u64,
    /// Checkpoints checked.
    pub checkpoints: u64,
    /// The state to go on from next time.
    pub trusted: Trusted,
    /// The first thing that does not fit, if any.
    pub tamper: Option<Tamper>,
}

/// One entry's place in the signed tree.
#[derive(Debug, Clone)]
pub struct Proof {
    /// The entry.
    pub number: u64,
    /// Its chain hash.
    pub hash: Digest,
    /// The proof.
    pub proof: InclusionProof,
    /// The signed checkpoint it leads to.
    pub checkpoint: String,
}

impl LocalWorkspace {
    /// Checks every entry, link and signature. `from` goes on from an earlier verification; `against` are checkpoints
    /// that were kept elsewhere.
    pub fn verify_log(&self, from: Option<Trusted>, against: &[String]) -> Result<LogReport, Failure> {
        // Signs nothing: a signature made now would vouch for what has not been checked yet.
        self.flush()?;
        let ring = self.ring()?;
        let start = from.as_ref().map_or(0, |trusted| trusted.frontier.size());
        let mut verifier = match from {
            Some(trusted) => Verifier::resume(ring, trusted),
            None => Verifier::new(ring),
        };
        let mut entries = 0;
        let tip = self.store.look(|connection| store::tip(connection, &self.store.origin))?;
        let expected = if tip.number > start { verifier.expect_head(tip.number, tip.hash) } else { Ok(()) };
        let outcome = match expected {
            Ok(()) => self.feed(&mut verifier, start, against, &mut entries)?,
            Err(tamper) => Err(tamper),
        };
        let verified = outcome.and_then(|()| verifier.finish());
        Ok(match verified {
            Ok(Verified { trusted, covered, checkpoints }) => {
                LogReport { entries, covered, checkpoints, trusted, tamper: None }
            }
            Err(tamper) => LogReport {
                entries,
                covered: 0,
                checkpoints: 0,
                trusted: Trusted {
                    head: journal::genesis(&self.store.origin),
                    frontier: journal::Frontier::new(),
                },
                tamper: Some(tamper),
            },
        })
    }

    /// Feeds entries and checkpoints in order.
    fn feed(
        &self,
        verifier: &mut Verifier,
        start: u64,
        against: &[String],
        entries: &mut u64,
    ) -> Result<Result<(), Tamper>, Failure> {
        let mut notes = self.notes_from(start)?;
        for note in against {
            let size = journal::Checkpoint::parse(note)
                .map_err(|error| {
                    Failure::new(Kind::BadRequest, format!("that is not a checkpoint: {error}"))
                })?
                .size;
            notes.push((size, note.clone()));
        }
        notes.sort_by_key(|(size, _)| *size);
        let mut notes = notes.into_iter().peekable();
        self.store.look(|connection| {
            let mut statement = connection
                .prepare("SELECT number, bytes, hash FROM entries WHERE number > ?1 ORDER BY number")?;
            let mut rows = statement.query(params![sql(start)])?;
            loop {
                while let Some((_, note)) = notes.next_if(|(size, _)| *size <= verifier.size()) {
                    if let Err(tamper) = verifier.checkpoint(&note) {
                        return Ok(Err(tamper));
                    }
                }
                let Some(row) = rows.next()? else { break };
                let number: i64 = row.get(0)?;
                let bytes = row.get_ref(1)?.as_blob()?;
                let hash = store::digest(row.get_ref(2)?.as_blob()?).ok_or(rusqlite::Error::InvalidQuery)?;
                if let Err(tamper) = verifier.push(number.unsigned_abs(), bytes, &hash) {
                    return Ok(Err(tamper));
                }
                *entries += 1;
            }
            for (_, note) in notes {
                if let Err(tamper) = verifier.checkpoint(&note) {
                    return Ok(Err(tamper));
                }
            }
            Ok(Ok(()))
        })
    }

    fn notes_from(&self, size: u64) -> Result<Vec<(u64, String)>, Failure> {
        self.store.look(|connection| {
            connection
                .prepare("SELECT size, note FROM checkpoints WHERE size >= ?1 ORDER BY size")?
                .query_map(params![sql(size)], |row| Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?)))?
                .collect()
        })
    }

    /// Proves that an entry is in the signed journal.
    pub fn prove(&self, number: u64) -> Result<Proof, Failure> {
        self.flush()?;
        self.sign_checkpoint()?;
        let unknown = || Failure::new(Kind::NotFound, format!("entry {number} is not in the journal"));
        let (size, checkpoint) = self.notes_from(number)?.pop().ok_or_else(unknown)?;
        let hashes: Vec<Vec<u8>> = self.store.look(|connection| {
            connection
                .prepare("SELECT hash FROM entries WHERE number <= ?1 ORDER BY number")?
                .query_map(params![sql(size)], |row| row.get(0))?
                .collect()
        })?;
        let leaves =
            hashes.iter().map(|bytes| store::digest(bytes).map(|hash| Leaf::of_entry(&hash)).ok_or(()));
        let index = number.checked_sub(1).ok_or_else(unknown)?;
        let proof = journal::inclusion_proof(index, size, leaves).map_err(|_| unknown())?;
        let own = usize::try_from(index).ok().and_then(|index| hashes.get(index)).ok_or_else(unknown)?;
        Ok(Proof { number, hash: store::digest(own).ok_or_else(unknown)?, proof, checkpoint })
    }

    /// The newest signed checkpoint.
    pub fn latest_checkpoint(&self) -> Result<Option<String>, Failure> {
        self.flush()?;
        self.sign_checkpoint()?;
        Ok(self.notes_from(0)?.pop().map(|(_, note)| note))
    }

    /// Writes the journal as JSON lines that verify without the database.
    pub fn export_log(&self, out: &mut dyn Write) -> Result<u64, Failure> {
        self.flush()?;
        self.sign_checkpoint()?;
        let ring = self.ring()?;
        let mut lines = 0;
        let mut write = |line: &ExportLine| -> Result<(), Failure> {
            let text = line.to_json().map_err(|error| Failure::new(Kind::Io, error.to_string()))?;
            lines += 1;
            writeln!(out, "{text}")
                .map_err(|error| Failure::new(Kind::Io, format!("the export failed: {}", error.kind())))
        };
        write(&ExportLine::header(&ring))?;
        let mut notes = self.notes_from(0)?.into_iter().peekable();
        let (mut after, mut head) = (0, journal::genesis(&self.store.origin));
        loop {
            let rows: Vec<(i64, Vec<u8>, Vec<u8>)> = self.store.look(|connection| {
                connection
                    .prepare_cached("SELECT number, bytes, hash FROM entries WHERE number > ?1 ORDER BY number LIMIT 1000")?
                    .query_map(params![sql(after)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                    .collect()
            })?;
            if rows.is_empty() {
                break;
            }
            for (number, bytes, hash) in rows {
                after = number.unsigned_abs();
                let unreadable =
                    || Failure::new(Kind::CorruptHistory, format!("entry {number} cannot be read"));
                let entry = journal::decode(&bytes).map_err(|_| unreadable())?;
                let hash = store::digest(&hash).ok_or_else(unreadable)?;
                head = hash;
                write(&ExportLine::Entry { record: Box::new(entry), hash })?;
                while let Some((_, note)) = notes.next_if(|(size, _)| *size <= after) {
                    write(&ExportLine::Checkpoint { note })?;
                }
            }
        }
        write(&ExportLine::End { size: after, head })?;
        Ok(lines)
    }
}
