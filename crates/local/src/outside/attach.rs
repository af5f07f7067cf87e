//! Watches directories of the tree: first watched, then listed, so that nothing is made in between unseen.

use disk::{
    DiskError, ErrorKind, FileType,
    watch::{Watch, WatchId},
};
use path::{Name, RelPath};

use super::{scopes::Scopes, watched::Watched};
use crate::open::LocalWorkspace;

/// What watching a branch came to.
#[derive(Default)]
pub(crate) struct Attached {
    /// What is in the directories that were watched newly.
    pub(crate) found: Vec<RelPath>,
    /// Directories that the kernel allows no watch for.
    pub(crate) beyond_limit: Vec<RelPath>,
    /// Directories that are closed to the server.
    pub(crate) denied: Vec<RelPath>,
    /// Directories that were not there: whatever took them away was not heard yet.
    pub(crate) unreached: Vec<RelPath>,
    /// Directories that are watched under another name: both names, that one last.
    pub(crate) misnamed: Vec<(WatchId, [RelPath; 2])>,
    /// The directories that were watched newly.
    pub(crate) new: Vec<WatchId>,
}

/// Whether what is in the directories is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Of those that were not watched before.
    Wanted,
    Unwanted,
}

/// Watches branches of the tree.
pub(crate) struct Attach<'a> {
    pub(crate) workspace: &'a LocalWorkspace,
    pub(crate) queue: &'a Watch,
    pub(crate) scopes: &'a Scopes,
    pub(crate) watched: &'a mut Watched,
    pub(crate) finding: Finding,
}

impl Attach<'_> {
    /// Watches a directory and everything below it that the watches need, and every directory above it.
    pub(crate) fn branch(&mut self, top: &RelPath) -> Result<Attached, DiskError> {
        let mut attached = Attached::default();
        for above in top.ancestors() {
            if !self.watched.has(&above) {
                self.add(&above, &mut attached)?;
            }
        }
        let mut waiting = vec![top.clone()];
        while let Some(path) = waiting.pop() {
            let Some(directory) = self.add(&path, &mut attached)? else { continue };
            let Ok(listed) = directory.list() else { continue };
            for entry in listed {
                let Ok(child) = path.join(&entry.name) else { continue };
                if is_temporary(&entry.name) {
                    continue;
                }
                if entry.file_type == FileType::Directory && self.scopes.needs(&child) {
                    waiting.push(child.clone());
                }
                if self.finding == Finding::Wanted && self.scopes.matters(&child) {
                    attached.found.push(child);
                }
            }
        }
        Ok(attached)
    }

    /// Watches one directory. Answers it when what is in it is to be looked at.
    fn add(&mut self, path: &RelPath, attached: &mut Attached) -> Result<Option<disk::Directory>, DiskError> {
        let opened = self.workspace.root.open_directory(path);
        let added = opened.and_then(|directory| Ok((self.queue.add(&directory)?, directory)));
        match added {
            Ok((id, directory)) => Ok(self.name(id, path, attached).then_some(directory)),
            Err(error) => refused(error, path, attached).map(|()| None),
        }
    }

    /// Gives a watched directory its name. Whether what is in it is to be looked at.
    fn name(&mut self, id: WatchId, path: &RelPath, attached: &mut Attached) -> bool {
        match self.watched.path(id) {
            Some(known) if known == path => return self.finding == Finding::Unwanted,
            Some(known) => {
                attached.misnamed.push((id, [path.clone(), known.clone()]));
                return false;
            }
            None => {}
        }
        attached.new.push(id);
        self.watched.insert(id, path.clone());
        true
    }
}

/// Notes why a directory is not watched.
fn refused(error: DiskError, path: &RelPath, attached: &mut Attached) -> Result<(), DiskError> {
    match error.kind {
        // Gone, or no directory any more: whatever is above it tells.
        ErrorKind::NotFound
        | ErrorKind::NotDirectory
        | ErrorKind::IsLink
        | ErrorKind::Moved
        | ErrorKind::NotRegular => {
            attached.unreached.push(path.clone());
        }
        // Not part of the workspace.
        ErrorKind::Hidden | ErrorKind::CrossMount | ErrorKind::Escape | ErrorKind::NameTooLong => {}
        ErrorKind::NoSpace => attached.beyond_limit.push(path.clone()),
        ErrorKind::Denied => attached.denied.push(path.clone()),
        ErrorKind::Exists
        | ErrorKind::IsDirectory
        | ErrorKind::LinkLoop
        | ErrorKind::NotEmpty
        | ErrorKind::Busy
        | ErrorKind::Quota
        | ErrorKind::ReadOnly
        | ErrorKind::TooManyOpen
        | ErrorKind::TooLarge
        | ErrorKind::Unsupported
        | ErrorKind::Io => return Err(error),
    }
    Ok(())
}

/// Whether a name is one of our own that nobody is meant to see.
pub(crate) fn is_temporary(name: &Name) -> bool {
    name.as_bytes().starts_with(path::TEMPORARY_PREFIX.as_bytes())
}
