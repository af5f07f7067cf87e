//! Tests verification of retained versions and, during concurrent writes, of the journal; and the limit on leases.

#![expect(clippy::disallowed_methods, reason = "the test damages the state directory from outside")]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::json;
use stead_engine::{ErrorKind, limits};
use stead_journal::JournalIntegrityErrorKind;
use stead_local::Durability;

use testkit::native::{EngineJsonCalls, JsonCall};

use crate::support::{LocalFixture, test_options, tester};

fn files_of_size(directory: &Path, bytes: u64) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        if meta.is_dir() {
            found.extend(files_of_size(&path, bytes));
        } else if meta.len() == bytes {
            found.push(path);
        }
    }
    found
}

#[test]
fn corrupted_retained_versions_are_not_restored() {
    const BYTES: usize = 100_003;
    let at = LocalFixture::new();
    let first = at.call_ok("write", json!({ "path": "f", "content": "a".repeat(BYTES) }));
    at.call_ok("write", json!({ "path": "f", "content": "new", "base": first["version"] }));
    let kept = files_of_size(&at.directory.path().join("state"), BYTES as u64);
    let [blob] = kept.as_slice() else { panic!("{kept:?}") };
    let mut bytes = fs::read(blob).unwrap();
    bytes[BYTES / 2] ^= 1;
    fs::write(blob, bytes).unwrap();
    let error = at.call("undo", json!({})).unwrap_err();
    assert_eq!(error.kind, ErrorKind::CorruptHistory, "{error}");
    assert_eq!(at.text_on_disk("f").as_deref(), Some("new"));
}

#[test]
fn journal_verifies_during_concurrent_writes() {
    let at = LocalFixture::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (at, done) = (&at, &done);
            scope.spawn(move || {
                let mut round = 0;
                while !done.load(Ordering::SeqCst) {
                    round += 1;
                    at.call_ok("write", json!({ "path": format!("w{writer}/{round}"), "content": "x" }));
                }
            });
        }
        let mut sizes = std::collections::BTreeSet::new();
        while sizes.len() < 20 {
            let report = at.workspace.verify_journal(None, &[]).unwrap();
            assert_eq!(report.integrity_error.map(|tamper| tamper.to_string()), None);
            sizes.insert(stead_engine::Workspace::head(&*at.workspace).unwrap().number);
        }
        done.store(true, Ordering::SeqCst);
    });
}

#[test]
fn changed_index_rows_are_detected() {
    let at = LocalFixture::new();
    let write = json!({ "path": "a", "content": "1" });
    let caller = tester();
    let mut call = JsonCall::new(&caller, "write", write.as_object().unwrap().clone());
    call.idempotency_key = Some("key");
    at.engine.call(&call).unwrap();
    at.call_ok("undo", json!({}));
    at.call_ok("redo", json!({}));
    let database = crate::older::database(at.directory.path());
    let error = || at.workspace.verify_journal(None, &[]).unwrap().integrity_error.map(|error| error.kind);
    assert_eq!(error(), None);
    for (table, change) in [
        ("touched", "UPDATE touched SET path = 'b'"),
        ("touched", "UPDATE touched SET version = zeroblob(32) WHERE version IS NOT NULL"),
        ("touched", "INSERT INTO touched VALUES ('b', 1, zeroblob(32))"),
        ("entries", "UPDATE entries SET time_ms = time_ms + 1 WHERE number = 2"),
        ("entries", "UPDATE entries SET principal = 'user:ann' WHERE number = 2"),
        ("entries", "UPDATE entries SET operation = 'read' WHERE number = 2"),
        ("entries", "UPDATE entries SET changed = 0 WHERE number = 3"),
        ("keys", "DELETE FROM keys"),
        ("keys", "UPDATE keys SET number = 2"),
        ("undone", "DELETE FROM undone"),
        ("undone", "UPDATE undone SET redone = NULL"),
    ] {
        database.execute_batch(&format!("CREATE TABLE saved AS SELECT * FROM {table}; {change};")).unwrap();
        assert_eq!(error(), Some(JournalIntegrityErrorKind::IndexMismatch), "{change}");
        let restore = format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM saved; DROP TABLE saved;");
        database.execute_batch(&restore).unwrap();
        assert_eq!(error(), None, "{change}");
    }
}

#[test]
fn leases_are_bounded_for_each_principal() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = test_options(&directory);
    options.durability = Durability::Fast;
    let at = LocalFixture::open(directory, options);
    for number in 0..limits::LEASES_PER_PRINCIPAL_MAX {
        at.call_ok("lock", json!({ "path": format!("f{number}") }));
    }
    at.call_err("lock", json!({ "path": "more" }), ErrorKind::TooMany);
    at.call_ok("unlock", json!({ "path": "f0" }));
    at.call_ok("lock", json!({ "path": "more" }));
}
