//! Converts errors of the disk and the store into errors for callers. Error messages never contain paths outside the
//! workspace.

use rusqlite::ErrorCode;
use stead_disk::{DiskError, DiskErrorKind, StateDirectoryAccessError};
use stead_engine::{Error, ErrorKind};
use stead_path::RelPath;

pub(crate) fn at_path(path: &RelPath) -> impl Fn(DiskError) -> Error + Copy {
    move |error| error_at_path(path, error)
}

pub(crate) fn error_at_path(path: &RelPath, error: DiskError) -> Error {
    let detail = |text: &str| format!("{path} {text}");
    match error.kind {
        DiskErrorKind::NotFound if path.is_root() => Error::workspace_missing(),
        DiskErrorKind::NotFound => Error::new(ErrorKind::NotFound, detail("does not exist"))
            .with_next_step(format!("call list with path {} to see its contents", path.parent().unwrap_or_default())),
        DiskErrorKind::Exists => {
            Error::new(ErrorKind::Exists, detail("already exists")).with_next_step("choose another path")
        }
        DiskErrorKind::NotDirectory => {
            Error::new(ErrorKind::NotDirectory, detail("is not a directory, or one of its parents is a file"))
                .with_next_step("correct the path; call stat on its parents to see which one is a file")
        }
        DiskErrorKind::IsDirectory => Error::new(ErrorKind::IsDirectory, detail("is a directory"))
            .with_next_step(format!("call list with path {path}")),
        DiskErrorKind::NotRegularFile => {
            Error::new(ErrorKind::NotRegular, detail("is a pipe, socket or device, not a file"))
                .with_next_step("only regular files can be used; choose another path")
        }
        DiskErrorKind::SymlinkLoop => {
            Error::new(ErrorKind::LinkLoop, detail("leads through too many symbolic links, or through a cycle of them"))
                .with_next_step("use the path of the real file, or ask a person to correct the links")
        }
        DiskErrorKind::OutsideRoot => {
            Error::new(ErrorKind::PathEscape, detail("leads out of the workspace through a symbolic link"))
                .with_next_step("use a path inside the workspace, or ask a person to move the target into it")
        }
        DiskErrorKind::CrossesMount => {
            Error::new(ErrorKind::CrossMount, detail("is on another file system, which is not part of the workspace"))
                .with_next_step("use another path, or ask the operator to add the mount point with --mount")
        }
        DiskErrorKind::Hidden => Error::new(ErrorKind::ProtectedPath, detail("is reserved for stead's own files"))
            .with_next_step("choose another path"),
        DiskErrorKind::NotEmpty => Error::new(ErrorKind::NotEmpty, detail("is not empty"))
            .with_next_step("remove its entries first, or pass recursive: true"),
        // The caller has already resolved or refused every symlink of the path, so this symlink is new.
        DiskErrorKind::ChangedConcurrently | DiskErrorKind::IsSymlink => {
            Error::new(ErrorKind::Busy, detail("changed while it was read")).with_next_step("repeat the call")
        }
        DiskErrorKind::Busy => Error::new(ErrorKind::Busy, detail("is in use")).with_next_step("repeat the call"),
        DiskErrorKind::NoSpace | DiskErrorKind::QuotaExceeded => {
            Error::new(ErrorKind::NoSpace, "the disk is full; nothing was changed")
                .with_next_step("ask a person to free disk space, then repeat the call")
        }
        DiskErrorKind::ReadOnly => Error::new(ErrorKind::ReadOnly, detail("is on a read-only file system"))
            .with_next_step("use another path, or ask a person to make the file system writable"),
        DiskErrorKind::PermissionDenied => Error::new(
            ErrorKind::SystemDenied,
            detail("cannot be accessed: the operating system denied permission to the server"),
        )
        .with_next_step("ask a person to change the permissions of the file or its directories"),
        DiskErrorKind::NameTooLong => {
            Error::new(ErrorKind::NameTooLong, detail("has a name that is too long for this file system"))
                .with_next_step("use a shorter name")
        }
        DiskErrorKind::TooManyOpenFiles => {
            Error::new(ErrorKind::Busy, "the server has too many open files; nothing was changed")
                .with_next_step("repeat the call")
        }
        DiskErrorKind::TooLarge => Error::new(ErrorKind::TooLarge, detail("is too large to read at once"))
            .with_next_step(format!("call read with path {path} and bytes \"0-1048575\", then the next range")),
        DiskErrorKind::Unsupported | DiskErrorKind::Io => {
            let number = error.errno.map_or_else(String::new, |errno| format!(" (error {errno})"));
            Error::new(
                ErrorKind::Io,
                format!("{path} could not be accessed: the system call {} failed{number}", error.step),
            )
            .with_next_step("repeat the call; if it fails again, ask a person to check the disk")
        }
    }
}

