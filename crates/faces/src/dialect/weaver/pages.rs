//! Reading by page, as the newest generation does: a window of bytes or of numbered lines below a header that says
//! where it stands and how to go on. Pure text work; the bytes are given.

use engine::Answer;
use serde_json::{Map, Value};

use super::{Said, as_origin_text, asked::Asked, spot::Spot};
use crate::dialect::{SettingError, Settings};

/// Bytes of one page when nothing is set; the most one page carries.
const PAGE_BYTES_DEFAULT: u64 = 65_536;
/// Bytes looked at to tell text from anything else.
const SAMPLE_BYTES: usize = 512;
/// One byte in so many may be a control character before text counts as binary.
const CONTROL_SHARE: usize = 10;

const BINARY: &str = "file appears to be binary; switch read_file mode to 'bytes' for byte-based inspection";

/// What a page counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Bytes,
    Lines,
}

/// How files are paged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paging {
    pub(super) unit: Unit,
    bytes_max: u64,
}

impl Paging {
    pub(super) fn from_settings(settings: &Settings) -> Result<Self, SettingError> {
        let unit = if settings.is("read_mode", "lines", "bytes") { Unit::Lines } else { Unit::Bytes };
        let bytes_max = match settings.get("read_bytes_max") {
            None => PAGE_BYTES_DEFAULT,
            Some(text) => {
                text.parse().ok().filter(|bytes| *bytes > 0).ok_or_else(|| SettingError::Value {
                    key: "read_bytes_max".to_owned(),
                    value: text.to_owned(),
                    expected: "a positive number of bytes".to_owned(),
                })?
            }
        };
        Ok(Self { unit, bytes_max })
    }
}

/// The part of a file that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Window {
    Bytes { offset: u64, length: u64 },
    Lines { start: u64, most: Option<u64> },
}

impl Window {
    /// Reads the arguments, in the origin's order and words.
    pub(super) fn read(arguments: &Map<String, Value>, paging: Paging) -> Result<Self, String> {
        match paging.unit {
            Unit::Bytes => {
                let offset = number(arguments, "offset")?.unwrap_or(0);
                let offset = u64::try_from(offset).map_err(|_| "offset must be >= 0".to_owned())?;
                let length = number(arguments, "length")?.map_or(Ok(paging.bytes_max), u64::try_from);
                let length = length.ok().filter(|length| *length > 0).ok_or("length must be > 0")?;
                Ok(Window::Bytes { offset, length: length.min(paging.bytes_max) })
            }
            Unit::Lines => {
                let start = number(arguments, "start_line")?.unwrap_or(1);
                let start = u64::try_from(start).ok().filter(|start| *start > 0);
                let start = start.ok_or("start_line must be >= 1")?;
                for (other, instead) in
                    [("offset", "start_line"), ("length", "max_lines"), ("limit", "max_lines")]
                {
                    if arguments.contains_key(other) {
                        return Err(format!("{other} is not supported in line mode; use {instead}"));
                    }
                }
                let most = match arguments.get("max_lines") {
                    None | Some(Value::Null) => None,
                    Some(_) => number(arguments, "max_lines")?,
                };
                let positive = |most: i64| u64::try_from(most).ok().filter(|most| *most > 0);
                let most = most.map(|most| positive(most).ok_or("max_lines, if provided, must be > 0"));
                Ok(Window::Lines { start, most: most.transpose()? })
            }
        }
    }

    /// The bytes to fetch; lines need the whole file.
    pub(super) fn byte_range(self) -> Option<String> {
        match self {
            Window::Bytes { offset, length } => {
                Some(format!("{offset}-{}", offset.saturating_add(length.saturating_sub(1))))
            }
            Window::Lines { .. } => None,
        }
    }
}

/// A whole number that may have come as text.
fn number(arguments: &Map<String, Value>, name: &str) -> Result<Option<i64>, String> {
    let Some(value) = arguments.get(name) else { return Ok(None) };
    match value {
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Ok(Some(whole)),
            (None, Some(float)) if float.fract() != 0.0 => {
                Err(format!("{name} must be an integer, got float {float}"))
            }
            (None, float) => {
                let whole = float.and_then(|float| format!("{float:.0}").parse().ok());
                whole.map(Some).ok_or_else(|| format!("{name} value {number} overflows int64"))
            }
        },
        Value::String(text) => text.parse().map(Some).map_err(|_| {
            format!(
                "invalid integer format for {name} parameter: strconv.ParseInt: parsing {}: invalid syntax",
                Value::String(text.clone())
            )
        }),
        Value::Bool(_) => Err(format!("unsupported type bool for {name} parameter")),
        Value::Null => Err(format!("unsupported type <nil> for {name} parameter")),
        Value::Array(_) => Err(format!("unsupported type []interface {{}} for {name} parameter")),
        Value::Object(_) => Err(format!("unsupported type map[string]interface {{}} for {name} parameter")),
    }
}

/// The page that a call asked for.
pub(super) fn page(asked: &Asked<'_>, paging: Paging, bytes: &[u8], answer: &Answer) -> Said {
    let name = Spot { workspace: "", given: asked.path() }.name();
    match asked.window() {
        Some(Window::Lines { .. }) if is_binary(bytes) => Said::error(BINARY.to_owned()),
        Some(Window::Lines { start, most }) => Said::told(by_lines(&name, paging, start, most, bytes)),
        Some(Window::Bytes { offset, .. }) => {
            let total = answer.json.get("size").and_then(Value::as_u64).unwrap_or_default();
            Said::told(by_bytes(&name, offset, total, bytes))
        }
        None => Said::told(as_origin_text(bytes)),
    }
}

