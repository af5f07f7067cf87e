//! This module encodes and decodes unsigned numbers as LEB128. Each number has one encoding, its shortest.

const NUMBER_BYTES_MAX: usize = 10;

/// The reason why bytes could not be decoded as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leb128Error {
    UnexpectedEnd,
    /// The encoded number has more than 64 bits or is not in its shortest encoding.
    InvalidNumber,
}

/// Appends a number in LEB128 to a buffer.
#[inline]
pub fn write_leb128(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(0x80 | (number & 0x7f) as u8);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Decodes a LEB128 number from the front of `input`, and removes its bytes from `input`.
#[inline]
pub fn read_leb128(input: &mut &[u8]) -> Result<u64, Leb128Error> {
    let mut number = 0_u64;
    for index in 0..NUMBER_BYTES_MAX {
        let (byte, rest) = input.split_first().ok_or(Leb128Error::UnexpectedEnd)?;
        *input = rest;
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has room for only one bit. If the last byte were zero, the same number would have a second
        // encoding.
        let too_large = index == NUMBER_BYTES_MAX - 1 && bits > 1;
        if too_large || (index > 0 && *byte == 0) {
            return Err(Leb128Error::InvalidNumber);
        }
        number |= bits << (7 * index);
        if *byte < 0x80 {
            return Ok(number);
        }
    }
    Err(Leb128Error::InvalidNumber)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mut bytes: &[u8]) -> Result<u64, Leb128Error> {
        read_leb128(&mut bytes)
    }

    #[test]
    fn numbers_round_trip_in_their_shortest_form() {
        for (number, length) in [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3), (u64::MAX, 10)] {
            let mut bytes = Vec::new();
            write_leb128(&mut bytes, number);
            assert_eq!(bytes.len(), length, "{number}");
            assert_eq!(read(&bytes[..length - 1]), Err(Leb128Error::UnexpectedEnd), "{number}");
            bytes.push(7);
            let mut input = bytes.as_slice();
            assert_eq!((read_leb128(&mut input), input), (Ok(number), &[7][..]));
        }
    }

    #[test]
    fn overlong_numbers_are_rejected() {
        assert_eq!(read(&[0x80, 0x00]), Err(Leb128Error::InvalidNumber));
        assert_eq!(read(&[0xff, 0x80, 0x00]), Err(Leb128Error::InvalidNumber));
    }

    #[test]
    fn numbers_over_64_bits_are_rejected() {
        let mut bytes = [0xff; 10];
        bytes[9] = 0x02;
        assert_eq!(read(&bytes), Err(Leb128Error::InvalidNumber));
        assert_eq!(read(&[0xff; 11]), Err(Leb128Error::InvalidNumber));
        assert_eq!(read(&[0xff; 3]), Err(Leb128Error::UnexpectedEnd));
    }
}
