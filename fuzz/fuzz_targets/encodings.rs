//! Fuzz target: bytes that are detected as text can be decoded, and encode back to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stead_text::encoding::{DetectedContentKind, decode, detect_content, encode};

fuzz_target!(|bytes: &[u8]| {
    if let DetectedContentKind::Text { encoding } = detect_content(bytes) {
        let text = decode(bytes, encoding).expect("detected text decodes");
        assert_eq!(encode(&text, encoding).expect("decoded text encodes"), bytes);
    }
});
