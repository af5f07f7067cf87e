//! The text encodings that the document of the `krux` dialect lists. If an encoding cannot represent the content, the
//! call fails; no character is replaced.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use stead_engine::{Error, ErrorKind};

use super::errors::invalid_input;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KruxFileEncoding {
    #[serde(rename = "utf-8")]
    Utf8,
    Ascii,
    #[serde(rename = "latin-1")]
    Latin1,
    #[serde(rename = "utf-16")]
    Utf16,
    Binary,
}

const UTF16_LE_BOM: [u8; 2] = [0xff, 0xfe];
const UTF16_BE_BOM: [u8; 2] = [0xfe, 0xff];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KruxFilePieceEndPosition {
    MidFile,
    EndOfFile,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct DecodedFilePiece {
    pub(super) text: String,
    pub(super) bytes_consumed: usize,
}

impl KruxFileEncoding {
    fn name(self) -> &'static str {
        match self {
            KruxFileEncoding::Utf8 => "utf-8",
            KruxFileEncoding::Ascii => "ascii",
            KruxFileEncoding::Latin1 => "latin-1",
            KruxFileEncoding::Utf16 => "utf-16",
            KruxFileEncoding::Binary => "binary",
        }
    }

    fn encoding_error(self, what: &str) -> Error {
        Error::new(ErrorKind::NotText, format!("{what} does not fit the encoding {}", self.name()))
            .with_encoding(self.name())
    }

    /// If the end of a file piece splits a character, the character belongs to the next piece. A file that ends in the
    /// middle of a character cannot be decoded.
    pub(super) fn decode(self, bytes: &[u8], end: KruxFilePieceEndPosition) -> Result<DecodedFilePiece, Error> {
        let invalid = || self.encoding_error("the content of the file");
        let whole = |text: String| DecodedFilePiece { text, bytes_consumed: bytes.len() };
        match self {
            KruxFileEncoding::Binary => Ok(whole(STANDARD.encode(bytes))),
            KruxFileEncoding::Latin1 => Ok(whole(bytes.iter().map(|byte| char::from(*byte)).collect())),
            KruxFileEncoding::Ascii if bytes.is_ascii() => Ok(whole(String::from_utf8_lossy(bytes).into_owned())),
            KruxFileEncoding::Ascii => Err(invalid()),
            KruxFileEncoding::Utf8 => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(whole(text.to_owned())),
                Err(error) if end == KruxFilePieceEndPosition::MidFile && error.error_len().is_none() => {
                    let complete = bytes.get(..error.valid_up_to()).unwrap_or_default();
                    let text = String::from_utf8_lossy(complete).into_owned();
                    Ok(DecodedFilePiece { text, bytes_consumed: complete.len() })
                }
                Err(_) => Err(invalid()),
            },
            KruxFileEncoding::Utf16 => decode_utf16(bytes, end).ok_or_else(invalid),
        }
    }

    pub(super) fn encode(self, text: &str) -> Result<Vec<u8>, Error> {
        let invalid = || self.encoding_error("the content");
        match self {
            KruxFileEncoding::Utf8 => Ok(text.as_bytes().to_vec()),
            KruxFileEncoding::Ascii if text.is_ascii() => Ok(text.as_bytes().to_vec()),
            KruxFileEncoding::Ascii => Err(invalid()),
            KruxFileEncoding::Latin1 => {
                text.chars().map(|c| u8::try_from(u32::from(c)).map_err(|_| invalid())).collect()
            }
            KruxFileEncoding::Utf16 => {
                let units = text.encode_utf16().flat_map(u16::to_le_bytes);
                Ok(UTF16_LE_BOM.into_iter().chain(units).collect())
            }
            KruxFileEncoding::Binary => STANDARD.decode(text).map_err(|_| invalid_input("content", "is not base64")),
        }
    }
}

