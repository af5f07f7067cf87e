//! What is done to the index itself: cut, flipped, foreign, old, replaced by something else, half built. Whatever it is,
//! answers stay the same, and the next building puts it right.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use disk::faults::{Action, Calls, FaultPlan, Scope, arm, disarm};
use local::Indexing;
use serde_json::json;
use tempfile::TempDir;

use super::{Side, stamps_pass};

/// Says to the test `child_process` where it builds, and at which call it ends.
const CHILD_PLACE: &str = "STEAD_TEST_INDEX";
const CHILD_AT: &str = "STEAD_TEST_INDEX_AT";
const FILES: usize = 40;
const QUERIES: &[&str] = &["needle7", "common", "nothing like it", "Übergröße"];

/// A tree with an index, and its answers without.
struct Ground {
    place: TempDir,
    expected: Vec<String>,
}

impl Ground {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for number in 0..FILES {
            let directory = place.path().join(format!("ws/d{}", number % 5));
            fs::create_dir_all(&directory).unwrap();
            let text = format!("common line {number}\nneedle{number} Übergröße\n");
            fs::write(directory.join(format!("f{number}.txt")), text).unwrap();
        }
        fs::write(place.path().join("ws/d0/binary"), b"common\0needle7").unwrap();
        stamps_pass(place.path());
        let expected = answers(&Side::open(place.path(), "plain", Indexing::Off));
        let ground = Self { place, expected };
        let facts = ground.open().workspace.build_index().unwrap();
        assert_eq!((facts.files, facts.segments), (FILES as u64 + 1, 1), "{facts:?}");
        ground
    }

    fn open(&self) -> Side {
        Side::open(self.place.path(), "state", Indexing::Use)
    }

    fn index(&self) -> PathBuf {
        self.place.path().join("state/index")
    }

    /// The files of the index.
    fn files(&self) -> Vec<PathBuf> {
        let listed = fs::read_dir(self.index()).unwrap();
        let mut files: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    /// The same answers, twice, because the first may find out what is wrong; and all is well after building.
    fn holds(&self, what: &str) {
        let side = self.open();
        for time in ["first", "second"] {
            assert_eq!(answers(&side), self.expected, "{what}, the {time} time");
        }
    }

    fn heals(&self, what: &str) {
        let side = self.open();
        answers(&side);
        let facts = side.workspace.build_index().unwrap();
        assert_eq!(facts.known, Some(FILES as u64 + 1), "{what}: {facts:?}");
        let before = side.facts().sifted;
        assert_eq!(answers(&side), self.expected, "{what}");
        assert!(side.facts().sifted > before, "{what}: not used again");
    }
}

fn answers(side: &Side) -> Vec<String> {
    QUERIES.iter().map(|query| side.search(&json!({ "query": query }))).collect()
}

#[test]
fn a_flipped_bit_anywhere_changes_no_answer() {
    let ground = Ground::new();
    for file in ground.files() {
        let bytes = fs::read(&file).unwrap();
        let step = (bytes.len() / 48).max(1);
        for at in (0..bytes.len()).step_by(step).chain([bytes.len() - 1]) {
            let mut turned = bytes.clone();
            turned[at] ^= 1 << (at % 8);
            fs::write(&file, &turned).unwrap();
            ground.holds(&format!("bit in byte {at} of {}", file.display()));
        }
        fs::write(&file, &bytes).unwrap();
    }
    for file in ground.files() {
        let mut bytes = fs::read(&file).unwrap();
        bytes[9] ^= 4;
        fs::write(&file, &bytes).unwrap();
    }
    ground.heals("flipped bits");
}

