//! From the disk's and the store's errors to failures a caller can use. No host path enters a detail.

use disk::{DiskError, ErrorKind};
use engine::{Failure, Kind};
use path::RelPath;
use rusqlite::ErrorCode;

/// What a disk error means for a caller who asked about `path`.
pub(crate) fn at(path: &RelPath, error: &DiskError) -> Failure {
    let detail = |text: &str| format!("{path} {text}");
    match error.kind {
        ErrorKind::NotFound if path.is_root() => Failure::workspace_gone(),
        ErrorKind::NotFound => Failure::new(Kind::NotFound, detail("does not exist"))
            .hint(format!("call list with path {} to see what is there", parent_of(path))),
        ErrorKind::Exists => Failure::new(Kind::Exists, detail("already exists")),
        ErrorKind::NotDirectory => {
            Failure::new(Kind::NotDirectory, detail("is not a directory, or lies below a file"))
        }
        ErrorKind::IsDirectory => Failure::new(Kind::IsDirectory, detail("is a directory"))
            .hint(format!("call list with path {path}")),
        ErrorKind::NotRegular => {
            Failure::new(Kind::NotRegular, detail("is a pipe, socket or device, not a file"))
        }
        ErrorKind::LinkLoop => Failure::new(Kind::LinkLoop, detail("goes through too many links")),
        ErrorKind::Escape => Failure::new(Kind::PathEscape, detail("leads out of the workspace")),
        ErrorKind::CrossMount => Failure::new(Kind::CrossMount, detail("is on another file system")),
        ErrorKind::Hidden => Failure::new(Kind::ProtectedPath, "that place belongs to the server"),
        ErrorKind::NotEmpty => Failure::new(Kind::NotEmpty, detail("is not empty")),
        // Whoever asks here has followed or refused every link before: this one is new.
        ErrorKind::Moved | ErrorKind::IsLink => {
            Failure::new(Kind::Busy, detail("changed while it was looked at")).hint("call again")
        }
        ErrorKind::Busy => Failure::new(Kind::Busy, detail("is in use")).hint("call again"),
        ErrorKind::NoSpace | ErrorKind::Quota => {
            Failure::new(Kind::NoSpace, "the disk is full; nothing was changed")
        }
        ErrorKind::ReadOnly => Failure::new(Kind::ReadOnly, "the file system is read-only"),
        ErrorKind::Denied => Failure::new(Kind::Denied, detail("is closed to the server by its permissions")),
        ErrorKind::NameTooLong => Failure::new(Kind::NameTooLong, detail("has a name that is too long here")),
        ErrorKind::TooManyOpen => Failure::new(Kind::Busy, "too many files are open").hint("call again"),
        ErrorKind::TooLarge => Failure::new(Kind::TooLarge, detail("is too large to read at once"))
            .hint(format!("call read with path {path} and bytes \"0-1048575\", then the next range")),
        ErrorKind::Unsupported | ErrorKind::Io => {
            let number = error.errno.map_or_else(String::new, |errno| format!(" (error {errno})"));
            Failure::new(Kind::Io, format!("{path}: the device failed at {}{number}", error.call))
        }
    }
}

/// What a disk error means when it is about the server's own files.
pub(crate) fn own(error: &DiskError) -> Failure {
    Failure::new(Kind::AuditUnavailable, format!("the state directory failed at {error}"))
}

/// What it means that the journal failed to reach the device: nobody knows whether it did.
pub(crate) fn uncertain(error: &rusqlite::Error) -> Failure {
    let mut failure = store(error);
    failure.hint = Some(
        "nothing was changed so far and nothing will be until the server is started again; then the change is either \
         wholly there or not at all: call history to see"
            .to_owned(),
    );
    failure
}

/// What a store error means: without a journal nothing may change.
pub(crate) fn store(error: &rusqlite::Error) -> Failure {
    let why = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk that the state directory is on is full".to_owned(),
        // What the store says as well when there is no room for its shared memory.
        Some(ErrorCode::SystemIoFailure) => {
            "the disk that the state directory is on fails, or is full".to_owned()
        }
        Some(ErrorCode::ReadOnly) => "the state directory is read-only".to_owned(),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "its file cannot be opened in the state directory".to_owned()
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => "its file is damaged".to_owned(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "another process holds it".to_owned(),
        Some(code) => format!("{code:?}"),
        None => "an unexpected error".to_owned(),
    };
    Failure::new(Kind::AuditUnavailable, format!("the journal cannot be used: {why}"))
        .hint("nothing was changed; free space or repair the state directory, then call again")
}

fn parent_of(path: &RelPath) -> RelPath {
    path.parent().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn what_the_store_says_is_said_in_words() {
        for (code, word) in [
            (ffi::SQLITE_FULL, "is full"),
            (ffi::SQLITE_IOERR, "fails, or is full"),
            (ffi::SQLITE_READONLY, "read-only"),
            (ffi::SQLITE_CANTOPEN, "cannot be opened"),
            (ffi::SQLITE_NOTADB, "damaged"),
            (ffi::SQLITE_BUSY, "another process"),
        ] {
            let failure = store(&rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
            assert!(failure.detail.contains(word), "{code}: {failure}");
        }
    }

    #[test]
    fn a_workspace_that_is_gone_is_not_looked_for_in_itself() {
        let missing = DiskError { kind: ErrorKind::NotFound, call: "open", errno: None };
        let gone = at(&RelPath::root(), &missing);
        assert_eq!(gone.kind, Kind::NotFound);
        assert!(gone.detail.contains("gone") && gone.hint.is_none_or(|hint| !hint.contains("call list")));
    }
}
