//! Stories of editors, people and agents on real files: people are connected to one opening of the workspace, agents to
//! another, as two processes would be.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use std::{collections::BTreeMap, sync::Arc};

use engine::{Call, Caller, Engine, Principal};
use local::LocalWorkspace;
use serde_json::{Map, Value};
use tempfile::TempDir;
use testkit::story::{self, Stage};

use crate::support::{Fixture, options};

struct Two {
    agents: Fixture,
    people: Option<(Arc<LocalWorkspace>, Engine)>,
    callers: BTreeMap<String, Caller>,
}

fn connected(place: &TempDir) -> (Arc<LocalWorkspace>, Engine) {
    let workspace = LocalWorkspace::open(options(place)).unwrap();
    let engine = Engine::new(Arc::clone(&workspace) as Arc<dyn engine::Workspace>);
    (workspace, engine)
}

impl Two {
    fn new() -> Self {
        let agents = Fixture::new();
        let people = Some(connected(&agents.place));
        Self { agents, people, callers: BTreeMap::new() }
    }
}

impl Stage for Two {
    fn call(
        &mut self,
        caller: &str,
        operation: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Value, Value> {
        let caller = self.callers.entry(caller.to_owned()).or_insert_with(|| {
            Caller::new(Principal::parse(caller).unwrap(), format!("session of {caller}"), "library")
        });
        let engine = match (&caller.principal, &self.people) {
            (Principal::User(_), Some((_, engine))) => engine,
            (_, _) => &self.agents.engine,
        };
        let outcome = engine.call(&Call::new(caller, operation, arguments.clone()));
        outcome.map(|answer| Value::Object(answer.json)).map_err(|failure| failure.to_json()["error"].clone())
    }

    fn outside(&mut self, path: &str, content: Option<&str>) {
        let place = self.agents.path(path);
        match content {
            Some(content) => {
                std::fs::create_dir_all(place.parent().unwrap()).unwrap();
                std::fs::write(place, content).unwrap();
            }
            None => std::fs::remove_file(place).unwrap(),
        }
    }

    fn disk(&self, path: &str) -> Option<String> {
        self.agents.text(path)
    }

    fn editors_die(&mut self) {
        // The lock that says that it lives goes with the workspace; nothing is closed in so many words.
        if let Some((workspace, engine)) = self.people.take() {
            workspace.close();
            drop((workspace, engine));
        }
        self.people = Some(connected(&self.agents.place));
    }
}

#[test]
fn unsaved_text_is_seen_across_processes_and_outlives_its_editor() {
    for story in story::of_buffers() {
        story::play(&story, &mut Two::new());
    }
}

#[test]
fn work_is_merged_reviewed_kept_and_rejected() {
    for story in story::of_reviews() {
        story::play(&story, &mut Two::new());
    }
}
