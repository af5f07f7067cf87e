//! Fuzz target: bytes that decode to a journal entry are the canonical encoding of that entry.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(entry) = stead_journal::decode_entry(bytes) {
        assert_eq!(stead_journal::encode_entry(&entry), bytes);
    }
});
