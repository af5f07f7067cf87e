//! A journal entry is encoded with four kinds of primitive values: bytes, numbers, texts and digests.
//!
//! Each primitive value has only one encoding: a number is LEB128 in its shortest form, and a text is its byte length
//! as a number, followed by the UTF-8 bytes. Decoding a value never allocates more than the size of the input.

use crate::{Digest, Leb128Error, read_leb128, write_leb128};

/// The reason why bytes could not be decoded as a journal entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JournalEntryDecodeError {
    /// The bytes of the encoded entry end before its last field is complete.
    #[error("the record ends inside `{0}`")]
    UnexpectedEnd(&'static str),
    /// Further bytes follow the last field of the encoded entry.
    #[error("{0} bytes follow the record")]
    TrailingBytes(usize),
    /// The format byte of the encoded entry is unknown to this version of stead.
    #[error("unknown record format {0}")]
    UnknownFormat(u8),
    /// The tag byte of an enum is unknown to this version of stead.
    #[error("unknown tag {tag} in `{field}`")]
    UnknownTag {
        /// The name of the field that has the unknown tag.
        field: &'static str,
        /// The tag byte that is unknown for the enum.
        tag: u8,
    },
    /// An encoded number is too large for its field or not in its shortest encoding.
    #[error("`{0}` is not a valid number")]
    InvalidNumber(&'static str),
    /// The bytes decode to values that are encoded in another way.
    #[error("`{0}` is not in its only encoding")]
    NotCanonical(&'static str),
    /// An encoded text is not UTF-8.
    #[error("`{0}` is not UTF-8")]
    InvalidUtf8(&'static str),
}

pub(super) struct CanonicalWriter(pub(super) Vec<u8>);

impl CanonicalWriter {
    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn number(&mut self, number: u64) {
        write_leb128(&mut self.0, number);
    }

    pub(super) fn signed_number(&mut self, number: i64) {
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

pub(super) struct CanonicalReader<'a>(pub(super) &'a [u8]);

impl<'a> CanonicalReader<'a> {
    fn take_bytes(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], JournalEntryDecodeError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(JournalEntryDecodeError::UnexpectedEnd(field))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], JournalEntryDecodeError> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(JournalEntryDecodeError::UnexpectedEnd(field))?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self, field: &'static str) -> Result<u8, JournalEntryDecodeError> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    pub(super) fn number(&mut self, field: &'static str) -> Result<u64, JournalEntryDecodeError> {
        read_leb128(&mut self.0).map_err(|error| match error {
            Leb128Error::UnexpectedEnd => JournalEntryDecodeError::UnexpectedEnd(field),
            Leb128Error::InvalidNumber => JournalEntryDecodeError::InvalidNumber(field),
        })
    }

    pub(super) fn number_u32(&mut self, field: &'static str) -> Result<u32, JournalEntryDecodeError> {
        u32::try_from(self.number(field)?).map_err(|_too_large| JournalEntryDecodeError::InvalidNumber(field))
    }

    pub(super) fn signed_number(&mut self, field: &'static str) -> Result<i64, JournalEntryDecodeError> {
        self.array(field).map(i64::from_be_bytes)
    }

    pub(super) fn length_prefixed(&mut self, field: &'static str) -> Result<&'a [u8], JournalEntryDecodeError> {
        let length = self.number(field)?;
        let length = usize::try_from(length).map_err(|_too_large| JournalEntryDecodeError::UnexpectedEnd(field))?;
        self.take_bytes(length, field)
    }

    pub(super) fn text(&mut self, field: &'static str) -> Result<String, JournalEntryDecodeError> {
        let bytes = self.length_prefixed(field)?;
        let text = str::from_utf8(bytes).map_err(|_invalid| JournalEntryDecodeError::InvalidUtf8(field))?;
        Ok(text.to_owned())
    }

    pub(super) fn optional_text(&mut self, field: &'static str) -> Result<Option<String>, JournalEntryDecodeError> {
        match self.byte(field)? {
            0 => Ok(None),
            1 => self.text(field).map(Some),
            tag => Err(JournalEntryDecodeError::UnknownTag { field, tag }),
        }
    }

    pub(super) fn digest(&mut self, field: &'static str) -> Result<Digest, JournalEntryDecodeError> {
        self.array(field).map(Digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_errors_name_the_field() {
        assert_eq!(CanonicalReader(&[0x80, 0]).number("n"), Err(JournalEntryDecodeError::InvalidNumber("n")));
        assert_eq!(CanonicalReader(&[0x80]).number("n"), Err(JournalEntryDecodeError::UnexpectedEnd("n")));
    }

    #[test]
    fn lengths_beyond_the_end_allocate_nothing() {
        let mut writer = CanonicalWriter(Vec::new());
        writer.number(u64::MAX);
        assert_eq!(CanonicalReader(&writer.0).text("t"), Err(JournalEntryDecodeError::UnexpectedEnd("t")));
        assert_eq!(CanonicalReader(&[2, 0xff, 0xfe]).text("t"), Err(JournalEntryDecodeError::InvalidUtf8("t")));
        assert_eq!(
            CanonicalReader(&[7]).optional_text("t"),
            Err(JournalEntryDecodeError::UnknownTag { field: "t", tag: 7 })
        );
    }
}
