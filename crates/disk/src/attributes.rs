//! Copies the attributes of a replaced file to the new file: mode, owner, group, POSIX access list and user attributes.
//! Set-id bits are never copied. Attributes that could not be copied are reported. If the group or the access list
//! cannot be copied, group members get only the permissions of all other users.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::{DiskError, DiskErrorKind, OpenFile, sys, sys::file_io};

const ACL_ATTRIBUTE: &[u8] = b"system.posix_acl_access";
const USER_ATTRIBUTE_PREFIX: &[u8] = b"user.";

/// The source of the mode, owner and further attributes of a staged file.
#[derive(Debug, Clone, Copy)]
pub enum FileAttributeSource<'a> {
    /// A new staged file gets the permissions `mode`, limited by the umask or the default access list of its directory.
    New {
        /// The permission bits that the new file gets; set-id bits are ignored.
        mode: u32,
    },
    CopyFrom(&'a OpenFile),
}

/// A file attribute that could not be copied to the new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LostAttribute {
    #[error("Owner")]
    Owner,
    #[error("Group")]
    Group,
    #[error("AccessList")]
    AccessList,
    #[error("User")]
    User,
}

pub(crate) fn copy_attributes(file: BorrowedFd<'_>, model: &OpenFile) -> Result<Vec<LostAttribute>, DiskError> {
    let mut lost = Vec::new();
    // User attributes are set before the owner changes, because setting them needs write permission on the file.
    copy_user_attributes(file, model, &mut lost)?;
    let model_stat = model.stat();
    let file_stat = sys::stat_handle(file)?.stat;
    if file_stat.gid != model_stat.gid
        && !succeeded_unless_unsupported(file_io::set_owner(file, None, Some(model_stat.gid)))?
    {
        lost.push(LostAttribute::Group);
    }
    if file_stat.uid != model_stat.uid
        && !succeeded_unless_unsupported(file_io::set_owner(file, Some(model_stat.uid), None))?
    {
        lost.push(LostAttribute::Owner);
    }
    let group_kept = !lost.contains(&LostAttribute::Group);
    let mode = model_stat.mode & 0o777;
    // If the group is lost, the access list and the group bits refer to a group that the new file does not have.
    let mode_without_group = (mode & 0o707) | ((mode & 0o007) << 3);
    let list = file_io::read_attribute(model.handle(), ACL_ATTRIBUTE)?;
    file_io::remove_attribute(file, ACL_ATTRIBUTE)?;
    file_io::set_mode(file, if group_kept { mode } else { mode_without_group })?;
    if let Some(list) = list
        && !(group_kept && succeeded_unless_unsupported(file_io::set_attribute(file, ACL_ATTRIBUTE, &list))?)
    {
        // If a file has an access list, the group bits of its mode are the mask of the list, not the rights of the
        // group.
        file_io::set_mode(file, mode_without_group)?;
        lost.push(LostAttribute::AccessList);
    }
    Ok(lost)
}

fn copy_user_attributes(
    file: BorrowedFd<'_>,
    model: &OpenFile,
    lost: &mut Vec<LostAttribute>,
) -> Result<(), DiskError> {
    for name in file_io::attribute_names(model.handle())? {
        if !name.starts_with(USER_ATTRIBUTE_PREFIX) {
            continue;
        }
        let Some(value) = file_io::read_attribute(model.handle(), &name)? else { continue };
        if !succeeded_unless_unsupported(file_io::set_attribute(file, &name, &value))? {
            lost.push(LostAttribute::User);
        }
    }
    Ok(())
}

fn succeeded_unless_unsupported(result: Result<(), DiskError>) -> Result<bool, DiskError> {
    match result {
        Ok(()) => Ok(true),
        Err(error)
            if matches!(error.kind, DiskErrorKind::PermissionDenied | DiskErrorKind::Unsupported)
                || error.is_errno(Errno::INVAL) =>
        {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
