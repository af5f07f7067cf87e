//! Tests the state directory with its secrets, blobs and locks, and the host services.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use stead_disk::{BlobSyncTiming, DiskErrorKind, FileAttributeSource, LockMode, StagedContentSource, StateDirectory};

use crate::{
    child_process::{assert_child_passes, is_child, is_root},
    fixture::{DiskFixture, kind, name},
};

const CHILD_DIRECTORY_ENV: &str = "DISK_TEST_LOCKS";
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const OTHER: &str = "00000000000000000000000000000000000000000000000000000000000000ff";

#[test]
fn opens_only_directories_owned_by_this_user() {
    let f = DiskFixture::new();
    let path = f.outside.join("deep/state");
    let state = StateDirectory::open(&path).unwrap();
    let stat = std::fs::metadata(&path).unwrap();
    assert_eq!((state.id().ino, stat.mode() & 0o777), (stat.ino(), 0o700));
    assert_eq!(state.path(), path);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    StateDirectory::open(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    std::os::unix::fs::symlink(&path, f.outside.join("link")).unwrap();
    assert_eq!(kind(StateDirectory::open(&f.outside.join("link"))), DiskErrorKind::IsSymlink);
    std::fs::write(f.outside.join("file"), "").unwrap();
    assert!(StateDirectory::open(&f.outside.join("file")).is_err());
    if is_root() {
        std::os::unix::fs::chown(&path, Some(1234), None).unwrap();
        assert_eq!(kind(StateDirectory::open(&path)), DiskErrorKind::PermissionDenied);
    } else {
        eprintln!("NOT RUN: foreign owners need root");
    }
}

#[test]
fn written_files_are_private_and_replaced_atomically() {
    let f = DiskFixture::new();
    let state = StateDirectory::open(&f.outside.join("state")).unwrap();
    let root = state.root_directory().unwrap();
    assert_eq!(kind(root.open_file(&name("key"))), DiskErrorKind::NotFound);
    root.write_file(&name("key"), b"one", 0o600).unwrap();
    root.write_file(&name("key"), b"two", 0o600).unwrap();
    assert_eq!(root.open_file(&name("key")).unwrap().read_all(10).unwrap(), b"two");
    let stat = std::fs::metadata(state.path().join("key")).unwrap();
    assert_eq!(stat.mode() & 0o7777, 0o600);
    assert!(state.create_subdirectory("a/../key").is_err());
    assert!(state.create_subdirectory("../x").is_err());
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 1);
    let sub = state.create_subdirectory("trash/a").unwrap();
    assert_eq!(sub.as_directory().stat_self().unwrap().mode, 0o700);
}

#[test]
fn blobs_are_stored_and_removed() {
    let f = DiskFixture::new();
    let state = StateDirectory::open(&f.outside.join("state")).unwrap();
    assert!(state.open_blob(ABC).unwrap().is_none());
    assert!(!state.remove_blob(ABC).unwrap());
    state.put_blob(ABC, StagedContentSource::Bytes(b"abc"), BlobSyncTiming::Later).unwrap();
    state.put_blob(ABC, StagedContentSource::Bytes(b"abc"), BlobSyncTiming::Now).unwrap();
    assert_eq!(state.open_blob(ABC).unwrap().unwrap().read_all(9).unwrap(), b"abc");
    let blobs = state.path().join("blobs/ba");
    assert_eq!(std::fs::read_dir(&blobs).unwrap().count(), 1);
    assert_eq!(std::fs::metadata(blobs.join(ABC)).unwrap().mode() & 0o7777, 0o400);
    assert!(state.remove_blob(ABC).unwrap());
    assert!(state.open_blob(ABC).unwrap().is_none());
    for bad in ["", "abc", &ABC.to_uppercase(), "../../../../etc/passwd", &format!("{ABC}0")] {
        assert!(state.put_blob(bad, StagedContentSource::Bytes(b""), BlobSyncTiming::Later).is_err());
        assert!(state.open_blob(bad).is_err());
    }
}

#[test]
fn files_are_copied_only_if_the_digest_matches() {
    let f = DiskFixture::new();
    f.file("file", "abc");
    let state = StateDirectory::open(&f.outside.join("state")).unwrap();
    let file = f.root_directory().open_file(&name("file")).unwrap();
    assert_eq!(
        kind(state.put_blob(OTHER, StagedContentSource::File(&file), BlobSyncTiming::Now)),
        DiskErrorKind::ChangedConcurrently
    );
    assert!(state.open_blob(OTHER).unwrap().is_none());
    assert_eq!(std::fs::read_dir(state.path().join("blobs/00")).unwrap().count(), 0);
    state.put_blob(ABC, StagedContentSource::File(&file), BlobSyncTiming::Now).unwrap();
    assert_eq!(state.open_blob(ABC).unwrap().unwrap().hash().unwrap().1, 3);
}

