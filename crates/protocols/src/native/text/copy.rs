//! Renders the outcome of `copy` as text.

use stead_engine::ops::{CopiedFile, CopiedTree, CopyOutcome, describe_size};
use stead_text::visible::escape_deceptive_line;

use super::{RenderableOutcome, escape_lines, escape_one_line};
use crate::native::CallStyle;

impl RenderableOutcome for CopyOutcome {
    fn native_text(&self, _style: CallStyle) -> String {
        match self {
            CopyOutcome::File(CopiedFile { path, changed: false, .. }) => {
                escape_one_line(format!("{path} already has this content; nothing was changed"))
            }
            CopyOutcome::File(CopiedFile { from, path, version, size, .. }) => {
                escape_one_line(format!("copied {from} to {path} ({}, {size} bytes)", version.rev))
            }
            CopyOutcome::Tree(copied) => escape_lines(render_tree(copied)),
        }
    }
}

fn render_tree(copied: &CopiedTree) -> String {
    let CopiedTree { from, path, rev, files, bytes, skipped, skipped_omitted, .. } = copied;
    let mut text = format!("copied {from} to {path} ({}, {rev})", describe_size(*files, *bytes));
    let not_copied = skipped.len() + skipped_omitted;
    if not_copied > 0 {
        text.push_str(&format!("; {not_copied} not copied:"));
    }
    for entry in skipped {
        text.push_str(&format!("\n  {}: {}", escape_deceptive_line(&entry.path.to_wire()), entry.reason));
    }
    text
}
