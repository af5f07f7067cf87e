//! Renders the outcomes of `watch` and `unwatch` as text.
use stead_engine::ops::{BegunOrEndedWatch, WatchOutcome};

use super::{RenderableOutcome, escape_one_line};
use crate::native::CallStyle;

impl RenderableOutcome for WatchOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let Self { watch, path, .. } = self;
        escape_one_line(match self.change {
            BegunOrEndedWatch::Started => format!("watching {path} as {watch}; call watched for events"),
            BegunOrEndedWatch::Ended => format!("stopped watching {path} as {watch}"),
        })
    }

    fn watch(&self) -> Option<(BegunOrEndedWatch, String)> {
        Some((self.change, self.watch.clone()))
    }
}
