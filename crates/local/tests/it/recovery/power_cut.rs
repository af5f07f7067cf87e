//! Tests the effects of a power cut on renames: an old name exists again, a directory was not moved, or a file is lost
//! with its name. The tests imitate a power cut by changing names on disk before the renames are synced.

#![expect(clippy::disallowed_methods, reason = "the test does what a power cut does")]

use std::{fs, path::PathBuf};

use serde_json::json;

use super::LocalFixture;
use crate::faults::check_journal;

/// A test is retried, because the changes may be synced before the test can damage them.
const CUT_TRIES_MAX: usize = 20;

/// Opens the workspace on another boot when the given number of journal entries is pending.
fn power_cut_after(entries: u64, life: impl Fn(&LocalFixture)) -> LocalFixture {
    for _ in 0..CUT_TRIES_MAX {
        let fixture = LocalFixture::open_on_first_boot();
        life(&fixture);
        let other = fixture.reopen_on_boot("second");
        let recovery = other.workspace.recovery();
        if recovery.entries == entries {
            assert_eq!(recovery.conflicts, 0, "{recovery:?}");
            return other;
        }
    }
    panic!("the changes were settled {CUT_TRIES_MAX} times before the cut");
}

impl LocalFixture {
    fn move_path(&self, from: &str, to: &str) {
        self.call_ok("move", json!({ "from": from, "to": to }));
    }

    /// The path of a hard link outside the workspace, with which a test keeps a file.
    fn saved_copy(&self) -> PathBuf {
        self.directory.path().join("saved")
    }

    fn exists_on_disk(&self, path: &str) -> bool {
        fs::symlink_metadata(self.path(path)).is_ok()
    }

    fn delete_blobs(&self) {
        let directory = self.directory.path().join("state/blobs");
        if directory.exists() {
            fs::remove_dir_all(&directory).unwrap();
        }
    }

    /// Moves a file and rewrites it; at the end, the moved file exists again under its old name.
    fn move_and_rewrite(&self, old: &str) {
        self.write("a/f", old);
        fs::hard_link(self.path("a/f"), self.saved_copy()).unwrap();
        self.move_path("a/f", "b");
        self.write("b", "new");
        fs::rename(self.saved_copy(), self.path("a/f")).unwrap();
    }
}

#[test]
fn old_name_beside_the_new_one_is_removed() {
    let other = power_cut_after(1, |fixture| {
        fixture.write("a/f", "old");
        fixture.move_path("a/f", "b");
        fs::hard_link(fixture.path("b"), fixture.path("a/f")).unwrap();
    });
    assert_eq!(other.text_on_disk("b").as_deref(), Some("old"));
    assert!(!other.exists_on_disk("a/f"));
    check_journal(&other, "both names");
}

#[test]
fn old_name_is_removed_after_a_rewrite_of_the_new_one() {
    let large = "l".repeat(100_000);
    for old in ["old", &large] {
        let other = power_cut_after(2, |fixture| {
            fixture.move_and_rewrite(old);
            // The power cut lost the retained version too.
            fixture.delete_blobs();
        });
        assert_eq!(other.text_on_disk("b").as_deref(), Some("new"));
        assert!(!other.exists_on_disk("a/f"));
        check_journal(&other, "the old name was back");
        other.call_ok("undo", json!({}));
        assert_eq!(other.text_on_disk("b").as_deref(), Some(old), "its bytes are kept");
        other.call_ok("undo", json!({}));
        assert_eq!(other.text_on_disk("a/f").as_deref(), Some(old));
    }
}

#[test]
fn old_name_is_removed_after_two_rewrites_of_the_new_one() {
    let other = power_cut_after(3, |fixture| {
        fixture.move_and_rewrite("old");
        fixture.write("b", "newer");
    });
    assert_eq!(other.text_on_disk("b").as_deref(), Some("newer"));
    assert!(!other.exists_on_disk("a/f"));
    check_journal(&other, "written twice");
}

#[test]
fn old_name_changed_by_others_is_kept() {
    let other = power_cut_after(2, |fixture| {
        fixture.move_and_rewrite("old");
        fs::write(fixture.path("a/f"), "theirs").unwrap();
    });
    assert_eq!(other.text_on_disk("a/f").as_deref(), Some("theirs"));
    assert_eq!(other.text_on_disk("b").as_deref(), Some("new"));
}

