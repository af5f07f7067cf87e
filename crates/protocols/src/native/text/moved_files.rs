//! Renders the outcomes of `move`, `remove`, `restore` and `append` as text.
use stead_engine::ops::{
    AppendOutcome, MoveOutcome, MoveOutcomeTreeFields, RemoveOutcome, RestoreFromTrashArgs, RestoreFromTrashOutcome,
    describe_size,
};

use super::{RenderableOutcome, escape_one_line};
use crate::native::CallStyle;

impl RenderableOutcome for MoveOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let Self { from, path, rev, moved, .. } = self;
        escape_one_line(match moved {
            Some(MoveOutcomeTreeFields { files, bytes, .. }) => {
                let rev = rev.as_deref().unwrap_or_default();
                format!("moved {from} to {path} ({}, {rev})", describe_size(*files, *bytes))
            }
            None => format!("source and destination are both {path}; nothing was changed"),
        })
    }
}

impl RenderableOutcome for RemoveOutcome {
    fn native_text(&self, style: CallStyle) -> String {
        let Self { path, recoverable_until: until, files, bytes, recorded, .. } = self;
        let id = self.trash.as_deref().unwrap_or("unknown");
        let restore = match style
            .render_command(RestoreFromTrashArgs { trash: id.to_owned(), ..RestoreFromTrashArgs::default() })
        {
            Some(command) => format!("to restore it until {until}, run: {command}"),
            None => format!("restore with trash {id} until {until}"),
        };
        escape_one_line(format!("removed {path} ({}, r{}); {restore}", describe_size(*files, *bytes), recorded.entry))
    }
}

impl RenderableOutcome for RestoreFromTrashOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        escape_one_line(format!("restored {} ({}, {})", self.path, describe_size(self.files, self.bytes), self.rev))
    }
}

impl RenderableOutcome for AppendOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let Self { path, version, size, changed, added_bytes, .. } = self;
        escape_one_line(if *changed {
            format!("appended {added_bytes} bytes to {path} ({}, {size} bytes)", version.rev)
        } else {
            format!("nothing to append to {path}; nothing was changed")
        })
    }
}
