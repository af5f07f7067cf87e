//! A snapshot of a workspace as seen from outside: every path with its content and permission bits.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use std::{collections::BTreeMap, os::unix::fs::PermissionsExt, path::Path};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TestTreeSnapshotEntry {
    File(Vec<u8>, u32),
    Directory(u32),
    Link(String),
}

/// A snapshot contains no staged files.
pub(crate) type TestTreeSnapshot = BTreeMap<String, TestTreeSnapshotEntry>;

pub(crate) fn take_snapshot(root: &Path) -> TestTreeSnapshot {
    let mut found = TestTreeSnapshot::new();
    walk_directory(root, "", &mut |path, seen| {
        if !is_temporary(&path) {
            found.insert(path, seen);
        }
    });
    found
}

pub(crate) fn find_leftovers(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    walk_directory(root, "", &mut |path, _| {
        if is_temporary(&path) {
            found.push(path);
        }
    });
    found
}

fn is_temporary(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.starts_with(".stead~"))
}

fn walk_directory(directory: &Path, above: &str, see: &mut impl FnMut(String, TestTreeSnapshotEntry)) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{above}{}", entry.file_name().to_str().unwrap());
        let facts = entry.metadata().unwrap();
        let mode = facts.permissions().mode() & 0o7777;
        if facts.is_symlink() {
            let target = std::fs::read_link(entry.path()).unwrap();
            see(path, TestTreeSnapshotEntry::Link(target.to_str().unwrap().to_owned()));
        } else if facts.is_dir() {
            see(path.clone(), TestTreeSnapshotEntry::Directory(mode));
            walk_directory(&entry.path(), &format!("{path}/"), see);
        } else {
            see(path, TestTreeSnapshotEntry::File(std::fs::read(entry.path()).unwrap(), mode));
        }
    }
}

pub(crate) fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    std::fs::set_permissions(to, from.metadata().unwrap().permissions()).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let facts = entry.metadata().unwrap();
        let target = to.join(entry.file_name());
        if facts.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(entry.path()).unwrap(), target).unwrap();
        } else if facts.is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
