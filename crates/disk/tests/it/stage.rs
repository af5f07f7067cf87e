//! Staging: exclusive, private until done, with the attributes of the file it will replace.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use disk::{Attribute, Attributes, Source, TEMP_PREFIX};
use rustix::fs::XattrFlags;

use crate::{
    child::{is_child, is_root, must_pass},
    fixture::{Fixture, name},
};

/// Tells the child where the workspace is.
const PLACE: &str = "DISK_TEST_FOREIGN";

/// A POSIX access list as the kernel stores it: owner rw, user 1234 r, group r, mask r, others nothing.
fn access_list() -> Vec<u8> {
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

fn attribute(path: &std::path::Path, name: &str) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 1024];
    let length = rustix::fs::getxattr(path, name, &mut buffer[..]).ok()?;
    buffer.truncate(length);
    Some(buffer)
}

#[test]
fn stages_bytes_and_files() {
    let f = Fixture::new();
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    f.file("large", &large);
    let top = f.top();
    let staged = top.stage(Source::Bytes(b"bytes"), Attributes::New { mode: 0o6640 }).unwrap();
    assert!(staged.name().as_bytes().starts_with(TEMP_PREFIX.as_bytes()));
    assert_eq!(staged.size(), 5);
    let stat = top.stat(staged.name()).unwrap().unwrap();
    assert_eq!((stat.stamp.id, stat.born_ns, stat.mode & 0o7137), (staged.id(), staged.born_ns(), 0));
    staged.sync().unwrap();
    let open = top.open_file(&name("large")).unwrap();
    let copy = top.stage(Source::File(&open), Attributes::Like(&open)).unwrap();
    assert_eq!(copy.hash().unwrap(), open.hash().unwrap());
    assert_eq!(top.open_file(copy.name()).unwrap().read_all(u64::MAX).unwrap(), large);
    f.file("nothing", "");
    let nothing = top.open_file(&name("nothing")).unwrap();
    let empty = top.stage(Source::File(&nothing), Attributes::Like(&nothing)).unwrap();
    assert_eq!(empty.size(), 0);
    for staged in [staged, copy, empty] {
        staged.discard(&top).unwrap();
    }
    assert_eq!(top.list().unwrap().len(), 2);
}

#[test]
fn keeps_attributes() {
    let f = Fixture::new();
    f.file("file", "old");
    let path = f.ws.join("file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o6640)).unwrap();
    rustix::fs::setxattr(&path, "user.colour", b"green", XattrFlags::empty()).unwrap();
    if is_root() {
        std::os::unix::fs::chown(&path, Some(1234), Some(2345)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o6640)).unwrap();
    } else {
        eprintln!("NOT RUN: foreign owners need root");
    }
    let listed =
        rustix::fs::setxattr(&path, "system.posix_acl_access", &access_list(), XattrFlags::empty()).is_ok();
    if !listed {
        eprintln!("NOT RUN: this file system has no access lists");
    }
    let before = std::fs::metadata(&path).unwrap();
    let list_before = attribute(&path, "system.posix_acl_access");
    let top = f.top();
    let old = top.open_file(&name("file")).unwrap();
    let staged = top.stage(Source::Bytes(b"new"), Attributes::Like(&old)).unwrap();
    assert_eq!(staged.lost(), []);
    top.replace(&staged, &name("file")).unwrap();
    let after = std::fs::metadata(&path).unwrap();
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    assert_eq!(after.mode() & 0o7777, before.mode() & 0o777);
    assert_eq!(attribute(&path, "user.colour").as_deref(), Some(b"green".as_slice()));
    assert_eq!(list_before.is_some(), listed);
    assert_eq!(attribute(&path, "system.posix_acl_access"), list_before);
}

#[test]
fn a_default_list_of_the_directory_does_not_leak_into_a_replacement() {
    let f = Fixture::new();
    f.file("file", "old");
    std::fs::set_permissions(f.ws.join("file"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let set = rustix::fs::setxattr(&f.ws, "system.posix_acl_default", &access_list(), XattrFlags::empty());
    if set.is_err() {
        eprintln!("NOT RUN: this file system has no access lists");
        return;
    }
    let top = f.top();
    let old = top.open_file(&name("file")).unwrap();
    let staged = top.stage(Source::Bytes(b"new"), Attributes::Like(&old)).unwrap();
    top.replace(&staged, &name("file")).unwrap();
    assert_eq!(attribute(&f.ws.join("file"), "system.posix_acl_access"), None);
    assert_eq!(std::fs::metadata(f.ws.join("file")).unwrap().mode() & 0o7777, 0o600);
    // A new file takes it, as every new file there does.
    let staged = top.stage(Source::Bytes(b"new"), Attributes::New { mode: 0o666 }).unwrap();
    top.place_new(&staged, &name("fresh")).unwrap();
    assert!(attribute(&f.ws.join("fresh"), "system.posix_acl_access").is_some());
}

#[test]
fn a_foreign_group_gets_no_more_than_everybody() {
    let this = "stage::a_foreign_group_gets_no_more_than_everybody";
    if !is_root() && !is_child() {
        eprintln!("NOT RUN: foreign owners need root");
        return;
    }
    if !is_child() {
        // The file belongs to root and another group; the child without rights replaces it.
        let f = Fixture::new();
        f.file("file", "old");
        let path = f.ws.join("file");
        std::os::unix::fs::chown(&path, Some(0), Some(2345)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o664)).unwrap();
        for open in [&f.ws, f.ws.parent().unwrap()] {
            std::fs::set_permissions(open, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        let place = format!("{PLACE}={}", f.ws.display());
        must_pass(
            &["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "env", &place],
            this,
        );
        let after = std::fs::metadata(&path).unwrap();
        assert_eq!((after.uid(), after.mode() & 0o7777), (65534, 0o644));
        return;
    }
    let ws = std::env::var(PLACE).unwrap();
    let root = disk::Root::open(ws.as_ref(), disk::RootOptions::default()).unwrap();
    let top = root.open_directory(&path::RelPath::root()).unwrap();
    let old = top.open_file(&name("file")).unwrap();
    let staged = top.stage(Source::Bytes(b"new"), Attributes::Like(&old)).unwrap();
    assert_eq!(staged.lost(), [Attribute::Group, Attribute::Owner]);
    top.replace(&staged, &name("file")).unwrap();
}
