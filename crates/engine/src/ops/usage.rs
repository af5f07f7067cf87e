//! `usage` returns the sizes of the file system, the trash and the history, and the quota of the caller.

use serde::{Deserialize, Serialize};

use crate::{
    call_context::CallContext,
    operation::{OperationPlanningResult, PathlessOperation, PlanResult},
    outcome::OperationOutcome,
    quota::{self, QuotaReport},
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageArgs {}

/// The outcome of `usage`; the kept bytes are the bytes of stored file versions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct UsageOutcome {
    pub total_bytes: u64,
    pub free_bytes: u64,
    pub trash_items: u64,
    pub trash_bytes: u64,
    pub kept_bytes: u64,
    pub kept_bytes_max: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaReport>,
}

impl OperationOutcome for UsageOutcome {}

impl PathlessOperation for UsageArgs {
    type Outcome = UsageOutcome;

    fn plan(&self, context: &CallContext<'_>) -> PlanResult<Self> {
        let usage = context.workspace().storage_usage()?;
        let outcome = UsageOutcome {
            total_bytes: usage.total_bytes,
            free_bytes: usage.free_bytes,
            trash_items: usage.trash_items,
            trash_bytes: usage.trash_bytes,
            kept_bytes: usage.history_bytes,
            kept_bytes_max: usage.history_bytes_max,
            quota: quota::report_quota(context, &context.caller.principal)?,
        };
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}
