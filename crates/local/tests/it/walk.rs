//! Tests `find` and `search` on unusual directory trees.

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

use crate::support::LocalFixture;

#[test]
fn deep_trees_are_walked_with_few_handles() {
    let fixture = LocalFixture::new();
    let mut directory = fixture.path("");
    for _ in 0..200 {
        directory.push("a");
        // This directory waits with its parent's handle until everything below its sibling is done.
        fs::create_dir_all(directory.join("z")).unwrap();
        fs::write(directory.join("z/f.txt"), "needle\n").unwrap();
    }
    let found = fixture.call_ok("find", json!({ "pattern": "f.txt" }));
    assert_eq!((&found["total"], found.get("closed")), (&json!(200), None));
    let search = fixture.call_ok("search", json!({ "query": "needle" }));
    assert_eq!((&search["total"], &search["scanned"]), (&json!(200), &json!(200)));
}

#[test]
fn special_files_are_neither_followed_nor_waited_for() {
    let fixture = LocalFixture::new();
    fixture.write_on_disk("d/f.txt", "needle\n");
    symlink("..", fixture.path("d/loop")).unwrap();
    symlink("f.txt", fixture.path("d/link.txt")).unwrap();
    symlink("/etc", fixture.path("d/out")).unwrap();
    let _socket = UnixListener::bind(fixture.path("d/socket")).unwrap();
    fs::write(fixture.path("d/binary"), [b"needle\0".as_slice(), &[7; 300_000]].concat()).unwrap();
    fs::write(fixture.path("d/large"), vec![b'x'; 5 << 20]).unwrap();
    fs::write(fixture.path("d/line"), [&vec![b'x'; 3 << 20][..], b"needle"].concat()).unwrap();
    let search = fixture.call_ok("search", json!({ "query": "needle" }));
    assert_eq!(search["total"], 2, "{search:?}");
    assert_eq!((&search["binary"], search.get("large")), (&json!(1), None), "{search:?}");
    assert!(format!("{search:?}").len() < 10_000, "a long line is cut");
}

#[test]
fn unreadable_files_are_counted() {
    let fixture = LocalFixture::new();
    fixture.write_on_disk("d/f.txt", "needle\n");
    fixture.write_on_disk("closed/f.txt", "needle\n");
    let bits = |mode| fs::set_permissions(fixture.path("closed"), fs::Permissions::from_mode(mode)).unwrap();
    bits(0);
    let free = fs::read_dir(fixture.path("closed")).is_ok();
    let search = fixture.call_ok("search", json!({ "query": "needle" }));
    let find = fixture.call_ok("find", json!({ "pattern": "f.txt" }));
    bits(0o755);
    // The superuser can read everything.
    let (total, closed) = if free { (json!(2), None) } else { (json!(1), Some(&json!(1))) };
    assert_eq!((&search["total"], search.get("unreadable")), (&total, closed));
    assert_eq!((&find["total"], find.get("closed")), (&total, closed));
}

#[test]
fn concurrent_changes_do_not_hide_unchanged_files() {
    let fixture = LocalFixture::new();
    for number in 0..600 {
        fixture.write_on_disk(&format!("stays/d{}/f{number}.txt", number % 30), "needle\n");
    }
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0;
            while !ended.load(Ordering::Relaxed) {
                number += 1;
                let directory = fixture.path(&format!("comes/d{}", number % 7));
                fs::create_dir_all(&directory).unwrap();
                fs::write(directory.join("f.txt"), "other\n").unwrap();
                fs::remove_dir_all(&directory).unwrap();
            }
        });
        for _ in 0..20 {
            let search = fixture.call_ok("search", json!({ "query": "needle", "max": 1000 }));
            assert_eq!(search["total"], 600);
            let find = fixture.call_ok("find", json!({ "pattern": "stays/**/*.txt", "max": 1000 }));
            assert_eq!((&find["total"], find.get("closed")), (&json!(600), None));
        }
        ended.store(true, Ordering::Relaxed);
    });
}
