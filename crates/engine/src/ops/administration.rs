//! The arguments and outcomes of the operations that administer. The macro in `administration.rs` of the engine
//! connects each operation with the method of the storage that runs it.

use serde::{Deserialize, Serialize};
use stead_journal::{Digest, InclusionProof, JournalIntegrityError};

use super::{AccessTokenFields, Secret};
use crate::{
    errors::{Error, ErrorKind},
    outcome::{OperationOutcome, is_default},
    utc_time::UtcSecond,
    workspace::TrashItem,
};

/// Declares arguments: first the fields that a call must have, then the fields that it may omit.
macro_rules! administration_args {
    ($($args:ident { $($required:ident: $kind:ty),* } { $($optional:ident: $optional_kind:ty),* })+) => {$(
        #[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $args {
            $(pub $required: $kind,)*
            $(#[serde(default, skip_serializing_if = "is_default")] pub $optional: $optional_kind,)*
        }
    )+};
}

administration_args! {
    ListTrashArgs {} { all: bool }
    PurgeTrashArgs {} { ids: Vec<String>, mine: bool, all: bool }
    ApplyPolicyArgs { text: String } { version: Option<String> }
    ShowLogArgs {} {
        path: Option<String>, principal: Option<String>, operation: Option<String>, since: Option<String>,
        until: Option<String>, changes: bool, limit: Option<u64>, before: Option<u64>
    }
    VerifyLogArgs {} { full: bool, from: Option<String>, entry: Option<u64>, against: Vec<String>, save: bool }
    SignLogArgs {} {}
    RotateLogKeyArgs {} {}
    ExportLogArgs {} {}
    CreateTokenArgs { principal: String } {
        read_only: bool, readable: Option<Vec<String>>, writable: Option<Vec<String>>, lasts: Option<String>,
        lasts_seconds: Option<u32>, label: String, administer: bool, export: bool, workspace: Option<String>,
        estate: bool
    }
    RotateTokenArgs { id: String } { overlap: Option<String> }
    ListTokensArgs {} { workspace: Option<String>, estate: bool }
    RevokeTokenArgs { id: String } { workspace: Option<String> }
    ListWorkspacesArgs {} { cursor: Option<String>, limit: Option<u64>, trash: bool }
    ShowWorkspaceArgs { name: String } {}
    CreateWorkspaceArgs { name: String } {
        lasting: DestroyedWorkspaceTrashPolicy, label: String, bytes_max: Option<u64>, files_max: Option<u64>,
        policy: Option<String>
    }
    ForkWorkspaceArgs { from: String, name: String } {
        lasting: DestroyedWorkspaceTrashPolicy, label: String, bytes_max: Option<u64>, files_max: Option<u64>,
        policy: Option<String>
    }
    DestroyWorkspaceArgs { name: String } {}
    RestoreWorkspaceArgs { workspace: String } { name: Option<String> }
    ExportWorkspaceArgs { name: String } {}
    ShowApproverArgs {} {}
}

