//! From the content of a call to the bytes of a file. Owns the rule that a file keeps its encoding unless the caller
//! names another one. Strict both ways: nothing is replaced by a substitute character.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use text::{
    encoding::{self, Detected, Encoding},
    lines,
};

use super::answer::excerpt;
use crate::{
    failure::{Failure, Kind},
    limits,
};

/// The name of the encoding that carries any bytes.
const BASE64: &str = "base64";

/// Whether what is named carries any bytes, text or not.
pub(crate) fn carries_bytes(name: &str) -> bool {
    name.eq_ignore_ascii_case(BASE64)
}

/// The bytes of a content, and how they were made.
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    /// The text encoding when it is not plain UTF-8; callers are told.
    pub(crate) unusual: Option<&'static str>,
}

/// The bytes of a whole file: in the encoding asked for, else in the one the file has now, else in UTF-8.
pub(crate) fn whole(content: &str, asked: Option<&str>, current: Option<&[u8]>) -> Result<Encoded, Failure> {
    let bytes = match asked {
        Some(name) if carries_bytes(name) => Encoded { bytes: from_base64(content)?, unusual: None },
        Some(name) => in_encoding(content, parse(name)?)?,
        None => in_encoding(content, current.map_or(Encoding::Utf8, kept))?,
    };
    fits(bytes.bytes.len() as u64)?;
    Ok(bytes)
}

/// The bytes of a text in the encoding of these.
pub(crate) fn encode_like(text: &str, current: &[u8]) -> Result<Vec<u8>, Failure> {
    Ok(whole(text, None, Some(current))?.bytes)
}

/// The bytes to put behind those that a file has now, in the same encoding.
pub(crate) fn tail(content: &str, current: &[u8]) -> Result<Encoded, Failure> {
    let encoding = kept(current);
    let mut encoded = in_encoding(content, encoding)?;
    // The mark stands once, at the start of the file.
    if !encoding.mark().is_empty() {
        encoded.bytes.drain(..encoding.mark().len());
    }
    fits(current.len() as u64 + encoded.bytes.len() as u64)?;
    Ok(encoded)
}

/// A content in the form of the text it replaces: CRLF where that has nothing else, LF otherwise. The byte order mark
/// is part of the encoding, which the file keeps anyway.
pub(crate) fn formed_as(content: &str, current: &[u8]) -> String {
    let plain = content.strip_prefix('\u{feff}').unwrap_or(content).replace("\r\n", "\n");
    let before = match encoding::detect(current) {
        Detected::Text { encoding } => encoding::decode(current, encoding).unwrap_or_default(),
        Detected::Binary => Cow::Borrowed(""),
    };
    let endings = lines::endings(before.as_bytes());
    if endings.crlf > 0 && endings.lf == 0 { plain.replace('\n', "\r\n") } else { plain }
}

/// A content with the line endings of the text it replaces, where it has none of its own but LF.
pub(crate) fn lines_as<'c>(content: &'c str, current: &[u8]) -> Cow<'c, str> {
    match encoding::detect(current) {
        Detected::Text { encoding } => {
            text::endings::alike(content, &encoding::decode(current, encoding).unwrap_or_default())
        }
        Detected::Binary => Cow::Borrowed(content),
    }
}

/// The encoding that a file has and keeps. What is not text has none; text put there is UTF-8.
fn kept(current: &[u8]) -> Encoding {
    match encoding::detect(current) {
        Detected::Text { encoding } => encoding,
        Detected::Binary => Encoding::Utf8,
    }
}

fn in_encoding(content: &str, encoding: Encoding) -> Result<Encoded, Failure> {
    // A caller that gives the mark as a character means the mark, not a second one behind it.
    let text = match encoding.mark() {
        b"" => content,
        _ => content.strip_prefix('\u{feff}').unwrap_or(content),
    };
    let bytes = encoding::encode(text, encoding).map_err(|error| {
        Failure::new(Kind::NotText, error.to_string())
            .hint("drop the character, or write the whole file with encoding \"utf-8\"")
            .fact("encoding", encoding.name())
    })?;
    let unusual = (encoding != Encoding::Utf8).then(|| encoding.name());
    Ok(Encoded { bytes, unusual })
}

