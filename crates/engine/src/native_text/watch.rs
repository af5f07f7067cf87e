//! Renders the outcomes of `watch` and `unwatch` as text.

use super::{NativeText, escape_one_line};
use crate::{
    call_notation::CallNotation,
    ops::{WatchChange, WatchOutcome},
};

impl NativeText for WatchOutcome {
    fn native_text(&self, _notation: CallNotation) -> String {
        let Self { watch, path, .. } = self;
        escape_one_line(match self.change {
            WatchChange::Started => format!("watching {path} as {watch}; call watched for events"),
            WatchChange::Ended => format!("stopped watching {path} as {watch}"),
        })
    }
}
