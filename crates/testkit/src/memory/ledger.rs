//! The journal: entries with real chain hashes, what is undone, and the idempotency keys.

use std::collections::BTreeMap;

use engine::{EntryFilter, Fault, Head, Kind, Order, Principal, Record, Stored, Tier, Version, Which};
use journal::{Change, Decision, Digest, Entry, Link, Origin, State, encode, genesis, link_hash};
use path::RelPath;

/// All entries, first to last.
pub(super) struct Ledger {
    start: Digest,
    entries: Vec<Stored>,
    /// What calls that changed nothing asked for, by entry.
    asked: BTreeMap<u64, Vec<RelPath>>,
    undone: BTreeMap<u64, u64>,
    keys: BTreeMap<(String, String), u64>,
}

impl Ledger {
    #[expect(clippy::expect_used, reason = "a fixture with a bad id is a mistake in the test")]
    pub(super) fn new(id: &str) -> Self {
        let origin = Origin::new(id).expect("a workspace id");
        Self {
            start: genesis(&origin),
            entries: Vec::new(),
            asked: BTreeMap::new(),
            undone: BTreeMap::new(),
            keys: BTreeMap::new(),
        }
    }

    /// Every entry, first to last.
    pub(super) fn all(&self) -> &[Stored] {
        &self.entries
    }

    pub(super) fn head(&self) -> Head {
        match self.entries.last() {
            Some(stored) => Head { number: stored.entry.number, hash: stored.hash },
            None => Head { number: 0, hash: self.start },
        }
    }

    pub(super) fn append(
        &mut self,
        record: &Record<'_>,
        changes: Vec<Change>,
        link: Link,
        now_ms: i64,
    ) -> Head {
        let head = self.head();
        let number = head.number + 1;
        match &link {
            Link::Undoes(undone) => {
                self.undone.insert(*undone, number);
            }
            Link::Redoes(redone) => {
                self.undone.remove(redone);
            }
            Link::None | Link::Restores(_) | Link::Amends(_) => {}
        }
        if let Some(key) = record.key.filter(|_| !changes.is_empty()) {
            self.keys.insert((record.caller.principal.to_string(), key.to_owned()), number);
        }
        if changes.is_empty() {
            self.asked.insert(number, record.paths.clone());
        }
        let entry = Entry {
            number,
            time_ms: now_ms,
            caller: journal::Caller {
                principal: record.caller.principal.to_string(),
                on_behalf_of: record.caller.on_behalf_of.as_ref().map(ToString::to_string),
                session: record.caller.session.clone(),
                face: record.caller.face.to_owned(),
            },
            request: record.key.map(str::to_owned),
            operation: record.operation.to_owned(),
            tool: record.tool.map(str::to_owned),
            arguments: record.arguments.clone(),
            decision: decision(record.reason),
            reason: record.reason.map(|kind| kind.code().to_owned()),
            policy: record.policy,
            tier: (record.tier != Tier::Autonomous).then(|| record.tier.word().to_owned()),
            approval: record.approval.clone(),
            changes,
            link,
            bytes: record.bytes,
            duration_us: 0,
        };
        let hash = link_hash(&head.hash, &encode(&entry));
        self.entries.push(Stored { entry, hash });
        Head { number, hash }
    }

    pub(super) fn entry(&self, number: u64) -> Option<&Stored> {
        self.entries.iter().find(|stored| stored.entry.number == number)
    }

    pub(super) fn undone(&self, number: u64) -> Option<u64> {
        self.undone.get(&number).copied()
    }

    pub(super) fn replayed(&self, principal: &Principal, key: &str) -> Option<u64> {
        self.keys.get(&(principal.to_string(), key.to_owned())).copied()
    }

    pub(super) fn rev_of(&self, path: &RelPath, version: &Version) -> Option<u64> {
        let wire = path.to_wire();
        let left = |change: &Change| {
            let place = change.to.as_deref().unwrap_or(&change.path);
            matches!(&change.after, State::File { version: left, .. } if place == wire && *left == version.0)
        };
        self.entries
            .iter()
            .rev()
            .find(|stored| stored.entry.changes.iter().any(left))
            .map(|stored| stored.entry.number)
    }

    pub(super) fn entries(&self, filter: &EntryFilter) -> Vec<Stored> {
        let fitting = self.entries.iter().filter(|stored| self.fits(&stored.entry, filter)).cloned();
        match filter.order {
            Order::OldestFirst => fitting.take(filter.limit).collect(),
            Order::NewestFirst => fitting.rev().take(filter.limit).collect(),
        }
    }

    fn fits(&self, entry: &Entry, filter: &EntryFilter) -> bool {
        let asked = self.asked.get(&entry.number);
        let about = |path: &RelPath| {
            let within = |wire: &str| RelPath::from_wire(wire).is_ok_and(|place| place.is_within(path));
            path.is_root()
                || asked.is_some_and(|places| places.iter().any(|place| place.is_within(path)))
                || entry
                    .changes
                    .iter()
                    .any(|change| within(&change.path) || change.to.as_deref().is_some_and(within))
        };
        filter.path.as_ref().is_none_or(about)
            && filter.principal.as_ref().is_none_or(|principal| entry.caller.principal == *principal)
            && filter.operation.as_ref().is_none_or(|operation| entry.operation == *operation)
            && filter.after.is_none_or(|after| entry.number > after)
            && filter.before.is_none_or(|before| entry.number < before)
            && filter.since_ms.is_none_or(|since| entry.time_ms >= since)
            && filter.until_ms.is_none_or(|until| entry.time_ms <= until)
            && (filter.what == Which::All || !entry.changes.is_empty())
    }
}

fn decision(reason: Option<Kind>) -> Decision {
    match reason.map(Kind::fault) {
        None => Decision::Allowed,
        Some(Fault::Refusal) => Decision::Refused,
        Some(Fault::World | Fault::Machine) => Decision::Failed,
    }
}
