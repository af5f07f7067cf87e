//! What a power cut can leave of renames: an old name that is back, a directory that never moved, a file that is gone
//! with the name it had. The damage is done by hand while the changes are pending.

#![expect(clippy::disallowed_methods, reason = "the test does what a power cut does")]

use std::{fs, path::PathBuf};

use serde_json::json;

use super::Fixture;
use crate::faults::check_journal;

/// How often a life is lived again because its changes were settled before the damage was done.
const TRIES: usize = 20;

/// Opens what this life leaves on another start of the machine, with this many of its changes pending.
fn cut(entries: u64, life: impl Fn(&Fixture)) -> Fixture {
    for _ in 0..TRIES {
        let fixture = Fixture::on_first_boot();
        life(&fixture);
        let other = fixture.again_on("second");
        let recovery = other.workspace.recovery();
        if recovery.entries == entries {
            assert_eq!(recovery.conflicts, 0, "{recovery:?}");
            return other;
        }
    }
    panic!("the changes were settled {TRIES} times before the cut");
}

impl Fixture {
    fn shift(&self, from: &str, to: &str) {
        self.ok("move", json!({ "from": from, "to": to }));
    }

    /// Where a file is kept alive, out of the workspace.
    fn saved(&self) -> PathBuf {
        self.place.path().join("saved")
    }

    fn is_there(&self, path: &str) -> bool {
        fs::symlink_metadata(self.path(path)).is_ok()
    }

    /// What was kept as files is gone.
    fn lose_blobs(&self) {
        let place = self.place.path().join("state/blobs");
        if place.exists() {
            fs::remove_dir_all(&place).unwrap();
        }
    }

    /// A file moves, its new place is written again, and then its old name is back.
    fn move_and_write_again(&self, old: &str) {
        self.write("a/f", old);
        fs::hard_link(self.path("a/f"), self.saved()).unwrap();
        self.shift("a/f", "b");
        self.write("b", "new");
        fs::rename(self.saved(), self.path("a/f")).unwrap();
    }
}

#[test]
fn an_old_name_beside_the_new_one_is_dropped() {
    let other = cut(1, |life| {
        life.write("a/f", "old");
        life.shift("a/f", "b");
        fs::hard_link(life.path("b"), life.path("a/f")).unwrap();
    });
    assert_eq!(other.text("b").as_deref(), Some("old"));
    assert!(!other.is_there("a/f"));
    check_journal(&other, "both names");
}

#[test]
fn an_old_name_is_dropped_when_the_new_one_was_written_again() {
    let large = "l".repeat(100_000);
    for old in ["old", &large] {
        let other = cut(2, |life| {
            life.move_and_write_again(old);
            // Nor did the cut leave what was kept of it.
            life.lose_blobs();
        });
        assert_eq!(other.text("b").as_deref(), Some("new"));
        assert!(!other.is_there("a/f"));
        check_journal(&other, "the old name was back");
        other.ok("undo", json!({}));
        assert_eq!(other.text("b").as_deref(), Some(old), "its bytes are kept");
        other.ok("undo", json!({}));
        assert_eq!(other.text("a/f").as_deref(), Some(old));
    }
}

#[test]
fn an_old_name_is_dropped_when_the_new_one_was_written_twice() {
    let other = cut(3, |life| {
        life.move_and_write_again("old");
        life.write("b", "newer");
    });
    assert_eq!(other.text("b").as_deref(), Some("newer"));
    assert!(!other.is_there("a/f"));
    check_journal(&other, "written twice");
}

#[test]
fn an_old_name_that_somebody_wrote_to_stays() {
    let other = cut(2, |life| {
        life.move_and_write_again("old");
        fs::write(life.path("a/f"), "theirs").unwrap();
    });
    assert_eq!(other.text("a/f").as_deref(), Some("theirs"));
    assert_eq!(other.text("b").as_deref(), Some("new"));
}

