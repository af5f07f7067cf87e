//! Renders the outcomes of `lock` and `unlock` as text.
use stead_engine::ops::{LeaseOutcome, LeaseOutcomeKind};

use super::{NativeTextRenderable, escape_one_line};
use crate::native::CallNotation;

impl NativeTextRenderable for LeaseOutcome {
    fn native_text(&self, _notation: CallNotation) -> String {
        escape_one_line(match self.change {
            LeaseOutcomeKind::Acquired => format!("locked {} until {}, fence {}", self.path, self.ends, self.fence),
            LeaseOutcomeKind::Released => format!("unlocked {}", self.path),
        })
    }
}
