//! Character encodings: names, detection, strict decoding and strict encoding.
//!
//! If [`detect_encoding`] finds text, [`decode`] and then [`encode`] give back the same bytes. A character that cannot
//! be decoded or encoded causes an error and is never replaced by another character. Decoding removes the byte-order
//! mark of the encoding, and encoding adds it again.

mod detect;
mod stream;

use std::borrow::Cow;

use encoding_rs::EncoderResult;

pub use detect::{detect_encoding, starts_like_binary};
pub use stream::{ChunkFinality, TextStreamDecoder, detect_from_prefix};

const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";
const UTF16LE_BOM: &[u8] = b"\xff\xfe";
const UTF16BE_BOM: &[u8] = b"\xfe\xff";

/// The number of bytes that are enough for one encoded character with its escape sequences in any WHATWG encoding.
const CHARACTER_BUFFER_BYTES: usize = 16;

/// A character encoding, together with the presence of a byte-order mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    Utf8,
    Utf8Bom,
    Utf16Le,
    Utf16LeBom,
    Utf16Be,
    Utf16BeBom,
    /// The text is in an encoding older than Unicode, such as `windows-1252`.
    Legacy(LegacyEncoding),
}

/// An encoding older than Unicode from the WHATWG encoding standard. A legacy encoding can be both decoded and encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LegacyEncoding(&'static encoding_rs::Encoding);

/// The error for bytes that are not valid in the expected encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not valid {}", encoding.name())]
pub struct TextDecodeError {
    pub encoding: Encoding,
}

/// The error for a character that the target encoding cannot represent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the character {} (U+{:04X}) cannot be written in {}", character.escape_default(), u32::from(*character), encoding.name())]
pub struct TextEncodeError {
    /// The first character that the encoding cannot represent.
    pub character: char,
    pub encoding: Encoding,
}

impl Encoding {
    /// Returns the name of the encoding in replies to callers; [`Encoding::parse`] accepts this name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf8Bom => "utf-8-bom",
            Self::Utf16Le => "utf-16le",
            Self::Utf16LeBom => "utf-16le-bom",
            Self::Utf16Be => "utf-16be",
            Self::Utf16BeBom => "utf-16be-bom",
            Self::Legacy(legacy) => legacy.0.name(),
        }
    }

    /// Parses the name of an encoding, ignoring case. For a legacy encoding, every label of the WHATWG encoding
    /// standard is accepted. The name `utf-16` means little-endian UTF-16 with a byte-order mark, because most programs
    /// write that form.
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        match name.as_str() {
            "utf-8" | "utf8" => Some(Self::Utf8),
            "utf-8-bom" | "utf8-bom" | "utf-8-sig" => Some(Self::Utf8Bom),
            "utf-16le" => Some(Self::Utf16Le),
            "utf-16" | "utf-16le-bom" => Some(Self::Utf16LeBom),
            "utf-16be" => Some(Self::Utf16Be),
            "utf-16be-bom" => Some(Self::Utf16BeBom),
            label => {
                let known = encoding_rs::Encoding::for_label_no_replacement(label.as_bytes())?;
                LegacyEncoding::new(known).map(Self::Legacy)
            }
        }
    }

    fn without_mark(self) -> &'static encoding_rs::Encoding {
        match self {
            Self::Utf8 | Self::Utf8Bom => encoding_rs::UTF_8,
            Self::Utf16Le | Self::Utf16LeBom => encoding_rs::UTF_16LE,
            Self::Utf16Be | Self::Utf16BeBom => encoding_rs::UTF_16BE,
            Self::Legacy(LegacyEncoding(encoding)) => encoding,
        }
    }

    /// Returns the byte-order mark of the encoding, or no bytes if the encoding has none.
    pub fn byte_order_mark(self) -> &'static [u8] {
        match self {
            Self::Utf8Bom => UTF8_BOM,
            Self::Utf16LeBom => UTF16LE_BOM,
            Self::Utf16BeBom => UTF16BE_BOM,
            Self::Utf8 | Self::Utf16Le | Self::Utf16Be | Self::Legacy(_) => b"",
        }
    }
}

/// Decodes `bytes` to text without the byte-order mark. Decoding fails if a byte sequence is invalid or the byte-order
/// mark of the encoding is missing.
pub fn decode(bytes: &[u8], encoding: Encoding) -> Result<Cow<'_, str>, TextDecodeError> {
    let body = bytes.strip_prefix(encoding.byte_order_mark());
    let text = body.and_then(|body| encoding.without_mark().decode_without_bom_handling_and_without_replacement(body));
    text.ok_or(TextDecodeError { encoding })
}

