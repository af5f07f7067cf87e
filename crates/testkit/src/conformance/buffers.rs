//! Conformance tests of open buffers and drafts: revisions, plans that change buffers, and the end of an editor.

use stead_engine::{
    BufferEditorConnectionState, BufferStoreRequest, BufferWithText, CallerResourceLifetime, CommitError,
    CommitExpectation, EditorBufferMetadata, EditorSentTextLineEndings, Error, ErrorKind, Plan, PlannedBufferChange,
    PlannedBufferChangeKind, Version,
};

use super::{
    ConformanceWorkspaceFactory, TestClockChange, WorkspaceConformanceCaseTable, WorkspaceUnderConformanceTest,
    put_change, rel_path,
};

pub(super) const CASES: WorkspaceConformanceCaseTable = &[
    ("an opened buffer is stored with its text", opened_buffer_is_stored),
    ("a file is open in one buffer at a time", file_is_open_once),
    ("a buffer changes only from the expected revision", change_needs_the_current_revision),
    ("a closed buffer is gone", closed_buffer_is_gone),
    ("a commit changes the buffers of its plan", commit_changes_buffers),
    ("a commit fails if a buffer of its plan has changed", commit_fails_if_a_buffer_changed),
    ("the end of a connection turns its buffers into drafts", end_of_connection_leaves_drafts),
    ("the end of a process turns its buffers into drafts", end_of_process_leaves_drafts),
    ("a draft is resumed unless the file is open", draft_is_resumed_unless_file_is_open),
    ("opening a buffer drops the drafts that it replaces", opening_drops_replaced_drafts),
];

pub(super) fn execute(
    fixture: &WorkspaceUnderConformanceTest,
    request: &BufferStoreRequest,
) -> Result<EditorBufferMetadata, Error> {
    let record = fixture.journal_record("buffer", None);
    fixture.workspace.execute_buffer_request(request, &record).map(|(buffer, _)| buffer)
}

fn open_request(path: &str, text: &[u8]) -> BufferStoreRequest {
    BufferStoreRequest::Open {
        path: rel_path(path),
        text: text.to_vec(),
        base: None,
        line_endings: EditorSentTextLineEndings::SameAsFile,
        replaced_drafts: Vec::new(),
    }
}

pub(super) fn open_buffer(
    fixture: &WorkspaceUnderConformanceTest,
    path: &str,
    text: &[u8],
) -> Result<EditorBufferMetadata, Error> {
    execute(fixture, &open_request(path, text))
}

pub(super) fn change_request(id: &str, revision: u64, text: &[u8]) -> BufferStoreRequest {
    BufferStoreRequest::Change {
        id: id.to_owned(),
        revision,
        text: text.to_vec(),
        base: Some(Version::hash_bytes(b"base")),
        line_endings: EditorSentTextLineEndings::LfOnly,
    }
}

pub(super) fn resume_request(id: &str) -> BufferStoreRequest {
    BufferStoreRequest::ResumeDraft { id: id.to_owned() }
}

pub(super) fn close_request(id: &str) -> BufferStoreRequest {
    BufferStoreRequest::Close { id: id.to_owned() }
}

pub(super) fn states(fixture: &WorkspaceUnderConformanceTest) -> Vec<(String, BufferEditorConnectionState)> {
    let buffers = fixture.workspace.buffers().unwrap();
    buffers.into_iter().map(|buffer| (buffer.path.to_string(), buffer.open_state)).collect()
}

#[track_caller]
fn buffer_text(fixture: &WorkspaceUnderConformanceTest, id: &str) -> BufferWithText {
    fixture.workspace.buffer_text(id).unwrap().unwrap()
}

fn opened_buffer_is_stored(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let base = Some(Version::hash_bytes(b"saved"));
    let request = BufferStoreRequest::Open {
        path: rel_path("d/f"),
        text: b"typed".to_vec(),
        base,
        line_endings: EditorSentTextLineEndings::LfOnly,
        replaced_drafts: Vec::new(),
    };
    let record = fixture.journal_record("buffer.open", None);
    let (buffer, receipt) = fixture.workspace.execute_buffer_request(&request, &record).unwrap();
    assert_eq!(receipt.entry, fixture.head_number());
    let expected = EditorBufferMetadata {
        id: format!("b{}", receipt.entry),
        path: rel_path("d/f"),
        owner: "agent:one".to_owned(),
        session: fixture.caller.session.clone(),
        open_state: BufferEditorConnectionState::OpenHere,
        revision: 1,
        version: Version::hash_bytes(b"typed"),
        size: 5,
        base,
        line_endings: EditorSentTextLineEndings::LfOnly,
        editor_revision: 1,
        changed_ms: fixture.workspace.now_ms(),
    };
    assert_eq!(buffer, expected);
    assert_eq!(fixture.workspace.buffers().unwrap(), std::slice::from_ref(&expected));
    let stored = BufferWithText { buffer: expected, text: b"typed".to_vec(), editor_text: b"typed".to_vec() };
    assert_eq!(fixture.workspace.buffer_text(&buffer.id).unwrap(), Some(stored));
    assert_eq!(fixture.workspace.buffer_text("b0").unwrap(), None);
}

