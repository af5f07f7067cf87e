//! The second wall, in a process of its own, because it cannot be taken down.

use std::path::PathBuf;

use disk::{Resolver, wall};

use crate::{
    child::{is_child, must_pass},
    fixture::{Fixture, rel},
};

/// Tells the child where the workspace is.
const PLACE: &str = "DISK_TEST_WALL";

#[test]
fn outside_is_out_of_reach_and_inside_works() {
    if !is_child() {
        // The fixture is made, and cleared away, from outside the wall.
        let f = Fixture::new();
        f.file("a/file", "inside");
        let place = format!("{PLACE}={}", f.ws.display());
        must_pass(&["env", &place], "wall::outside_is_out_of_reach_and_inside_works");
        return;
    }
    let ws = PathBuf::from(std::env::var(PLACE).unwrap());
    let out = ws.parent().unwrap().join("out");
    assert_eq!(std::fs::read(out.join("secret")).unwrap(), b"secret");
    let report = wall::raise(&[&ws]);
    eprintln!("{report:?}");
    if report.standing == wall::Standing::None {
        eprintln!("NOT RUN: no Landlock here: {:?}", report.reason);
        return;
    }
    assert!(report.abi.is_some_and(|abi| abi >= 1));
    for resolver in [Resolver::Kernel, Resolver::Walker] {
        let options = disk::RootOptions { resolver, ..Default::default() };
        let root = disk::Root::open(&ws, options).unwrap();
        assert_eq!(root.open_file(&rel("a/file")).unwrap().read_all(9).unwrap(), b"inside");
        let a = root.open_directory(&rel("a")).unwrap();
        let attributes = disk::Attributes::New { mode: 0o600 };
        let staged = a.stage(disk::Source::Bytes(b"new"), attributes).unwrap();
        a.exchange(&staged, &crate::fixture::name("file")).unwrap();
        a.set_mode(staged.name(), 0o640).unwrap();
        a.rename(staged.name(), &root.open_directory(&rel(".")).unwrap(), staged.name(), disk::Over::Refuse)
            .unwrap();
        a.list().unwrap();
        std::fs::write(ws.join("a/file"), "inside").unwrap();
    }
    assert!(std::fs::read(out.join("secret")).is_err());
    assert!(std::fs::write(out.join("new"), "x").is_err());
    assert!(std::fs::read("/etc/passwd").is_err());
    assert!(std::fs::rename(ws.join("a/file"), out.join("taken")).is_err());
    // Threads started afterwards are behind it too.
    assert!(std::thread::spawn(|| std::fs::read("/etc/passwd").is_err()).join().unwrap());
}

#[test]
fn a_missing_place_is_reported() {
    if !is_child() {
        must_pass(&["env"], "wall::a_missing_place_is_reported");
        return;
    }
    let report = wall::raise(&["/no/such/place".as_ref()]);
    assert_eq!(report.standing, wall::Standing::None);
    assert_eq!(report.reason.as_deref(), Some("a place could not be opened"));
    std::fs::read("/etc/passwd").unwrap();
}
