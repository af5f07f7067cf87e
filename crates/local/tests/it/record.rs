//! What the record is worth: kept bytes are checked before they are used, the journal verifies while others write, and
//! leases are bounded.

#![expect(clippy::disallowed_methods, reason = "the test damages the state directory from outside")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use engine::{Kind, limits};
use local::Durability;
use serde_json::json;

use crate::support::{Fixture, options};

/// Files of the state directory with this many bytes.
fn of_size(directory: &Path, bytes: u64) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            found.extend(of_size(&path, bytes));
        } else if meta.len() == bytes {
            found.push(path);
        }
    }
    found
}

#[test]
fn kept_bytes_that_were_changed_are_not_brought_back() {
    const BYTES: usize = 100_003;
    let at = Fixture::new();
    let first = at.ok("write", json!({ "path": "f", "content": "a".repeat(BYTES) }));
    at.ok("write", json!({ "path": "f", "content": "new", "base": first["version"] }));
    let kept = of_size(&at.place.path().join("state"), BYTES as u64);
    let [blob] = kept.as_slice() else { panic!("{kept:?}") };
    let mut bytes = fs::read(blob).unwrap();
    bytes[BYTES / 2] ^= 1;
    fs::write(blob, bytes).unwrap();
    let failure = at.call("undo", json!({})).unwrap_err();
    assert_eq!(failure.kind, Kind::CorruptHistory, "{failure}");
    assert_eq!(at.text("f").as_deref(), Some("new"));
}

#[test]
fn the_journal_verifies_while_others_write() {
    let at = Fixture::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (at, done) = (&at, &done);
            scope.spawn(move || {
                let mut round = 0;
                while !done.load(Ordering::SeqCst) {
                    round += 1;
                    at.ok("write", json!({ "path": format!("w{writer}/{round}"), "content": "x" }));
                }
            });
        }
        let mut sizes = std::collections::BTreeSet::new();
        // As often as it takes to have looked at many different ends.
        while sizes.len() < 20 {
            let report = at.workspace.verify_log(None, &[]).unwrap();
            assert_eq!(report.tamper.map(|tamper| tamper.to_string()), None);
            sizes.insert(engine::Workspace::head(&*at.workspace).unwrap().number);
        }
        done.store(true, Ordering::SeqCst);
    });
}

#[test]
fn leases_are_bounded_for_each_principal() {
    let place = tempfile::tempdir().unwrap();
    let mut options = options(&place);
    options.durability = Durability::Fast;
    let at = Fixture::open(place, options);
    for number in 0..limits::LEASES_PER_PRINCIPAL_MAX {
        at.ok("lock", json!({ "path": format!("f{number}") }));
    }
    assert_eq!(at.kind("lock", json!({ "path": "more" })), "too_many");
    at.ok("unlock", json!({ "path": "f0" }));
    at.ok("lock", json!({ "path": "more" }));
}
