//! Open buffers and drafts of editors. A buffer belongs to the process or connection that opened it; when its holder is
//! gone, the buffer is a draft. No write makes a buffer a draft.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use stead_path::RelPath;

use crate::{
    buffers::{
        BufferEditorConnectionState, BufferStoreRequest, BufferWithText, EditorBufferMetadata,
        EditorSentTextLineEndings, PlannedBufferChange, PlannedBufferChangeKind,
    },
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    ops::BufferListArgs,
    rows::{RowBody, RowBodySelection, RowFamily, RowKey, RowSelection, RowValue, RowWrite, TypedRow, TypedRowSet},
    transaction::{Expectation, Transaction, TransactionDurability},
    version::Version,
    workspace::{CommitReceipt, HolderPresence, JournalCallRecord, Workspace},
};

/// A stored buffer; its texts are bodies of the row.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferRow {
    pub path: RelPath,
    pub owner: String,
    pub session: String,
    /// The process or connection that opened the buffer.
    pub holder: String,
    pub revision: u64,
    pub version: Version,
    pub size: u64,
    pub base: Option<Version>,
    pub line_endings: EditorSentTextLineEndings,
    pub editor_revision: u64,
    pub changed_ms: i64,
}

impl RowValue for BufferRow {
    const FAMILY: RowFamily = RowFamily::Buffer;

    fn owner(&self) -> &str {
        &self.owner
    }
}

/// The slot of the current text of a buffer.
pub const BUFFER_TEXT: &str = "text";
/// The slot of the text that the editor last sent or received.
pub const BUFFER_EDITOR_TEXT: &str = "editor_text";
const BUFFER_ID_PREFIX: &str = "b";

impl BufferRow {
    fn set_text(&mut self, text: &[u8], base: Option<Version>) {
        self.revision += 1;
        self.version = Version::hash_bytes(text);
        self.size = text.len() as u64;
        self.base = base;
    }

    fn to_buffer(&self, id: &str, open_state: BufferEditorConnectionState) -> EditorBufferMetadata {
        let Self { path, owner, session, holder: _, revision, version, size, base, .. } = self.clone();
        EditorBufferMetadata {
            id: id.to_owned(),
            path,
            owner,
            session,
            open_state,
            revision,
            version,
            size,
            base,
            line_endings: self.line_endings,
            editor_revision: self.editor_revision,
            changed_ms: self.changed_ms,
        }
    }
}

fn text_body(slot: &str, text: &[u8]) -> RowBody {
    RowBody { slot: slot.to_owned(), bytes: text.to_vec() }
}

fn open_state(presence: HolderPresence) -> BufferEditorConnectionState {
    match presence {
        HolderPresence::Here => BufferEditorConnectionState::OpenHere,
        HolderPresence::Elsewhere => BufferEditorConnectionState::OpenInOtherProcess,
        HolderPresence::Gone => BufferEditorConnectionState::Draft,
    }
}

