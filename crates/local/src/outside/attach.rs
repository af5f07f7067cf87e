//! Watches directories of the tree: first watched, then listed, so that nothing is made in between unseen.

use disk::{DiskError, ErrorKind, FileType, watch::Watch};
use path::{Name, RelPath};

use super::{scopes::Scopes, watched::Watched};
use crate::open::LocalWorkspace;

/// What watching a branch came to.
#[derive(Default)]
pub(crate) struct Attached {
    /// What is in the directories that were watched newly, each with whether it is a directory.
    pub(crate) found: Vec<(RelPath, FileType)>,
    /// Directories that the kernel allows no watch for.
    pub(crate) beyond_limit: Vec<RelPath>,
    /// Directories that are closed to the server.
    pub(crate) denied: Vec<RelPath>,
}

/// Whether what is in the directories is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    Wanted,
    Unwanted,
}

/// Watches a directory and everything below it that the watches need, and every directory above it.
pub(crate) fn attach(
    workspace: &LocalWorkspace,
    queue: &Watch,
    scopes: &Scopes,
    watched: &mut Watched,
    top: &RelPath,
    finding: Finding,
) -> Result<Attached, DiskError> {
    let mut attached = Attached::default();
    for above in top.ancestors() {
        if !watched.has(&above) {
            add(workspace, queue, watched, &above, &mut attached)?;
        }
    }
    let mut waiting = vec![top.clone()];
    while let Some(path) = waiting.pop() {
        let Some(directory) = add(workspace, queue, watched, &path, &mut attached)? else { continue };
        let Ok(listed) = directory.list() else { continue };
        for entry in listed {
            let Ok(child) = path.join(&entry.name) else { continue };
            if is_temporary(&entry.name) {
                continue;
            }
            if entry.file_type == FileType::Directory && scopes.needs(&child) {
                waiting.push(child.clone());
            }
            if finding == Finding::Wanted && scopes.matters(&child) {
                attached.found.push((child, entry.file_type));
            }
        }
    }
    Ok(attached)
}

/// Whether a name is one of our own that nobody is meant to see.
pub(crate) fn is_temporary(name: &Name) -> bool {
    name.as_bytes().starts_with(path::TEMPORARY_PREFIX.as_bytes())
}

fn add(
    workspace: &LocalWorkspace,
    queue: &Watch,
    watched: &mut Watched,
    path: &RelPath,
    attached: &mut Attached,
) -> Result<Option<disk::Directory>, DiskError> {
    let added =
        workspace.root.open_directory(path).and_then(|directory| Ok((queue.add(&directory)?, directory)));
    match added {
        Ok((id, directory)) => {
            watched.insert(id, path.clone());
            return Ok(Some(directory));
        }
        Err(error) => match error.kind {
            // Gone, or never a directory: whatever is above it tells.
            ErrorKind::NotFound
            | ErrorKind::NotDirectory
            | ErrorKind::IsLink
            | ErrorKind::Moved
            | ErrorKind::NotRegular
            // Not part of the workspace.
            | ErrorKind::Hidden
            | ErrorKind::CrossMount
            | ErrorKind::Escape
            | ErrorKind::NameTooLong => {}
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
        },
    }
    Ok(None)
}
