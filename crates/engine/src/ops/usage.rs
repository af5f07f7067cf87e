//! `usage`: how full the workspace's file system, trash and history are, and what the caller's quota leaves.

use serde::Deserialize;

use super::answer::Facts;
use crate::{
    failure::Failure,
    operation::{Ask, Operation, Planned, Target},
    quota,
    view::View,
};

/// The arguments of `usage`: none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Usage {}

impl Operation for Usage {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(Vec::new())
    }

    fn plan(&self, view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        let usage = view.workspace().usage()?;
        let quota = quota::told(view, &view.caller.principal)?;
        let mut text = format!(
            "{} of {} bytes free; trash {} bytes in {} things; history {} of {} bytes",
            usage.free_bytes,
            usage.total_bytes,
            usage.trash_bytes,
            usage.trash_items,
            usage.kept_bytes,
            usage.kept_bytes_max
        );
        text.push_str(&quota::lines(quota.as_ref()));
        let answer = Facts::new()
            .with("total_bytes", usage.total_bytes)
            .with("free_bytes", usage.free_bytes)
            .with("trash_items", usage.trash_items)
            .with("trash_bytes", usage.trash_bytes)
            .with("kept_bytes", usage.kept_bytes)
            .with("kept_bytes_max", usage.kept_bytes_max)
            .maybe("quota", quota)
            .answer(text);
        Ok(Planned::Read { answer, bytes: 0 })
    }
}
