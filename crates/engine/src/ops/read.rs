//! `read` returns the content of one file as text or as base64, by page, by lines or by bytes. The outcome of `read`
//! always has the version of the whole file and, if content remains, the call that continues the read.

mod bytes;
mod lines;

use serde::Deserialize;
use serde_json::{Map, Value};
use stead_text::encoding::{DetectedContentKind, detect_content};

use crate::{
    call_context::CallContext,
    call_options::BeforeAfterContentInclusion,
    engine::CallOutcome,
    errors::{Error, ErrorKind},
    limits,
    operation::{
        Operation, OperationPlanningResult, PlanResult, RequestedPath, RequestedPathIndex, RequestedPaths,
        ResolvedTarget, ResolvedTargets,
    },
    ops::{
        outcome_builder::{OutcomeBuilder, format_iso_utc, shorten_for_error},
        planning::require_present,
    },
    plan::FileKind,
    version::Version,
    workspace::{BytesToRead, FileBytesWithVersion, FileStat},
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadFormat {
    /// `read` returns text if the file is text, otherwise base64.
    Auto,
    Text,
    Base64,
}

impl ReadFormat {
    fn parse(argument: Option<&str>) -> Result<Self, Error> {
        match argument {
            None => Ok(ReadFormat::Auto),
            Some("text") => Ok(ReadFormat::Text),
            Some("base64") => Ok(ReadFormat::Base64),
            Some(other) => {
                Err(Error::new(ErrorKind::BadRequest, format!("'{}' is not a format", shorten_for_error(other)))
                    .with_next_step("pass as \"text\" or \"base64\", or omit as to choose by the content of the file"))
            }
        }
    }

    fn as_argument(self) -> Option<&'static str> {
        match self {
            ReadFormat::Auto => None,
            ReadFormat::Text => Some("text"),
            ReadFormat::Base64 => Some("base64"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestedFilePart {
    FirstPage,
    Lines(ReadRangeBounds),
    Bytes(ReadRangeBounds),
}

impl ReadArgs {
    fn parse_range_and_format(&self) -> Result<(RequestedFilePart, ReadFormat), Error> {
        let format = ReadFormat::parse(self.format.as_deref())?;
        let part = match (&self.lines, &self.bytes) {
            (None, None) => RequestedFilePart::FirstPage,
            (Some(lines), None) => RequestedFilePart::Lines(parse_range(lines, ReadRangeUnit::Lines)?),
            (None, Some(bytes)) => RequestedFilePart::Bytes(parse_range(bytes, ReadRangeUnit::Bytes)?),
            (Some(_), Some(_)) => {
                return Err(Error::new(ErrorKind::BadRequest, "lines and bytes cannot be combined")
                    .with_next_step("pass only one of them"));
            }
        };
        if let (RequestedFilePart::Lines(_), ReadFormat::Base64) = (part, format) {
            return Err(Error::new(ErrorKind::BadRequest, "lines cannot be read as base64")
                .with_next_step("pass bytes instead of lines"));
        }
        Ok((part, format))
    }
}

impl Operation for ReadArgs {
    type Resolved = RequestedPathIndex;
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, paths: &mut RequestedPaths) -> Result<Self::Resolved, Error> {
        self.parse_range_and_format()?;
        Ok(paths.add(RequestedPath::read(&self.path)))
    }

    fn plan(&self, context: &CallContext<'_>, path: RequestedPathIndex, targets: &ResolvedTargets) -> PlanResult<Self> {
        let target = &targets[path];
        require_file(target)?;
        if context.options.before_after == BeforeAfterContentInclusion::Include {
            return read_raw_bytes(context, target, self.parse_range_and_format()?.0);
        }
        match self.parse_range_and_format()? {
            (RequestedFilePart::Bytes(range), form) => bytes::read_exact_range(context, target, range, form),
            (RequestedFilePart::FirstPage, ReadFormat::Base64) => bytes::read_first_page(context, target),
            (RequestedFilePart::FirstPage, form @ (ReadFormat::Auto | ReadFormat::Text)) => {
                read_text_or_bytes(context, target, None, form)
            }
            (RequestedFilePart::Lines(range), form) => read_text_or_bytes(context, target, Some(range), form),
        }
    }
}

pub(super) fn require_file(target: &ResolvedTarget) -> Result<FileStat, Error> {
    let path = &target.path;
    let stat = require_present(target)?;
    match stat.kind {
        FileKind::File => Ok(stat),
        FileKind::Directory => Err(Error::new(ErrorKind::IsDirectory, format!("{path} is a directory"))
            .with_next_step(format!("call list with path {path}"))),
        FileKind::Link | FileKind::Special => {
            Err(Error::new(ErrorKind::NotRegular, format!("{path} is not a regular file"))
                .with_next_step("only regular files can be read"))
        }
    }
}

/// Reads the whole file to detect its encoding, and returns one page of the content.
fn read_text_or_bytes(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    range: Option<ReadRangeBounds>,
    form: ReadFormat,
) -> Result<OperationPlanningResult, Error> {
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
        (DetectedContentKind::Text { encoding }, _, _) => {
            lines::read_lines_page(context, target, file, encoding, range, form)
        }
        (DetectedContentKind::Binary, ReadFormat::Auto, None) => bytes::first_page_of_file(context, target, file),
        (DetectedContentKind::Binary, _, _) => Err(not_text_error(target, &file)),
    }
}

fn not_text_error(target: &ResolvedTarget, file: &FileBytesWithVersion) -> Error {
    let path = &target.path;
    Error::new(ErrorKind::NotText, format!("{path} is not text"))
        .with_next_step(format!("call read with path {path}, as \"base64\""))
        .with_detail("size", file.stat.size)
        .with_detail("version", file.version.to_string())
}

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

    fn render(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> String {
        context.options.call_notation.render_call("read", &self.to_json(target))
    }
}

/// Adds a notice about several hard links, because a change through one link does not affect the others.
fn with_link_count(fields: OutcomeBuilder, stat: &FileStat) -> OutcomeBuilder {
    if stat.link_count <= 1 {
        return fields;
    }
    let notice =
        format!("this file has {} hard links; a change through this one does not affect the others", stat.link_count);
    fields.with_field("links", stat.link_count).with_field("notices", vec![notice])
}

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadRangeUnit {
    Lines,
    Bytes,
}

impl ReadRangeUnit {
    fn argument_name(self) -> &'static str {
        match self {
            ReadRangeUnit::Lines => "lines",
            ReadRangeUnit::Bytes => "bytes",
        }
    }

    fn example(self) -> &'static str {
        match self {
            ReadRangeUnit::Lines => "lines is written \"10-60\", \"10-\" or \"10\"; the first line is 1",
            ReadRangeUnit::Bytes => "bytes is written \"0-1048575\", \"0-\" or \"0\"; the first byte is 0",
        }
    }

    fn first_index(self) -> u64 {
        match self {
            ReadRangeUnit::Lines => 1,
            ReadRangeUnit::Bytes => 0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReadRangeBounds {
    first: u64,
    last: Option<u64>,
}

impl ReadRangeBounds {
    fn length(self) -> u64 {
        self.last.map_or(u64::MAX, |last| last.saturating_sub(self.first).saturating_add(1))
    }
}

/// Parses an inclusive range of lines or bytes, written as `a-b`, `a-` or `a`.
fn parse_range(written: &str, unit: ReadRangeUnit) -> Result<ReadRangeBounds, Error> {
    let malformed = || {
        let written = shorten_for_error(written);
        Error::new(ErrorKind::BadRequest, format!("'{written}' is not a range of {}", unit.argument_name()))
            .with_next_step(unit.example())
    };
    let trimmed = written.trim();
    let (first, last) = match trimmed.split_once('-') {
        Some((first, "")) => (parse_number(first).ok_or_else(malformed)?, None),
        Some((first, last)) => {
            let last = parse_number(last).ok_or_else(malformed)?;
            (parse_number(first).ok_or_else(malformed)?, Some(last))
        }
        None => {
            let only = parse_number(trimmed).ok_or_else(malformed)?;
            (only, Some(only))
        }
    };
    if first < unit.first_index() || last.is_some_and(|last| last < first) {
        return Err(malformed());
    }
    Ok(ReadRangeBounds { first, last })
}

/// Parses digits without a sign; a number that exceeds `u64` becomes `u64::MAX`.
fn parse_number(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Reads bytes for a dialect with its own outcome format, and puts them into the field `before_after`.
fn read_raw_bytes(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    part: RequestedFilePart,
) -> Result<OperationPlanningResult, Error> {
    let extent = match part {
        RequestedFilePart::FirstPage => BytesToRead::Whole { limit_bytes: limits::READ_WHOLE_BYTES_MAX },
        RequestedFilePart::Bytes(range) => {
            BytesToRead::Range { offset: range.first, length: range.length().min(limits::READ_BYTES_MAX) }
        }
        RequestedFilePart::Lines(_) => {
            return Err(Error::new(ErrorKind::BadRequest, "raw bytes cannot be read by lines")
                .with_next_step("pass bytes instead of lines"));
        }
    };
    let file = context.read(&target.path, extent)?;
    context.remember(&target.path, file.version, matches!(part, RequestedFilePart::FirstPage).then_some(&file.bytes));
    let rev = context.revision_name(&target.path, &file.version);
    let bytes = file.bytes.len() as u64;
    let outcome = read_outcome_fields(target, &file.version, rev, &file.stat, String::new())
        .with_field("modified", format_iso_utc(file.stat.modified_ms))
        .build_one_line(format!("{bytes} bytes of {}", target.path))
        .with_before_after(context.before_after(&target.path, Some(&file.bytes), None));
    Ok(OperationPlanningResult::Read { outcome, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_ranges_parse() {
        for (written, unit, first, last) in [
            ("10-60", ReadRangeUnit::Lines, 10, Some(60)),
            ("10-", ReadRangeUnit::Lines, 10, None),
            ("10", ReadRangeUnit::Lines, 10, Some(10)),
            (" 1-1 ", ReadRangeUnit::Lines, 1, Some(1)),
            ("0-1048575", ReadRangeUnit::Bytes, 0, Some(1_048_575)),
            ("0", ReadRangeUnit::Bytes, 0, Some(0)),
            ("1-99999999999999999999999", ReadRangeUnit::Lines, 1, Some(u64::MAX)),
            ("99999999999999999999999-", ReadRangeUnit::Bytes, u64::MAX, None),
        ] {
            assert_eq!(parse_range(written, unit).unwrap(), ReadRangeBounds { first, last }, "{written}");
        }
    }

    #[test]
    fn malformed_ranges_are_rejected() {
        for written in ["", "-", "-20", "0-5", "0", "5-4", "a-b", "1-2-3", "1..5", "+1", "1,5", "١", "-1--5", "1 - 5"]
        {
            let error = parse_range(written, ReadRangeUnit::Lines).unwrap_err();
            assert_eq!(error.kind, ErrorKind::BadRequest, "{written}");
            assert!(error.next_step.unwrap().contains("10-60"), "{written}");
        }
        assert_eq!(parse_range("9-8", ReadRangeUnit::Bytes).unwrap_err().kind, ErrorKind::BadRequest);
    }
}
