//! A small journal to damage.

use journal::{
    Caller, Change, ChangeKind, Checkpoint, Decision, Digest, Entry, Frontier, KeyRecord, KeyRing, Leaf,
    Link, Origin, Signer, State, Tamper, Verified, Verifier, encode, genesis, link_hash,
};

pub(crate) fn signer(seed: u8) -> Signer {
    Signer::from_seed(&[seed; 32])
}

pub(crate) fn origin() -> Origin {
    Origin::new("w1").unwrap()
}

/// One key for the whole journal.
pub(crate) fn ring() -> KeyRing {
    KeyRing::new(origin(), vec![KeyRecord::first(signer(1).public())]).unwrap()
}

pub(crate) fn entry(number: u64) -> Entry {
    let before = State::File { version: Digest::of(&number.to_be_bytes()), size: number, mode: 0o644 };
    let after =
        State::File { version: Digest::of(&(number + 1).to_be_bytes()), size: number + 1, mode: 0o644 };
    Entry {
        number,
        time_ms: 1_790_000_000_000 + number as i64,
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
            r#"{{"path":"src/module_{number}/file.rs","content":{{"size":{number},"sha256":"{}"}}}}"#,
            Digest::of(&number.to_be_bytes())
        ),
        decision: Decision::Allowed,
        reason: None,
        policy: 3,
        tier: None,
        approval: None,
        changes: vec![Change {
            path: format!("src/module_{number}/file.rs"),
            kind: ChangeKind::Modify,
            to: None,
            before,
            after,
        }],
        link: Link::None,
        bytes: number,
        duration_us: 950,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) number: u64,
    pub(crate) canonical: Vec<u8>,
    pub(crate) hash: Digest,
}

/// A journal as a store would hold it: rows, and signed notes with the size each claims.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) ring: KeyRing,
    pub(crate) rows: Vec<Row>,
    pub(crate) notes: Vec<(u64, String)>,
}

impl Log {
    /// `count` entries, a checkpoint after each `every`.
    pub(crate) fn grown(count: u64, every: u64) -> Self {
        let rows = (1..=count).map(|number| Row {
            number,
            canonical: encode(&entry(number)),
            hash: Digest([0; 32]),
        });
        let mut log = Self { ring: ring(), rows: rows.collect(), notes: Vec::new() };
        log.rechain();
        log.notes = (1..=count / every).map(|n| (n * every, log.note(n * every, &signer(1)))).collect();
        log
    }

    /// What a forger without the key does: makes every recorded hash fit the bytes again.
    pub(crate) fn rechain(&mut self) {
        let mut head = genesis(self.ring.origin());
        for row in &mut self.rows {
            head = link_hash(&head, &row.canonical);
            row.hash = head;
        }
    }

    pub(crate) fn checkpoint(&self, size: u64) -> Checkpoint {
        let mut frontier = Frontier::new();
        let mut head = genesis(self.ring.origin());
        for row in &self.rows[..size as usize] {
            frontier.append(Leaf::of_entry(&row.hash));
            head = row.hash;
        }
        let origin = self.ring.origin().clone();
        Checkpoint { origin, size, root: frontier.root(), head, time_ms: 1_790_000_000_000 + size as i64 }
    }

    pub(crate) fn note(&self, size: u64, signer: &Signer) -> String {
        self.checkpoint(size).sign(signer)
    }

    pub(crate) fn verify(&self) -> Result<Verified, Tamper> {
        self.verify_from(Verifier::new(self.ring.clone()))
    }

    /// Feeds rows and notes as a reader does: notes in order, each as soon as its size is reached.
    pub(crate) fn verify_from(&self, mut verifier: Verifier) -> Result<Verified, Tamper> {
        let start = verifier.size();
        let mut notes = self.notes.iter().skip_while(|(size, _)| *size < start).peekable();
        for row in self.rows.iter().skip(start as usize) {
            while let Some((_, note)) = notes.next_if(|(size, _)| *size <= verifier.size()) {
                verifier.checkpoint(note)?;
            }
            verifier.push(row.number, &row.canonical, &row.hash)?;
        }
        for (_, note) in notes {
            verifier.checkpoint(note)?;
        }
        verifier.finish()
    }
}
