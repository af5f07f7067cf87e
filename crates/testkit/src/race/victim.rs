//! The victim of a race calls the engine on paths that the attacker swaps. A race fails if a reply contains a canary,
//! an error kind is not allowed, or a call takes too long.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::native::{EngineJsonCalls, JsonCall, RenderedOutcome};
use serde_json::{Map, Value, json};
use stead_engine::{Caller, Engine, Error, ErrorKind, Principal};
use stead_local::LocalWorkspace;

use super::{
    RaceAttackKind, RaceTally,
    attacker::PLANTED_NAMES,
    fixture::{INSIDE_CONTENT, RaceTestDirectories},
};
use crate::stress::{Fallible, SeededRng};

use crate::error_json;

/// The time limit exists because a call that opens a pipe would block forever.
const CALL_TIME_MAX: Duration = Duration::from_secs(20);
const NAME_COUNT: u64 = 4;
const WRITTEN_TEXT: &str = "victim";
const TRASH_KEPT: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RaceVictimTaskKind {
    Read,
    Change,
}

pub(super) struct RaceVictimCaller<'a> {
    attack: RaceAttackKind,
    fixture: &'a RaceTestDirectories,
    workspace: Arc<LocalWorkspace>,
    engine: Engine,
    caller: Caller,
    rng: SeededRng,
    last_versions: BTreeMap<String, Value>,
    trash_ids: Vec<String>,
    serial: u64,
    pub(super) tally: RaceTally,
}

impl<'a> RaceVictimCaller<'a> {
    pub(super) fn new(
        attack: RaceAttackKind,
        fixture: &'a RaceTestDirectories,
        workspace: &Arc<LocalWorkspace>,
        task: RaceVictimTaskKind,
        seed: u64,
    ) -> Self {
        let name = match task {
            RaceVictimTaskKind::Read => "looker",
            RaceVictimTaskKind::Change => "changer",
        };
        Self {
            attack,
            fixture,
            workspace: Arc::clone(workspace),
            engine: Engine::new(Arc::clone(workspace) as Arc<dyn stead_engine::Workspace>),
            caller: Caller::new(Principal::Agent(name.to_owned()), "race", "library"),
            rng: SeededRng::from_seed(seed),
            last_versions: BTreeMap::new(),
            trash_ids: Vec::new(),
            serial: 0,
            tally: RaceTally::default(),
        }
    }

    pub(super) fn run_step(&mut self, task: RaceVictimTaskKind) -> Fallible<()> {
        match task {
            RaceVictimTaskKind::Read => self.run_read(),
            RaceVictimTaskKind::Change => self.run_change(),
        }
    }

    fn attacked_directory(&mut self) -> String {
        match self.attack {
            RaceAttackKind::DirectoryLink | RaceAttackKind::DirectoryAbsoluteLink | RaceAttackKind::MovedOut => {
                "d".to_owned()
            }
            // Both paths mean the opened root, even if another directory has the root's name now.
            RaceAttackKind::RootReplaced if self.rng.happens_percent(50) => {
                format!("{}/d", self.fixture.workspace().display())
            }
            RaceAttackKind::RootReplaced => "d".to_owned(),
            RaceAttackKind::RetargetedLink => "link".to_owned(),
            RaceAttackKind::PlantedParents => format!("p{}/q", self.rng.below(PLANTED_NAMES)),
            RaceAttackKind::SwappedChildren => "t/a/b".to_owned(),
            RaceAttackKind::LeafLink | RaceAttackKind::Fifo => ".".to_owned(),
        }
    }

    fn attacked_file(&mut self) -> String {
        match self.attack {
            RaceAttackKind::LeafLink | RaceAttackKind::Fifo => "leaf".to_owned(),
            RaceAttackKind::DirectoryLink
            | RaceAttackKind::DirectoryAbsoluteLink
            | RaceAttackKind::MovedOut
            | RaceAttackKind::RootReplaced
            | RaceAttackKind::RetargetedLink
            | RaceAttackKind::PlantedParents
            | RaceAttackKind::SwappedChildren => {
                format!("{}/n{}", self.attacked_directory(), self.rng.below(NAME_COUNT))
            }
        }
    }

