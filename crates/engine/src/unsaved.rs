//! Unsaved text of editors, which calls read in place of the content on disk. Operations plan as if unsaved text were
//! the content of the file. Before a plan is authorized and committed, [`rebase_plan_onto_disk`] converts it into a
//! plan for the content on disk.

mod rebase;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use stead_path::RelPath;

pub(crate) use self::rebase::rebase_plan_onto_disk;
use crate::{
    buffers::{BufferEditorConnectionState, EditorBufferMetadata},
    call_context::CallContext,
    errors::{Error, ErrorKind},
    next_step::NextStep,
    operation::{ResolvedTarget, TypeErasedOperation},
    outcome::SavedAndUnsavedVersion,
    plan::PlanTimeFileVersion,
    tree::{BytesToRead, FileBytesWithVersion, FileStat, FinalSymlink, LocatedPath},
    version::Version,
    workspace_reader::WorkspaceReader,
};

#[derive(Debug)]
pub(crate) struct UnsavedFile {
    pub(crate) buffer: EditorBufferMetadata,
    /// The unsaved text of the editor, in the encoding of the file.
    pub(crate) text: Vec<u8>,
    pub(crate) saved_version: PlanTimeFileVersion,
    stat: FileStat,
}

impl UnsavedFile {
    /// The version of the unsaved text, with the stamp of the file on disk.
    pub(crate) fn observed_version(&self) -> PlanTimeFileVersion {
        PlanTimeFileVersion { version: self.buffer.version, ..self.saved_version }
    }

    pub(crate) fn read(&self, want: BytesToRead) -> Result<FileBytesWithVersion, Error> {
        let size = self.text.len() as u64;
        let bytes = match want {
            BytesToRead::VersionOnly => Vec::new(),
            BytesToRead::Whole { limit_bytes } if size > limit_bytes => {
                let message = format!("{} is too large to read at once", self.buffer.path);
                return Err(Error::new(ErrorKind::TooLarge, message)
                    .with_next_step(NextStep::repeat_with_such("bytes", "as a range")));
            }
            BytesToRead::Whole { .. } => self.text.clone(),
            BytesToRead::Range { offset, length } => {
                let from = usize::try_from(offset.min(size)).unwrap_or(usize::MAX);
                let to = usize::try_from(offset.saturating_add(length).min(size)).unwrap_or(usize::MAX);
                self.text[from..to].to_vec()
            }
        };
        Ok(FileBytesWithVersion { bytes, version: self.buffer.version, stat: FileStat { size, ..self.stat } })
    }
}

#[derive(Default)]
pub(crate) struct LazyWorkspaceBufferSnapshot(Mutex<Option<Arc<WorkspaceBufferSnapshot>>>);

/// A file that was located before its call, and the snapshot of the buffers that was taken before that.
pub(crate) struct FileLocatedAhead {
    buffers: Arc<WorkspaceBufferSnapshot>,
    request: RelPath,
    pub(crate) located: LocatedPath,
}

impl FileLocatedAhead {
    pub(crate) fn locate(workspace: &WorkspaceReader<'_>, request: RelPath) -> Result<Self, Error> {
        let buffers = Arc::new(WorkspaceBufferSnapshot::take(workspace)?);
        let located = workspace.locate(&request, FinalSymlink::Follow)?;
        Ok(Self { buffers, request, located })
    }
}

struct WorkspaceBufferSnapshot {
    buffers: Vec<EditorBufferMetadata>,
    open_by_path: HashMap<RelPath, usize>,
    /// The unsaved text of each file that the call has read; `None` if the file has no unsaved text.
    unsaved_by_path: Mutex<HashMap<RelPath, Option<Arc<UnsavedFile>>>>,
}

impl WorkspaceBufferSnapshot {
    fn take(workspace: &WorkspaceReader<'_>) -> Result<Self, Error> {
        let buffers = workspace.buffers()?;
        let open = buffers.iter().enumerate().filter(|(_, buffer)| buffer.is_open());
        let open_by_path = open.map(|(at, buffer)| (buffer.path.clone(), at)).collect();
        Ok(Self { buffers, open_by_path, unsaved_by_path: Mutex::default() })
    }

    fn open_buffer(&self, path: &RelPath) -> Option<&EditorBufferMetadata> {
        self.buffers.get(*self.open_by_path.get(path)?)
    }
}

