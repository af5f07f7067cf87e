//! Attacks on the search index: its files are truncated, changed, replaced, outdated, half-built or from another
//! workspace. After an attack, searches still return the same results, and the next build repairs the index.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::json;
use stead_disk::faults::{FaultFilter, FaultPlan, FaultPlanThreadFilter, InjectedFaultEffect, arm_fault, disarm_fault};
use stead_local::IndexBuildAndUseMode;
use tempfile::TempDir;

use super::{SearchTestWorkspace, wait_for_new_timestamps};

const CHILD_DIRECTORY_ENV: &str = "STEAD_TEST_INDEX";
const CHILD_CALL_ENV: &str = "STEAD_TEST_INDEX_AT";
const FILES: usize = 40;
const QUERIES: &[&str] = &["needle7", "common", "nothing like it", "Übergröße"];

struct IndexAttackFixture {
    directory: TempDir,
    expected: Vec<String>,
}

impl IndexAttackFixture {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        for number in 0..FILES {
            let directory = place.path().join(format!("ws/d{}", number % 5));
            fs::create_dir_all(&directory).unwrap();
            let text = format!("common line {number}\nneedle{number} Übergröße\n");
            fs::write(directory.join(format!("f{number}.txt")), text).unwrap();
        }
        fs::write(place.path().join("ws/d0/binary"), b"common\0needle7").unwrap();
        wait_for_new_timestamps(place.path());
        let expected = search_answers(&SearchTestWorkspace::open(place.path(), "plain", IndexBuildAndUseMode::Off));
        let fixture = Self { directory: place, expected };
        let facts = fixture.open().workspace.build_index().unwrap();
        assert_eq!((facts.files, facts.segments), (FILES as u64 + 1, 1), "{facts:?}");
        fixture
    }

    fn open(&self) -> SearchTestWorkspace {
        SearchTestWorkspace::open(self.directory.path(), "state", IndexBuildAndUseMode::UseExisting)
    }

    fn index_directory(&self) -> PathBuf {
        self.directory.path().join("state/index")
    }

    fn files(&self) -> Vec<PathBuf> {
        let listed = fs::read_dir(self.index_directory()).unwrap();
        let mut files: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    /// The search results are checked twice, because the first search may detect the damage of the index.
    fn assert_answers(&self, what: &str) {
        let side = self.open();
        for time in ["first", "second"] {
            assert_eq!(search_answers(&side), self.expected, "{what}, the {time} time");
        }
    }

    fn assert_rebuilds(&self, what: &str) {
        let side = self.open();
        search_answers(&side);
        let facts = side.workspace.build_index().unwrap();
        assert_eq!(facts.model_files, Some(FILES as u64 + 1), "{what}: {facts:?}");
        let before = side.index_status().filtered_searches;
        assert_eq!(search_answers(&side), self.expected, "{what}");
        assert!(side.index_status().filtered_searches > before, "{what}: not used again");
    }
}

fn search_answers(side: &SearchTestWorkspace) -> Vec<String> {
    QUERIES.iter().map(|query| side.search(&json!({ "query": query }))).collect()
}

#[test]
fn flipped_bits_change_no_answer() {
    let fixture = IndexAttackFixture::new();
    for file in fixture.files() {
        let bytes = fs::read(&file).unwrap();
        let step = (bytes.len() / 48).max(1);
        for at in (0..bytes.len()).step_by(step).chain([bytes.len() - 1]) {
            let mut turned = bytes.clone();
            turned[at] ^= 1 << (at % 8);
            fs::write(&file, &turned).unwrap();
            fixture.assert_answers(&format!("bit in byte {at} of {}", file.display()));
        }
        fs::write(&file, &bytes).unwrap();
    }
    for file in fixture.files() {
        let mut bytes = fs::read(&file).unwrap();
        bytes[9] ^= 4;
        fs::write(&file, &bytes).unwrap();
    }
    fixture.assert_rebuilds("flipped bits");
}

