//! No spelling, read in any way, names a place that is not beneath the root.
#![no_main]

use libfuzzer_sys::fuzz_target;
use path::{Absolute, Backslash, Dots, Empty, Ending, Reading, RelPath};

fuzz_target!(|given: (&str, u8)| {
    let (input, choice) = given;
    let reading = Reading {
        home: RelPath::from_wire(if choice & 1 == 0 { "." } else { "home/of" }).expect("a path"),
        dots: [Dots::Refuse, Dots::Fold, Dots::Reenter][usize::from(choice >> 1) % 3],
        absolute: if choice & 8 == 0 { Absolute::BelowRoot } else { Absolute::Refuse },
        backslash: if choice & 16 == 0 { Backslash::Escape } else { Backslash::Plain },
        ending: if choice & 32 == 0 { Ending::Insists } else { Ending::Ignored },
        empty: if choice & 64 == 0 { Empty::Refuse } else { Empty::Home },
    };
    let roots = ["/srv/ws".to_owned(), "/other".to_owned()];
    if let Ok(spelling) = path::parse(input, &roots, &reading) {
        assert!(spelling.path.components().all(|name| {
            !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/') && !name.contains(&0)
        }));
        assert_eq!(RelPath::from_wire(&spelling.path.to_wire()), Ok(spelling.path));
    }
});
