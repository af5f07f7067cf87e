//! Unsaved text in place of the content on disk. Owns a call's snapshot of the open buffers: which of them have
//! unsaved text, and the text that is read instead of the file.
//!
//! Operations read unsaved text through their context and plan on it as if it were the file. [`rebase_plan_onto_disk`]
//! converts the plan to the content on disk before it is authorized and committed.

mod notices;
mod rebase;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use stead_path::RelPath;

pub(crate) use self::{
    notices::{UnsavedAccess, UnsavedNotice, add_unsaved_notices},
    rebase::rebase_plan_onto_disk,
};
use crate::{
    buffers::{Buffer, BufferOpenState},
    errors::{Error, ErrorKind},
    plan::ObservedVersion,
    version::Version,
    workspace::{BytesToRead, FileBytes, FileStat, Workspace},
};

/// A file with unsaved text.
#[derive(Debug)]
pub(crate) struct UnsavedFile {
    pub(crate) buffer: Buffer,
    /// The text, in the encoding of the file.
    pub(crate) text: Vec<u8>,
    /// The version on disk.
    pub(crate) saved_version: ObservedVersion,
    stat: FileStat,
}

impl UnsavedFile {
    /// The observed version for expectations of a plan.
    pub(crate) fn observed_version(&self) -> ObservedVersion {
        ObservedVersion { version: self.buffer.version, identity: self.saved_version.identity }
    }

    /// Reads the text like [`Workspace::read`].
    pub(crate) fn read(&self, want: BytesToRead) -> Result<FileBytes, Error> {
        let size = self.text.len() as u64;
        let bytes = match want {
            BytesToRead::VersionOnly => Vec::new(),
            BytesToRead::Whole { limit_bytes } if size > limit_bytes => {
                let detail = format!("{} is too large to read at once", self.buffer.path);
                return Err(Error::new(ErrorKind::TooLarge, detail));
            }
            BytesToRead::Whole { .. } => self.text.clone(),
            BytesToRead::Range { offset, length } => {
                let from = usize::try_from(offset.min(size)).unwrap_or(usize::MAX);
                let to = usize::try_from(offset.saturating_add(length).min(size)).unwrap_or(usize::MAX);
                self.text[from..to].to_vec()
            }
        };
        Ok(FileBytes { bytes, version: self.buffer.version, stat: FileStat { size, ..self.stat } })
    }
}

/// The buffers as one call sees them.
#[derive(Default)]
pub(crate) struct CallBuffers {
    snapshot: Mutex<Option<Arc<BufferSnapshot>>>,
}

/// The buffers at one moment.
struct BufferSnapshot {
    buffers: Vec<Buffer>,
    /// Index of the open buffer of each file.
    open_by_path: HashMap<RelPath, usize>,
    unsaved_by_path: Mutex<HashMap<RelPath, Option<Arc<UnsavedFile>>>>,
}

impl CallBuffers {
    /// Discards the snapshot, once the files of the call are locked.
    pub(crate) fn reset(&self) {
        *lock_ignoring_poison(&self.snapshot) = None;
    }