#[test]
fn an_index_that_is_cut_or_longer_changes_no_answer() {
    let ground = Ground::new();
    for file in ground.files() {
        let bytes = fs::read(&file).unwrap();
        let step = (bytes.len() / 24).max(1);
        for length in (0..bytes.len()).step_by(step).chain([bytes.len() - 1]) {
            fs::write(&file, &bytes[..length]).unwrap();
            ground.holds(&format!("{length} bytes of {}", file.display()));
        }
        fs::write(&file, [&bytes[..], &[0; 64]].concat()).unwrap();
        ground.holds("more at the end");
        fs::write(&file, [&bytes[..], &bytes[..]].concat()).unwrap();
        ground.holds("twice");
        fs::remove_file(&file).unwrap();
        ground.holds("missing");
        fs::write(&file, &bytes).unwrap();
    }
    ground.holds("everything back");
    fs::remove_file(&ground.files()[1]).unwrap();
    ground.heals("a missing segment");
}

#[test]
fn an_index_of_another_workspace_is_not_used() {
    let (ground, other) = (Ground::new(), Ground::new());
    fs::write(other.place.path().join("ws/d1/f1.txt"), "quite another text\n").unwrap();
    for file in other.files() {
        fs::copy(&file, ground.index().join(file.file_name().unwrap())).unwrap();
    }
    ground.holds("foreign files");
    assert_eq!(ground.open().facts().segments, 0);
    ground.heals("foreign files");
    // The whole state of another workspace, key and all, is still bound to another directory.
    let moved = ground.place.path().join("moved");
    fs::rename(ground.place.path().join("state"), &moved).unwrap();
    assert!(
        Command::new("cp")
            .arg("-r")
            .arg(other.place.path().join("state"))
            .arg(ground.place.path())
            .status()
            .unwrap()
            .success()
    );
    ground.holds("a foreign state directory");
    assert_eq!(ground.open().facts().segments, 0);
}

#[test]
fn an_old_index_knows_nothing_of_what_changed_since() {
    let ground = Ground::new();
    let old = ground.place.path().join("old");
    let copy = |from: &Path, to: &Path| {
        fs::remove_dir_all(to).unwrap_or_default();
        assert!(Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap().success());
    };
    copy(&ground.index(), &old);
    let file = ground.place.path().join("ws/d2/f2.txt");
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    let text = fs::read_to_string(&file).unwrap().replace("needle2", "needle7");
    fs::write(&file, text).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
    stamps_pass(ground.place.path());
    let expected = answers(&Side::open(ground.place.path(), "plain", Indexing::Off));
    assert_ne!(expected, ground.expected);
    ground.open().workspace.build_index().unwrap();
    copy(&old, &ground.index());
    let ground = Ground { expected, ..ground };
    ground.holds("an old index");
    ground.heals("an old index");
}

#[test]
fn something_else_in_the_place_of_the_index_is_left_alone() {
    let ground = Ground::new();
    let (index, aside) = (ground.index(), ground.place.path().join("aside"));
    let outside = ground.place.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), "1").unwrap();
    let make_pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    fs::rename(&index, &aside).unwrap();
    symlink(&outside, &index).unwrap();
    ground.holds("a link to elsewhere");
    assert!(ground.open().workspace.build_index().is_err());
    fs::remove_file(&index).unwrap();
    make_pipe(&index);
    ground.holds("a pipe");
    assert!(ground.open().workspace.build_index().is_err());
    fs::remove_file(&index).unwrap();
    fs::write(&index, "a file").unwrap();
    ground.holds("a file");
    fs::remove_file(&index).unwrap();
    fs::rename(&aside, &index).unwrap();
    for file in ground.files() {
        let kept = outside.join("kept");
        fs::rename(&file, &kept).unwrap();
        make_pipe(&file);
        ground.holds("a pipe in the place of a file");
        fs::remove_file(&file).unwrap();
        symlink(&kept, &file).unwrap();
        ground.holds("a link in the place of a file");
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        ground.holds("a directory in the place of a file");
        fs::remove_dir(&file).unwrap();
        fs::rename(&kept, &file).unwrap();
    }
    ground.heals("everything back");
    assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "1");
}

