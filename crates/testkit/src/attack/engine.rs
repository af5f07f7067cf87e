//! The engine as a subject of attacks, called as a library on a real directory with a clock that tests advance.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use crate::native::{EngineJsonCalls, JsonCall};
use serde_json::Value;
use stead_engine::{
    Caller, CallerApproverStatus, Engine, JournalEntryOrder, JournalEntryQuery, Principal, StoredJournalEntry,
    Workspace,
};
use stead_journal::{JournalEntry, JournalEntryRelation};
use stead_local::{Clock, ClockReading, Durability, LocalWorkspace, LocalWorkspaceOptions};
use stead_path::RelPath;

use super::{
    journal_check,
    subject::{
        AttackSubject, AttackSubjectClockOrPurgeAction, AttackSubjectReply, AttackSubjectRequest, SubjectJournal,
        SubjectJournalEntry, SubjectOptions,
    },
};

use crate::error_json;

/// The approver principal counts as a person who presented the approver secret. Only tests of the engine have an
/// approver, because no protocol lets a caller act as an approver.
const APPROVER: &str = "user:approver";
const START_MS: i64 = 1_800_000_000_000;

#[derive(Default)]
struct ManualClock {
    wall_ms: AtomicI64,
    uptime_ms: AtomicI64,
}

impl Clock for ManualClock {
    fn now(&self) -> ClockReading {
        ClockReading {
            wall_ms: START_MS + self.wall_ms.load(Ordering::SeqCst),
            uptime_ms: self.uptime_ms.load(Ordering::SeqCst),
            boot_id: "one".to_owned(),
        }
    }
}

/// The engine with an open workspace, as a subject of attacks.
pub struct EngineAttackSubject {
    workspace: Arc<LocalWorkspace>,
    engine: Engine,
    clock: Arc<ManualClock>,
}

impl EngineAttackSubject {
    /// Opens a local workspace with a manual clock as a subject of attacks.
    pub fn open(opening: &SubjectOptions) -> io::Result<Box<dyn AttackSubject>> {
        let clock = Arc::new(ManualClock::default());
        let mut options = LocalWorkspaceOptions::new(opening.workspace.clone(), opening.state.clone());
        options.durability = Durability::Fast;
        options.resolver = opening.resolver;
        options.clock = Arc::clone(&clock) as Arc<dyn Clock>;
        options.allowed_mounts = parse_paths(&opening.mounts)?;
        let workspace = LocalWorkspace::open(options).map_err(io::Error::other)?;
        let engine = Engine::new(Arc::clone(&workspace) as Arc<dyn Workspace>);
        Ok(Box::new(Self { workspace, engine, clock }))
    }
}

impl AttackSubject for EngineAttackSubject {
    fn send(&mut self, request: &AttackSubjectRequest) -> io::Result<AttackSubjectReply> {
        let principal = Principal::parse(&request.principal).map_err(io::Error::other)?;
        let mut caller = Caller::new(principal, "attack", "library");
        if request.principal == APPROVER {
            caller.grants.approver = CallerApproverStatus::SecretVerified;
        }
        let call = JsonCall::new(&caller, &request.operation, request.arguments.clone());
        Ok(match self.engine.call(&call) {
            Ok(answer) => AttackSubjectReply { refusal: None, json: Value::Object(answer.json), text: answer.text },
            Err(failure) => AttackSubjectReply {
                refusal: Some(failure.kind.code().to_owned()),
                json: error_json(&failure),
                text: failure.to_string(),
            },
        })
    }

    fn maintain(&mut self, chore: AttackSubjectClockOrPurgeAction) -> io::Result<()> {
        match chore {
            AttackSubjectClockOrPurgeAction::AdvanceClocks(by_ms) => {
                self.clock.wall_ms.fetch_add(by_ms, Ordering::SeqCst);
                self.clock.uptime_ms.fetch_add(by_ms, Ordering::SeqCst);
            }
            AttackSubjectClockOrPurgeAction::ShiftWallClock(by_ms) => {
                self.clock.wall_ms.fetch_add(by_ms, Ordering::SeqCst);
            }
            AttackSubjectClockOrPurgeAction::PurgeExpired => {
                self.workspace.delete_expired_trash().map_err(io::Error::other)?;
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>, _workspace: &Path) -> io::Result<Option<SubjectJournal>> {
        read_journal(&self.workspace).map(Some)
    }
}

pub(crate) fn parse_paths(names: &[String]) -> io::Result<Vec<RelPath>> {
    names.iter().map(|name| RelPath::from_wire(name).map_err(io::Error::other)).collect()
}

const AMEND_OPERATION: &str = "amend";
const CASE_ENTRIES_MAX: usize = 1_000_000;

/// Reads the journal of an open workspace and verifies its hash chain.
pub fn read_journal(workspace: &LocalWorkspace) -> io::Result<SubjectJournal> {
    workspace.flush().map_err(io::Error::other)?;
    let filter = JournalEntryQuery {
        order: JournalEntryOrder::OldestFirst,
        limit: CASE_ENTRIES_MAX,
        ..JournalEntryQuery::default()
    };
    let entries = workspace.entries(&filter).map_err(io::Error::other)?;
    let report = workspace.verify_journal(None, &[]).map_err(io::Error::other)?;
    let amended: BTreeMap<u64, JournalEntry> = entries
        .iter()
        .filter_map(|stored| match stored.entry.relation {
            // A later recovery may know more than was known at the time of the reply.
            JournalEntryRelation::Amends(number) if stored.entry.operation == AMEND_OPERATION => {
                Some((number, stored.entry.clone()))
            }
            JournalEntryRelation::Amends(_)
            | JournalEntryRelation::None
            | JournalEntryRelation::Undoes(_)
            | JournalEntryRelation::Redoes(_)
            | JournalEntryRelation::Restores(_) => None,
        })
        .collect();
    let entries = entries
        .into_iter()
        .filter(|stored| !stored.entry.caller.principal.starts_with("system:"))
        .map(|StoredJournalEntry { entry, .. }| {
            // A recorded change that could not be applied is reported by the entry that amends it.
            let (decision, reason) = match amended.get(&entry.number).and_then(|amend| amend.reason.clone()) {
                Some(code) => (journal_check::decision_of_kind(&code), Some(code)),
                None => (entry.decision, entry.reason.clone()),
            };
            SubjectJournalEntry {
                decision: format!("{decision:?}").to_lowercase(),
                reason,
                principal: entry.caller.principal.clone(),
                operation: entry.operation.clone(),
            }
        })
        .collect();
    Ok(SubjectJournal { entries, tampering: report.integrity_error.map(|tamper| tamper.to_string()) })
}
