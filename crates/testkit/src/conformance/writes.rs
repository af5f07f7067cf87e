//! Conformance tests of writes: true and false commit expectations, sources of content, and plans of several changes.

use stead_engine::{
    CommitExpectation, ErrorKind, FileModeSource, PlanTimeFileVersion, PlannedChange, PlannedContent, Version,
};
use stead_journal::JournalEntryRelation;

use super::{
    ConformanceWorkspaceFactory, LARGE_FILE_BYTES, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest,
    assert_commit_fails, put_change, put_change_with_mode, rel_path, unmatched_stamp,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("a new file needs a free place", new_file_needs_free_path),
    ("a replaced file must be the one that was seen", replaced_file_must_be_the_seen_one),
    ("permission bits are kept, set, and never set-id", mode_bits_are_kept_and_set),
    ("bytes that were replaced are kept", replaced_bytes_are_retained),
    ("a copy is of what was seen", copy_uses_the_seen_source),
    ("directories and links are made where nothing is", directories_and_links_need_free_paths),
    ("a plan is all or nothing", plan_is_all_or_nothing),
    ("changes of one plan build on each other", changes_of_a_plan_build_on_each_other),
    ("nothing is made below what is no directory", parent_must_be_a_directory),
    ("the same key is never applied twice", idempotency_key_applies_once),
    ("a file that another program wrote is not overwritten", externally_written_file_is_not_overwritten),
    ("content must have the planned version", content_must_have_the_planned_version),
];

fn new_file_needs_free_path(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("f", b"one");
    assert_eq!(fixture.read_bytes("f"), b"one");
    fixture.create_directory("d");
    for taken in ["f", "d"] {
        fixture.assert_changed_since(vec![put_change(taken, CommitExpectation::Absent, b"two")], taken);
    }
    fixture.create_file("empty", b"");
    assert_eq!(fixture.read_bytes("empty"), b"");
}

fn replaced_file_must_be_the_seen_one(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("f", b"one");
    let first = fixture.observed_file("f");
    fixture.commit(vec![put_change("f", CommitExpectation::File(first), b"two")]);
    assert_eq!(fixture.read_bytes("f"), b"two");
    fixture.assert_changed_since(vec![put_change("f", CommitExpectation::File(first), b"three")], "f");
    // The version decides whether a file has changed; an equal stamp only avoids a second read.
    let other_stamp = PlanTimeFileVersion { version: Version::hash_bytes(b"two"), stamp: unmatched_stamp(), ..first };
    fixture.commit(vec![put_change("f", CommitExpectation::File(other_stamp), b"three")]);
    assert_eq!(fixture.read_bytes("f"), b"three");
    fixture.assert_changed_since(vec![put_change("none", CommitExpectation::File(first), b"x")], "none");
    fixture.create_directory("d");
    fixture.assert_changed_since(vec![put_change("d", CommitExpectation::File(first), b"x")], "d");
    let large = vec![b'l'; LARGE_FILE_BYTES];
    fixture.commit(vec![put_change("f", fixture.expect_observed_file("f"), &large)]);
    assert_eq!(fixture.read_bytes("f"), large);
    fixture.commit(vec![put_change("f", fixture.expect_observed_file("f"), b"small")]);
    assert_eq!(fixture.read_bytes("f"), b"small");
}

fn mode_bits_are_kept_and_set(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let mode = |path: &str| fixture.stat(path).mode & 0o7777;
    fixture.commit(vec![put_change_with_mode("f", CommitExpectation::Absent, b"1", FileModeSource::Set(0o700))]);
    assert_eq!(mode("f"), 0o700);
    fixture.commit(vec![put_change("f", fixture.expect_observed_file("f"), b"2")]);
    assert_eq!(mode("f"), 0o700);
    fixture.commit(vec![put_change_with_mode(
        "f",
        fixture.expect_observed_file("f"),
        b"3",
        FileModeSource::Set(0o4600),
    )]);
    assert_eq!(mode("f"), 0o600);
    let like = FileModeSource::CopyFrom(rel_path("f"), fixture.observed_file("f"));
    fixture.commit(vec![
        put_change_with_mode("f", fixture.expect_observed_file("f"), b"4", FileModeSource::Set(0o640)),
        put_change_with_mode("g", CommitExpectation::Absent, b"4", like.clone()),
    ]);
    assert_eq!((mode("f"), mode("g")), (0o640, 0o600));
    fixture.assert_changed_since(vec![put_change_with_mode("h", CommitExpectation::Absent, b"5", like)], "f");
    assert!(!fixture.exists("h"));
}

