//! Encodes the content that a call writes as the bytes of a file. A file keeps its encoding unless the caller names
//! another encoding. A character that cannot be encoded is an error and is never replaced.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use stead_text::{
    encoding::{self, Encoding},
    lines,
};

use super::text_pages::shorten_for_error;
use crate::{
    errors::{Error, ErrorKind},
    limits,
};

const BASE64: &str = "base64";

pub(crate) fn is_base64(name: &str) -> bool {
    name.eq_ignore_ascii_case(BASE64)
}

pub(crate) struct EncodedBytesToWrite {
    pub(crate) bytes: Vec<u8>,
    /// The name of the file's encoding; `None` for UTF-8 without a byte order mark.
    pub(crate) non_utf8_encoding: Option<&'static str>,
}

pub(crate) fn encode_file(
    content: &str,
    requested: Option<&str>,
    current: Option<&[u8]>,
) -> Result<EncodedBytesToWrite, Error> {
    let encoded = match requested {
        Some(name) if is_base64(name) => {
            EncodedBytesToWrite { bytes: decode_base64(content)?, non_utf8_encoding: None }
        }
        Some(name) => encode_in(content, parse_encoding(name)?)?,
        None => encode_in(content, current.map_or(Encoding::Utf8, existing_encoding))?,
    };
    check_size(encoded.bytes.len() as u64)?;
    Ok(encoded)
}

pub(crate) fn encode_like(text: &str, current: &[u8]) -> Result<Vec<u8>, Error> {
    Ok(encode_file(text, None, Some(current))?.bytes)
}

pub(crate) fn encode_appended(content: &str, current: &[u8]) -> Result<EncodedBytesToWrite, Error> {
    let encoding = existing_encoding(current);
    let mut encoded = encode_in(content, encoding)?;
    // A byte order mark belongs only at the start of the file.
    if !encoding.byte_order_mark().is_empty() {
        encoded.bytes.drain(..encoding.byte_order_mark().len());
    }
    check_size(current.len() as u64 + encoded.bytes.len() as u64)?;
    Ok(encoded)
}

/// Converts the line endings of content: to CRLF if the replaced text has only CRLF, otherwise to LF.
pub(crate) fn match_format(content: &str, current: &[u8]) -> String {
    let plain = content.strip_prefix('\u{feff}').unwrap_or(content).replace("\r\n", "\n");
    let before = encoding::decode_detected(current).unwrap_or_default();
    let endings = lines::count_endings(before.as_bytes());
    if endings.crlf > 0 && endings.lf == 0 { plain.replace('\n', "\r\n") } else { plain }
}

/// Converts content that has only LF line endings to CRLF if the replaced text has only CRLF.
pub(crate) fn match_line_endings<'c>(content: &'c str, current: &[u8]) -> Cow<'c, str> {
    lines::adopt_line_endings(content, &encoding::decode_detected(current).unwrap_or_default())
}

fn existing_encoding(current: &[u8]) -> Encoding {
    encoding::detect_encoding(current).unwrap_or(Encoding::Utf8)
}

fn encode_in(content: &str, encoding: Encoding) -> Result<EncodedBytesToWrite, Error> {
    // A byte order mark in the content is removed, because the encoding adds one.
    let text = match encoding.byte_order_mark() {
        b"" => content,
        _ => content.strip_prefix('\u{feff}').unwrap_or(content),
    };
    let bytes = encoding::encode(text, encoding).map_err(|error| {
        Error::new(ErrorKind::NotText, error.to_string())
            .with_next_step("remove that character, or write the whole file with encoding \"utf-8\"")
            .with_encoding(encoding.name())
    })?;
    let non_utf8_encoding = (encoding != Encoding::Utf8).then(|| encoding.name());
    Ok(EncodedBytesToWrite { bytes, non_utf8_encoding })
}

