//! Measures the streaming verifier: one million entries of ordinary size, a checkpoint after each 512.
//!
//! `cargo run --release -p journal --example verify_million [entries]`. The entries are made in blocks, so that
//! memory shows what the verifier holds and not the journal; only the time inside the verifier is counted.

#![expect(clippy::print_stdout, reason = "an example that reports figures")]

use std::time::{Duration, Instant};

use journal::{
    Caller, Change, ChangeKind, Checkpoint, Decision, Digest, Entry, Frontier, KeyRecord, KeyRing, Leaf,
    Link, Origin, Signer, State, Verifier, encode, genesis, link_hash,
};

const DEFAULT_ENTRIES: u64 = 1_000_000;
const CHECKPOINT_EVERY: u64 = 512;

fn entry(number: u64) -> Entry {
    let version = Digest::of(&number.to_be_bytes());
    Entry {
        number,
        time_ms: 1_790_000_000_000,
        caller: Caller {
            principal: "agent:writer".into(),
            on_behalf_of: Some("user:ann".into()),
            session: "s-0123456789abcdef".into(),
            face: "mcp".into(),
        },
        request: Some(format!("request-{number:08}")),
        operation: "write".into(),
        tool: None,
        arguments: format!(
            r#"{{"path":"src/some/module_{number}/file.rs","base":"{version}","content":{{"size":4096,"sha256":"{version}"}}}}"#
        ),
        decision: Decision::Allowed,
        reason: None,
        policy: 3,
        tier: None,
        approval: None,
        changes: vec![Change {
            path: format!("src/some/module_{number}/file.rs"),
            kind: ChangeKind::Modify,
            to: None,
            before: State::File { version, size: 4_000, mode: 0o644 },
            after: State::File { version, size: 4_096, mode: 0o644 },
        }],
        link: Link::None,
        bytes: 4_096,
        duration_us: 950,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let entries = std::env::args().nth(1).map_or(Ok(DEFAULT_ENTRIES), |text| text.parse())?;
    let origin = Origin::new("measured")?;
    let signer = Signer::from_seed(&[1; 32]);
    let ring = KeyRing::new(origin.clone(), vec![KeyRecord::first(signer.public())])?;
    let mut head = genesis(&origin);
    let mut frontier = Frontier::new();
    let mut verifier = Verifier::new(ring);
    let mut spent = Duration::ZERO;
    let mut total_bytes = 0;
    while frontier.size() < entries {
        let mut block = Vec::new();
        while block.len() < CHECKPOINT_EVERY as usize && frontier.size() < entries {
            let canonical = encode(&entry(frontier.size() + 1));
            head = link_hash(&head, &canonical);
            frontier.append(Leaf::of_entry(&head));
            total_bytes += canonical.len() as u64;
            block.push((frontier.size(), canonical, head));
        }
        let size = frontier.size();
        let checkpoint = Checkpoint { origin: origin.clone(), size, root: frontier.root(), head, time_ms: 0 };
        let note = checkpoint.sign(&signer);
        let begun = Instant::now();
        for (number, canonical, hash) in &block {
            verifier.push(*number, canonical, hash)?;
        }
        verifier.checkpoint(&note)?;
        spent += begun.elapsed();
    }
    let begun = Instant::now();
    let verified = verifier.finish()?;
    spent += begun.elapsed();
    println!(
        "{} entries of {} bytes, {} checkpoints: {:.2} s, {:.2} us per entry",
        verified.size(),
        total_bytes / entries.max(1),
        verified.checkpoints,
        spent.as_secs_f64(),
        spent.as_secs_f64() * 1e6 / entries.max(1) as f64
    );
    Ok(())
}
