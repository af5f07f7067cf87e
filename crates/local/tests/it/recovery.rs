//! Tests the recovery of a workspace that another process has open or did not close. Recovery keeps applied changes,
//! even if their paths changed afterwards, and applies nothing twice. The tests open the workspace a second time
//! instead of starting another process.

#![expect(clippy::disallowed_methods, reason = "the test does to the directory what others do")]

mod power_cut;

use std::{
    fs::{self, File},
    sync::Arc,
};

use serde_json::json;
use stead_local::{Clock, ClockReading};

use crate::{
    faults::{check_journal, snapshot::take_snapshot},
    support::{LocalFixture, test_options},
};

struct FixedBootClock(&'static str);

impl Clock for FixedBootClock {
    fn now(&self) -> ClockReading {
        ClockReading { wall_ms: 1_800_000_000_000, uptime_ms: 1_000, boot_id: self.0.to_owned() }
    }
}

impl LocalFixture {
    fn open_on_first_boot() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = test_options(&directory);
        options.clock = Arc::new(FixedBootClock("first"));
        Self::open(directory, options)
    }

    fn reopen_on_boot(&self, boot: &'static str) -> Self {
        let mut options = test_options(&self.directory);
        options.clock = Arc::new(FixedBootClock(boot));
        Self::open(Arc::clone(&self.directory), options)
    }

    fn assert_recovers_without_conflict(&self, boot: &'static str) {
        let before = take_snapshot(&self.path(""));
        let entries = self.engine.workspace().head().unwrap().number;
        let other = self.reopen_on_boot(boot);
        let recovery = other.workspace.recovery();
        assert_eq!((recovery.redone_steps, recovery.conflicts), (0, 0), "{boot}");
        assert_eq!(take_snapshot(&self.path("")), before, "{boot}");
        assert_eq!(other.engine.workspace().head().unwrap().number, entries, "{boot}");
        // A change of the same paths still works and disturbs nothing.
        other.call_ok("list", json!({}));
    }
}

/// Each function calls the workspace several times to change one path without a sync.
const CHANGE_CHAINS: &[fn(&LocalFixture)] = &[
    |f| {
        f.write("f", "1");
        f.write("f", "2");
        f.write("f", "3");
    },
    |f| {
        f.write("f", "1");
        f.call_ok("remove", json!({ "path": "f" }));
    },
    |f| {
        f.write("f", "1");
        f.call_ok("remove", json!({ "path": "f" }));
        f.call_ok("undo", json!({}));
    },
    |f| {
        f.write("d/f", "1");
        f.call_ok("undo", json!({}));
        f.call_ok("redo", json!({}));
        f.call_ok("undo", json!({}));
    },
    |f| {
        f.write("a", "1");
        f.call_ok("move", json!({ "from": "a", "to": "b" }));
        f.call_ok("undo", json!({}));
    },
    |f| {
        f.write("d/e/f", "1");
        f.call_ok("move", json!({ "from": "d", "to": "x" }));
        f.write("x/e/f", "2");
        f.call_ok("remove", json!({ "path": "x", "recursive": true }));
        f.write("d/e/f", "3");
    },
    |f| {
        f.write("d/keep", "1");
        f.call_ok("remove", json!({ "path": "d/keep" }));
        f.call_ok("copy", json!({ "from": "d", "to": "e" }));
        f.call_ok("remove", json!({ "path": "e" }));
        f.call_ok("remove", json!({ "path": "d" }));
    },
    |f| {
        let large = "l".repeat(100_000);
        f.write("f", &large);
        f.write("f", "small");
        f.write("f", &large);
        f.call_ok("move", json!({ "from": "f", "to": "g" }));
        f.write("f", "1");
        f.call_ok("move", json!({ "from": "g", "to": "f", "overwrite": true }));
    },
];

#[test]
fn recovery_keeps_later_changes_of_the_same_paths() {
    for chain in CHANGE_CHAINS {
        let fixture = LocalFixture::open_on_first_boot();
        chain(&fixture);
        check_journal(&fixture, "before");
        fixture.assert_recovers_without_conflict("first");
        check_journal(&fixture, "opened again");
        fixture.assert_recovers_without_conflict("second");
        check_journal(&fixture, "opened after another start of the machine");
    }
}

