//! The journal of the memory workspace, with a real hash chain.

use std::collections::BTreeMap;

use stead_engine::{
    ErrorClass, ErrorKind, JournalCallRecord, JournalEntryOrder, JournalEntryQuery, JournalHead,
    JournalNoChangeEntryFilter, Principal, StoredJournalEntry, SupervisionTier, Version, WorkspaceUsage,
};
use stead_journal::{
    Digest, JournalEntry, JournalEntryRelation, JournalWorkspaceId, JournaledCallOutcomeStatus, RecordedChange,
    RecordedUsage, chain_hash, encode_entry, genesis_hash, index_entry,
};
use stead_path::RelPath;

pub(super) struct MemoryJournal {
    genesis_hash: Digest,
    entries: Vec<StoredJournalEntry>,
    /// The requested paths of journal entries without changes, by entry number, for journal queries with a path.
    requested_paths: BTreeMap<u64, Vec<RelPath>>,
    undone_by: BTreeMap<u64, u64>,
    entries_by_key: BTreeMap<(String, String), u64>,
}

impl MemoryJournal {
    #[expect(clippy::expect_used, reason = "a fixture with a bad id is a mistake in the test")]
    pub(super) fn new(id: &str) -> Self {
        let origin = JournalWorkspaceId::new(id).expect("a workspace id");
        Self {
            genesis_hash: genesis_hash(&origin),
            entries: Vec::new(),
            requested_paths: BTreeMap::new(),
            undone_by: BTreeMap::new(),
            entries_by_key: BTreeMap::new(),
        }
    }

    pub(super) fn all_entries(&self) -> &[StoredJournalEntry] {
        &self.entries
    }

    pub(super) fn head(&self) -> JournalHead {
        match self.entries.last() {
            Some(stored) => JournalHead { number: stored.entry.number, hash: stored.hash },
            None => JournalHead { number: 0, hash: self.genesis_hash },
        }
    }

    pub(super) fn append(
        &mut self,
        record: &JournalCallRecord<'_>,
        changes: Vec<RecordedChange>,
        link: JournalEntryRelation,
        now_ms: i64,
    ) -> JournalHead {
        let head = self.head();
        let number = head.number + 1;
        if changes.is_empty() {
            self.requested_paths.insert(number, record.paths.clone());
        }
        let entry = JournalEntry {
            number,
            time_ms: now_ms,
            caller: stead_journal::JournalEntryCaller {
                principal: record.caller.principal.to_string(),
                on_behalf_of: record.caller.on_behalf_of.as_ref().map(ToString::to_string),
                session: record.caller.session.clone(),
                protocol: record.caller.protocol.to_owned(),
            },
            request_id: record.idempotency_key.map(str::to_owned),
            operation: record.operation.to_owned(),
            tool: record.tool.map(str::to_owned),
            arguments: record.caller_arguments.clone(),
            decision: decision_for(record.error_kind),
            reason: record.error_kind.map(|kind| kind.code().to_owned()),
            policy_version: record.policy_version,
            tier: (record.policy_tier != SupervisionTier::Autonomous).then(|| record.policy_tier.as_str().to_owned()),
            approval: record.approval.clone(),
            changes,
            relation: link,
            bytes: record.bytes,
            duration_us: 0,
            details: record.details.clone(),
        };
        let index = index_entry(&entry);
        if let Some(undone) = index.undoes {
            self.undone_by.insert(undone, number);
        }
        if let Some(redone) = index.redoes {
            self.undone_by.remove(&redone);
        }
        if let Some(key) = index.idempotency_key {
            self.entries_by_key.insert((index.principal.to_owned(), key.to_owned()), number);
        }
        let hash = chain_hash(&head.hash, &encode_entry(&entry));
        self.entries.push(StoredJournalEntry { entry, hash });
        JournalHead { number, hash }
    }

    pub(super) fn entry(&self, number: u64) -> Option<&StoredJournalEntry> {
        self.entries.iter().find(|stored| stored.entry.number == number)
    }

    pub(super) fn usage_before(&self, number: u64) -> Option<WorkspaceUsage> {
        let RecordedUsage { bytes, files } = self.entry(number)?.entry.details.usage_before?;
        Some(WorkspaceUsage { bytes, files })
    }

    pub(super) fn undone_by(&self, number: u64) -> Option<u64> {
        self.undone_by.get(&number).copied()
    }

    pub(super) fn entry_for_idempotency_key(&self, principal: &Principal, key: &str) -> Option<u64> {
        self.entries_by_key.get(&(principal.to_string(), key.to_owned())).copied()
    }

    pub(super) fn entry_of_version(&self, path: &RelPath, version: &Version) -> Option<u64> {
        let wire = path.to_wire();
        let leaves_version = |stored: &&StoredJournalEntry| {
            index_entry(&stored.entry).paths.get(&*wire).is_some_and(|change| change.version == Some(version.0))
        };
        self.entries.iter().rev().find(leaves_version).map(|stored| stored.entry.number)
    }

    pub(super) fn entries(&self, filter: &JournalEntryQuery) -> Vec<StoredJournalEntry> {
        let fitting = self.entries.iter().filter(|stored| self.matches_filter(&stored.entry, filter)).cloned();
        match filter.order {
            JournalEntryOrder::OldestFirst => fitting.take(filter.limit).collect(),
            JournalEntryOrder::NewestFirst => fitting.rev().take(filter.limit).collect(),
        }
    }

    fn matches_filter(&self, entry: &JournalEntry, filter: &JournalEntryQuery) -> bool {
        let requested = self.requested_paths.get(&entry.number);
        let index = index_entry(entry);
        let about = |path: &RelPath| {
            let within = |wire: &str| RelPath::from_wire(wire).is_ok_and(|place| place.is_within(path));
            path.is_root()
                || requested.is_some_and(|places| places.iter().any(|place| place.is_within(path)))
                || index.paths.keys().any(|wire| within(wire))
        };
        filter.path.as_ref().is_none_or(about)
            && filter.principal.as_ref().is_none_or(|principal| entry.caller.principal == *principal)
            && filter.operation.as_ref().is_none_or(|operation| entry.operation == *operation)
            && filter.after.is_none_or(|after| entry.number > after)
            && filter.before.is_none_or(|before| entry.number < before)
            && filter.since_ms.is_none_or(|since| entry.time_ms >= since)
            && filter.until_ms.is_none_or(|until| entry.time_ms <= until)
            && (filter.selection == JournalNoChangeEntryFilter::All || index.has_changes)
    }
}

fn decision_for(reason: Option<ErrorKind>) -> JournaledCallOutcomeStatus {
    match reason.map(ErrorKind::class) {
        None => JournaledCallOutcomeStatus::Allowed,
        Some(ErrorClass::Refused) => JournaledCallOutcomeStatus::Refused,
        Some(ErrorClass::StateMismatch | ErrorClass::SystemFailure) => JournaledCallOutcomeStatus::Failed,
    }
}
