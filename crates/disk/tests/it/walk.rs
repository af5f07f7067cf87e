//! Tests tree walks: the order of entries, the limits, and the report of skipped parts.

use stead_disk::{FileType, WalkControl, WalkEndReason, WalkLimits, measure_tree, walk_tree};

use crate::fixture::{BOTH_RESOLVERS, DiskFixture, rel_path};

fn tree() -> DiskFixture {
    let f = DiskFixture::new();
    f.file("b/two", "22");
    f.file("b/deep/er/three", "333");
    f.file("a", "1");
    f.link("loop", ".");
    f.link("out", "../out");
    f
}

#[test]
fn walks_in_order_without_following_symlinks() {
    let f = tree();
    for resolver in BOTH_RESOLVERS {
        let top = f.root(resolver).open_directory(&rel_path(".")).unwrap();
        let mut seen = Vec::new();
        let end = walk_tree(&top, WalkLimits::default(), &mut |walked| {
            seen.push(walked.path.to_string());
            WalkControl::Continue
        })
        .unwrap();
        assert_eq!(seen, ["a", "b", "b/deep", "b/deep/er", "b/deep/er/three", "b/two", "loop", "out"]);
        assert_eq!(
            (end.entries, end.end_reason, end.too_deep, end.unreadable_count),
            (8, WalkEndReason::Complete, 0, 0)
        );
        let size = measure_tree(&top, WalkLimits::default()).unwrap();
        assert_eq!((size.files, size.directories, size.bytes), (5, 3, 6));
    }
}

#[test]
fn limits_are_reported() {
    let f = tree();
    let top = f.root_directory();
    let few = walk_tree(&top, WalkLimits { depth: 9, entries: 3 }, &mut |_| WalkControl::Continue).unwrap();
    assert_eq!((few.entries, few.end_reason), (3, WalkEndReason::EntryLimit));
    let flat = walk_tree(&top, WalkLimits { depth: 1, entries: 99 }, &mut |_| WalkControl::Continue).unwrap();
    assert_eq!((flat.entries, flat.too_deep, flat.end_reason), (4, 1, WalkEndReason::Complete));
    let skipped = walk_tree(&top, WalkLimits::default(), &mut |walked| {
        if walked.file_type == FileType::Directory { WalkControl::SkipDirectory } else { WalkControl::Continue }
    });
    assert_eq!(skipped.unwrap().entries, 4);
    let stopped = walk_tree(&top, WalkLimits::default(), &mut |_| WalkControl::Stop).unwrap();
    assert_eq!((stopped.entries, stopped.end_reason), (1, WalkEndReason::Stopped));
}
