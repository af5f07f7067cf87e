//! The victim: calls through the engine, on the places that are being swapped, and judges every reply.
//!
//! Promises: a reply that holds a canary, a failure of a kind that the shape does not allow, and a call that takes too
//! long each end the race.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use engine::{Answer, Call, Caller, Engine, Failure, Kind, Principal};
use local::LocalWorkspace;
use serde_json::{Map, Value, json};

use super::{
    Shape, Tally,
    attacker::PLANTED,
    ground::{Ground, INSIDE},
};
use crate::rig::{Chance, Fallible};

/// Longest time one call may take: a call that opens a pipe waits for ever.
const CALL_MAX: Duration = Duration::from_secs(20);
/// Names the victim uses in one directory.
const NAMES: u64 = 4;
/// In the content of every file the victim writes.
const WRITTEN: &str = "victim";
/// Things in the trash the victim remembers.
const TRASH_KEPT: usize = 8;

/// What a victim does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// Reads, stats and lists.
    Look,
    /// Writes, moves, removes and takes back.
    Change,
}

/// One caller.
pub(super) struct Victim<'a> {
    shape: Shape,
    ground: &'a Ground,
    workspace: Arc<LocalWorkspace>,
    engine: Engine,
    caller: Caller,
    chance: Chance,
    /// The last version seen at a path, for the next write.
    bases: BTreeMap<String, Value>,
    trash: Vec<String>,
    serial: u64,
    pub(super) tally: Tally,
}

impl<'a> Victim<'a> {
    pub(super) fn new(
        shape: Shape,
        ground: &'a Ground,
        workspace: &Arc<LocalWorkspace>,
        task: Task,
        seed: u64,
    ) -> Self {
        let name = match task {
            Task::Look => "looker",
            Task::Change => "changer",
        };
        Self {
            shape,
            ground,
            workspace: Arc::clone(workspace),
            engine: Engine::new(Arc::clone(workspace) as Arc<dyn engine::Workspace>),
            caller: Caller::new(Principal::Agent(name.to_owned()), "race", "library"),
            chance: Chance::seeded(seed),
            bases: BTreeMap::new(),
            trash: Vec::new(),
            serial: 0,
            tally: Tally::default(),
        }
    }

    /// One call of this kind.
    pub(super) fn step(&mut self, task: Task) -> Fallible<()> {
        match task {
            Task::Look => self.look(),
            Task::Change => self.change(),
        }
    }

    /// The directory that the shape attacks, as a caller spells it now.
    fn directory(&mut self) -> String {
        match self.shape {
            Shape::DirectoryLink | Shape::DirectoryAbsoluteLink | Shape::MovedOut => "d".to_owned(),
            // Both spellings mean the root that was opened, whatever is now under that name.
            Shape::RootReplaced if self.chance.happens(50) => {
                format!("{}/d", self.ground.workspace().display())
            }
            Shape::RootReplaced => "d".to_owned(),
            Shape::RetargetedLink => "link".to_owned(),
            Shape::PlantedParents => format!("p{}/q", self.chance.below(PLANTED)),
            Shape::SwappedChildren => "t/a/b".to_owned(),
            Shape::LeafLink | Shape::Fifo => ".".to_owned(),
        }
    }

    /// A file in the line of attack.
    fn file(&mut self) -> String {
        match self.shape {
            Shape::LeafLink | Shape::Fifo => "leaf".to_owned(),
            Shape::DirectoryLink
            | Shape::DirectoryAbsoluteLink
            | Shape::MovedOut
            | Shape::RootReplaced
            | Shape::RetargetedLink
            | Shape::PlantedParents
            | Shape::SwappedChildren => format!("{}/n{}", self.directory(), self.chance.below(NAMES)),
        }
    }

