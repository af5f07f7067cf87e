//! The workspace of one conformance case, with short methods to call it, and the changes of its plans.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use stead_engine::{
    BytesToRead, Caller, CallerResourceLifetime, CommitError, CommitExpectation, CommitReceipt, Error, ErrorKind,
    FailedExpectation, FileIdentity, FileKind, FileModeSource, FileStamp, FileStat, FinalSymlink, JournalCallRecord,
    LocateRequest, LocatedPath, PathLockRequest, Plan, PlanTimeFileVersion, PlannedChange, PlannedContent, Principal,
    TreeEntry, TreeSummary, Version, Workspace,
};
use stead_journal::{JournalEntry, JournalEntryRelation};
use stead_path::RelPath;

use super::ConformanceWorkspaceFactory;

const READ_BYTES_MAX: u64 = 1 << 20;
/// A file size in bytes at which a workspace stores the content outside of its database.
pub(super) const LARGE_FILE_BYTES: usize = 100_000;
pub(super) const TRASH_KEEP_MS: i64 = 60_000;

pub(super) fn rel_path(wire: &str) -> RelPath {
    if wire.is_empty() { RelPath::root() } else { RelPath::from_wire(wire).unwrap() }
}

fn agent_caller(name: &str) -> Caller {
    Caller::new(Principal::Agent(name.to_owned()), "session", "test")
}

pub(super) struct WorkspaceUnderConformanceTest {
    pub(super) workspace: Arc<dyn Workspace>,
    pub(super) caller: Caller,
}

impl WorkspaceUnderConformanceTest {
    pub(super) fn new(factory: &dyn ConformanceWorkspaceFactory) -> Self {
        Self { workspace: factory.create(), caller: agent_caller("one") }
    }

    pub(super) fn with_other_agent(&self, name: &str) -> Self {
        Self { workspace: Arc::clone(&self.workspace), caller: agent_caller(name) }
    }

    pub(super) fn reopen(self, factory: &dyn ConformanceWorkspaceFactory) -> Self {
        factory.close(self.workspace);
        Self { workspace: factory.open_again(), caller: self.caller }
    }

    pub(super) fn with_second_opening(&self, factory: &dyn ConformanceWorkspaceFactory) -> Self {
        Self { workspace: factory.open_again(), caller: self.caller.clone() }
    }

    pub(super) fn with_lifetime(&self, lifetime: &CallerResourceLifetime) -> Self {
        let caller = Caller { lifetime: lifetime.clone(), ..self.caller.clone() };
        Self { workspace: Arc::clone(&self.workspace), caller }
    }

