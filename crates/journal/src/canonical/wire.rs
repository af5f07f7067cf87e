//! The four primitives of the canonical form: byte, number, text, digest.
//!
//! Promises one spelling per value: numbers are LEB128 without a needless last byte, text is its byte length as a
//! number and then UTF-8. Reading never allocates more than the bytes that are there.

use crate::Digest;

/// Longest LEB128 spelling of a `u64`.
const MAX_NUMBER_BYTES: usize = 10;

/// Bytes that are not the canonical form of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes end inside a field, or a length points past the end.
    #[error("the record ends inside `{field}`")]
    Short {
        /// The field being read.
        field: &'static str,
    },
    /// Bytes follow the last field.
    #[error("{count} bytes follow the record")]
    Trailing {
        /// How many.
        count: usize,
    },
    /// The format byte is not one this version knows.
    #[error("unknown record format {format}")]
    Format {
        /// The byte found.
        format: u8,
    },
    /// A tag byte has no meaning.
    #[error("unknown tag {tag} in `{field}`")]
    Tag {
        /// The field being read.
        field: &'static str,
        /// The byte found.
        tag: u8,
    },
    /// A number is too large for its field or not in its shortest spelling.
    #[error("bad number in `{field}`")]
    Number {
        /// The field being read.
        field: &'static str,
    },
    /// Text is not UTF-8.
    #[error("`{field}` is not UTF-8")]
    Text {
        /// The field being read.
        field: &'static str,
    },
}

/// Appends primitives to a buffer.
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(0x80 | (number & 0x7f) as u8);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub(super) fn signed(&mut self, number: i64) {
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(super) fn optional_text(&mut self, text: Option<&str>) {
        match text {
            None => self.byte(0),
            Some(text) => {
                self.byte(1);
                self.text(text);
            }
        }
    }

    pub(super) fn digest(&mut self, digest: &Digest) {
        self.0.extend_from_slice(digest.as_bytes());
    }
}

/// Takes primitives from the front of some bytes.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed::Short { field })?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(Malformed::Short { field })?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self, field: &'static str) -> Result<u8, Malformed> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    pub(super) fn number(&mut self, field: &'static str) -> Result<u64, Malformed> {
        let mut number = 0_u64;
        for place in 0..MAX_NUMBER_BYTES {
            let byte = self.byte(field)?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit; a zero last byte would be a second spelling of the same number.
            let too_large = place == MAX_NUMBER_BYTES - 1 && bits > 1;
            let needless = place > 0 && byte == 0;
            if too_large || needless {
                return Err(Malformed::Number { field });
            }
            number |= bits << (7 * place);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Malformed::Number { field })
    }

    pub(super) fn small_number(&mut self, field: &'static str) -> Result<u32, Malformed> {
        u32::try_from(self.number(field)?).map_err(|_too_large| Malformed::Number { field })
    }

    pub(super) fn signed(&mut self, field: &'static str) -> Result<i64, Malformed> {
        self.array(field).map(i64::from_be_bytes)
    }

    pub(super) fn text(&mut self, field: &'static str) -> Result<String, Malformed> {
        let length = self.number(field)?;
        let length = usize::try_from(length).map_err(|_too_large| Malformed::Short { field })?;
        let bytes = self.take(length, field)?;
        let text = str::from_utf8(bytes).map_err(|_invalid| Malformed::Text { field })?;
        Ok(text.to_owned())
    }

    pub(super) fn optional_text(&mut self, field: &'static str) -> Result<Option<String>, Malformed> {
        match self.byte(field)? {
            0 => Ok(None),
            1 => self.text(field).map(Some),
            tag => Err(Malformed::Tag { field, tag }),
        }
    }

    pub(super) fn digest(&mut self, field: &'static str) -> Result<Digest, Malformed> {
        self.array(field).map(Digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(bytes: &[u8]) -> Result<u64, Malformed> {
        Reader(bytes).number("n")
    }

    #[test]
    fn numbers_round_trip_in_their_shortest_spelling() {
        for (value, length) in [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::MAX, 10)] {
            let mut writer = Writer(Vec::new());
            writer.number(value);
            assert_eq!(writer.0.len(), length, "{value}");
            assert_eq!(number(&writer.0), Ok(value));
        }
    }

    #[test]
    fn a_second_spelling_of_a_number_is_refused() {
        assert_eq!(number(&[0x80, 0x00]), Err(Malformed::Number { field: "n" }));
        assert_eq!(number(&[0xff, 0x80, 0x00]), Err(Malformed::Number { field: "n" }));
    }

    #[test]
    fn a_number_past_64_bits_is_refused() {
        let mut bytes = [0xff; 10];
        bytes[9] = 0x02;
        assert_eq!(number(&bytes), Err(Malformed::Number { field: "n" }));
        assert_eq!(number(&[0xff; 11]), Err(Malformed::Number { field: "n" }));
        assert_eq!(number(&[0xff; 3]), Err(Malformed::Short { field: "n" }));
    }

    #[test]
    fn a_length_past_the_end_allocates_nothing() {
        let mut writer = Writer(Vec::new());
        writer.number(u64::MAX);
        assert_eq!(Reader(&writer.0).text("t"), Err(Malformed::Short { field: "t" }));
        assert_eq!(Reader(&[2, 0xff, 0xfe]).text("t"), Err(Malformed::Text { field: "t" }));
        assert_eq!(Reader(&[7]).optional_text("t"), Err(Malformed::Tag { field: "t", tag: 7 }));
    }
}
