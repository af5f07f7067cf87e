//! Character encodings: names, detection, strict decoding and strict encoding.
//!
//! Owns the answer to "is this text, and in which encoding". Promises that what [`detect()`] calls text comes back
//! byte for byte from [`decode`] then [`encode`]; bytes that would not are called binary. Never replaces what it
//! cannot read or write with a substitute character, and never drops or invents a byte-order mark.

mod detect;
mod legacy;
mod stream;

use std::borrow::Cow;

pub use detect::{Detected, begins_binary, detect};
pub use legacy::Legacy;
pub use stream::{Part, Stream, detect_first};

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const UTF16LE_MARK: &[u8] = b"\xff\xfe";
const UTF16BE_MARK: &[u8] = b"\xfe\xff";

/// A character encoding, together with whether a byte-order mark stands in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// UTF-8 without a mark.
    Utf8,
    /// UTF-8 behind a byte-order mark.
    Utf8Bom,
    /// Little-endian UTF-16 without a mark.
    Utf16Le,
    /// Little-endian UTF-16 behind a byte-order mark.
    Utf16LeBom,
    /// Big-endian UTF-16 without a mark.
    Utf16Be,
    /// Big-endian UTF-16 behind a byte-order mark.
    Utf16BeBom,
    /// Anything older.
    Legacy(Legacy),
}

/// The bytes are not text in the encoding they were said to be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not valid {}", encoding.name())]
pub struct Malformed {
    /// The encoding that was tried.
    pub encoding: Encoding,
}

/// A character has no place in the encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the character {} (U+{:04X}) cannot be written in {}", character.escape_default(), u32::from(*character), encoding.name())]
pub struct Unencodable {
    /// The first character that cannot be written.
    pub character: char,
    /// The encoding that was tried.
    pub encoding: Encoding,
}

impl Encoding {
    /// The name shown to callers; [`Encoding::parse`] reads it back.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf8Bom => "utf-8-bom",
            Self::Utf16Le => "utf-16le",
            Self::Utf16LeBom => "utf-16le-bom",
            Self::Utf16Be => "utf-16be",
            Self::Utf16BeBom => "utf-16be-bom",
            Self::Legacy(legacy) => legacy.name(),
        }
    }

    /// The encoding of that name, in any case; for older encodings any label of the WHATWG encoding standard.
    ///
    /// A bare `utf-16` is little-endian with a mark, as most programs write it.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        match name.as_str() {
            "utf-8" | "utf8" => Some(Self::Utf8),
            "utf-8-bom" | "utf8-bom" | "utf-8-sig" => Some(Self::Utf8Bom),
            "utf-16le" => Some(Self::Utf16Le),
            "utf-16" | "utf-16le-bom" => Some(Self::Utf16LeBom),
            "utf-16be" => Some(Self::Utf16Be),
            "utf-16be-bom" => Some(Self::Utf16BeBom),
            label => Legacy::parse(label).map(Self::Legacy),
        }
    }

    /// The byte-order mark that belongs in front of text in this encoding.
    #[must_use]
    pub fn mark(self) -> &'static [u8] {
        match self {
            Self::Utf8Bom => UTF8_MARK,
            Self::Utf16LeBom => UTF16LE_MARK,
            Self::Utf16BeBom => UTF16BE_MARK,
            Self::Utf8 | Self::Utf16Le | Self::Utf16Be | Self::Legacy(_) => b"",
        }
    }
}

/// The text in `bytes`, without the byte-order mark.
///
/// # Errors
///
/// [`Malformed`] when a sequence is not valid, or when the mark that the encoding calls for is missing.
pub fn decode(bytes: &[u8], encoding: Encoding) -> Result<Cow<'_, str>, Malformed> {
    let body = bytes.strip_prefix(encoding.mark());
    let text = body.and_then(|body| match encoding {
        Encoding::Utf8 | Encoding::Utf8Bom => std::str::from_utf8(body).ok().map(Cow::Borrowed),
        Encoding::Utf16Le | Encoding::Utf16LeBom => strict(body, encoding_rs::UTF_16LE),
        Encoding::Utf16Be | Encoding::Utf16BeBom => strict(body, encoding_rs::UTF_16BE),
        Encoding::Legacy(legacy) => strict(body, legacy.inner()),
    });
    text.ok_or(Malformed { encoding })
}

