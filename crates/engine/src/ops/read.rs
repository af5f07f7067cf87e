//! `read` returns the content of one file as text or as base64, by page, by lines or by bytes. The outcome of `read`
//! always has the version of the whole file and, if content remains, the call that continues the read.

mod bytes;
mod lines;

use serde::{Deserialize, Serialize};
use stead_path::RelPath;
use stead_text::encoding::detect_encoding;

use crate::{
    call_context::CallContext,
    call_options::BeforeAfterContentInclusion,
    engine::BeforeAfterBytes,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{
        CallDurationFactor, Operation, OperationPlanningResult, PathAccessRequest, PlanResult, ResolvedTarget,
    },
    ops::{ListArgs, planning::require_present, text_pages::shorten_for_error},
    outcome::{Completeness, FileShownInOutcome, FileVersionFields, OperationOutcome, UtcTime},
    plan::FileKind,
    tree::{BytesToRead, FileBytesWithVersion, FileStat},
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadArgs {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
    #[schemars(extend("enum" = ["text", "base64"]))]
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ReadOutcome {
    pub path: RelPath,
    pub content: String,
    #[serde(flatten)]
    pub version: FileVersionFields,
    pub size: u64,
    #[serde(flatten)]
    pub part: ReadPartFields,
    /// The number of hard links of the file; `None` if the file has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ReadPartFields {
    Lines(ReadLinesFields),
    Bytes(ReadBytesFields),
    RawBytes(RawBytesReadFields),
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ReadLinesFields {
    pub encoding: &'static str,
    pub ending: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bom: bool,
    pub lines: ReturnedRange,
    #[serde(flatten)]
    pub completeness: Completeness<ReadArgs>,
    /// Whether the returned content ends with the file's last line, which has no line ending.
    #[serde(skip)]
    pub ends_without_newline: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ReadBytesFields {
    pub encoding: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub binary: bool,
    pub bytes: ReturnedRange,
    #[serde(flatten)]
    pub completeness: Completeness<ReadArgs>,
    /// The arguments of the `read` call that returns the bytes after the requested range.
    #[serde(rename = "next", skip_serializing_if = "Option::is_none")]
    pub following: Option<ReadArgs>,
}

/// The bytes that `read` returns unencoded to a dialect with its own outcome format.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RawBytesReadFields {
    pub modified: UtcTime,
    #[serde(skip)]
    pub length: u64,
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

/// The first and last returned line or byte, both included, and the number of lines or bytes of the file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReturnedRange {
    pub from: u64,
    pub to: u64,
    pub total: u64,
}

impl OperationOutcome for ReadOutcome {
    fn take_before_after(&mut self) -> Vec<BeforeAfterBytes> {
        match &mut self.part {
            ReadPartFields::Lines(_) | ReadPartFields::Bytes(_) => Vec::new(),
            ReadPartFields::RawBytes(raw) => {
                let before = Some(std::mem::take(&mut raw.bytes));
                vec![BeforeAfterBytes { path: self.path.clone(), before, after: None }]
            }
        }
    }

    fn main_file(&mut self) -> Option<FileShownInOutcome<'_>> {
        Some(FileShownInOutcome::new(&self.path, &mut self.version))
    }
}

impl ReadOutcome {
    fn new(
        context: &CallContext<'_>,
        path: &RelPath,
        file: &FileBytesWithVersion,
        content: String,
        part: ReadPartFields,
    ) -> Self {
        let links = (file.stat.link_count > 1).then_some(file.stat.link_count);
        let notice =
            |links| format!("this file has {links} hard links; a change through this one does not affect the others");
        Self {
            path: path.clone(),
            content,
            version: FileVersionFields::new(file.version, context.revision_name(path, &file.version)),
            size: file.stat.size,
            part,
            links,
            notices: links.map(notice).into_iter().collect(),
        }
    }
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
                    .with_next_step(NextStep::repeat_without("as").or(NextStep::repeat_with("as", "base64"))))
            }
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
            (Some(lines), None) => RequestedFilePart::Lines(parse_range(lines, &LINE_UNIT)?),
            (None, Some(bytes)) => RequestedFilePart::Bytes(parse_range(bytes, &BYTE_UNIT)?),
            (Some(_), Some(_)) => {
                return Err(Error::new(ErrorKind::BadRequest, "lines and bytes cannot be combined")
                    .with_next_step("pass only one of them"));
            }
        };
        if let (RequestedFilePart::Lines(_), ReadFormat::Base64) = (part, format) {
            return Err(Error::new(ErrorKind::BadRequest, "lines cannot be read as base64")
                .with_next_step(NextStep::repeat_with_such("bytes", "in place of lines")));
        }
        Ok((part, format))
    }

    /// Returns arguments of `read` for the same file without a range; the calling code sets the range.
    fn with_other_part(&self, path: &RelPath) -> Self {
        Self { path: path.to_string(), lines: None, bytes: None, format: self.format.clone() }
    }

    /// Reads the whole file to detect its encoding, and returns one page of the content.
    fn read_text_or_bytes(
        &self,
        context: &CallContext<'_>,
        path: &RelPath,
        range: Option<ReadRangeBounds>,
        format: ReadFormat,
    ) -> PlanResult<Self> {
        let whole = BytesToRead::Whole { limit_bytes: limits::READ_WHOLE_BYTES_MAX };
        let file = context.read(path, whole).map_err(|error| {
            if error.kind != ErrorKind::TooLarge {
                return error;
            }
            error.with_next_step(NextStep::call(ReadArgs::first_bytes(path), "get the first part of the file"))
        })?;
        context.remember(path, file.version, Some(&file.bytes));
        match (detect_encoding(&file.bytes), format, range) {
            (Some(encoding), _, _) => lines::read_lines_page(context, self, path, file, encoding, range),
            (None, ReadFormat::Auto, None) => Ok(bytes::first_page_of_file(context, self, path, file)),
            (None, _, _) => Err(not_text_error(path, &file)),
        }
    }
}

