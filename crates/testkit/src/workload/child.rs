//! The process that makes the changes: says what it is about to do, does it, says what came of it. Killed at any time.

use std::{io::BufRead, path::PathBuf, sync::Arc};

use disk::SystemClock;
use engine::{Call, Caller, Engine, Failure, Principal};
use local::{Clock, Durability, LocalWorkspace, Moment, Options};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::model::{Model, Step};
use crate::rig::{Chance, Fallible, say};

/// What a child is told, in one line on its standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Work {
    /// The directory.
    pub workspace: PathBuf,
    /// The state directory.
    pub state: PathBuf,
    /// Whether a change is on the device before it is acknowledged.
    pub full: bool,
    /// The seed of its choices.
    pub seed: u64,
    /// Which start of the machine it is told that this is; the real one, if it is told nothing.
    pub boot: Option<String>,
    /// How many changes it makes; then it waits to be killed.
    pub steps: u64,
    /// What is there.
    pub model: Model,
}

impl Work {
    /// Opens the workspace.
    pub fn open(&self) -> Result<Arc<LocalWorkspace>, Failure> {
        let mut options = Options::new(self.workspace.clone(), self.state.clone());
        options.durability = if self.full { Durability::Full } else { Durability::Fast };
        if let Some(boot) = &self.boot {
            options.clock = Arc::new(Pretended { clock: SystemClock::new(), boot: boot.clone() });
        }
        LocalWorkspace::open(options)
    }
}

/// The machine's clock, as if it had been started another time.
struct Pretended {
    clock: SystemClock,
    boot: String,
}

impl Clock for Pretended {
    fn now(&self) -> Moment {
        let signed = |milliseconds: u64| i64::try_from(milliseconds).unwrap_or(i64::MAX);
        Moment {
            wall_ms: signed(self.clock.now_ms()),
            uptime_ms: signed(self.clock.monotonic_ms()),
            boot: self.boot.clone(),
        }
    }
}

/// Where an acknowledged change is in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// Its entry.
    pub entry: u64,
    /// The entry's hash.
    pub hash: String,
    /// The trash item it made, if it did.
    pub trash: Option<String>,
}

impl Ack {
    /// The acknowledgement in an answer.
    pub fn of(answer: &Map<String, Value>) -> Option<Self> {
        Some(Self {
            entry: answer.get("entry")?.as_u64()?,
            hash: answer.get("hash")?.as_str()?.to_owned(),
            trash: answer.get("trash").and_then(Value::as_str).map(str::to_owned),
        })
    }
}

/// One thing a child says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Line {
    /// The workspace is open.
    Open,
    /// It is about to make this change.
    Begin(Step),
    /// The change is acknowledged.
    Done(Ack),
    /// Something that should not have failed did.
    Failed(String),
    /// It has made all its changes.
    End,
}

/// The child's life. Returns when its input ends.
pub fn run_child() -> Fallible<()> {
    let mut input = String::new();
    std::io::stdin().lock().read_line(&mut input)?;
    let mut work: Work = serde_json::from_str(&input)?;
    let workspace = work.open()?;
    say(&Line::Open)?;
    let engine = Engine::new(workspace as Arc<dyn engine::Workspace>);
    let caller = Caller::new(Principal::Agent("worker".to_owned()), "child", "library");
    let mut chance = Chance::seeded(work.seed);
    for _ in 0..work.steps {
        let step = work.model.next(&mut chance);
        let (operation, arguments) = work.model.call(&step);
        say(&Line::Begin(step.clone()))?;
        match engine.call(&Call::new(&caller, operation, arguments)) {
            Ok(answer) => {
                let ack = Ack::of(&answer.json).ok_or("an answer without an entry")?;
                work.model.happened(&step, ack.trash.clone());
                say(&Line::Done(ack))?;
            }
            Err(failure) => {
                say(&Line::Failed(format!("{step:?}: {failure}")))?;
                break;
            }
        }
    }
    say(&Line::End)?;
    // Whoever started us ends us, by closing our input or by killing us.
    input.clear();
    std::io::stdin().lock().read_line(&mut input)?;
    Ok(())
}