#[test]
fn truncated_or_extended_index_changes_no_answer() {
    let fixture = IndexAttackFixture::new();
    for file in fixture.files() {
        let bytes = fs::read(&file).unwrap();
        let step = (bytes.len() / 24).max(1);
        for length in (0..bytes.len()).step_by(step).chain([bytes.len() - 1]) {
            fs::write(&file, &bytes[..length]).unwrap();
            fixture.assert_answers(&format!("{length} bytes of {}", file.display()));
        }
        fs::write(&file, [&bytes[..], &[0; 64]].concat()).unwrap();
        fixture.assert_answers("more at the end");
        fs::write(&file, [&bytes[..], &bytes[..]].concat()).unwrap();
        fixture.assert_answers("twice");
        fs::remove_file(&file).unwrap();
        fixture.assert_answers("missing");
        fs::write(&file, &bytes).unwrap();
    }
    fixture.assert_answers("everything back");
    fs::remove_file(&fixture.files()[1]).unwrap();
    fixture.assert_rebuilds("a missing segment");
}

#[test]
fn an_index_of_another_workspace_is_not_used() {
    let (fixture, other) = (IndexAttackFixture::new(), IndexAttackFixture::new());
    fs::write(other.directory.path().join("ws/d1/f1.txt"), "quite another text\n").unwrap();
    for file in other.files() {
        fs::copy(&file, fixture.index_directory().join(file.file_name().unwrap())).unwrap();
    }
    fixture.assert_answers("foreign files");
    assert_eq!(fixture.open().index_status().segments, 0);
    fixture.assert_rebuilds("foreign files");
    // The whole state of another workspace, with its key, is still bound to another directory.
    let moved = fixture.directory.path().join("moved");
    fs::rename(fixture.directory.path().join("state"), &moved).unwrap();
    assert!(
        Command::new("cp")
            .arg("-r")
            .arg(other.directory.path().join("state"))
            .arg(fixture.directory.path())
            .status()
            .unwrap()
            .success()
    );
    fixture.assert_answers("a foreign state directory");
    assert_eq!(fixture.open().index_status().segments, 0);
}

#[test]
fn an_old_index_does_not_hide_later_changes() {
    let fixture = IndexAttackFixture::new();
    let old = fixture.directory.path().join("old");
    let copy = |from: &Path, to: &Path| {
        fs::remove_dir_all(to).unwrap_or_default();
        assert!(Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap().success());
    };
    copy(&fixture.index_directory(), &old);
    let file = fixture.directory.path().join("ws/d2/f2.txt");
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    let text = fs::read_to_string(&file).unwrap().replace("needle2", "needle7");
    fs::write(&file, text).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
    wait_for_new_timestamps(fixture.directory.path());
    let expected =
        search_answers(&SearchTestWorkspace::open(fixture.directory.path(), "plain", IndexBuildAndUseMode::Off));
    assert_ne!(expected, fixture.expected);
    fixture.open().workspace.build_index().unwrap();
    copy(&old, &fixture.index_directory());
    let fixture = IndexAttackFixture { expected, ..fixture };
    fixture.assert_answers("an old index");
    fixture.assert_rebuilds("an old index");
}

#[test]
fn foreign_files_at_the_index_path_are_left_alone() {
    let fixture = IndexAttackFixture::new();
    let (index, aside) = (fixture.index_directory(), fixture.directory.path().join("aside"));
    let outside = fixture.directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), "1").unwrap();
    let make_pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    fs::rename(&index, &aside).unwrap();
    symlink(&outside, &index).unwrap();
    fixture.assert_answers("a link to elsewhere");
    assert!(fixture.open().workspace.build_index().is_err());
    fs::remove_file(&index).unwrap();
    make_pipe(&index);
    fixture.assert_answers("a pipe");
    assert!(fixture.open().workspace.build_index().is_err());
    fs::remove_file(&index).unwrap();
    fs::write(&index, "a file").unwrap();
    fixture.assert_answers("a file");
    fs::remove_file(&index).unwrap();
    fs::rename(&aside, &index).unwrap();
    for file in fixture.files() {
        let kept = outside.join("kept");
        fs::rename(&file, &kept).unwrap();
        make_pipe(&file);
        fixture.assert_answers("a pipe in the place of a file");
        fs::remove_file(&file).unwrap();
        symlink(&kept, &file).unwrap();
        fixture.assert_answers("a link in the place of a file");
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        fixture.assert_answers("a directory in the place of a file");
        fs::remove_dir(&file).unwrap();
        fs::rename(&kept, &file).unwrap();
    }
    fixture.assert_rebuilds("everything back");
    assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "1");
}

