//! Fuzz target: bytes that are detected as text can be decoded, and encode back to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stead_text::encoding::{decode, detect_encoding, encode};

fuzz_target!(|bytes: &[u8]| {
    if let Some(encoding) = detect_encoding(bytes) {
        let text = decode(bytes, encoding).expect("detected text decodes");
        assert_eq!(encode(&text, encoding).expect("decoded text encodes"), bytes);
    }
});
