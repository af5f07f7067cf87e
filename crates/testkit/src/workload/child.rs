//! The process that makes the changes: reports each change before and after it. May be killed at any time.

use std::{io::BufRead, path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stead_disk::SystemClock;
use stead_engine::{Call, Caller, Engine, Error, Principal};
use stead_local::{Clock, ClockReading, Durability, LocalWorkspace, LocalWorkspaceOptions};

use super::model::{CrashTestWorkloadStep, WorkspaceReferenceModel};
use crate::stress::{Fallible, SeededRng, send_to_parent};

/// Instructions of a child, one line on its standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkloadOrders {
    /// The workspace directory.
    pub workspace: PathBuf,
    /// The state directory.
    pub state: PathBuf,
    /// Whether a change is synced before it is acknowledged.
    pub full: bool,
    /// Seed of its choices.
    pub seed: u64,
    /// The boot id to assume; the real one if absent.
    pub boot: Option<String>,
    /// Number of changes; then the child waits to be killed.
    pub steps: u64,
    /// The initial state.
    pub model: WorkspaceReferenceModel,
}

impl WorkloadOrders {
    /// Opens the workspace.
    pub fn open(&self) -> Result<Arc<LocalWorkspace>, Error> {
        let mut options = LocalWorkspaceOptions::new(self.workspace.clone(), self.state.clone());
        options.durability = if self.full { Durability::Full } else { Durability::Fast };
        if let Some(boot) = &self.boot {
            options.clock = Arc::new(FakeBootIdClock { clock: SystemClock::new(), boot: boot.clone() });
        }
        LocalWorkspace::open(options)
    }
}

/// The system clock with another boot id.
struct FakeBootIdClock {
    clock: SystemClock,
    boot: String,
}

impl Clock for FakeBootIdClock {
    fn now(&self) -> ClockReading {
        let signed = |milliseconds: u64| i64::try_from(milliseconds).unwrap_or(i64::MAX);
        ClockReading {
            wall_ms: signed(self.clock.now_ms()),
            uptime_ms: signed(self.clock.monotonic_ms()),
            boot_id: self.boot.clone(),
        }
    }
}

/// The journal entry of an acknowledged change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadChangeAcknowledgement {
    /// Number of the entry.
    pub entry: u64,
    /// Hash of the entry.
    pub hash: String,
    /// The trash item of the change, if any.
    pub trash: Option<String>,
}

impl WorkloadChangeAcknowledgement {
    /// Reads the acknowledgement from a result.
    pub fn from_answer(answer: &Map<String, Value>) -> Option<Self> {
        Some(Self {
            entry: answer.get("entry")?.as_u64()?,
            hash: answer.get("hash")?.as_str()?.to_owned(),
            trash: answer.get("trash").and_then(Value::as_str).map(str::to_owned),
        })
    }
}

/// One message of a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkloadChildMessage {
    /// The workspace is open.
    Open,
    /// About to make this change.
    Begin(CrashTestWorkloadStep),
    /// The change is acknowledged.
    Done(WorkloadChangeAcknowledgement),
    /// An unexpected error.
    Failed(String),
    /// All changes are done.
    End,
}

/// Runs the child until its input ends.
pub fn run_child() -> Fallible<()> {
    let mut input = String::new();
    std::io::stdin().lock().read_line(&mut input)?;
    let mut work: WorkloadOrders = serde_json::from_str(&input)?;
    let workspace = work.open()?;
    send_to_parent(&WorkloadChildMessage::Open)?;
    let engine = Engine::new(workspace as Arc<dyn stead_engine::Workspace>);
    let caller = Caller::new(Principal::Agent("worker".to_owned()), "child", "library");
    let mut chance = SeededRng::from_seed(work.seed);
    for _ in 0..work.steps {
        let step = work.model.next_step(&mut chance);
        let (operation, arguments) = work.model.call_for(&step);
        send_to_parent(&WorkloadChildMessage::Begin(step.clone()))?;
        match engine.call(&Call::new(&caller, operation, arguments)) {
            Ok(answer) => {
                let ack =
                    WorkloadChangeAcknowledgement::from_answer(&answer.json).ok_or("an answer without an entry")?;
                work.model.apply_step(&step, ack.trash.clone());
                send_to_parent(&WorkloadChildMessage::Done(ack))?;
            }
            Err(failure) => {
                send_to_parent(&WorkloadChildMessage::Failed(format!("{step:?}: {failure}")))?;
                break;
            }
        }
    }
    send_to_parent(&WorkloadChildMessage::End)?;
    // The parent ends the child by closing its input or by killing it.
    input.clear();
    std::io::stdin().lock().read_line(&mut input)?;
    Ok(())
}
