//! A whole workspace in memory: tree, journal, kept bytes, trash, leases, idempotency keys, and a clock that stands
//! still until it is told otherwise. One mutex around all of it: every verb is atomic by construction.

mod apply;
mod approval;
mod buffers;
mod desk;
mod fixture;
mod lease;
mod ledger;
mod tree;
mod watch;

use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use engine::{
    Approval, ApprovalAnswer, ApprovalAsk, ApprovalFilter, Charge, CommitError, Committed, Connection,
    EntryFilter, Failure, FileBytes, Guard, Head, InForce, Kind, Last, Lease, LeaseAsk, Listed, LockAsk,
    NameProfile, Node, Plan, Principal, Profile, Record, Stock, Stored, Trashed, Version, Want, Watch,
    WatchAsk, Workspace,
};
use journal::Link;
use ledger::Ledger;
use path::RelPath;
use serde_json::{Value, json};
use tree::{Item, Tree};

/// When the clock starts: 2026-01-01T00:00:00Z.
const START_MS: i64 = 1_767_225_600_000;
/// The workspace's id.
const ID: &str = "memory";

/// A workspace in memory.
pub struct MemoryWorkspace {
    profile: Profile,
    state: Mutex<State>,
    grown: Condvar,
}

/// Everything that changes.
struct State {
    now_ms: i64,
    tree: Tree,
    ledger: Ledger,
    kept: BTreeMap<Version, Vec<u8>>,
    trash: BTreeMap<String, apply::InTrash>,
    leases: Vec<Lease>,
    watches: Vec<Watch>,
    fence: u64,
    approvals: Vec<Approval>,
    in_force: InForce,
    desk: desk::Kept,
    /// What was held before each change.
    before: BTreeMap<u64, Stock>,
    buffers: Vec<buffers::Kept>,
    /// What each of them was opened over.
    connections: BTreeMap<String, Arc<Connection>>,
    full: bool,
    /// What the next call fails with.
    fails: Option<Failure>,
}

impl Default for MemoryWorkspace {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryWorkspace {
    /// The absolute spelling of its root.
    pub const ROOT: &str = "/ws";

    /// An empty workspace with portable names, whose root callers may spell `/ws`.
    pub fn new() -> Self {
        Self::with_profile(Profile {
            id: ID.to_owned(),
            roots: vec![Self::ROOT.to_owned()],
            names: NameProfile::Portable,
            own: Vec::new(),
        })
    }