fn file_is_open_once(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let other = fixture.with_other_agent("two");
    let first = open_buffer(&fixture, "b", b"one").unwrap();
    for who in [&fixture, &other] {
        fixture.assert_refused(ErrorKind::Exists, || open_buffer(who, "b", b"two"));
    }
    open_buffer(&other, "a", b"").unwrap();
    open_buffer(&other, "b/c", b"").unwrap();
    let paths: Vec<String> = states(&fixture).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["a", "b", "b/c"], "sorted by path");
    execute(&fixture, &close_request(&first.id)).unwrap();
    assert_ne!(open_buffer(&other, "b", b"two").unwrap().id, first.id);
}

fn change_needs_the_current_revision(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let opened = open_buffer(&fixture, "f", b"1").unwrap();
    factory.change_clock(TestClockChange::Advance(5));
    let changed = execute(&fixture, &change_request(&opened.id, 1, b"second")).unwrap();
    let expected = EditorBufferMetadata {
        revision: 2,
        editor_revision: 2,
        version: Version::hash_bytes(b"second"),
        size: 6,
        base: Some(Version::hash_bytes(b"base")),
        line_endings: EditorSentTextLineEndings::LfOnly,
        changed_ms: opened.changed_ms + 5,
        ..opened
    };
    assert_eq!(changed, expected);
    for revision in [1, 3] {
        let stale = change_request(&changed.id, revision, b"late");
        fixture.assert_refused(ErrorKind::Busy, || execute(&fixture, &stale));
    }
    let stored = buffer_text(&fixture, &changed.id);
    assert_eq!((stored.buffer, stored.text, stored.editor_text), (changed, b"second".to_vec(), b"second".to_vec()));
}

fn closed_buffer_is_gone(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let opened = open_buffer(&fixture, "f", b"1").unwrap();
    assert_eq!(execute(&fixture, &close_request(&opened.id)).unwrap(), opened);
    assert_eq!(fixture.workspace.buffers().unwrap(), Vec::new());
    assert_eq!(fixture.workspace.buffer_text(&opened.id).unwrap(), None);
    for late in [change_request(&opened.id, 1, b"2"), resume_request(&opened.id), close_request(&opened.id)] {
        fixture.assert_refused(ErrorKind::NotFound, || execute(&fixture, &late));
    }
}

fn plan_with_buffer(path: &str, id: &str, expected_revision: u64, kind: PlannedBufferChangeKind) -> Plan {
    let mut plan = Plan::new(vec![put_change(path, CommitExpectation::Absent, b"x")]);
    plan.buffers.push(PlannedBufferChange { id: id.to_owned(), expected_revision, kind });
    plan
}

fn commit_changes_buffers(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let opened = open_buffer(&fixture, "f", b"typed").unwrap();
    let commit = |path: &str, revision, kind| {
        fixture.try_plan(&plan_with_buffer(path, &opened.id, revision, kind), None).unwrap();
        buffer_text(&fixture, &opened.id)
    };
    factory.change_clock(TestClockChange::Advance(5));
    let (text, base) = (b"typed and more".to_vec(), Version::hash_bytes(b"first"));
    let replaced = commit("a", 1, PlannedBufferChangeKind::ReplaceText { text: text.clone(), base });
    let buffer = EditorBufferMetadata {
        revision: 2,
        version: Version::hash_bytes(&text),
        size: 14,
        base: Some(base),
        changed_ms: opened.changed_ms + 5,
        ..opened.clone()
    };
    assert_eq!(replaced, BufferWithText { buffer: buffer.clone(), text, editor_text: b"typed".to_vec() });
    let base = Version::hash_bytes(b"second");
    let saved = commit("b", 2, PlannedBufferChangeKind::MarkSaved { base });
    assert_eq!(saved.buffer, EditorBufferMetadata { base: Some(base), ..buffer.clone() });
    let renamed = commit("c", 2, PlannedBufferChangeKind::Rename(rel_path("g")));
    assert_eq!(renamed.buffer, EditorBufferMetadata { base: Some(base), path: rel_path("g"), ..buffer });
    // The editor sends a text that is based on the new revision.
    let typed = execute(&fixture, &change_request(&opened.id, 2, b"typed again")).unwrap();
    assert_eq!((typed.revision, typed.editor_revision), (3, 3));
}

