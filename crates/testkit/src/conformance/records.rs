//! Conformance tests of the content of journal entries: the fields of the call, and the recorded changes.

use std::time::Instant;

use stead_engine::{
    AlertSeverity, ApprovalAnswer, ApprovalDecision, BufferStoreRequest, Caller, CommitExpectation, CommitReceipt,
    EditorSentTextLineEndings, FileKind, JournalCallRecord, LeaseAcquireOrReleaseRequest, NEW_FILE_MODE, Plan,
    PlannedChange, Principal, SessionStoreWriteRequest, SupervisionTier, TreeSummary, Version, WatchBeginOrEndRequest,
    WatchDepth, WatchLifetimeKind,
};
use stead_journal::{
    ChangeKind, JournalEntry, JournalEntryCaller, JournalEntryDetails, JournalEntryRelation,
    JournaledCallOutcomeStatus, PathState, RecordedChange,
};

use super::{
    ConformanceWorkspaceFactory, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest, approval, lease,
    move_change, put_change, rel_path, remove_change, single_file_tree,
};
use crate::wait::WAIT_TIMEOUT;

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("an entry records every field of its call", entry_records_the_call),
    ("an entry describes written files, directories and links", entry_describes_created_paths),
    ("an entry describes moved paths", entry_describes_moved_paths),
    ("an entry describes removed and restored paths", entry_describes_removed_and_restored_paths),
    ("trash ids are in the order of the removals", trash_ids_follow_the_plan),
    ("every request is one entry with the fields of its call", every_request_is_one_entry),
];

fn file_state(bytes: &[u8]) -> PathState {
    PathState::File { version: Version::hash_bytes(bytes).0, size: bytes.len() as u64, mode: NEW_FILE_MODE }
}

fn recorded(path: &str, kind: ChangeKind, before: PathState, after: PathState) -> RecordedChange {
    RecordedChange { path: path.to_owned(), kind, to: None, before, after }
}

fn renamed(from: &str, to: &str, state: PathState) -> RecordedChange {
    let (path, to) = (from.to_owned(), Some(to.to_owned()));
    RecordedChange { path, kind: ChangeKind::Rename, to, before: state.clone(), after: state }
}

/// Commits a plan and returns the changes that the journal records.
#[track_caller]
fn changes_of(fixture: &WorkspaceUnderConformanceTest, changes: Vec<PlannedChange>) -> Vec<RecordedChange> {
    fixture.entry(fixture.commit(changes).entry).changes
}

fn entry_records_the_call(factory: &dyn ConformanceWorkspaceFactory) {
    let mut fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.caller = Caller::new(Principal::Agent("one".to_owned()), "s-1", "protocol");
    fixture.caller.on_behalf_of = Some(Principal::User("ann".to_owned()));
    let record = JournalCallRecord {
        tool: Some("dialect/tool"),
        caller_arguments: "{\"path\":\"f\"}".to_owned(),
        details: JournalEntryDetails { buffers: vec!["b1".to_owned()], ..JournalEntryDetails::default() },
        policy_tier: SupervisionTier::Notify,
        policy_version: u64::MAX,
        bytes: 7,
        ..fixture.journal_record("write", Some("key"))
    };
    let plan = Plan::with_link(
        vec![put_change("f", CommitExpectation::Absent, b"0123456789")],
        JournalEntryRelation::Restores("t-1".to_owned()),
    );
    let committed = fixture.workspace.commit(&plan, &record).unwrap();
    let written = fixture.entry(committed.entry);
    let expected = JournalEntry {
        number: 1,
        time_ms: fixture.workspace.now_ms(),
        caller: JournalEntryCaller {
            principal: "agent:one".to_owned(),
            on_behalf_of: Some("user:ann".to_owned()),
            session: "s-1".to_owned(),
            protocol: "protocol".to_owned(),
        },
        request_id: Some("key".to_owned()),
        operation: "write".to_owned(),
        tool: Some("dialect/tool".to_owned()),
        arguments: record.caller_arguments.clone(),
        decision: JournaledCallOutcomeStatus::Allowed,
        reason: None,
        policy_version: u64::MAX,
        tier: Some("notify".to_owned()),
        approval: None,
        changes: vec![recorded("f", ChangeKind::Create, PathState::Absent, file_state(b"0123456789"))],
        relation: JournalEntryRelation::Restores("t-1".to_owned()),
        bytes: 10,
        duration_us: written.duration_us,
        details: record.details.clone(),
    };
    assert_eq!(written, expected);
    fixture.workspace.record_call(&JournalCallRecord { approval: Some("operator".to_owned()), ..record }).unwrap();
    assert_eq!(fixture.head_number(), 2);
    let read = fixture.entry(2);
    let expected = JournalEntry {
        number: 2,
        approval: Some("operator".to_owned()),
        changes: Vec::new(),
        relation: JournalEntryRelation::None,
        bytes: 7,
        duration_us: read.duration_us,
        ..expected
    };
    assert_eq!(read, expected);
}

