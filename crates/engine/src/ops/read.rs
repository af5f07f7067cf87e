//! `read`: the content of one file, as text with its encoding and line endings, or as base64; by page, lines or
//! bytes. Always returns the version of the whole file, and the next call if something is left out.

mod bytes;
mod lines;
mod range;
mod raw;

use range::{InclusiveRange, RangeUnit};
use serde::Deserialize;
use serde_json::{Map, Value};
use stead_text::{
    encoding::{DetectedContent, detect_content},
    visible::escape_deceptive_line,
};

use super::outcome_builder::{OutcomeBuilder, shorten_for_error};
use crate::{
    call_context::CallContext,
    call_options::BeforeAfterInclusion,
    errors::{Error, ErrorKind},
    limits,
    operation::{Operation, PlannedEffect, RequestedPath, ResolvedTarget},
    plan::FileKind,
    version::Version,
    workspace::{BytesToRead, FileBytes, FileStat},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadArgs {
    path: String,
    lines: Option<String>,
    bytes: Option<String>,
    #[serde(rename = "as")]
    format: Option<String>,
}

/// The requested format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadFormat {
    /// Text if the file is text, otherwise base64.
    Auto,
    /// Text, or an error.
    Text,
    Base64,
}

impl ReadFormat {
    fn parse(written: Option<&str>) -> Result<Self, Error> {
        match written {
            None => Ok(ReadFormat::Auto),
            Some("text") => Ok(ReadFormat::Text),
            Some("base64") => Ok(ReadFormat::Base64),
            Some(other) => {
                Err(Error::new(ErrorKind::BadRequest, format!("cannot read as '{}'", shorten_for_error(other)))
                    .with_next_step("as is \"text\" or \"base64\"; omit it to choose by content"))
            }
        }
    }

    /// The value of the `as` argument.
    fn as_argument(self) -> Option<&'static str> {
        match self {
            ReadFormat::Auto => None,
            ReadFormat::Text => Some("text"),
            ReadFormat::Base64 => Some("base64"),
        }
    }
}

/// The requested part of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadPart {
    FirstPage,
    Lines(InclusiveRange),
    Bytes(InclusiveRange),
}

impl ReadArgs {
    fn parse_range_and_format(&self) -> Result<(ReadPart, ReadFormat), Error> {
        let form = ReadFormat::parse(self.format.as_deref())?;
        let part = match (&self.lines, &self.bytes) {
            (None, None) => ReadPart::FirstPage,
            (Some(lines), None) => ReadPart::Lines(range::parse_range(lines, RangeUnit::Lines)?),
            (None, Some(bytes)) => ReadPart::Bytes(range::parse_range(bytes, RangeUnit::Bytes)?),
            (Some(_), Some(_)) => {
                return Err(Error::new(ErrorKind::BadRequest, "lines and bytes cannot be combined")
                    .with_next_step("give one of them"));
            }
        };
        if let (ReadPart::Lines(_), ReadFormat::Base64) = (part, form) {
            return Err(
                Error::new(ErrorKind::BadRequest, "base64 has no lines").with_next_step("give bytes instead of lines")
            );
        }
        Ok((part, form))
    }
}

impl Operation for ReadArgs {
    fn requested_paths(&self, _context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        self.parse_range_and_format()?;
        Ok(vec![RequestedPath::read(&self.path)])
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let target = &targets[0];
        require_file(target)?;
        if context.options.before_after == BeforeAfterInclusion::Include {
            return raw::read_raw_bytes(context, target, self.parse_range_and_format()?.0);
        }
        match self.parse_range_and_format()? {
            (ReadPart::Bytes(range), form) => bytes::read_exact_range(context, target, range, form),
            (ReadPart::FirstPage, ReadFormat::Base64) => bytes::read_first_page(context, target),
            (ReadPart::FirstPage, form @ (ReadFormat::Auto | ReadFormat::Text)) => {
                read_text_or_bytes(context, target, None, form)
            }
            (ReadPart::Lines(range), form) => read_text_or_bytes(context, target, Some(range), form),
        }
    }
}

