//! What every workspace must do, whatever it is made of: one suite over the trait, so that a directory, memory and,
//! later, a cluster behave alike. A case fails by panicking; each gets a workspace of its own.
//!
//! Not here: waiting for locks (an implementation may be atomic without them) and what only one of them has.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a case fails by panicking")]

mod approval;
mod desk;
mod history;
mod lasting;
mod lease;
mod looks;
mod moves;
mod puts;
mod quota;
mod trash;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use engine::{
    Caller, Change, CommitError, Committed, Content, Expect, Failure, Kind, LockAsk, Mode, Node, Plan,
    Principal, Record, Seen, Stamp, Tier, Top, Tree, Version, Want, Workspace,
};
use journal::Link;
use path::RelPath;

/// Makes workspaces of one kind.
pub trait Maker {
    /// A new, empty workspace.
    fn make(&self) -> Arc<dyn Workspace>;

    /// The same workspace after it was closed and opened again. The one given is not used any more.
    fn reopen(&self, workspace: Arc<dyn Workspace>) -> Arc<dyn Workspace>;
}

/// One thing that must hold.
pub struct Case {
    /// What it is about.
    pub name: &'static str,
    /// Runs it.
    pub run: fn(&dyn Maker),
}

/// Every case.
pub fn cases() -> Vec<Case> {
    let all = [
        looks::CASES,
        puts::CASES,
        moves::CASES,
        trash::CASES,
        history::CASES,
        lease::CASES,
        desk::CASES,
        lasting::CASES,
        approval::CASES,
        quota::CASES,
    ];
    all.into_iter().flatten().map(|(name, run)| Case { name, run: *run }).collect()
}

/// Runs every case; tells each name before it runs, so that the last one named is the one that failed.
pub fn run(maker: &dyn Maker, mut tell: impl FnMut(&str)) {
    for case in cases() {
        tell(case.name);
        (case.run)(maker);
    }
}

/// A list of cases as the modules write it.
type Cases = &'static [(&'static str, fn(&dyn Maker))];

/// Most bytes that are read at once here.
const READ_LIMIT: u64 = 1 << 20;
/// More bytes than an implementation would keep in its database.
const LARGE: usize = 100_000;
/// How long something in these trashes stays.
const KEEP_MS: i64 = 60_000;

fn at(wire: &str) -> RelPath {
    if wire.is_empty() { RelPath::root() } else { RelPath::from_wire(wire).unwrap() }
}

fn agent(name: &str) -> Caller {
    Caller::new(Principal::Agent(name.to_owned()), "session", "test")
}

/// A workspace with a caller at it.
struct Bench {
    workspace: Arc<dyn Workspace>,
    caller: Caller,
}

impl Bench {
    fn new(maker: &dyn Maker) -> Self {
        Self { workspace: maker.make(), caller: agent("one") }
    }

    /// Somebody else at the same workspace.
    fn and(&self, name: &str) -> Self {
        Self { workspace: Arc::clone(&self.workspace), caller: agent(name) }
    }

    fn reopened(self, maker: &dyn Maker) -> Self {
        Self { workspace: maker.reopen(self.workspace), caller: self.caller }
    }

