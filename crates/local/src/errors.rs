//! Maps errors of the disk and the store to errors for callers. No host path enters a message.

use rusqlite::ErrorCode;
use stead_disk::{DiskError, DiskErrorKind, StateError};
use stead_engine::{Error, ErrorKind};
use stead_path::RelPath;

/// The error for a caller that used `path`.
pub(crate) fn error_at_path(path: &RelPath, error: &DiskError) -> Error {
    let detail = |text: &str| format!("{path} {text}");
    match error.kind {
        DiskErrorKind::NotFound if path.is_root() => Error::workspace_missing(),
        DiskErrorKind::NotFound => Error::new(ErrorKind::NotFound, detail("does not exist"))
            .with_next_step(format!("call list with path {} to see what is there", parent_of(path))),
        DiskErrorKind::Exists => Error::new(ErrorKind::Exists, detail("already exists")),
        DiskErrorKind::NotDirectory => {
            Error::new(ErrorKind::NotDirectory, detail("is not a directory, or lies below a file"))
        }
        DiskErrorKind::IsDirectory => Error::new(ErrorKind::IsDirectory, detail("is a directory"))
            .with_next_step(format!("call list with path {path}")),
        DiskErrorKind::NotRegularFile => {
            Error::new(ErrorKind::NotRegular, detail("is a pipe, socket or device, not a file"))
        }
        DiskErrorKind::SymlinkLoop => Error::new(ErrorKind::LinkLoop, detail("goes through too many links")),
        DiskErrorKind::OutsideRoot => Error::new(ErrorKind::PathEscape, detail("leads out of the workspace")),
        DiskErrorKind::CrossesMount => Error::new(ErrorKind::CrossMount, detail("is on another file system")),
        DiskErrorKind::Hidden => Error::new(ErrorKind::ProtectedPath, "the path belongs to the server"),
        DiskErrorKind::NotEmpty => Error::new(ErrorKind::NotEmpty, detail("is not empty")),
        // Callers here have already followed or refused every symlink: this one is new.
        DiskErrorKind::ChangedConcurrently | DiskErrorKind::IsSymlink => {
            Error::new(ErrorKind::Busy, detail("changed while it was read")).with_next_step("call again")
        }
        DiskErrorKind::Busy => Error::new(ErrorKind::Busy, detail("is in use")).with_next_step("call again"),
        DiskErrorKind::NoSpace | DiskErrorKind::QuotaExceeded => {
            Error::new(ErrorKind::NoSpace, "the disk is full; nothing was changed")
        }
        DiskErrorKind::ReadOnly => Error::new(ErrorKind::ReadOnly, "the file system is read-only"),
        DiskErrorKind::PermissionDenied => {
            Error::new(ErrorKind::SystemDenied, detail("is not accessible to the server (permission denied)"))
        }
        DiskErrorKind::NameTooLong => {
            Error::new(ErrorKind::NameTooLong, detail("has a name that is too long for this file system"))
        }
        DiskErrorKind::TooManyOpenFiles => {
            Error::new(ErrorKind::Busy, "too many files are open").with_next_step("call again")
        }
        DiskErrorKind::TooLarge => Error::new(ErrorKind::TooLarge, detail("is too large to read at once"))
            .with_next_step(format!("call read with path {path} and bytes \"0-1048575\", then the next range")),
        DiskErrorKind::Unsupported | DiskErrorKind::Io => {
            let number = error.errno.map_or_else(String::new, |errno| format!(" (error {errno})"));
            Error::new(ErrorKind::Io, format!("{path}: I/O error at {}{number}", error.step))
        }
    }
}

/// Error of the state directory. Its type differs from disk errors, so that no workspace path can be involved.
pub(crate) fn state_directory_error(error: &StateError) -> Error {
    Error::new(ErrorKind::AuditUnavailable, format!("state directory error at {error}"))
}

pub(crate) fn watch_error(error: &DiskError) -> Error {
    Error::new(ErrorKind::Io, format!("the workspace cannot be watched: {error}"))
}

/// Error of the search index, which reads the workspace and writes to the state directory.
pub(crate) fn index_error(error: &DiskError) -> Error {
    Error::new(ErrorKind::Io, format!("search index error at {error}"))
}

/// Error of a failed journal sync: the entry may or may not be on disk.
pub(crate) fn commit_uncertain_error(error: &rusqlite::Error) -> Error {
    let mut failure = store_error(error);
    failure.next_step = Some(
        "nothing was changed so far and nothing will be until the server is started again; then the change is either \
         wholly there or not at all: call history to see"
            .to_owned(),
    );
    failure
}

/// Error of the store. Nothing can change without a journal.
pub(crate) fn store_error(error: &rusqlite::Error) -> Error {
    let why = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk of the state directory is full".to_owned(),
        // SQLite also reports this when there is no space for its shared memory.
        Some(ErrorCode::SystemIoFailure) => "the disk of the state directory fails, or is full".to_owned(),
        Some(ErrorCode::ReadOnly) => "the state directory is read-only".to_owned(),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "its file cannot be opened in the state directory".to_owned()
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => "its file is damaged".to_owned(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let held = "the journal cannot be used: another process has locked it";
            return Error::new(ErrorKind::AuditUnavailable, held)
                .with_next_step("nothing was changed; call again, and if it fails again, end the other process");
        }
        Some(code) => format!("{code:?}"),
        None => "an unexpected error".to_owned(),
    };
    Error::new(ErrorKind::AuditUnavailable, format!("the journal cannot be used: {why}"))
        .with_next_step("nothing was changed; free space or repair the state directory, then call again")
}

fn parent_of(path: &RelPath) -> RelPath {
    path.parent().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn store_errors_have_readable_messages() {
        for (code, word) in [
            (ffi::SQLITE_FULL, "is full"),
            (ffi::SQLITE_IOERR, "fails, or is full"),
            (ffi::SQLITE_READONLY, "read-only"),
            (ffi::SQLITE_CANTOPEN, "cannot be opened"),
            (ffi::SQLITE_NOTADB, "damaged"),
            (ffi::SQLITE_BUSY, "another process"),
        ] {
            let error = store_error(&rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
            assert!(error.message.contains(word), "{code}: {error}");
        }
    }

    #[test]
    fn missing_workspace_root_is_reported_as_such() {
        let missing = DiskError { kind: DiskErrorKind::NotFound, step: "open", errno: None };
        let gone = error_at_path(&RelPath::root(), &missing);
        assert_eq!(gone.kind, ErrorKind::NotFound);
        assert!(
            gone.message.contains("does not exist") && gone.next_step.is_none_or(|hint| !hint.contains("call list"))
        );
    }
}