#[test]
fn another_file_at_the_old_name_is_kept() {
    let other = power_cut_after(2, |fixture| {
        fixture.move_and_rewrite("old");
        fs::write(fixture.saved_copy(), "old").unwrap();
        fs::rename(fixture.saved_copy(), fixture.path("a/f")).unwrap();
    });
    assert_eq!(other.text_on_disk("a/f").as_deref(), Some("old"));
}

#[test]
fn restored_and_rewritten_files_leave_the_trash() {
    let other = power_cut_after(3, |fixture| {
        fixture.write("f", "old");
        let removed = fixture.call_ok("remove", json!({ "path": "f" }));
        let item = fixture.directory.path().join("state/trash").join(removed["trash"].as_str().unwrap());
        fs::hard_link(&item, fixture.saved_copy()).unwrap();
        fixture.call_ok("restore", json!({ "trash": removed["trash"] }));
        fixture.write("f", "new");
        fs::rename(fixture.saved_copy(), item).unwrap();
    });
    assert_eq!(other.text_on_disk("f").as_deref(), Some("new"));
    assert_eq!(fs::read_dir(other.directory.path().join("state/trash")).unwrap().count(), 0);
    check_journal(&other, "restored");
}

#[test]
fn directory_move_is_redone_although_a_file_left_it() {
    let other = power_cut_after(2, |fixture| {
        fixture.write("d/f", "1");
        fixture.write("d/g", "2");
        fixture.move_path("d", "p/e");
        fixture.move_path("p/e/f", "c");
        fs::rename(fixture.path("p/e"), fixture.path("d")).unwrap();
        fs::remove_dir(fixture.path("p")).unwrap();
    });
    assert_eq!((other.text_on_disk("c").as_deref(), other.text_on_disk("p/e/g").as_deref()), (Some("1"), Some("2")));
    assert!(!other.exists_on_disk("d"));
    check_journal(&other, "the directory was back");
}

#[test]
fn directory_move_is_redone_although_a_file_came_back() {
    let other = power_cut_after(2, |fixture| {
        fixture.write("d/s/f", "1");
        fixture.write("d/g", "2");
        fixture.move_path("d", "n");
        fixture.move_path("n/s", "d/s");
        fs::rename(fixture.path("d/s"), fixture.path("n/s")).unwrap();
        fs::remove_dir(fixture.path("d")).unwrap();
        fs::rename(fixture.path("n"), fixture.path("d")).unwrap();
    });
    assert_eq!((other.text_on_disk("d/s/f").as_deref(), other.text_on_disk("n/g").as_deref()), (Some("1"), Some("2")));
    assert!(!other.exists_on_disk("d/g") && !other.exists_on_disk("n/s"));
    check_journal(&other, "neither rename survived");
}

#[test]
fn directory_creation_is_redone_although_a_child_was_removed() {
    let other = power_cut_after(3, |fixture| {
        fs::create_dir(fixture.path("empty")).unwrap();
        fixture.write("d/f", "1");
        fixture.move_path("d", "t/u");
        fixture.call_ok("copy", json!({ "from": "empty", "to": "t/v" }));
        fixture.call_ok("undo", json!({}));
        fs::rename(fixture.path("t/u"), fixture.path("d")).unwrap();
        fs::remove_dir(fixture.path("t")).unwrap();
    });
    assert_eq!(other.text_on_disk("t/u/f").as_deref(), Some("1"));
    assert!(!other.exists_on_disk("d") && !other.exists_on_disk("t/v"));
}

#[test]
fn directory_moved_back_and_written_into_is_kept() {
    let other = power_cut_after(2, |fixture| {
        fixture.write("d/f", "1");
        fixture.move_path("d", "e");
        fs::rename(fixture.path("e"), fixture.path("d")).unwrap();
        fixture.write("d/g", "2");
    });
    assert_eq!((other.text_on_disk("d/f").as_deref(), other.text_on_disk("d/g").as_deref()), (Some("1"), Some("2")));
    assert!(!other.exists_on_disk("e"));
}

#[test]
fn lost_replacement_is_rewritten() {
    let other = power_cut_after(2, |fixture| {
        fixture.write("a", "1");
        fixture.move_path("a", "b");
        fixture.write("b", "2");
        fs::remove_file(fixture.path("b")).unwrap();
    });
    assert_eq!(other.text_on_disk("b").as_deref(), Some("2"));
    check_journal(&other, "both were gone");
}
