//! The error type of this crate, with the mapping from `errno` to a kind of error. A disk error never contains a path,
//! a file name or file content.

use rustix::io::Errno;

/// The cause of a failed disk access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiskErrorKind {
    /// The path does not exist.
    NotFound,
    /// The path already exists.
    Exists,
    /// The path is not a directory, but a directory is required.
    NotDirectory,
    /// The path is a directory, but another file type is required.
    IsDirectory,
    /// The path is a FIFO, socket or device, but a regular file is required.
    NotRegularFile,
    /// The path is a symbolic link, and the called function does not follow links.
    IsSymlink,
    /// The path has too many links, or a link that leads to itself.
    SymlinkLoop,
    /// The path would leave the root directory.
    OutsideRoot,
    /// The path would cross into a mount that is not allowed.
    CrossesMount,
    /// The path enters or names a hidden directory.
    Hidden,
    /// The directory is not empty.
    NotEmpty,
    /// The path changed while the call used it; the caller should resolve the path again.
    ChangedConcurrently,
    /// The kernel or another process is using the file.
    Busy,
    /// The file system is full.
    NoSpace,
    /// The file-system quota is exceeded.
    QuotaExceeded,
    /// The file system is read-only.
    ReadOnly,
    /// The operating system denies permission.
    PermissionDenied,
    /// A name or the whole path is too long.
    NameTooLong,
    /// Too many files are open.
    TooManyOpenFiles,
    /// The file content is larger than the caller's limit.
    TooLarge,
    /// The file system or kernel does not support the operation.
    Unsupported,
    /// Any error without a kind of its own; the field `errno` has the error number.
    Io,
}

impl DiskErrorKind {
    /// The error kind as an English phrase, such as `not found`.
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
    /// The system call or internal step that failed.
    pub step: &'static str,
    /// The error number, if the operating system reported the error.
    pub errno: Option<i32>,
}

impl DiskError {
    /// Creates an error that this crate detected, without an `errno`.
    pub(crate) const fn new(kind: DiskErrorKind, step: &'static str) -> Self {
        Self { kind, step, errno: None }
    }

    /// Creates an error from an `errno` of the operating system.
    pub(crate) fn from_errno(step: &'static str, errno: Errno) -> Self {
        Self { kind: kind_of_errno(errno), step, errno: Some(errno.raw_os_error()) }
    }

    /// Replaces the kind of this error by one that describes the cause better.
    pub(crate) fn with_kind(self, kind: DiskErrorKind) -> Self {
        Self { kind, ..self }
    }

    pub(crate) fn is_errno(&self, errno: Errno) -> bool {
        self.errno == Some(errno.raw_os_error())
    }
}

/// Turns the error `NotFound` into `None`.
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
