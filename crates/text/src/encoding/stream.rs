//! Decodes text incrementally, for files that are too large to hold in memory.
//!
//! The decoded text does not depend on how the bytes are divided into chunks.

use super::{Encoding, TextDecodeError, UTF16BE_BOM, UTF16LE_BOM, detect_encoding, starts_like_binary};

/// Whether a chunk is the last chunk of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkFinality {
    MoreFollows,
    Last,
}

/// A decoder for a text that arrives in chunks.
pub struct TextStreamDecoder {
    encoding: Encoding,
    decoder: encoding_rs::Decoder,
    /// The byte-order mark that the first chunk must start with; empty for later chunks.
    byte_order_mark: &'static [u8],
}

impl TextStreamDecoder {
    /// Creates a stream decoder for text in the given encoding.
    pub fn new(encoding: Encoding) -> Self {
        let decoder = encoding.without_mark().new_decoder_without_bom_handling();
        Self { encoding, decoder, byte_order_mark: encoding.byte_order_mark() }
    }

    /// Returns the encoding of the bytes that the stream decoder decodes.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Decodes the next chunk of bytes and appends the decoded text to `text`. The first chunk must contain the whole
    /// byte-order mark if the encoding has one. Decoding fails if the bytes are invalid or decode to a NUL character.
    pub fn push(&mut self, bytes: &[u8], part: ChunkFinality, text: &mut String) -> Result<(), TextDecodeError> {
        let malformed = TextDecodeError { encoding: self.encoding };
        let mut left = bytes.strip_prefix(std::mem::take(&mut self.byte_order_mark)).ok_or(malformed)?;
        let start = text.len();
        loop {
            let room = self.decoder.max_utf8_buffer_length_without_replacement(left.len());
            text.reserve(room.ok_or(malformed)?);
            let (result, read) =
                self.decoder.decode_to_string_without_replacement(left, text, part == ChunkFinality::Last);
            left = left.get(read..).unwrap_or_default();
            match result {
                encoding_rs::DecoderResult::InputEmpty => break,
                encoding_rs::DecoderResult::OutputFull => {}
                encoding_rs::DecoderResult::Malformed(..) => return Err(malformed),
            }
        }
        let added = text.as_bytes().get(start..).unwrap_or_default();
        if memchr::memchr(0, added).is_some() { Err(malformed) } else { Ok(()) }
    }
}

/// Detects from the first bytes of a file whether the file is text, and in which encoding. The first bytes of the file
/// may end within a character.
pub fn detect_from_prefix(first: &[u8]) -> Option<Encoding> {
    if starts_like_binary(first) {
        return None;
    }
    let end = match std::str::from_utf8(first) {
        Ok(_) => first.len(),
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // The bytes are UTF-16, whose last whole character is found by trial below.
        Err(_) if first.starts_with(UTF16LE_BOM) || first.starts_with(UTF16BE_BOM) || first.contains(&0) => first.len(),
        Err(_) => first.iter().rposition(|byte| *byte < FOLLOWING_MIN).map_or(first.len(), |at| at + 1),
    };
    (0..CHARACTER_BYTES_MAX).find_map(|less| detect_encoding(&first[..end.saturating_sub(less)]))
}

/// The smallest byte that a detected legacy encoding uses within a character after its first byte.
const FOLLOWING_MIN: u8 = 0x30;
const CHARACTER_BYTES_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::{super::encode, *};

    fn decode_in_pieces(bytes: &[u8], encoding: Encoding, piece: usize) -> Result<String, TextDecodeError> {
        let (mut stream, mut text) = (TextStreamDecoder::new(encoding), String::new());
        let (first, rest) = bytes.split_at(encoding.byte_order_mark().len().max(piece).min(bytes.len()));
        stream.push(first, ChunkFinality::MoreFollows, &mut text)?;
        for bytes in rest.chunks(piece) {
            stream.push(bytes, ChunkFinality::MoreFollows, &mut text)?;
        }
        stream.push(b"", ChunkFinality::Last, &mut text)?;
        Ok(text)
    }

    #[test]
    fn decoding_is_independent_of_chunk_boundaries() {
        for (name, text) in [
            ("utf-8", "aé漢😀\r\nend"),
            ("utf-8-bom", "aé漢😀"),
            ("utf-16le", "aé漢😀\n"),
            ("utf-16be-bom", "aé漢😀\n"),
            ("shift_jis", "これは日本語\n"),
            ("gb18030", "这是😀\n"),
            ("windows-1252", "né €\n"),
        ] {
            let encoding = Encoding::parse(name).unwrap();
            let bytes = encode(text, encoding).unwrap();
            for piece in 1..=bytes.len() {
                assert_eq!(decode_in_pieces(&bytes, encoding, piece).as_deref(), Ok(text), "{name} by {piece}");
            }
        }
    }

    #[test]
    fn invalid_bytes_are_rejected() {
        let utf16 = Encoding::parse("utf-16le").unwrap();
        for (bytes, encoding) in [
            (&b"a\xffb"[..], Encoding::Utf8),
            (b"a\xc3", Encoding::Utf8),
            (b"a\0b", Encoding::Utf8),
            (b"a\0b", utf16),
            (b"a\0\0\0", utf16),
            (b"abc", Encoding::Utf8Bom),
        ] {
            for piece in 1..=bytes.len() {
                assert!(decode_in_pieces(bytes, encoding, piece).is_err(), "{bytes:?} by {piece}");
            }
        }
    }

    #[test]
    fn prefix_detection_works_for_any_prefix_length() {
        for (name, text) in [
            ("utf-8", "plain, and then é漢😀"),
            ("utf-16le", "plain text in wide letters"),
            ("utf-16le-bom", "漢字😀"),
            ("shift_jis", "これは日本語の文章です。漢字とかなが混ざっています。\n"),
        ] {
            let encoding = Encoding::parse(name).unwrap();
            let bytes = encode(&text.repeat(20), encoding).unwrap();
            for end in bytes.len() - 12..=bytes.len() {
                assert_eq!(detect_from_prefix(&bytes[..end]), Some(encoding), "{name} to {end}");
            }
        }
        assert_eq!(detect_from_prefix(b"\x7fELF\x02\x01\0\0\0"), None);
        assert_eq!(detect_from_prefix(b""), Some(Encoding::Utf8));
    }
}
