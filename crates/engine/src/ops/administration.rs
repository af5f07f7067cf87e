//! The arguments and outcomes of the operations that administer. The macro in `administration.rs` of the engine
//! connects each operation with the method of the storage that runs it.

use serde::{Deserialize, Serialize};

use crate::{
    outcome::{OperationOutcome, is_default},
    utc_time::UtcSecond,
    workspace::TrashItem,
};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListTrashArgs {
    #[serde(default, skip_serializing_if = "is_default")]
    pub all: bool,
}

#[derive(Debug, Serialize)]
pub struct ListTrashOutcome {
    pub items: Vec<ListedTrashItem>,
}

impl OperationOutcome for ListTrashOutcome {}

#[derive(Debug, Serialize)]
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

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PurgeTrashArgs {
    #[serde(default, skip_serializing_if = "is_default")]
    pub ids: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub mine: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub all: bool,
}

#[derive(Debug, Serialize)]
pub struct PurgeTrashOutcome {
    pub deleted: u64,
}

impl OperationOutcome for PurgeTrashOutcome {}
