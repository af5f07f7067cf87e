//! Conformance tests of quotas: every change updates the usage, and the commit enforces the quota.

use stead_engine::{
    Caller, CommitError, CommitExpectation, ErrorKind, FileKind, JournalCallRecord, Plan, PlannedChange, Principal,
    RequiredUsageFreshness, StorageQuotaLimits, TreeSummary, WorkspaceUsage,
};
use stead_journal::JournalEntryRelation;

use super::{
    ConformanceWorkspaceFactory, TestClockChange, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest,
    move_change, put_change, rel_path, remove_change, single_file_tree,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("what is held follows every change", usage_follows_every_change),
    ("a quota holds inside the commit", quota_is_enforced_in_commit),
    ("an undo may bring back what there was", undo_may_exceed_quota),
    ("a full trash takes nothing more", full_trash_refuses_removal),
    ("the usage before a change is known", usage_before_a_change_is_known),
    ("a recount counts the files of other programs", recount_counts_external_files),
    ("retained versions count for whoever wrote or overwrote them last", history_counts_for_last_writer),
];

pub(super) const UNLIMITED_QUOTA: StorageQuotaLimits =
    StorageQuotaLimits { bytes: None, files: None, trash_bytes: None, history_bytes: None };

pub(super) fn commit_under_quota(
    fixture: &WorkspaceUnderConformanceTest,
    quota: StorageQuotaLimits,
    changes: Vec<PlannedChange>,
    link: JournalEntryRelation,
) -> Result<(u64, Vec<String>), ErrorKind> {
    let record = JournalCallRecord { quota: Some(quota), ..fixture.journal_record("test", None) };
    match fixture.workspace.commit(&Plan::with_link(changes, link), &record) {
        Ok(committed) => Ok((committed.entry, committed.trash_ids)),
        Err(CommitError::Failed(failure)) => Err(failure.kind),
        Err(other) => panic!("{other:?}"),
    }
}

pub(super) fn usage_of(fixture: &WorkspaceUnderConformanceTest, look: RequiredUsageFreshness) -> (u64, u64) {
    let WorkspaceUsage { bytes, files } =
        fixture.workspace.principal_usage(&fixture.caller.principal, look).unwrap().unwrap().workspace;
    (bytes, files)
}

fn usage_follows_every_change(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    fixture.create_file("d/a", b"12345");
    assert_eq!(usage_of(&fixture, RequiredUsageFreshness::RecountIfStale), (5, 2));
    let run = |changes| commit_under_quota(&fixture, UNLIMITED_QUOTA, changes, JournalEntryRelation::None).unwrap();
    run(vec![put_change("b", CommitExpectation::Absent, b"123")]);
    assert_eq!(usage_of(&fixture, RequiredUsageFreshness::Cached), (8, 3));
    run(vec![put_change("b", fixture.expect_observed_file("b"), b"1")]);
    assert_eq!(usage_of(&fixture, RequiredUsageFreshness::Cached), (6, 3));
    run(vec![
        PlannedChange::MakeDirectory { path: rel_path("e"), mode: 0o755 },
        put_change("e/c", CommitExpectation::Absent, b"12"),
    ]);
    assert_eq!(usage_of(&fixture, RequiredUsageFreshness::Cached), (8, 5));
    run(vec![PlannedChange::MakeLink { path: rel_path("l"), target: b"d/a".to_vec() }]);
    assert_eq!(usage_of(&fixture, RequiredUsageFreshness::Cached).1, 6);
    let with_link = usage_of(&fixture, RequiredUsageFreshness::Cached).0;
    run(vec![move_change(
        "e/c",
        "b",
        fixture.expect_observed_file("e/c"),
        fixture.expect_observed_file("b"),
        single_file_tree(2),
    )]);
    assert_eq!(usage_of(&fixture, RequiredUsageFreshness::Cached), (with_link - 1, 5));
    run(vec![PlannedChange::RemoveDirectory { path: rel_path("e") }]);
    assert_eq!(usage_of(&fixture, RequiredUsageFreshness::Cached), (with_link - 1, 4));
    let tree = TreeSummary { kind: FileKind::Directory, files: 1, directories: 1, bytes: 5 };
    let (_, trash) = run(vec![remove_change("d", CommitExpectation::SameEntry(fixture.stat("d").identity), tree)]);
    assert_eq!(usage_of(&fixture, RequiredUsageFreshness::Cached), (with_link - 6, 2));
    run(vec![PlannedChange::Restore { trash: trash[0].clone(), path: rel_path("d"), tree }]);
    assert_eq!(usage_of(&fixture, RequiredUsageFreshness::Cached), (with_link - 1, 4));
    let known = usage_of(&fixture, RequiredUsageFreshness::Cached);
    let fixture = fixture.reopen(factory);
    assert_eq!(usage_of(&fixture, RequiredUsageFreshness::Cached), known);
    assert_eq!(usage_of(&fixture, RequiredUsageFreshness::Recount), known);
}

fn quota_is_enforced_in_commit(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    usage_of(&fixture, RequiredUsageFreshness::RecountIfStale);
    let tight = StorageQuotaLimits { bytes: Some(10), files: Some(2), ..UNLIMITED_QUOTA };
    let run = |changes| commit_under_quota(&fixture, tight, changes, JournalEntryRelation::None).map(|_| ());
    run(vec![put_change("a", CommitExpectation::Absent, b"123456")]).unwrap();
    let before = (fixture.list_tree(), fixture.head_number());
    assert_eq!(run(vec![put_change("b", CommitExpectation::Absent, b"12345")]), Err(ErrorKind::QuotaExceeded));
    assert_eq!((fixture.list_tree(), fixture.head_number()), before, "nothing is changed or recorded");
    run(vec![put_change("b", CommitExpectation::Absent, b"1234")]).unwrap();
    assert_eq!(run(vec![put_change("c", CommitExpectation::Absent, b"")]), Err(ErrorKind::QuotaExceeded));
    run(vec![put_change("a", fixture.expect_observed_file("a"), b"")]).unwrap();
    run(vec![remove_change("b", fixture.expect_observed_file("b"), single_file_tree(4))]).unwrap();
    run(vec![put_change("b", CommitExpectation::Absent, b"1234567890")]).unwrap();
    assert_eq!(run(vec![put_change("a", fixture.expect_observed_file("a"), b"1")]), Err(ErrorKind::QuotaExceeded));
}