    fn look(&mut self) -> Fallible<()> {
        let directory = self.directory();
        let file = match self.shape {
            Shape::LeafLink | Shape::Fifo => "leaf".to_owned(),
            Shape::PlantedParents => format!("{directory}/n0"),
            Shape::DirectoryLink
            | Shape::DirectoryAbsoluteLink
            | Shape::MovedOut
            | Shape::RootReplaced
            | Shape::RetargetedLink
            | Shape::SwappedChildren => format!("{directory}/f"),
        };
        match self.chance.below(8) {
            0..=2 => self.read(&file),
            3 => self.call("stat", json!({ "path": file })).map(drop),
            4 => self.call("stat", json!({ "path": format!("{directory}/only-outside-7f3a") })).map(drop),
            5 => {
                let name = self.file();
                self.read(&name)
            }
            6 => self.call("list", json!({ "path": directory, "depth": 2 })).map(drop),
            _ => {
                let everything = json!({ "path": ".", "depth": 4, "all": true });
                let some = json!({ "path": format!("{directory}/sub") });
                let arguments = if self.chance.happens(10) { everything } else { some };
                self.call("list", arguments).map(drop)
            }
        }
    }

    fn read(&mut self, path: &str) -> Fallible<()> {
        let Some(answer) = self.call("read", json!({ "path": path }))? else { return Ok(()) };
        let content = answer.get("content").and_then(Value::as_str).unwrap_or_default();
        if content.starts_with(INSIDE) || content.starts_with(WRITTEN) {
            return Ok(());
        }
        Err(format!("read {path} answered bytes that nobody wrote inside: {content:.80}").into())
    }

    fn change(&mut self) -> Fallible<()> {
        match self.shape {
            Shape::SwappedChildren if self.chance.happens(60) => self.change_tree(),
            Shape::PlantedParents if self.chance.happens(30) => {
                let top = format!("p{}", self.chance.below(PLANTED));
                self.remove(&top)
            }
            Shape::SwappedChildren
            | Shape::PlantedParents
            | Shape::DirectoryLink
            | Shape::DirectoryAbsoluteLink
            | Shape::LeafLink
            | Shape::Fifo
            | Shape::MovedOut
            | Shape::RootReplaced
            | Shape::RetargetedLink => self.change_file(),
        }
    }

    fn change_file(&mut self) -> Fallible<()> {
        let file = self.file();
        let aside = format!("m{}", self.chance.below(NAMES));
        self.serial += 1;
        let content = format!("{WRITTEN} {}\n", self.serial);
        match self.chance.below(20) {
            0..=3 => self.write(&file, &content),
            4..=5 => self.append(&file, &content),
            6 => self.call("copy", json!({ "from": file, "to": aside, "overwrite": true })).map(drop),
            7..=8 => {
                self.call("copy", json!({ "from": "stable/x", "to": file, "overwrite": true })).map(drop)
            }
            9 => self.copy_directory(),
            10..=11 => self.call("move", json!({ "from": file, "to": aside, "overwrite": true })).map(drop),
            12..=13 => self.call("move", json!({ "from": aside, "to": file, "overwrite": true })).map(drop),
            14..=15 => self.remove(&file),
            16..=17 => self.restore(),
            _ => self.call("undo", json!({})).map(drop),
        }
    }

    /// A whole tree comes, is swapped about, goes to the trash, comes back, is emptied for good.
    fn change_tree(&mut self) -> Fallible<()> {
        match self.chance.below(6) {
            0..=1 => self.call("copy", json!({ "from": "stable/tree", "to": "t" })).map(drop),
            2..=3 => self.remove("t"),
            4 => self.restore(),
            _ => self.empty(),
        }
    }

    fn write(&mut self, path: &str, content: &str) -> Fallible<()> {
        let base = match self.chance.below(3) {
            0 => json!(""),
            _ => self.bases.get(path).cloned().unwrap_or_else(|| json!("")),
        };
        let answer = self.call("write", json!({ "path": path, "content": content, "base": base }))?;
        self.remember(path, answer);
        Ok(())
    }

    fn append(&mut self, path: &str, content: &str) -> Fallible<()> {
        let answer = self.call("append", json!({ "path": path, "content": content }))?;
        self.remember(path, answer);
        Ok(())
    }