fn commit_fails_if_a_buffer_changed(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let opened = open_buffer(&fixture, "f", b"1").unwrap();
    execute(&fixture, &change_request(&opened.id, 1, b"2")).unwrap();
    let late = |revision| {
        let kind = PlannedBufferChangeKind::MarkSaved { base: Version::hash_bytes(b"x") };
        match fixture.try_plan(&plan_with_buffer("f", &opened.id, revision, kind), None) {
            Err(CommitError::Failed(error)) => Err(error),
            other => Ok(other),
        }
    };
    let before = buffer_text(&fixture, &opened.id);
    fixture.assert_refused(ErrorKind::Busy, || late(1));
    assert_eq!(buffer_text(&fixture, &opened.id), before);
    execute(&fixture, &close_request(&opened.id)).unwrap();
    fixture.assert_refused(ErrorKind::Busy, || late(2));
}

fn end_of_connection_leaves_drafts(factory: &dyn ConformanceWorkspaceFactory) {
    use BufferEditorConnectionState::{Draft, OpenHere};
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let (first, second) = (CallerResourceLifetime::connected(), CallerResourceLifetime::connected());
    let draft = open_buffer(&fixture.with_lifetime(&first), "a", b"typed").unwrap();
    open_buffer(&fixture.with_lifetime(&second), "b", b"").unwrap();
    open_buffer(&fixture, "c", b"").unwrap();
    let expected = |first| [("a".to_owned(), first), ("b".to_owned(), OpenHere), ("c".to_owned(), OpenHere)];
    assert_eq!(states(&fixture), expected(OpenHere));
    first.end();
    assert_eq!(states(&fixture), expected(Draft));
    let stored = buffer_text(&fixture, &draft.id);
    assert_eq!((stored.buffer.open_state, stored.text), (Draft, b"typed".to_vec()));
    for late in [open_request("d", b""), close_request(&draft.id)] {
        let ended = fixture.with_lifetime(&first);
        fixture.assert_refused(ErrorKind::Cancelled, || execute(&ended, &late));
    }
}

fn end_of_process_leaves_drafts(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let opened = open_buffer(&fixture, "f", b"typed").unwrap();
    let changed = execute(&fixture, &change_request(&opened.id, 1, b"typed more")).unwrap();
    let fixture = fixture.reopen(factory);
    let stored = buffer_text(&fixture, &opened.id);
    assert_eq!(stored.buffer, EditorBufferMetadata { open_state: BufferEditorConnectionState::Draft, ..changed });
    assert_eq!((stored.text, stored.editor_text), (b"typed more".to_vec(), b"typed more".to_vec()));
}

fn draft_is_resumed_unless_file_is_open(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let lifetime = CallerResourceLifetime::connected();
    let draft = open_buffer(&fixture.with_lifetime(&lifetime), "f", b"typed").unwrap();
    lifetime.end();
    // A draft does not keep the file open.
    let opened = open_buffer(&fixture, "f", b"other").unwrap();
    fixture.assert_refused(ErrorKind::Exists, || execute(&fixture, &resume_request(&draft.id)));
    execute(&fixture, &close_request(&opened.id)).unwrap();
    let mut resuming = fixture.with_other_agent("one");
    resuming.caller.session = "later".to_owned();
    let resumed = execute(&resuming, &resume_request(&draft.id)).unwrap();
    let expected = EditorBufferMetadata { session: "later".to_owned(), revision: 2, editor_revision: 2, ..draft };
    assert_eq!(resumed, expected);
    assert_eq!(buffer_text(&fixture, &expected.id).buffer, expected, "the buffer is open now");
    fixture.assert_refused(ErrorKind::Exists, || open_buffer(&fixture, "f", b""));
}

fn opening_drops_replaced_drafts(factory: &dyn ConformanceWorkspaceFactory) {
    let fixture = WorkspaceUnderConformanceTest::new(factory);
    let lifetime = CallerResourceLifetime::connected();
    let connected = fixture.with_lifetime(&lifetime);
    let [first, second] = ["f", "g"].map(|path| open_buffer(&connected, path, b"draft").unwrap().id);
    lifetime.end();
    let mut request = open_request("f", b"new");
    let BufferStoreRequest::Open { replaced_drafts, .. } = &mut request else { panic!("a request to open") };
    replaced_drafts.push(first.clone());
    execute(&fixture, &request).unwrap();
    assert_eq!(fixture.workspace.buffer_text(&first).unwrap(), None);
    assert!(fixture.workspace.buffer_text(&second).unwrap().is_some());
}
