//! Unsaved text in the place of what is on disk. Owns what a call sees of open buffers: which of them hold something that
//! the file does not, and the text that is read instead of it.
//!
//! Operations see unsaved text through their view alone and plan on it as if it were the file. What they plan is brought
//! back to the disk in one place, [`settle()`], before it is judged and committed.

mod mark;
mod settle;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use path::RelPath;

pub(crate) use self::{
    mark::{By, Mark, mark},
    settle::settle,
};
use crate::{
    buffers::{Buffer, Standing},
    failure::{Failure, Kind},
    plan::Seen,
    version::Version,
    workspace::{FileBytes, Node, Want, Workspace},
};

/// A file as its editor has it.
#[derive(Debug)]
pub(crate) struct Unsaved {
    pub(crate) buffer: Buffer,
    /// The text, in the encoding of the file.
    pub(crate) text: Vec<u8>,
    /// What is on disk.
    pub(crate) saved: Seen,
    node: Node,
}

impl Unsaved {
    /// What a plan expects where this was seen.
    pub(crate) fn seen(&self) -> Seen {
        Seen { version: self.buffer.version, stamp: self.saved.stamp }
    }

    /// As much of it as is wanted, in the form that a workspace gives a file.
    pub(crate) fn file(&self, want: Want) -> Result<FileBytes, Failure> {
        let size = self.text.len() as u64;
        let bytes = match want {
            Want::Nothing => Vec::new(),
            Want::Whole { limit_bytes } if size > limit_bytes => {
                let detail = format!("{} is too large to read at once", self.buffer.path);
                return Err(Failure::new(Kind::TooLarge, detail));
            }
            Want::Whole { .. } => self.text.clone(),
            Want::Range { offset, length } => {
                let from = usize::try_from(offset.min(size)).unwrap_or(usize::MAX);
                let to = usize::try_from(offset.saturating_add(length).min(size)).unwrap_or(usize::MAX);
                self.text[from..to].to_vec()
            }
        };
        Ok(FileBytes { bytes, version: self.buffer.version, node: Node { size, ..self.node } })
    }
}

/// The buffers as one call sees them.
#[derive(Default)]
pub(crate) struct Desktop {
    seen: Mutex<Option<Arc<Sight>>>,
}

/// What was seen of the buffers at one moment.
struct Sight {
    buffers: Vec<Buffer>,
    /// Where in the list the open buffer of a file is.
    live: HashMap<RelPath, usize>,
    looked: Mutex<HashMap<RelPath, Option<Arc<Unsaved>>>>,
}

impl Desktop {
    /// Forgets what was seen: the files of the call are locked now.
    pub(crate) fn look_again(&self) {
        *held(&self.seen) = None;
    }

    fn sight(&self, workspace: &dyn Workspace) -> Result<Arc<Sight>, Failure> {
        let mut seen = held(&self.seen);
        if let Some(sight) = &*seen {
            return Ok(Arc::clone(sight));
        }
        let buffers = workspace.buffers()?;
        let open = buffers.iter().enumerate().filter(|(_, buffer)| buffer.is_live());
        let live = open.map(|(at, buffer)| (buffer.path.clone(), at)).collect();
        let sight = Arc::new(Sight { buffers, live, looked: Mutex::default() });
        *seen = Some(Arc::clone(&sight));
        Ok(sight)
    }

    /// Every buffer and draft.
    pub(crate) fn all(&self, workspace: &dyn Workspace) -> Result<Vec<Buffer>, Failure> {
        Ok(self.sight(workspace)?.buffers.clone())
    }

    /// The buffer that an editor has open of a file.
    pub(crate) fn open(&self, workspace: &dyn Workspace, path: &RelPath) -> Result<Option<Buffer>, Failure> {
        let sight = self.sight(workspace)?;
        Ok(sight.live.get(path).and_then(|at| sight.buffers.get(*at)).cloned())
    }

    /// The open buffers of a file or of files below a directory.
    pub(crate) fn open_within(
        &self,
        workspace: &dyn Workspace,
        top: &RelPath,
    ) -> Result<Vec<RelPath>, Failure> {
        let sight = self.sight(workspace)?;
        let mut paths: Vec<RelPath> = sight.live.keys().filter(|path| path.is_within(top)).cloned().collect();
        paths.sort();
        Ok(paths)
    }

    /// The drafts of a file.
    pub(crate) fn drafts(&self, workspace: &dyn Workspace, path: &RelPath) -> Result<Vec<Buffer>, Failure> {
        let sight = self.sight(workspace)?;
        let left = |buffer: &&Buffer| buffer.standing == Standing::Draft && buffer.path == *path;
        let mut drafts: Vec<Buffer> = sight.buffers.iter().filter(left).cloned().collect();
        if !drafts.is_empty() {
            let saved = workspace.read(path, Want::Nothing).ok().map(|file| file.version);
            drafts.retain(|draft| draft.is_unsaved(saved));
        }
        Ok(drafts)
    }

    /// What an editor has of a file that the disk has not; nothing when it has nothing else, or when there is no file.
    pub(crate) fn unsaved(
        &self,
        workspace: &dyn Workspace,
        path: &RelPath,
    ) -> Result<Option<Arc<Unsaved>>, Failure> {
        let sight = self.sight(workspace)?;
        let Some(buffer) = sight.live.get(path).and_then(|at| sight.buffers.get(*at)) else {
            return Ok(None);
        };
        if let Some(looked) = held(&sight.looked).get(path) {
            return Ok(looked.clone());
        }
        let looked = look(workspace, buffer)?.map(Arc::new);
        held(&sight.looked).insert(path.clone(), looked.clone());
        Ok(looked)
    }

    /// The unsaved texts that were looked at.
    pub(crate) fn used(&self) -> Vec<Arc<Unsaved>> {
        let Some(sight) = held(&self.seen).clone() else { return Vec::new() };
        let mut used: Vec<Arc<Unsaved>> = held(&sight.looked).values().flatten().cloned().collect();
        used.sort_by(|one, two| one.buffer.path.cmp(&two.buffer.path));
        used
    }
}

fn look(workspace: &dyn Workspace, buffer: &Buffer) -> Result<Option<Unsaved>, Failure> {
    let file = match workspace.read(&buffer.path, Want::Nothing) {
        Ok(file) => file,
        // The file went away, or something else stands there: that is what everybody sees.
        Err(failure) if is_no_file(failure.kind) => return Ok(None),
        Err(failure) => return Err(failure),
    };
    if !buffer.is_unsaved(Some(file.version)) {
        return Ok(None);
    }
    let Some(texts) = workspace.buffer_text(&buffer.id)? else { return Ok(None) };
    let saved = Seen { version: file.version, stamp: file.node.stamp };
    // The editor may have gone on typing since it was looked: what is given is whole in any case.
    let unsaved = texts.buffer.is_unsaved(Some(saved.version));
    Ok(unsaved.then_some(Unsaved { buffer: texts.buffer, text: texts.text, saved, node: file.node }))
}

/// Whether a failure says that no regular file is there.
fn is_no_file(kind: Kind) -> bool {
    matches!(kind, Kind::NotFound | Kind::NotDirectory | Kind::IsDirectory | Kind::NotRegular)
}

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The two versions of a file that has unsaved text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) saved: Version,
    pub(crate) text: Version,
}
