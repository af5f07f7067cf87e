//! Removing a whole tree. Promises: never follows a link, never enters a mount or a hidden directory, and holds at most
//! [`HANDLES_MAX`] directories open however deep the tree is: what lies deeper is moved up to the top of the tree first.
//! Stops at the first thing that cannot be removed; what was removed before stays removed.

use std::os::fd::AsFd;

use path::Name;

use crate::{
    Directory, DiskError, ErrorKind, FileType, Listed, Over, confines::Held, random::temp_name, sys,
};

/// Most directories open at once.
const HANDLES_MAX: usize = 64;
/// How often a directory that somebody else fills meanwhile is emptied again.
const ROUNDS_MAX: u32 = 4;
/// What an owner needs to empty a directory.
const OWNER_ALL: u32 = 0o700;

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Removed {
    /// Names that were not directories.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Bytes in the files.
    pub bytes: u64,
}

/// One directory being emptied.
struct Frame {
    directory: Directory,
    name: Name,
    entries: Vec<Listed>,
    rounds: u32,
}

impl Frame {
    fn enter(parent: &Directory, name: Name) -> Result<Self, DiskError> {
        make_usable(&parent.hold(&name)?);
        let directory = parent.open_directory(&name)?;
        let entries = directory.list_with_hidden()?;
        Ok(Self { directory, name, entries, rounds: 0 })
    }
}

impl Directory {
    /// Removes a name and everything beneath it.
    pub fn remove_tree(&self, name: &Name) -> Result<Removed, DiskError> {
        let mut removed = Removed::default();
        match self.stat(name)? {
            None => return Err(DiskError::new(ErrorKind::NotFound, "remove tree")),
            Some(stat) if stat.file_type != FileType::Directory => {
                remove_leaf(self, name, &mut removed)?;
                return Ok(removed);
            }
            Some(_) => {}
        }
        let mut stack = vec![Frame::enter(self, name.clone())?];
        loop {
            let open = stack.len();
            let Some(frame) = stack.last_mut() else { break };
            match frame.entries.pop() {
                Some(Listed { name, file_type: FileType::Directory }) if open < HANDLES_MAX => {
                    match Frame::enter(&frame.directory, name) {
                        Ok(child) => stack.push(child),
                        Err(error) if error.kind == ErrorKind::NotFound => {}
                        Err(error) => return Err(error),
                    }
                }
                Some(Listed { name, file_type: FileType::Directory }) => move_up(&mut stack, &name)?,
                Some(Listed { name, .. }) => remove_leaf(&frame.directory, &name, &mut removed)?,
                None => leave(self, &mut stack, &mut removed)?,
            }
        }
        Ok(removed)
    }

    /// Everything, hidden directories too, so that removing stops at them and says so.
    fn list_with_hidden(&self) -> Result<Vec<Listed>, DiskError> {
        let readable = self.readable()?;
        let mut entries = Vec::new();
        sys::list(readable.as_fd(), |bytes, file_type, _| {
            let Ok(name) = Name::new(bytes) else { return Ok(()) };
            let file_type = if file_type == FileType::Unknown {
                sys::stat_name(self.place(), bytes)?.stat.file_type
            } else {
                file_type
            };
            entries.push(Listed { name, file_type });
            Ok(())
        })?;
        Ok(entries)
    }
}

/// Moves a directory that lies too deep to the top of the tree, where it is met again.
fn move_up(stack: &mut [Frame], name: &Name) -> Result<(), DiskError> {
    let (Some(top), Some(deep)) = (stack.first(), stack.last()) else { return Ok(()) };
    // A directory can be moved only by who may write to it; and a hidden one or a mount is refused here.
    make_usable(&deep.directory.hold(name)?);
    let temp = temp_name()?;
    match deep.directory.rename(name, &top.directory, &temp, Over::Refuse) {
        Err(error) if error.kind == ErrorKind::Unsupported => {
            deep.directory.rename(name, &top.directory, &temp, Over::Replace)?;
        }
        other => other?,
    }
    if let Some(top) = stack.first_mut() {
        top.entries.push(Listed { name: temp, file_type: FileType::Directory });
    }
    Ok(())
}

/// Removes the emptied directory on top of the stack.
fn leave(outer: &Directory, stack: &mut Vec<Frame>, removed: &mut Removed) -> Result<(), DiskError> {
    let Some(mut frame) = stack.pop() else { return Ok(()) };
    let parent = stack.last().map_or(outer, |parent| &parent.directory);
    match parent.remove_directory(&frame.name) {
        Ok(()) => removed.directories += 1,
        Err(error) if error.kind == ErrorKind::NotFound => {}
        Err(error) if error.kind == ErrorKind::NotEmpty && frame.rounds < ROUNDS_MAX => {
            frame.rounds += 1;
            frame.entries = frame.directory.list_with_hidden()?;
            stack.push(frame);
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

fn remove_leaf(directory: &Directory, name: &Name, removed: &mut Removed) -> Result<(), DiskError> {
    let Some(stat) = directory.stat(name)? else { return Ok(()) };
    match directory.remove_file(name) {
        Ok(()) => {
            removed.files += 1;
            removed.bytes = removed.bytes.saturating_add(stat.size);
            Ok(())
        }
        Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
        // It was no directory when it was listed.
        Err(error) if error.kind == ErrorKind::IsDirectory => Err(error.seen_as(ErrorKind::Moved)),
        Err(error) => Err(error),
    }
}

/// Gives the owner all rights on a directory. A refusal shows itself at the next step.
fn make_usable(held: &Held) {
    let mode = held.meta.stat.mode;
    if held.file_type() == FileType::Directory && mode & OWNER_ALL != OWNER_ALL {
        sys::set_mode_of_place(held.handle.as_fd(), mode | OWNER_ALL).unwrap_or_default();
    }
}
