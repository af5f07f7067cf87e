//! `usage` returns the sizes of the file system, the trash and the history, and the quota of the caller.

use serde::Deserialize;

use super::outcome_builder::OutcomeBuilder;
use crate::{
    call_context::CallContext,
    engine::CallOutcome,
    errors::Error,
    operation::{Operation, OperationPlanningResult, PlanResult, RequestedPaths, ResolvedTargets},
    quota,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageArgs {}

impl Operation for UsageArgs {
    type Resolved = ();
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, _paths: &mut RequestedPaths) -> Result<(), Error> {
        Ok(())
    }

    fn plan(&self, context: &CallContext<'_>, (): (), _targets: &ResolvedTargets) -> PlanResult<Self> {
        let usage = context.workspace().storage_usage()?;
        let quota = quota::report_quota(context, &context.caller.principal)?;
        let mut text = format!(
            "{} of {} bytes free; trash {} bytes in {} items; history {} of {} bytes",
            usage.free_bytes,
            usage.total_bytes,
            usage.trash_bytes,
            usage.trash_items,
            usage.history_bytes,
            usage.history_bytes_max
        );
        text.push_str(&quota::render_quota_lines(quota.as_ref()));
        let outcome = OutcomeBuilder::new()
            .with_field("total_bytes", usage.total_bytes)
            .with_field("free_bytes", usage.free_bytes)
            .with_field("trash_items", usage.trash_items)
            .with_field("trash_bytes", usage.trash_bytes)
            .with_field("kept_bytes", usage.history_bytes)
            .with_field("kept_bytes_max", usage.history_bytes_max)
            .with_some("quota", quota)
            .build(text);
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}
