//! One process of the multi-process test, which makes random changes to the shared files and reads the change feed.

use std::{io::BufRead, path::PathBuf, sync::Arc};

use crate::native::{EngineJsonCalls, JsonCall, RenderedOutcome};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use stead_engine::{Caller, Engine, Error, ErrorKind, Principal};
use stead_local::{Durability, LocalWorkspace, LocalWorkspaceOptions};

use crate::stress::{Fallible, SeededRng, send_to_parent};

/// The agent that makes all calls with idempotency keys, because a key belongs to one principal.
const KEYED_AGENT: &str = "keyed";
pub(super) const KEYED_FILES: u64 = 3;
/// The error kinds that a call may return because other processes use the same paths.
const ALLOWED_ERRORS: &[ErrorKind] = &[
    ErrorKind::NotFound,
    ErrorKind::Exists,
    ErrorKind::Stale,
    ErrorKind::Conflict,
    ErrorKind::Busy,
    ErrorKind::NothingToDo,
    ErrorKind::IsDirectory,
    ErrorKind::NotDirectory,
    ErrorKind::InvalidPath,
];

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MultiProcessTestMemberInstructions {
    pub(super) workspace: PathBuf,
    pub(super) state: PathBuf,
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) steps: u64,
    /// The number of the first idempotency key that the process uses; later keys count up.
    pub(super) first_key: u64,
}

