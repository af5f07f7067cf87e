//! Directories are moved while other programs write in them. A client that applies every event ends with the same files
//! as on disk.

#![expect(clippy::disallowed_methods, reason = "the test is the other program")]

use std::{fs, path::Path, thread};

use serde_json::json;
use testkit::stress::SeededRng;

use crate::{event_follower::EventDerivedTestTree, support::LocalFixture, watch::TestWatchClient};

/// The client's files are compared with the disk after each round of random changes.
const ROUNDS: usize = 150;
const STEPS: u64 = 60;
const RESCANS_MAX: usize = 3;
/// A random test uses so few different file names that names are reused often.
const NAMES: u64 = 4;

fn random_directory(chance: &mut SeededRng) -> String {
    let mut path = format!("d{}", chance.below(NAMES));
    for _ in 0..chance.below(3) {
        path.push_str(&format!("/d{}", chance.below(NAMES)));
    }
    path
}

fn random_file(chance: &mut SeededRng) -> String {
    format!("{}/f{}", random_directory(chance), chance.below(NAMES))
}

fn random_change(ws: &Path, out: &Path, chance: &mut SeededRng) -> Option<String> {
    let (directory, other) = (random_directory(chance), random_directory(chance));
    let (name, target) = (random_file(chance), random_file(chance));
    let at = |path: &str| ws.join(path);
    let hidden = out.join(chance.below(NAMES).to_string());
    let (did, done) = match chance.below(12) {
        0..=2 => (format!("mkdir {directory}"), fs::create_dir_all(at(&directory))),
        3..=5 => (format!("write {name}"), fs::write(at(&name), chance.next_u64().to_string())),
        6 => (format!("mv {name} {target}"), fs::rename(at(&name), at(&target))),
        7 | 8 => (format!("mv {directory} {other}"), fs::rename(at(&directory), at(&other))),
        9 => (format!("mv {directory} OUT"), fs::rename(at(&directory), hidden)),
        10 => (format!("mv OUT {directory}"), fs::rename(hidden, at(&directory))),
        _ => match chance.below(4) {
            0 => (format!("rm -r {directory}"), fs::remove_dir_all(at(&directory))),
            _ => (format!("rm {name}"), fs::remove_file(at(&name))),
        },
    };
    done.ok().map(|()| did)
}

#[test]
fn moved_directories_are_followed_under_concurrent_writes() {
    let seed = SeededRng::seed_of_run().unwrap();
    let mut chance = SeededRng::from_seed(seed);
    let fixture = LocalFixture::new();
    let ws = fixture.path("");
    let out = fixture.directory.path().join("out");
    fs::create_dir(&out).unwrap();
    let mut listener = TestWatchClient::new(&fixture, json!({ "recursive": true }));
    let mut follower = EventDerivedTestTree::default();
    for round in 0..ROUNDS {
        let (directory, out, mut burst) = (ws.clone(), out.clone(), SeededRng::from_seed(chance.next_u64()));
        let other = thread::spawn(move || {
            (0..burst.below(STEPS)).filter_map(|_| random_change(&directory, &out, &mut burst)).collect::<Vec<_>>()
        });
        follower.recent_events.clear();
        while !other.is_finished() {
            follower.apply_page(&listener.next_page(1), &ws);
        }
        let done = other.join().unwrap();
        if let Err(unlike) = follower.catch_up(&mut listener, &ws) {
            let [done, heard] = [&done, &follower.recent_events].map(|lines| lines.join("\n"));
            panic!("seed {seed}, round {round}: {unlike}\ndone:\n{done}\nheard:\n{heard}");
        }
    }
    assert!(follower.events > ROUNDS);
    assert!(follower.rescans <= RESCANS_MAX, "{} rescans", follower.rescans);
}
