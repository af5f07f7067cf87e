//! Renders the outcomes of the operations that administer as text.

use stead_engine::ops::{ListTrashOutcome, ListedTrashItem, PurgeTrashOutcome};

use super::{RenderableOutcome, escape_one_line};
use crate::native::CallStyle;

impl RenderableOutcome for ListTrashOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let line = |item: &ListedTrashItem| {
            let ListedTrashItem { trash, path, owner, files, bytes, removed, recoverable_until, .. } = item;
            let removal = format!("removed {removed} by {owner}, kept until {recoverable_until}");
            escape_one_line(format!("{trash}  {path}  {files} files, {bytes} bytes  {removal}"))
        };
        self.items.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl RenderableOutcome for PurgeTrashOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        format!("permanently deleted {} items", self.deleted)
    }
}