fn parse(name: &str) -> Result<Encoding, Failure> {
    Encoding::parse(name).ok_or_else(|| {
        Failure::new(Kind::BadRequest, format!("'{}' is not an encoding that can be written", excerpt(name)))
            .hint("use utf-8, base64, utf-16le, utf-16be or a name such as windows-1252")
    })
}

fn from_base64(content: &str) -> Result<Vec<u8>, Failure> {
    STANDARD.decode(content.trim_end()).map_err(|error| {
        Failure::new(Kind::BadRequest, format!("the content is not base64: {error}"))
            .hint("use the standard alphabet with padding and no line breaks")
    })
}

fn fits(size: u64) -> Result<(), Failure> {
    if size <= limits::WRITE_BYTES_MAX {
        return Ok(());
    }
    Err(Failure::new(
        Kind::TooLarge,
        format!("{size} bytes are more than {} in one file", limits::WRITE_BYTES_MAX),
    )
    .hint("split the content over several files")
    .fact("limit_bytes", limits::WRITE_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(content: &str, asked: Option<&str>, current: Option<&[u8]>) -> Result<Vec<u8>, Kind> {
        whole(content, asked, current).map(|encoded| encoded.bytes).map_err(|failure| failure.kind)
    }

    #[test]
    fn the_encoding_asked_for_wins() {
        assert_eq!(bytes("é", None, None), Ok("é".as_bytes().to_vec()));
        assert_eq!(bytes("é", Some("utf-16le"), None), Ok(b"\xe9\0".to_vec()));
        assert_eq!(bytes("AP8=", Some("base64"), None), Ok(vec![0, 255]));
        assert_eq!(bytes("é", Some("utf-8"), Some(b"\xff\xfea\0")), Ok("é".as_bytes().to_vec()));
        assert_eq!(bytes("漢", Some("latin1"), None), Err(Kind::NotText));
        assert_eq!(bytes("x", Some("klingon"), None), Err(Kind::BadRequest));
        assert_eq!(bytes("a?", Some("base64"), None), Err(Kind::BadRequest));
    }

    #[test]
    fn a_file_keeps_its_encoding() {
        assert_eq!(bytes("é", None, Some(b"\xff\xfea\0")), Ok(b"\xff\xfe\xe9\0".to_vec()));
        assert_eq!(bytes("\u{feff}é", None, Some(b"\xff\xfea\0")), Ok(b"\xff\xfe\xe9\0".to_vec()));
        assert_eq!(bytes("x", None, Some(b"\xef\xbb\xbfa")), Ok(b"\xef\xbb\xbfx".to_vec()));
        assert_eq!(bytes("x", None, Some(b"\0\x01\x02")), Ok(b"x".to_vec()));
    }

    #[test]
    fn text_takes_the_form_of_what_it_replaces() {
        for (content, current, expected) in [
            ("a\nb\n", "x\r\ny\r\n", "a\r\nb\r\n"),
            ("a\r\nb\n", "x\r\ny\r\n", "a\r\nb\r\n"),
            ("a\r\nb\r\n", "x\ny\n", "a\nb\n"),
            ("a\r\nb\r\n", "x\ny\r\n", "a\nb\n"),
            ("a\r\n", "", "a\n"),
            ("\u{feff}a\rb", "x", "a\rb"),
        ] {
            assert_eq!(formed_as(content, current.as_bytes()), expected, "{content:?} {current:?}");
        }
    }

    #[test]
    fn the_mark_is_not_repeated_at_the_end() {
        let added = tail("é", b"\xff\xfea\0").unwrap();
        assert_eq!((added.bytes.as_slice(), added.unusual), (b"\xe9\0".as_slice(), Some("utf-16le-bom")));
        assert_eq!(tail("é", b"").unwrap().bytes, "é".as_bytes());
    }
}
