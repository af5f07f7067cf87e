//! A call that waits for a person, put before the client's person in the way of each era of MCP.

use engine::{ApprovalState, Asking, Workspace};
use serde_json::{Value, json};

use crate::client::Client;

fn modern(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": { "name": "modern client", "version": "1" },
    })
}

fn write(meta: Option<Value>, more: &Value) -> Value {
    let mut params = json!({ "name": "write", "arguments": { "path": ".git/config", "content": "x\n" } });
    if let Some(meta) = meta {
        params["_meta"] = meta;
    }
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    params
}

/// The state of the one question there is.
fn state(client: &Client) -> ApprovalState {
    let filter = engine::ApprovalFilter { limit: 9, ..Default::default() };
    let mut all = client.workspace.approvals(&filter).unwrap();
    assert_eq!(all.len(), 1);
    all.remove(0).state
}

fn kind(answer: &Value) -> &Value {
    &answer["result"]["structuredContent"]["error"]["kind"]
}

#[tokio::test]
async fn a_client_that_cannot_ask_is_told_the_command() {
    let mut client = Client::asking(Asking::Client);
    client.initialize("2025-06-18").await;
    let answer = client.request("tools/call", write(None, &json!({}))).await;
    assert_eq!(kind(&answer), "approval_pending");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("stead approvals approve ap-"), "{text}");
    let modern_answer = client.request("tools/call", write(Some(modern(&json!({}))), &json!({}))).await;
    assert_eq!(kind(&modern_answer), "approval_pending");
}

#[tokio::test]
async fn an_earlier_client_is_asked_and_its_word_counts_only_by_choice() {
    for (asking, action, expected) in [
        (Asking::Ask, "accept", ApprovalState::Pending),
        (Asking::Ask, "decline", ApprovalState::Pending),
        (Asking::Client, "accept", ApprovalState::Used),
        (Asking::Client, "decline", ApprovalState::Denied),
        (Asking::Client, "cancel", ApprovalState::Pending),
    ] {
        let mut client = Client::asking(asking);
        client.initialize_with("2025-06-18", json!({ "elicitation": {} })).await;
        client.say(&json!({ "jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": write(None, &json!({})) })).await;
        let question = client.hear().await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let message = question["params"]["message"].as_str().unwrap();
        assert!(message.contains("create .git/config") && message.contains("+x"), "{message}");
        client.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": action, "content": {} } })).await;
        let answer = client.hear().await;
        assert_eq!(answer["id"], 77, "{answer}");
        assert_eq!(state(&client), expected, "{asking:?} {action}: {answer}");
        assert_eq!(answer["result"]["isError"] == true, expected != ApprovalState::Used, "{answer}");
    }
}

#[tokio::test]
async fn a_modern_client_is_asked_with_a_handle_that_cannot_be_forged() {
    let can = json!({ "elicitation": { "form": {} } });
    let accept = json!({ "approval": { "action": "accept", "content": {} } });
    for asking in [Asking::Ask, Asking::Client] {
        let mut client = Client::asking(asking);
        // Answers to questions that were never put, under any handle, are no answers.
        for handle in ["", "ap-0000000000000001.00", "x"] {
            let more = json!({ "inputResponses": accept, "requestState": handle });
            let answer = client.request("tools/call", write(Some(modern(&can)), &more)).await;
            assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
            assert_eq!(state(&client), ApprovalState::Pending);
        }
        let first = client.request("tools/call", write(Some(modern(&can)), &json!({}))).await;
        let result = &first["result"];
        assert_eq!(result["inputRequests"]["approval"]["method"], "elicitation/create", "{first}");
        let more = json!({ "inputResponses": accept, "requestState": result["requestState"] });
        // The handle of one call says nothing about another.
        let mut other = write(Some(modern(&can)), &more);
        other["arguments"]["content"] = "another\n".into();
        let answer = client.request("tools/call", other).await;
        assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
        let second = client.request("tools/call", write(Some(modern(&can)), &more)).await;
        match asking {
            Asking::Client => assert_eq!(second["result"]["isError"], false, "{second}"),
            Asking::Ask | Asking::Deny | Asking::Allow => assert_eq!(kind(&second), "approval_pending"),
        }
    }
}

#[tokio::test]
async fn a_handle_counts_once_and_only_where_it_was_given_out() {
    let can = json!({ "elicitation": { "form": {} } });
    let accept = |handle: &Value| json!({ "inputResponses": { "approval": { "action": "accept", "content": {} } }, "requestState": handle });
    let mut client = Client::asking(Asking::Client);
    let first = client.request("tools/call", write(Some(modern(&can)), &json!({}))).await;
    let handle = first["result"]["requestState"].clone();
    assert!(handle.is_string(), "{first}");
    // The same agent over another connection, with what the first was given.
    let mut other = client.beside(Asking::Client);
    let replayed = other.request("tools/call", write(Some(modern(&can)), &accept(&handle))).await;
    assert_eq!(replayed["result"]["resultType"], "input_required", "{replayed}");
    assert_eq!(state(&client), ApprovalState::Pending);
    let answered = client.request("tools/call", write(Some(modern(&can)), &accept(&handle))).await;
    assert_eq!(answered["result"]["isError"], json!(false), "{answered}");
    assert_eq!(state(&client), ApprovalState::Used);
    // The next call that needs a yes is another question; the old handle answers nothing.
    client.workspace.put_file(".git/config", "changed elsewhere\n");
    let again = client.request("tools/call", write(Some(modern(&can)), &accept(&handle))).await;
    assert_ne!(again["result"]["isError"], json!(false), "{again}");
}
