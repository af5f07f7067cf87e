//! The open editor buffers of the memory workspace. A buffer becomes a draft when its connection ends or when a test
//! makes all editors crash.

use stead_engine::{
    BufferEditorConnectionState, BufferStore, BufferStoreRequest, BufferWithText, CallerResourceLifetime,
    CommitReceipt, EditorBufferMetadata, Error, ErrorKind, JournalCallRecord, NextStep, PlannedBufferChange,
    PlannedBufferChangeKind, Version, limits,
};
use stead_journal::JournalEntryRelation;

use super::{MemoryWorkspace, MemoryWorkspaceState};

pub(super) type MemoryWorkspaceBuffer = BufferWithText;

impl BufferStore for MemoryWorkspace {
    fn buffers(&self) -> Result<Vec<EditorBufferMetadata>, Error> {
        let mut state = self.lock_state();
        orphan_disconnected(&mut state);
        let mut buffers: Vec<EditorBufferMetadata> = state.buffers.iter().map(|kept| kept.buffer.clone()).collect();
        buffers.sort_by(|one, two| (&one.path, &one.id).cmp(&(&two.path, &two.id)));
        Ok(buffers)
    }

    fn buffer_text(&self, id: &str) -> Result<Option<BufferWithText>, Error> {
        let mut state = self.lock_state();
        orphan_disconnected(&mut state);
        Ok(state.buffers.iter().find(|kept| kept.buffer.id == id).cloned())
    }

    fn execute_buffer_request(
        &self,
        ask: &BufferStoreRequest,
        record: &JournalCallRecord<'_>,
    ) -> Result<(EditorBufferMetadata, CommitReceipt), Error> {
        let mut state = self.lock_state();
        orphan_disconnected(&mut state);
        let connection = match &record.caller.lifetime {
            CallerResourceLifetime::Connection(connection) => Some(connection),
            CallerResourceLifetime::Process | CallerResourceLifetime::SingleCall => None,
        };
        if let Some(connection) = connection {
            connection.attach_resource("memory", || Ok(Box::new(())))?;
        }
        check_change(&state, ask, record)?;
        let head = self.record(&mut state, record, Vec::new(), JournalEntryRelation::None);
        let buffer = apply_change(&mut state, ask, record, head.number)?;
        if let BufferStoreRequest::Open { .. } | BufferStoreRequest::ResumeDraft { .. } = ask {
            match connection {
                Some(connection) => drop(state.connections.insert(buffer.id.clone(), connection.clone())),
                None => drop(state.connections.remove(&buffer.id)),
            }
        }
        let committed =
            CommitReceipt { entry: head.number, hash: head.hash, trash_ids: Vec::new(), notices: Vec::new() };
        Ok((buffer, committed))
    }
}

fn orphan_disconnected(state: &mut MemoryWorkspaceState) {
    for kept in &mut state.buffers {
        if state.connections.get(&kept.buffer.id).is_some_and(|connection| connection.has_ended()) {
            kept.buffer.open_state = BufferEditorConnectionState::Draft;
        }
    }
}

pub(super) fn orphan_all(state: &mut MemoryWorkspaceState) {
    for kept in &mut state.buffers {
        kept.buffer.open_state = BufferEditorConnectionState::Draft;
    }
}

fn check_change(
    state: &MemoryWorkspaceState,
    ask: &BufferStoreRequest,
    record: &JournalCallRecord<'_>,
) -> Result<(), Error> {
    let owner = record.caller.principal.to_string();
    let open = |path: &stead_path::RelPath| {
        state.buffers.iter().any(|kept| kept.buffer.is_open() && kept.buffer.path == *path)
    };
    let taken = |path: &stead_path::RelPath| {
        if open(path) { Err(Error::new(ErrorKind::Exists, format!("{path} is open already"))) } else { Ok(()) }
    };
    match ask {
        BufferStoreRequest::Open { path, text, replaced_drafts, .. } => {
            taken(path)?;
            check_limits(state, &owner, text, replaced_drafts)
        }
        BufferStoreRequest::ResumeDraft { id } => {
            let kept = find_buffer(state, id)?;
            taken(&kept.buffer.path)
        }
        BufferStoreRequest::Change { id, revision, text, .. } => {
            if find_buffer(state, id)?.buffer.revision != *revision {
                return Err(buffer_busy());
            }
            check_limits(state, &owner, text, std::slice::from_ref(id))
        }
        BufferStoreRequest::Close { id } => find_buffer(state, id).map(|_| ()),
    }
}

/// Checks the number and the size of the owner's buffers after `text` takes the place of the replaced buffers.
fn check_limits(state: &MemoryWorkspaceState, owner: &str, text: &[u8], replaced: &[String]) -> Result<(), Error> {
    let stays = |kept: &&MemoryWorkspaceBuffer| kept.buffer.owner == owner && !replaced.contains(&kept.buffer.id);
    let sizes: Vec<u64> = state.buffers.iter().filter(stays).map(|kept| kept.buffer.size).collect();
    let bytes = sizes.iter().sum::<u64>() + text.len() as u64;
    if sizes.len() < limits::BUFFERS_PER_PRINCIPAL_MAX && bytes <= limits::BUFFERS_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(ErrorKind::TooMany, "you have too many buffers and drafts"))
}

