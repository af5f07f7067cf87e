//! Detects whether content is text, and in which encoding.
//!
//! Every guessed encoding is verified: decoding and encoding must give the same bytes. Content whose encoding is in
//! doubt counts as binary, because wrongly decoded text would be corrupted.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};

use super::{Encoding, LegacyEncoding, UTF8_BOM, UTF16BE_BOM, UTF16LE_BOM, decode, encode};

const UTF16_UNITS_MIN: usize = 4;
/// The least percentage of UTF-16 code units with a zero high byte in text that is detected as UTF-16.
const UTF16_ZERO_HIGH_PERCENT_MIN: usize = 70;
/// The largest percentage of UTF-16 code units with a zero low byte in text that is detected as UTF-16.
const UTF16_ZERO_LOW_PERCENT_MAX: usize = 2;
const CHARACTERS_PER_CONTROL_MIN: usize = 200;
/// The number of bytes, from the first invalid UTF-8 byte on, that are used to guess a legacy encoding.
const GUESS_BYTES_MAX: usize = 256 * 1024;

/// Whether the first bytes of a file already prove that the file is binary.
pub fn starts_like_binary(first: &[u8]) -> bool {
    let marked = first.starts_with(UTF16LE_BOM) || first.starts_with(UTF16BE_BOM);
    let even = first.len() - first.len() % 2;
    !marked && memchr::memchr(0, first).is_some() && detect_utf16_without_bom(&first[..even]).is_none()
}

/// Detects the encoding of text; `None` if the bytes are not text, or if their encoding is in doubt. Decoding and
/// encoding text in its detected encoding gives the same bytes. Empty content is detected as UTF-8 text.
pub fn detect_encoding(bytes: &[u8]) -> Option<Encoding> {
    if bytes.starts_with(UTF16LE_BOM) {
        return accept_if_plausible(bytes, Encoding::Utf16LeBom);
    }
    if bytes.starts_with(UTF16BE_BOM) {
        return accept_if_plausible(bytes, Encoding::Utf16BeBom);
    }
    if memchr::memchr(0, bytes).is_some() {
        return accept_if_plausible(bytes, detect_utf16_without_bom(bytes)?);
    }
    match std::str::from_utf8(bytes) {
        Ok(_) if bytes.starts_with(UTF8_BOM) => Some(Encoding::Utf8Bom),
        Ok(_) => Some(Encoding::Utf8),
        Err(_) if is_damaged_utf8(bytes) => None,
        Err(error) => accept_if_plausible(bytes, guess_legacy_encoding(bytes, error.valid_up_to())?),
    }
}

/// Whether the bytes have more valid non-ASCII UTF-8 characters than invalid sequences. Text in a legacy encoding
/// hardly ever contains many valid non-ASCII UTF-8 characters. Damaged UTF-8 counts as binary, because an edit in a
/// guessed encoding would mix two encodings.
fn is_damaged_utf8(bytes: &[u8]) -> bool {
    let (mut valid, mut invalid) = (0_usize, 0_usize);
    for chunk in bytes.utf8_chunks() {
        valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        invalid += usize::from(!chunk.invalid().is_empty());
    }
    valid > invalid
}

/// Detects UTF-16 by its zero bytes.
fn detect_utf16_without_bom(bytes: &[u8]) -> Option<Encoding> {
    let units = bytes.len() / 2;
    if !bytes.len().is_multiple_of(2) || units < UTF16_UNITS_MIN {
        return None;
    }
    let zeros_at = |parity: usize| bytes.iter().skip(parity).step_by(2).filter(|&&byte| byte == 0).count();
    let (even, odd) = (zeros_at(0), zeros_at(1));
    let fits = |high: usize, low: usize| {
        high * 100 >= units * UTF16_ZERO_HIGH_PERCENT_MIN && low * 100 <= units * UTF16_ZERO_LOW_PERCENT_MAX
    };
    if fits(odd, even) {
        Some(Encoding::Utf16Le)
    } else if fits(even, odd) {
        Some(Encoding::Utf16Be)
    } else {
        None
    }
}

