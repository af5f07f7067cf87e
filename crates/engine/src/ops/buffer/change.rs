//! `buffer.change`: an editor sends what was typed. If the editor does not know yet what an agent wrote, both texts
//! are merged and the editor gets the result. On a conflict it gets both texts, and neither is lost.

use serde::Deserialize;
use stead_text::merge::{MergeResult, merge};

use super::{
    describe_buffer, encoding, own_buffer_text, read_saved_file, require_person_or_editor, text_edits,
    text_edits::BufferTextEdit,
};
use crate::{
    buffers::{Buffer, BufferStoreRequest, BufferText},
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    operation::{Operation, PlannedEffect, RequestedPath, ResolvedTarget},
    workspace::CommitReceipt,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BufferChangeArgs {
    path: String,
    revision: u64,
    text: Option<String>,
    edits: Option<Vec<BufferTextEdit>>,
}

/// The buffer text after a change, as the editor sees it.
struct MergedBufferText {
    text: String,
    /// Whether the text differs from the one the editor sent.
    merged: bool,
}

impl Operation for BufferChangeArgs {
    fn requested_paths(&self, context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        require_person_or_editor(context)?;
        Ok(vec![RequestedPath::read_locked(&self.path)])
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let target = &targets[0];
        let (buffer, texts) = own_buffer_text(context, &target.path)?;
        let file = read_saved_file(context, target)?;
        let saved = file.as_ref().map(|file| file.version);
        let merged_text = self.merge_change(&texts)?;
        let before = file.as_ref().map_or(texts.text.as_slice(), |file| file.bytes.as_slice());
        let (text, endings) = encoding::encode_editor_text(&merged_text.text, Some(before))?;
        // If the buffer was saved since, its base is the saved version.
        let base = if Some(buffer.version) == saved { saved } else { buffer.base };
        let request =
            BufferStoreRequest::Change { id: buffer.id, revision: buffer.revision, text, base, line_endings: endings };
        let build_outcome = move |buffer: &Buffer, receipt: &CommitReceipt| {
            let verb = if merged_text.merged { "merged into" } else { "changed" };
            let line = format!("{verb} {} at revision {}", buffer.path, buffer.revision);
            describe_buffer(buffer, saved)
                .with_field("merged", merged_text.merged)
                .with_some("text", merged_text.merged.then_some(merged_text.text))
                .with_receipt(receipt)
                .build_one_line(line)
        };
        Ok(PlannedEffect::Buffer { request, build_outcome: Box::new(build_outcome) })
    }
}

impl BufferChangeArgs {
    fn merge_change(&self, texts: &BufferText) -> Result<MergedBufferText, Error> {
        let buffer = &texts.buffer;
        let now = encoding::decode_for_editor(&texts.text, buffer.line_endings)?;
        let known = match self.revision {
            revision if revision == buffer.revision => now.clone(),
            revision if revision == buffer.editor_revision => {
                encoding::decode_for_editor(&texts.editor_text, buffer.line_endings)?
            }
            _ => return Err(self.stale_buffer_error(buffer, now)),
        };
        let sent = match (&self.text, &self.edits) {
            (Some(text), None) => text.clone(),
            (None, Some(edits)) => text_edits::apply_text_edits(&known, edits)?,
            (Some(_), Some(_)) | (None, None) => {
                return Err(Error::new(ErrorKind::BadRequest, "give either text or edits"));
            }
        };
        if self.revision == buffer.revision {
            return Ok(MergedBufferText { text: sent, merged: false });
        }
        match merge(&known, &sent, &now) {
            MergeResult::Clean(text) => Ok(MergedBufferText { merged: text != sent, text }),
            MergeResult::Conflict(ranges) => {
                let lines: Vec<Vec<usize>> = ranges
                    .iter()
                    .take(limits::ERROR_LOCATIONS_MAX)
                    .map(|range| vec![range.theirs.start + 1, range.theirs.end.max(range.theirs.start + 1)])
                    .collect();
                let detail =
                    format!("your change to {} conflicts with one in the same lines; nothing was lost", buffer.path);
                let error = Error::new(ErrorKind::Conflict, detail)
                    .with_next_step("show both texts, then send the resolved text with the revision given here");
                Err(with_current_text(error, buffer, now).with_detail("lines", lines))
            }
        }
    }

    fn stale_buffer_error(&self, buffer: &Buffer, now: String) -> Error {
        let detail = format!("{} no longer has revision {}", buffer.path, self.revision);
        let error = Error::new(ErrorKind::Stale, detail)
            .with_next_step("merge the editor's text into this one, then send the result with the revision given here");
        with_current_text(error, buffer, now)
    }
}

fn with_current_text(error: Error, buffer: &Buffer, text: String) -> Error {
    error
        .with_detail("path", buffer.path.to_string())
        .with_detail("revision", buffer.revision)
        .with_detail("version", buffer.version.to_string())
        .with_detail("text", text)
}
