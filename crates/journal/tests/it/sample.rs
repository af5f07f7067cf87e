//! A small sample journal that tests tamper with.

use stead_journal::{
    ChangeKind, Digest, JournalCheckpoint, JournalEntry, JournalEntryCaller, JournalEntryDetails, JournalEntryRelation,
    JournalIntegrityError, JournalKeyRecord, JournalKeyTrustChain, JournalVerifier, JournalWorkspaceId,
    JournaledCallOutcomeStatus, MerkleFrontier, MerkleLeafHash, PathState, RecordedChange, Signer,
    VerifiedJournalSummary, chain_hash, encode_entry, genesis_hash,
};

pub(crate) fn signer(seed: u8) -> Signer {
    Signer::from_seed(&[seed; 32])
}

pub(crate) fn origin() -> JournalWorkspaceId {
    JournalWorkspaceId::new("w1").unwrap()
}

pub(crate) fn ring() -> JournalKeyTrustChain {
    JournalKeyTrustChain::new(origin(), vec![JournalKeyRecord::first_key(signer(1).verifying_key())]).unwrap()
}

pub(crate) fn entry(number: u64) -> JournalEntry {
    let before = PathState::File { version: Digest::sha256(&number.to_be_bytes()), size: number, mode: 0o644 };
    let after = PathState::File { version: Digest::sha256(&(number + 1).to_be_bytes()), size: number + 1, mode: 0o644 };
    JournalEntry {
        number,
        time_ms: 1_790_000_000_000 + number as i64,
        caller: JournalEntryCaller {
            principal: "agent:writer".into(),
            on_behalf_of: Some("user:ann".into()),
            session: "s-0123456789abcdef".into(),
            protocol: "mcp".into(),
        },
        request_id: Some(format!("request-{number:08}")),
        operation: "write".into(),
        tool: None,
        arguments: format!(
            r#"{{"path":"src/module_{number}/file.rs","content":{{"size":{number},"sha256":"{}"}}}}"#,
            Digest::sha256(&number.to_be_bytes())
        ),
        decision: JournaledCallOutcomeStatus::Allowed,
        reason: None,
        policy_version: 3,
        tier: None,
        approval: None,
        changes: vec![RecordedChange {
            path: format!("src/module_{number}/file.rs"),
            kind: ChangeKind::Modify,
            to: None,
            before,
            after,
        }],
        relation: JournalEntryRelation::None,
        bytes: number,
        duration_us: 950,
        details: JournalEntryDetails::default(),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SampleJournalEntry {
    pub(crate) number: u64,
    pub(crate) canonical: Vec<u8>,
    pub(crate) hash: Digest,
}

#[derive(Debug, Clone)]
pub(crate) struct SampleJournal {
    pub(crate) ring: JournalKeyTrustChain,
    pub(crate) entries: Vec<SampleJournalEntry>,
    pub(crate) checkpoints: Vec<(u64, String)>,
}

impl SampleJournal {
    pub(crate) fn with_entries(count: u64, every: u64) -> Self {
        let rows = (1..=count).map(|number| SampleJournalEntry {
            number,
            canonical: encode_entry(&entry(number)),
            hash: Digest([0; 32]),
        });
        let mut log = Self { ring: ring(), entries: rows.collect(), checkpoints: Vec::new() };
        log.recompute_hashes();
        log.checkpoints =
            (1..=count / every).map(|n| (n * every, log.signed_checkpoint(n * every, &signer(1)))).collect();
        log
    }

    /// Recomputes the recorded hash of every entry, as a forger without the signing key would.
    pub(crate) fn recompute_hashes(&mut self) {
        let mut head = genesis_hash(self.ring.origin());
        for row in &mut self.entries {
            head = chain_hash(&head, &row.canonical);
            row.hash = head;
        }
    }

    pub(crate) fn checkpoint(&self, size: u64) -> JournalCheckpoint {
        let mut frontier = MerkleFrontier::new();
        let mut head = genesis_hash(self.ring.origin());
        for row in &self.entries[..size as usize] {
            frontier.append(MerkleLeafHash::from_entry_hash(&row.hash));
            head = row.hash;
        }
        let origin = self.ring.origin().clone();
        JournalCheckpoint { origin, size, root: frontier.root(), head, time_ms: 1_790_000_000_000 + size as i64 }
    }

    pub(crate) fn signed_checkpoint(&self, size: u64, signer: &Signer) -> String {
        self.checkpoint(size).sign(signer)
    }

    pub(crate) fn verify(&self) -> Result<VerifiedJournalSummary, JournalIntegrityError> {
        self.verify_from(JournalVerifier::new(self.ring.clone()))
    }

    pub(crate) fn verify_from(
        &self,
        mut verifier: JournalVerifier,
    ) -> Result<VerifiedJournalSummary, JournalIntegrityError> {
        let start = verifier.size();
        let mut notes = self.checkpoints.iter().skip_while(|(size, _)| *size < start).peekable();
        for row in self.entries.iter().skip(start as usize) {
            while let Some((_, note)) = notes.next_if(|(size, _)| *size <= verifier.size()) {
                verifier.push_checkpoint(note)?;
            }
            verifier.push_entry(row.number, &row.canonical, &row.hash)?;
        }
        for (_, note) in notes {
            verifier.push_checkpoint(note)?;
        }
        verifier.finish()
    }
}
