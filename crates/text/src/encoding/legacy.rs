//! Encodings from before Unicode.
//!
//! Owns the choice of which older encodings exist: those of the WHATWG standard that can be written as well as read.
//! Promises that what it writes reads back the same. Never holds a Unicode encoding: those have marks and live one
//! level up.

use encoding_rs::EncoderResult;

/// An encoding from before Unicode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Legacy(&'static encoding_rs::Encoding);

impl Legacy {
    /// The standard's name, such as `windows-1252` or `Shift_JIS`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Reads any label of the standard. Labels of UTF-16 that are no names of ours end here and are not older.
    pub(super) fn parse(label: &str) -> Option<Self> {
        Self::new(encoding_rs::Encoding::for_label_no_replacement(label.as_bytes())?)
    }

    /// `None` for encodings that are Unicode or cannot be written.
    pub(super) fn new(encoding: &'static encoding_rs::Encoding) -> Option<Self> {
        let is_writable = encoding.output_encoding() == encoding;
        (is_writable && encoding != encoding_rs::UTF_8).then_some(Self(encoding))
    }

    pub(super) fn inner(self) -> &'static encoding_rs::Encoding {
        self.0
    }

    /// The bytes of `text`, or the first character that cannot be written and read back.
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
                EncoderResult::OutputFull => bytes.reserve(rest.len() + ROOM_FOR_ONE),
                EncoderResult::Unmappable(character) => return Err(character),
            }
        }
        match self.0.decode_without_bom_handling_and_without_replacement(&bytes) {
            Some(back) if back == text => Ok(bytes),
            Some(back) => Err(first_difference(text, &back)),
            None => Err(first_difference(text, "")),
        }
    }
}

/// Enough for the longest character and the escape sequences around it, in any encoding of the standard.
const ROOM_FOR_ONE: usize = 16;

fn first_difference(text: &str, back: &str) -> char {
    let mut back = back.chars();
    text.chars().find(|&c| back.next() != Some(c)).unwrap_or(char::REPLACEMENT_CHARACTER)
}
