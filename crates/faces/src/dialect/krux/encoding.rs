//! Text and bytes in the encodings the document knows. Nothing is replaced: what does not fit is an error.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use engine::{Failure, Kind};

use super::asked::misfit;

/// The encodings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Ascii,
    Latin1,
    Utf16,
    Binary,
}

/// The byte order marks of utf-16.
const LOW_FIRST: [u8; 2] = [0xff, 0xfe];
const HIGH_FIRST: [u8; 2] = [0xfe, 0xff];

/// Where a piece of a file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The file goes on.
    InFile,
    /// With the file.
    OfFile,
}

/// A piece of a file as text, and how many of its bytes that is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decoded {
    pub(super) text: String,
    pub(super) bytes: usize,
}

impl Encoding {
    /// The encoding of a word that the definition lists.
    pub(super) fn named(word: Option<&str>) -> Self {
        match word {
            Some("ascii") => Encoding::Ascii,
            Some("latin-1") => Encoding::Latin1,
            Some("utf-16") => Encoding::Utf16,
            Some("binary") => Encoding::Binary,
            _ => Encoding::Utf8,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Encoding::Utf8 => "utf-8",
            Encoding::Ascii => "ascii",
            Encoding::Latin1 => "latin-1",
            Encoding::Utf16 => "utf-16",
            Encoding::Binary => "binary",
        }
    }

    fn misfit(self, what: &str) -> Failure {
        Failure::new(Kind::NotText, format!("{what} does not fit the encoding {}", self.word()))
            .fact("encoding", self.word())
    }

    /// Bytes as text. A character that the end of the piece cuts is left for the next one, unless the file ends there.
    pub(super) fn decode(self, bytes: &[u8], end: End) -> Result<Decoded, Failure> {
        let bad = || self.misfit("the content of the file");
        let whole = |text: String| Decoded { text, bytes: bytes.len() };
        match self {
            Encoding::Binary => Ok(whole(STANDARD.encode(bytes))),
            Encoding::Latin1 => Ok(whole(bytes.iter().map(|byte| char::from(*byte)).collect())),
            Encoding::Ascii if bytes.is_ascii() => Ok(whole(String::from_utf8_lossy(bytes).into_owned())),
            Encoding::Ascii => Err(bad()),
            Encoding::Utf8 => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(whole(text.to_owned())),
                Err(error) if end == End::InFile && error.error_len().is_none() => {
                    let kept = bytes.get(..error.valid_up_to()).unwrap_or_default();
                    let text = String::from_utf8_lossy(kept).into_owned();
                    Ok(Decoded { text, bytes: kept.len() })
                }
                Err(_) => Err(bad()),
            },
            Encoding::Utf16 => decode_utf16(bytes, end).ok_or_else(bad),
        }
    }

    /// Text as bytes.
    pub(super) fn encode(self, text: &str) -> Result<Vec<u8>, Failure> {
        let bad = || self.misfit("the content");
        match self {
            Encoding::Utf8 => Ok(text.as_bytes().to_vec()),
            Encoding::Ascii if text.is_ascii() => Ok(text.as_bytes().to_vec()),
            Encoding::Ascii => Err(bad()),
            Encoding::Latin1 => text.chars().map(|c| u8::try_from(u32::from(c)).map_err(|_| bad())).collect(),
            Encoding::Utf16 => {
                let units = text.encode_utf16().flat_map(u16::to_le_bytes);
                Ok(LOW_FIRST.into_iter().chain(units).collect())
            }
            Encoding::Binary => STANDARD.decode(text).map_err(|_| misfit("content", "is not base64")),
        }
    }
}

/// Without a mark the low byte comes first. A mark is no part of the text.
fn decode_utf16(bytes: &[u8], end: End) -> Option<Decoded> {
    let (rest, high_first) = match (bytes.strip_prefix(&LOW_FIRST), bytes.strip_prefix(&HIGH_FIRST)) {
        (Some(rest), _) => (rest, false),
        (None, Some(rest)) => (rest, true),
        (None, None) => (bytes, false),
    };
    let unit = |pair: &[u8]| {
        let pair = [pair.first().copied().unwrap_or_default(), pair.get(1).copied().unwrap_or_default()];
        if high_first { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
    };
    let mut units: Vec<u16> = rest.chunks_exact(2).map(unit).collect();
    if end == End::OfFile && rest.len() % 2 != 0 {
        return None;
    }
    // The first half of a character whose second is behind the end.
    if end == End::InFile && units.last().is_some_and(|last| (0xd800..0xdc00).contains(last)) {
        units.pop();
    }
    let text = String::from_utf16(&units).ok()?;
    Some(Decoded { text, bytes: bytes.len() - rest.len() + units.len() * 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(encoding: Encoding, bytes: &[u8], end: End) -> Option<(String, usize)> {
        encoding.decode(bytes, end).ok().map(|decoded| (decoded.text, decoded.bytes))
    }

    #[test]
    fn a_cut_character_waits_for_the_next_piece_and_a_broken_one_is_refused() {
        let euro = "a€".as_bytes();
        assert_eq!(decoded(Encoding::Utf8, &euro[..3], End::InFile), Some(("a".to_owned(), 1)));
        assert_eq!(decoded(Encoding::Utf8, &euro[..3], End::OfFile), None);
        assert_eq!(decoded(Encoding::Utf8, &euro[2..], End::InFile), None, "nothing is widened");
        assert_eq!(decoded(Encoding::Utf8, b"\xff", End::InFile), None);
        let clef = Encoding::Utf16.encode("a𝄞").unwrap();
        assert_eq!(decoded(Encoding::Utf16, &clef, End::OfFile), Some(("a𝄞".to_owned(), 8)));
        assert_eq!(decoded(Encoding::Utf16, &clef[..7], End::InFile), Some(("a".to_owned(), 4)));
        assert_eq!(decoded(Encoding::Utf16, &clef[..6], End::OfFile), None);
        assert_eq!(decoded(Encoding::Utf16, b"\xfe\xff\0a", End::OfFile), Some(("a".to_owned(), 4)));
    }

    #[test]
    fn what_an_encoding_cannot_hold_is_refused() {
        assert_eq!(Encoding::Latin1.encode("ä").unwrap(), b"\xe4");
        assert!(Encoding::Latin1.encode("€").is_err() && Encoding::Ascii.encode("ä").is_err());
        assert_eq!(Encoding::Binary.encode("not base64!").unwrap_err().kind, Kind::BadRequest);
        assert_eq!(decoded(Encoding::Latin1, b"\xe4", End::OfFile), Some(("ä".to_owned(), 1)));
        assert_eq!(decoded(Encoding::Ascii, b"\xe4", End::OfFile), None);
    }
}