impl CallContext<'_> {
    /// Forgets what an earlier round of the call has seen, and starts with what was found out before the call.
    pub(crate) fn begin_round(&self) {
        self.workspace().logged_sources().clear();
        self.workspace().forget_open_entries();
        let ahead = self.control.take_file_located_ahead();
        let snapshot = ahead.map(|FileLocatedAhead { buffers, request, located }| {
            self.workspace().use_located(request, located);
            buffers
        });
        *lock_ignoring_poison(&self.buffers.0) = snapshot;
    }

    /// A call takes its snapshot of the buffers before it opens its files. If it opened a file first, an editor could
    /// save and close the file in between, and the call would show a text that the editor has replaced.
    pub(crate) fn take_buffer_snapshot(&self) -> Result<(), Error> {
        self.buffer_snapshot().map(drop)
    }

    /// After a call has locked its paths, their buffers can no longer change, and it opens their files again.
    pub(crate) fn look_again_under_locks(&self) -> Result<(), Error> {
        self.workspace().forget_open_entries();
        *lock_ignoring_poison(&self.buffers.0) = None;
        self.take_buffer_snapshot()
    }

    fn buffer_snapshot(&self) -> Result<Arc<WorkspaceBufferSnapshot>, Error> {
        let mut cached = lock_ignoring_poison(&self.buffers.0);
        if let Some(snapshot) = &*cached {
            return Ok(Arc::clone(snapshot));
        }
        let snapshot = Arc::new(WorkspaceBufferSnapshot::take(self.workspace())?);
        *cached = Some(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    pub(crate) fn buffers(&self) -> Result<Vec<EditorBufferMetadata>, Error> {
        Ok(self.buffer_snapshot()?.buffers.clone())
    }

    pub(crate) fn open_buffer(&self, path: &RelPath) -> Result<Option<EditorBufferMetadata>, Error> {
        Ok(self.buffer_snapshot()?.open_buffer(path).cloned())
    }

    pub(crate) fn open_within(&self, top: &RelPath) -> Result<Vec<RelPath>, Error> {
        let snapshot = self.buffer_snapshot()?;
        let mut paths: Vec<RelPath> =
            snapshot.open_by_path.keys().filter(|path| path.is_within(top)).cloned().collect();
        paths.sort();
        Ok(paths)
    }

    /// Returns only the drafts that differ from the saved file.
    pub(crate) fn drafts(&self, path: &RelPath) -> Result<Vec<EditorBufferMetadata>, Error> {
        let snapshot = self.buffer_snapshot()?;
        let is_draft = |buffer: &&EditorBufferMetadata| {
            buffer.open_state == BufferEditorConnectionState::Draft && buffer.path == *path
        };
        let mut drafts: Vec<EditorBufferMetadata> = snapshot.buffers.iter().filter(is_draft).cloned().collect();
        if !drafts.is_empty() {
            let saved = self.workspace().read(path, BytesToRead::VersionOnly).ok().map(|file| file.version);
            drafts.retain(|draft| draft.is_unsaved(saved));
        }
        Ok(drafts)
    }

    pub(crate) fn unsaved_file(&self, path: &RelPath) -> Result<Option<Arc<UnsavedFile>>, Error> {
        let snapshot = self.buffer_snapshot()?;
        let Some(buffer) = snapshot.open_buffer(path) else { return Ok(None) };
        if let Some(unsaved) = lock_ignoring_poison(&snapshot.unsaved_by_path).get(path) {
            return Ok(unsaved.clone());
        }
        // The editor may save the file between two looks, so each look opens the file again.
        self.workspace().forget_open_entry(path);
        let unsaved = read_unsaved(self.workspace(), buffer)?.map(Arc::new);
        self.workspace().forget_open_entry(path);
        lock_ignoring_poison(&snapshot.unsaved_by_path).insert(path.clone(), unsaved.clone());
        Ok(unsaved)
    }

    pub(crate) fn readable_unsaved_file(&self, path: &RelPath) -> Option<Arc<UnsavedFile>> {
        // If the lookup fails, the caller reads the file from disk instead.
        self.may_read(path).then(|| self.unsaved_file(path).ok().flatten()).flatten()
    }

    pub(crate) fn unsaved_files_within(&self, top: &RelPath) -> Result<BTreeMap<RelPath, Arc<UnsavedFile>>, Error> {
        let paths = self.open_within(top)?.into_iter();
        Ok(paths.filter_map(|path| self.readable_unsaved_file(&path).map(|unsaved| (path, unsaved))).collect())
    }

    fn unsaved_files_read(&self) -> Vec<Arc<UnsavedFile>> {
        let Some(snapshot) = lock_ignoring_poison(&self.buffers.0).clone() else { return Vec::new() };
        let mut files: Vec<Arc<UnsavedFile>> =
            lock_ignoring_poison(&snapshot.unsaved_by_path).values().flatten().cloned().collect();
        files.sort_by(|one, two| one.buffer.path.cmp(&two.buffer.path));
        files
    }
}

fn read_unsaved(workspace: &WorkspaceReader<'_>, buffer: &EditorBufferMetadata) -> Result<Option<UnsavedFile>, Error> {
    let file = match workspace.read(&buffer.path, BytesToRead::VersionOnly) {
        Ok(file) => file,
        // The call itself reports that the file is missing or that the path is a directory.
        Err(error) if means_no_file(error.kind) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !buffer.is_unsaved(Some(file.version)) {
        return Ok(None);
    }
    let Some(texts) = workspace.buffer_text(&buffer.id)? else { return Ok(None) };
    let saved = file.observed();
    // The editor may have changed the text after the snapshot, so the text and its version come from `texts`.
    let unsaved = texts.buffer.is_unsaved(Some(saved.version));
    Ok(unsaved.then_some(UnsavedFile { buffer: texts.buffer, text: texts.text, saved_version: saved, stat: file.stat }))
}

fn means_no_file(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotDirectory | ErrorKind::IsDirectory | ErrorKind::NotRegular)
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells that a call read or wrote unsaved text of an editor instead of the saved file.
#[derive(Debug, Clone)]
pub struct UnsavedTextNotice {
    pub path: RelPath,
    pub owner: String,
    pub saved: Version,
    pub unsaved: Version,
    pub access: UnsavedTextAccessKind,
}

/// How a call accessed unsaved text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnsavedTextAccessKind {
    Read,
    Written,
}

impl UnsavedTextNotice {
    pub(crate) fn new(file: &UnsavedFile, access: UnsavedTextAccessKind) -> Self {
        let (buffer, saved) = (&file.buffer, file.saved_version.version);
        Self { path: buffer.path.clone(), owner: buffer.owner.clone(), saved, unsaved: buffer.version, access }
    }
}

/// The unsaved texts that an outcome shows, and the drafts of the files that a call names.
#[derive(Debug, Default)]
pub struct UnsavedAndDraftNotices {
    /// The unsaved texts whose versions are marked in the outcome.
    pub unsaved_texts: Vec<UnsavedTextNotice>,
    /// Unsaved texts of editors that disconnected.
    pub drafts: Vec<EditorBufferMetadata>,
}

/// Marks the files in the outcome of which the call read or wrote unsaved text.
pub(crate) fn mark_unsaved_files(
    context: &CallContext<'_>,
    targets: &[ResolvedTarget],
    written: &[UnsavedTextNotice],
    operation: &dyn TypeErasedOperation,
) -> UnsavedAndDraftNotices {
    let files_read = context.unsaved_files_read();
    let only_read = files_read
        .iter()
        .map(|file| UnsavedTextNotice::new(file, UnsavedTextAccessKind::Read))
        .filter(|read| !written.iter().any(|notice| notice.path == read.path));
    let unsaved_texts = written
        .iter()
        .cloned()
        .chain(only_read)
        .filter(|notice| context.may_read(&notice.path) && mark_versions(operation, notice))
        .collect();
    let may_read = |target: &&ResolvedTarget| context.may_read(&target.path);
    // If the lookup of drafts fails, a later call reports the drafts.
    let drafts = |target: &ResolvedTarget| context.drafts(&target.path).unwrap_or_default();
    UnsavedAndDraftNotices { unsaved_texts, drafts: targets.iter().filter(may_read).flat_map(drafts).collect() }
}

/// Marks the rows of the outcome that show the unsaved version of the file or lines of it. The result is `false` if the
/// outcome has no such row.
fn mark_versions(operation: &dyn TypeErasedOperation, notice: &UnsavedTextNotice) -> bool {
    let mut marked = false;
    operation.visit_shown_files(&mut |shown| {
        let shows_other_version = shown.version.as_ref().is_some_and(|(version, _)| *version != notice.unsaved);
        if *shown.path != notice.path || shows_other_version {
            return;
        }
        *shown.unsaved = Some(SavedAndUnsavedVersion { saved: notice.saved, unsaved: notice.unsaved });
        // The journal records the saved version, but the caller's next call must give the unsaved version as its base.
        if notice.access == UnsavedTextAccessKind::Written
            && let Some((_, Some(rev))) = shown.version
        {
            *rev = notice.unsaved.short_form();
        }
        marked = true;
    });
    marked
}
