//! The file methods: every scenario, and many calls at once.

use std::sync::Arc;

use serde_json::{Value, json};
use testkit::{
    MemoryWorkspace,
    acp::{Agent, play, suites},
};
use tokio::runtime::Runtime;

use super::stage::Stage;

/// The stage as a scenario sees it.
struct Played {
    runtime: Runtime,
    stage: Stage,
    root: Arc<MemoryWorkspace>,
}

impl Agent for Played {
    fn directory(&self) -> String {
        "/ws".to_owned()
    }

    fn plant(&mut self, path: &str, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.root.put_file(path, bytes),
            None => self.root.take(path),
        }
    }

    fn link(&mut self, path: &str, target: &str) {
        self.root.put_link(path, target);
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.runtime.block_on(self.stage.call(method, params))
    }
}

#[test]
fn every_scenario_holds() {
    let suites = suites();
    assert_eq!(suites.len(), 3);
    for scenario in suites.iter().flat_map(|suite| &suite.scenarios) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let stage = runtime.block_on(Stage::open());
        let root = stage.root("/ws");
        play(scenario, &mut Played { runtime, stage, root }).unwrap();
    }
}

#[tokio::test]
async fn every_example_of_the_definition_holds() {
    let generated: Value = serde_json::from_str(include_str!("../../generated/acp.json")).unwrap();
    for example in generated["examples"].as_array().unwrap() {
        let mut stage = Stage::open().await;
        for (path, text) in example["tree"].as_object().unwrap() {
            stage.root("/ws").put_file(path, text.as_str().unwrap());
        }
        let method = example["operation"].as_str().unwrap();
        let answer = stage.call(method, example["arguments"].clone()).await;
        let found = answer.get("result").unwrap_or(&answer["error"]);
        assert_eq!(*found, example["answer"], "{}", example["title"]);
    }
}

#[tokio::test]
async fn a_hundred_calls_at_once_in_two_sessions_are_all_answered() {
    let mut stage = Stage::open().await;
    stage.session("s2", &json!({ "cwd": "/ws", "mcpServers": [] })).await;
    let sessions = ["s1", "s2"];
    let mut sent = Vec::new();
    for number in 0..50 {
        for session in sessions {
            let path = format!("/ws/{session}-{}.txt", number % 5);
            let content = format!("{session} {number}\n");
            let params = json!({ "sessionId": session, "path": path, "content": content });
            sent.push(stage.send("fs/write_text_file", params).await);
            sent.push(stage.send("fs/read_text_file", json!({ "sessionId": session, "path": path })).await);
        }
    }
    let mut answered = Vec::new();
    for _ in 0..sent.len() {
        let answer = stage.agent.hear().await;
        let fine = answer.get("result").is_some() || answer["error"]["code"] == -32002;
        assert!(fine, "{answer}");
        answered.push(answer["id"].as_i64().unwrap());
    }
    answered.sort_unstable();
    assert_eq!(answered, sent);
    // Writes of one session to one file are done in their order.
    for session in sessions {
        for file in 0..5 {
            let params = json!({ "sessionId": session, "path": format!("/ws/{session}-{file}.txt") });
            let content = &stage.call("fs/read_text_file", params).await["result"]["content"];
            assert_eq!(*content, format!("{session} {}\n", 45 + file));
        }
    }
}