#[test]
fn recovery_keeps_foreign_changes() {
    let fixture = LocalFixture::open_on_first_boot();
    for path in ["removed", "replaced", "grown", "moved"] {
        fixture.write(path, "ours\n");
    }
    fixture.write("d/f", "ours");
    fs::remove_file(fixture.path("removed")).unwrap();
    fs::write(fixture.path("theirs"), "theirs").unwrap();
    fs::rename(fixture.path("theirs"), fixture.path("replaced")).unwrap();
    std::io::Write::write_all(&mut File::options().append(true).open(fixture.path("grown")).unwrap(), b"theirs\n")
        .unwrap();
    fs::rename(fixture.path("moved"), fixture.path("elsewhere")).unwrap();
    fs::rename(fixture.path("d"), fixture.path("e")).unwrap();
    fixture.assert_recovers_without_conflict("first");
}

#[test]
fn two_processes_see_each_others_applied_changes() {
    let one = LocalFixture::open_on_first_boot();
    let two = one.reopen_on_boot("first");
    for round in 0..5 {
        one.write("f", &format!("one {round}"));
        one.write("f", &format!("one again {round}"));
        two.write("f", &format!("two {round}"));
        two.call_ok("remove", json!({ "path": "f" }));
        one.write("f", "back");
    }
    check_journal(&one, "by turns");
    check_journal(&two, "by turns");
    one.call_ok("undo", json!({}));
    assert_eq!(one.text_on_disk("f"), None);
}

/// Truncates a file, as a power cut between the rename and the write of the content would.
fn tear_file(fixture: &LocalFixture, path: &str) {
    let file = File::options().write(true).open(fixture.path(path)).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.set_len(1).unwrap();
    file.set_modified(modified).unwrap();
}

#[test]
fn torn_files_are_rewritten_after_a_power_cut() {
    let fixture = LocalFixture::open_on_first_boot();
    fixture.write("new", "12345");
    fixture.write("f", "before");
    fixture.write("f", "after");
    fixture.write("edited", "12345");
    tear_file(&fixture, "new");
    tear_file(&fixture, "f");
    fs::write(fixture.path("edited"), "x").unwrap();
    let other = fixture.reopen_on_boot("second");
    assert_eq!(other.text_on_disk("new").as_deref(), Some("12345"));
    assert_eq!(other.text_on_disk("f").as_deref(), Some("after"));
    assert_eq!(other.text_on_disk("edited").as_deref(), Some("x"), "somebody wrote to it: not torn");
    other.call_ok("undo", json!({ "entry": 3 }));
    assert_eq!(other.text_on_disk("f").as_deref(), Some("before"));
}

#[test]
fn lost_renames_are_redone_after_a_power_cut() {
    for survived in ["", "1", "2", "3"] {
        let fixture = LocalFixture::open_on_first_boot();
        for content in ["1", "2", "3"] {
            fixture.write("f", content);
        }
        fixture.write("gone", "x");
        fs::remove_file(fixture.path("gone")).unwrap();
        fs::remove_file(fixture.path("f")).unwrap();
        if !survived.is_empty() {
            fs::write(fixture.path("f"), survived).unwrap();
        }
        let other = fixture.reopen_on_boot("second");
        assert_eq!(other.text_on_disk("f").as_deref(), Some("3"), "{survived:?}");
        assert_eq!(other.text_on_disk("gone").as_deref(), Some("x"));
        check_journal(&other, survived);
    }
}

#[test]
fn content_is_synced_before_it_is_moved() {
    let fixture = LocalFixture::open_on_first_boot();
    fixture.write("d/f", "1");
    fixture.call_ok("move", json!({ "from": "d", "to": "e" }));
    // Only the move is pending: the moved file was synced before.
    let other = fixture.reopen_on_boot("second");
    assert_eq!(other.workspace.recovery().entries, 1);
}

#[test]
fn unfinished_entries_finish_before_their_tree_changes() {
    let fixture = LocalFixture::open_on_first_boot();
    fixture.write("d/f", "1");
    let two = fixture.reopen_on_boot("first");
    fixture.write("d/f", "2");
    fixture.call_ok("remove", json!({ "path": "d", "recursive": true }));
    two.write("d/f", "3");
    assert_eq!(two.text_on_disk("d/f").as_deref(), Some("3"));
    check_journal(&two, "written below what another process removed");
}

#[test]
fn recovery_keeps_a_directory_recreated_later() {
    let fixture = LocalFixture::open_on_first_boot();
    fixture.write("d/f", "1");
    fixture.call_ok("undo", json!({}));
    assert!(fs::symlink_metadata(fixture.path("d")).is_err());
    fs::create_dir(fixture.path("d")).unwrap();
    for boot in ["first", "second"] {
        fixture.assert_recovers_without_conflict(boot);
    }
}