    pub(super) fn journal_record<'a>(&'a self, operation: &'static str, key: Option<&'a str>) -> JournalCallRecord<'a> {
        let record = JournalCallRecord::new(&self.caller, operation, "{}".to_owned());
        JournalCallRecord { idempotency_key: key, policy_version: 1, ..record }
    }

    pub(super) fn try_plan(&self, plan: &Plan, key: Option<&str>) -> Result<CommitReceipt, CommitError> {
        let mut asks: Vec<PathLockRequest> = plan
            .changes
            .iter()
            .flat_map(PlannedChange::paths)
            .map(|path| PathLockRequest { path: path.clone() })
            .collect();
        asks.sort();
        asks.dedup();
        let _guard = self.workspace.lock(&asks, Instant::now() + Duration::from_secs(10))?;
        self.workspace.commit(plan, &self.journal_record("test", key))
    }

    pub(super) fn try_commit(&self, changes: Vec<PlannedChange>) -> Result<CommitReceipt, CommitError> {
        self.try_plan(&Plan::new(changes), None)
    }

    #[track_caller]
    pub(super) fn commit(&self, changes: Vec<PlannedChange>) -> CommitReceipt {
        self.try_commit(changes).unwrap_or_else(|error| panic!("{error:?}"))
    }

    #[track_caller]
    pub(super) fn commit_linked(&self, changes: Vec<PlannedChange>, link: JournalEntryRelation) -> u64 {
        self.try_plan(&Plan::with_link(changes, link), None).unwrap_or_else(|error| panic!("{error:?}")).entry
    }

    /// Checks that a commit with a false expectation about `path` fails, changes nothing and records nothing.
    #[track_caller]
    pub(super) fn assert_changed_since(&self, changes: Vec<PlannedChange>, path: &str) {
        let before = (self.list_tree(), self.head_number());
        match self.try_commit(changes) {
            Err(CommitError::ExpectationFailed(failed)) => assert_eq!(failed, FailedExpectation::Path(rel_path(path))),
            other => panic!("should have moved: {other:?}"),
        }
        assert_eq!((self.list_tree(), self.head_number()), before);
    }

    #[track_caller]
    pub(super) fn assert_impossible(&self, changes: Vec<PlannedChange>) {
        let before = self.list_tree();
        assert!(self.try_commit(changes).is_err());
        assert_eq!(self.list_tree(), before);
    }

    #[track_caller]
    pub(super) fn create_file(&self, path: &str, bytes: &[u8]) -> u64 {
        self.commit(vec![put_change(path, CommitExpectation::Absent, bytes)]).entry
    }

    pub(super) fn create_directory(&self, path: &str) {
        self.commit(vec![PlannedChange::MakeDirectory { path: rel_path(path), mode: 0o755 }]);
    }

    pub(super) fn locate(&self, path: &str, last: FinalSymlink) -> Result<LocatedPath, Error> {
        self.workspace.locate(&LocateRequest::Resolve(&rel_path(path), last))
    }

    pub(super) fn entry_at(&self, path: &str) -> Result<Arc<dyn TreeEntry>, Error> {
        self.workspace.entry_at(&rel_path(path))
    }

    #[track_caller]
    pub(super) fn read_link(&self, path: &str) -> Vec<u8> {
        self.entry_at(path).unwrap().read_link().unwrap()
    }

    #[track_caller]
    pub(super) fn observed_file(&self, path: &str) -> PlanTimeFileVersion {
        let file = self.workspace.read(&rel_path(path), BytesToRead::VersionOnly).unwrap();
        file.observed()
    }

    #[track_caller]
    pub(super) fn expect_observed_file(&self, path: &str) -> CommitExpectation {
        CommitExpectation::File(self.observed_file(path))
    }

    #[track_caller]
    pub(super) fn stat(&self, path: &str) -> FileStat {
        self.workspace.stat(&rel_path(path)).unwrap().unwrap()
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.workspace.stat(&rel_path(path)).unwrap().is_some()
    }

    #[track_caller]
    pub(super) fn read_bytes(&self, path: &str) -> Vec<u8> {
        self.workspace.read(&rel_path(path), BytesToRead::Whole { limit_bytes: READ_BYTES_MAX }).unwrap().bytes
    }

    #[track_caller]
    pub(super) fn entry(&self, number: u64) -> JournalEntry {
        self.workspace.entry(number).unwrap().unwrap().entry
    }

    /// Checks that a refused request changes no file and writes no entry.
    #[track_caller]
    pub(super) fn assert_refused<T: std::fmt::Debug>(
        &self,
        kind: ErrorKind,
        request: impl FnOnce() -> Result<T, Error>,
    ) {
        let before = (self.list_tree(), self.head_number());
        assert_fails(request(), kind);
        assert_eq!((self.list_tree(), self.head_number()), before);
    }

    pub(super) fn head_number(&self) -> u64 {
        self.workspace.head().unwrap().number
    }

    pub(super) fn list_tree(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        self.collect_tree(&RelPath::root(), &mut found);
        found
    }

    fn collect_tree(&self, directory: &RelPath, found: &mut Vec<(String, String)>) {
        for listed in self.workspace.list(directory).unwrap() {
            let path = directory.join(&listed.name).unwrap();
            let shown = match listed.kind {
                FileKind::File => self.workspace.read(&path, BytesToRead::VersionOnly).unwrap().version.to_string(),
                FileKind::Directory => "directory".to_owned(),
                FileKind::Link => {
                    String::from_utf8(self.workspace.entry_at(&path).unwrap().read_link().unwrap()).unwrap()
                }
                FileKind::Special => "special".to_owned(),
            };
            found.push((path.to_wire().into_owned(), shown));
            if listed.kind == FileKind::Directory {
                self.collect_tree(&path, found);
            }
        }
    }
}

pub(super) fn put_change(path: &str, expect: CommitExpectation, bytes: &[u8]) -> PlannedChange {
    put_change_with_mode(path, expect, bytes, FileModeSource::KeepExisting)
}

pub(super) fn put_change_with_mode(
    path: &str,
    expect: CommitExpectation,
    bytes: &[u8],
    mode: FileModeSource,
) -> PlannedChange {
    PlannedChange::Put {
        path: rel_path(path),
        expectation: expect,
        content: PlannedContent::Bytes(bytes.to_vec()),
        version: Version::hash_bytes(bytes),
        size: bytes.len() as u64,
        mode,
    }
}

pub(super) fn remove_change(path: &str, expect: CommitExpectation, tree: TreeSummary) -> PlannedChange {
    PlannedChange::Remove { path: rel_path(path), expectation: expect, retain_until_ms: i64::MAX / 2, tree }
}

pub(super) fn move_change(
    from: &str,
    to: &str,
    expect: CommitExpectation,
    over: CommitExpectation,
    tree: TreeSummary,
) -> PlannedChange {
    PlannedChange::Move { from: rel_path(from), to: rel_path(to), expectation: expect, replaced: over, tree }
}

pub(super) fn single_file_tree(bytes: u64) -> TreeSummary {
    TreeSummary { kind: FileKind::File, files: 1, directories: 0, bytes }
}

/// Returns an identity that no real file has.
pub(super) fn unmatched_identity() -> FileIdentity {
    FileIdentity([0; 16])
}

/// Returns a stamp that no real file has.
pub(super) fn unmatched_stamp() -> FileStamp {
    FileStamp([0; 56])
}

#[track_caller]
pub(super) fn assert_fails<T: std::fmt::Debug>(result: Result<T, Error>, kind: ErrorKind) {
    match result {
        Err(failure) => assert_eq!(failure.kind, kind, "{failure}"),
        Ok(value) => panic!("should have failed with {}: {value:?}", kind.code()),
    }
}

#[track_caller]
pub(super) fn assert_commit_fails(result: Result<CommitReceipt, CommitError>, kind: ErrorKind) {
    match result {
        Err(CommitError::Failed(failure)) => assert_eq!(failure.kind, kind, "{failure}"),
        other => panic!("should have failed with {}: {other:?}", kind.code()),
    }
}
