//! Tests `patch` on real files: the cases that all workspaces share, and cases that need a real tree.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use std::{
    collections::BTreeMap,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::Path,
};

use rustix::fs::{XattrFlags, getxattr, setxattr};
use serde_json::{Value, json};
use stead_engine::{Error, ErrorKind};
use testkit::native::RenderedOutcome;
use testkit::{engine_fixture::EngineFixture, patch_cases};

use crate::support::LocalFixture;

impl patch_cases::PatchCaseWorkspaceAdapter for LocalFixture {
    fn put_file(&self, path: &str, bytes: &[u8]) {
        let directory = self.path(path);
        std::fs::create_dir_all(directory.parent().unwrap()).unwrap();
        std::fs::write(directory, bytes).unwrap();
    }

    fn put_link(&self, path: &str, target: &str) {
        symlink(target, self.path(path)).unwrap();
    }

    fn call(&self, operation: &str, arguments: Value) -> Result<RenderedOutcome, Error> {
        EngineFixture::call(self, operation, arguments)
    }

    fn read_tree(&self) -> BTreeMap<String, Option<Vec<u8>>> {
        let mut tree = BTreeMap::new();
        collect_tree(&self.path(""), "", &mut tree);
        tree
    }
}

fn collect_tree(directory: &Path, prefix: &str, tree: &mut BTreeMap<String, Option<Vec<u8>>>) {
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type().unwrap();
        let held = if kind.is_symlink() {
            let target = std::fs::read_link(entry.path()).unwrap();
            Some(format!("-> {}", target.display()).into_bytes())
        } else if kind.is_dir() {
            collect_tree(&entry.path(), &format!("{name}/"), tree);
            None
        } else {
            Some(std::fs::read(entry.path()).unwrap())
        };
        tree.insert(name, held);
    }
}

#[test]
fn every_case_of_the_table_passes() {
    for case in &patch_cases::load_cases() {
        let fixture = LocalFixture::new();
        // Symlinks out of the workspace have this target.
        let outside = fixture.directory.path().join("outside");
        std::fs::write(&outside, "a\n").unwrap();
        if let Err(wrong) = case.check(&fixture) {
            panic!("{}: {wrong}", case.id);
        }
        assert_eq!(std::fs::read(&outside).unwrap(), b"a\n", "{}", case.id);
        assert!(
            !fixture.directory.path().join("x").exists() && !fixture.directory.path().join("f").exists(),
            "{}",
            case.id
        );
    }
}

#[test]
fn random_patches_are_atomic_and_undoable() {
    for seed in 10_000..10_060 {
        if let Err(wrong) = patch_cases::try_random_patch(seed, &LocalFixture::new()) {
            panic!("{wrong}");
        }
    }
}

#[test]
fn other_hard_links_keep_the_old_content() {
    let fixture = LocalFixture::new();
    let outside = fixture.directory.path().join("outside");
    std::fs::write(&outside, "a\n").unwrap();
    std::fs::hard_link(&outside, fixture.path("f")).unwrap();
    let patch = "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch";
    let answer = fixture.call_ok("patch", json!({ "patch": patch }));
    assert_eq!(
        (fixture.text_on_disk("f").as_deref(), std::fs::read(&outside).unwrap().as_slice()),
        (Some("b\n"), &b"a\n"[..])
    );
    assert!(answer["notices"][0].as_str().unwrap().contains("2 hard links"), "{answer:?}");
}

#[test]
fn patches_do_not_write_through_symlinks() {
    let fixture = LocalFixture::new();
    let outside = fixture.directory.path().join("outside");
    std::fs::write(&outside, "a\n").unwrap();
    fixture.write_on_disk("f", "a\n");
    let patch = "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch";
    fixture.call_ok("patch", json!({ "patch": patch, "dry_run": true }));
    std::fs::remove_file(fixture.path("f")).unwrap();
    symlink(&outside, fixture.path("f")).unwrap();
    fixture.call_err("patch", json!({ "patch": patch }), ErrorKind::PathEscape);
    assert_eq!(std::fs::read(&outside).unwrap(), b"a\n");
}

#[test]
fn moved_and_changed_files_keep_attributes() {
    let fixture = LocalFixture::new();
    fixture.write_on_disk("run", "a\nb\n");
    let (old, new) = (fixture.path("run"), fixture.path("bin/run"));
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o750)).unwrap();
    setxattr(&old, "user.colour", b"green", XattrFlags::empty()).unwrap();
    let inode = std::fs::metadata(&old).unwrap().ino();
    let patch = "*** Begin Patch\n*** Update File: run\n*** Move to: bin/run\n@@\n-b\n+c\n*** End Patch";
    fixture.call_ok("patch", json!({ "patch": patch }));
    assert_eq!((fixture.text_on_disk("run"), fixture.text_on_disk("bin/run").as_deref()), (None, Some("a\nc\n")));
    assert_eq!(std::fs::metadata(&new).unwrap().permissions().mode() & 0o7777, 0o750);
    assert_eq!(read_colour_attribute(&new).as_deref(), Some(&b"green"[..]));
    fixture.call_ok("undo", json!({}));
    assert_eq!((fixture.text_on_disk("run").as_deref(), fixture.text_on_disk("bin/run")), (Some("a\nb\n"), None));
    let back = std::fs::metadata(&old).unwrap();
    assert_eq!((back.permissions().mode() & 0o7777, back.ino()), (0o750, inode));
    assert_eq!(read_colour_attribute(&old).as_deref(), Some(&b"green"[..]));
}

#[test]
fn files_moved_over_others_keep_their_attributes() {
    let fixture = LocalFixture::new();
    for (name, mode, value) in [("a", 0o750, &b"green"[..]), ("b", 0o600, b"red")] {
        fixture.write_on_disk(name, &format!("{name}\n"));
        std::fs::set_permissions(fixture.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
        setxattr(fixture.path(name), "user.colour", value, XattrFlags::empty()).unwrap();
    }
    let patch = "*** Begin Patch\n*** Move File: a -> b\n@@\n-a\n+A\n*** Add File: a\n+new\n*** End Patch";
    fixture.call_ok("patch", json!({ "patch": patch, "overwrite": true }));
    assert_eq!(
        (fixture.text_on_disk("a").as_deref(), fixture.text_on_disk("b").as_deref()),
        (Some("new\n"), Some("A\n"))
    );
    assert_eq!(std::fs::metadata(fixture.path("b")).unwrap().permissions().mode() & 0o7777, 0o750);
    assert_eq!(read_colour_attribute(&fixture.path("b")).as_deref(), Some(&b"green"[..]));
    fixture.call_ok("undo", json!({}));
    assert_eq!(
        (fixture.text_on_disk("a").as_deref(), fixture.text_on_disk("b").as_deref()),
        (Some("a\n"), Some("b\n"))
    );
    assert_eq!(std::fs::metadata(fixture.path("b")).unwrap().permissions().mode() & 0o7777, 0o600);
}

fn read_colour_attribute(path: &Path) -> Option<Vec<u8>> {
    let mut value = [0_u8; 64];
    let length = getxattr(path, "user.colour", &mut value).ok()?;
    Some(value[..length].to_vec())
}