    /// An empty workspace with this profile.
    pub fn with_profile(profile: Profile) -> Self {
        let state = State {
            now_ms: START_MS,
            tree: Tree::new(START_MS),
            ledger: Ledger::new(&profile.id),
            kept: BTreeMap::new(),
            trash: BTreeMap::new(),
            leases: Vec::new(),
            watches: Vec::new(),
            fence: 0,
            approvals: Vec::new(),
            in_force: InForce::built_in(),
            desk: desk::Kept::default(),
            before: BTreeMap::new(),
            buffers: Vec::new(),
            connections: BTreeMap::new(),
            full: false,
            fails: None,
        };
        Self { profile, state: Mutex::new(state), grown: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an entry and wakes whoever waits for one.
    fn record(
        &self,
        state: &mut State,
        record: &Record<'_>,
        changes: Vec<journal::Change>,
        link: Link,
    ) -> Head {
        let head = state.ledger.append(record, changes, link, state.now_ms);
        self.grown.notify_all();
        head
    }
}

/// Nothing to hold: every verb is atomic.
struct Held;

impl Guard for Held {}

impl Workspace for MemoryWorkspace {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn now_ms(&self) -> i64 {
        self.state().now_ms
    }

    fn locate(&self, path: &RelPath, last: Last) -> Result<RelPath, Failure> {
        self.state().tree.locate(path, last, &self.profile.roots)
    }

    fn stat(&self, path: &RelPath) -> Result<Option<Node>, Failure> {
        Ok(self.state().tree.get(path).map(tree::Placed::node))
    }

    fn read(&self, path: &RelPath, want: Want) -> Result<FileBytes, Failure> {
        let state = self.state();
        let placed = state
            .tree
            .get(path)
            .ok_or_else(|| Failure::new(Kind::NotFound, format!("{path} does not exist")))?;
        let bytes = match &placed.item {
            Item::File(bytes) => bytes,
            Item::Directory => return Err(Failure::new(Kind::IsDirectory, format!("{path} is a directory"))),
            Item::Link(_) | Item::Special => {
                return Err(Failure::new(Kind::NotRegular, format!("{path} is no file")));
            }
        };
        let wanted = match want {
            Want::Nothing => Vec::new(),
            Want::Whole { limit_bytes } if bytes.len() as u64 > limit_bytes => {
                return Err(Failure::new(Kind::TooLarge, format!("{path} is too large to read at once")));
            }
            Want::Whole { .. } => bytes.clone(),
            Want::Range { offset, length } => {
                let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
                let taken = usize::try_from(length).unwrap_or(usize::MAX);
                bytes.iter().skip(skipped).take(taken).copied().collect()
            }
        };
        Ok(FileBytes { bytes: wanted, version: Version::of(bytes), node: placed.node() })
    }

    fn read_link(&self, path: &RelPath) -> Result<Vec<u8>, Failure> {
        match self.state().tree.get(path).map(|placed| &placed.item) {
            Some(Item::Link(target)) => Ok(target.clone()),
            Some(Item::File(_) | Item::Directory | Item::Special) | None => {
                Err(Failure::new(Kind::NotFound, format!("{path} is no link")))
            }
        }
    }

    fn list(&self, path: &RelPath) -> Result<Vec<Listed>, Failure> {
        self.state().tree.list(path)
    }

    fn lock(&self, _asks: &[LockAsk], _deadline: Instant) -> Result<Box<dyn Guard>, Failure> {
        Ok(Box::new(Held))
    }

    fn commit(&self, plan: &Plan, record: &Record<'_>) -> Result<Committed, CommitError> {
        let mut state = self.state();
        if state.full {
            return Err(Failure::new(Kind::NoSpace, "no space left").into());
        }
        if let Some(number) = record.key.and_then(|key| state.ledger.replayed(&record.caller.principal, key))
        {
            return Err(CommitError::Replayed(number));
        }
        approval::check(&state, record)?;
        let holding = desk::held(&state, &record.caller.principal);
        if let Some(charge) = record.quota.map(|quota| Charge::of(plan, quota)) {
            let before = charge.undoes().and_then(|number| state.before.get(&number).copied());
            charge.judge(&holding, before)?;
        }
        let owner = record.caller.principal.to_string();
        buffers::check(&state, &plan.buffers)?;
        let applied = apply::apply(&state, plan, &owner)?;
        let head = self.record(&mut state, record, applied.changes, plan.link.clone());
        approval::consume(&mut state, record, head.number);
        state.before.insert(head.number, holding.stock);
        let trash = applied.trashed.iter().map(|item| item.facts.id.clone()).collect();
        state.tree = applied.tree;
        state.kept.extend(applied.kept);
        buffers::follow(&mut state, &plan.buffers);
        for id in &applied.restored {
            state.trash.remove(id);
        }
        for mut item in applied.trashed {
            item.facts.entry = head.number;
            state.trash.insert(item.facts.id.clone(), item);
        }
        Ok(Committed { number: head.number, hash: head.hash, trash, notices: applied.notices })
    }

    fn note(&self, record: &Record<'_>) -> Result<(), Failure> {
        let mut state = self.state();
        if record.reason.is_none() {
            approval::check(&state, record)?;
        }
        let head = self.record(&mut state, record, Vec::new(), Link::None);
        if record.reason.is_none() {
            approval::consume(&mut state, record, head.number);
        }
        Ok(())
    }

    fn head(&self) -> Result<Head, Failure> {
        Ok(self.state().ledger.head())
    }

    fn entry(&self, number: u64) -> Result<Option<Stored>, Failure> {
        Ok(self.state().ledger.entry(number).cloned())
    }

    fn entries(&self, filter: &EntryFilter) -> Result<Vec<Stored>, Failure> {
        Ok(self.state().ledger.entries(filter))
    }

    fn wait_after(&self, number: u64, deadline: Instant) -> Result<(), Failure> {
        let mut state = self.state();
        while state.ledger.head().number <= number {
            let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            else {
                break;
            };
            state = self.grown.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    fn rev_of(&self, path: &RelPath, version: &Version) -> Result<Option<u64>, Failure> {
        Ok(self.state().ledger.rev_of(path, version))
    }

    fn replayed(&self, principal: &Principal, key: &str) -> Result<Option<u64>, Failure> {
        Ok(self.state().ledger.replayed(principal, key))
    }

    fn kept(&self, version: &Version) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.state().kept.get(version).cloned())
    }

    fn trashed(&self, id: &str) -> Result<Option<Trashed>, Failure> {
        Ok(self.state().trash.get(id).map(|item| item.facts.clone()))
    }

    fn trash(&self, owner: Option<&Principal>) -> Result<Vec<Trashed>, Failure> {
        let owner = owner.map(ToString::to_string);
        let state = self.state();
        let mut items: Vec<Trashed> = state.trash.values().map(|item| item.facts.clone()).collect();
        items.retain(|item| owner.as_ref().is_none_or(|owner| item.owner == *owner));
        items.sort_by_key(|item| std::cmp::Reverse(item.entry));
        Ok(items)
    }

    fn lease(&self, ask: &LeaseAsk, record: &Record<'_>) -> Result<(Lease, Committed), Failure> {
        let mut state = self.state();
        approval::check(&state, record)?;
        let lease = lease::judge(&state, ask, &record.caller.principal.to_string())?;
        lease::write(&mut state, ask, &lease);
        let head = self.record(&mut state, record, Vec::new(), Link::None);
        approval::consume(&mut state, record, head.number);
        let committed =
            Committed { number: head.number, hash: head.hash, trash: Vec::new(), notices: Vec::new() };
        Ok((lease, committed))
    }

    fn leases(&self, paths: &[RelPath]) -> Result<Vec<Lease>, Failure> {
        let state = self.state();
        Ok(lease::running(&state)
            .filter(|lease| paths.iter().any(|path| lease::overlap(&lease.path, path)))
            .cloned()
            .collect())
    }

    fn in_force(&self) -> Result<InForce, Failure> {
        let mut state = self.state();
        match state.fails.take() {
            Some(failure) => Err(failure),
            None => Ok(state.in_force.clone()),
        }
    }

    fn approval(&self, id: &str) -> Result<Option<Approval>, Failure> {
        Ok(approval::all(&self.state()).into_iter().find(|approval| approval.id == id))
    }

    fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, Failure> {
        Ok(approval::fitting(&self.state(), filter))
    }

    fn ask(&self, ask: &ApprovalAsk) -> Result<Approval, Failure> {
        approval::ask(&mut self.state(), ask)
    }

    fn answer(&self, answer: &ApprovalAnswer, record: &Record<'_>) -> Result<(Approval, Committed), Failure> {
        let mut state = self.state();
        let approval = approval::answer(&mut state, answer, record)?;
        let head = self.record(&mut state, record, Vec::new(), Link::None);
        let committed =
            Committed { number: head.number, hash: head.hash, trash: Vec::new(), notices: Vec::new() };
        Ok((approval, committed))
    }

    fn watch(
        &self,
        ask: &WatchAsk,
        record: &Record<'_>,
        _deadline: Instant,
    ) -> Result<(Watch, Committed), Failure> {
        let mut state = self.state();
        let watch = watch::judge(&state, ask, record)?;
        watch::write(&mut state, ask, &watch);
        let head = self.record(&mut state, record, Vec::new(), Link::None);
        let committed =
            Committed { number: head.number, hash: head.hash, trash: Vec::new(), notices: Vec::new() };
        Ok((watch, committed))
    }

    fn watches(&self, owner: &Principal) -> Result<Vec<Watch>, Failure> {
        let owner = owner.to_string();
        Ok(self.state().watches.iter().filter(|watch| watch.owner == owner).cloned().collect())
    }

    fn undone(&self, number: u64) -> Result<Option<u64>, Failure> {
        Ok(self.state().ledger.undone(number))
    }

    fn describe(&self) -> Value {
        json!({ "kind": "memory", "entries": self.state().ledger.head().number })
    }
}
