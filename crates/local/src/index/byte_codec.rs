//! Encoding of numbers and byte strings in the index: LEB128 numbers, byte strings after their length.
//!
//! Promises: reading never exceeds its input and never allocates by an unverified length.

const NUMBER_BYTES_MAX: usize = 10;

pub(super) fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

pub(super) fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads encoded values front to back. Returns `None` at the end or for malformed bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexByteReader<'a> {
    remaining: &'a [u8],
}

impl<'a> IndexByteReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { remaining: bytes }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.remaining.is_empty()
    }

    /// Number of bytes left.
    pub(super) fn len(&self) -> usize {
        self.remaining.len()
    }

    pub(super) fn read_number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for group in 0..NUMBER_BYTES_MAX {
            let (byte, rest) = self.remaining.split_first()?;
            self.remaining = rest;
            let part = u64::from(byte & 0x7f);
            let shift = u32::try_from(group * 7).ok()?;
            number |= part.checked_shl(shift).filter(|shifted| shifted >> shift == part)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// A number that fits into 32 bits.
    pub(super) fn read_number_u32(&mut self) -> Option<u32> {
        u32::try_from(self.read_number()?).ok()
    }

    pub(super) fn read_byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.remaining.split_first()?;
        self.remaining = rest;
        Some(*byte)
    }

    pub(super) fn take_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.remaining.split_at_checked(count)?;
        self.remaining = rest;
        Some(taken)
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.read_number()?).ok()?;
        self.take_bytes(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_malformed_ones_are_rejected() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            write_number(&mut out, number);
            let mut reading = IndexByteReader::new(&out);
            assert_eq!(reading.read_number(), Some(number));
            assert!(reading.is_at_end());
            assert_eq!(IndexByteReader::new(&out[..out.len() - 1]).read_number(), None);
        }
        assert_eq!(IndexByteReader::new(&[0xff; 10]).read_number(), None);
        assert_eq!(IndexByteReader::new(&[0x80; 20]).read_number(), None);
        let mut long = Vec::new();
        write_number(&mut long, u64::MAX);
        assert_eq!(IndexByteReader::new(&long).bytes(), None);
    }
}
