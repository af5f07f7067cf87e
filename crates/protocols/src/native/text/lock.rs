//! Renders the outcomes of `lock` and `unlock` as text.
use stead_engine::ops::{AcquiredOrReleasedLease, LeaseOutcome};

use super::{RenderableOutcome, escape_one_line};
use crate::native::CallStyle;

impl RenderableOutcome for LeaseOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        escape_one_line(match self.change {
            AcquiredOrReleasedLease::Acquired => {
                format!("locked {} until {}, fence {}", self.path, self.ends, self.fence)
            }
            AcquiredOrReleasedLease::Released => format!("unlocked {}", self.path),
        })
    }
}