    fn run_read(&mut self) -> Fallible<()> {
        let directory = self.attacked_directory();
        let file = match self.attack {
            RaceAttackKind::LeafLink | RaceAttackKind::Fifo => "leaf".to_owned(),
            RaceAttackKind::PlantedParents => format!("{directory}/n0"),
            RaceAttackKind::DirectoryLink
            | RaceAttackKind::DirectoryAbsoluteLink
            | RaceAttackKind::MovedOut
            | RaceAttackKind::RootReplaced
            | RaceAttackKind::RetargetedLink
            | RaceAttackKind::SwappedChildren => format!("{directory}/f"),
        };
        match self.rng.below(8) {
            0..=2 => self.read_file(&file),
            3 => self.call_operation("stat", json!({ "path": file })).map(drop),
            4 => self.call_operation("stat", json!({ "path": format!("{directory}/only-outside-7f3a") })).map(drop),
            5 => {
                let name = self.attacked_file();
                self.read_file(&name)
            }
            6 => self.call_operation("list", json!({ "path": directory, "depth": 2 })).map(drop),
            _ => {
                let everything = json!({ "path": ".", "depth": 4, "all": true });
                let some = json!({ "path": format!("{directory}/sub") });
                let arguments = if self.rng.happens_percent(10) { everything } else { some };
                self.call_operation("list", arguments).map(drop)
            }
        }
    }

    fn read_file(&mut self, path: &str) -> Fallible<()> {
        let Some(answer) = self.call_operation("read", json!({ "path": path }))? else { return Ok(()) };
        let content = answer.get("content").and_then(Value::as_str).unwrap_or_default();
        if content.starts_with(INSIDE_CONTENT) || content.starts_with(WRITTEN_TEXT) {
            return Ok(());
        }
        Err(format!("read {path} answered bytes that nobody wrote inside: {content:.80}").into())
    }

    fn run_change(&mut self) -> Fallible<()> {
        match self.attack {
            RaceAttackKind::SwappedChildren if self.rng.happens_percent(60) => self.change_tree(),
            RaceAttackKind::PlantedParents if self.rng.happens_percent(30) => {
                let top = format!("p{}", self.rng.below(PLANTED_NAMES));
                self.remove_file(&top)
            }
            RaceAttackKind::SwappedChildren
            | RaceAttackKind::PlantedParents
            | RaceAttackKind::DirectoryLink
            | RaceAttackKind::DirectoryAbsoluteLink
            | RaceAttackKind::LeafLink
            | RaceAttackKind::Fifo
            | RaceAttackKind::MovedOut
            | RaceAttackKind::RootReplaced
            | RaceAttackKind::RetargetedLink => self.change_file(),
        }
    }

    fn change_file(&mut self) -> Fallible<()> {
        let file = self.attacked_file();
        let aside = format!("m{}", self.rng.below(NAME_COUNT));
        self.serial += 1;
        let content = format!("{WRITTEN_TEXT} {}\n", self.serial);
        match self.rng.below(20) {
            0..=3 => self.write_file(&file, &content),
            4..=5 => self.append_file(&file, &content),
            6 => self.call_operation("copy", json!({ "from": file, "to": aside, "overwrite": true })).map(drop),
            7..=8 => {
                self.call_operation("copy", json!({ "from": "stable/x", "to": file, "overwrite": true })).map(drop)
            }
            9 => self.copy_directory(),
            10..=11 => self.call_operation("move", json!({ "from": file, "to": aside, "overwrite": true })).map(drop),
            12..=13 => self.call_operation("move", json!({ "from": aside, "to": file, "overwrite": true })).map(drop),
            14..=15 => self.remove_file(&file),
            16..=17 => self.restore_from_trash(),
            _ => self.call_operation("undo", json!({})).map(drop),
        }
    }

    fn change_tree(&mut self) -> Fallible<()> {
        match self.rng.below(6) {
            0..=1 => self.call_operation("copy", json!({ "from": "stable/tree", "to": "t" })).map(drop),
            2..=3 => self.remove_file("t"),
            4 => self.restore_from_trash(),
            _ => self.purge_one(),
        }
    }

    fn write_file(&mut self, path: &str, content: &str) -> Fallible<()> {
        let base = match self.rng.below(3) {
            0 => json!(""),
            _ => self.last_versions.get(path).cloned().unwrap_or_else(|| json!("")),
        };
        let answer = self.call_operation("write", json!({ "path": path, "content": content, "base": base }))?;
        self.remember_version(path, answer);
        Ok(())
    }

