//! Tests the approval of a call by the client's user in each generation of MCP.

use serde_json::{Value, json};
use stead_engine::{ApprovalMode, ApprovalState, Workspace};

use crate::test_client::JsonLinesTestClient;

fn stateless_meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": { "name": "modern client", "version": "1" },
    })
}

fn write_params(meta: Option<Value>, more: &Value) -> Value {
    let mut params = json!({ "name": "write", "arguments": { "path": ".git/config", "content": "x\n" } });
    if let Some(meta) = meta {
        params["_meta"] = meta;
    }
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    params
}

fn approval_state(client: &JsonLinesTestClient) -> ApprovalState {
    let filter = stead_engine::ApprovalFilter { limit: 9, ..Default::default() };
    let mut all = (&*client.workspace as &dyn Workspace).approvals(&filter).unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0).state
}

fn error_kind(answer: &Value) -> &Value {
    &answer["result"]["structuredContent"]["error"]["kind"]
}

#[tokio::test]
async fn client_without_elicitation_gets_the_command() {
    let mut client = JsonLinesTestClient::with_approval_mode(ApprovalMode::TrustClient);
    client.initialize("2025-06-18").await;
    let answer = client.request("tools/call", write_params(None, &json!({}))).await;
    assert_eq!(error_kind(&answer), "approval_pending");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("stead approvals approve ap-"), "{text}");
    let modern_answer = client.request("tools/call", write_params(Some(stateless_meta(&json!({}))), &json!({}))).await;
    assert_eq!(error_kind(&modern_answer), "approval_pending");
}

#[tokio::test]
async fn elicitation_of_handshake_client_counts_only_if_enabled() {
    for (mode, action, expected) in [
        (ApprovalMode::AskPerson, "accept", ApprovalState::Pending),
        (ApprovalMode::AskPerson, "decline", ApprovalState::Pending),
        (ApprovalMode::TrustClient, "accept", ApprovalState::Used),
        (ApprovalMode::TrustClient, "decline", ApprovalState::Denied),
        (ApprovalMode::TrustClient, "cancel", ApprovalState::Pending),
    ] {
        let mut client = JsonLinesTestClient::with_approval_mode(mode);
        client.initialize_with("2025-06-18", json!({ "elicitation": {} })).await;
        client.send(&json!({ "jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": write_params(None, &json!({})) })).await;
        let question = client.receive().await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let message = question["params"]["message"].as_str().unwrap();
        assert!(message.contains("create .git/config") && message.contains("+x"), "{message}");
        client
            .send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": action, "content": {} } }))
            .await;
        let answer = client.receive().await;
        assert_eq!(answer["id"], 77, "{answer}");
        assert_eq!(approval_state(&client), expected, "{mode:?} {action}: {answer}");
        assert_eq!(answer["result"]["isError"] == true, expected != ApprovalState::Used, "{answer}");
    }
}

#[tokio::test]
async fn stateless_elicitation_handle_cannot_be_forged() {
    let can = json!({ "elicitation": { "form": {} } });
    let accept = json!({ "approval": { "action": "accept", "content": {} } });
    for mode in [ApprovalMode::AskPerson, ApprovalMode::TrustClient] {
        let mut client = JsonLinesTestClient::with_approval_mode(mode);
        // Answers to questions that were never asked are ignored, whatever their handle is.
        for handle in ["", "ap-0000000000000001.00", "x"] {
            let more = json!({ "inputResponses": accept, "requestState": handle });
            let answer = client.request("tools/call", write_params(Some(stateless_meta(&can)), &more)).await;
            assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
            assert_eq!(approval_state(&client), ApprovalState::Pending);
        }
        let first = client.request("tools/call", write_params(Some(stateless_meta(&can)), &json!({}))).await;
        let result = &first["result"];
        assert_eq!(result["inputRequests"]["approval"]["method"], "elicitation/create", "{first}");
        let more = json!({ "inputResponses": accept, "requestState": result["requestState"] });
        let mut other = write_params(Some(stateless_meta(&can)), &more);
        other["arguments"]["content"] = "another\n".into();
        let answer = client.request("tools/call", other).await;
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
        let second = client.request("tools/call", write_params(Some(stateless_meta(&can)), &more)).await;
        match mode {
            ApprovalMode::TrustClient => assert_eq!(second["result"]["isError"], false, "{second}"),
            ApprovalMode::AskPerson | ApprovalMode::DenyAll | ApprovalMode::AllowAll => {
                assert_eq!(error_kind(&second), "approval_pending")
            }
        }
    }
}

#[tokio::test]
async fn elicitation_handle_is_single_use_and_bound() {
    let can = json!({ "elicitation": { "form": {} } });
    let accept = |handle: &Value| json!({ "inputResponses": { "approval": { "action": "accept", "content": {} } }, "requestState": handle });
    let mut client = JsonLinesTestClient::with_approval_mode(ApprovalMode::TrustClient);
    let first = client.request("tools/call", write_params(Some(stateless_meta(&can)), &json!({}))).await;
    let handle = first["result"]["requestState"].clone();
    assert!(handle.is_string(), "{first}");
    let mut other = client.second_connection(ApprovalMode::TrustClient);
    let replayed = other.request("tools/call", write_params(Some(stateless_meta(&can)), &accept(&handle))).await;
    assert_eq!(replayed["result"]["resultType"], "input_required", "{replayed}");
    assert_eq!(approval_state(&client), ApprovalState::Pending);
    let answered = client.request("tools/call", write_params(Some(stateless_meta(&can)), &accept(&handle))).await;
    assert_eq!(answered["result"]["isError"], json!(false), "{answered}");
    assert_eq!(approval_state(&client), ApprovalState::Used);
    client.workspace.put_file(".git/config", "changed elsewhere\n");
    let again = client.request("tools/call", write_params(Some(stateless_meta(&can)), &accept(&handle))).await;
    assert_ne!(again["result"]["isError"], json!(false), "{again}");
}
