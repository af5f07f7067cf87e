//! Renders the outcome of `usage`, and quotas in other results, as text.
use stead_engine::{QuotaReport, ops::UsageOutcome};

use super::{RenderableOutcome, escape_lines};
use crate::native::CallStyle;

impl RenderableOutcome for UsageOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let Self { total_bytes, free_bytes, trash_items, trash_bytes, kept_bytes, kept_bytes_max, quota } = self;
        let quota = quota.as_ref().map_or_else(String::new, render_quota_lines);
        escape_lines(format!(
            "{free_bytes} of {total_bytes} bytes free; trash {trash_bytes} bytes in {trash_items} items; history \
             {kept_bytes} of {kept_bytes_max} bytes{quota}"
        ))
    }
}

/// Renders each limit of a quota as one line that starts with a line break.
pub(crate) fn render_quota_lines(quota: &QuotaReport) -> String {
    quota.limits().map(|(name, limit)| format!("\nquota {name}: {} of {} used", limit.used, limit.limit)).collect()
}
