//! Tests of writes that the person at the editor must approve.

use serde_json::{Value, json};
use stead_engine::{ApprovalMode, ApprovalState, Workspace};

use super::harness::{AcpProxyTestHarness, BOTH_FILE_METHODS};

const GUARDED_PATH: &str = "/ws/.git/config";

async fn write_guarded_file(harness: &mut AcpProxyTestHarness) -> (i64, Value) {
    let id = harness.send_from_agent("fs/write_text_file", json!({ "path": GUARDED_PATH, "content": "new\n" })).await;
    let question = harness.editor.receive().await;
    assert_eq!(question["method"], "session/request_permission", "{question}");
    (id, question)
}

fn permission_answer(question: &Value, option: &str) -> Value {
    let outcome = json!({ "outcome": "selected", "optionId": option });
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "outcome": outcome } })
}

fn approval_states(harness: &AcpProxyTestHarness) -> Vec<ApprovalState> {
    let filter = stead_engine::ApprovalFilter { limit: 9, ..Default::default() };
    let workspace: std::sync::Arc<dyn Workspace> = harness.root_workspace("/ws");
    workspace.approvals(&filter).unwrap().iter().map(|approval| approval.state).collect()
}

#[tokio::test]
async fn permission_request_shows_diff_and_four_options() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    harness.root_workspace("/ws").put_file(".git/config", "old\n");
    let (id, question) = write_guarded_file(&mut harness).await;
    let params = &question["params"];
    assert_eq!(params["sessionId"], "s1");
    let diff = json!({ "type": "diff", "path": GUARDED_PATH, "newText": "new\n", "oldText": "old\n" });
    assert_eq!(params["toolCall"]["content"], json!([diff]));
    let kinds: Vec<&str> =
        params["options"].as_array().unwrap().iter().map(|option| option["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once", "reject_always"]);
    harness.editor.send(&permission_answer(&question, "allow_once")).await;
    let response = harness.agent.receive().await;
    assert_eq!((&response["id"], &response["result"]), (&json!(id), &json!({})));
    assert_eq!(approval_states(&harness), [ApprovalState::Used]);
    assert_eq!(harness.read_file(GUARDED_PATH).await["result"]["content"], "new\n");
}

#[tokio::test]
async fn rejection_is_an_error_with_the_chosen_duration() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    let (_, question) = write_guarded_file(&mut harness).await;
    harness.editor.send(&permission_answer(&question, "reject_once")).await;
    let response = harness.agent.receive().await;
    assert_eq!(response["error"]["code"], -32603);
    let result = response["error"]["data"].as_str().unwrap();
    assert!(result.starts_with("approval_denied: "), "{result}");
    // The same write stays denied, and another write causes a new permission request.
    assert_eq!(harness.write_file(GUARDED_PATH, "new\n").await["error"]["code"], -32603);
    harness.send_from_agent("fs/write_text_file", json!({ "path": GUARDED_PATH, "content": "other\n" })).await;
    let question = harness.editor.receive().await;
    harness.editor.send(&permission_answer(&question, "reject_always")).await;
    assert_eq!(harness.agent.receive().await["error"]["code"], -32603);
    assert_eq!(harness.write_file(GUARDED_PATH, "newer\n").await["error"]["code"], -32603);
    assert_eq!(harness.read_file(GUARDED_PATH).await["error"]["code"], -32002);
}

#[tokio::test]
async fn allow_always_adds_a_rule() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    let (_, question) = write_guarded_file(&mut harness).await;
    harness.editor.send(&permission_answer(&question, "allow_always")).await;
    assert_eq!(harness.agent.receive().await["result"], json!({}));
    assert_eq!(harness.root_opener.allow_rules.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn only_explicit_approval_allows_the_write() {
    for (result, code) in [
        (json!({ "result": { "outcome": { "outcome": "cancelled" } } }), -32800),
        (json!({ "result": { "outcome": { "outcome": "selected", "optionId": "yes" } } }), -32603),
        (json!({ "result": null }), -32603),
        (json!({ "error": { "code": -32601, "message": "Method not found" } }), -32603),
    ] {
        let mut harness = AcpProxyTestHarness::initialized().await;
        let (_, question) = write_guarded_file(&mut harness).await;
        let mut response = result.clone();
        response["id"] = question["id"].clone();
        harness.editor.send(&response).await;
        assert_eq!(harness.agent.receive().await["error"]["code"], code, "{result}");
        assert_eq!(harness.read_file(GUARDED_PATH).await["error"]["code"], -32002, "{result}");
    }
}

#[tokio::test]
async fn cancelled_call_ends_its_permission_request() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    let (id, question) = write_guarded_file(&mut harness).await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s1" } });
    harness.editor.send(&cancel).await;
    let mut received = [harness.agent.receive().await, harness.agent.receive().await];
    received.sort_by_key(|message| message.get("method").is_some());
    assert_eq!((&received[0]["id"], &received[0]["error"]["code"]), (&json!(id), &json!(-32800)));
    assert_eq!(received[1], cancel);
    let notice = harness.editor.receive().await;
    assert_eq!((&notice["method"], &notice["params"]["requestId"]), (&json!("$/cancel_request"), &question["id"]));
    // A late response belongs to the proxy and is not forwarded.
    harness.editor.send(&permission_answer(&question, "allow_once")).await;
    let (id, question) = write_guarded_file(&mut harness).await;
    harness.agent.send(&json!({ "method": "$/cancel_request", "params": { "requestId": id } })).await;
    assert_eq!(harness.agent.receive().await["error"], json!({ "code": -32800, "message": "Request cancelled" }));
    assert_eq!(harness.editor.receive().await["params"]["requestId"], question["id"]);
    assert_eq!(harness.read_file(GUARDED_PATH).await["error"]["code"], -32002);
}

#[tokio::test]
async fn peer_disconnect_ends_permission_request() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    let (id, _) = write_guarded_file(&mut harness).await;
    harness.editor.close_output();
    let response = harness.agent.receive().await;
    assert_eq!((&response["id"], &response["error"]["code"]), (&json!(id), &json!(-32800)));
    let mut harness = AcpProxyTestHarness::initialized().await;
    write_guarded_file(&mut harness).await;
    harness.agent.close_output();
    harness.proxy.await.unwrap().unwrap();
}

#[tokio::test]
async fn terminal_approval_mode_does_not_ask_editor() {
    let mut harness =
        AcpProxyTestHarness::initialized_with(BOTH_FILE_METHODS, ApprovalMode::AskPerson, &json!({})).await;
    let response = harness.write_file(GUARDED_PATH, "x\n").await;
    let result = response["error"]["data"].as_str().unwrap();
    assert!(result.starts_with("approval_pending: ") && result.contains("stead approvals approve"), "{result}");
}