fn replaced_bytes_are_retained(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let large = vec![b'l'; LARGE_FILE_BYTES];
    for old in [b"small".as_slice(), &large] {
        let expect = if fixture.exists("f") { fixture.expect_observed_file("f") } else { CommitExpectation::Absent };
        fixture.commit(vec![put_change("f", expect, old)]);
        fixture.commit(vec![put_change("f", fixture.expect_observed_file("f"), b"over")]);
        let version = Version::hash_bytes(old);
        assert_eq!(fixture.workspace.retained_bytes(&version).unwrap().as_deref(), Some(old));
        let again = PlannedChange::Put {
            path: rel_path("f"),
            expectation: fixture.expect_observed_file("f"),
            content: PlannedContent::Retained(version),
            version,
            size: old.len() as u64,
            mode: FileModeSource::KeepExisting,
        };
        fixture.commit(vec![again]);
        assert_eq!(fixture.read_bytes("f"), old);
    }
    let unknown = Version::hash_bytes(b"never seen");
    assert_eq!(fixture.workspace.retained_bytes(&unknown).unwrap(), None);
    let content = PlannedContent::Retained(unknown);
    let change = PlannedChange::Put {
        path: rel_path("g"),
        expectation: CommitExpectation::Absent,
        content,
        version: unknown,
        size: 10,
        mode: FileModeSource::KeepExisting,
    };
    assert_commit_fails(fixture.try_commit(vec![change]), ErrorKind::Expired);
    assert!(!fixture.exists("g"));
}

fn copy_uses_the_seen_source(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let large = vec![b'l'; LARGE_FILE_BYTES];
    for (from, bytes) in [("small", b"small".as_slice()), ("large", &large)] {
        fixture.commit(vec![put_change_with_mode(from, CommitExpectation::Absent, bytes, FileModeSource::Set(0o640))]);
        let seen = fixture.observed_file(from);
        let to = format!("{from}.copy");
        let copy = |to: &str| PlannedChange::Put {
            path: rel_path(to),
            expectation: CommitExpectation::Absent,
            content: PlannedContent::CopyOf(rel_path(from), seen),
            version: seen.version,
            size: bytes.len() as u64,
            mode: FileModeSource::KeepExisting,
        };
        fixture.commit(vec![copy(&to)]);
        assert_eq!((fixture.read_bytes(&to), fixture.stat(&to).mode & 0o777), (bytes.to_vec(), 0o640));
        fixture.commit(vec![put_change(from, fixture.expect_observed_file(from), b"changed")]);
        fixture.assert_changed_since(vec![copy("late")], from);
    }
}

fn directories_and_links_need_free_paths(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let directory = |path: &str| PlannedChange::MakeDirectory { path: rel_path(path), mode: 0o755 };
    let link = |path: &str| PlannedChange::MakeLink { path: rel_path(path), target: b"d".to_vec() };
    fixture.commit(vec![directory("d"), link("l")]);
    fixture.create_file("f", b"f");
    for taken in ["d", "l", "f"] {
        fixture.assert_changed_since(vec![directory(taken)], taken);
        fixture.assert_changed_since(vec![link(taken)], taken);
    }
}

fn plan_is_all_or_nothing(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("a", b"a");
    fixture.create_file("b", b"b");
    let old = fixture.expect_observed_file("b");
    fixture.commit(vec![put_change("b", old, b"B")]);
    let large = vec![b'l'; LARGE_FILE_BYTES];
    fixture.assert_changed_since(
        vec![
            put_change("new", CommitExpectation::Absent, &large),
            put_change("a", fixture.expect_observed_file("a"), b"A"),
            PlannedChange::MakeDirectory { path: rel_path("d"), mode: 0o755 },
            put_change("b", old, b"late"),
        ],
        "b",
    );
}

