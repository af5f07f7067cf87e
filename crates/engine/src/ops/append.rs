//! `append` adds text to the end of a file, in the encoding of the file, and creates the file if it does not exist.
//! `append` replaces the whole file, so that readers never see a partial write; other hard links keep the old content.

use serde::{Deserialize, Serialize};
use stead_path::RelPath;

use super::{encode_content, planning, planning::too_large_to_change_error, write};
use crate::{
    call_context::CallContext,
    errors::Error,
    limits,
    operation::{
        CallDurationFactor, Operation, OperationPlanningResult, PathAccessRequest, PlanResult, ResolvedTarget,
    },
    outcome::{FileShownInOutcome, FileVersionFields, OperationOutcome, RecordedEntryFields},
    plan::CommitExpectation,
    tree::BytesToRead,
    version::Version,
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppendArgs {
    pub path: String,
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct AppendOutcome {
    pub path: RelPath,
    #[serde(flatten)]
    pub version: FileVersionFields,
    pub size: u64,
    pub created: bool,
    pub changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<&'static str>,
    #[serde(flatten)]
    pub recorded: Option<RecordedEntryFields>,
    #[serde(skip)]
    pub added_bytes: usize,
}

impl OperationOutcome for AppendOutcome {
    fn main_file(&mut self) -> Option<FileShownInOutcome<'_>> {
        Some(FileShownInOutcome::new(&self.path, &mut self.version))
    }
}

impl Operation for AppendArgs {
    type Paths = PathAccessRequest;
    type Outcome = AppendOutcome;

    fn duration_factor(&self) -> CallDurationFactor<'_> {
        CallDurationFactor::ContentBytes(self.content.len())
    }

    fn resolve(&self, _context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        PathAccessRequest::write(&self.path).with_base(self.base.as_deref())
    }

    fn plan(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        let (mut bytes, expectation) = match target.stat {
            None => (Vec::new(), CommitExpectation::Absent),
            Some(stat) => {
                write::require_regular_file(target, stat)?;
                // The caller needs no read permission to append, because the outcome does not contain the existing
                // content.
                let extent = BytesToRead::Whole { limit_bytes: limits::WRITE_BYTES_MAX };
                let file = context
                    .read_for_change(&target.path, extent)
                    .map_err(|error| too_large_to_change_error(&target.path, error))?;
                let observed = target.observed.unwrap_or(file.observed());
                (file.bytes, CommitExpectation::File(observed))
            }
        };
        let added = encode_content::encode_appended(&self.content, &bytes)?;
        let created = expectation == CommitExpectation::Absent;
        if added.bytes.is_empty() && !created {
            return Ok(unchanged_outcome(context, target, &bytes));
        }
        let added_bytes = added.bytes.len();
        bytes.extend_from_slice(&added.bytes);
        let version = Version::hash_bytes(&bytes);
        let size = bytes.len() as u64;
        let plan = planning::plan_file_write(context, &target.path, expectation, (version, bytes))?;
        let path = target.path.clone();
        Ok(OperationPlanningResult::Files {
            plan,
            build_outcome: Box::new(move |receipt| AppendOutcome {
                path,
                version: FileVersionFields::written(version, receipt),
                size,
                created,
                changed: true,
                encoding: added.non_utf8_encoding,
                recorded: Some(receipt.into()),
                added_bytes,
            }),
        })
    }
}

fn unchanged_outcome(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    bytes: &[u8],
) -> OperationPlanningResult<AppendOutcome> {
    let version = Version::hash_bytes(bytes);
    let rev = context.revision_name(&target.path, &version);
    let outcome = AppendOutcome {
        path: target.path.clone(),
        version: FileVersionFields::new(version, rev),
        size: bytes.len() as u64,
        created: false,
        changed: false,
        encoding: None,
        recorded: None,
        added_bytes: 0,
    };
    OperationPlanningResult::Read { outcome, bytes: 0 }
}
