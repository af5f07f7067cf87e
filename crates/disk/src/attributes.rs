//! What a new file takes over from the one it replaces: mode without set-id bits, owner and group where permitted, the
//! POSIX access list, user attributes. What could not be kept is told, never passed over. When the group cannot be
//! kept, a foreign group gets no more than everybody.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::{DiskError, ErrorKind, OpenFile, sys, sys::content};

/// The POSIX access list of a file.
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
/// Attributes that belong to people and programs, not to the kernel.
const USER_PREFIX: &[u8] = b"user.";

/// Where mode, owner and further attributes come from.
#[derive(Debug, Clone, Copy)]
pub enum Attributes<'a> {
    /// A new file: the process mask and a default access list of the directory apply.
    New {
        /// Permission bits; set-id bits are ignored.
        mode: u32,
    },
    /// Like this file.
    Like(&'a OpenFile),
}

/// One thing that could not be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribute {
    /// The owner.
    Owner,
    /// The group.
    Group,
    /// The POSIX access list.
    AccessList,
    /// A user attribute.
    User,
}

/// Makes the new file `file` like `model`; returns what could not be kept.
pub(crate) fn take_over(file: BorrowedFd<'_>, model: &OpenFile) -> Result<Vec<Attribute>, DiskError> {
    let mut lost = Vec::new();
    // First the attributes that need write permission, while the file is still ours alone.
    take_over_user_attributes(file, model, &mut lost)?;
    let wanted = model.stat();
    let has = sys::stat_handle(file)?.stat;
    if has.gid != wanted.gid && !permitted(content::set_owner(file, None, Some(wanted.gid)))? {
        lost.push(Attribute::Group);
    }
    if has.uid != wanted.uid && !permitted(content::set_owner(file, Some(wanted.uid), None))? {
        lost.push(Attribute::Owner);
    }
    let group_kept = !lost.contains(&Attribute::Group);
    let mode = wanted.mode & 0o777;
    // A list or a group's bits would speak of a group that the new file does not have.
    let mode = if group_kept { mode } else { (mode & 0o707) | ((mode & 0o007) << 3) };
    let list = content::attribute(model.handle(), ACCESS_LIST)?;
    content::remove_attribute(file, ACCESS_LIST)?;
    content::set_mode(file, mode)?;
    if let Some(list) = list {
        let kept = group_kept && permitted(content::set_attribute(file, ACCESS_LIST, &list))?;
        if !kept {
            // With a list the group bits are its mask, not the group's own rights.
            content::set_mode(file, (mode & 0o707) | ((mode & 0o007) << 3))?;
            lost.push(Attribute::AccessList);
        }
    }
    Ok(lost)
}

fn take_over_user_attributes(
    file: BorrowedFd<'_>,
    model: &OpenFile,
    lost: &mut Vec<Attribute>,
) -> Result<(), DiskError> {
    for name in content::attribute_names(model.handle())? {
        if !name.starts_with(USER_PREFIX) {
            continue;
        }
        let Some(value) = content::attribute(model.handle(), &name)? else { continue };
        if !permitted(content::set_attribute(file, &name, &value))? {
            lost.push(Attribute::User);
        }
    }
    Ok(())
}

/// Whether it was done; a refusal that a file system or a lack of rights explains is no failure.
fn permitted(done: Result<(), DiskError>) -> Result<bool, DiskError> {
    match done {
        Ok(()) => Ok(true),
        Err(error)
            if matches!(error.kind, ErrorKind::Denied | ErrorKind::Unsupported)
                || error.is_errno(Errno::INVAL) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
