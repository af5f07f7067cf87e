//! Opening a workspace that another process has open, or left: what was done stays done, whatever became of the places
//! since, and nothing is done twice. A second opening stands for another process; another boot for a power cut, whose
//! damage is done by hand.

#![expect(clippy::disallowed_methods, reason = "the test does to the directory what others do")]

mod cut;

use std::{
    fs::{self, File},
    sync::Arc,
};

use local::{Clock, Moment};
use serde_json::json;

use crate::{
    faults::{check_journal, snapshot::snapshot},
    support::{Fixture, options},
};

/// A clock that stands still, on one start of the machine.
struct Boot(&'static str);

impl Clock for Boot {
    fn now(&self) -> Moment {
        Moment { wall_ms: 1_800_000_000_000, uptime_ms: 1_000, boot: self.0.to_owned() }
    }
}

impl Fixture {
    /// A new workspace on the first start of the machine.
    fn on_first_boot() -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut options = options(&place);
        options.clock = Arc::new(Boot("first"));
        Self::open(place, options)
    }

    /// The same workspace, opened once more without closing it.
    fn again_on(&self, boot: &'static str) -> Self {
        let mut options = options(&self.place);
        options.clock = Arc::new(Boot(boot));
        Self::open(Arc::clone(&self.place), options)
    }

    /// Nothing changes by opening it again, and the journal tells what is there.
    fn undisturbed(&self, boot: &'static str) {
        let before = snapshot(&self.path(""));
        let entries = self.engine.workspace().head().unwrap().number;
        let other = self.again_on(boot);
        let recovery = other.workspace.recovery();
        assert_eq!((recovery.replayed, recovery.conflicts), (0, 0), "{boot}");
        assert_eq!(snapshot(&self.path("")), before, "{boot}");
        assert_eq!(other.engine.workspace().head().unwrap().number, entries, "{boot}");
        // A change on the same places is not hindered, nor does it disturb.
        other.ok("list", json!({}));
    }

    fn write(&self, path: &str, content: &str) {
        let base = self.text(path).map(|text| engine::Version::of(text.as_bytes()).to_string());
        self.ok("write", json!({ "path": path, "content": content, "base": base.unwrap_or_default() }));
    }
}

/// Ways to change one place several times, none of which is settled.
const CHAINS: &[fn(&Fixture)] = &[
    |f| {
        f.write("f", "1");
        f.write("f", "2");
        f.write("f", "3");
    },
    |f| {
        f.write("f", "1");
        f.ok("remove", json!({ "path": "f" }));
    },
    |f| {
        f.write("f", "1");
        f.ok("remove", json!({ "path": "f" }));
        f.ok("undo", json!({}));
    },
    |f| {
        f.write("d/f", "1");
        f.ok("undo", json!({}));
        f.ok("redo", json!({}));
        f.ok("undo", json!({}));
    },
    |f| {
        f.write("a", "1");
        f.ok("move", json!({ "from": "a", "to": "b" }));
        f.ok("undo", json!({}));
    },
    |f| {
        f.write("d/e/f", "1");
        f.ok("move", json!({ "from": "d", "to": "x" }));
        f.write("x/e/f", "2");
        f.ok("remove", json!({ "path": "x", "recursive": true }));
        f.write("d/e/f", "3");
    },
    |f| {
        f.write("d/keep", "1");
        f.ok("remove", json!({ "path": "d/keep" }));
        f.ok("copy", json!({ "from": "d", "to": "e" }));
        f.ok("remove", json!({ "path": "e" }));
        f.ok("remove", json!({ "path": "d" }));
    },
    |f| {
        let large = "l".repeat(100_000);
        f.write("f", &large);
        f.write("f", "small");
        f.write("f", &large);
        f.ok("move", json!({ "from": "f", "to": "g" }));
        f.write("f", "1");
        f.ok("move", json!({ "from": "g", "to": "f", "overwrite": true }));
    },
];

#[test]
fn later_changes_of_the_same_places_stay() {
    for chain in CHAINS {
        let fixture = Fixture::on_first_boot();
        chain(&fixture);
        check_journal(&fixture, "before");
        fixture.undisturbed("first");
        check_journal(&fixture, "opened again");
        fixture.undisturbed("second");
        check_journal(&fixture, "opened after another start of the machine");
    }
}

