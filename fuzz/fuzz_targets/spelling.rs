//! Fuzz target: no input, parsed with any path syntax, gives a path outside the root.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stead_path::{
    AbsolutePathRule, PathBackslashRule, DotDotRule, EmptyPathRule, PathSyntax, RelPath, TrailingSlashRule, parse_path,
};

fuzz_target!(|given: (&str, u8)| {
    let (input, choice) = given;
    let syntax = PathSyntax {
        default_directory: RelPath::from_wire(if choice & 1 == 0 { "." } else { "home/of" }).expect("a valid path"),
        dot_dot: [DotDotRule::Refuse, DotDotRule::Fold, DotDotRule::FoldAbsolute][usize::from(choice >> 1) % 3],
        absolute_paths: if choice & 8 == 0 { AbsolutePathRule::BelowRoot } else { AbsolutePathRule::Refuse },
        backslash: if choice & 16 == 0 { PathBackslashRule::Escape } else { PathBackslashRule::Literal },
        trailing_slash: if choice & 32 == 0 {
            TrailingSlashRule::RequiresDirectory
        } else {
            TrailingSlashRule::Ignored
        },
        empty_path: if choice & 64 == 0 { EmptyPathRule::Refuse } else { EmptyPathRule::DefaultDirectory },
    };
    let roots = ["/srv/ws".to_owned(), "/other".to_owned()];
    if let Ok(parsed) = parse_path(input, &roots, &syntax) {
        assert!(parsed.path.components().all(|name| {
            !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/') && !name.contains(&0)
        }));
        assert_eq!(RelPath::from_wire(&parsed.path.to_wire()), Ok(parsed.path));
    }
});