/// Decodes `bytes` in their detected encoding; `None` if the bytes are not text.
pub fn decode_detected(bytes: &[u8]) -> Option<Cow<'_, str>> {
    decode(bytes, detect_encoding(bytes)?).ok()
}

/// Encodes `text` after the byte-order mark of the encoding. Encoding fails if a character would not decode to the same
/// character again.
pub fn encode(text: &str, encoding: Encoding) -> Result<Vec<u8>, TextEncodeError> {
    let mark = encoding.byte_order_mark();
    match encoding {
        Encoding::Utf8 | Encoding::Utf8Bom => Ok([mark, text.as_bytes()].concat()),
        Encoding::Utf16Le | Encoding::Utf16LeBom => Ok(encode_utf16(text, mark, u16::to_le_bytes)),
        Encoding::Utf16Be | Encoding::Utf16BeBom => Ok(encode_utf16(text, mark, u16::to_be_bytes)),
        Encoding::Legacy(legacy) => legacy.encode(text).map_err(|character| TextEncodeError { character, encoding }),
    }
}

fn encode_utf16(text: &str, mark: &[u8], to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(mark.len() + text.len() * 2);
    bytes.extend_from_slice(mark);
    for unit in text.encode_utf16() {
        bytes.extend_from_slice(&to_bytes(unit));
    }
    bytes
}

impl LegacyEncoding {
    /// Creates a legacy encoding; `None` if the encoding is Unicode or cannot be written.
    fn new(encoding: &'static encoding_rs::Encoding) -> Option<Self> {
        let is_writable = encoding.output_encoding() == encoding;
        (is_writable && encoding != encoding_rs::UTF_8).then_some(Self(encoding))
    }

    /// Encodes the text, or returns the first character that would not decode to itself.
    fn encode(self, text: &str) -> Result<Vec<u8>, char> {
        let mut encoder = self.0.new_encoder();
        let room = encoder.max_buffer_length_from_utf8_without_replacement(text.len());
        let mut bytes = Vec::with_capacity(room.unwrap_or(text.len()));
        let mut rest = text;
        loop {
            let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut bytes, true);
            rest = rest.get(read..).unwrap_or_default();
            match result {
                EncoderResult::InputEmpty => break,
                EncoderResult::OutputFull => bytes.reserve(rest.len() + CHARACTER_BUFFER_BYTES),
                EncoderResult::Unmappable(character) => return Err(character),
            }
        }
        match self.0.decode_without_bom_handling_and_without_replacement(&bytes) {
            Some(back) if back == text => Ok(bytes),
            Some(back) => Err(first_differing_character(text, &back)),
            None => Err(first_differing_character(text, "")),
        }
    }
}

fn first_differing_character(text: &str, back: &str) -> char {
    let mut back = back.chars();
    text.chars().find(|&c| back.next() != Some(c)).unwrap_or(char::REPLACEMENT_CHARACTER)
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
    fn every_encoding_name_parses_back() {
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
            assert!(bytes.starts_with(encoding.byte_order_mark()));
            assert_eq!(decode(&bytes, encoding).unwrap(), text, "{}", encoding.name());
        }
    }

    #[test]
    fn malformed_bytes_are_rejected() {
        for (bytes, encoding) in [
            (&b"a\xff"[..], Encoding::Utf8),
            (b"no mark", Encoding::Utf8Bom),
            (b"\xff\xfea\0b", Encoding::Utf16LeBom),
            (b"\x00\xd8a\0", Encoding::Utf16Le),
            (b"\xff\xfea\0", Encoding::Utf16BeBom),
            (b"\x81", Encoding::parse("shift_jis").unwrap()),
        ] {
            assert_eq!(decode(bytes, encoding), Err(TextDecodeError { encoding }));
        }
    }

    #[test]
    fn unencodable_characters_are_rejected() {
        let encoding = Encoding::parse("windows-1252").unwrap();
        assert_eq!(encode("né €", encoding).unwrap(), b"n\xe9 \x80");
        assert_eq!(encode("né漢", encoding), Err(TextEncodeError { character: '漢', encoding }));
        let message = TextEncodeError { character: '\u{202e}', encoding }.to_string();
        assert_eq!(message, "the character \\u{202e} (U+202E) cannot be written in windows-1252");
    }

    #[test]
    fn characters_that_do_not_round_trip_are_rejected() {
        // Shift_JIS encodes the yen sign as a byte that decodes to a backslash.
        let encoding = Encoding::parse("shift_jis").unwrap();
        assert_eq!(encode("漢¥", encoding), Err(TextEncodeError { character: '¥', encoding }));
    }
}