impl Operation for ReadArgs {
    type Paths = PathAccessRequest;
    type Outcome = ReadOutcome;

    fn duration_factor(&self) -> CallDurationFactor<'_> {
        CallDurationFactor::FileSize { path: &self.path, bytes: self.bytes.as_deref() }
    }

    fn resolve(&self, _context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        self.parse_range_and_format()?;
        Ok(PathAccessRequest::read(&self.path))
    }

    fn plan(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        let path = &target.path;
        require_file(target)?;
        let (part, format) = self.parse_range_and_format()?;
        if context.options.before_after == BeforeAfterContentInclusion::Include {
            return read_raw_bytes(context, path, part);
        }
        match (part, format) {
            (RequestedFilePart::Bytes(range), _) => bytes::read_exact_range(context, self, path, range, format),
            (RequestedFilePart::FirstPage, ReadFormat::Base64) => bytes::read_first_page(context, self, path),
            (RequestedFilePart::FirstPage, ReadFormat::Auto | ReadFormat::Text) => {
                self.read_text_or_bytes(context, path, None, format)
            }
            (RequestedFilePart::Lines(range), _) => self.read_text_or_bytes(context, path, Some(range), format),
        }
    }
}

pub(super) fn require_file(target: &ResolvedTarget) -> Result<FileStat, Error> {
    let path = &target.path;
    let stat = require_present(target)?;
    match stat.kind {
        FileKind::File => Ok(stat),
        FileKind::Directory => Err(Error::new(ErrorKind::IsDirectory, format!("{path} is a directory"))
            .with_next_step(NextStep::call(ListArgs::new(path), "see its entries"))),
        FileKind::Link | FileKind::Special => {
            Err(Error::new(ErrorKind::NotRegular, format!("{path} is not a regular file"))
                .with_next_step("only regular files can be read"))
        }
    }
}

fn not_text_error(path: &RelPath, file: &FileBytesWithVersion) -> Error {
    Error::new(ErrorKind::NotText, format!("{path} is not text"))
        .with_next_step(NextStep::call(ReadArgs::as_base64(path), "get the bytes"))
        .with_size(file.stat.size)
        .with_version(file.version.to_string())
}

