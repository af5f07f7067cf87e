//! The error type of this crate, with the mapping from `errno` to a kind of error. An error never contains a path, name
//! or content.

use rustix::io::Errno;

/// The kind of a disk error.
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
    /// The path is a symbolic link, but this call never follows links.
    IsSymlink,
    /// The path has too many links, or a link that leads to itself.
    SymlinkLoop,
    /// The path would leave the root.
    OutsideRoot,
    /// The path would cross into a mount that is not allowed.
    CrossesMount,
    /// The path enters or names a hidden directory.
    Hidden,
    /// The directory is not empty.
    NotEmpty,
    /// The path changed between two steps. The caller should resolve it again.
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
    /// The content exceeds the given limit.
    TooLarge,
    /// The file system or kernel does not support the operation.
    Unsupported,
    /// Any other error; the field `errno` has the error number.
    Io,
}

impl DiskErrorKind {
    /// The kind as a phrase.
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

/// A failed file access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{step}: {}", kind.as_str())]
pub struct DiskError {
    /// The kind of error.
    pub kind: DiskErrorKind,
    /// The system call or step that failed.
    pub step: &'static str,
    /// The error number, if the operating system reported the error.
    pub errno: Option<i32>,
}

impl DiskError {
    /// An error that this crate detected.
    pub(crate) const fn new(kind: DiskErrorKind, step: &'static str) -> Self {
        Self { kind, step, errno: None }
    }

    /// An error that the operating system reported.
    pub(crate) fn from_errno(step: &'static str, errno: Errno) -> Self {
        Self { kind: kind_of_errno(errno), step, errno: Some(errno.raw_os_error()) }
    }

    /// The same error with another kind, for callers that know more about its cause.
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
