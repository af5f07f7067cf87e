//! The error type of this crate, with the mapping from `errno` to a kind of error. A disk error never contains a path,
//! a file name or file content.

use rustix::io::Errno;

/// The kind of a disk error: the cause of a failed disk access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DiskErrorKind {
    #[error("not found")]
    NotFound,
    #[error("already exists")]
    Exists,
    #[error("not a directory")]
    NotDirectory,
    #[error("is a directory")]
    IsDirectory,
    #[error("not a regular file")]
    NotRegularFile,
    #[error("is a symbolic link")]
    IsSymlink,
    #[error("too many symbolic links")]
    SymlinkLoop,
    #[error("outside the root")]
    OutsideRoot,
    #[error("crosses a mount")]
    CrossesMount,
    #[error("hidden")]
    Hidden,
    #[error("not empty")]
    NotEmpty,
    /// The caller should resolve the path again.
    #[error("changed concurrently")]
    ChangedConcurrently,
    #[error("busy")]
    Busy,
    #[error("no space left")]
    NoSpace,
    #[error("quota exceeded")]
    QuotaExceeded,
    #[error("read-only file system")]
    ReadOnly,
    #[error("permission denied")]
    PermissionDenied,
    #[error("name too long")]
    NameTooLong,
    #[error("too many open files")]
    TooManyOpenFiles,
    #[error("larger than the limit")]
    TooLarge,
    #[error("not supported here")]
    Unsupported,
    #[error("input/output error")]
    Io,
}

/// The error of a failed disk access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{step}: {kind}")]
pub struct DiskError {
    pub kind: DiskErrorKind,
    /// The name of the system call or internal step that failed.
    pub step: &'static str,
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
