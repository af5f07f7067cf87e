//! Directories that move while others write in them: whatever another program does and however fast, a listener that does as
//! it is told ends up knowing every file.

#![expect(clippy::disallowed_methods, reason = "the test is the other program")]

use std::{fs, path::Path, thread};

use serde_json::json;
use testkit::rig::Chance;

use crate::{follower::Follower, support::Fixture, watch::Listener};

/// Bursts, each followed by a comparison.
const ROUNDS: usize = 150;
/// Changes of one burst, at most.
const STEPS: u64 = 60;
/// Nearly everything can be told.
const RESCANS_MAX: usize = 3;
/// Few names, so that they are used again and again.
const NAMES: u64 = 4;

fn directory(chance: &mut Chance) -> String {
    let mut path = format!("d{}", chance.below(NAMES));
    for _ in 0..chance.below(3) {
        path.push_str(&format!("/d{}", chance.below(NAMES)));
    }
    path
}

fn file(chance: &mut Chance) -> String {
    format!("{}/f{}", directory(chance), chance.below(NAMES))
}

/// One change, in words. Many of them cannot be made, and that is as good.
fn step(ws: &Path, out: &Path, chance: &mut Chance) -> Option<String> {
    let (place, other) = (directory(chance), directory(chance));
    let (name, target) = (file(chance), file(chance));
    let at = |path: &str| ws.join(path);
    let hidden = out.join(chance.below(NAMES).to_string());
    let (did, done) = match chance.below(12) {
        0..=2 => (format!("mkdir {place}"), fs::create_dir_all(at(&place))),
        3..=5 => (format!("write {name}"), fs::write(at(&name), chance.number().to_string())),
        6 => (format!("mv {name} {target}"), fs::rename(at(&name), at(&target))),
        7 | 8 => (format!("mv {place} {other}"), fs::rename(at(&place), at(&other))),
        9 => (format!("mv {place} OUT"), fs::rename(at(&place), hidden)),
        10 => (format!("mv OUT {place}"), fs::rename(hidden, at(&place))),
        _ => match chance.below(4) {
            0 => (format!("rm -r {place}"), fs::remove_dir_all(at(&place))),
            _ => (format!("rm {name}"), fs::remove_file(at(&name))),
        },
    };
    done.ok().map(|()| did)
}

#[test]
fn directories_that_move_under_writers_are_followed() {
    let seed = Chance::seed().unwrap();
    let mut chance = Chance::seeded(seed);
    let fixture = Fixture::new();
    let ws = fixture.path("");
    let out = fixture.place.path().join("out");
    fs::create_dir(&out).unwrap();
    let mut listener = Listener::new(&fixture, json!({ "recursive": true }));
    let mut follower = Follower::default();
    for round in 0..ROUNDS {
        let (place, out, mut burst) = (ws.clone(), out.clone(), Chance::seeded(chance.number()));
        let other = thread::spawn(move || {
            (0..burst.below(STEPS)).filter_map(|_| step(&place, &out, &mut burst)).collect::<Vec<_>>()
        });
        follower.heard.clear();
        while !other.is_finished() {
            for event in listener.page(1) {
                follower.take(&event, &ws);
            }
        }
        let done = other.join().unwrap();
        if let Err(unlike) = follower.catch_up(&mut listener, &ws) {
            let [done, heard] = [&done, &follower.heard].map(|lines| lines.join("\n"));
            panic!("seed {seed}, round {round}: {unlike}\ndone:\n{done}\nheard:\n{heard}");
        }
    }
    assert!(follower.events > ROUNDS);
    assert!(follower.rescans <= RESCANS_MAX, "{} rescans", follower.rescans);
}
