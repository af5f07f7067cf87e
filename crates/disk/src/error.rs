//! The one error of this crate. Owns the mapping from `errno` to a kind; promises that no path, name or byte of content
//! is ever inside an error; never decides what a caller should do.

use rustix::io::Errno;

/// What went wrong, for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Nothing is there.
    NotFound,
    /// Something is there already.
    Exists,
    /// A directory was needed.
    NotDirectory,
    /// A directory is there, and something else was needed.
    IsDirectory,
    /// A FIFO, socket or device is there, and a regular file was needed.
    NotRegular,
    /// A link is there, and links are never followed here.
    IsLink,
    /// More links than the limit, or a link that leads to itself.
    LinkLoop,
    /// The path would leave the root.
    Escape,
    /// The path would cross into another mount that is not allowed.
    CrossMount,
    /// The path enters or names a directory that no caller may see.
    Hidden,
    /// The directory still holds something.
    NotEmpty,
    /// The place changed between two steps: resolve again.
    Moved,
    /// The kernel or another process holds it for now.
    Busy,
    /// The file system is full.
    NoSpace,
    /// The quota of the file system is used up.
    Quota,
    /// The file system is read-only.
    ReadOnly,
    /// The operating system says no.
    Denied,
    /// A name or the whole path is too long.
    NameTooLong,
    /// Too many files are open.
    TooManyOpen,
    /// The content is larger than the limit that was given.
    TooLarge,
    /// This file system or kernel cannot do it.
    Unsupported,
    /// Anything else; `errno` has the number.
    Io,
}

impl ErrorKind {
    /// The kind as words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not found",
            Self::Exists => "already exists",
            Self::NotDirectory => "not a directory",
            Self::IsDirectory => "is a directory",
            Self::NotRegular => "not a regular file",
            Self::IsLink => "is a link",
            Self::LinkLoop => "too many links",
            Self::Escape => "leaves the root",
            Self::CrossMount => "crosses a mount",
            Self::Hidden => "hidden",
            Self::NotEmpty => "not empty",
            Self::Moved => "moved meanwhile",
            Self::Busy => "busy",
            Self::NoSpace => "no space left",
            Self::Quota => "quota used up",
            Self::ReadOnly => "read-only file system",
            Self::Denied => "permission denied",
            Self::NameTooLong => "name too long",
            Self::TooManyOpen => "too many open files",
            Self::TooLarge => "larger than the limit",
            Self::Unsupported => "not supported here",
            Self::Io => "input/output error",
        }
    }
}

/// A failed touch of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {}", kind.as_str())]
pub struct DiskError {
    /// What went wrong.
    pub kind: ErrorKind,
    /// The step that failed.
    pub call: &'static str,
    /// The number the operating system gave, if it was the one to refuse.
    pub errno: Option<i32>,
}

impl DiskError {
    /// A refusal of our own.
    pub(crate) const fn new(kind: ErrorKind, call: &'static str) -> Self {
        Self { kind, call, errno: None }
    }

    /// A refusal of the operating system.
    pub(crate) fn from_errno(call: &'static str, errno: Errno) -> Self {
        Self { kind: kind_of(errno), call, errno: Some(errno.raw_os_error()) }
    }

    /// The same refusal, understood better by whoever knows the context.
    pub(crate) fn seen_as(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// Whether the operating system gave this number.
    pub(crate) fn is_errno(&self, errno: Errno) -> bool {
        self.errno == Some(errno.raw_os_error())
    }
}

/// The kind that an `errno` means when nothing more is known.
fn kind_of(errno: Errno) -> ErrorKind {
    match errno {
        Errno::NOENT => ErrorKind::NotFound,
        Errno::EXIST => ErrorKind::Exists,
        Errno::NOTDIR => ErrorKind::NotDirectory,
        Errno::ISDIR => ErrorKind::IsDirectory,
        Errno::LOOP => ErrorKind::LinkLoop,
        Errno::XDEV => ErrorKind::CrossMount,
        Errno::NOTEMPTY => ErrorKind::NotEmpty,
        Errno::STALE => ErrorKind::Moved,
        Errno::BUSY | Errno::AGAIN | Errno::TXTBSY => ErrorKind::Busy,
        Errno::NOSPC => ErrorKind::NoSpace,
        Errno::DQUOT => ErrorKind::Quota,
        Errno::ROFS => ErrorKind::ReadOnly,
        Errno::ACCESS | Errno::PERM => ErrorKind::Denied,
        Errno::NAMETOOLONG => ErrorKind::NameTooLong,
        Errno::MFILE | Errno::NFILE => ErrorKind::TooManyOpen,
        Errno::FBIG => ErrorKind::TooLarge,
        Errno::OPNOTSUPP | Errno::NOSYS => ErrorKind::Unsupported,
        _ => ErrorKind::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_the_call_and_the_kind_only() {
        let error = DiskError::from_errno("openat2", Errno::XDEV);
        assert_eq!(error.to_string(), "openat2: crosses a mount");
        assert_eq!(error.errno, Some(18));
        assert!(error.is_errno(Errno::XDEV));
    }
}