fn changes_of_a_plan_build_on_each_other(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("f", b"f");
    let committed = fixture.commit(vec![
        PlannedChange::MakeDirectory { path: rel_path("d"), mode: 0o755 },
        PlannedChange::MakeDirectory { path: rel_path("d/e"), mode: 0o755 },
        put_change("d/e/x", CommitExpectation::Absent, b"x"),
        super::move_change(
            "f",
            "d/f",
            fixture.expect_observed_file("f"),
            CommitExpectation::Absent,
            super::single_file_tree(1),
        ),
        put_change("f", CommitExpectation::Absent, b"another"),
    ]);
    assert_eq!((fixture.read_bytes("d/e/x"), fixture.read_bytes("d/f")), (b"x".to_vec(), b"f".to_vec()));
    assert_eq!(fixture.read_bytes("f"), b"another");
    let entry = fixture.workspace.entry(committed.entry).unwrap().unwrap();
    assert_eq!(
        (entry.entry.changes.len(), entry.entry.relation, entry.hash),
        (5, JournalEntryRelation::None, committed.hash)
    );
    fixture.commit(vec![
        super::remove_change("d/e/x", fixture.expect_observed_file("d/e/x"), super::single_file_tree(1)),
        PlannedChange::RemoveDirectory { path: rel_path("d/e") },
    ]);
    assert!(fixture.exists("d") && !fixture.exists("d/e"));
}

fn parent_must_be_a_directory(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("f", b"f");
    for path in ["none/x", "f/x"] {
        fixture.assert_impossible(vec![put_change(path, CommitExpectation::Absent, b"x")]);
        fixture.assert_impossible(vec![PlannedChange::MakeDirectory { path: rel_path(path), mode: 0o755 }]);
    }
}

fn idempotency_key_applies_once(factory: &dyn ConformanceWorkspaceFactory) {
    use stead_engine::{CommitError, Plan};
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let other = fixture.with_other_agent("two");
    let plan = |path: &str| Plan::new(vec![put_change(path, CommitExpectation::Absent, b"x")]);
    let replayed = |fixture: &WorkspaceUnderConformanceTest, key: &str| {
        fixture.workspace.entry_for_idempotency_key(&fixture.caller.principal, key).unwrap()
    };
    assert_eq!(replayed(&fixture, "k"), None);
    let number = fixture.try_plan(&plan("a"), Some("k")).unwrap().entry;
    assert_eq!((replayed(&fixture, "k"), replayed(&other, "k")), (Some(number), None));
    match fixture.try_plan(&plan("b"), Some("k")) {
        Err(CommitError::KeyAlreadyUsed(first)) => assert_eq!(first, number),
        other => panic!("applied twice: {other:?}"),
    }
    assert!(!fixture.exists("b"));
    let second = other.try_plan(&plan("b"), Some("k")).unwrap().entry;
    assert_eq!(replayed(&other, "k"), Some(second));
    // A plan that was not applied leaves its idempotency key free.
    assert!(fixture.try_plan(&plan("a"), Some("again")).is_err());
    assert_eq!(replayed(&fixture, "again"), None);
    fixture.try_plan(&plan("c"), Some("again")).unwrap();
}

fn externally_written_file_is_not_overwritten(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("f", b"one");
    let seen = fixture.expect_observed_file("f");
    factory.write_externally("f", b"by another program");
    factory.write_externally("new", b"by another program");
    fixture.assert_changed_since(vec![put_change("f", seen, b"late")], "f");
    fixture.assert_changed_since(vec![super::remove_change("f", seen, super::single_file_tree(3))], "f");
    fixture.assert_changed_since(vec![put_change("new", CommitExpectation::Absent, b"late")], "new");
    assert_eq!(fixture.read_bytes("f"), b"by another program");
    fixture.commit(vec![put_change("f", fixture.expect_observed_file("f"), b"two")]);
    let version = Version::hash_bytes(b"by another program");
    assert!(fixture.workspace.retained_bytes(&version).unwrap().is_some(), "the overwritten bytes are kept");
}

fn content_must_have_the_planned_version(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let content = PlannedContent::Bytes(b"other".to_vec());
    let (path, version, mode) = (rel_path("f"), Version::hash_bytes(b"bytes"), FileModeSource::KeepExisting);
    let change = PlannedChange::Put { path, expectation: CommitExpectation::Absent, content, version, size: 5, mode };
    fixture.assert_changed_since(vec![change], "f");
}