#[test]
fn adopts_moved_linked_and_known_files() {
    let f = DiskFixture::new();
    let state = StateDirectory::open(&f.outside.join("state")).unwrap();
    let top = f.root_directory();
    f.file("moved", "abc");
    let inode = std::fs::metadata(f.workspace.join("moved")).unwrap().ino();
    state.adopt_blob(ABC, &top, &name("moved")).unwrap();
    assert_eq!(state.open_blob(ABC).unwrap().unwrap().stat().fingerprint.id.ino, inode);
    f.file("again", "abc");
    state.adopt_blob(ABC, &top, &name("again")).unwrap();
    assert_eq!(state.open_blob(ABC).unwrap().unwrap().stat().fingerprint.id.ino, inode);
    state.remove_blob(ABC).unwrap();
    f.file("twin", "abc");
    std::fs::hard_link(f.workspace.join("twin"), f.outside.join("twin")).unwrap();
    state.adopt_blob(ABC, &top, &name("twin")).unwrap();
    std::fs::write(f.outside.join("twin"), "changed").unwrap();
    assert_eq!(state.open_blob(ABC).unwrap().unwrap().read_all(9).unwrap(), b"abc");
    assert_eq!(top.list().unwrap(), []);
    f.link("link", "../out/twin");
    assert_eq!(kind(state.adopt_blob(ABC, &top, &name("link"))), DiskErrorKind::IsSymlink);
}

#[test]
fn adopts_files_left_by_an_exchange() {
    let f = DiskFixture::new();
    let state = StateDirectory::open(&f.outside.join("state")).unwrap();
    f.file("file", "abc");
    let top = f.root_directory();
    let staged = top.stage_file(StagedContentSource::Bytes(b"new"), FileAttributeSource::New { mode: 0o644 }).unwrap();
    top.rename(staged.name(), &top, &name("file"), stead_disk::ExistingTargetPolicy::Exchange).unwrap();
    state.adopt_blob(ABC, &top, staged.name()).unwrap();
    assert_eq!(f.read("file"), "new");
    assert_eq!(state.open_blob(ABC).unwrap().unwrap().read_all(9).unwrap(), b"abc");
}

#[test]
fn clock_advances_and_random_bytes_differ() {
    let clock = stead_disk::SystemClock::default();
    assert!(clock.now_ms() > 1_700_000_000_000);
    assert!(clock.monotonic_ms() <= clock.monotonic_ms());
    assert_eq!(clock.boot_id(), stead_disk::SystemClock::default().boot_id());
    assert_ne!(stead_disk::random_bytes::<32>().unwrap(), stead_disk::random_bytes::<32>().unwrap());
}

#[test]
fn locks_of_open_file_descriptions_exclude_each_other() {
    let f = DiskFixture::new();
    let state = StateDirectory::open(&f.outside.join("state")).unwrap();
    let (one, two) = (state.open_lock_file().unwrap(), state.open_lock_file().unwrap());
    assert!(one.try_lock(7, LockMode::Exclusive).unwrap());
    assert!(!two.try_lock(7, LockMode::Exclusive).unwrap());
    assert!(!two.try_lock(7, LockMode::Shared).unwrap());
    assert!(two.try_lock(8, LockMode::Exclusive).unwrap());
    assert!(one.try_lock(7, LockMode::Shared).unwrap());
    assert!(two.try_lock(7, LockMode::Shared).unwrap());
    assert!(!one.try_lock(7, LockMode::Exclusive).unwrap());
    one.unlock(7).unwrap();
    one.unlock(7).unwrap();
    assert!(two.try_lock(7, LockMode::Exclusive).unwrap());
    drop(two);
    assert!(one.try_lock(7, LockMode::Exclusive).unwrap());
    let last = u64::try_from(i64::MAX).unwrap() - 1;
    assert!(one.try_lock(last, LockMode::Exclusive).unwrap());
    assert!(one.try_lock(u64::MAX, LockMode::Exclusive).is_err());
}

#[test]
fn locks_of_processes_exclude_each_other() {
    if is_child() {
        let path = std::env::var(CHILD_DIRECTORY_ENV).unwrap();
        let locks = StateDirectory::open(path.as_ref()).unwrap().open_lock_file().unwrap();
        assert!(!locks.try_lock(1, LockMode::Shared).unwrap());
        assert!(locks.try_lock(2, LockMode::Exclusive).unwrap());
        return;
    }
    let f = DiskFixture::new();
    let path = f.outside.join("state");
    let locks = StateDirectory::open(&path).unwrap().open_lock_file().unwrap();
    assert!(locks.try_lock(1, LockMode::Exclusive).unwrap());
    let variable = format!("{CHILD_DIRECTORY_ENV}={}", path.display());
    assert_child_passes(&["env", &variable], "state_directory::locks_of_processes_exclude_each_other");
    assert!(locks.try_lock(2, LockMode::Exclusive).unwrap());
}
