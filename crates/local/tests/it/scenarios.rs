//! Tests scenarios with editors, users and agents on real files. Users call one open workspace and agents a second one,
//! as if they were two processes.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};
use stead_engine::{Call, Caller, Engine, Principal};
use stead_local::LocalWorkspace;
use tempfile::TempDir;
use testkit::client_story::{self, ClientStoryWorkspaceAdapter};

use crate::support::{LocalFixture, test_options};

struct TwiceOpenedTestWorkspace {
    agents: LocalFixture,
    people: Option<(Arc<LocalWorkspace>, Engine)>,
    callers: BTreeMap<String, Caller>,
}

fn open_workspace_and_engine(directory: &TempDir) -> (Arc<LocalWorkspace>, Engine) {
    let workspace = LocalWorkspace::open(test_options(directory)).unwrap();
    let engine = Engine::new(Arc::clone(&workspace) as Arc<dyn stead_engine::Workspace>);
    (workspace, engine)
}

impl TwiceOpenedTestWorkspace {
    fn new() -> Self {
        let agents = LocalFixture::new();
        let people = Some(open_workspace_and_engine(&agents.directory));
        Self { agents, people, callers: BTreeMap::new() }
    }
}

impl ClientStoryWorkspaceAdapter for TwiceOpenedTestWorkspace {
    fn call(&mut self, caller: &str, operation: &str, arguments: &Map<String, Value>) -> Result<Value, Value> {
        let caller = self.callers.entry(caller.to_owned()).or_insert_with(|| {
            Caller::new(Principal::parse(caller).unwrap(), format!("session of {caller}"), "library")
        });
        let engine = match (&caller.principal, &self.people) {
            (Principal::User(_), Some((_, engine))) => engine,
            (_, _) => &self.agents.engine,
        };
        let outcome = engine.call(&Call::new(caller, operation, arguments.clone()));
        outcome.map(|answer| Value::Object(answer.json)).map_err(|error| error.to_json()["error"].clone())
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
        self.agents.text(path)
    }

    fn kill_editors(&mut self) {
        // The liveness lock is released with the workspace; no buffer is closed explicitly.
        if let Some((workspace, engine)) = self.people.take() {
            workspace.close();
            drop((workspace, engine));
        }
        self.people = Some(open_workspace_and_engine(&self.agents.directory));
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
