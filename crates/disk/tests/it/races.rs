//! A second thread that swaps a directory with a link to the outside, all the time. Every answer must be one of those
//! that are allowed, and none of them comes from outside.

use std::{
    fs,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use disk::{Attributes, ErrorKind, Last, Root, Source};

use crate::fixture::{BOTH, Fixture, name, rel};

/// Rounds per resolver and shape.
const ROUNDS: usize = 4_000;

/// Ends the other thread however this one ends.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Swaps that must have happened before a race counts as run.
const SWAPS_MIN: usize = 300;

/// Attempts that must have met the directory in its place, so that not all of them were refused.
const HITS_MIN: usize = 20;
/// When a race that does not come about is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `attack` while the directory is swapped; it says how often it met the directory in its place.
fn swapping(f: &Fixture, target: &str, attack: impl Fn() -> usize) {
    let (inside, aside, link) = (f.ws.join("d"), f.ws.join("aside"), f.ws.join("link"));
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
        let _done = Done(&done);
        let (start, mut rounds, mut hits) = (Instant::now(), 0, 0);
        while rounds < ROUNDS || swaps.load(Ordering::Relaxed) < SWAPS_MIN || hits < HITS_MIN {
            hits += attack();
            rounds += 1;
            assert!(start.elapsed() < PATIENCE, "{rounds} rounds, {hits} hits, {swaps:?} swaps");
        }
    });
}

fn read_once(root: &Root, path: &str) -> Result<Vec<u8>, ErrorKind> {
    let canonical = root.canonical(&rel(path), Last::Follow).map_err(|error| error.kind)?;
    root.open_file(&canonical).and_then(|file| file.read_all(99)).map_err(|error| error.kind)
}

#[test]
fn reads_never_leave() {
    for resolver in BOTH {
        for target in ["../out", "/etc", "nowhere"] {
            let f = Fixture::new();
            f.file("d/secret", "inside");
            let root = f.root(resolver);
            let (inside, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
            swapping(&f, target, || match read_once(&root, "d/secret") {
                Ok(bytes) => {
                    assert_eq!(bytes, b"inside");
                    inside.fetch_add(1, Ordering::Relaxed);
                    1
                }
                Err(ErrorKind::NotFound | ErrorKind::Moved | ErrorKind::Escape | ErrorKind::IsLink) => {
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
fn writes_never_leave() {
    for resolver in BOTH {
        let f = Fixture::new();
        f.directory("d");
        let root = f.root(resolver);
        swapping(&f, "../out", || {
            let Ok(path) = root.canonical(&rel("d/new"), Last::Follow) else { return 0 };
            let Some((parent, last)) = path.split() else { return 0 };
            let Ok(directory) = root.open_directory(&parent) else { return 0 };
            let attributes = Attributes::New { mode: 0o600 };
            let Ok(staged) = directory.stage(Source::Bytes(b"x"), attributes) else { return 0 };
            if directory.place_new(&staged, &last).is_err() {
                staged.discard(&directory).unwrap();
            }
            1
        });
        assert_eq!(fs::read_dir(&f.out).unwrap().count(), 1, "{resolver:?}: something was written outside");
        assert!(f.ws.join("d/new").exists());
    }
}

#[test]
fn removals_never_leave() {
    for resolver in BOTH {
        let f = Fixture::new();
        f.directory("d");
        let root = f.root(resolver);
        let top = root.open_directory(&rel(".")).unwrap();
        let stop = AtomicBool::new(false);
        let swaps = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (real, place, swap) = (f.ws.join("real"), f.ws.join("victim"), f.ws.join("swap"));
                while !stop.load(Ordering::Relaxed) {
                    // Whatever the remover took away meanwhile is made again.
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
            let _done = Done(&stop);
            let mut rounds = 0;
            while rounds < ROUNDS || swaps.load(Ordering::Relaxed) < SWAPS_MIN {
                top.remove_tree(&name("victim")).unwrap_or_default();
                rounds += 1;
            }
        });
        assert_eq!(fs::read(f.out.join("secret")).unwrap(), b"secret");
    }
}