fn guess_legacy_encoding(bytes: &[u8], first_invalid: usize) -> Option<Encoding> {
    let start = memchr::memrchr(b'\n', &bytes[..first_invalid]).map_or(0, |newline| newline + 1);
    let end = bytes.len().min(first_invalid.saturating_add(GUESS_BYTES_MAX));
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(&bytes[start..end], end == bytes.len());
    LegacyEncoding::new(detector.guess(None, Utf8Detection::Deny)).map(Encoding::Legacy)
}

/// Verifies a guessed encoding: the bytes must decode to text with few control characters and encode to the same bytes.
fn accept_if_plausible(bytes: &[u8], encoding: Encoding) -> Option<Encoding> {
    let text = decode(bytes, encoding).ok()?;
    let mut characters = 0_usize;
    let mut controls = 0_usize;
    for c in text.chars() {
        if c == '\0' {
            return None;
        }
        characters += 1;
        controls += usize::from(c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\x0c' | '\x1b'));
    }
    let reads_like_text = controls.saturating_mul(CHARACTERS_PER_CONTROL_MIN) <= characters;
    (reads_like_text && encode(&text, encoding).ok()? == bytes).then_some(encoding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_utf8_is_not_taken_for_a_legacy_encoding() {
        assert_eq!(detect_encoding("na\u{ef}ve caf\u{e9}\nbad ?\n".as_bytes()), Some(Encoding::Utf8));
        assert_eq!(detect_encoding(b"na\xc3\xafve caf\xc3\xa9\nbad \xff\n"), None);
        assert!(matches!(detect_encoding(b"th\xe9 noir et caf\xe9\n"), Some(Encoding::Legacy(_))));
    }

    fn name(bytes: &[u8]) -> &'static str {
        match detect_encoding(bytes) {
            Some(encoding) => encoding.name(),
            None => "binary",
        }
    }

    #[test]
    fn unicode_is_recognised() {
        assert_eq!(name(b""), "utf-8");
        assert_eq!(name("plain é 漢\u{1}\n".as_bytes()), "utf-8");
        assert_eq!(name(b"\xef\xbb\xbfhi"), "utf-8-bom");
        assert_eq!(name(b"\xff\xfe"), "utf-16le-bom");
        assert_eq!(name(b"\xff\xfeh\0i\0"), "utf-16le-bom");
        assert_eq!(name(b"\xfe\xff\0h\0i"), "utf-16be-bom");
        assert_eq!(name(b"h\0e\0l\0l\0o\0\n\0"), "utf-16le");
        assert_eq!(name(b"\0h\0e\0l\0l\0o\0\n"), "utf-16be");
    }

    #[test]
    fn binary_is_recognised() {
        for bytes in [
            &b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..],
            b"text with a \0 in it",
            b"\xef\xbb\xbfa\0b",
            b"\xff\xfe\0\0a\0\0\0",
            b"\xff\xfea\0b",
            b"a\0",
            b"\x01\0\x02\0\x03\0\x04\0\x05\0",
            b"\x89PNG\r\n\x1a\n\x01\x02\x03\x04\xff\xfe",
        ] {
            assert_eq!(detect_encoding(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn legacy_encodings_are_guessed() {
        for (label, text) in [
            ("windows-1252", "Der Bär läuft über die Straße, große Höhe.\r\n"),
            ("windows-1251", "Съешь же ещё этих мягких французских булок, да выпей чаю.\n"),
            ("shift_jis", "これは日本語の文章です。漢字とかなが混ざっています。\n"),
            ("gbk", "这是一个中文句子，用来测试编码检测。\n"),
            ("euc-kr", "이것은 한국어 문장입니다. 인코딩을 감지합니다.\n"),
            ("big5", "這是一個繁體中文的句子，用來測試編碼偵測。\n"),
        ] {
            let encoding = Encoding::parse(label).unwrap();
            let bytes = encode(text, encoding).unwrap();
            assert_eq!(detect_encoding(&bytes), Some(encoding), "{label}");
        }
    }

    #[test]
    fn a_late_first_non_ascii_byte_is_still_found() {
        let mut bytes = b"ascii only, line after line\n".repeat(40_000);
        bytes.extend_from_slice(b"caf\xe9 au lait\n");
        assert_eq!(name(&bytes), "windows-1252");
    }
}
