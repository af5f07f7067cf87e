//! The hash chain of a journal, and the origin line that names the workspace of the journal.
//!
//! The hash of an entry covers a domain prefix, the previous hash and the entry's bytes. The genesis hash includes the
//! origin line, so two workspaces never share a chain. Workspace ids follow the rule for key names in signed notes: no
//! spaces, no plus signs, no control characters.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Digest;

/// The length in bytes of the longest valid workspace id.
pub const MAX_WORKSPACE_ID_BYTES: usize = 128;

const ORIGIN_PREFIX: &str = "stead/";

/// The domain prefixes have a fixed length and keep hashes for different purposes apart.
const CHAIN_DOMAIN: &[u8; 16] = b"stead entry v1\0\0";
const GENESIS_DOMAIN: &[u8; 16] = b"stead genesis 1\0";

/// A checked workspace id, from which the origin line, the genesis hash and the key ids derive.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JournalWorkspaceId {
    line: String,
}

/// The error for a workspace id that is empty, too long, or contains a forbidden character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a workspace id is 1 to {MAX_WORKSPACE_ID_BYTES} printable ASCII characters without space and plus")]
pub struct WorkspaceIdError;

impl JournalWorkspaceId {
    /// Creates a workspace id after a check of its length and characters.
    pub fn new(workspace_id: &str) -> Result<Self, WorkspaceIdError> {
        let fits = (1..=MAX_WORKSPACE_ID_BYTES).contains(&workspace_id.len());
        let plain = workspace_id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'+');
        if fits && plain { Ok(Self { line: format!("{ORIGIN_PREFIX}{workspace_id}") }) } else { Err(WorkspaceIdError) }
    }

    pub(crate) fn from_line(line: &str) -> Result<Self, WorkspaceIdError> {
        Self::new(line.strip_prefix(ORIGIN_PREFIX).ok_or(WorkspaceIdError)?)
    }

    /// The workspace id without the prefix `stead/`.
    pub fn workspace_id(&self) -> &str {
        &self.line[ORIGIN_PREFIX.len()..]
    }

    /// The origin line `stead/<workspace id>`, which is also the name of the journal's keys.
    pub fn line(&self) -> &str {
        &self.line
    }
}

impl fmt::Display for JournalWorkspaceId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.line)
    }
}

impl TryFrom<String> for JournalWorkspaceId {
    type Error = WorkspaceIdError;

    fn try_from(workspace_id: String) -> Result<Self, WorkspaceIdError> {
        Self::new(&workspace_id)
    }
}

impl From<JournalWorkspaceId> for String {
    fn from(origin: JournalWorkspaceId) -> Self {
        origin.workspace_id().to_owned()
    }
}

/// The chain hash of a journal entry, computed from its canonical bytes and the previous chain hash.
pub fn chain_hash(previous: &Digest, canonical: &[u8]) -> Digest {
    Digest::sha256_of_parts(&[CHAIN_DOMAIN, previous.as_bytes(), canonical])
}

/// The genesis hash, which takes the place of the previous hash for the first journal entry of a workspace.
pub fn genesis_hash(origin: &JournalWorkspaceId) -> Digest {
    Digest::sha256_of_parts(&[GENESIS_DOMAIN, origin.line().as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_ids_are_accepted_unchanged() {
        let origin = JournalWorkspaceId::new("a1b2-c3").unwrap();
        assert_eq!(origin.line(), "stead/a1b2-c3");
        assert_eq!(origin.workspace_id(), "a1b2-c3");
        assert_eq!(JournalWorkspaceId::from_line(origin.line()), Ok(origin));
    }

    #[test]
    fn ids_that_would_break_a_note_are_rejected() {
        for id in ["", "a b", "a+b", "a\nb", "é", &"x".repeat(MAX_WORKSPACE_ID_BYTES + 1)] {
            assert_eq!(JournalWorkspaceId::new(id), Err(WorkspaceIdError), "{id:?}");
        }
        assert_eq!(JournalWorkspaceId::from_line("other/a"), Err(WorkspaceIdError));
    }

    #[test]
    fn hash_covers_bytes_position_and_workspace() {
        let one = genesis_hash(&JournalWorkspaceId::new("one").unwrap());
        let two = genesis_hash(&JournalWorkspaceId::new("two").unwrap());
        let hashes = [one, two, chain_hash(&one, b"a"), chain_hash(&one, b"b"), chain_hash(&two, b"a")];
        for (index, hash) in hashes.iter().enumerate() {
            assert!(!hashes[index + 1..].contains(hash));
        }
    }

    /// The expected hashes of the test were computed with an independent implementation of SHA-256.
    #[test]
    fn hashes_match_known_answers() {
        let one = genesis_hash(&JournalWorkspaceId::new("one").unwrap());
        assert_eq!(one.to_string(), "3611b7bb87173e49cef636cbac45632036307a9e7320de1a8e68e9c6e2f80761");
        assert_eq!(
            chain_hash(&one, b"a").to_string(),
            "591efdd4153ed4c3847c1a0be11af2289ab8c335b08a14fdc7436b9a3fcdd62a"
        );
    }
}