impl dyn Workspace + '_ {
    /// Every open buffer and draft of the workspace, sorted by path.
    pub fn buffers(&self) -> Result<Vec<EditorBufferMetadata>, Error> {
        let stored = self.typed_rows(RowSelection::All, RowBodySelection::None)?;
        Ok(self.with_presence(&stored)?.into_iter().map(|(_, buffer)| buffer).collect())
    }

    fn with_presence<'r>(
        &self,
        stored: &'r TypedRowSet<BufferRow>,
    ) -> Result<Vec<(&'r TypedRow<BufferRow>, EditorBufferMetadata)>, Error> {
        let mut states: HashMap<&str, BufferEditorConnectionState> = HashMap::new();
        let mut buffers = Vec::with_capacity(stored.rows.len());
        for row in &stored.rows {
            let holder = row.value.holder.as_str();
            let state = match states.get(holder) {
                Some(state) => *state,
                None => open_state(self.presence(holder)?),
            };
            states.insert(holder, state);
            buffers.push((row, row.value.to_buffer(&row.id, state)));
        }
        buffers.sort_by(|(_, first), (_, second)| (&first.path, &first.id).cmp(&(&second.path, &second.id)));
        Ok(buffers)
    }

    /// The buffer with this id and its texts; `None` if no buffer has this id.
    pub fn buffer_text(&self, id: &str) -> Result<Option<BufferWithText>, Error> {
        let Some(row) = self.typed_row::<BufferRow>(id, RowBodySelection::All)? else { return Ok(None) };
        let buffer = row.value.to_buffer(id, open_state(self.presence(&row.value.holder)?));
        let text = |slot| row.body(slot).unwrap_or_default().to_vec();
        Ok(Some(BufferWithText { buffer, text: text(BUFFER_TEXT), editor_text: text(BUFFER_EDITOR_TEXT) }))
    }

    /// Opens, resumes, changes or closes a buffer, and records the call in the journal. The calling code must hold the
    /// lock on the file of the buffer.
    pub fn execute_buffer_request(
        &self,
        request: &BufferStoreRequest,
        record: &JournalCallRecord<'_>,
    ) -> Result<(EditorBufferMetadata, CommitReceipt), Error> {
        let holder = self.hold_presence(&record.caller.lifetime)?;
        let (mut buffer, receipt) = self.commit_recorded(record, || {
            let stored = self.typed_rows(RowSelection::All, RowBodySelection::None)?;
            let buffers = self.with_presence(&stored)?;
            let caller = BufferCaller { record, holder: &holder, now_ms: self.now().wall_ms };
            let (buffer, writes) = match request {
                BufferStoreRequest::Open { .. } => open_buffer(request, &caller, &buffers)?,
                BufferStoreRequest::ResumeDraft { id } => {
                    let texts = self.typed_row::<BufferRow>(id, RowBodySelection::All)?;
                    resume_draft(id, &caller, &buffers, texts.as_ref())?
                }
                BufferStoreRequest::Change { .. } => change_buffer(request, &caller, &buffers)?,
                BufferStoreRequest::Close { id } => {
                    let (_, buffer) = find_buffer(&buffers, id)?;
                    let closed =
                        EditorBufferMetadata { open_state: BufferEditorConnectionState::OpenHere, ..buffer.clone() };
                    (closed, vec![RowWrite::delete::<BufferRow>(id)])
                }
            };
            // The editor still has the text, so the stored text need not survive a power cut.
            let mut transaction = Transaction::of_rows(TransactionDurability::Later);
            transaction.expect_family(RowFamily::Buffer, stored.generation);
            transaction.rows = writes;
            Ok((buffer, transaction))
        })?;
        if buffer.id.is_empty() {
            buffer.id = RowKey::OfEntry(BUFFER_ID_PREFIX).id(receipt.entry);
        }
        Ok((buffer, receipt))
    }
}

struct BufferCaller<'a> {
    record: &'a JournalCallRecord<'a>,
    holder: &'a str,
    now_ms: i64,
}

type BuffersWithRows<'r> = [(&'r TypedRow<BufferRow>, EditorBufferMetadata)];
type BufferDecision = Result<(EditorBufferMetadata, Vec<RowWrite>), Error>;

fn open_buffer(
    request: &BufferStoreRequest,
    caller: &BufferCaller<'_>,
    buffers: &BuffersWithRows<'_>,
) -> BufferDecision {
    let BufferStoreRequest::Open { path, text, base, line_endings, replaced_drafts } = request else {
        return Err(buffer_changed_error());
    };
    check_not_open(buffers, path)?;
    check_buffer_quota(buffers, caller, text.len() as u64, replaced_drafts)?;
    let mut row = BufferRow {
        path: path.clone(),
        owner: caller.record.caller.principal.to_string(),
        session: caller.record.caller.session.clone(),
        holder: caller.holder.to_owned(),
        revision: 0,
        version: Version::hash_bytes(text),
        size: 0,
        base: None,
        line_endings: *line_endings,
        editor_revision: 1,
        changed_ms: caller.now_ms,
    };
    row.set_text(text, *base);
    let mut writes: Vec<_> = replaced_drafts.iter().map(|draft| RowWrite::delete::<BufferRow>(draft)).collect();
    let texts = vec![text_body(BUFFER_TEXT, text), text_body(BUFFER_EDITOR_TEXT, text)];
    writes.push(RowWrite::put(RowKey::OfEntry(BUFFER_ID_PREFIX), &row, texts)?);
    Ok((row.to_buffer("", BufferEditorConnectionState::OpenHere), writes))
}

fn resume_draft(
    id: &str,
    caller: &BufferCaller<'_>,
    buffers: &BuffersWithRows<'_>,
    texts: Option<&TypedRow<BufferRow>>,
) -> BufferDecision {
    let (row, _) = find_buffer(buffers, id)?;
    check_not_open(buffers, &row.value.path)?;
    let text = texts.and_then(|texts| texts.body(BUFFER_TEXT)).unwrap_or_default();
    let session = caller.record.caller.session.clone();
    let mut resumed = BufferRow { holder: caller.holder.to_owned(), session, ..row.value.clone() };
    resumed.revision += 1;
    resumed.editor_revision = resumed.revision;
    write_changed(id, &resumed, vec![text_body(BUFFER_EDITOR_TEXT, text)])
}