#[test]
fn what_others_did_since_stays() {
    let fixture = Fixture::on_first_boot();
    for path in ["removed", "replaced", "grown", "moved"] {
        fixture.write(path, "ours\n");
    }
    fixture.write("d/f", "ours");
    fs::remove_file(fixture.path("removed")).unwrap();
    fs::write(fixture.path("theirs"), "theirs").unwrap();
    fs::rename(fixture.path("theirs"), fixture.path("replaced")).unwrap();
    std::io::Write::write_all(
        &mut File::options().append(true).open(fixture.path("grown")).unwrap(),
        b"theirs\n",
    )
    .unwrap();
    fs::rename(fixture.path("moved"), fixture.path("elsewhere")).unwrap();
    fs::rename(fixture.path("d"), fixture.path("e")).unwrap();
    fixture.undisturbed("first");
}

#[test]
fn two_processes_see_each_others_changes_as_done() {
    let one = Fixture::on_first_boot();
    let two = one.again_on("first");
    for round in 0..5 {
        one.write("f", &format!("one {round}"));
        one.write("f", &format!("one again {round}"));
        two.write("f", &format!("two {round}"));
        two.ok("remove", json!({ "path": "f" }));
        one.write("f", "back");
    }
    check_journal(&one, "by turns");
    check_journal(&two, "by turns");
    one.ok("undo", json!({}));
    assert_eq!(one.text("f"), None);
}

/// Makes a file look as a power cut leaves one that was renamed before its bytes were written.
fn tear(fixture: &Fixture, path: &str) {
    let file = File::options().write(true).open(fixture.path(path)).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.set_len(1).unwrap();
    file.set_modified(modified).unwrap();
}

#[test]
fn torn_files_are_written_again_after_a_power_cut() {
    let fixture = Fixture::on_first_boot();
    fixture.write("new", "12345");
    fixture.write("f", "before");
    fixture.write("f", "after");
    fixture.write("edited", "12345");
    tear(&fixture, "new");
    tear(&fixture, "f");
    fs::write(fixture.path("edited"), "x").unwrap();
    let other = fixture.again_on("second");
    assert_eq!(other.text("new").as_deref(), Some("12345"));
    assert_eq!(other.text("f").as_deref(), Some("after"));
    assert_eq!(other.text("edited").as_deref(), Some("x"), "somebody wrote to it: not torn");
    other.ok("undo", json!({ "entry": 3 }));
    assert_eq!(other.text("f").as_deref(), Some("before"));
}

#[test]
fn lost_renames_are_done_again_after_a_power_cut() {
    for survived in ["", "1", "2", "3"] {
        let fixture = Fixture::on_first_boot();
        for content in ["1", "2", "3"] {
            fixture.write("f", content);
        }
        fixture.write("gone", "x");
        fs::remove_file(fixture.path("gone")).unwrap();
        fs::remove_file(fixture.path("f")).unwrap();
        if !survived.is_empty() {
            fs::write(fixture.path("f"), survived).unwrap();
        }
        let other = fixture.again_on("second");
        assert_eq!(other.text("f").as_deref(), Some("3"), "{survived:?}");
        assert_eq!(other.text("gone").as_deref(), Some("x"));
        check_journal(&other, survived);
    }
}

#[test]
fn what_moves_is_on_the_device_first() {
    let fixture = Fixture::on_first_boot();
    fixture.write("d/f", "1");
    fixture.ok("move", json!({ "from": "d", "to": "e" }));
    // Only the move is pending: the file it took along was settled before.
    let other = fixture.again_on("second");
    assert_eq!(other.workspace.recovery().entries, 1);
}

#[test]
fn an_unfinished_entry_is_finished_before_its_tree_is_touched() {
    let fixture = Fixture::on_first_boot();
    fixture.write("d/f", "1");
    let two = fixture.again_on("first");
    fixture.write("d/f", "2");
    fixture.ok("remove", json!({ "path": "d", "recursive": true }));
    two.write("d/f", "3");
    assert_eq!(two.text("d/f").as_deref(), Some("3"));
    check_journal(&two, "written below what another process removed");
}

#[test]
fn a_new_directory_where_one_was_taken_away_stays() {
    let fixture = Fixture::on_first_boot();
    fixture.write("d/f", "1");
    fixture.ok("undo", json!({}));
    assert!(fs::symlink_metadata(fixture.path("d")).is_err());
    fs::create_dir(fixture.path("d")).unwrap();
    for boot in ["first", "second"] {
        fixture.undisturbed(boot);
    }
}