fn entry_describes_created_paths(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let created = changes_of(
        &fixture,
        vec![
            PlannedChange::MakeDirectory { path: rel_path("d"), mode: 0o755 },
            PlannedChange::MakeLink { path: rel_path("d/l"), target: b"f".to_vec() },
            put_change("d/f", CommitExpectation::Absent, b"one"),
        ],
    );
    let expected = [
        recorded("d", ChangeKind::MakeDir, PathState::Absent, PathState::Directory { mode: 0o755 }),
        recorded("d/l", ChangeKind::MakeLink, PathState::Absent, PathState::Link { target: "f".to_owned() }),
        recorded("d/f", ChangeKind::Create, PathState::Absent, file_state(b"one")),
    ];
    assert_eq!(created, expected);
    let modified = changes_of(&fixture, vec![put_change("d/f", fixture.expect_observed_file("d/f"), b"two")]);
    assert_eq!(modified, [recorded("d/f", ChangeKind::Modify, file_state(b"one"), file_state(b"two"))]);
}

fn entry_describes_moved_paths(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    for (path, bytes) in [("a", b"a"), ("b", b"b"), ("d/f", b"f")] {
        fixture.create_file(path, bytes);
    }
    fixture.commit(vec![PlannedChange::MakeLink { path: rel_path("l"), target: b"b".to_vec() }]);
    let file = |path: &str| fixture.expect_observed_file(path);
    let over = changes_of(&fixture, vec![move_change("a", "b", file("a"), file("b"), single_file_tree(1))]);
    let replaced = recorded("b", ChangeKind::Remove, file_state(b"b"), PathState::Absent);
    assert_eq!(over, [replaced, renamed("a", "b", file_state(b"a"))]);
    let same_entry = |path: &str| CommitExpectation::SameEntry(fixture.stat(path).identity);
    let link = TreeSummary { kind: FileKind::Link, files: 1, directories: 0, bytes: 1 };
    let change = move_change("l", "d/l", same_entry("l"), CommitExpectation::Absent, link);
    assert_eq!(changes_of(&fixture, vec![change]), [renamed("l", "d/l", PathState::Link { target: "b".to_owned() })]);
    let tree = TreeSummary { kind: FileKind::Directory, files: 2, directories: 1, bytes: 2 };
    let change = move_change("d", "e", same_entry("d"), CommitExpectation::Absent, tree);
    let state = PathState::Tree { trash: None, files: 2, bytes: 2, version: None };
    assert_eq!(changes_of(&fixture, vec![change]), [renamed("d", "e", state)]);
}

fn entry_describes_removed_and_restored_paths(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    fixture.create_directory("d");
    fixture.create_file("d/f", b"f");
    fixture.create_file("f", b"file");
    fixture.create_directory("empty");
    let tree = TreeSummary { kind: FileKind::Directory, files: 1, directories: 1, bytes: 1 };
    let committed = fixture.commit(vec![
        remove_change("f", fixture.expect_observed_file("f"), single_file_tree(4)),
        remove_change("d", CommitExpectation::SameEntry(fixture.stat("d").identity), tree),
        PlannedChange::RemoveDirectory { path: rel_path("empty") },
    ]);
    let [file, directory] = committed.trash_ids.as_slice() else { panic!("{:?}", committed.trash_ids) };
    let in_trash = |id: &str, bytes, version| PathState::Tree { trash: Some(id.to_owned()), files: 1, bytes, version };
    let removed = |path: &str, before| recorded(path, ChangeKind::Remove, before, PathState::Absent);
    let expected = [
        removed("f", in_trash(file, 4, Some(Version::hash_bytes(b"file").0))),
        removed("d", in_trash(directory, 1, None)),
        removed("empty", PathState::Directory { mode: 0o755 }),
    ];
    assert_eq!(fixture.entry(committed.entry).changes, expected);
    let restore =
        |trash: &str, path: &str, tree| PlannedChange::Restore { trash: trash.to_owned(), path: rel_path(path), tree };
    let changes = vec![restore(file, "g", single_file_tree(4)), restore(directory, "e", tree)];
    let restored = |path: &str, after| recorded(path, ChangeKind::Create, PathState::Absent, after);
    let expected = [restored("g", file_state(b"file")), restored("e", in_trash(directory, 1, None))];
    assert_eq!(changes_of(&fixture, changes), expected);
}

