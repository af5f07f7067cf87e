//! Tests counting the files of a tree: symlinks, the limit, and the report of skipped parts.

use stead_disk::{DiskTreeSize, measure_tree};

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
fn counts_without_following_symlinks() {
    let f = tree();
    for resolver in BOTH_RESOLVERS {
        let top = f.root(resolver).open_directory(&rel_path(".")).unwrap();
        let whole = DiskTreeSize { files: 5, directories: 3, bytes: 6, unreadable: 0, is_limited: false };
        assert_eq!(measure_tree(&top, u64::MAX), Ok(whole));
        assert_eq!(measure_tree(&top, 8), Ok(whole));
    }
}

#[test]
fn limits_are_reported() {
    let f = tree();
    let top = f.root_directory();
    // The first three entries in the order of their names are a, b and b/deep.
    let few = DiskTreeSize { files: 1, directories: 2, bytes: 1, unreadable: 0, is_limited: true };
    assert_eq!(measure_tree(&top, 3), Ok(few));
    let none = DiskTreeSize { is_limited: true, ..DiskTreeSize::default() };
    assert_eq!(measure_tree(&top, 0), Ok(none));
}