/// UTF-16 is read as little endian, unless a byte order mark says big endian. The decoded text of a UTF-16 file does
/// not contain the byte order mark.
fn decode_utf16(bytes: &[u8], end: KruxFilePieceEndPosition) -> Option<DecodedFilePiece> {
    let (rest, big_endian) = match (bytes.strip_prefix(&UTF16_LE_BOM), bytes.strip_prefix(&UTF16_BE_BOM)) {
        (Some(rest), _) => (rest, false),
        (None, Some(rest)) => (rest, true),
        (None, None) => (bytes, false),
    };
    let unit = |pair: &[u8]| {
        let pair = [pair.first().copied().unwrap_or_default(), pair.get(1).copied().unwrap_or_default()];
        if big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
    };
    let mut units: Vec<u16> = rest.chunks_exact(2).map(unit).collect();
    if end == KruxFilePieceEndPosition::EndOfFile && rest.len() % 2 != 0 {
        return None;
    }
    // The last unit is a high surrogate whose low surrogate belongs to the next piece.
    if end == KruxFilePieceEndPosition::MidFile && units.last().is_some_and(|last| (0xd800..0xdc00).contains(last)) {
        units.pop();
    }
    let text = String::from_utf16(&units).ok()?;
    Some(DecodedFilePiece { text, bytes_consumed: bytes.len() - rest.len() + units.len() * 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode_piece(
        encoding: KruxFileEncoding,
        bytes: &[u8],
        end: KruxFilePieceEndPosition,
    ) -> Option<(String, usize)> {
        encoding.decode(bytes, end).ok().map(|decoded| (decoded.text, decoded.bytes_consumed))
    }

    #[test]
    fn split_character_moves_to_next_piece_and_invalid_is_refused() {
        let euro = "a€".as_bytes();
        assert_eq!(
            decode_piece(KruxFileEncoding::Utf8, &euro[..3], KruxFilePieceEndPosition::MidFile),
            Some(("a".to_owned(), 1))
        );
        assert_eq!(decode_piece(KruxFileEncoding::Utf8, &euro[..3], KruxFilePieceEndPosition::EndOfFile), None);
        assert_eq!(
            decode_piece(KruxFileEncoding::Utf8, &euro[2..], KruxFilePieceEndPosition::MidFile),
            None,
            "a character that starts before the piece is not completed"
        );
        assert_eq!(decode_piece(KruxFileEncoding::Utf8, b"\xff", KruxFilePieceEndPosition::MidFile), None);
        let clef = KruxFileEncoding::Utf16.encode("a𝄞").unwrap();
        assert_eq!(
            decode_piece(KruxFileEncoding::Utf16, &clef, KruxFilePieceEndPosition::EndOfFile),
            Some(("a𝄞".to_owned(), 8))
        );
        assert_eq!(
            decode_piece(KruxFileEncoding::Utf16, &clef[..7], KruxFilePieceEndPosition::MidFile),
            Some(("a".to_owned(), 4))
        );
        assert_eq!(decode_piece(KruxFileEncoding::Utf16, &clef[..6], KruxFilePieceEndPosition::EndOfFile), None);
        assert_eq!(
            decode_piece(KruxFileEncoding::Utf16, b"\xfe\xff\0a", KruxFilePieceEndPosition::EndOfFile),
            Some(("a".to_owned(), 4))
        );
    }

    #[test]
    fn rejects_unencodable_text() {
        assert_eq!(KruxFileEncoding::Latin1.encode("ä").unwrap(), b"\xe4");
        assert!(KruxFileEncoding::Latin1.encode("€").is_err() && KruxFileEncoding::Ascii.encode("ä").is_err());
        assert_eq!(KruxFileEncoding::Binary.encode("not base64!").unwrap_err().kind, ErrorKind::BadRequest);
        assert_eq!(
            decode_piece(KruxFileEncoding::Latin1, b"\xe4", KruxFilePieceEndPosition::EndOfFile),
            Some(("ä".to_owned(), 1))
        );
        assert_eq!(decode_piece(KruxFileEncoding::Ascii, b"\xe4", KruxFilePieceEndPosition::EndOfFile), None);
    }
}
