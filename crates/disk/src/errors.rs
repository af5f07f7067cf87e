//! The error type of this crate, with the mapping from `errno` to a kind of error. A disk error never contains a path,
//! a file name or file content.

use rustix::io::Errno;

/// The kind of a disk error: the cause of a failed disk access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiskErrorKind {
    /// The disk access failed because the path does not exist.
    NotFound,
    /// The disk access failed because the path already exists.
    Exists,
    /// The disk access failed because the path is not a directory.
    NotDirectory,
    /// The disk access failed because the path is a directory and another file type is required.
    IsDirectory,
    /// The disk access failed because the path is a FIFO, socket or device instead of a regular file.
    NotRegularFile,
    /// The disk access failed because the path is a symbolic link, which the called function does not follow.
    IsSymlink,
    /// The disk access failed because the path has too many symbolic links, or a link to itself.
    SymlinkLoop,
    /// The disk access failed because the path would leave the root directory.
    OutsideRoot,
    /// The disk access failed because the path would cross into a mount that is not allowed.
    CrossesMount,
    /// The disk access failed because the path enters or names a hidden directory.
    Hidden,
    /// The disk access failed because the directory is not empty.
    NotEmpty,
    /// The disk access failed because the path changed meanwhile; the caller should resolve the path again.
    ChangedConcurrently,
    /// The disk access failed because the kernel or another process is using the file.
    Busy,
    /// The disk access failed because the file system is full.
    NoSpace,
    /// The disk access failed because it would exceed the file-system quota.
    QuotaExceeded,
    /// The disk access failed because the file system is read-only.
    ReadOnly,
    /// The disk access failed because the operating system denied permission.
    PermissionDenied,
    /// The disk access failed because a name or the whole path is too long.
    NameTooLong,
    /// The disk access failed because the process or the system has too many open files.
    TooManyOpenFiles,
    /// The disk access failed because the file content is larger than the limit.
    TooLarge,
    /// The disk access failed because the file system or kernel does not support the operation.
    Unsupported,
    /// The disk access failed for another reason; the field `errno` may have the error number.
    Io,
}

impl DiskErrorKind {
    /// The kind of the disk error as an English phrase, such as `not found`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not found",
            Self::Exists => "already exists",
            Self::NotDirectory => "not a directory",
            Self::IsDirectory => "is a directory",
            Self::NotRegularFile => "not a regular file",
            Self::IsSymlink => "is a symbolic link",
            Self::SymlinkLoop => "too many symbolic links",
            Self::OutsideRoot => "outside the root",
            Self::CrossesMount => "crosses a mount",
            Self::Hidden => "hidden",
            Self::NotEmpty => "not empty",
            Self::ChangedConcurrently => "changed concurrently",
            Self::Busy => "busy",
            Self::NoSpace => "no space left",
            Self::QuotaExceeded => "quota exceeded",
            Self::ReadOnly => "read-only file system",
            Self::PermissionDenied => "permission denied",
            Self::NameTooLong => "name too long",
            Self::TooManyOpenFiles => "too many open files",
            Self::TooLarge => "larger than the limit",
            Self::Unsupported => "not supported here",
            Self::Io => "input/output error",
        }
    }
}

/// The error of a failed disk access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{step}: {}", kind.as_str())]
pub struct DiskError {
    /// The kind of the disk error.
    pub kind: DiskErrorKind,
    /// The name of the system call or internal step that failed.
    pub step: &'static str,
    /// The error number of the operating system, if the operating system reported the disk error.
    pub errno: Option<i32>,
}

impl DiskError {
    pub(crate) const fn new(kind: DiskErrorKind, step: &'static str) -> Self {
        Self { kind, step, errno: None }
    }

    pub(crate) fn from_errno(step: &'static str, errno: Errno) -> Self {
        Self { kind: kind_of_errno(errno), step, errno: Some(errno.raw_os_error()) }
    }

    pub(crate) fn with_kind(self, kind: DiskErrorKind) -> Self {
        Self { kind, ..self }
    }

    pub(crate) fn is_errno(&self, errno: Errno) -> bool {
        self.errno == Some(errno.raw_os_error())
    }
}

pub(crate) fn none_if_missing<T>(result: Result<T, DiskError>) -> Result<Option<T>, DiskError> {
    match result {
        Err(error) if error.kind == DiskErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

fn kind_of_errno(errno: Errno) -> DiskErrorKind {
    match errno {
        Errno::NOENT => DiskErrorKind::NotFound,
        Errno::EXIST => DiskErrorKind::Exists,
        Errno::NOTDIR => DiskErrorKind::NotDirectory,
        Errno::ISDIR => DiskErrorKind::IsDirectory,
        Errno::LOOP => DiskErrorKind::SymlinkLoop,
        Errno::XDEV => DiskErrorKind::CrossesMount,
        Errno::NOTEMPTY => DiskErrorKind::NotEmpty,
        Errno::STALE => DiskErrorKind::ChangedConcurrently,
        Errno::BUSY | Errno::AGAIN | Errno::TXTBSY => DiskErrorKind::Busy,
        Errno::NOSPC => DiskErrorKind::NoSpace,
        Errno::DQUOT => DiskErrorKind::QuotaExceeded,
        Errno::ROFS => DiskErrorKind::ReadOnly,
        Errno::ACCESS | Errno::PERM => DiskErrorKind::PermissionDenied,
        Errno::NAMETOOLONG => DiskErrorKind::NameTooLong,
        Errno::MFILE | Errno::NFILE => DiskErrorKind::TooManyOpenFiles,
        Errno::FBIG => DiskErrorKind::TooLarge,
        Errno::OPNOTSUPP | Errno::NOSYS => DiskErrorKind::Unsupported,
        _ => DiskErrorKind::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displays_only_the_step_and_the_kind() {
        let error = DiskError::from_errno("openat2", Errno::XDEV);
        assert_eq!(error.to_string(), "openat2: crosses a mount");
        assert_eq!(error.errno, Some(18));
        assert!(error.is_errno(Errno::XDEV));
    }
}