fn trash_ids_follow_the_plan(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let paths = ["c", "a", "d", "b"];
    for path in paths {
        fixture.create_file(path, b"x");
    }
    let remove = |path| remove_change(path, fixture.expect_observed_file(path), single_file_tree(1));
    let committed = fixture.commit(paths.map(remove).into());
    let path_of = |id: &String| fixture.workspace.trash_item(id).unwrap().unwrap().path.to_string();
    assert_eq!(committed.trash_ids.iter().map(path_of).collect::<Vec<_>>(), paths);
}

fn every_request_is_one_entry(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let workspace = &fixture.workspace;
    let before = fixture.head_number();
    let asked = approval::request_approval(&fixture, "p").id;
    assert_eq!(fixture.head_number(), before, "the call that needs approval is recorded by its caller");
    let record =
        |operation| JournalCallRecord { paths: vec![rel_path("d")], ..fixture.journal_record(operation, None) };
    let check = |receipt: CommitReceipt, operation: &str, approval: Option<&str>| {
        let head = workspace.head().unwrap();
        assert_eq!((receipt.entry, receipt.hash), (head.number, head.hash), "{operation}");
        assert_eq!((receipt.trash_ids, receipt.notices), (Vec::new(), Vec::new()), "{operation}");
        let entry = fixture.entry(head.number);
        assert_eq!((entry.operation.as_str(), entry.approval.as_deref()), (operation, approval));
        assert_eq!((entry.caller.principal.as_str(), entry.changes), ("agent:one", Vec::new()), "{operation}");
        head.number
    };
    let decision = ApprovalDecision::Approve;
    let answer = ApprovalAnswer { id: asked.clone(), decision, reason: None };
    let mut numbers =
        vec![check(workspace.answer_approval(&answer, &record("approve")).unwrap().1, "approve", Some(&asked))];
    let ends_ms = workspace.now_ms() + lease::LONG_MS;
    let acquire = LeaseAcquireOrReleaseRequest::Acquire { path: rel_path("d"), ends_ms };
    numbers.push(check(workspace.execute_lease_request(&acquire, &record("lock")).unwrap().1, "lock", None));
    let alert = SessionStoreWriteRequest::SendAlert { severity: AlertSeverity::Info, message: String::new() };
    for request in [SessionStoreWriteRequest::Begin, SessionStoreWriteRequest::BeginTurn, alert] {
        let receipt = workspace.execute_session_request(&request, &record("session")).unwrap().1;
        numbers.push(check(receipt, "session", None));
    }
    let open = BufferStoreRequest::Open {
        path: rel_path("f"),
        text: Vec::new(),
        base: None,
        line_endings: EditorSentTextLineEndings::SameAsFile,
        replaced_drafts: Vec::new(),
    };
    numbers.push(check(workspace.execute_buffer_request(&open, &record("buffer")).unwrap().1, "buffer", None));
    let watch = WatchBeginOrEndRequest::Begin {
        path: rel_path(""),
        depth: WatchDepth::Deep,
        event_kinds: Vec::new(),
        glob: None,
        lifetime: WatchLifetimeKind::Persistent,
    };
    let receipt = workspace.execute_watch_request(&watch, &record("watch"), Instant::now() + WAIT_TIMEOUT).unwrap().1;
    numbers.push(check(receipt, "watch", None));
    assert_eq!(numbers, (before + 1..=before + 7).collect::<Vec<_>>(), "one entry for each request");
    let about_path = stead_engine::JournalEntryQuery { path: Some(rel_path("d")), ..super::journal::unfiltered() };
    let found = workspace.entries(&about_path).unwrap();
    assert_eq!(found.iter().map(|stored| stored.entry.number).collect::<Vec<_>>(), numbers, "found by requested path");
}
