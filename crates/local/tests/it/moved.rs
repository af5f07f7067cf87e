//! Tests that the error for a path that changes while it is read names the path and never blames the state directory.

#![expect(clippy::disallowed_methods, reason = "the test changes the directory from outside")]

use std::{fs, os::unix::fs::symlink};

use serde_json::json;
use stead_disk::faults::{
    FaultFilter, FaultPlan, FaultPlanThreadFilter, InjectedFaultEffect, SystemCall, arm_fault, disarm_fault,
};

use crate::{faults::lock_fault_tests, support::LocalFixture};

const BROKEN: i32 = 5;
/// The size of a test file that is too large for the database, so that its replaced content is retained as a file.
const LARGE_FILE_BYTES: usize = 100_000;

#[test]
fn trashed_link_that_is_a_file_is_restored_as_a_file() {
    let fixture = LocalFixture::new();
    symlink("elsewhere", fixture.path("leaf")).unwrap();
    let removed = fixture.call_ok("remove", json!({ "path": "leaf" }));
    // A race in which a file got the inode number of the link has this result.
    let item = fixture.directory.path().join("state/trash").join(removed["trash"].as_str().unwrap());
    fs::remove_file(&item).unwrap();
    fs::write(&item, "text\n").unwrap();
    fixture.call_ok("restore", json!({ "trash": removed["trash"] }));
    assert_eq!(fixture.text_on_disk("leaf").as_deref(), Some("text\n"));
    fixture.call_ok("undo", json!({}));
    assert_eq!(fixture.text_on_disk("leaf"), None);
}

#[test]
fn recovery_error_names_the_path_and_not_the_state_directory() {
    let _alone = lock_fault_tests();
    let fixture = LocalFixture::new();
    let first = fixture.call_ok("write", json!({ "path": "big", "content": "a".repeat(LARGE_FILE_BYTES) }));
    let write = json!({ "path": "big", "content": "b".repeat(LARGE_FILE_BYTES), "base": first["version"] });
    // The new file is put in place, but the old file cannot be released and the change cannot be rolled back.
    let calls = FaultFilter::Only(SystemCall::Rename);
    arm_fault(FaultPlan {
        call_number: 2,
        action: InjectedFaultEffect::FailFromNowOn(BROKEN),
        scope: FaultPlanThreadFilter::ThisThread,
        calls,
    });
    let unfinished = fixture.call("write", write.clone()).unwrap_err();
    let blocked = fixture.call("write", write).unwrap_err();
    disarm_fault();
    assert_eq!(unfinished.kind.code(), "io_error", "{unfinished}");
    assert_eq!(blocked.kind.code(), "io_error", "{blocked}");
    assert!(blocked.message.contains("big"), "{blocked}");
    fixture.call_ok("stat", json!({ "path": "big" }));
    fixture.call_ok("write", json!({ "path": "other", "content": "c" }));
}