/// `StateDirectoryAccessError` is a separate type, so that an error about a workspace file cannot be reported as an
/// error of the state directory.
pub(crate) fn state_directory_error(error: StateDirectoryAccessError) -> Error {
    Error::new(ErrorKind::AuditUnavailable, format!("stead cannot use its state directory: {error}")).with_next_step(
        "nothing was changed; ask a person to check the disk and the permissions of the state directory",
    )
}

pub(crate) fn damaged_database_error(what: &str) -> Error {
    let damaged = format!("the database in the state directory is damaged: {what}");
    Error::new(ErrorKind::AuditUnavailable, damaged).with_next_step("restore the state directory from a backup")
}

pub(crate) fn watch_error(error: DiskError) -> Error {
    Error::new(ErrorKind::Io, format!("the workspace cannot be watched: {error}"))
        .with_next_step("call list or stat to see changes")
}

pub(crate) fn index_error(error: DiskError) -> Error {
    Error::new(ErrorKind::Io, format!("the search index cannot be used: {error}"))
        .with_next_step("check the free space of the state directory, or run without an index: --index off")
}

/// After a failed sync, the journal entry of the commit may or may not be on disk.
pub(crate) fn commit_uncertain_error(error: rusqlite::Error) -> Error {
    store_error(error).with_next_step(
        "the files are unchanged until the server restarts; after the restart the change is either complete or absent: \
         call history to check",
    )
}

/// A database error is reported as an unusable journal, because the journal is in the database.
pub(crate) fn store_error(error: rusqlite::Error) -> Error {
    let why = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk of the state directory is full".to_owned(),
        // SQLite also reports `SystemIoFailure` if there is no space for its shared memory.
        Some(ErrorCode::SystemIoFailure) => "the disk of the state directory failed or is full".to_owned(),
        Some(ErrorCode::ReadOnly) => "the state directory is read-only".to_owned(),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "the database file in the state directory cannot be opened".to_owned()
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => "the database file is damaged".to_owned(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            let locked = "the journal cannot be used: another process has locked it";
            return Error::new(ErrorKind::AuditUnavailable, locked).with_next_step(
                "nothing was changed; repeat the call, and if it fails again, ask a person to end the other process",
            );
        }
        Some(code) => format!("its database reports {code:?}"),
        None => "its database reports an unexpected error".to_owned(),
    };
    Error::new(ErrorKind::AuditUnavailable, format!("the journal cannot be used: {why}")).with_next_step(
        "nothing was changed; ask a person to free space or to repair the state directory, then repeat the call",
    )
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn store_errors_have_readable_messages() {
        for (code, word) in [
            (ffi::SQLITE_FULL, "is full"),
            (ffi::SQLITE_IOERR, "failed or is full"),
            (ffi::SQLITE_READONLY, "read-only"),
            (ffi::SQLITE_CANTOPEN, "cannot be opened"),
            (ffi::SQLITE_NOTADB, "damaged"),
            (ffi::SQLITE_BUSY, "another process"),
        ] {
            let error = store_error(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
            assert!(error.message.contains(word), "{code}: {error}");
        }
    }

    #[test]
    fn missing_workspace_root_is_reported_as_such() {
        let missing = DiskError { kind: DiskErrorKind::NotFound, step: "open", errno: None };
        let error = error_at_path(&RelPath::root(), missing);
        assert_eq!(error.kind, ErrorKind::NotFound);
        assert!(error.message.contains("does not exist"));
        assert!(error.next_step.is_none_or(|hint| !hint.contains("call list")));
    }
}
