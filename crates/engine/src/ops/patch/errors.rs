//! Errors of `patch`, except for chunks that cannot be placed. Each names the file, the section and the line of the
//! patch, and says that nothing was written.

use serde_json::Value;
use stead_path::RelPath;
use stead_text::patch::{FilePatch, PatchParseError, PatchSectionKind};

use super::base_versions;
use crate::{
    errors::{Error, ErrorKind},
    ops::r#move::Overwrite,
    plan::FileKind,
};

const NOTHING_WRITTEN: &str = "nothing was written";

/// The section that failed.
#[derive(Clone, Copy)]
pub(super) struct PatchSectionRef {
    pub(super) section: usize,
    /// The first line of the section in the patch.
    pub(super) line: usize,
    pub(super) operation: &'static str,
}

impl PatchSectionRef {
    pub(super) fn for_section(number: usize, section: &FilePatch) -> Self {
        let operation = match section.kind {
            PatchSectionKind::Add { .. } => "add",
            PatchSectionKind::Update { .. } => "update",
            PatchSectionKind::Delete { .. } => "delete",
            PatchSectionKind::Move { .. } => "move",
        };
        Self { section: number, line: section.line, operation }
    }

    pub(super) fn with_section(self, error: Error) -> Error {
        let line = if error.details.contains_key("line") { Value::Null } else { self.line.into() };
        let mut error =
            with_nothing_written(error).with_detail("section", self.section).with_detail("operation", self.operation);
        if !line.is_null() {
            error = error.with_detail("line", line);
        }
        error
    }
}

pub(super) fn with_nothing_written(mut error: Error) -> Error {
    if !error.message.ends_with(NOTHING_WRITTEN) {
        error.message = format!("{}; {NOTHING_WRITTEN}", error.message);
    }
    error
}

pub(super) fn malformed_patch_error(error: &PatchParseError) -> Error {
    let failure = Error::new(ErrorKind::MalformedPatch, format!("{error}; {NOTHING_WRITTEN}"))
        .with_next_step("correct that line and send the whole patch again")
        .with_detail("line", error.line)
        .with_detail("expected", error.fault.expected())
        .with_detail("fault", error.fault.code());
    match error.fault.got() {
        Some(got) => failure.with_detail("got", got),
        None => failure,
    }
}

pub(super) fn same_path_error(written: &str) -> Error {
    Error::new(ErrorKind::BadRequest, format!("{written} is moved to its own path"))
        .with_next_step("use an update instead")
        .with_detail("path", written)
        .with_detail("reason", "same_place")
}

pub(super) fn repeated_file_error(path: &RelPath) -> Error {
    Error::new(ErrorKind::BadRequest, format!("{path} is named by two sections"))
        .with_next_step("put all changes of one file in one section")
        .with_detail("path", path.to_string())
        .with_detail("reason", "duplicate_path")
}

pub(super) fn is_directory_error(path: &RelPath) -> Error {
    Error::new(ErrorKind::IsDirectory, format!("{path} is a directory"))
        .with_next_step("a patch changes files only; use move or remove for a directory")
        .with_detail("path", path.to_string())
}

pub(super) fn not_regular_error(path: &RelPath) -> Error {
    Error::new(ErrorKind::NotRegular, format!("{path} is not a regular file"))
        .with_next_step("name the file itself")
        .with_detail("path", path.to_string())
}

/// A diff that deletes a file without quoting all of it.
pub(super) fn delete_mismatch_error(path: &RelPath) -> Error {
    Error::new(ErrorKind::TextNotFound, format!("{path} contains more than the patch removes"))
        .with_next_step("read it again, or write *** Delete File:")
        .with_detail("path", path.to_string())
        .with_detail("reason", "more_than_deleted")
}

/// Rejects an existing path unless it is a file and `overwrite` is set.
pub(super) fn require_replaceable(path: &RelPath, top: FileKind, overwrite: Overwrite) -> Result<(), Error> {
    let next_step = match (top, overwrite) {
        (FileKind::File, Overwrite::Yes) => return Ok(()),
        (FileKind::File, Overwrite::No) => "write *** Update File: to change it, or pass overwrite: true to replace it",
        (FileKind::Directory | FileKind::Link | FileKind::Special, Overwrite::Yes | Overwrite::No) => {
            "choose another path"
        }
    };
    let error = Error::new(ErrorKind::Exists, format!("{path} already exists"));
    Err(error.with_next_step(next_step).with_detail("path", path.to_string()))
}

/// Some sections are already applied and others are not.
pub(super) fn partly_applied_error(sections: &[FilePatch], before: &[usize]) -> Error {
    let listed: Vec<String> = before
        .iter()
        .filter_map(|at| sections.get(*at))
        .map(|section| {
            format!("{} (line {} of the patch)", base_versions::written_paths(section).join(" -> "), section.line)
        })
        .collect();
    let what = format!("parts of the patch are already applied: {}", listed.join(", "));
    with_nothing_written(Error::new(ErrorKind::AlreadyApplied, what))
        .with_next_step("remove those sections")
        .with_detail("already_applied", before.to_vec())
}
