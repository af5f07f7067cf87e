//! How `patch` fails, but for chunks without a place. Owns the words and facts of each refusal: the file, the section,
//! the line of the patch, and that nothing was written.

use path::RelPath;
use serde_json::Value;
use text::patch::{Action, ParseError, Section};

use super::versions;
use crate::{
    failure::{Failure, Kind},
    ops::r#move::Overwrite,
    plan::Top,
};

/// What every failure says at its end.
const UNWRITTEN: &str = "nothing was written";

/// The section that fails.
#[derive(Clone, Copy)]
pub(super) struct At {
    /// Which, 0-based.
    pub(super) section: usize,
    /// The line of the patch that starts it.
    pub(super) line: usize,
    /// What it does.
    pub(super) operation: &'static str,
}

impl At {
    pub(super) fn of(number: usize, section: &Section) -> Self {
        let operation = match section.action {
            Action::Add { .. } => "add",
            Action::Update { .. } => "update",
            Action::Delete { .. } => "delete",
            Action::Move { .. } => "move",
        };
        Self { section: number, line: section.line, operation }
    }

    /// A failure with the section that it is about.
    pub(super) fn named(self, failure: Failure) -> Failure {
        let line = if failure.facts.contains_key("line") { Value::Null } else { self.line.into() };
        let mut failure = unwritten(failure).fact("section", self.section).fact("operation", self.operation);
        if !line.is_null() {
            failure = failure.fact("line", line);
        }
        failure
    }
}

/// A failure that says that nothing was written.
pub(super) fn unwritten(mut failure: Failure) -> Failure {
    if !failure.detail.ends_with(UNWRITTEN) {
        failure.detail = format!("{}; {UNWRITTEN}", failure.detail);
    }
    failure
}

/// A patch that cannot be read.
pub(super) fn malformed(error: &ParseError) -> Failure {
    let failure = Failure::new(Kind::MalformedPatch, format!("{error}; {UNWRITTEN}"))
        .hint("correct that line and send the whole patch again")
        .fact("line", error.line)
        .fact("expected", error.fault.expected())
        .fact("fault", error.fault.code());
    match error.fault.got() {
        Some(got) => failure.fact("got", got),
        None => failure,
    }
}

pub(super) fn same_place(written: &str) -> Failure {
    Failure::new(Kind::BadRequest, format!("{written} is to be moved to where it is"))
        .hint("write an update instead")
        .fact("path", written)
        .fact("reason", "same_place")
}

pub(super) fn repeated(path: &RelPath) -> Failure {
    Failure::new(Kind::BadRequest, format!("{path} is named by two sections"))
        .hint("put all changes of one file in one section")
        .fact("path", path.to_string())
        .fact("reason", "duplicate_path")
}

pub(super) fn directory(path: &RelPath) -> Failure {
    Failure::new(Kind::IsDirectory, format!("{path} is a directory"))
        .hint("a patch is about files; use move or remove for a directory")
        .fact("path", path.to_string())
}

pub(super) fn not_regular(path: &RelPath) -> Failure {
    Failure::new(Kind::NotRegular, format!("{path} is not a regular file"))
        .hint("name the file itself")
        .fact("path", path.to_string())
}

/// A diff that takes a file away and does not quote all of it.
pub(super) fn more_than_deleted(path: &RelPath) -> Failure {
    Failure::new(Kind::TextNotFound, format!("{path} holds more than the patch takes away"))
        .hint("read it again, or write *** Delete File:")
        .fact("path", path.to_string())
        .fact("reason", "more_than_deleted")
}

/// Refuses unless a file is replaced and the caller said so.
pub(super) fn replaceable(path: &RelPath, top: Top, overwrite: Overwrite) -> Result<(), Failure> {
    let hint = match (top, overwrite) {
        (Top::File, Overwrite::Yes) => return Ok(()),
        (Top::File, Overwrite::No) => {
            "write *** Update File: to change it, or pass overwrite: true to replace it"
        }
        (Top::Directory | Top::Link | Top::Special, Overwrite::Yes | Overwrite::No) => "choose another path",
    };
    let failure = Failure::new(Kind::Exists, format!("{path} already exists"));
    Err(failure.hint(hint).fact("path", path.to_string()))
}

/// Some sections were applied before, and others were not.
pub(super) fn partly(sections: &[Section], before: &[usize]) -> Failure {
    let listed: Vec<String> = before
        .iter()
        .filter_map(|at| sections.get(*at))
        .map(|section| {
            format!("{} (line {} of the patch)", versions::paths(section).join(" -> "), section.line)
        })
        .collect();
    let what = format!("some of the patch was applied before: {}", listed.join(", "));
    unwritten(Failure::new(Kind::AlreadyApplied, what))
        .hint("leave those sections out")
        .fact("already_applied", before.to_vec())
}
