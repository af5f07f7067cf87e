//! `buffer.list`: open buffers, how their text differs from the disk, and drafts that editors left.

use serde::Deserialize;
use serde_json::Value;

use super::{buffer_state_name, describe_buffer, encoding, require_person_or_editor, saved_version};
use crate::{
    buffers::Buffer,
    call_context::CallContext,
    errors::Error,
    limits,
    operation::{Operation, PlannedEffect, RequestedPath, ResolvedTarget},
    ops::outcome_builder::OutcomeBuilder,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BufferListArgs {
    path: Option<String>,
}

impl Operation for BufferListArgs {
    fn requested_paths(&self, context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        require_person_or_editor(context)?;
        Ok(self.path.iter().map(|path| RequestedPath::read(path)).collect())
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let mut buffers = context.buffers()?;
        buffers.retain(|buffer| context.may_read(&buffer.path));
        if let Some(target) = targets.first() {
            buffers.retain(|buffer| buffer.path == target.path);
        }
        // A draft that equals the file on disk has nothing to resume.
        buffers.retain(|buffer| buffer.is_open() || buffer.is_unsaved(saved_version(context, &buffer.path)));
        let total = buffers.len();
        let mut lines = String::new();
        let mut rows = Vec::new();
        for buffer in buffers.iter().take(limits::BUFFERS_LISTED_MAX) {
            let saved = saved_version(context, &buffer.path);
            let text = if targets.is_empty() { None } else { own_editor_text(context, buffer)? };
            lines.push_str(&format!(
                "{} {} {} r{} {}\n",
                buffer.id,
                buffer_state_name(buffer, saved),
                buffer.path,
                buffer.revision,
                buffer.owner
            ));
            rows.push(Value::Object(describe_buffer(buffer, saved).with_some("text", text).into_json()));
        }
        let left = total - rows.len();
        if total == 0 {
            lines.push_str("no open buffers\n");
        } else if left > 0 {
            lines.push_str(&format!("… and {left} more: pass a path\n"));
        }
        let answer = OutcomeBuilder::new().with_field("buffers", rows).with_field("truncated", left > 0).build(lines);
        Ok(PlannedEffect::Read { outcome: answer, bytes: 0 })
    }
}

/// The text of one of the caller's own buffers, with the line endings of its editor.
fn own_editor_text(context: &CallContext<'_>, buffer: &Buffer) -> Result<Option<String>, Error> {
    if buffer.owner != context.caller.principal.to_string() {
        return Ok(None);
    }
    let texts = context.workspace().buffer_text(&buffer.id)?;
    texts.map(|texts| encoding::decode_for_editor(&texts.text, texts.buffer.line_endings)).transpose()
}
