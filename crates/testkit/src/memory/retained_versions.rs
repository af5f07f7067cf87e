//! The file versions that the memory workspace retains, each with the principal whose history it belongs to.

use stead_engine::{Principal, Version};

use super::MemoryWorkspaceState;

pub(super) struct TestMemoryWorkspaceRetainedVersion {
    pub(super) bytes: Vec<u8>,
    /// The principal who wrote or overwrote the version last.
    last_writer: Principal,
    /// The history of a user needs the version, so the version never counts for an agent.
    is_needed_by_user: bool,
}

impl MemoryWorkspaceState {
    pub(super) fn retain_version(&mut self, version: Version, bytes: Vec<u8>, writer: &Principal) {
        let is_needed_by_user = !matches!(writer, Principal::Agent(_))
            || self.retained_versions.get(&version).is_some_and(|known| known.is_needed_by_user);
        let retained = TestMemoryWorkspaceRetainedVersion { bytes, last_writer: writer.clone(), is_needed_by_user };
        self.retained_versions.insert(version, retained);
    }

    pub(super) fn history_bytes_of(&self, principal: &Principal) -> u64 {
        let is_agent = matches!(principal, Principal::Agent(_));
        let counts = |retained: &&TestMemoryWorkspaceRetainedVersion| {
            retained.last_writer == *principal && !(is_agent && retained.is_needed_by_user)
        };
        self.retained_versions.values().filter(counts).map(|retained| retained.bytes.len() as u64).sum()
    }
}
