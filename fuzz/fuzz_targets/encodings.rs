//! What is called text comes back byte for byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use text::encoding::{Detected, decode, detect, encode};

fuzz_target!(|bytes: &[u8]| {
    if let Detected::Text { encoding } = detect(bytes) {
        let text = decode(bytes, encoding).expect("what is text can be decoded");
        assert_eq!(encode(&text, encoding).expect("and encoded again"), bytes);
    }
});
