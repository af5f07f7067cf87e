//! One of several processes on one tree: changes, moves and removes at random what the others change, move and remove,
//! and follows the feed.

use std::{io::BufRead, path::PathBuf, sync::Arc};

use engine::{Answer, Call, Caller, Engine, Failure, Kind, Principal};
use local::{Durability, LocalWorkspace, Options};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::rig::{Chance, Fallible, say};

/// Who makes the calls that carry a key: the same in every process, because a key is known by its principal.
const KEYED: &str = "keyed";
/// Files that only calls with a key append to.
pub(super) const KEYED_FILES: u64 = 3;
/// What a call may fail with when others work on the same places.
const ALLOWED: &[Kind] = &[
    Kind::NotFound,
    Kind::Exists,
    Kind::Stale,
    Kind::Conflict,
    Kind::Busy,
    Kind::NothingToDo,
    Kind::IsDirectory,
    Kind::NotDirectory,
    Kind::InvalidPath,
];

/// What a member is told, in one line on its standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Orders {
    pub(super) workspace: PathBuf,
    pub(super) state: PathBuf,
    /// Its own name.
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) steps: u64,
    /// The first key it uses; the next ones follow.
    pub(super) first_key: u64,
}

impl Orders {
    pub(super) fn open(&self) -> Result<Arc<LocalWorkspace>, Failure> {
        let mut options = Options::new(self.workspace.clone(), self.state.clone());
        options.durability = Durability::Fast;
        LocalWorkspace::open(options)
    }
}

/// One thing a member says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Word {
    /// A change is acknowledged.
    Done { operation: String, entry: u64, hash: String, key: Option<String> },
    /// The entries that came with the feed, in order.
    Saw(Vec<u64>),
    /// A call failed as it may.
    Refused,
    /// A call failed as it must not.
    Failed(String),
    /// It has made all its calls.
    End,
}

/// One process.
struct Member {
    engine: Engine,
    own: Caller,
    keyed: Caller,
    chance: Chance,
    trash: Vec<String>,
    cursor: Value,
    serial: u64,
    name: String,
    next_key: u64,
}

/// The member's life.
pub fn run_member() -> Fallible<()> {
    let mut input = String::new();
    std::io::stdin().lock().read_line(&mut input)?;
    let orders: Orders = serde_json::from_str(&input)?;
    let workspace = orders.open()?;
    let mut member = Member {
        engine: Engine::new(workspace as Arc<dyn engine::Workspace>),
        own: Caller::new(Principal::Agent(orders.name.clone()), orders.name.clone(), "library"),
        keyed: Caller::new(Principal::Agent(KEYED.to_owned()), orders.name.clone(), "library"),
        chance: Chance::seeded(orders.seed),
        trash: Vec::new(),
        cursor: json!(0),
        serial: 0,
        name: orders.name,
        next_key: orders.first_key,
    };
    for _ in 0..orders.steps {
        member.step()?;
    }
    member.follow()?;
    say(&Word::End)?;
    input.clear();
    std::io::stdin().lock().read_line(&mut input)?;
    Ok(())
}

impl Member {
    fn step(&mut self) -> Fallible<()> {
        let file = format!("{}f{}", self.place(), self.chance.below(3));
        let other = format!("{}f{}", self.place(), self.chance.below(3));
        let tree = format!("c{}", self.chance.below(3));
        let free = format!("c{}", self.chance.below(3));
        self.serial += 1;
        let content = format!("{} {}\n", self.name, self.serial);
        match self.chance.below(20) {
            0..=3 => self.write(&file, &content),
            4..=5 => self.own("append", json!({ "path": file, "content": content })),
            6..=8 => self.keyed(),
            9..=10 => self.own("copy", json!({ "from": "stable", "to": tree })),
            11 => self.own("move", json!({ "from": file, "to": other, "overwrite": true })),
            12 => self.own("move", json!({ "from": tree, "to": free })),
            13 => self.remove(&file),
            14 => self.remove(&tree),
            15 => self.restore(),
            16..=17 => self.own("undo", json!({})),
            18 => self.own("redo", json!({})),
            _ => self.follow(),
        }
    }

    fn place(&mut self) -> &'static str {
        self.chance.pick(&["", "d/", "c0/", "c1/sub/"]).copied().unwrap_or_default()
    }

    fn write(&mut self, path: &str, content: &str) -> Fallible<()> {
        let seen = self.call("read", json!({ "path": path }), None)?;
        let base = seen.and_then(|answer| answer.get("version").cloned()).unwrap_or_else(|| json!(""));
        self.own("write", json!({ "path": path, "content": content, "base": base }))
    }

    /// Two processes come to the same key sooner or later; it counts once.
    fn keyed(&mut self) -> Fallible<()> {
        let number = self.next_key;
        self.next_key += 1;
        let (path, content) = (format!("keyed{}", number % KEYED_FILES), format!("key {number}\n"));
        self.call("append", json!({ "path": path, "content": content }), Some(format!("k{number}"))).map(drop)
    }

    fn remove(&mut self, path: &str) -> Fallible<()> {
        let answer = self.call("remove", json!({ "path": path, "recursive": true }), None)?;
        let id = answer.and_then(|answer| answer.get("trash").and_then(Value::as_str).map(str::to_owned));
        self.trash.extend(id);
        Ok(())
    }

    fn restore(&mut self) -> Fallible<()> {
        let Some(id) = self.trash.pop() else { return Ok(()) };
        self.own("restore", json!({ "trash": id }))
    }

    /// Reads the feed to its end.
    fn follow(&mut self) -> Fallible<()> {
        loop {
            let Some(answer) = self.call("changes", json!({ "since": self.cursor }), None)? else {
                return Err("the feed cannot be read".into());
            };
            let number = |event: &Value| event.get("entry").and_then(Value::as_u64);
            let events = answer.get("events").and_then(Value::as_array).cloned().unwrap_or_default();
            let mut entries: Vec<u64> = events.iter().filter_map(number).collect();
            entries.dedup();
            say(&Word::Saw(entries))?;
            self.cursor = answer.get("cursor").cloned().unwrap_or(Value::Null);
            if answer.get("truncated") != Some(&Value::Bool(true)) {
                return Ok(());
            }
        }
    }

    fn own(&mut self, operation: &str, arguments: Value) -> Fallible<()> {
        self.call(operation, arguments, None).map(drop)
    }

    fn call(
        &mut self,
        operation: &str,
        arguments: Value,
        key: Option<String>,
    ) -> Fallible<Option<Map<String, Value>>> {
        let Value::Object(arguments) = arguments else { return Err("arguments are an object".into()) };
        let caller = if key.is_some() { &self.keyed } else { &self.own };
        let mut call = Call::new(caller, operation, arguments);
        call.key = key.as_deref();
        match self.engine.call(&call) {
            Ok(answer) => {
                if let Some(word) = done(operation, key, &answer) {
                    say(&word)?;
                }
                Ok(Some(answer.json))
            }
            Err(failure) if ALLOWED.contains(&failure.kind) => {
                say(&Word::Refused)?;
                Ok(None)
            }
            Err(failure) => {
                say(&Word::Failed(format!("{operation}: {failure}")))?;
                Err(failure.into())
            }
        }
    }
}

fn done(operation: &str, key: Option<String>, answer: &Answer) -> Option<Word> {
    let entry = answer.json.get("entry")?.as_u64()?;
    let hash = answer.json.get("hash")?.as_str()?.to_owned();
    Some(Word::Done { operation: operation.to_owned(), entry, hash, key })
}
