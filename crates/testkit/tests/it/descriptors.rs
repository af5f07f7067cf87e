//! Checks that every file descriptor that a workspace opens has the close-on-exec flag.

use std::collections::BTreeSet;

use serde_json::json;
use stead_disk::PathResolutionMethod;
use testkit::attack::{AttackSubjectRequest, EngineAttackSubject, SubjectOptions};

/// The close-on-exec bit in the `flags` line of `/proc/self/fdinfo`.
const CLOSE_ON_EXEC: u32 = 0o2_000_000;

fn open_descriptors() -> BTreeSet<String> {
    let listed = std::fs::read_dir("/proc/self/fd").unwrap();
    listed.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn closes_on_exec(descriptor: &str) -> Option<bool> {
    let shown = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).ok()?;
    let flags = shown.lines().find_map(|line| line.strip_prefix("flags:"))?;
    Some(u32::from_str_radix(flags.trim(), 8).ok()? & CLOSE_ON_EXEC != 0)
}

#[test]
fn no_descriptor_is_inherited() {
    let place = tempfile::tempdir().unwrap();
    let workspace = place.path().join("ws");
    std::fs::create_dir(&workspace).unwrap();
    let before = open_descriptors();
    let state = place.path().join("state");
    let opening = SubjectOptions { workspace, state, mounts: Vec::new(), resolver: PathResolutionMethod::Auto };
    let mut subject = EngineAttackSubject::open(&opening).unwrap();
    for (operation, arguments) in [
        ("write", json!({ "path": "d/f", "content": "x" })),
        ("read", json!({ "path": "d/f" })),
        ("lock", json!({ "path": "d/f" })),
        ("remove", json!({ "path": "d", "recursive": true })),
    ] {
        let arguments = arguments.as_object().unwrap().clone();
        let (principal, operation) = ("agent:a".to_owned(), operation.to_owned());
        let reply = subject.send(&AttackSubjectRequest { principal, operation, arguments, raw: None }).unwrap();
        assert_eq!(reply.refusal, None, "{}", reply.text);
    }
    let opened: Vec<String> = open_descriptors().difference(&before).cloned().collect();
    let inherited: Vec<&String> =
        opened.iter().filter(|descriptor| closes_on_exec(descriptor) == Some(false)).collect();
    assert!(opened.len() > 2, "the server holds descriptors open");
    assert!(inherited.is_empty(), "{inherited:?}");
}
