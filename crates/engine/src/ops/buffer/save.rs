//! `buffer.save` writes the text of a buffer to disk, for editors that let this server write files. Changes of the file
//! on disk are merged into the buffer's text; on a merge conflict nothing is written.

use serde::{Deserialize, Serialize};
use stead_text::merge::{MergeResult, merge};

use super::{BufferFields, editor_text, own_buffer_text, read_saved_file, require_person_or_editor};
use crate::{
    buffers::{EditorBufferMetadata, PlannedBufferChange, PlannedBufferChangeKind},
    call_context::CallContext,
    errors::{Error, ErrorKind},
    operation::{Operation, OperationPlanningResult, PathAccessRequest, PlanResult, ResolvedTarget},
    ops::{decode_diff_text, encode_like, planning},
    outcome::{OperationOutcome, RecordedEntryFields},
    plan::{CommitExpectation, Plan},
    tree::FileBytesWithVersion,
    version::Version,
    workspace::CommitReceipt,
};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferSaveArgs {
    pub path: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct BufferSaveOutcome {
    #[serde(flatten)]
    pub buffer: BufferFields,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rev: Option<String>,
    pub merged: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The journal entry of the save; `None` if the buffer had no unsaved text.
    #[serde(flatten)]
    pub recorded: Option<RecordedEntryFields>,
}

impl OperationOutcome for BufferSaveOutcome {}

impl Operation for BufferSaveArgs {
    type Paths = PathAccessRequest;
    type Outcome = BufferSaveOutcome;

    fn resolve(&self, context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        require_person_or_editor(context)?;
        Ok(PathAccessRequest::write(&self.path))
    }

    fn plan(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        let (buffer, texts) = own_buffer_text(context, &target.path)?;
        let file = read_saved_file(context, target)?;
        let saved = file.as_ref().map(|file| file.version);
        if Some(buffer.version) == saved {
            let buffer = BufferFields::new(&buffer, saved);
            let outcome = BufferSaveOutcome { buffer, rev: None, merged: false, text: None, recorded: None };
            return Ok(OperationPlanningResult::Read { outcome, bytes: 0 });
        }
        let bytes = bytes_to_write(context, &buffer, &texts.text, file.as_ref())?;
        let version = Version::hash_bytes(&bytes);
        let merged = version != buffer.version;
        let text = merged.then(|| editor_text::decode_for_editor(&bytes, buffer.line_endings)).transpose()?;
        let kind = match merged {
            true => PlannedBufferChangeKind::ReplaceText { text: bytes.clone(), base: version },
            false => PlannedBufferChangeKind::MarkSaved { base: version },
        };
        let step = PlannedBufferChange { id: buffer.id.clone(), expected_revision: buffer.revision, kind };
        let size = bytes.len() as u64;
        let expectation = file.map_or(CommitExpectation::Absent, |file| CommitExpectation::File(file.observed()));
        let plan = planning::plan_file_write(context, &target.path, expectation, (version, bytes))?;
        let revision = buffer.revision + u64::from(merged);
        let now = EditorBufferMetadata { revision, version, size, base: Some(version), ..buffer };
        let plan = Plan { buffers: vec![step], ..plan };
        let build_outcome = move |receipt: &CommitReceipt| BufferSaveOutcome {
            buffer: BufferFields::new(&now, Some(version)),
            rev: Some(format!("r{}", receipt.entry)),
            merged,
            text,
            recorded: Some(receipt.into()),
        };
        Ok(OperationPlanningResult::Files { plan, build_outcome: Box::new(build_outcome) })
    }
}

fn bytes_to_write(
    context: &CallContext<'_>,
    buffer: &EditorBufferMetadata,
    text: &[u8],
    file: Option<&FileBytesWithVersion>,
) -> Result<Vec<u8>, Error> {
    let Some(file) = file.filter(|file| Some(file.version) != buffer.base) else {
        return Ok(text.to_vec());
    };
    let path = &buffer.path;
    let conflict = |detail: String| {
        Error::new(ErrorKind::Conflict, detail)
            .with_next_step(format!("compare with {path} on disk, then change the buffer or close it"))
            .with_path(path.to_string())
            .with_saved(file.version.to_string())
    };
    let base = match buffer.base {
        Some(base) => context.workspace().retained_bytes(&buffer.path, &base)?,
        None => Some(Vec::new()),
    };
    let base =
        base.ok_or_else(|| conflict(format!("{path} was changed on disk since it was loaded; nothing was written")))?;
    let (Some(base), Some(ours), Some(theirs)) =
        (decode_diff_text(&base), decode_diff_text(text), decode_diff_text(&file.bytes))
    else {
        return Err(conflict(format!("{path} is no longer text on disk; nothing was written")));
    };
    match merge(&base, &ours, &theirs) {
        MergeResult::Clean(merged) => encode_like(&merged, &file.bytes),
        MergeResult::Conflict(ranges) => {
            let lines = editor_text::conflict_lines(ranges.iter().map(|range| &range.ours));
            Err(conflict(format!("{path} was changed on disk in the same lines; nothing was written"))
                .with_lines(lines))
        }
    }
}