#[test]
fn disk_errors_leave_the_index_intact() {
    const NO_SPACE: i32 = 28;
    const IO_ERROR: i32 = 5;
    let fixture = IndexAttackFixture::new();
    let mut at = 1;
    loop {
        fixture.open().workspace.drop_index().unwrap();
        let side = fixture.open();
        let errno = if at % 2 == 0 { NO_SPACE } else { IO_ERROR };
        arm_fault(FaultPlan {
            call_number: at,
            action: InjectedFaultEffect::FailOnce(errno),
            scope: FaultPlanThreadFilter::ThisThread,
            calls: FaultFilter::All,
        });
        let built = side.workspace.build_index();
        let fired = disarm_fault();
        assert_eq!(search_answers(&side), fixture.expected, "call {at}, {fired:?}: {built:?}");
        if fired.hit_call.is_none() {
            break;
        }
        at += 1 + at / 12;
    }
    assert!(at > 50, "{at}");
    fixture.assert_rebuilds("all of it");
}

/// The test `child_process` does nothing unless two environment variables mark the process as a child.
#[test]
fn child_process() {
    let (Ok(directory), Ok(at)) = (std::env::var(CHILD_DIRECTORY_ENV), std::env::var(CHILD_CALL_ENV)) else {
        return;
    };
    let side = SearchTestWorkspace::open(Path::new(&directory), "state", IndexBuildAndUseMode::UseExisting);
    arm_fault(FaultPlan {
        call_number: at.parse().unwrap(),
        action: InjectedFaultEffect::Abort,
        scope: FaultPlanThreadFilter::ThisThread,
        calls: FaultFilter::All,
    });
    side.workspace.build_index().unwrap();
    assert!(disarm_fault().hit_call.is_none());
}

#[test]
fn index_survives_builder_death_at_any_call() {
    let fixture = IndexAttackFixture::new();
    let mut at = 1_u64;
    loop {
        fixture.open().workspace.drop_index().unwrap();
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "index::attacks::child_process", "--test-threads=1"])
            .env(CHILD_DIRECTORY_ENV, fixture.directory.path())
            .env(CHILD_CALL_ENV, at.to_string())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        fixture.assert_answers(&format!("a builder that died at call {at}"));
        if status.success() {
            break;
        }
        assert_eq!(status.code(), None, "call {at}: it did not die but fail");
        at += 1 + at / 12;
    }
    assert!(at > 50, "{at}");
    fixture.open().workspace.drop_index().unwrap();
    fixture.assert_rebuilds("all of them");
    assert_eq!(fixture.files().len(), 2, "{:?}", fixture.files());
}

#[test]
fn leftovers_of_a_killed_builder_are_removed() {
    let fixture = IndexAttackFixture::new();
    let segment = fixture.files().pop().unwrap();
    let half = fs::read(&segment).unwrap();
    fs::write(fixture.index_directory().join(".stead~0123456789"), &half[..half.len() / 2]).unwrap();
    fs::write(fixture.index_directory().join("segment-00000000000000000000000000000000"), &half).unwrap();
    fixture.assert_answers("leftovers");
    fs::write(fixture.directory.path().join("ws/new.txt"), "common new\n").unwrap();
    wait_for_new_timestamps(fixture.directory.path());
    fixture.open().workspace.build_index().unwrap();
    assert_eq!(fixture.files().len(), 3, "{:?}", fixture.files());
}

#[test]
fn two_processes_share_one_index() {
    let fixture = IndexAttackFixture::new();
    let (one, two) = (fixture.open(), fixture.open());
    assert_eq!((one.index_status().segments, two.index_status().segments), (1, 1));
    for number in 0..30 {
        let name = format!("ws/d1/more{number}.txt");
        fs::write(fixture.directory.path().join(name), format!("needle7 again {number}\n")).unwrap();
        wait_for_new_timestamps(fixture.directory.path());
        let builder = if number % 2 == 0 { &one } else { &two };
        builder.workspace.build_index().unwrap();
        let expected =
            search_answers(&SearchTestWorkspace::open(fixture.directory.path(), "plain", IndexBuildAndUseMode::Off));
        assert_eq!(search_answers(&one), expected);
        assert_eq!(search_answers(&two), expected);
    }
    // Small segments were merged from time to time.
    let facts = two.index_status();
    assert!(facts.segments <= 9, "{facts:?}");
    assert_eq!(one.index_status().segments, facts.segments);
    one.workspace.drop_index().unwrap();
    assert_eq!((one.index_status().segments, two.index_status().segments), (0, 0));
}
