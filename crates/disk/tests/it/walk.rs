//! Walking: order, limits, and what is left out is said.

use disk::{Ended, FileType, Visit, WalkLimits, measure_tree, walk};

use crate::fixture::{BOTH, Fixture, rel};

fn tree() -> Fixture {
    let f = Fixture::new();
    f.file("b/two", "22");
    f.file("b/deep/er/three", "333");
    f.file("a", "1");
    f.link("loop", ".");
    f.link("out", "../out");
    f
}

#[test]
fn sees_everything_in_order_and_follows_nothing() {
    let f = tree();
    for resolver in BOTH {
        let top = f.root(resolver).open_directory(&rel(".")).unwrap();
        let mut seen = Vec::new();
        let end = walk(&top, WalkLimits::default(), &mut |walked| {
            seen.push(walked.path.to_string());
            Visit::Continue
        })
        .unwrap();
        assert_eq!(seen, ["a", "b", "b/deep", "b/deep/er", "b/deep/er/three", "b/two", "loop", "out"]);
        assert_eq!((end.entries, end.ended, end.too_deep, end.unread_count), (8, Ended::Complete, 0, 0));
        let size = measure_tree(&top, WalkLimits::default()).unwrap();
        assert_eq!((size.files, size.directories, size.bytes), (5, 3, 6));
    }
}

#[test]
fn limits_are_told() {
    let f = tree();
    let top = f.top();
    let few = walk(&top, WalkLimits { depth: 9, entries: 3 }, &mut |_| Visit::Continue).unwrap();
    assert_eq!((few.entries, few.ended), (3, Ended::EntryLimit));
    let flat = walk(&top, WalkLimits { depth: 1, entries: 99 }, &mut |_| Visit::Continue).unwrap();
    assert_eq!((flat.entries, flat.too_deep, flat.ended), (4, 1, Ended::Complete));
    let skipped = walk(&top, WalkLimits::default(), &mut |walked| {
        if walked.file_type == FileType::Directory { Visit::Skip } else { Visit::Continue }
    });
    assert_eq!(skipped.unwrap().entries, 4);
    let stopped = walk(&top, WalkLimits::default(), &mut |_| Visit::Stop).unwrap();
    assert_eq!((stopped.entries, stopped.ended), (1, Ended::Stopped));
}
