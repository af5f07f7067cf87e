//! This example measures how fast the journal verifier checks one million entries.
//!
//! The command `cargo run --release -p stead-journal --example verify_million [entries]` runs the example. Only the
//! time inside the verifier is measured.

#![expect(clippy::print_stdout, reason = "an example that reports figures")]

use std::time::{Duration, Instant};

use stead_journal::{
    ChangeKind, Digest, JournalCheckpoint, JournalEntry, JournalEntryCaller, JournalEntryDetails, JournalEntryRelation,
    JournalKeyRecord, JournalKeyTrustChain, JournalVerifier, JournalWorkspaceId, JournaledCallOutcomeStatus,
    MerkleFrontier, MerkleLeafHash, PathState, RecordedChange, Signer, chain_hash, encode_entry, genesis_hash,
};

const DEFAULT_ENTRIES: u64 = 1_000_000;
const CHECKPOINT_EVERY: u64 = 512;

fn entry(number: u64) -> JournalEntry {
    let version = Digest::sha256(&number.to_be_bytes());
    JournalEntry {
        number,
        time_ms: 1_790_000_000_000,
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
            r#"{{"path":"src/some/module_{number}/file.rs","base":"{version}","content":{{"size":4096,"sha256":"{version}"}}}}"#
        ),
        decision: JournaledCallOutcomeStatus::Allowed,
        reason: None,
        policy_version: 3,
        tier: None,
        approval: None,
        changes: vec![RecordedChange {
            path: format!("src/some/module_{number}/file.rs"),
            kind: ChangeKind::Modify,
            to: None,
            before: PathState::File { version, size: 4_000, mode: 0o644 },
            after: PathState::File { version, size: 4_096, mode: 0o644 },
        }],
        relation: JournalEntryRelation::None,
        bytes: 4_096,
        duration_us: 950,
        details: JournalEntryDetails::default(),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let entries = std::env::args().nth(1).map_or(Ok(DEFAULT_ENTRIES), |text| text.parse())?;
    let origin = JournalWorkspaceId::new("measured")?;
    let signer = Signer::from_seed(&[1; 32]);
    let ring = JournalKeyTrustChain::new(origin.clone(), vec![JournalKeyRecord::first_key(signer.verifying_key())])?;
    let mut head = genesis_hash(&origin);
    let mut frontier = MerkleFrontier::new();
    let mut verifier = JournalVerifier::new(ring);
    let mut spent = Duration::ZERO;
    let mut total_bytes = 0;
    while frontier.size() < entries {
        let mut block = Vec::new();
        while block.len() < CHECKPOINT_EVERY as usize && frontier.size() < entries {
            let canonical = encode_entry(&entry(frontier.size() + 1));
            head = chain_hash(&head, &canonical);
            frontier.append(MerkleLeafHash::from_entry_hash(&head));
            total_bytes += canonical.len() as u64;
            block.push((frontier.size(), canonical, head));
        }
        let size = frontier.size();
        let checkpoint = JournalCheckpoint { origin: origin.clone(), size, root: frontier.root(), head, time_ms: 0 };
        let note = checkpoint.sign(&signer);
        let begun = Instant::now();
        for (number, canonical, hash) in &block {
            verifier.push_entry(*number, canonical, hash)?;
        }
        verifier.push_checkpoint(&note)?;
        spent += begun.elapsed();
    }
    let begun = Instant::now();
    let verified = verifier.finish()?;
    spent += begun.elapsed();
    println!(
        "{} entries of {} bytes, {} checkpoints: {:.2} s, {:.2} us per entry",
        verified.size(),
        total_bytes / entries.max(1),
        verified.checkpoint_count,
        spent.as_secs_f64(),
        spent.as_secs_f64() * 1e6 / entries.max(1) as f64
    );
    Ok(())
}