    fn append_file(&mut self, path: &str, content: &str) -> Fallible<()> {
        let answer = self.call_operation("append", json!({ "path": path, "content": content }))?;
        self.remember_version(path, answer);
        Ok(())
    }

    fn copy_directory(&mut self) -> Fallible<()> {
        let directory = self.attacked_directory();
        if directory == "." {
            return Ok(());
        }
        self.call_operation("copy", json!({ "from": directory, "to": "copied" }))?;
        self.call_operation("remove", json!({ "path": "copied", "recursive": true })).map(drop)
    }

    fn remove_file(&mut self, path: &str) -> Fallible<()> {
        let answer = self.call_operation("remove", json!({ "path": path, "recursive": true }))?;
        let id = answer.and_then(|answer| answer.get("trash").and_then(Value::as_str).map(str::to_owned));
        self.trash_ids.extend(id);
        if self.trash_ids.len() > TRASH_KEPT {
            self.trash_ids.remove(0);
        }
        Ok(())
    }

    fn restore_from_trash(&mut self) -> Fallible<()> {
        let Some(id) = self.trash_ids.pop() else { return Ok(()) };
        self.call_operation("restore", json!({ "trash": id })).map(drop)
    }

    /// Purges one item from the trash; an attacker that adds files to the item can make the purge fail.
    fn purge_one(&mut self) -> Fallible<()> {
        let Some(id) = self.trash_ids.pop() else { return Ok(()) };
        match self.workspace.delete_trash_items(&[id], None) {
            Ok(_) => self.tally.succeeded += 1,
            Err(failure) => {
                self.check_leak("empty", &failure.to_string())?;
                self.tally.attacked += 1;
            }
        }
        Ok(())
    }

    fn remember_version(&mut self, path: &str, answer: Option<Map<String, Value>>) {
        if let Some(version) = answer.and_then(|mut answer| answer.remove("version")) {
            self.last_versions.insert(path.to_owned(), version);
        }
    }

    fn call_operation(&mut self, operation: &str, arguments: Value) -> Fallible<Option<Map<String, Value>>> {
        let request = format!("{operation} {arguments}");
        let Value::Object(arguments) = arguments else { return Err("arguments are an object".into()) };
        let started = Instant::now();
        let outcome = self.engine.call(&JsonCall::new(&self.caller, operation, arguments));
        let took = started.elapsed();
        if took > CALL_TIME_MAX {
            return Err(format!("{request} took {took:?}").into());
        }
        self.tally.longest_call = self.tally.longest_call.max(took);
        match outcome {
            Ok(answer) => self.check_answer(&request, answer).map(Some),
            Err(failure) => self.check_failure(&request, &failure).map(|()| None),
        }
    }

    fn check_answer(&mut self, request: &str, answer: RenderedOutcome) -> Fallible<Map<String, Value>> {
        self.tally.succeeded += 1;
        self.check_leak(request, &answer.text)?;
        self.check_leak(request, &serde_json::to_string(&answer.json)?)?;
        Ok(answer.json)
    }

    fn check_failure(&mut self, request: &str, failure: &Error) -> Fallible<()> {
        *self.tally.failures_by_kind.entry(failure.kind.code()).or_default() += 1;
        // The error for a missing path repeats the path that the caller wrote.
        let reply = error_json(failure).to_string();
        self.check_leak(request, &reply.replace("only-outside-7f3a", ""))?;
        let rules = self.attack.rules();
        if rules.attack_errors.contains(&failure.kind) {
            self.tally.attacked += 1;
            return Ok(());
        }
        if rules.other_errors.contains(&failure.kind) {
            self.tally.other_failures += 1;
            return Ok(());
        }
        Err(format!("{request} failed in a way that {:?} does not allow: {failure}", self.attack).into())
    }

    fn check_leak(&self, request: &str, reply: &str) -> Fallible<()> {
        match self.fixture.find_leak(reply) {
            None => Ok(()),
            Some(leak) => Err(format!("{request} leaked '{leak}': {reply}").into()),
        }
    }
}

/// The error kinds that a test caller may get in a race even without an attacker: earlier calls changed the same files.
pub(super) const VICTIM_CAUSED_ERRORS: &[ErrorKind] =
    &[ErrorKind::NotFound, ErrorKind::Exists, ErrorKind::Stale, ErrorKind::NothingToDo, ErrorKind::Conflict];