impl MultiProcessTestMemberInstructions {
    pub(super) fn open(&self) -> Result<Arc<LocalWorkspace>, Error> {
        let mut options = LocalWorkspaceOptions::new(self.workspace.clone(), self.state.clone());
        options.durability = Durability::Fast;
        LocalWorkspace::open(options)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum MultiProcessTestMemberMessage {
    Done { operation: String, entry: u64, hash: String, key: Option<String> },
    Saw(Vec<u64>),
    Refused,
    Failed(String),
    End,
}

struct MultiProcessTestMemberRunner {
    engine: Engine,
    own_caller: Caller,
    keyed_caller: Caller,
    rng: SeededRng,
    trash_ids: Vec<String>,
    cursor: Value,
    serial: u64,
    name: String,
    next_key: u64,
}

/// Runs one process of the multi-process test until its standard input ends.
pub fn run_member() -> Fallible<()> {
    let mut input = String::new();
    std::io::stdin().lock().read_line(&mut input)?;
    let orders: MultiProcessTestMemberInstructions = serde_json::from_str(&input)?;
    let workspace = orders.open()?;
    let mut member = MultiProcessTestMemberRunner {
        engine: Engine::new(workspace as Arc<dyn stead_engine::Workspace>),
        own_caller: Caller::new(Principal::Agent(orders.name.clone()), orders.name.clone(), "library"),
        keyed_caller: Caller::new(Principal::Agent(KEYED_AGENT.to_owned()), orders.name.clone(), "library"),
        rng: SeededRng::from_seed(orders.seed),
        trash_ids: Vec::new(),
        cursor: json!(0),
        serial: 0,
        name: orders.name,
        next_key: orders.first_key,
    };
    for _ in 0..orders.steps {
        member.run_step()?;
    }
    member.read_feed()?;
    send_to_parent(&MultiProcessTestMemberMessage::End)?;
    input.clear();
    std::io::stdin().lock().read_line(&mut input)?;
    Ok(())
}

impl MultiProcessTestMemberRunner {
    fn run_step(&mut self) -> Fallible<()> {
        let file = format!("{}f{}", self.random_path(), self.rng.below(3));
        let other = format!("{}f{}", self.random_path(), self.rng.below(3));
        let tree = format!("c{}", self.rng.below(3));
        let free = format!("c{}", self.rng.below(3));
        self.serial += 1;
        let content = format!("{} {}\n", self.name, self.serial);
        match self.rng.below(20) {
            0..=3 => self.write_file(&file, &content),
            4..=5 => self.call_as_self("append", json!({ "path": file, "content": content })),
            6..=8 => self.append_with_key(),
            9..=10 => self.call_as_self("copy", json!({ "from": "stable", "to": tree })),
            11 => self.call_as_self("move", json!({ "from": file, "to": other, "overwrite": true })),
            12 => self.call_as_self("move", json!({ "from": tree, "to": free })),
            13 => self.remove_file(&file),
            14 => self.remove_file(&tree),
            15 => self.restore_from_trash(),
            16..=17 => self.call_as_self("undo", json!({})),
            18 => self.call_as_self("redo", json!({})),
            _ => self.read_feed(),
        }
    }

    fn random_path(&mut self) -> &'static str {
        self.rng.pick(&["", "d/", "c0/", "c1/sub/"]).copied().unwrap_or_default()
    }

    fn write_file(&mut self, path: &str, content: &str) -> Fallible<()> {
        let seen = self.call_operation("read", json!({ "path": path }), None)?;
        let base = seen.and_then(|answer| answer.get("version").cloned()).unwrap_or_else(|| json!(""));
        self.call_as_self("write", json!({ "path": path, "content": content, "base": base }))
    }

    /// Appends a line that is the same in every process for the same idempotency key. The file must contain each line
    /// only once, although several processes use the key.
    fn append_with_key(&mut self) -> Fallible<()> {
        let number = self.next_key;
        self.next_key += 1;
        let (path, content) = (format!("keyed{}", number % KEYED_FILES), format!("key {number}\n"));
        self.call_operation("append", json!({ "path": path, "content": content }), Some(format!("k{number}"))).map(drop)
    }

    fn remove_file(&mut self, path: &str) -> Fallible<()> {
        let answer = self.call_operation("remove", json!({ "path": path, "recursive": true }), None)?;
        let id = answer.and_then(|answer| answer.get("trash").and_then(Value::as_str).map(str::to_owned));
        self.trash_ids.extend(id);
        Ok(())
    }

    fn restore_from_trash(&mut self) -> Fallible<()> {
        let Some(id) = self.trash_ids.pop() else { return Ok(()) };
        self.call_as_self("restore", json!({ "trash": id }))
    }

    fn read_feed(&mut self) -> Fallible<()> {
        loop {
            let Some(answer) = self.call_operation("changes", json!({ "since": self.cursor }), None)? else {
                return Err("the feed cannot be read".into());
            };
            let number = |event: &Value| event.get("entry").and_then(Value::as_u64);
            let events = answer.get("events").and_then(Value::as_array).cloned().unwrap_or_default();
            let mut entries: Vec<u64> = events.iter().filter_map(number).collect();
            entries.dedup();
            send_to_parent(&MultiProcessTestMemberMessage::Saw(entries))?;
            self.cursor = answer.get("cursor").cloned().unwrap_or(Value::Null);
            if answer.get("truncated") != Some(&Value::Bool(true)) {
                return Ok(());
            }
        }
    }

    fn call_as_self(&mut self, operation: &str, arguments: Value) -> Fallible<()> {
        self.call_operation(operation, arguments, None).map(drop)
    }

    fn call_operation(
        &mut self,
        operation: &str,
        arguments: Value,
        key: Option<String>,
    ) -> Fallible<Option<Map<String, Value>>> {
        let Value::Object(arguments) = arguments else { return Err("arguments are an object".into()) };
        let caller = if key.is_some() { &self.keyed_caller } else { &self.own_caller };
        let mut call = JsonCall::new(caller, operation, arguments);
        call.idempotency_key = key.as_deref();
        match self.engine.call(&call) {
            Ok(answer) => {
                if let Some(word) = acknowledgement_of(operation, key, &answer) {
                    send_to_parent(&word)?;
                }
                Ok(Some(answer.json))
            }
            Err(failure) if ALLOWED_ERRORS.contains(&failure.kind) => {
                send_to_parent(&MultiProcessTestMemberMessage::Refused)?;
                Ok(None)
            }
            Err(failure) => {
                send_to_parent(&MultiProcessTestMemberMessage::Failed(format!("{operation}: {failure}")))?;
                Err(failure.into())
            }
        }
    }
}

fn acknowledgement_of(
    operation: &str,
    key: Option<String>,
    answer: &RenderedOutcome,
) -> Option<MultiProcessTestMemberMessage> {
    let entry = answer.json.get("entry")?.as_u64()?;
    let hash = answer.json.get("hash")?.as_str()?.to_owned();
    Some(MultiProcessTestMemberMessage::Done { operation: operation.to_owned(), entry, hash, key })
}
