//! The usage that counts towards quotas in the memory workspace, and its expired trash.

use stead_engine::{
    Caller, FilesystemTrashAndHistorySizes, JournalCallRecord, Principal, PrincipalUsage, SessionTotals,
    SessionTotalsQuery, WorkspaceUsage,
};
use stead_journal::JournalEntryRelation;

use super::{MemoryWorkspace, MemoryWorkspaceState};

const TOTAL_BYTES: u64 = 1 << 30;

impl MemoryWorkspaceState {
    pub(super) fn session_totals(&self, query: &SessionTotalsQuery<'_>) -> SessionTotals {
        let mut totals = SessionTotals::default();
        let principal = query.principal.to_string();
        for stored in self.journal.all_entries() {
            let entry = &stored.entry;
            let is_counted = entry.number >= query.from_entry;
            if is_counted && entry.caller.principal == principal && entry.caller.session == query.session {
                totals.add_entry(entry);
            }
        }
        totals
    }

    pub(super) fn storage_usage(&self) -> FilesystemTrashAndHistorySizes {
        FilesystemTrashAndHistorySizes {
            total_bytes: TOTAL_BYTES,
            free_bytes: TOTAL_BYTES,
            trash_items: self.trash.len() as u64,
            trash_bytes: self.trash.values().map(|item| item.item.summary.bytes).sum(),
            history_bytes: self.retained_versions.values().map(|retained| retained.bytes.len() as u64).sum(),
            history_bytes_max: TOTAL_BYTES,
        }
    }

    pub(super) fn count_usage(&self, principal: &Principal) -> PrincipalUsage {
        let owner = principal.to_string();
        let owned = self.trash.values().filter(|item| item.item.owner == owner);
        let sizes = self.tree.paths().filter_map(|path| self.tree.get(path)).map(|placed| placed.node().size);
        let workspace = sizes.fold(WorkspaceUsage::default(), |usage, size| WorkspaceUsage {
            bytes: usage.bytes + size,
            files: usage.files + 1,
        });
        PrincipalUsage { workspace, trash_bytes: owned.map(|item| item.item.summary.bytes).sum() }
    }
}

impl MemoryWorkspace {
    pub(super) fn purge_expired_trash(&self) {
        let mut state = self.lock_state();
        let (before, now_ms) = (state.trash.len(), state.now_ms);
        state.trash.retain(|_, item| item.item.retain_until_ms >= now_ms);
        let purged = before - state.trash.len();
        if purged > 0 {
            let server = Caller::new(Principal::System, "memory", "server");
            let record = JournalCallRecord::new(&server, "empty_trash", format!("{{\"items\":{purged}}}"));
            self.record(&mut state, &record, Vec::new(), JournalEntryRelation::None);
        }
    }
}
