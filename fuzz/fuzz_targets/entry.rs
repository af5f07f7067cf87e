//! Bytes that are an entry are exactly the bytes of that entry.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(entry) = journal::decode(bytes) {
        assert_eq!(journal::encode(&entry), bytes);
    }
});
