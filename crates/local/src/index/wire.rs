//! Numbers and byte strings as the index writes them: numbers in groups of seven bits, byte strings after their length.
//!
//! Promises: reading never goes beyond the bytes it is given and never reserves room that a length asks for.

/// Most bytes of one number.
const NUMBER_BYTES_MAX: usize = 10;

/// Writes a number.
pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// Writes a byte string.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads what was written, from front to back. Nothing comes when the bytes end or make no sense.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'a> {
    left: &'a [u8],
}

impl<'a> Reading<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    pub(super) fn is_done(&self) -> bool {
        self.left.is_empty()
    }

    /// How many bytes are left.
    pub(super) fn len(&self) -> usize {
        self.left.len()
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for place in 0..NUMBER_BYTES_MAX {
            let (byte, rest) = self.left.split_first()?;
            self.left = rest;
            let part = u64::from(byte & 0x7f);
            let shift = u32::try_from(place * 7).ok()?;
            number |= part.checked_shl(shift).filter(|shifted| shifted >> shift == part)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// A number that fits into 32 bits.
    pub(super) fn small(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.left.split_first()?;
        self.left = rest;
        Some(*byte)
    }

    /// So many bytes.
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.left.split_at_checked(count)?;
        self.left = rest;
        Some(taken)
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.number()?).ok()?;
        self.take(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_nonsense_does_not() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_number(&mut out, number);
            let mut reading = Reading::new(&out);
            assert_eq!(reading.number(), Some(number));
            assert!(reading.is_done());
            assert_eq!(Reading::new(&out[..out.len() - 1]).number(), None);
        }
        assert_eq!(Reading::new(&[0xff; 10]).number(), None);
        assert_eq!(Reading::new(&[0x80; 20]).number(), None);
        let mut long = Vec::new();
        put_number(&mut long, u64::MAX);
        assert_eq!(Reading::new(&long).bytes(), None);
    }
}
