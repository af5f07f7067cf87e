//! `find` and `search` on trees that nobody would make by hand.

#![expect(clippy::disallowed_methods, reason = "the test makes trees from outside")]

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, symlink},
        net::UnixListener,
    },
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use serde_json::json;

use crate::support::Fixture;

#[test]
fn a_tree_with_more_levels_than_handles_is_walked_whole() {
    let fixture = Fixture::new();
    let mut directory = fixture.path("");
    for _ in 0..200 {
        directory.push("a");
        // Waits with its parent's handle until everything below its brother is done.
        fs::create_dir_all(directory.join("z")).unwrap();
        fs::write(directory.join("z/f.txt"), "needle\n").unwrap();
    }
    let found = fixture.ok("find", json!({ "pattern": "f.txt" }));
    assert_eq!((&found["total"], found.get("closed")), (&json!(200), None));
    let search = fixture.ok("search", json!({ "query": "needle" }));
    assert_eq!((&search["total"], &search["scanned"]), (&json!(200), &json!(200)));
}

#[test]
fn links_sockets_and_what_is_no_text_are_neither_followed_nor_waited_for() {
    let fixture = Fixture::new();
    fixture.put("d/f.txt", "needle\n");
    symlink("..", fixture.path("d/loop")).unwrap();
    symlink("f.txt", fixture.path("d/link.txt")).unwrap();
    symlink("/etc", fixture.path("d/out")).unwrap();
    let _socket = UnixListener::bind(fixture.path("d/socket")).unwrap();
    fs::write(fixture.path("d/binary"), [b"needle\0".as_slice(), &[7; 300_000]].concat()).unwrap();
    fs::write(fixture.path("d/large"), vec![b'x'; 5 << 20]).unwrap();
    fs::write(fixture.path("d/line"), [&vec![b'x'; 3 << 20][..], b"needle"].concat()).unwrap();
    let search = fixture.ok("search", json!({ "query": "needle" }));
    assert_eq!(search["total"], 2, "{search:?}");
    assert_eq!((&search["binary"], search.get("large")), (&json!(1), None), "{search:?}");
    assert!(format!("{search:?}").len() < 10_000, "a long line is cut");
}

#[test]
fn what_cannot_be_opened_is_counted() {
    let fixture = Fixture::new();
    fixture.put("d/f.txt", "needle\n");
    fixture.put("closed/f.txt", "needle\n");
    let bits = |mode| fs::set_permissions(fixture.path("closed"), fs::Permissions::from_mode(mode)).unwrap();
    bits(0);
    let free = fs::read_dir(fixture.path("closed")).is_ok();
    let search = fixture.ok("search", json!({ "query": "needle" }));
    let find = fixture.ok("find", json!({ "pattern": "f.txt" }));
    bits(0o755);
    // Nothing is closed to the superuser.
    let (total, closed) = if free { (json!(2), None) } else { (json!(1), Some(&json!(1))) };
    assert_eq!((&search["total"], search.get("unreadable")), (&total, closed));
    assert_eq!((&find["total"], find.get("closed")), (&total, closed));
}

#[test]
fn a_tree_that_changes_meanwhile_hides_nothing_that_stays() {
    let fixture = Fixture::new();
    for number in 0..600 {
        fixture.put(&format!("stays/d{}/f{number}.txt", number % 30), "needle\n");
    }
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !ended.load(Ordering::Relaxed) {
                number += 1;
                let place = fixture.path(&format!("comes/d{}", number % 7));
                fs::create_dir_all(&place).unwrap();
                fs::write(place.join("f.txt"), "other\n").unwrap();
                fs::remove_dir_all(&place).unwrap();
            }
        });
        for _ in 0..20 {
            let search = fixture.ok("search", json!({ "query": "needle", "max": 1000 }));
            assert_eq!(search["total"], 600);
            let find = fixture.ok("find", json!({ "pattern": "stays/**/*.txt", "max": 1000 }));
            assert_eq!((&find["total"], find.get("closed")), (&json!(600), None));
        }
        ended.store(true, Ordering::Relaxed);
    });
}
