//! Decoding text that comes in pieces, for files that are too large to be held whole.
//!
//! Owns the state between two pieces. Promises the same text as [`decode`](super::decode) gives of the whole, however
//! the bytes are divided, and never holds more than the piece it is given. Never replaces what it cannot read.

use super::{Detected, Encoding, Malformed, UTF16BE_MARK, UTF16LE_MARK, begins_binary, detect};

/// Where a piece stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// More may follow.
    More,
    /// Nothing follows.
    Last,
}

/// Text in the middle of being decoded.
pub struct Stream {
    encoding: Encoding,
    decoder: encoding_rs::Decoder,
    /// The byte-order mark that the first piece has to begin with.
    mark: &'static [u8],
}

impl Stream {
    /// A stream of text in this encoding.
    #[must_use]
    pub fn new(encoding: Encoding) -> Self {
        let inner = match encoding {
            Encoding::Utf8 | Encoding::Utf8Bom => encoding_rs::UTF_8,
            Encoding::Utf16Le | Encoding::Utf16LeBom => encoding_rs::UTF_16LE,
            Encoding::Utf16Be | Encoding::Utf16BeBom => encoding_rs::UTF_16BE,
            Encoding::Legacy(legacy) => legacy.inner(),
        };
        Self { encoding, decoder: inner.new_decoder_without_bom_handling(), mark: encoding.mark() }
    }

    /// The encoding it reads.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Adds the text of the next bytes to `text`. The first piece holds the byte-order mark whole, if there is one.
    ///
    /// # Errors
    ///
    /// [`Malformed`] when a sequence is not valid, when the mark is missing, or at a zero character: no text has one.
    pub fn push(&mut self, bytes: &[u8], part: Part, text: &mut String) -> Result<(), Malformed> {
        let malformed = Malformed { encoding: self.encoding };
        let mut left = bytes.strip_prefix(std::mem::take(&mut self.mark)).ok_or(malformed)?;
        let start = text.len();
        loop {
            let room = self.decoder.max_utf8_buffer_length_without_replacement(left.len());
            text.reserve(room.ok_or(malformed)?);
            let (result, read) =
                self.decoder.decode_to_string_without_replacement(left, text, part == Part::Last);
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

/// What bytes are of which only the first are here, judged by those. They may end in the middle of a character.
#[must_use]
pub fn detect_first(first: &[u8]) -> Detected {
    if begins_binary(first) {
        return Detected::Binary;
    }
    let end = match std::str::from_utf8(first) {
        Ok(_) => first.len(),
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // UTF-16: its characters are found by trying.
        Err(_)
            if first.starts_with(UTF16LE_MARK) || first.starts_with(UTF16BE_MARK) || first.contains(&0) =>
        {
            first.len()
        }
        Err(_) => first.iter().rposition(|byte| *byte < FOLLOWING_MIN).map_or(first.len(), |at| at + 1),
    };
    let mut judged = (0..CHARACTER_BYTES_MAX).map(|less| detect(&first[..end.saturating_sub(less)]));
    judged.find(|judged| *judged != Detected::Binary).unwrap_or(Detected::Binary)
}

/// A smaller byte is a character of its own in every older encoding, never a part of one.
const FOLLOWING_MIN: u8 = 0x30;
/// Most bytes of one character in any encoding.
const CHARACTER_BYTES_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::{super::encode, *};

    fn streamed(bytes: &[u8], encoding: Encoding, piece: usize) -> Result<String, Malformed> {
        let (mut stream, mut text) = (Stream::new(encoding), String::new());
        let (first, rest) = bytes.split_at(encoding.mark().len().max(piece).min(bytes.len()));
        stream.push(first, Part::More, &mut text)?;
        for bytes in rest.chunks(piece) {
            stream.push(bytes, Part::More, &mut text)?;
        }
        stream.push(b"", Part::Last, &mut text)?;
        Ok(text)
    }

    #[test]
    fn text_is_the_same_however_it_is_divided() {
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
                assert_eq!(streamed(&bytes, encoding, piece).as_deref(), Ok(text), "{name} by {piece}");
            }
        }
    }

    #[test]
    fn what_is_no_text_is_refused() {
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
                assert!(streamed(bytes, encoding, piece).is_err(), "{bytes:?} by {piece}");
            }
        }
    }

    #[test]
    fn first_bytes_are_judged_wherever_they_end() {
        for (name, text) in [
            ("utf-8", "plain, and then é漢😀"),
            ("utf-16le", "plain text in wide letters"),
            ("utf-16le-bom", "漢字😀"),
            ("shift_jis", "これは日本語の文章です。漢字とかなが混ざっています。\n"),
        ] {
            let encoding = Encoding::parse(name).unwrap();
            let bytes = encode(&text.repeat(20), encoding).unwrap();
            for end in bytes.len() - 12..=bytes.len() {
                assert_eq!(detect_first(&bytes[..end]), Detected::Text { encoding }, "{name} to {end}");
            }
        }
        assert_eq!(detect_first(b"\x7fELF\x02\x01\0\0\0"), Detected::Binary);
        assert_eq!(detect_first(b""), Detected::Text { encoding: Encoding::Utf8 });
    }
}
