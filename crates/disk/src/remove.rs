//! Removes a directory tree without following a link and without entering a mount or a hidden directory. To keep at
//! most [`OPEN_HANDLES_MAX`] directories open, a deeper directory is first moved to the top of the tree. The removal
//! stops at the first error, and entries that were already removed stay removed.

use std::os::fd::AsFd;

use stead_path::FileName;

use crate::{
    DirectoryHandle, DiskDirectoryEntry, DiskError, DiskErrorKind, ExistingTargetPolicy, FileType,
    confinement::OPathFdWithStat, stage::random_temp_name, sys,
};

const OPEN_HANDLES_MAX: usize = 64;
/// The most new listings of a directory during its removal, because other programs may keep creating files in the
/// directory.
const LISTING_ROUNDS_MAX: u32 = 4;
const OWNER_RWX: u32 = 0o700;

struct RemovalFrame {
    directory: DirectoryHandle,
    name: FileName,
    entries: Vec<DiskDirectoryEntry>,
    listing_rounds: u32,
}

impl RemovalFrame {
    fn open_child(parent: &DirectoryHandle, name: FileName) -> Result<Self, DiskError> {
        grant_owner_access(&parent.open_path_handle(&name)?);
        let directory = parent.open_directory(&name)?;
        let entries = directory.list_with_hidden()?;
        Ok(Self { directory, name, entries, listing_rounds: 0 })
    }
}

impl DirectoryHandle {
    /// Removes a file, or a directory and everything below it.
    pub fn remove_tree(&self, name: &FileName) -> Result<(), DiskError> {
        match self.stat(name)? {
            None => return Err(DiskError::new(DiskErrorKind::NotFound, "remove tree")),
            Some(stat) if stat.file_type != FileType::Directory => return remove_leaf(self, name),
            Some(_) => {}
        }
        let mut stack = vec![RemovalFrame::open_child(self, name.clone())?];
        loop {
            let open = stack.len();
            let Some(frame) = stack.last_mut() else { break };
            match frame.entries.pop() {
                Some(DiskDirectoryEntry { name, file_type: FileType::Directory }) if open < OPEN_HANDLES_MAX => {
                    match RemovalFrame::open_child(&frame.directory, name) {
                        Ok(child) => stack.push(child),
                        Err(error) if error.kind == DiskErrorKind::NotFound => {}
                        Err(error) => return Err(error),
                    }
                }
                Some(DiskDirectoryEntry { name, file_type: FileType::Directory }) => move_to_top(&mut stack, &name)?,
                Some(DiskDirectoryEntry { name, .. }) => remove_leaf(&frame.directory, &name)?,
                None => remove_emptied_directory(self, &mut stack)?,
            }
        }
        Ok(())
    }

    /// The listing includes hidden directories, so that the removal of a tree fails at a hidden directory.
    fn list_with_hidden(&self) -> Result<Vec<DiskDirectoryEntry>, DiskError> {
        let mut entries = Vec::new();
        sys::list_directory(self.reopen_for_listing()?.as_fd(), |bytes, listed, _| {
            let Ok(name) = FileName::new(bytes) else { return Ok(()) };
            let is_known = listed != FileType::Unknown;
            let file_type = if is_known { listed } else { sys::stat_name(self.path_handle(), bytes)?.stat.file_type };
            entries.push(DiskDirectoryEntry { name, file_type });
            Ok(())
        })?;
        Ok(entries)
    }
}

/// Moves a directory that is too deep into the top directory of the tree, where it is removed later.
fn move_to_top(stack: &mut [RemovalFrame], name: &FileName) -> Result<(), DiskError> {
    let (Some(top), Some(deep)) = (stack.first(), stack.last()) else { return Ok(()) };
    // Moving a directory requires write permission on the directory. Opening the handle fails for a hidden directory or
    // a mount.
    grant_owner_access(&deep.directory.open_path_handle(name)?);
    let temp = random_temp_name()?;
    match deep.directory.rename(name, &top.directory, &temp, ExistingTargetPolicy::Refuse) {
        Err(error) if error.kind == DiskErrorKind::Unsupported => {
            deep.directory.rename(name, &top.directory, &temp, ExistingTargetPolicy::Replace)?;
        }
        other => other?,
    }
    if let Some(top) = stack.first_mut() {
        top.entries.push(DiskDirectoryEntry { name: temp, file_type: FileType::Directory });
    }
    Ok(())
}

fn remove_emptied_directory(outer: &DirectoryHandle, stack: &mut Vec<RemovalFrame>) -> Result<(), DiskError> {
    let Some(mut frame) = stack.pop() else { return Ok(()) };
    let parent = stack.last().map_or(outer, |parent| &parent.directory);
    match parent.remove_directory(&frame.name) {
        Err(error) if error.kind == DiskErrorKind::NotFound => Ok(()),
        Err(error) if error.kind == DiskErrorKind::NotEmpty && frame.listing_rounds < LISTING_ROUNDS_MAX => {
            frame.listing_rounds += 1;
            frame.entries = frame.directory.list_with_hidden()?;
            stack.push(frame);
            Ok(())
        }
        other => other,
    }
}

fn remove_leaf(directory: &DirectoryHandle, name: &FileName) -> Result<(), DiskError> {
    // The stat fails for a hidden file and for a mount, which must stay.
    if directory.stat(name)?.is_none() {
        return Ok(());
    }
    match directory.remove_file(name) {
        Err(error) if error.kind == DiskErrorKind::NotFound => Ok(()),
        // The name was not a directory when it was listed, so another program replaced it.
        Err(error) if error.kind == DiskErrorKind::IsDirectory => {
            Err(error.with_kind(DiskErrorKind::ChangedConcurrently))
        }
        other => other,
    }
}

/// A failed change of permissions is ignored, because the next access to the directory reports the problem.
fn grant_owner_access(directory_handle: &OPathFdWithStat) {
    let mode = directory_handle.meta.stat.mode;
    if directory_handle.file_type() == FileType::Directory && mode & OWNER_RWX != OWNER_RWX {
        sys::set_mode_by_path_handle(directory_handle.handle.as_fd(), mode | OWNER_RWX).unwrap_or_default();
    }
}