fn undo_may_exceed_quota(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("a", b"1234567890");
    usage_of(&fixture, RequiredUsageFreshness::RecountIfStale);
    let tight = StorageQuotaLimits { bytes: Some(5), ..UNLIMITED_QUOTA };
    let (removal, trash) = commit_under_quota(
        &fixture,
        tight,
        vec![remove_change("a", fixture.expect_observed_file("a"), single_file_tree(10))],
        JournalEntryRelation::None,
    )
    .unwrap();
    let back =
        || vec![PlannedChange::Restore { trash: trash[0].clone(), path: rel_path("a"), tree: single_file_tree(10) }];
    assert_eq!(
        commit_under_quota(&fixture, tight, back(), JournalEntryRelation::None).map(|_| ()),
        Err(ErrorKind::QuotaExceeded)
    );
    // With another file in place, the undo would bring the total above every earlier total.
    commit_under_quota(
        &fixture,
        tight,
        vec![put_change("b", CommitExpectation::Absent, b"1")],
        JournalEntryRelation::None,
    )
    .unwrap();
    assert_eq!(
        commit_under_quota(&fixture, tight, back(), JournalEntryRelation::Undoes(removal)).map(|_| ()),
        Err(ErrorKind::QuotaExceeded)
    );
    commit_under_quota(
        &fixture,
        tight,
        vec![remove_change("b", fixture.expect_observed_file("b"), single_file_tree(1))],
        JournalEntryRelation::None,
    )
    .unwrap();
    commit_under_quota(&fixture, tight, back(), JournalEntryRelation::Undoes(removal)).unwrap();
    assert_eq!(fixture.read_bytes("a"), b"1234567890");
}

fn full_trash_refuses_removal(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    for path in ["a", "b"] {
        fixture.create_file(path, b"12345");
    }
    usage_of(&fixture, RequiredUsageFreshness::RecountIfStale);
    let tight = StorageQuotaLimits { trash_bytes: Some(5), ..UNLIMITED_QUOTA };
    let gone = |who: &WorkspaceUnderConformanceTest, path: &str| {
        commit_under_quota(
            who,
            tight,
            vec![remove_change(path, who.expect_observed_file(path), single_file_tree(5))],
            JournalEntryRelation::None,
        )
        .map(|_| ())
    };
    gone(&fixture, "a").unwrap();
    assert_eq!(gone(&fixture, "b"), Err(ErrorKind::QuotaExceeded));
    assert!(fixture.exists("b"));
    // Every principal has its own trash.
    gone(&fixture.with_other_agent("two"), "b").unwrap();
}

fn usage_before_a_change_is_known(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("a", b"123");
    usage_of(&fixture, RequiredUsageFreshness::RecountIfStale);
    let run = |changes| commit_under_quota(&fixture, UNLIMITED_QUOTA, changes, JournalEntryRelation::None).unwrap().0;
    let first = run(vec![put_change("b", CommitExpectation::Absent, b"12")]);
    let second = run(vec![remove_change("a", fixture.expect_observed_file("a"), single_file_tree(3))]);
    let before = |number| fixture.workspace.usage_before_entry(number).unwrap();
    assert_eq!(before(first), Some(WorkspaceUsage { bytes: 3, files: 1 }));
    assert_eq!(before(second), Some(WorkspaceUsage { bytes: 5, files: 2 }));
    assert_eq!(before(second + 1), None);
    fixture.workspace.record_call(&fixture.journal_record("read", None)).unwrap();
    assert_eq!(before(fixture.head_number()), None, "a call without changes has no usage");
}

fn recount_counts_external_files(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_file("a", b"123");
    assert_eq!(usage_of(&fixture, RequiredUsageFreshness::Recount), (3, 1));
    factory.write_externally("b", b"12345");
    // A workspace may report a count that is younger than a minute.
    factory.change_clock(TestClockChange::Advance(60_000));
    assert_eq!(usage_of(&fixture, RequiredUsageFreshness::Recount), (8, 2));
}

fn history_counts_for_last_writer(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let (other, mut user) = (fixture.with_other_agent("two"), fixture.with_other_agent("ann"));
    user.caller = Caller::new(Principal::User("ann".to_owned()), "session", "test");
    let history =
        || [&fixture, &other, &user].map(|who| fixture.workspace.history_bytes(&who.caller.principal).unwrap());
    let replace = |who: &WorkspaceUnderConformanceTest, bytes: &[u8]| {
        who.commit(vec![put_change("f", who.expect_observed_file("f"), bytes)]);
    };
    fixture.create_file("f", b"1");
    assert_eq!(history(), [1, 0, 0]);
    replace(&other, b"22");
    assert_eq!(history(), [0, 3, 0], "the other agent overwrote one byte and wrote two");
    replace(&user, b"333");
    assert_eq!(history(), [0, 1, 5]);
    // A version that the history of a user needs never counts for an agent.
    replace(&fixture, b"4444");
    assert_eq!(history(), [4, 1, 2]);
}
