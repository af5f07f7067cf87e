//! The origin: the name of one workspace's journal.
//!
//! Owns the rule for workspace ids and the origin line `stead/<workspace id>`. The rule is that of note key names (no
//! spaces, no plus, no control characters), so that every origin is valid in a signature line.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest workspace id.
pub const MAX_WORKSPACE_ID_BYTES: usize = 128;

const ORIGIN_PREFIX: &str = "stead/";

/// A checked workspace id; the origin line, the genesis hash and the key ids derive from it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct JournalOrigin {
    line: String,
}

/// The workspace id is not valid as a journal name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a workspace id is 1 to {MAX_WORKSPACE_ID_BYTES} printable ASCII characters without space and plus")]
pub struct WorkspaceIdError;

impl JournalOrigin {
    /// Checks a workspace id.
    pub fn new(workspace_id: &str) -> Result<Self, WorkspaceIdError> {
        let fits = (1..=MAX_WORKSPACE_ID_BYTES).contains(&workspace_id.len());
        let plain = workspace_id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'+');
        if fits && plain { Ok(Self { line: format!("{ORIGIN_PREFIX}{workspace_id}") }) } else { Err(WorkspaceIdError) }
    }

    /// Checks an origin line `stead/<workspace id>`.
    pub(crate) fn from_line(line: &str) -> Result<Self, WorkspaceIdError> {
        Self::new(line.strip_prefix(ORIGIN_PREFIX).ok_or(WorkspaceIdError)?)
    }

    /// The workspace id.
    pub fn workspace_id(&self) -> &str {
        &self.line[ORIGIN_PREFIX.len()..]
    }

    /// The origin line, also the name of the journal's keys.
    pub fn line(&self) -> &str {
        &self.line
    }
}

impl fmt::Display for JournalOrigin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.line)
    }
}

impl FromStr for JournalOrigin {
    type Err = WorkspaceIdError;

    fn from_str(workspace_id: &str) -> Result<Self, WorkspaceIdError> {
        Self::new(workspace_id)
    }
}

impl TryFrom<String> for JournalOrigin {
    type Error = WorkspaceIdError;

    fn try_from(workspace_id: String) -> Result<Self, WorkspaceIdError> {
        Self::new(&workspace_id)
    }
}

impl From<JournalOrigin> for String {
    fn from(origin: JournalOrigin) -> Self {
        origin.workspace_id().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_ids_are_accepted_unchanged() {
        let origin = JournalOrigin::new("a1b2-c3").unwrap();
        assert_eq!(origin.line(), "stead/a1b2-c3");
        assert_eq!(origin.workspace_id(), "a1b2-c3");
        assert_eq!(JournalOrigin::from_line(origin.line()), Ok(origin));
    }

    #[test]
    fn ids_that_would_break_a_note_are_rejected() {
        for id in ["", "a b", "a+b", "a\nb", "é", &"x".repeat(MAX_WORKSPACE_ID_BYTES + 1)] {
            assert_eq!(JournalOrigin::new(id), Err(WorkspaceIdError), "{id:?}");
        }
        assert_eq!(JournalOrigin::from_line("other/a"), Err(WorkspaceIdError));
    }
}