#[test]
fn a_disk_that_fails_or_is_full_leaves_the_index_whole() {
    const NO_SPACE: i32 = 28;
    const IO: i32 = 5;
    let ground = Ground::new();
    let mut at = 1;
    loop {
        ground.open().workspace.drop_index().unwrap();
        let side = ground.open();
        let errno = if at % 2 == 0 { NO_SPACE } else { IO };
        arm(FaultPlan { at, action: Action::Errno(errno), scope: Scope::ThisThread, calls: Calls::All });
        let built = side.workspace.build_index();
        let fired = disarm();
        assert_eq!(answers(&side), ground.expected, "call {at}, {fired:?}: {built:?}");
        if fired.fired.is_none() {
            break;
        }
        at += 1 + at / 12;
    }
    assert!(at > 50, "{at}");
    ground.heals("all of it");
}

/// Builds in a process of its own, which ends at one of its calls.
#[test]
fn child_process() {
    let (Ok(place), Ok(at)) = (std::env::var(CHILD_PLACE), std::env::var(CHILD_AT)) else { return };
    let side = Side::open(Path::new(&place), "state", Indexing::Use);
    arm(FaultPlan {
        at: at.parse().unwrap(),
        action: Action::Abort,
        scope: Scope::ThisThread,
        calls: Calls::All,
    });
    side.workspace.build_index().unwrap();
    assert!(disarm().fired.is_none());
}

#[test]
fn a_builder_may_die_at_every_call() {
    let ground = Ground::new();
    let mut at = 1_u64;
    loop {
        ground.open().workspace.drop_index().unwrap();
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "index::attacks::child_process", "--test-threads=1"])
            .env(CHILD_PLACE, ground.place.path())
            .env(CHILD_AT, at.to_string())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        ground.holds(&format!("a builder that died at call {at}"));
        if status.success() {
            break;
        }
        assert_eq!(status.code(), None, "call {at}: it did not die but fail");
        at += 1 + at / 12;
    }
    assert!(at > 50, "{at}");
    ground.open().workspace.drop_index().unwrap();
    ground.heals("all of them");
    assert_eq!(ground.files().len(), 2, "{:?}", ground.files());
}

#[test]
fn what_a_killed_builder_left_is_cleared_away() {
    let ground = Ground::new();
    let segment = ground.files().pop().unwrap();
    let half = fs::read(&segment).unwrap();
    fs::write(ground.index().join(".stead~0123456789"), &half[..half.len() / 2]).unwrap();
    fs::write(ground.index().join("segment-00000000000000000000000000000000"), &half).unwrap();
    ground.holds("leftovers");
    fs::write(ground.place.path().join("ws/new.txt"), "common new\n").unwrap();
    stamps_pass(ground.place.path());
    ground.open().workspace.build_index().unwrap();
    assert_eq!(ground.files().len(), 3, "{:?}", ground.files());
}

#[test]
fn two_openings_share_one_index() {
    let ground = Ground::new();
    let (one, two) = (ground.open(), ground.open());
    assert_eq!((one.facts().segments, two.facts().segments), (1, 1));
    for number in 0..30 {
        let name = format!("ws/d1/more{number}.txt");
        fs::write(ground.place.path().join(name), format!("needle7 again {number}\n")).unwrap();
        stamps_pass(ground.place.path());
        let builder = if number % 2 == 0 { &one } else { &two };
        builder.workspace.build_index().unwrap();
        let expected = answers(&Side::open(ground.place.path(), "plain", Indexing::Off));
        assert_eq!(answers(&one), expected);
        assert_eq!(answers(&two), expected);
    }
    // Small segments were made into one now and then.
    let facts = two.facts();
    assert!(facts.segments <= 9, "{facts:?}");
    assert_eq!(one.facts().segments, facts.segments);
    one.workspace.drop_index().unwrap();
    assert_eq!((one.facts().segments, two.facts().segments), (0, 0));
}