    fn record<'a>(&'a self, operation: &'static str, key: Option<&'a str>) -> Record<'a> {
        Record {
            tool: None,
            caller: &self.caller,
            operation,
            arguments: "{}".to_owned(),
            paths: Vec::new(),
            key,
            reason: None,
            tier: Tier::Autonomous,
            approval: None,
            policy: 1,
            quota: None,
            bytes: 0,
            started: Instant::now(),
        }
    }

    fn try_plan(&self, plan: &Plan, key: Option<&str>) -> Result<Committed, CommitError> {
        let mut asks: Vec<LockAsk> =
            plan.changes.iter().flat_map(Change::paths).map(|path| LockAsk { path: path.clone() }).collect();
        asks.sort();
        asks.dedup();
        let _guard = self.workspace.lock(&asks, Instant::now() + Duration::from_secs(10))?;
        self.workspace.commit(plan, &self.record("test", key))
    }

    fn try_commit(&self, changes: Vec<Change>) -> Result<Committed, CommitError> {
        self.try_plan(&Plan::of(changes), None)
    }

    #[track_caller]
    fn commit(&self, changes: Vec<Change>) -> Committed {
        self.try_commit(changes).unwrap_or_else(|error| panic!("{error:?}"))
    }

    #[track_caller]
    fn linked(&self, changes: Vec<Change>, link: Link) -> u64 {
        self.try_plan(&Plan::linked(changes, link), None).unwrap_or_else(|error| panic!("{error:?}")).number
    }

    /// A plan that meets another world than it expects: told by the path, and nothing is changed or recorded.
    #[track_caller]
    fn moved(&self, changes: Vec<Change>, path: &str) {
        let before = (self.tree(), self.head());
        match self.try_commit(changes) {
            Err(CommitError::Moved(told)) => assert_eq!(told, at(path)),
            other => panic!("should have moved: {other:?}"),
        }
        assert_eq!((self.tree(), self.head()), before);
    }

    /// A plan that cannot be made true: the tree stays as it is.
    #[track_caller]
    fn impossible(&self, changes: Vec<Change>) {
        let before = self.tree();
        assert!(self.try_commit(changes).is_err());
        assert_eq!(self.tree(), before);
    }

    /// Puts a new file there.
    #[track_caller]
    fn new_file(&self, path: &str, bytes: &[u8]) -> u64 {
        self.commit(vec![put(path, Expect::Absent, bytes)]).number
    }

    fn new_directory(&self, path: &str) {
        self.commit(vec![Change::MakeDirectory { path: at(path), mode: 0o755 }]);
    }

    /// What is expected of a file: what is there now.
    #[track_caller]
    fn seen(&self, path: &str) -> Seen {
        let file = self.workspace.read(&at(path), Want::Nothing).unwrap();
        Seen { version: file.version, stamp: file.node.stamp }
    }

    #[track_caller]
    fn file(&self, path: &str) -> Expect {
        Expect::File(self.seen(path))
    }

    #[track_caller]
    fn node(&self, path: &str) -> Node {
        self.workspace.stat(&at(path)).unwrap().unwrap()
    }

    fn exists(&self, path: &str) -> bool {
        self.workspace.stat(&at(path)).unwrap().is_some()
    }

    #[track_caller]
    fn bytes(&self, path: &str) -> Vec<u8> {
        self.workspace.read(&at(path), Want::Whole { limit_bytes: READ_LIMIT }).unwrap().bytes
    }

    fn head(&self) -> u64 {
        self.workspace.head().unwrap().number
    }

    /// Every place with what is there.
    fn tree(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        self.walk(&RelPath::root(), &mut found);
        found
    }

    fn walk(&self, directory: &RelPath, found: &mut Vec<(String, String)>) {
        for listed in self.workspace.list(directory).unwrap() {
            let path = directory.join(&listed.name).unwrap();
            let shown = match listed.top {
                Top::File => self.workspace.read(&path, Want::Nothing).unwrap().version.to_string(),
                Top::Directory => "directory".to_owned(),
                Top::Link => String::from_utf8(self.workspace.read_link(&path).unwrap()).unwrap(),
                Top::Special => "special".to_owned(),
            };
            found.push((path.to_wire().into_owned(), shown));
            if listed.top == Top::Directory {
                self.walk(&path, found);
            }
        }
    }
}

fn put(path: &str, expect: Expect, bytes: &[u8]) -> Change {
    put_as(path, expect, bytes, Mode::Keep)
}

fn put_as(path: &str, expect: Expect, bytes: &[u8], mode: Mode) -> Change {
    Change::Put {
        path: at(path),
        expect,
        content: Content::Bytes(bytes.to_vec()),
        version: Version::of(bytes),
        size: bytes.len() as u64,
        mode,
    }
}

fn remove(path: &str, expect: Expect, tree: Tree) -> Change {
    Change::Remove { path: at(path), expect, keep_until_ms: i64::MAX / 2, tree }
}

fn shift(from: &str, to: &str, expect: Expect, over: Expect, tree: Tree) -> Change {
    Change::Move { from: at(from), to: at(to), expect, over, tree }
}

fn one_file(bytes: u64) -> Tree {
    Tree { top: Top::File, files: 1, directories: 0, bytes }
}

/// A stamp that nothing has.
fn no_stamp() -> Stamp {
    Stamp { identity: (0, 0), size: 0, modified_ns: 0, changed_ns: 0 }
}

#[track_caller]
fn fails<T: std::fmt::Debug>(result: Result<T, Failure>, kind: Kind) {
    match result {
        Err(failure) => assert_eq!(failure.kind, kind, "{failure}"),
        Ok(value) => panic!("should have failed with {}: {value:?}", kind.code()),
    }
}

/// Fails as a commit.
#[track_caller]
fn commit_fails(result: Result<Committed, CommitError>, kind: Kind) {
    match result {
        Err(CommitError::Failed(failure)) => assert_eq!(failure.kind, kind, "{failure}"),
        other => panic!("should have failed with {}: {other:?}", kind.code()),
    }
}
