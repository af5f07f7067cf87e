//! Renders the outcomes of the buffer operations as text.
use stead_engine::ops::{
    BufferChangeOutcome, BufferCloseOutcome, BufferFields, BufferListOutcome, BufferListRow, BufferOpenOutcome,
    BufferSaveOutcome, ClosedBufferOrDraftKind,
};

use super::{RenderableOutcome, escape_lines, escape_one_line};
use crate::native::CallStyle;

impl RenderableOutcome for BufferOpenOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let BufferFields { buffer: id, path, revision, .. } = &self.buffer;
        escape_one_line(match self.text {
            Some(_) => format!("resumed draft {id} of {path}"),
            None => format!("opened {path} at revision {revision}"),
        })
    }
}

impl RenderableOutcome for BufferChangeOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let verb = if self.merged { "merged into" } else { "changed" };
        escape_one_line(format!("{verb} {} at revision {}", self.buffer.path, self.buffer.revision))
    }
}

impl RenderableOutcome for BufferSaveOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let BufferFields { path, size, .. } = &self.buffer;
        escape_one_line(match &self.rev {
            Some(rev) => format!("saved {path} ({rev}, {size} bytes)"),
            None => format!("{path} is already saved"),
        })
    }
}

impl RenderableOutcome for BufferCloseOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let verb = match self.kind {
            ClosedBufferOrDraftKind::OpenBuffer => "closed",
            ClosedBufferOrDraftKind::Draft => "dropped",
        };
        let suffix = if self.discarded { " without saving" } else { "" };
        escape_one_line(format!("{verb} {}{suffix}", self.buffer.path))
    }
}

impl RenderableOutcome for BufferListOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        let mut text: String = self.buffers.iter().map(render_buffer).collect();
        if self.buffers.is_empty() {
            text.push_str("no open buffers\n");
        } else if self.omitted > 0 {
            text.push_str(&format!("… and {} more: pass a path\n", self.omitted));
        }
        escape_lines(text)
    }
}

fn render_buffer(row: &BufferListRow) -> String {
    let BufferFields { buffer: id, state, path, revision, owner, .. } = &row.buffer;
    format!("{id} {} {path} r{revision} {owner}\n", state.as_str())
}
