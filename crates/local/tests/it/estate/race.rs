//! Several openings of one estate make and end the same name at the same time: one of them wins, every time.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use std::{
    sync::{
        Barrier, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use engine::Kind;
use local::{Estate, EstateOptions, Paged};
use tempfile::TempDir;

use super::{ephemeral, name, names, open_at, read, steward, write};

const OPENINGS: usize = 4;
const ROUNDS: usize = 12;

#[test]
fn one_name_is_made_once_and_ended_once() {
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
    let (start, middle) = (Barrier::new(OPENINGS), Barrier::new(OPENINGS));
    let made = Mutex::new(0);
    let ended = Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..OPENINGS {
            scope.spawn(|| {
                let estate = open_at(place.path());
                for _ in 0..ROUNDS {
                    start.wait();
                    match estate.create(&steward(), &name("one"), &ephemeral()) {
                        Ok(one) => {
                            *made.lock().unwrap() += 1;
                            write(&estate.enter(&one.id).unwrap(), "a", "x");
                        }
                        Err(failure) => assert_eq!(failure.kind, Kind::Exists, "{failure:?}"),
                    }
                    middle.wait();
                    match estate.destroy(&steward(), &name("one")) {
                        Ok(_) => *ended.lock().unwrap() += 1,
                        Err(failure) => assert_eq!(failure.kind, Kind::NotFound, "{failure:?}"),
                    }
                }
            });
        }
    });
    assert_eq!((*made.lock().unwrap(), *ended.lock().unwrap()), (ROUNDS, ROUNDS));
    let estate = open_at(place.path());
    assert_eq!(names(&estate, Paged::Ready), [""; 0]);
    assert_eq!(std::fs::read_dir(place.path().join("estate/workspaces")).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(place.path().join("estate/trash")).unwrap().count(), 0);
}

/// A workspace is opened and used while it is ended and taken back elsewhere: nobody makes a second one out of it.
#[test]
fn what_is_ended_is_not_opened_again() {
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
    let estate = open_at(place.path());
    let made = estate.create(&steward(), &name("one"), &local::WorkspaceAsk::default()).unwrap();
    write(&estate.enter(&made.id).unwrap(), "a", "x");
    let until = Instant::now() + std::time::Duration::from_secs(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let other = open_at(place.path());
            while Instant::now() < until {
                match other.enter(&made.id) {
                    Ok(engine) => drop(super::call(&engine, "read", serde_json::json!({ "path": "a" }))),
                    Err(failure) => assert_eq!(failure.kind, Kind::NotFound, "{failure:?}"),
                }
                other.close_idle();
            }
        });
        while Instant::now() < until {
            estate.destroy(&steward(), &name("one")).unwrap();
            estate.restore(&steward(), "one", None).unwrap();
        }
    });
    assert_eq!(read(&estate.enter(&made.id).unwrap(), "a").as_deref(), Some("x"));
    assert_eq!(std::fs::read_dir(place.path().join("estate/workspaces")).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(place.path().join("estate/trash")).unwrap().count(), 0);
}

/// Room is made for the next workspace while somebody looks through the open ones for what nobody uses.
#[test]
fn looking_for_idle_workspaces_keeps_nobody_out() {
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
    let mut options = EstateOptions::new(place.path().join("estate"));
    options.open_max = 4;
    let estate = Estate::open(options).unwrap();
    let ids: Vec<String> = (0..8)
        .map(|number| estate.create(&steward(), &name(&format!("w{number}")), &ephemeral()).unwrap().id)
        .collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                estate.close_idle();
            }
        });
        for round in 0..400 {
            let entered = estate.enter(&ids[round % ids.len()]);
            if entered.is_err() {
                over.store(true, Ordering::Relaxed);
            }
            entered.unwrap();
        }
        over.store(true, Ordering::Relaxed);
    });
}
