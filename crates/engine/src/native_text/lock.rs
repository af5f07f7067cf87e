//! Renders the outcomes of `lock` and `unlock` as text.

use super::{NativeText, escape_one_line};
use crate::{
    call_notation::CallNotation,
    ops::{LeaseChange, LeaseOutcome},
};

impl NativeText for LeaseOutcome {
    fn native_text(&self, _notation: CallNotation) -> String {
        escape_one_line(match self.change {
            LeaseChange::Acquired => format!("locked {} until {}, fence {}", self.path, self.ends, self.fence),
            LeaseChange::Released => format!("unlocked {}", self.path),
        })
    }
}