fn parse_encoding(name: &str) -> Result<Encoding, Error> {
    Encoding::parse(name).ok_or_else(|| {
        Error::new(ErrorKind::BadRequest, format!("unsupported encoding '{}'", shorten_for_error(name)))
            .with_next_step("pass utf-8, base64, utf-16le, utf-16be or a name such as windows-1252")
    })
}

fn decode_base64(content: &str) -> Result<Vec<u8>, Error> {
    STANDARD.decode(content.trim_end()).map_err(|error| {
        Error::new(ErrorKind::BadRequest, format!("the content is not base64: {error}"))
            .with_next_step("encode with the standard alphabet, with padding and without line breaks")
    })
}

fn check_size(size: u64) -> Result<(), Error> {
    if size <= limits::WRITE_BYTES_MAX {
        return Ok(());
    }
    let limit = limits::WRITE_BYTES_MAX;
    Err(Error::new(ErrorKind::TooLarge, format!("the file would have {size} bytes; the limit is {limit}"))
        .with_next_step("split the content over several files")
        .with_limit_bytes(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded_bytes(content: &str, requested: Option<&str>, current: Option<&[u8]>) -> Result<Vec<u8>, ErrorKind> {
        encode_file(content, requested, current).map(|encoded| encoded.bytes).map_err(|error| error.kind)
    }

    #[test]
    fn requested_encoding_takes_precedence() {
        assert_eq!(encoded_bytes("é", None, None), Ok("é".as_bytes().to_vec()));
        assert_eq!(encoded_bytes("é", Some("utf-16le"), None), Ok(b"\xe9\0".to_vec()));
        assert_eq!(encoded_bytes("AP8=", Some("base64"), None), Ok(vec![0, 255]));
        assert_eq!(encoded_bytes("é", Some("utf-8"), Some(b"\xff\xfea\0")), Ok("é".as_bytes().to_vec()));
        assert_eq!(encoded_bytes("漢", Some("latin1"), None), Err(ErrorKind::NotText));
        assert_eq!(encoded_bytes("x", Some("klingon"), None), Err(ErrorKind::BadRequest));
        assert_eq!(encoded_bytes("a?", Some("base64"), None), Err(ErrorKind::BadRequest));
    }

    #[test]
    fn existing_encoding_is_preserved() {
        assert_eq!(encoded_bytes("é", None, Some(b"\xff\xfea\0")), Ok(b"\xff\xfe\xe9\0".to_vec()));
        assert_eq!(encoded_bytes("\u{feff}é", None, Some(b"\xff\xfea\0")), Ok(b"\xff\xfe\xe9\0".to_vec()));
        assert_eq!(encoded_bytes("x", None, Some(b"\xef\xbb\xbfa")), Ok(b"\xef\xbb\xbfx".to_vec()));
        assert_eq!(encoded_bytes("x", None, Some(b"\0\x01\x02")), Ok(b"x".to_vec()));
    }

    #[test]
    fn new_text_adopts_replaced_line_endings() {
        for (content, current, expected) in [
            ("a\nb\n", "x\r\ny\r\n", "a\r\nb\r\n"),
            ("a\r\nb\n", "x\r\ny\r\n", "a\r\nb\r\n"),
            ("a\r\nb\r\n", "x\ny\n", "a\nb\n"),
            ("a\r\nb\r\n", "x\ny\r\n", "a\nb\n"),
            ("a\r\n", "", "a\n"),
            ("\u{feff}a\rb", "x", "a\rb"),
        ] {
            assert_eq!(match_format(content, current.as_bytes()), expected, "{content:?} {current:?}");
        }
    }

    #[test]
    fn appending_does_not_repeat_byte_order_mark() {
        let added = encode_appended("é", b"\xff\xfea\0").unwrap();
        assert_eq!((added.bytes.as_slice(), added.non_utf8_encoding), (b"\xe9\0".as_slice(), Some("utf-16le-bom")));
        assert_eq!(encode_appended("é", b"").unwrap().bytes, "é".as_bytes());
    }
}
