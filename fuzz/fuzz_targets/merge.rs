//! Merging with nothing changed on one side gives the other side; both the same gives that.
#![no_main]

use libfuzzer_sys::fuzz_target;
use text::merge::{Merged, merge};

fn clean(base: &str, ours: &str, theirs: &str, expected: &str) {
    match merge(base, ours, theirs) {
        Merged::Clean(text) => assert_eq!(text, expected),
        Merged::Conflict(ranges) => panic!("nothing can conflict here: {ranges:?}"),
    }
}

fuzz_target!(|sides: (&str, &str, &str)| {
    let (base, ours, theirs) = sides;
    clean(base, ours, base, ours);
    clean(base, base, theirs, theirs);
    clean(base, ours, ours, ours);
    let one_way = merge(base, ours, theirs);
    let other_way = merge(base, theirs, ours);
    if let (Merged::Clean(one), Merged::Clean(other)) = (&one_way, &other_way) {
        assert_eq!(one, other, "a clean merge knows no order");
    }
});
