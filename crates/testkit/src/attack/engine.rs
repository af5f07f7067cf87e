//! The engine on a real directory, called as a library. Its clock stands still until it is moved.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use engine::{Approver, Call, Caller, Engine, EntryFilter, Order, Principal, Stored, Workspace};
use journal::{Entry, Link};
use local::{Clock, Durability, LocalWorkspace, Moment, Options};
use path::RelPath;
use serde_json::Value;

use super::{
    ledger,
    subject::{Asked, Chore, Ledger, Opening, Recorded, Reply, Subject},
};

/// A person who has shown the approver's secret. Only this subject knows one: no face ever lets anybody be it.
const APPROVER: &str = "user:approver";
/// When the clock starts, in unix milliseconds.
const START_MS: i64 = 1_800_000_000_000;

/// A clock that goes when it is told to.
#[derive(Default)]
struct StillClock {
    wall_ms: AtomicI64,
    uptime_ms: AtomicI64,
}

impl Clock for StillClock {
    fn now(&self) -> Moment {
        Moment {
            wall_ms: START_MS + self.wall_ms.load(Ordering::SeqCst),
            uptime_ms: self.uptime_ms.load(Ordering::SeqCst),
            boot: "one".to_owned(),
        }
    }
}

/// The engine over an open workspace.
pub struct EngineSubject {
    workspace: Arc<LocalWorkspace>,
    engine: Engine,
    clock: Arc<StillClock>,
}

impl EngineSubject {
    /// Opens it.
    pub fn open(opening: &Opening) -> io::Result<Box<dyn Subject>> {
        let clock = Arc::new(StillClock::default());
        let mut options = Options::new(opening.workspace.clone(), opening.state.clone());
        options.durability = Durability::Fast;
        options.resolver = opening.resolver;
        options.clock = Arc::clone(&clock) as Arc<dyn Clock>;
        options.mounts = places(&opening.mounts)?;
        let workspace = LocalWorkspace::open(options).map_err(io::Error::other)?;
        let engine = Engine::new(Arc::clone(&workspace) as Arc<dyn Workspace>);
        Ok(Box::new(Self { workspace, engine, clock }))
    }
}

impl Subject for EngineSubject {
    fn ask(&mut self, asked: &Asked) -> io::Result<Reply> {
        let principal = Principal::parse(&asked.principal).map_err(io::Error::other)?;
        let mut caller = Caller::new(principal, "attack", "library");
        if asked.principal == APPROVER {
            caller.grants.approver = Approver::Shown;
        }
        let call = Call::new(&caller, &asked.operation, asked.arguments.clone());
        Ok(match self.engine.call(&call) {
            Ok(answer) => Reply { refused: None, json: Value::Object(answer.json), text: answer.text },
            Err(failure) => Reply {
                refused: Some(failure.kind.code().to_owned()),
                json: failure.to_json(),
                text: failure.to_string(),
            },
        })
    }

    fn tend(&mut self, chore: Chore) -> io::Result<()> {
        match chore {
            Chore::Later(by_ms) => {
                self.clock.wall_ms.fetch_add(by_ms, Ordering::SeqCst);
                self.clock.uptime_ms.fetch_add(by_ms, Ordering::SeqCst);
            }
            Chore::WallJump(by_ms) => {
                self.clock.wall_ms.fetch_add(by_ms, Ordering::SeqCst);
            }
            Chore::Expire => {
                self.workspace.empty_expired().map_err(io::Error::other)?;
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _workspace: &Path) -> io::Result<Option<Ledger>> {
        ledger_of(&self.workspace).map(Some)
    }
}

/// Places as paths.
pub(crate) fn places(names: &[String]) -> io::Result<Vec<RelPath>> {
    names.iter().map(|name| RelPath::from_wire(name).map_err(io::Error::other)).collect()
}

/// The operation of an entry that takes back a change while it is being made.
const AMEND: &str = "amend";
/// Most entries of one case.
const ENTRIES_MAX: usize = 1_000_000;

/// The journal of an open workspace, verified.
pub fn ledger_of(workspace: &LocalWorkspace) -> io::Result<Ledger> {
    workspace.flush().map_err(io::Error::other)?;
    let filter = EntryFilter { order: Order::OldestFirst, limit: ENTRIES_MAX, ..EntryFilter::default() };
    let entries = workspace.entries(&filter).map_err(io::Error::other)?;
    let report = workspace.verify_log(None, &[]).map_err(io::Error::other)?;
    let amended: BTreeMap<u64, Entry> = entries
        .iter()
        .filter_map(|stored| match stored.entry.link {
            // What a later opening found out was not known when the reply was given.
            Link::Amends(number) if stored.entry.operation == AMEND => Some((number, stored.entry.clone())),
            Link::Amends(_) | Link::None | Link::Undoes(_) | Link::Redoes(_) | Link::Restores(_) => None,
        })
        .collect();
    let entries = entries
        .into_iter()
        .filter(|stored| !stored.entry.caller.principal.starts_with("system:"))
        .map(|Stored { entry, .. }| {
            // What was recorded and then could not be made true is told by the entry that amends it.
            let (decision, reason) = match amended.get(&entry.number).and_then(|amend| amend.reason.clone()) {
                Some(code) => (ledger::decision_of(&code), Some(code)),
                None => (entry.decision, entry.reason.clone()),
            };
            Recorded {
                decision: format!("{decision:?}").to_lowercase(),
                reason,
                principal: entry.caller.principal.clone(),
                operation: entry.operation.clone(),
            }
        })
        .collect();
    Ok(Ledger { entries, tamper: report.tamper.map(|tamper| tamper.to_string()) })
}
