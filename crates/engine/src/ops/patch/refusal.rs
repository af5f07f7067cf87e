//! How `patch` fails. Owns the words and facts of each refusal: the file, the section, the chunk, the line of the patch,
//! what is there instead, and that nothing was written.

use path::RelPath;
use serde_json::{Value, json};
use text::{
    locate::Finder,
    patch::{Action, ApplyError, ParseError, Reason, Section},
};

use crate::{
    failure::{Failure, Kind},
    limits,
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

/// A chunk that has no place.
pub(super) fn unplaced(path: &RelPath, text: &str, error: &ApplyError, at: At) -> Failure {
    let chunk = error.chunk;
    let place =
        |detail: String| format!("{path}, chunk {chunk} (line {} of the patch): {detail}", error.line);
    let finder = Finder::new(text);
    let failure = match &error.reason {
        Reason::NotFound { already: Some(line), .. } => Failure::new(
            Kind::AlreadyApplied,
            place(format!("line {line} already is as the chunk would make it")),
        )
        .hint("leave the chunk out")
        .fact("at", *line),
        Reason::NotFound { quoted, already: None } => not_found(&finder, place, quoted),
        Reason::AnchorNotFound { anchor } => {
            let failure = Failure::new(Kind::TextNotFound, place(format!("no line is {anchor:?}")))
                .hint("write a whole line of the file behind @@, or nothing");
            with_nearest(&finder, failure, anchor)
        }
        Reason::Ambiguous { lines, .. } => {
            let places: Vec<Value> =
                lines.iter().take(limits::FAILURE_PLACES_MAX).map(|line| named(&finder, *line)).collect();
            Failure::new(Kind::Ambiguous, place(format!("it fits at lines {}", listed(lines))))
                .hint("write more lines around the change, or the line of its definition behind @@")
                .shows(shown(&places))
                .fact("places", places)
                .fact("places_total", lines.len())
        }
        Reason::Overlap { other, line } => {
            Failure::new(Kind::Overlap, place(format!("chunk {other} already changes line {line}")))
                .hint("put both changes in one chunk")
                .fact("other_chunk", *other)
                .fact("at", *line)
        }
        Reason::NumberOnly { line } => Failure::new(
            Kind::Ambiguous,
            place(format!("it quotes no line, and the file is not the one whose line {line} it counts")),
        )
        .hint("make the diff with context, or write the line before the new ones as context")
        .fact("at", *line)
        .fact("reason", "number_only"),
        Reason::Exhausted => Failure::new(Kind::TooLarge, place("the file repeats too much".to_owned()))
            .hint("write more lines around the change"),
    };
    at.named(failure.fact("path", path.to_string()).fact("chunk", chunk).fact("line", error.line))
}

fn not_found(finder: &Finder<'_>, place: impl Fn(String) -> String, quoted: &str) -> Failure {
    let first = quoted.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let first: String = first.chars().take(80).collect();
    let failure =
        Failure::new(Kind::TextNotFound, place(format!("its lines, from {first:?} on, are not in the file")))
            .fact("quoted", cut(quoted));
    with_nearest(finder, failure, quoted)
}

/// Adds the current lines where a quote most likely belongs.
fn with_nearest(finder: &Finder<'_>, failure: Failure, quoted: &str) -> Failure {
    let Some(nearest) = finder.nearest(quoted) else {
        return match failure.hint {
            Some(_) => failure,
            None => failure.hint("nothing like it is in the file; read it again"),
        };
    };
    let (first, last) = nearest.lines.clone().into_inner();
    let shown: String = nearest
        .lines
        .take(limits::FAILURE_LINES_MAX)
        .map(|number| format!("{number}\t{}\n", finder.line(number)))
        .collect();
    let mut failure =
        failure.shows(&shown).fact("nearest", shown).fact("nearest_from", first).fact("nearest_to", last);
    if let Some(difference) = nearest.differences.first() {
        let at = difference.text_line;
        failure = failure.fact(
            "differs",
            json!({ "line": at, "column": difference.column,
                "quoted": difference.quoted.map(String::from), "actual": difference.actual.map(String::from) }),
        );
    }
    failure.hint(format!("the nearest lines are {first}-{last}, given here; quote those that are there"))
}

/// A place and the definition it is in.
fn named(finder: &Finder<'_>, line: usize) -> Value {
    match finder.definition(line) {
        Some(definition) => json!({ "line": line, "in": definition.text }),
        None => json!({ "line": line }),
    }
}

/// The places as lines, each with the definition it is in.
fn shown(places: &[Value]) -> String {
    let line = |place: &Value| match place["in"].as_str() {
        Some(definition) => format!("line {} in {definition}\n", place["line"]),
        None => format!("line {}\n", place["line"]),
    };
    places.iter().map(line).collect()
}

fn listed(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(limits::FAILURE_PLACES_MAX).map(ToString::to_string).collect();
    let more = if lines.len() > shown.len() { ", …" } else { "" };
    shown.join(", ") + more
}

fn cut(quoted: &str) -> String {
    let mut lines: Vec<&str> = quoted.lines().take(limits::FAILURE_LINES_MAX).collect();
    if quoted.lines().count() > lines.len() {
        lines.push("…");
    }
    lines.join("\n")
}