fn strict<'a>(body: &'a [u8], encoding: &'static encoding_rs::Encoding) -> Option<Cow<'a, str>> {
    encoding.decode_without_bom_handling_and_without_replacement(body)
}

/// The bytes of `text`, with the byte-order mark that the encoding calls for. Decoding them gives `text` again.
///
/// # Errors
///
/// [`Unencodable`] when a character cannot be written, or would not be read back as itself.
pub fn encode(text: &str, encoding: Encoding) -> Result<Vec<u8>, Unencodable> {
    match encoding {
        Encoding::Utf8 => Ok(text.as_bytes().to_vec()),
        Encoding::Utf8Bom => Ok([UTF8_MARK, text.as_bytes()].concat()),
        Encoding::Utf16Le | Encoding::Utf16LeBom => Ok(utf16(text, encoding.mark(), u16::to_le_bytes)),
        Encoding::Utf16Be | Encoding::Utf16BeBom => Ok(utf16(text, encoding.mark(), u16::to_be_bytes)),
        Encoding::Legacy(legacy) => {
            legacy.encode(text).map_err(|character| Unencodable { character, encoding })
        }
    }
}

fn utf16(text: &str, mark: &[u8], to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(mark.len() + text.len() * 2);
    bytes.extend_from_slice(mark);
    for unit in text.encode_utf16() {
        bytes.extend_from_slice(&to_bytes(unit));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNICODE: [Encoding; 6] = [
        Encoding::Utf8,
        Encoding::Utf8Bom,
        Encoding::Utf16Le,
        Encoding::Utf16LeBom,
        Encoding::Utf16Be,
        Encoding::Utf16BeBom,
    ];

    #[test]
    fn every_name_is_read_back() {
        let older = ["windows-1252", "shift_jis", "gb18030", "koi8-r", "big5", "x-user-defined"];
        for name in UNICODE.map(Encoding::name).into_iter().chain(older) {
            let encoding = Encoding::parse(name).unwrap();
            assert_eq!(Encoding::parse(encoding.name()), Some(encoding), "{name}");
        }
        assert_eq!(Encoding::parse("latin1").map(Encoding::name), Some("windows-1252"));
        assert_eq!(Encoding::parse("UTF-8"), Some(Encoding::Utf8));
        assert_eq!(Encoding::parse("replacement"), None);
        assert_eq!(Encoding::parse("hz-gb-2312"), None);
        assert_eq!(Encoding::parse("unicode"), None);
        assert_eq!(Encoding::parse("nonsense"), None);
    }

    #[test]
    fn unicode_text_survives_every_unicode_encoding() {
        let text = "\u{feff}aé漢😀\r\n\0";
        for encoding in UNICODE {
            let bytes = encode(text, encoding).unwrap();
            assert!(bytes.starts_with(encoding.mark()));
            assert_eq!(decode(&bytes, encoding).unwrap(), text, "{}", encoding.name());
        }
    }

    #[test]
    fn malformed_bytes_are_refused() {
        for (bytes, encoding) in [
            (&b"a\xff"[..], Encoding::Utf8),
            (b"no mark", Encoding::Utf8Bom),
            (b"\xff\xfea\0b", Encoding::Utf16LeBom),
            (b"\x00\xd8a\0", Encoding::Utf16Le),
            (b"\xff\xfea\0", Encoding::Utf16BeBom),
            (b"\x81", Encoding::parse("shift_jis").unwrap()),
        ] {
            assert_eq!(decode(bytes, encoding), Err(Malformed { encoding }));
        }
    }

    #[test]
    fn what_an_encoding_cannot_hold_is_refused() {
        let encoding = Encoding::parse("windows-1252").unwrap();
        assert_eq!(encode("né €", encoding).unwrap(), b"n\xe9 \x80");
        assert_eq!(encode("né漢", encoding), Err(Unencodable { character: '漢', encoding }));
        let message = Unencodable { character: '\u{202e}', encoding }.to_string();
        assert_eq!(message, "the character \\u{202e} (U+202E) cannot be written in windows-1252");
    }

    #[test]
    fn a_character_that_would_come_back_as_another_is_refused() {
        // Shift_JIS writes the yen sign as the byte that reads back as a backslash.
        let encoding = Encoding::parse("shift_jis").unwrap();
        assert_eq!(encode("漢¥", encoding), Err(Unencodable { character: '¥', encoding }));
    }
}