macro_rules! administration_outcomes {
    ($($(#[$attribute:meta])* $outcome:ident { $($(#[$serde:meta])* $field:ident: $kind:ty),* })+) => {$(
        $(#[$attribute])*
        #[derive(Serialize, JsonSchema)]
        pub struct $outcome {
            $($(#[$serde])* pub $field: $kind,)*
        }

        impl OperationOutcome for $outcome {}
    )+};
}

administration_outcomes! {
    ListTrashOutcome { items: Vec<ListedTrashItem> }
    PurgeTrashOutcome { deleted: u64 }
    ApplyPolicyOutcome { version: String }
    SignLogOutcome { checkpoint: String }
    RotateLogKeyOutcome {}
    ExportLogOutcome { lines: u64 }
    CreateTokenOutcome { #[serde(flatten)] fields: AccessTokenFields, token: Secret }
    ListTokensOutcome { tokens: Vec<AccessTokenFields> }
    RevokeTokenOutcome { #[serde(flatten)] fields: AccessTokenFields }
    ListWorkspacesOutcome { workspaces: Vec<WorkspaceDescription>, truncated: bool, cursor: Option<String> }
    ExportWorkspaceOutcome { files: u64, bytes: u64, left_out: u64 }
    SetApproverSecretOutcome {}
    ShowApproverOutcome { secret_set: bool }
    #[derive(Debug, Clone, PartialEq, Eq)]
    WorkspaceDescription {
        name: String,
        id: String,
        lasting: DestroyedWorkspaceTrashPolicy,
        label: String,
        maker: String,
        created_ms: i64,
        used_ms: i64,
        #[serde(skip_serializing_if = "Option::is_none")]
        ends_ms: Option<i64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        origin: Option<WorkspaceOrigin>,
        state: &'static str,
        #[serde(flatten)]
        size: Option<WorkspaceSizeFields>
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedTrashItem {
    pub trash: String,
    pub path: String,
    pub owner: String,
    pub files: u64,
    pub bytes: u64,
    pub removed: UtcSecond,
    pub recoverable_until: UtcSecond,
    pub entry: u64,
}

impl From<TrashItem> for ListedTrashItem {
    fn from(item: TrashItem) -> Self {
        Self {
            trash: item.id,
            path: item.path.to_wire().into_owned(),
            owner: item.owner,
            files: item.summary.files,
            bytes: item.summary.bytes,
            removed: UtcSecond { unix_ms: item.removed_ms },
            recoverable_until: UtcSecond { unix_ms: item.retain_until_ms },
            entry: item.entry,
        }
    }
}

/// An import takes the arguments of the new workspace; the archive is the stream of the call.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ImportWorkspaceArgs(pub CreateWorkspaceArgs);

impl From<&ForkWorkspaceArgs> for CreateWorkspaceArgs {
    fn from(args: &ForkWorkspaceArgs) -> Self {
        let ForkWorkspaceArgs { name, lasting, label, bytes_max, files_max, policy, from: _ } = args.clone();
        Self { name, lasting, label, bytes_max, files_max, policy }
    }
}

/// The secret is no JSON argument, so no protocol can carry it and no journal entry contains it.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetApproverSecretArgs {
    #[serde(skip)]
    pub secret: Secret,
}

impl std::fmt::Debug for SetApproverSecretArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetApproverSecretArgs").finish_non_exhaustive()
    }
}

impl VerifyLogArgs {
    /// Refuses arguments that contradict each other.
    pub fn check(&self) -> Result<(), Error> {
        let is_whole_journal = self.full || self.from.is_some() || self.save || !self.against.is_empty();
        if (self.full && self.from.is_some()) || (self.entry.is_some() && is_whole_journal) {
            return Err(Error::new(ErrorKind::BadRequest, "these arguments cannot be combined")
                .with_next_step("pass either an entry, or full or a saved state with what belongs to it"));
        }
        Ok(())
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum VerifyLogOutcome {
    Journal(VerifiedJournalFields),
    Entry { ok: bool, entry: u64, hash: Digest, proof: InclusionProof, checkpoint: String },
}

impl OperationOutcome for VerifyLogOutcome {}

#[derive(Debug, Serialize, JsonSchema)]
pub struct VerifiedJournalFields {
    pub ok: bool,
    pub checked: u64,
    pub entries: u64,
    pub covered: u64,
    pub checkpoints: u64,
    pub head: Digest,
    #[schemars(with = "()", extend("type" = ["object", "null"]))]
    pub tamper: Option<JournalIntegrityError>,
    /// The verified state, with which a later verification can continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// Whether a destroyed workspace is moved to the trash or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
pub enum DestroyedWorkspaceTrashPolicy {
    #[default]
    #[serde(rename = "kept")]
    MoveToTrash,
    #[serde(rename = "ephemeral")]
    DeleteAtOnce,
}

/// The workspace or archive from which a workspace was created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum WorkspaceOrigin {
    Fork {
        workspace: String,
        number: u64,
        hash: String,
        files: u64,
        directories: u64,
        links: u64,
        bytes: u64,
        left_out: u64,
    },
    Archive {
        archive: ImportedArchiveSize,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedArchiveSize {
    pub files: u64,
    pub bytes: u64,
}

/// The size of a workspace and the end of its journal, which only `workspace.show` measures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WorkspaceSizeFields {
    pub head: JournalHeadFields,
    pub files: u64,
    pub directories: u64,
    pub bytes: u64,
    #[serde(skip_serializing_if = "is_default")]
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JournalHeadFields {
    pub number: u64,
    pub hash: Digest,
}