    fn snapshot(&self, workspace: &dyn Workspace) -> Result<Arc<BufferSnapshot>, Error> {
        let mut cached = lock_ignoring_poison(&self.snapshot);
        if let Some(snapshot) = &*cached {
            return Ok(Arc::clone(snapshot));
        }
        let buffers = workspace.buffers()?;
        let open = buffers.iter().enumerate().filter(|(_, buffer)| buffer.is_open());
        let open_by_path = open.map(|(at, buffer)| (buffer.path.clone(), at)).collect();
        let snapshot = Arc::new(BufferSnapshot { buffers, open_by_path, unsaved_by_path: Mutex::default() });
        *cached = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    pub(crate) fn all_buffers(&self, workspace: &dyn Workspace) -> Result<Vec<Buffer>, Error> {
        Ok(self.snapshot(workspace)?.buffers.clone())
    }

    /// The open buffer of a file.
    pub(crate) fn open_buffer(&self, workspace: &dyn Workspace, path: &RelPath) -> Result<Option<Buffer>, Error> {
        let snapshot = self.snapshot(workspace)?;
        Ok(snapshot.open_by_path.get(path).and_then(|at| snapshot.buffers.get(*at)).cloned())
    }

    /// The files at or below a path that have open buffers.
    pub(crate) fn open_within(&self, workspace: &dyn Workspace, top: &RelPath) -> Result<Vec<RelPath>, Error> {
        let snapshot = self.snapshot(workspace)?;
        let mut paths: Vec<RelPath> =
            snapshot.open_by_path.keys().filter(|path| path.is_within(top)).cloned().collect();
        paths.sort();
        Ok(paths)
    }

    /// The drafts of a file that have unsaved text.
    pub(crate) fn drafts(&self, workspace: &dyn Workspace, path: &RelPath) -> Result<Vec<Buffer>, Error> {
        let snapshot = self.snapshot(workspace)?;
        let left = |buffer: &&Buffer| buffer.open_state == BufferOpenState::Draft && buffer.path == *path;
        let mut drafts: Vec<Buffer> = snapshot.buffers.iter().filter(left).cloned().collect();
        if !drafts.is_empty() {
            let saved = workspace.read(path, BytesToRead::VersionOnly).ok().map(|file| file.version);
            drafts.retain(|draft| draft.is_unsaved(saved));
        }
        Ok(drafts)
    }

    /// The unsaved text of a file; `None` if there is none, or if the file does not exist.
    pub(crate) fn unsaved(&self, workspace: &dyn Workspace, path: &RelPath) -> Result<Option<Arc<UnsavedFile>>, Error> {
        let snapshot = self.snapshot(workspace)?;
        let Some(buffer) = snapshot.open_by_path.get(path).and_then(|at| snapshot.buffers.get(*at)) else {
            return Ok(None);
        };
        if let Some(unsaved) = lock_ignoring_poison(&snapshot.unsaved_by_path).get(path) {
            return Ok(unsaved.clone());
        }
        let unsaved = read_unsaved(workspace, buffer)?.map(Arc::new);
        lock_ignoring_poison(&snapshot.unsaved_by_path).insert(path.clone(), unsaved.clone());
        Ok(unsaved)
    }

    /// The unsaved texts read so far.
    pub(crate) fn unsaved_files_read(&self) -> Vec<Arc<UnsavedFile>> {
        let Some(snapshot) = lock_ignoring_poison(&self.snapshot).clone() else { return Vec::new() };
        let mut used: Vec<Arc<UnsavedFile>> =
            lock_ignoring_poison(&snapshot.unsaved_by_path).values().flatten().cloned().collect();
        used.sort_by(|one, two| one.buffer.path.cmp(&two.buffer.path));
        used
    }
}

fn read_unsaved(workspace: &dyn Workspace, buffer: &Buffer) -> Result<Option<UnsavedFile>, Error> {
    let file = match workspace.read(&buffer.path, BytesToRead::VersionOnly) {
        Ok(file) => file,
        // Every caller sees the missing or replaced file.
        Err(error) if means_no_file(error.kind) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !buffer.is_unsaved(Some(file.version)) {
        return Ok(None);
    }
    let Some(texts) = workspace.buffer_text(&buffer.id)? else { return Ok(None) };
    let saved = ObservedVersion { version: file.version, identity: file.stat.identity };
    // The editor may have changed the text since the snapshot; the text read here is consistent in itself.
    let unsaved = texts.buffer.is_unsaved(Some(saved.version));
    Ok(unsaved.then_some(UnsavedFile { buffer: texts.buffer, text: texts.text, saved_version: saved, stat: file.stat }))
}

/// Whether an error means that no regular file exists at the path.
fn means_no_file(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotDirectory | ErrorKind::IsDirectory | ErrorKind::NotRegular)
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The two versions of a file with unsaved text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferVersions {
    pub(crate) saved: Version,
    pub(crate) unsaved: Version,
}
