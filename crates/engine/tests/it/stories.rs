//! Runs recorded scenarios of editors, people and agents on the engine.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use stead_engine::{Caller, Principal};
use testkit::{
    client_story::{self, ClientStoryWorkspaceAdapter},
    engine_fixture::EngineFixture,
    error_json,
};

struct EngineStoryBackend {
    fixture: EngineFixture,
    callers: BTreeMap<String, Caller>,
}

impl EngineStoryBackend {
    fn new() -> Self {
        Self { fixture: EngineFixture::new(), callers: BTreeMap::new() }
    }
}

impl ClientStoryWorkspaceAdapter for EngineStoryBackend {
    fn call(&mut self, caller: &str, operation: &str, arguments: &Map<String, Value>) -> Result<Value, Value> {
        let caller = self.callers.entry(caller.to_owned()).or_insert_with(|| {
            Caller::new(Principal::parse(caller).unwrap(), format!("session of {caller}"), "library")
        });
        let outcome = self.fixture.call_as(caller, operation, Value::Object(arguments.clone()));
        outcome.map(|outcome| Value::Object(outcome.json)).map_err(|error| error_json(&error)["error"].clone())
    }

    fn change_externally(&mut self, path: &str, content: Option<&str>) {
        match content {
            Some(content) => self.fixture.workspace.put_file(path, content),
            None => self.fixture.workspace.remove_silently(path),
        }
    }

    fn read_disk(&self, path: &str) -> Option<String> {
        self.fixture.workspace.bytes(path).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    fn kill_editors(&mut self) {
        self.fixture.workspace.kill_editors();
    }
}

#[test]
fn unsaved_text_stories() {
    for story in client_story::buffer_stories() {
        client_story::play_story(&story, &mut EngineStoryBackend::new());
    }
}

#[test]
fn review_stories() {
    for story in client_story::review_stories() {
        client_story::play_story(&story, &mut EngineStoryBackend::new());
    }
}
