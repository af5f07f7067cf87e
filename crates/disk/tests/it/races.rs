//! Tests that no read, write or removal reaches the outside while a thread replaces a directory by a link to the
//! outside.

use std::{
    fs,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use stead_disk::{DiskErrorKind, FileAttributeSource, FinalSymlink, RootDirectory, StagedContentSource};

use crate::fixture::{BOTH_RESOLVERS, DiskFixture, name, rel_path};

const ROUNDS: usize = 4_000;

struct RaceEndGuard<'a>(&'a AtomicBool);

impl Drop for RaceEndGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

const SWAPS_MIN: usize = 300;

/// The least number of attacks that must reach the real directory, so that a race test proves something.
const HITS_MIN: usize = 20;
const RACE_TIMEOUT: Duration = Duration::from_secs(60);

fn attack_while_swapping(f: &DiskFixture, target: &str, attack: impl Fn() -> usize) {
    let (inside, aside, link) = (f.workspace.join("d"), f.workspace.join("aside"), f.workspace.join("link"));
    let done = AtomicBool::new(false);
    let swaps = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::os::unix::fs::symlink(target, &link).unwrap();
                fs::rename(&inside, &aside).unwrap();
                fs::rename(&link, &inside).unwrap();
                fs::remove_file(&inside).unwrap();
                fs::rename(&aside, &inside).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let _done = RaceEndGuard(&done);
        let (start, mut rounds, mut hits) = (Instant::now(), 0, 0);
        while rounds < ROUNDS || swaps.load(Ordering::Relaxed) < SWAPS_MIN || hits < HITS_MIN {
            hits += attack();
            rounds += 1;
            assert!(start.elapsed() < RACE_TIMEOUT, "{rounds} rounds, {hits} hits, {swaps:?} swaps");
        }
    });
}

fn read_once(root: &RootDirectory, path: &str) -> Result<Vec<u8>, DiskErrorKind> {
    let canonical = root.canonicalize(&rel_path(path), FinalSymlink::Follow).map_err(|error| error.kind)?;
    root.open_file(&canonical).and_then(|file| file.read_all(99)).map_err(|error| error.kind)
}

#[test]
fn reads_never_leave_the_root() {
    for resolver in BOTH_RESOLVERS {
        for target in ["../out", "/etc", "nowhere"] {
            let f = DiskFixture::new();
            f.file("d/secret", "inside");
            let root = f.root(resolver);
            let (inside, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
            attack_while_swapping(&f, target, || match read_once(&root, "d/secret") {
                Ok(bytes) => {
                    assert_eq!(bytes, b"inside");
                    inside.fetch_add(1, Ordering::Relaxed);
                    1
                }
                Err(
                    DiskErrorKind::NotFound
                    | DiskErrorKind::ChangedConcurrently
                    | DiskErrorKind::OutsideRoot
                    | DiskErrorKind::IsSymlink,
                ) => {
                    refused.fetch_add(1, Ordering::Relaxed);
                    0
                }
                Err(other) => panic!("{resolver:?} {target}: {other:?}"),
            });
            eprintln!("{resolver:?} {target}: {inside:?} inside, {refused:?} refused");
        }
    }
}

#[test]
fn writes_never_leave_the_root() {
    for resolver in BOTH_RESOLVERS {
        let f = DiskFixture::new();
        f.directory("d");
        let root = f.root(resolver);
        attack_while_swapping(&f, "../out", || {
            let Ok(path) = root.canonicalize(&rel_path("d/new"), FinalSymlink::Follow) else { return 0 };
            let Some((parent, last)) = path.split() else { return 0 };
            let Ok(directory) = root.open_directory(&parent) else { return 0 };
            let attributes = FileAttributeSource::New { mode: 0o600 };
            let Ok(staged) = directory.stage_file(StagedContentSource::Bytes(b"x"), attributes) else { return 0 };
            if directory.rename_staged_to_new(&staged, &last).is_err() {
                staged.discard(&directory).unwrap();
            }
            1
        });
        assert_eq!(fs::read_dir(&f.outside).unwrap().count(), 1, "{resolver:?}: something was written outside");
        assert!(f.workspace.join("d/new").exists());
    }
}

#[test]
fn removals_never_leave_the_root() {
    for resolver in BOTH_RESOLVERS {
        let f = DiskFixture::new();
        f.directory("d");
        let root = f.root(resolver);
        let top = root.open_directory(&rel_path(".")).unwrap();
        let stop = AtomicBool::new(false);
        let swaps = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (real, place, swap) =
                    (f.workspace.join("real"), f.workspace.join("victim"), f.workspace.join("swap"));
                while !stop.load(Ordering::Relaxed) {
                    // The other thread may have removed the directory meanwhile.
                    fs::create_dir_all(real.join("sub")).unwrap_or_default();
                    fs::rename(&real, &place).unwrap_or_default();
                    std::os::unix::fs::symlink("../out", &swap).unwrap_or_default();
                    let exchange = rustix::fs::RenameFlags::EXCHANGE;
                    let here = rustix::fs::CWD;
                    if rustix::fs::renameat_with(here, &place, here, &swap, exchange).is_ok() {
                        swaps.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
            let _done = RaceEndGuard(&stop);
            let mut rounds = 0;
            while rounds < ROUNDS || swaps.load(Ordering::Relaxed) < SWAPS_MIN {
                top.remove_tree(&name("victim")).unwrap_or_default();
                rounds += 1;
            }
        });
        assert_eq!(fs::read(f.outside.join("secret")).unwrap(), b"secret");
    }
}
