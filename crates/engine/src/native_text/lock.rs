//! Renders the outcomes of `lock` and `unlock` as text.

use super::{NativeTextRenderable, escape_one_line};
use crate::{
    call_notation::CallNotation,
    ops::{LeaseOutcome, LeaseOutcomeKind},
};

impl NativeTextRenderable for LeaseOutcome {
    fn native_text(&self, _notation: CallNotation) -> String {
        escape_one_line(match self.change {
            LeaseOutcomeKind::Acquired => format!("locked {} until {}, fence {}", self.path, self.ends, self.fence),
            LeaseOutcomeKind::Released => format!("unlocked {}", self.path),
        })
    }
}