fn by_bytes(name: &str, offset: u64, total: u64, bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "[END OF FILE - no content at this offset]".to_owned();
    }
    let end = offset + bytes.len() as u64;
    let note = if end < total {
        format!("[TRUNCATED - file has more content. Call read_file again with offset={end} to continue.]")
    } else {
        "[END OF FILE - no further content.]".to_owned()
    };
    let header = format!("[file: {name} | total: {total} bytes | read: bytes {offset}-{}]", end - 1);
    format!("{header}\n{note}\n\n{}", as_origin_text(bytes))
}

/// Where a page of lines ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    OfFile,
    Asked,
    Budget,
    InsideLine,
}

fn by_lines(name: &str, paging: Paging, start: u64, most: Option<u64>, bytes: &[u8]) -> String {
    let skipped = usize::try_from(start - 1).unwrap_or(usize::MAX);
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').skip(skipped);
    let (mut shown, mut count, mut file_bytes) = (Vec::new(), 0_u64, 0_u64);
    let end = loop {
        if most == Some(count) {
            break if lines.next().is_some() { End::Asked } else { End::OfFile };
        }
        let Some(line) = lines.next() else { break End::OfFile };
        let prefix = format!("{}|", start + count);
        let room = paging.bytes_max.saturating_sub((shown.len() + prefix.len()) as u64);
        if room == 0 {
            break End::Budget;
        }
        let taken = line.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        shown.extend_from_slice(prefix.as_bytes());
        shown.extend_from_slice(&line[..taken]);
        file_bytes += taken as u64;
        count += 1;
        if taken < line.len() {
            break End::InsideLine;
        }
    };
    if count == 0 {
        return format!("[END OF FILE - no content at or after start_line={start}]");
    }
    let (next, last) = (start + count, start + count - 1);
    let again = match most {
        Some(most) => format!("Call read_file again with start_line={next} and max_lines={most} to continue"),
        None => format!("Call read_file again with start_line={next} to continue"),
    };
    let note = match end {
        End::OfFile => "[END OF FILE - no further content.]".to_owned(),
        End::Asked => format!("[PARTIAL - more content remains. {again}.]"),
        End::Budget => format!("[TRUNCATED - byte budget reached. {again} at the next line.]"),
        End::InsideLine => format!(
            "[TRUNCATED - line {last} exceeded the {} byte read budget and was cut mid-line.]",
            paging.bytes_max
        ),
    };
    let header = format!(
        "[file: {name} | read: lines {start}-{last} (1-indexed) | file_bytes: {file_bytes} | output_bytes: {}]",
        shown.len()
    );
    format!("{header}\n{note}\n\n{}", as_origin_text(&shown))
}

/// Whether the start of a file looks like anything but text.
fn is_binary(bytes: &[u8]) -> bool {
    let sample = &bytes[..bytes.len().min(SAMPLE_BYTES)];
    if sample.contains(&0) {
        return true;
    }
    // A character may be cut by the end of the sample.
    let text = match std::str::from_utf8(sample) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && sample.len() == SAMPLE_BYTES,
    };
    let is_control = |byte: &&u8| **byte < 0x20 && !matches!(**byte, b'\n' | b'\r' | b'\t' | 0x0c | 0x08);
    !text || sample.iter().filter(is_control).count() * CONTROL_SHARE > sample.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paging(unit: Unit, bytes_max: u64) -> Paging {
        Paging { unit, bytes_max }
    }

    #[test]
    fn windows_are_read_in_the_origin_s_words() {
        let read = |arguments: Value, unit: Unit| {
            let arguments = arguments.as_object().cloned().unwrap();
            Window::read(&arguments, paging(unit, 100))
        };
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        for (arguments, expected) in [
            (r#"{"offset": -1}"#, "offset must be >= 0"),
            (r#"{"length": 0}"#, "length must be > 0"),
            (r#"{"offset": 1.5}"#, "offset must be an integer, got float 1.5"),
            (r#"{"offset": true}"#, "unsupported type bool for offset parameter"),
        ] {
            assert_eq!(read(json(arguments), Unit::Bytes), Err(expected.to_owned()));
        }
        assert_eq!(
            read(json(r#"{"offset": "3", "length": 500}"#), Unit::Bytes),
            Ok(Window::Bytes { offset: 3, length: 100 })
        );
        assert_eq!(
            read(json(r#"{"start_line": 2.0, "max_lines": null}"#), Unit::Lines).map_err(|_| ()),
            Ok(Window::Lines { start: 2, most: None })
        );
        assert!(read(json(r#"{"limit": 1}"#), Unit::Lines).is_err());
    }

    #[test]
    fn lines_are_numbered_within_the_budget() {
        let shown = |most, max, bytes: &[u8]| by_lines("f", paging(Unit::Lines, max), 1, most, bytes);
        let page = shown(None, 10, b"1234567\nsecond line\n");
        assert!(
            page.contains("file_bytes: 8 | output_bytes: 10") && page.contains("start_line=2 "),
            "{page}"
        );
        let page = shown(None, 6, b"abcdefgh\n");
        assert!(
            page.contains("line 1 exceeded the 6 byte read budget") && page.ends_with("1|abcd"),
            "{page}"
        );
        assert!(shown(Some(1), 99, b"a\nb\n").contains("start_line=2 and max_lines=1"));
        assert!(shown(Some(2), 99, b"a\nb\n").contains("END OF FILE"));
        assert_eq!(
            by_lines("f", paging(Unit::Lines, 9), 9, None, b"a"),
            "[END OF FILE - no content at or after start_line=9]"
        );
    }

    #[test]
    fn binary_is_told_from_text() {
        assert!(is_binary(b"a\0") && is_binary(b"\xff\xfe") && is_binary(b"\x01\x02abc"));
        assert!(!is_binary(b"") && !is_binary("äöü\r\n\t".as_bytes()));
    }
}