fn change_buffer(
    request: &BufferStoreRequest,
    caller: &BufferCaller<'_>,
    buffers: &BuffersWithRows<'_>,
) -> BufferDecision {
    let BufferStoreRequest::Change { id, revision, text, base, line_endings } = request else {
        return Err(buffer_changed_error());
    };
    let (row, _) = find_buffer(buffers, id)?;
    if row.value.revision != *revision {
        return Err(buffer_changed_error());
    }
    let growth = (text.len() as u64).saturating_sub(row.value.size);
    check_buffer_quota(buffers, caller, growth, std::slice::from_ref(id))?;
    let mut changed = BufferRow { line_endings: *line_endings, changed_ms: caller.now_ms, ..row.value.clone() };
    changed.set_text(text, *base);
    changed.editor_revision = changed.revision;
    write_changed(id, &changed, vec![text_body(BUFFER_TEXT, text), text_body(BUFFER_EDITOR_TEXT, text)])
}

fn write_changed(id: &str, row: &BufferRow, bodies: Vec<RowBody>) -> BufferDecision {
    let write = RowWrite::put(RowKey::Named(id.to_owned()), row, bodies)?;
    Ok((row.to_buffer(id, BufferEditorConnectionState::OpenHere), vec![write]))
}

fn find_buffer<'b, 'r>(
    buffers: &'b BuffersWithRows<'r>,
    id: &str,
) -> Result<&'b (&'r TypedRow<BufferRow>, EditorBufferMetadata), Error> {
    buffers.iter().find(|(row, _)| row.id == id).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("buffer {id} is no longer open")).with_next_step("open the file again")
    })
}

/// A holder that dies after its presence was read still counts as alive.
fn check_not_open(buffers: &BuffersWithRows<'_>, path: &RelPath) -> Result<(), Error> {
    if buffers.iter().any(|(_, buffer)| buffer.path == *path && buffer.is_open()) {
        return Err(Error::new(ErrorKind::Exists, format!("{path} is open in another editor"))
            .with_next_step("close it there first"));
    }
    Ok(())
}

/// The limit on the number of buffers does not count the buffers in `replaced`.
fn check_buffer_quota(
    buffers: &BuffersWithRows<'_>,
    caller: &BufferCaller<'_>,
    bytes: u64,
    replaced: &[String],
) -> Result<(), Error> {
    let owner = caller.record.caller.principal.to_string();
    let own = || buffers.iter().filter(|(_, buffer)| buffer.owner == owner).map(|(_, buffer)| buffer);
    let remaining = own().count().saturating_sub(replaced.len());
    let size = own().map(|buffer| buffer.size).fold(bytes, u64::saturating_add);
    if remaining < limits::BUFFERS_PER_PRINCIPAL_MAX && size <= limits::BUFFERS_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(ErrorKind::TooMany, "you have too many buffers and drafts").with_next_step(
        NextStep::call(BufferListArgs::default(), "find drafts that you no longer need").then("drop them"),
    ))
}

/// Adds the changes of buffers to the transaction that changes their files. If the files cannot be changed, the buffers
/// get back their texts, unless they changed again.
pub(super) fn follow_plan(
    workspace: &dyn Workspace,
    changes: &[PlannedBufferChange],
    transaction: &mut Transaction<'_>,
) -> Result<(), Error> {
    for change in changes {
        let row = workspace.typed_row::<BufferRow>(&change.id, RowBodySelection::All)?;
        let row = row.filter(|row| row.value.revision == change.expected_revision).ok_or_else(buffer_changed_error)?;
        let (mut changed, mut texts, mut texts_before) = (row.value.clone(), Vec::new(), Vec::new());
        match &change.kind {
            PlannedBufferChangeKind::ReplaceText { text, base } => {
                changed.set_text(text, Some(*base));
                changed.changed_ms = workspace.now().wall_ms;
                texts.push(text_body(BUFFER_TEXT, text));
                texts_before.push(text_body(BUFFER_TEXT, row.body(BUFFER_TEXT).unwrap_or_default()));
            }
            PlannedBufferChangeKind::MarkSaved { base } => changed.base = Some(*base),
            PlannedBufferChangeKind::Rename(to) => changed.path = to.clone(),
        }
        // A revision never returns, because an editor may know the text of the revision that is taken back.
        let before = BufferRow { revision: changed.revision + 1, changed_ms: changed.changed_ms, ..row.value.clone() };
        let key = || RowKey::Named(change.id.clone());
        let (family, id) = (RowFamily::Buffer, change.id.clone());
        transaction.expect.push(Expectation::Row { family, id, revision: row.revision });
        transaction.rows.push(RowWrite::put(key(), &changed, texts)?);
        transaction.compensation.push(RowWrite::put(key(), &before, texts_before)?);
    }
    Ok(())
}

fn buffer_changed_error() -> Error {
    Error::new(ErrorKind::Busy, "an open editor buffer changed since it was read; nothing was written")
        .with_next_step(NextStep::repeat())
}
