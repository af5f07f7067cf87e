//! `buffer.change` receives the changes that a person typed in an editor. If an agent wrote to the same buffer, the
//! server merges the agent's text with the editor's text. On a merge conflict `buffer.change` fails with the agent's
//! text.

use serde::{Deserialize, Serialize};
use stead_text::merge::{MergeResult, merge};

use super::{
    BufferFields,
    editor_text::{self, BufferTextEdit},
    own_buffer_text, read_saved_file, require_person_or_editor,
};
use crate::{
    buffers::{BufferStoreRequest, BufferWithText, EditorBufferMetadata},
    call_context::CallContext,
    errors::{Error, ErrorKind},
    operation::{Operation, OperationPlanningResult, PathAccessRequest, PlanResult, ResolvedTarget},
    outcome::{OperationOutcome, RecordedEntryFields},
    workspace::CommitReceipt,
};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferChangeArgs {
    pub path: String,
    pub revision: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edits: Option<Vec<BufferTextEdit>>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct BufferChangeOutcome {
    #[serde(flatten)]
    pub buffer: BufferFields,
    pub merged: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(flatten)]
    pub recorded: RecordedEntryFields,
}

impl OperationOutcome for BufferChangeOutcome {}

struct MergedBufferText {
    text: String,
    merged: bool,
}

impl Operation for BufferChangeArgs {
    type Paths = PathAccessRequest;
    type Outcome = BufferChangeOutcome;

    fn resolve(&self, context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        require_person_or_editor(context)?;
        Ok(PathAccessRequest::read_locked(&self.path))
    }

    fn plan(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        let (buffer, texts) = own_buffer_text(context, &target.path)?;
        let file = read_saved_file(context, target)?;
        let saved = file.as_ref().map(|file| file.version);
        let merged_text = self.merge_change(&texts)?;
        let before = file.as_ref().map_or(texts.text.as_slice(), |file| file.bytes.as_slice());
        let (text, line_endings) = editor_text::encode_editor_text(&merged_text.text, Some(before))?;
        // If the text of the buffer equals the saved file, the saved version becomes the base of the buffer.
        let base = if Some(buffer.version) == saved { saved } else { buffer.base };
        let request = BufferStoreRequest::Change { id: buffer.id, revision: buffer.revision, text, base, line_endings };
        let build_outcome = move |buffer: &EditorBufferMetadata, receipt: &CommitReceipt| BufferChangeOutcome {
            buffer: BufferFields::new(buffer, saved),
            merged: merged_text.merged,
            text: merged_text.merged.then_some(merged_text.text),
            recorded: receipt.into(),
        };
        Ok(OperationPlanningResult::Buffer { request, build_outcome: Box::new(build_outcome) })
    }
}

impl BufferChangeArgs {
    fn merge_change(&self, texts: &BufferWithText) -> Result<MergedBufferText, Error> {
        let buffer = &texts.buffer;
        let now = editor_text::decode_for_editor(&texts.text, buffer.line_endings)?;
        let known = match self.revision {
            revision if revision == buffer.revision => now.clone(),
            revision if revision == buffer.editor_revision => {
                editor_text::decode_for_editor(&texts.editor_text, buffer.line_endings)?
            }
            _ => return Err(self.stale_buffer_error(buffer, now)),
        };
        let sent = match (&self.text, &self.edits) {
            (Some(text), None) => text.clone(),
            (None, Some(edits)) => editor_text::apply_text_edits(&known, edits)?,
            (Some(_), Some(_)) | (None, None) => {
                return Err(Error::new(ErrorKind::BadRequest, "the change needs either text or edits, not both")
                    .with_next_step("pass the whole text as text, or a list as edits"));
            }
        };
        if self.revision == buffer.revision {
            return Ok(MergedBufferText { text: sent, merged: false });
        }
        match merge(&known, &sent, &now) {
            MergeResult::Clean(text) => Ok(MergedBufferText { merged: text != sent, text }),
            MergeResult::Conflict(ranges) => {
                let lines = editor_text::conflict_lines(ranges.iter().map(|range| &range.theirs));
                let detail =
                    format!("an agent changed the same lines of {} as your change; neither text is lost", buffer.path);
                let error = Error::new(ErrorKind::Conflict, detail)
                    .with_next_step("show both texts, then send the merged text with the revision of this error");
                Err(with_current_text(error, buffer, now).with_lines(lines))
            }
        }
    }

    fn stale_buffer_error(&self, buffer: &EditorBufferMetadata, now: String) -> Error {
        let detail = format!("revision {} of {} is no longer stored", self.revision, buffer.path);
        let error = Error::new(ErrorKind::Stale, detail)
            .with_next_step("merge the text of the editor into the text of this error, then send the result with the revision of this error");
        with_current_text(error, buffer, now)
    }
}

fn with_current_text(error: Error, buffer: &EditorBufferMetadata, text: String) -> Error {
    error
        .with_path(buffer.path.to_string())
        .with_revision(buffer.revision)
        .with_version(buffer.version.to_string())
        .with_text(text)
}
