//! Encodings older than Unicode.
//!
//! Owns the list of supported legacy encodings: those of the WHATWG standard that can be written as well as read.
//! Promises that encoded text decodes to itself. Never holds a Unicode encoding: [`super::Encoding`] does.

use encoding_rs::EncoderResult;

/// An encoding older than Unicode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LegacyEncoding(&'static encoding_rs::Encoding);

impl LegacyEncoding {
    /// The standard's name, such as `windows-1252` or `Shift_JIS`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Parses any label of the standard. Unicode labels that [`super::Encoding`] does not know are rejected.
    pub(super) fn parse(label: &str) -> Option<Self> {
        Self::new(encoding_rs::Encoding::for_label_no_replacement(label.as_bytes())?)
    }

    /// `None` for encodings that are Unicode or cannot be written.
    pub(super) fn new(encoding: &'static encoding_rs::Encoding) -> Option<Self> {
        let is_writable = encoding.output_encoding() == encoding;
        (is_writable && encoding != encoding_rs::UTF_8).then_some(Self(encoding))
    }

    pub(super) fn encoding_rs(self) -> &'static encoding_rs::Encoding {
        self.0
    }

    /// The bytes of `text`, or the first character that does not round-trip.
    pub(super) fn encode(self, text: &str) -> Result<Vec<u8>, char> {
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

/// Enough for the longest character with its escape sequences, in any encoding of the standard.
const CHARACTER_BUFFER_BYTES: usize = 16;

fn first_differing_character(text: &str, back: &str) -> char {
    let mut back = back.chars();
    text.chars().find(|&c| back.next() != Some(c)).unwrap_or(char::REPLACEMENT_CHARACTER)
}
