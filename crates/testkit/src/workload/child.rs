//! The child process of the crash tests, which makes changes, reports them, and may be killed at any time.

use std::{io::BufRead, path::PathBuf, sync::Arc};

use crate::native::{EngineJsonCalls, JsonCall};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stead_disk::SystemClock;
use stead_engine::{Caller, Engine, Error, Principal};
use stead_local::{Clock, ClockReading, Durability, LocalWorkspace, LocalWorkspaceOptions};

use super::model::{CrashTestWorkloadStep, WorkspaceReferenceModel};
use crate::stress::{Fallible, SeededRng, send_to_parent};

/// The instructions of a child process, one line of JSON on its standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CrashTestChildConfig {
    /// The workspace directory that the child process changes.
    pub workspace: PathBuf,
    /// The state directory of the child's workspace.
    pub state: PathBuf,
    /// Whether the child syncs each change to disk before acknowledging it.
    pub full: bool,
    /// The seed of the child's random choices.
    pub seed: u64,
    /// A fake boot id that the workspace sees, to simulate a restart of the machine.
    pub boot: Option<String>,
    /// The number of changes that the child makes before it waits to be killed.
    pub steps: u64,
    /// The expected state of the workspace when the child starts.
    pub model: WorkspaceReferenceModel,
}

impl CrashTestChildConfig {
    /// Opens the child's workspace with the durability and the boot id of the configuration.
    pub fn open(&self) -> Result<Arc<LocalWorkspace>, Error> {
        let mut options = LocalWorkspaceOptions::new(self.workspace.clone(), self.state.clone());
        options.durability = if self.full { Durability::Full } else { Durability::Fast };
        if let Some(boot) = &self.boot {
            options.clock = Arc::new(FakeBootIdClock { clock: SystemClock::default(), boot: boot.clone() });
        }
        LocalWorkspace::open(options)
    }
}

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

/// The journal entry and the trash item of an acknowledged change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashTestChangeAcknowledgement {
    /// The number of the acknowledged change's journal entry.
    pub entry: u64,
    /// The hash of the acknowledged change's journal entry.
    pub hash: String,
    /// The id of the trash item that the change created, if any.
    pub trash: Option<String>,
}

impl CrashTestChangeAcknowledgement {
    /// Reads the acknowledgement of a change from the result of its call.
    pub fn from_answer(answer: &Map<String, Value>) -> Option<Self> {
        Some(Self {
            entry: answer.get("entry")?.as_u64()?,
            hash: answer.get("hash")?.as_str()?.to_owned(),
            trash: answer.get("trash").and_then(Value::as_str).map(str::to_owned),
        })
    }
}

/// One message of a child process to its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CrashTestChildMessage {
    /// The child has opened the workspace.
    Open,
    /// The child is about to make this change.
    Begin(CrashTestWorkloadStep),
    /// The child's last begun change was acknowledged.
    Done(CrashTestChangeAcknowledgement),
    /// The child's change failed with this unexpected error.
    Failed(String),
    /// The child has made all its changes.
    End,
}

/// Runs the child process until its standard input ends.
pub fn run_child() -> Fallible<()> {
    let mut input = String::new();
    std::io::stdin().lock().read_line(&mut input)?;
    let mut work: CrashTestChildConfig = serde_json::from_str(&input)?;
    let workspace = work.open()?;
    send_to_parent(&CrashTestChildMessage::Open)?;
    let engine = Engine::new(workspace as Arc<dyn stead_engine::Workspace>);
    let caller = Caller::new(Principal::Agent("worker".to_owned()), "child", "library");
    let mut chance = SeededRng::from_seed(work.seed);
    for _ in 0..work.steps {
        let step = work.model.next_step(&mut chance);
        let (operation, arguments) = work.model.call_for(&step);
        send_to_parent(&CrashTestChildMessage::Begin(step.clone()))?;
        match engine.call(&JsonCall::new(&caller, operation, arguments)) {
            Ok(answer) => {
                let ack =
                    CrashTestChangeAcknowledgement::from_answer(&answer.json).ok_or("an answer without an entry")?;
                work.model.apply_step(&step, ack.trash.clone());
                send_to_parent(&CrashTestChildMessage::Done(ack))?;
            }
            Err(failure) => {
                send_to_parent(&CrashTestChildMessage::Failed(format!("{step:?}: {failure}")))?;
                break;
            }
        }
    }
    send_to_parent(&CrashTestChildMessage::End)?;
    // The parent ends the child by closing its input or by killing it.
    input.clear();
    std::io::stdin().lock().read_line(&mut input)?;
    Ok(())
}