pub(super) fn require_file(target: &ResolvedTarget) -> Result<FileStat, Error> {
    let path = &target.path;
    let Some(stat) = target.stat else {
        let parent = path.parent().unwrap_or_default();
        return Err(Error::new(ErrorKind::NotFound, format!("{path} does not exist"))
            .with_next_step(format!("call list with path {parent} to see what is there")));
    };
    match stat.kind {
        FileKind::File => Ok(stat),
        FileKind::Directory => Err(Error::new(ErrorKind::IsDirectory, format!("{path} is a directory"))
            .with_next_step(format!("call list with path {path}"))),
        FileKind::Link | FileKind::Special => {
            Err(Error::new(ErrorKind::NotRegular, format!("{path} is not a regular file"))
                .with_next_step("only files can be read"))
        }
    }
}

/// Reads the whole file and returns one page.
fn read_text_or_bytes(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    range: Option<InclusiveRange>,
    form: ReadFormat,
) -> Result<PlannedEffect, Error> {
    let path = &target.path;
    let file =
        context.read(path, BytesToRead::Whole { limit_bytes: limits::READ_WHOLE_BYTES_MAX }).map_err(|error| {
            if error.kind != ErrorKind::TooLarge {
                return error;
            }
            error.with_next_step(format!("call read with path {path}, bytes \"0-{}\"", limits::OUTCOME_PAGE_CHARS - 1))
        })?;
    context.remember(path, file.version, Some(&file.bytes));
    match (detect_content(&file.bytes), form, range) {
        (DetectedContent::Text { encoding }, _, _) => {
            lines::read_lines_page(context, target, file, encoding, range, form)
        }
        (DetectedContent::Binary, ReadFormat::Auto, None) => bytes::first_page_of_file(context, target, file),
        (DetectedContent::Binary, _, _) => Err(not_text_error(target, &file)),
    }
}

fn not_text_error(target: &ResolvedTarget, file: &FileBytes) -> Error {
    let path = &target.path;
    Error::new(ErrorKind::NotText, format!("{path} is not text"))
        .with_next_step(format!("call read with path {path}, as \"base64\""))
        .with_detail("size", file.stat.size)
        .with_detail("version", file.version.to_string())
}

/// Fields of every `read` outcome except the content.
fn read_outcome_fields(
    target: &ResolvedTarget,
    version: &Version,
    rev: String,
    stat: &FileStat,
    content: String,
) -> OutcomeBuilder {
    OutcomeBuilder::new()
        .with_field("path", target.path.to_string())
        .with_field("content", content)
        .with_version(version, rev)
        .with_field("size", stat.size)
}

/// The next call, if more of the file is left.
struct ReadContinuation {
    argument: &'static str,
    range: String,
    format: ReadFormat,
}

impl ReadContinuation {
    fn to_json(&self, target: &ResolvedTarget) -> Map<String, Value> {
        OutcomeBuilder::new()
            .with_field("path", target.path.to_string())
            .with_field(self.argument, self.range.clone())
            .with_some("as", self.format.as_argument())
            .into_json()
    }

    fn describe(&self, target: &ResolvedTarget) -> String {
        let form = self.format.as_argument().map_or(String::new(), |form| format!(", as \"{form}\""));
        let path = target.path.to_wire();
        format!("call read with path {}, {} \"{}\"{form}", escape_deceptive_line(&path), self.argument, self.range)
    }
}

/// Adds a notice about other hard links, which a change does not reach.
fn with_link_count(fields: OutcomeBuilder, stat: &FileStat) -> OutcomeBuilder {
    if stat.link_count <= 1 {
        return fields;
    }
    let notice =
        format!("this file has {} hard links; a change through this one does not affect the others", stat.link_count);
    fields.with_field("links", stat.link_count).with_field("notices", vec![notice])
}

/// The content, a summary line and the next call.
fn render_text(content: &str, facts_line: &str, more: Option<String>) -> String {
    let mut text = String::with_capacity(content.len() + facts_line.len() + 64);
    text.push_str(content);
    if !content.is_empty() && !content.ends_with(['\n', '\r']) {
        text.push('\n');
    }
    text.push_str(facts_line);
    if let Some(more) = more {
        text.push('\n');
        text.push_str(&more);
    }
    text
}