#[test]
fn another_file_at_the_old_name_stays() {
    let other = cut(2, |life| {
        life.move_and_write_again("old");
        fs::write(life.saved(), "old").unwrap();
        fs::rename(life.saved(), life.path("a/f")).unwrap();
    });
    assert_eq!(other.text("a/f").as_deref(), Some("old"));
}

#[test]
fn what_came_out_of_the_trash_and_was_written_again_is_not_in_it() {
    let other = cut(3, |life| {
        life.write("f", "old");
        let removed = life.ok("remove", json!({ "path": "f" }));
        let item = life.place.path().join("state/trash").join(removed["trash"].as_str().unwrap());
        fs::hard_link(&item, life.saved()).unwrap();
        life.ok("restore", json!({ "trash": removed["trash"] }));
        life.write("f", "new");
        fs::rename(life.saved(), item).unwrap();
    });
    assert_eq!(other.text("f").as_deref(), Some("new"));
    assert_eq!(fs::read_dir(other.place.path().join("state/trash")).unwrap().count(), 0);
    check_journal(&other, "restored");
}

#[test]
fn a_directory_that_did_not_move_moves_although_what_left_it_survived() {
    let other = cut(2, |life| {
        life.write("d/f", "1");
        life.write("d/g", "2");
        life.shift("d", "p/e");
        life.shift("p/e/f", "c");
        fs::rename(life.path("p/e"), life.path("d")).unwrap();
        fs::remove_dir(life.path("p")).unwrap();
    });
    assert_eq!((other.text("c").as_deref(), other.text("p/e/g").as_deref()), (Some("1"), Some("2")));
    assert!(!other.is_there("d"));
    check_journal(&other, "the directory was back");
}

#[test]
fn a_directory_that_did_not_move_moves_although_what_came_back_from_it_was_never_away() {
    let other = cut(2, |life| {
        life.write("d/s/f", "1");
        life.write("d/g", "2");
        life.shift("d", "n");
        life.shift("n/s", "d/s");
        fs::rename(life.path("d/s"), life.path("n/s")).unwrap();
        fs::remove_dir(life.path("d")).unwrap();
        fs::rename(life.path("n"), life.path("d")).unwrap();
    });
    assert_eq!((other.text("d/s/f").as_deref(), other.text("n/g").as_deref()), (Some("1"), Some("2")));
    assert!(!other.is_there("d/g") && !other.is_there("n/s"));
    check_journal(&other, "neither rename survived");
}

#[test]
fn a_directory_is_made_although_one_in_it_was_taken_away() {
    let other = cut(3, |life| {
        fs::create_dir(life.path("empty")).unwrap();
        life.write("d/f", "1");
        life.shift("d", "t/u");
        life.ok("copy", json!({ "from": "empty", "to": "t/v" }));
        life.ok("undo", json!({}));
        fs::rename(life.path("t/u"), life.path("d")).unwrap();
        fs::remove_dir(life.path("t")).unwrap();
    });
    assert_eq!(other.text("t/u/f").as_deref(), Some("1"));
    assert!(!other.is_there("d") && !other.is_there("t/v"));
}

#[test]
fn a_directory_that_somebody_moved_back_and_we_wrote_into_stays() {
    let other = cut(2, |life| {
        life.write("d/f", "1");
        life.shift("d", "e");
        fs::rename(life.path("e"), life.path("d")).unwrap();
        life.write("d/g", "2");
    });
    assert_eq!((other.text("d/f").as_deref(), other.text("d/g").as_deref()), (Some("1"), Some("2")));
    assert!(!other.is_there("e"));
}

#[test]
fn a_file_that_is_gone_with_what_it_replaced_is_written_again() {
    let other = cut(2, |life| {
        life.write("a", "1");
        life.shift("a", "b");
        life.write("b", "2");
        fs::remove_file(life.path("b")).unwrap();
    });
    assert_eq!(other.text("b").as_deref(), Some("2"));
    check_journal(&other, "both were gone");
}
