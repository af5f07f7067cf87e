//! Tests scenarios with editors, users and agents on real files. Users call one open workspace and agents a second one,
//! as if they were two processes.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use stead_engine::{Caller, Principal};
use stead_local::LocalWorkspace;
use testkit::{
    client_story::{self, ClientStoryWorkspaceAdapter},
    engine_fixture::EngineFixture,
    error_json,
};

use crate::support::{LocalFixture, open_engine, test_options};

struct TwiceOpenedTestWorkspace {
    agents: LocalFixture,
    people: Option<EngineFixture<LocalWorkspace>>,
    callers: BTreeMap<String, Caller>,
}

impl TwiceOpenedTestWorkspace {
    fn new() -> Self {
        let agents = LocalFixture::new();
        let people = Some(open_engine(test_options(&agents.directory)).unwrap());
        Self { agents, people, callers: BTreeMap::new() }
    }
}

impl ClientStoryWorkspaceAdapter for TwiceOpenedTestWorkspace {
    fn call(&mut self, caller: &str, operation: &str, arguments: &Map<String, Value>) -> Result<Value, Value> {
        let caller = self.callers.entry(caller.to_owned()).or_insert_with(|| {
            Caller::new(Principal::parse(caller).unwrap(), format!("session of {caller}"), "library")
        });
        let fixture = match (&caller.principal, &self.people) {
            (Principal::User(_), Some(people)) => people,
            (_, _) => &*self.agents,
        };
        let outcome = fixture.call_as(caller, operation, json!(arguments));
        outcome.map(|answer| Value::Object(answer.json)).map_err(|error| error_json(&error)["error"].clone())
    }

    fn change_externally(&mut self, path: &str, content: Option<&str>) {
        let directory = self.agents.path(path);
        match content {
            Some(content) => {
                std::fs::create_dir_all(directory.parent().unwrap()).unwrap();
                std::fs::write(directory, content).unwrap();
            }
            None => std::fs::remove_file(directory).unwrap(),
        }
    }

    fn read_disk(&self, path: &str) -> Option<String> {
        self.agents.text_on_disk(path)
    }

    fn kill_editors(&mut self) {
        // The liveness lock is released with the workspace; no buffer is closed explicitly.
        if let Some(people) = self.people.take() {
            people.workspace.close();
        }
        self.people = Some(open_engine(test_options(&self.agents.directory)).unwrap());
    }
}

#[test]
fn unsaved_buffers_are_shared_and_survive_their_editor() {
    for story in client_story::buffer_stories() {
        client_story::play_story(&story, &mut TwiceOpenedTestWorkspace::new());
    }
}

#[test]
fn changes_are_merged_reviewed_accepted_and_rejected() {
    for story in client_story::review_stories() {
        client_story::play_story(&story, &mut TwiceOpenedTestWorkspace::new());
    }
}
