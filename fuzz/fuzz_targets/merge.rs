//! Fuzz target: a merge with one unchanged side gives the other side, a merge of equal sides gives that side, and a
//! clean merge does not depend on the order of the sides.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stead_text::merge::{MergeResult, merge};

fn assert_clean_merge(base: &str, ours: &str, theirs: &str, expected: &str) {
    match merge(base, ours, theirs) {
        MergeResult::Clean(text) => assert_eq!(text, expected),
        MergeResult::Conflict(ranges) => panic!("unexpected conflict: {ranges:?}"),
    }
}

fuzz_target!(|sides: (&str, &str, &str)| {
    let (base, ours, theirs) = sides;
    assert_clean_merge(base, ours, base, ours);
    assert_clean_merge(base, base, theirs, theirs);
    assert_clean_merge(base, ours, ours, ours);
    let forward = merge(base, ours, theirs);
    let swapped = merge(base, theirs, ours);
    if let (MergeResult::Clean(forward), MergeResult::Clean(swapped)) = (&forward, &swapped) {
        assert_eq!(forward, swapped, "a clean merge does not depend on the order of the sides");
    }
});