    fn copy_directory(&mut self) -> Fallible<()> {
        let directory = self.directory();
        if directory == "." {
            return Ok(());
        }
        self.call("copy", json!({ "from": directory, "to": "copied" }))?;
        self.call("remove", json!({ "path": "copied", "recursive": true })).map(drop)
    }

    fn remove(&mut self, path: &str) -> Fallible<()> {
        let answer = self.call("remove", json!({ "path": path, "recursive": true }))?;
        let id = answer.and_then(|answer| answer.get("trash").and_then(Value::as_str).map(str::to_owned));
        self.trash.extend(id);
        if self.trash.len() > TRASH_KEPT {
            self.trash.remove(0);
        }
        Ok(())
    }

    fn restore(&mut self) -> Fallible<()> {
        let Some(id) = self.trash.pop() else { return Ok(()) };
        self.call("restore", json!({ "trash": id })).map(drop)
    }

    /// Empties one thing in the trash. It may fail when something is put into it meanwhile; the canaries tell the rest.
    fn empty(&mut self) -> Fallible<()> {
        let Some(id) = self.trash.pop() else { return Ok(()) };
        match self.workspace.empty(&[id]) {
            Ok(_) => self.tally.inside += 1,
            Err(failure) => {
                self.judge_leak("empty", &failure.to_string())?;
                self.tally.swapped += 1;
            }
        }
        Ok(())
    }

    fn remember(&mut self, path: &str, answer: Option<Map<String, Value>>) {
        if let Some(version) = answer.and_then(|mut answer| answer.remove("version")) {
            self.bases.insert(path.to_owned(), version);
        }
    }

    /// One call. Answers the object when it succeeded, nothing when it failed as it may.
    fn call(&mut self, operation: &str, arguments: Value) -> Fallible<Option<Map<String, Value>>> {
        let asked = format!("{operation} {arguments}");
        let Value::Object(arguments) = arguments else { return Err("arguments are an object".into()) };
        let started = Instant::now();
        let outcome = self.engine.call(&Call::new(&self.caller, operation, arguments));
        let took = started.elapsed();
        if took > CALL_MAX {
            return Err(format!("{asked} took {took:?}").into());
        }
        self.tally.longest = self.tally.longest.max(took);
        match outcome {
            Ok(answer) => self.answered(&asked, answer).map(Some),
            Err(failure) => self.failed(&asked, &failure).map(|()| None),
        }
    }

    fn answered(&mut self, asked: &str, answer: Answer) -> Fallible<Map<String, Value>> {
        self.tally.inside += 1;
        self.judge_leak(asked, &answer.text)?;
        self.judge_leak(asked, &serde_json::to_string(&answer.json)?)?;
        Ok(answer.json)
    }

    fn failed(&mut self, asked: &str, failure: &Failure) -> Fallible<()> {
        *self.tally.kinds.entry(failure.kind.code()).or_default() += 1;
        // What is not there is named as the caller spelled it.
        let reply = failure.to_json().to_string();
        self.judge_leak(asked, &reply.replace("only-outside-7f3a", ""))?;
        let rules = self.shape.rules();
        if rules.signs.contains(&failure.kind) {
            self.tally.swapped += 1;
            return Ok(());
        }
        if rules.plain.contains(&failure.kind) {
            self.tally.plain += 1;
            return Ok(());
        }
        Err(format!("{asked} failed in a way that {:?} does not allow: {failure}", self.shape).into())
    }

    fn judge_leak(&self, asked: &str, reply: &str) -> Fallible<()> {
        match self.ground.leaked(reply) {
            None => Ok(()),
            Some(leak) => Err(format!("{asked} leaked '{leak}': {reply}").into()),
        }
    }
}

/// Failures that come from the victim's own coming and going.
pub(super) const OWN_DOING: &[Kind] =
    &[Kind::NotFound, Kind::Exists, Kind::Stale, Kind::NothingToDo, Kind::Conflict];
