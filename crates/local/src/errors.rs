//! Converts errors of the disk and the store into errors for callers. Error messages never contain paths outside the
//! workspace.

use rusqlite::ErrorCode;
use stead_disk::{DiskError, DiskErrorKind, StateDirectoryAccessError};
use stead_engine::{
    Error, ErrorKind, NextStep,
    ops::{HistoryArgs, ListArgs, ReadArgs},
};
use stead_path::RelPath;

pub(crate) fn at_path(path: &RelPath) -> impl Fn(DiskError) -> Error + Copy {
    move |error| error_at_path(path, error)
}

pub(crate) fn error_at_path(path: &RelPath, error: DiskError) -> Error {
    let see_parent = || NextStep::call(ListArgs::of_parent(path), "see the names in the directory");
    let another_path = || NextStep::from("choose another path");
    let (kind, text, step) = match error.kind {
        DiskErrorKind::NotFound if path.is_root() => return Error::workspace_missing(),
        DiskErrorKind::NotFound => (ErrorKind::NotFound, "does not exist", see_parent()),
        DiskErrorKind::Exists => (ErrorKind::Exists, "already exists", another_path()),
        DiskErrorKind::NotDirectory => {
            let text = "is not a directory, or one of its parents is a file";
            (ErrorKind::NotDirectory, text, see_parent().then("correct the path"))
        }
        DiskErrorKind::IsDirectory => {
            (ErrorKind::IsDirectory, "is a directory", NextStep::call(ListArgs::new(path), "see its entries"))
        }
        DiskErrorKind::NotRegularFile => {
            let step = NextStep::from("only regular files can be used; choose another path");
            (ErrorKind::NotRegular, "is a pipe, socket or device, not a file", step)
        }
        DiskErrorKind::SymlinkLoop => {
            let step = NextStep::from("use the path of the real file").or_ask_person("correct the links");
            (ErrorKind::LinkLoop, "leads through too many symbolic links, or through a cycle of them", step)
        }
        DiskErrorKind::OutsideRoot => {
            let step = NextStep::from("use a path inside the workspace").or_ask_person("move the target into it");
            (ErrorKind::PathEscape, "leads out of the workspace through a symbolic link", step)
        }
        DiskErrorKind::CrossesMount => {
            let step = another_path().or_ask_person("add the mount point with --mount");
            (ErrorKind::CrossMount, "is on another file system, which is not part of the workspace", step)
        }
        DiskErrorKind::Hidden => (ErrorKind::ProtectedPath, "is reserved for stead's own files", another_path()),
        DiskErrorKind::NotEmpty => {
            let step = NextStep::repeat_with_flag("recursive", "remove it with its content");
            (ErrorKind::NotEmpty, "is not empty", step)
        }
        // The caller has already resolved or refused every symlink of the path, so this symlink is new.
        DiskErrorKind::ChangedConcurrently | DiskErrorKind::IsSymlink => {
            (ErrorKind::Busy, "changed while it was read", NextStep::repeat())
        }
        DiskErrorKind::Busy => (ErrorKind::Busy, "is in use", NextStep::repeat()),
        DiskErrorKind::ReadOnly => {
            let step = another_path().or_ask_person("make the file system writable");
            (ErrorKind::ReadOnly, "is on a read-only file system", step)
        }
        DiskErrorKind::PermissionDenied => {
            let step = NextStep::ask_person("change the permissions of the file or its directories");
            let text = "cannot be accessed: the operating system denied permission to the server";
            (ErrorKind::SystemDenied, text, step)
        }
        DiskErrorKind::NameTooLong => {
            (ErrorKind::NameTooLong, "has a name that is too long for this file system", "use a shorter name".into())
        }
        DiskErrorKind::TooLarge => {
            let step = NextStep::call(ReadArgs::first_bytes(path), "get the first part of the file");
            (ErrorKind::TooLarge, "is too large to read at once", step)
        }
        DiskErrorKind::NoSpace
        | DiskErrorKind::QuotaExceeded
        | DiskErrorKind::TooManyOpenFiles
        | DiskErrorKind::Unsupported
        | DiskErrorKind::Io => return system_failure(path, error),
    };
    Error::new(kind, format!("{path} {text}")).with_next_step(step)
}

fn system_failure(path: &RelPath, error: DiskError) -> Error {
    if matches!(error.kind, DiskErrorKind::NoSpace | DiskErrorKind::QuotaExceeded) {
        return Error::new(ErrorKind::NoSpace, "the disk is full; nothing was changed")
            .with_next_step(NextStep::ask_person("free disk space").then(NextStep::repeat()));
    }
    if error.kind == DiskErrorKind::TooManyOpenFiles {
        return Error::new(ErrorKind::Busy, "the server has too many open files; nothing was changed")
            .with_next_step(NextStep::repeat());
    }
    let number = error.errno.map_or_else(String::new, |errno| format!(" (error {errno})"));
    let failed = format!("{path} could not be accessed: the system call {} failed{number}", error.step);
    Error::new(ErrorKind::Io, failed).with_next_step(NextStep::repeat().or_ask_person("check the disk"))
}

/// `StateDirectoryAccessError` is a separate type, so that an error about a workspace file cannot be reported as an
/// error of the state directory.
pub(crate) fn state_directory_error(error: StateDirectoryAccessError) -> Error {
    Error::new(ErrorKind::AuditUnavailable, format!("stead cannot use its state directory: {error}")).with_next_step(
        NextStep::ask_person("check the disk and the permissions of the state directory; nothing was changed"),
    )
}

pub(crate) fn damaged_database_error(what: &str) -> Error {
    let damaged = format!("the database in the state directory is damaged: {what}");
    Error::new(ErrorKind::AuditUnavailable, damaged)
        .with_next_step(NextStep::ask_person("restore the state directory from a backup"))
}

pub(crate) fn watch_error(error: DiskError) -> Error {
    Error::new(ErrorKind::Io, format!("the workspace cannot be watched: {error}"))
        .with_next_step(NextStep::call(ListArgs::default(), "see changes"))
}

pub(crate) fn index_error(error: DiskError) -> Error {
    Error::new(ErrorKind::Io, format!("the search index cannot be used: {error}"))
        .with_next_step("check the free space of the state directory, or run without an index: --index off")
}

/// After a failed sync, the journal entry of the commit may or may not be on disk.
pub(crate) fn commit_uncertain_error(error: rusqlite::Error) -> Error {
    store_error(error).with_next_step(NextStep::from(
        "the files are unchanged until the server restarts; after the restart the change is either complete or absent",
    ).then(NextStep::call(HistoryArgs::default(), "check"))    )
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
            return Error::new(ErrorKind::AuditUnavailable, locked)
                .with_next_step(NextStep::repeat().or_ask_person("end the other process; nothing was changed"));
        }
        Some(code) => format!("its database reports {code:?}"),
        None => "its database reports an unexpected error".to_owned(),
    };
    Error::new(ErrorKind::AuditUnavailable, format!("the journal cannot be used: {why}")).with_next_step(
        NextStep::ask_person("free space or to repair the state directory; nothing was changed")
            .then(NextStep::repeat()),
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
        assert!(!format!("{:?}", error.next_step).contains("ListArgs"));
    }
}
