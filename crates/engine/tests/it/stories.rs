//! Stories of editors, people and agents, played on the engine.

use std::collections::BTreeMap;

use engine::{Caller, Principal};
use serde_json::{Map, Value};
use testkit::story::{self, Stage};

use crate::world::World;

struct Bare {
    world: World,
    callers: BTreeMap<String, Caller>,
}

impl Bare {
    fn new() -> Self {
        Self { world: World::new(), callers: BTreeMap::new() }
    }
}

impl Stage for Bare {
    fn call(
        &mut self,
        caller: &str,
        operation: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Value, Value> {
        let caller = self.callers.entry(caller.to_owned()).or_insert_with(|| {
            Caller::new(Principal::parse(caller).unwrap(), format!("session of {caller}"), "library")
        });
        let outcome = self.world.call_as(caller, operation, Value::Object(arguments.clone()));
        outcome.map(|answer| Value::Object(answer.json)).map_err(|failure| failure.to_json()["error"].clone())
    }

    fn outside(&mut self, path: &str, content: Option<&str>) {
        match content {
            Some(content) => self.world.workspace.put_file(path, content),
            None => self.world.workspace.take(path),
        }
    }

    fn disk(&self, path: &str) -> Option<String> {
        self.world.workspace.bytes(path).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    fn editors_die(&mut self) {
        self.world.workspace.lose_editors();
    }
}

#[test]
fn unsaved_text_is_seen_by_all_and_lost_by_nobody() {
    for story in story::of_buffers() {
        story::play(&story, &mut Bare::new());
    }
}

#[test]
fn work_is_merged_reviewed_kept_and_rejected() {
    for story in story::of_reviews() {
        story::play(&story, &mut Bare::new());
    }
}
