//! Tests the Landlock sandbox in a child process, because a process cannot leave the sandbox.

use std::path::PathBuf;

use stead_disk::{PathResolutionMethod, landlock};

use crate::{
    child_process::{assert_child_passes, is_child},
    fixture::{DiskFixture, rel_path},
};

const CHILD_DIRECTORY_ENV: &str = "DISK_TEST_LANDLOCK";

#[test]
fn outside_is_out_of_reach_and_inside_works() {
    if !is_child() {
        let f = DiskFixture::new();
        f.file("a/file", "inside");
        let variable = format!("{CHILD_DIRECTORY_ENV}={}", f.workspace.display());
        assert_child_passes(&["env", &variable], "landlock::outside_is_out_of_reach_and_inside_works");
        return;
    }
    let ws = PathBuf::from(std::env::var(CHILD_DIRECTORY_ENV).unwrap());
    let out = ws.parent().unwrap().join("out");
    assert_eq!(std::fs::read(out.join("secret")).unwrap(), b"secret");
    let report = landlock::restrict_process(&[&ws], &[]);
    eprintln!("{report:?}");
    if report.status == landlock::LandlockOutcome::None {
        eprintln!("NOT RUN: no Landlock here: {:?}", report.reason);
        return;
    }
    assert!(report.abi.is_some_and(|abi| abi >= 1));
    for resolver in [PathResolutionMethod::Kernel, PathResolutionMethod::Walker] {
        let options = stead_disk::RootDirectoryOptions { resolver, ..Default::default() };
        let root = stead_disk::RootDirectory::open(&ws, options).unwrap();
        assert_eq!(root.open_file(&rel_path("a/file")).unwrap().read_all(9).unwrap(), b"inside");
        let a = root.open_directory(&rel_path("a")).unwrap();
        let attributes = stead_disk::FileAttributeSource::New { mode: 0o600 };
        let staged = a.stage_file(stead_disk::StagedContentSource::Bytes(b"new"), attributes).unwrap();
        a.rename(staged.name(), &a, &crate::fixture::name("file"), stead_disk::ExistingTargetPolicy::Exchange).unwrap();
        a.set_mode(staged.name(), 0o640).unwrap();
        a.rename(
            staged.name(),
            &root.open_directory(&rel_path(".")).unwrap(),
            staged.name(),
            stead_disk::ExistingTargetPolicy::Refuse,
        )
        .unwrap();
        a.list().unwrap();
        std::fs::write(ws.join("a/file"), "inside").unwrap();
    }
    assert!(std::fs::read(out.join("secret")).is_err());
    assert!(std::fs::write(out.join("new"), "x").is_err());
    assert!(std::fs::read("/etc/passwd").is_err());
    assert!(std::fs::rename(ws.join("a/file"), out.join("taken")).is_err());
    assert!(std::thread::spawn(|| std::fs::read("/etc/passwd").is_err()).join().unwrap());
}

#[test]
fn a_missing_path_is_reported() {
    if !is_child() {
        assert_child_passes(&["env"], "landlock::a_missing_path_is_reported");
        return;
    }
    let report = landlock::restrict_process(&["/no/such/place".as_ref()], &[]);
    assert_eq!(report.status, landlock::LandlockOutcome::None);
    assert_eq!(report.reason.as_deref(), Some("a path of the Landlock rules could not be opened"));
    std::fs::read("/etc/passwd").unwrap();
}