fn apply_change(
    state: &mut MemoryWorkspaceState,
    ask: &BufferStoreRequest,
    record: &JournalCallRecord<'_>,
    number: u64,
) -> Result<EditorBufferMetadata, Error> {
    let changed_ms = state.now_ms;
    let session = record.caller.session.clone();
    match ask {
        BufferStoreRequest::Open { path, text, base, line_endings: endings, replaced_drafts: instead_of } => {
            state.buffers.retain(|kept| !instead_of.contains(&kept.buffer.id));
            let buffer = EditorBufferMetadata {
                id: format!("b{number}"),
                path: path.clone(),
                owner: record.caller.principal.to_string(),
                session,
                open_state: BufferEditorConnectionState::OpenHere,
                revision: 1,
                version: Version::hash_bytes(text),
                size: text.len() as u64,
                base: *base,
                line_endings: *endings,
                editor_revision: 1,
                changed_ms,
            };
            state.buffers.push(MemoryWorkspaceBuffer {
                buffer: buffer.clone(),
                text: text.clone(),
                editor_text: text.clone(),
            });
            Ok(buffer)
        }
        BufferStoreRequest::ResumeDraft { id } => {
            let kept = find_buffer_mut(state, id)?;
            kept.buffer.open_state = BufferEditorConnectionState::OpenHere;
            kept.buffer.session = session;
            kept.buffer.revision += 1;
            kept.save_held_text();
            Ok(kept.buffer.clone())
        }
        BufferStoreRequest::Change { id, text, base, line_endings: endings, .. } => {
            let kept = find_buffer_mut(state, id)?;
            kept.set_text(text, *base);
            kept.buffer.line_endings = *endings;
            kept.buffer.changed_ms = changed_ms;
            kept.save_held_text();
            Ok(kept.buffer.clone())
        }
        BufferStoreRequest::Close { id } => {
            let buffer = find_buffer(state, id)?.buffer.clone();
            state.buffers.retain(|kept| kept.buffer.id != *id);
            Ok(buffer)
        }
    }
}

pub(super) fn check_steps(state: &MemoryWorkspaceState, steps: &[PlannedBufferChange]) -> Result<(), Error> {
    for step in steps {
        if find_buffer(state, &step.id).map_or(true, |kept| kept.buffer.revision != step.expected_revision) {
            return Err(buffer_busy());
        }
    }
    Ok(())
}

pub(super) fn apply_steps(state: &mut MemoryWorkspaceState, steps: &[PlannedBufferChange]) {
    let now_ms = state.now_ms;
    for step in steps {
        let Ok(kept) = find_buffer_mut(state, &step.id) else { continue };
        match &step.kind {
            PlannedBufferChangeKind::ReplaceText { text, base } => {
                kept.set_text(text, Some(*base));
                kept.buffer.changed_ms = now_ms;
            }
            PlannedBufferChangeKind::MarkSaved { base } => kept.buffer.base = Some(*base),
            PlannedBufferChangeKind::Rename(to) => kept.buffer.path = to.clone(),
        }
    }
}

trait MemoryWorkspaceBufferExt {
    fn set_text(&mut self, text: &[u8], base: Option<Version>);
    fn save_held_text(&mut self);
}

impl MemoryWorkspaceBufferExt for MemoryWorkspaceBuffer {
    fn set_text(&mut self, text: &[u8], base: Option<Version>) {
        self.text = text.to_vec();
        self.buffer.version = Version::hash_bytes(text);
        self.buffer.size = text.len() as u64;
        self.buffer.base = base;
        self.buffer.revision += 1;
    }

    fn save_held_text(&mut self) {
        self.editor_text = self.text.clone();
        self.buffer.editor_revision = self.buffer.revision;
    }
}

fn find_buffer<'s>(state: &'s MemoryWorkspaceState, id: &str) -> Result<&'s MemoryWorkspaceBuffer, Error> {
    state.buffers.iter().find(|kept| kept.buffer.id == id).ok_or_else(|| buffer_not_found(id))
}

fn find_buffer_mut<'s>(state: &'s mut MemoryWorkspaceState, id: &str) -> Result<&'s mut MemoryWorkspaceBuffer, Error> {
    state.buffers.iter_mut().find(|kept| kept.buffer.id == id).ok_or_else(|| buffer_not_found(id))
}

fn buffer_not_found(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no buffer {id}"))
}

fn buffer_busy() -> Error {
    Error::new(ErrorKind::Busy, "the buffer changed meanwhile").with_next_step(NextStep::repeat())
}
