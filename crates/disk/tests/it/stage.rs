//! Tests the content of staged files, and the attributes that they take over from the replaced file.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rustix::fs::XattrFlags;
use stead_disk::{FileAttributeSource, LostAttribute, StagedContentSource, TEMPORARY_PREFIX};

use crate::{
    child_process::{assert_child_passes, is_child, is_root},
    fixture::{DiskFixture, name},
};

const CHILD_DIRECTORY_ENV: &str = "DISK_TEST_FOREIGN";

/// The access list in the kernel's format: owner rw, user 1234 r, group r, mask r, others nothing.
fn acl_bytes() -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    let entries: [(u16, u16, u32); 5] =
        [(0x01, 6, NOBODY), (0x02, 4, 1234), (0x04, 4, NOBODY), (0x10, 4, NOBODY), (0x20, 0, NOBODY)];
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(rights.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

fn read_attribute(path: &std::path::Path, name: &str) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 1024];
    let length = rustix::fs::getxattr(path, name, &mut buffer[..]).ok()?;
    buffer.truncate(length);
    Some(buffer)
}

#[test]
fn stages_bytes_and_files() {
    let f = DiskFixture::new();
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    f.file("large", &large);
    let top = f.root_directory();
    let staged =
        top.stage_file(StagedContentSource::Bytes(b"bytes"), FileAttributeSource::New { mode: 0o6640 }).unwrap();
    assert!(staged.name().as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()));
    assert_eq!(staged.stat().size, 5);
    let stat = top.stat(staged.name()).unwrap().unwrap();
    assert_eq!(
        (stat.fingerprint.id, stat.created_ns, stat.mode & 0o7137),
        (staged.stat().fingerprint.id, staged.stat().created_ns, 0)
    );
    staged.sync().unwrap();
    let open = top.open_file(&name("large")).unwrap();
    let copy = top.stage_file(StagedContentSource::File(&open), FileAttributeSource::CopyFrom(&open)).unwrap();
    assert_eq!(copy.hash().unwrap(), open.hash().unwrap());
    assert_eq!(top.open_file(copy.name()).unwrap().read_all(u64::MAX).unwrap(), large);
    f.file("nothing", "");
    let nothing = top.open_file(&name("nothing")).unwrap();
    let empty = top.stage_file(StagedContentSource::File(&nothing), FileAttributeSource::CopyFrom(&nothing)).unwrap();
    assert_eq!(empty.stat().size, 0);
    for staged in [staged, copy, empty] {
        staged.discard(&top).unwrap();
    }
    assert_eq!(top.list().unwrap().len(), 2);
}

#[test]
fn keeps_attributes() {
    let f = DiskFixture::new();
    f.file("file", "old");
    let path = f.workspace.join("file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o6640)).unwrap();
    rustix::fs::setxattr(&path, "user.colour", b"green", XattrFlags::empty()).unwrap();
    if is_root() {
        std::os::unix::fs::chown(&path, Some(1234), Some(2345)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o6640)).unwrap();
    } else {
        eprintln!("NOT RUN: foreign owners need root");
    }
    let listed = rustix::fs::setxattr(&path, "system.posix_acl_access", &acl_bytes(), XattrFlags::empty()).is_ok();
    if !listed {
        eprintln!("NOT RUN: this file system has no access lists");
    }
    let before = std::fs::metadata(&path).unwrap();
    let list_before = read_attribute(&path, "system.posix_acl_access");
    let top = f.root_directory();
    let old = top.open_file(&name("file")).unwrap();
    let staged = top.stage_file(StagedContentSource::Bytes(b"new"), FileAttributeSource::CopyFrom(&old)).unwrap();
    assert_eq!(staged.lost_attributes(), []);
    top.replace_with_staged(&staged, &name("file")).unwrap();
    let after = std::fs::metadata(&path).unwrap();
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    assert_eq!(after.mode() & 0o7777, before.mode() & 0o777);
    assert_eq!(read_attribute(&path, "user.colour").as_deref(), Some(b"green".as_slice()));
    assert_eq!(list_before.is_some(), listed);
    assert_eq!(read_attribute(&path, "system.posix_acl_access"), list_before);
}

#[test]
fn default_acl_of_the_directory_does_not_apply_to_replacements() {
    let f = DiskFixture::new();
    f.file("file", "old");
    std::fs::set_permissions(f.workspace.join("file"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let set = rustix::fs::setxattr(&f.workspace, "system.posix_acl_default", &acl_bytes(), XattrFlags::empty());
    if set.is_err() {
        eprintln!("NOT RUN: this file system has no access lists");
        return;
    }
    let top = f.root_directory();
    let old = top.open_file(&name("file")).unwrap();
    let staged = top.stage_file(StagedContentSource::Bytes(b"new"), FileAttributeSource::CopyFrom(&old)).unwrap();
    top.replace_with_staged(&staged, &name("file")).unwrap();
    assert_eq!(read_attribute(&f.workspace.join("file"), "system.posix_acl_access"), None);
    assert_eq!(std::fs::metadata(f.workspace.join("file")).unwrap().mode() & 0o7777, 0o600);
    let staged = top.stage_file(StagedContentSource::Bytes(b"new"), FileAttributeSource::New { mode: 0o666 }).unwrap();
    top.rename_staged_to_new(&staged, &name("fresh")).unwrap();
    assert!(read_attribute(&f.workspace.join("fresh"), "system.posix_acl_access").is_some());
}

#[test]
fn a_foreign_group_gets_no_more_than_everybody() {
    let this = "stage::a_foreign_group_gets_no_more_than_everybody";
    if !is_root() && !is_child() {
        eprintln!("NOT RUN: foreign owners need root");
        return;
    }
    if !is_child() {
        let f = DiskFixture::new();
        f.file("file", "old");
        let path = f.workspace.join("file");
        std::os::unix::fs::chown(&path, Some(0), Some(2345)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o664)).unwrap();
        for open in [&f.workspace, f.workspace.parent().unwrap()] {
            std::fs::set_permissions(open, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        let variable = format!("{CHILD_DIRECTORY_ENV}={}", f.workspace.display());
        assert_child_passes(
            &["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "env", &variable],
            this,
        );
        let after = std::fs::metadata(&path).unwrap();
        assert_eq!((after.uid(), after.mode() & 0o7777), (65534, 0o644));
        return;
    }
    let ws = std::env::var(CHILD_DIRECTORY_ENV).unwrap();
    let root = stead_disk::RootDirectory::open(ws.as_ref(), stead_disk::RootDirectoryOptions::default()).unwrap();
    let top = root.open_directory(&stead_path::RelPath::root()).unwrap();
    let old = top.open_file(&name("file")).unwrap();
    let staged = top.stage_file(StagedContentSource::Bytes(b"new"), FileAttributeSource::CopyFrom(&old)).unwrap();
    assert_eq!(staged.lost_attributes(), [LostAttribute::Group, LostAttribute::Owner]);
    top.replace_with_staged(&staged, &name("file")).unwrap();
}
