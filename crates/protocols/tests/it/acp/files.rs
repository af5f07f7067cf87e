//! Tests the ACP file methods with all scenarios, all examples of the definition, and concurrent calls.

use std::sync::Arc;

use serde_json::{Value, json};
use testkit::{
    MemoryWorkspace,
    acp_scenario::{AcpScenarioAgent, load_suites, play_scenario},
};
use tokio::runtime::Runtime;

use super::harness::AcpProxyTestHarness;

struct HarnessScenarioAgent {
    runtime: Runtime,
    harness: AcpProxyTestHarness,
    root: Arc<MemoryWorkspace>,
}

impl AcpScenarioAgent for HarnessScenarioAgent {
    fn directory(&self) -> String {
        "/ws".to_owned()
    }

    fn set_file(&mut self, path: &str, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.root.put_file(path, bytes),
            None => self.root.remove_silently(path),
        }
    }

    fn create_symlink(&mut self, path: &str, target: &str) {
        self.root.put_link(path, target);
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.runtime.block_on(self.harness.call_from_agent(method, params))
    }
}

#[test]
fn all_scenarios_pass() {
    let suites = load_suites();
    assert_eq!(suites.len(), 3);
    for scenario in suites.iter().flat_map(|suite| &suite.scenarios) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let harness = runtime.block_on(AcpProxyTestHarness::initialized());
        let root = harness.root_workspace("/ws");
        play_scenario(scenario, &mut HarnessScenarioAgent { runtime, harness, root }).unwrap();
    }
}

#[tokio::test]
async fn all_definition_examples_pass() {
    let generated: Value = serde_json::from_str(include_str!("../../generated/acp.json")).unwrap();
    for example in generated["examples"].as_array().unwrap() {
        let mut harness = AcpProxyTestHarness::initialized().await;
        for (path, text) in example["tree"].as_object().unwrap() {
            harness.root_workspace("/ws").put_file(path, text.as_str().unwrap());
        }
        let method = example["operation"].as_str().unwrap();
        let response = harness.call_from_agent(method, example["arguments"].clone()).await;
        let found = response.get("result").unwrap_or(&response["error"]);
        assert_eq!(*found, example["answer"], "{}", example["title"]);
    }
}

#[tokio::test]
async fn hundred_concurrent_calls_in_two_sessions_complete() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    harness.create_session("s2", &json!({ "cwd": "/ws", "mcpServers": [] })).await;
    let sessions = ["s1", "s2"];
    let mut sent = Vec::new();
    for number in 0..50 {
        for session in sessions {
            let path = format!("/ws/{session}-{}.txt", number % 5);
            let content = format!("{session} {number}\n");
            let params = json!({ "sessionId": session, "path": path, "content": content });
            sent.push(harness.send_from_agent("fs/write_text_file", params).await);
            sent.push(
                harness.send_from_agent("fs/read_text_file", json!({ "sessionId": session, "path": path })).await,
            );
        }
    }
    let mut answered = Vec::new();
    for _ in 0..sent.len() {
        let response = harness.agent.receive().await;
        let fine = response.get("result").is_some() || response["error"]["code"] == -32002;
        assert!(fine, "{response}");
        answered.push(response["id"].as_i64().unwrap());
    }
    answered.sort_unstable();
    assert_eq!(answered, sent);
    // Writes of one session to one file run in order.
    for session in sessions {
        for file in 0..5 {
            let params = json!({ "sessionId": session, "path": format!("/ws/{session}-{file}.txt") });
            let content = &harness.call_from_agent("fs/read_text_file", params).await["result"]["content"];
            assert_eq!(*content, format!("{session} {}\n", 45 + file));
        }
    }
}