struct ReadRangeUnit {
    argument: &'static str,
    first_index: u64,
    example: &'static str,
}

const LINE_UNIT: ReadRangeUnit = ReadRangeUnit {
    argument: "lines",
    first_index: 1,
    example: "lines is written \"10-60\", \"10-\" or \"10\"; the first line is 1",
};
const BYTE_UNIT: ReadRangeUnit = ReadRangeUnit {
    argument: "bytes",
    first_index: 0,
    example: "bytes is written \"0-1048575\", \"0-\" or \"0\"; the first byte is 0",
};

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
fn parse_range(written: &str, unit: &ReadRangeUnit) -> Result<ReadRangeBounds, Error> {
    let malformed = || {
        let written = shorten_for_error(written);
        Error::new(ErrorKind::BadRequest, format!("'{written}' is not a range of {}", unit.argument))
            .with_next_step(unit.example)
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
    if first < unit.first_index || last.is_some_and(|last| last < first) {
        return Err(malformed());
    }
    Ok(ReadRangeBounds { first, last })
}

/// Parses digits without a sign; a number that exceeds `u64` becomes `u64::MAX`.
fn parse_number(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Reads the bytes of a file unencoded, for a dialect with its own outcome format.
fn read_raw_bytes(context: &CallContext<'_>, path: &RelPath, part: RequestedFilePart) -> PlanResult<ReadArgs> {
    let extent = match part {
        RequestedFilePart::FirstPage => BytesToRead::Whole { limit_bytes: limits::READ_WHOLE_BYTES_MAX },
        RequestedFilePart::Bytes(range) => {
            BytesToRead::Range { offset: range.first, length: range.length().min(limits::READ_BYTES_MAX) }
        }
        RequestedFilePart::Lines(_) => {
            return Err(Error::new(ErrorKind::BadRequest, "raw bytes cannot be read by lines")
                .with_next_step(NextStep::repeat_with_such("bytes", "in place of lines")));
        }
    };
    let mut file = context.read(path, extent)?;
    context.remember(path, file.version, matches!(part, RequestedFilePart::FirstPage).then_some(&file.bytes));
    let (length, modified) = (file.bytes.len() as u64, UtcTime { unix_ms: file.stat.modified_ms });
    let bytes = std::mem::take(&mut file.bytes);
    let part = ReadPartFields::RawBytes(RawBytesReadFields { modified, length, bytes });
    let outcome = ReadOutcome::new(context, path, &file, String::new(), part);
    let outcome = ReadOutcome { links: None, notices: Vec::new(), ..outcome };
    Ok(OperationPlanningResult::Read { outcome, bytes: length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_ranges_parse() {
        for (written, unit, first, last) in [
            ("10-60", &LINE_UNIT, 10, Some(60)),
            ("10-", &LINE_UNIT, 10, None),
            ("10", &LINE_UNIT, 10, Some(10)),
            (" 1-1 ", &LINE_UNIT, 1, Some(1)),
            ("0-1048575", &BYTE_UNIT, 0, Some(1_048_575)),
            ("0", &BYTE_UNIT, 0, Some(0)),
            ("1-99999999999999999999999", &LINE_UNIT, 1, Some(u64::MAX)),
            ("99999999999999999999999-", &BYTE_UNIT, u64::MAX, None),
        ] {
            assert_eq!(parse_range(written, unit).unwrap(), ReadRangeBounds { first, last }, "{written}");
        }
    }

    #[test]
    fn malformed_ranges_are_rejected() {
        for written in ["", "-", "-20", "0-5", "0", "5-4", "a-b", "1-2-3", "1..5", "+1", "1,5", "١", "-1--5", "1 - 5"]
        {
            let error = parse_range(written, &LINE_UNIT).unwrap_err();
            assert_eq!(error.kind, ErrorKind::BadRequest, "{written}");
            assert!(format!("{:?}", error.next_step).contains("10-60"), "{written}");
        }
        assert_eq!(parse_range("9-8", &BYTE_UNIT).unwrap_err().kind, ErrorKind::BadRequest);
    }
}
