//! Tests of well-behaved MCP clients in both generations of the protocol.

use serde_json::{Value, json};
use stead_engine::{JournalEntryQuery, Workspace};

use crate::test_client::JsonLinesTestClient;

/// The maximum size in bytes of the MCP tool list, which is part of every conversation with a model.
const TOOLS_BYTES_MAX: usize = 8_000;

fn stateless_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "modern client", "version": "1" },
    })
}

#[tokio::test]
async fn serves_every_handshake_version() {
    let definition = stead_protocols::definition::DialectDefinition::native().unwrap();
    let shown = definition
        .operations
        .iter()
        .filter(|one| one.listed == stead_protocols::definition::ToolVisibility::Listed)
        .count();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = JsonLinesTestClient::initialized(version).await;
        let tools = client.request("tools/list", json!({})).await;
        assert_eq!(tools["result"]["tools"].as_array().map(Vec::len), Some(shown), "{version}");
        client.close().await;
    }
}

#[tokio::test]
async fn serves_stateless_version_on_same_server() {
    let mut client = JsonLinesTestClient::uninitialized();
    let discovered = client.request("server/discover", json!({ "_meta": stateless_meta() })).await;
    assert!(discovered["result"]["supportedVersions"].to_string().contains("2026-07-28"), "{discovered}");
    client.workspace.put_file("a.txt", "hello\n");
    let params = json!({ "name": "read", "arguments": { "path": "a.txt" }, "_meta": stateless_meta() });
    let answer = client.request("tools/call", params).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert_eq!(answer["result"]["structuredContent"]["content"], "hello\n");
    let tools = client.request("tools/list", json!({ "_meta": stateless_meta() })).await;
    assert!(tools["result"]["ttlMs"].is_u64(), "{tools}");
    let sessions: Vec<String> = client
        .workspace
        .entries(&JournalEntryQuery { limit: 10, ..JournalEntryQuery::default() })
        .unwrap()
        .iter()
        .map(|stored| stored.entry.caller.session.clone())
        .collect();
    assert_eq!(sessions, ["modern client"]);
    client.close().await;
}

#[tokio::test]
async fn tool_list_is_small_stable_and_complete() {
    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    let first = client.request("tools/list", json!({})).await["result"].clone();
    let second = client.request("tools/list", json!({})).await["result"].clone();
    assert_eq!(first, second);
    let size = first.to_string().len();
    assert!(size < TOOLS_BYTES_MAX, "{size} bytes");
    for tool in first["tools"].as_array().unwrap() {
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{tool}");
        }
    }
    client.close().await;
}

#[tokio::test]
async fn result_has_structured_content_and_text() {
    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    let written = client.call_tool("write", json!({ "path": "a.txt", "content": "one\n", "base": "" })).await;
    let result = &written["result"];
    assert_eq!(result["structuredContent"]["size"], 4, "{written}");
    assert!(result["content"][0]["text"].as_str().unwrap().contains("a.txt"), "{written}");
    let stale = client.call_tool("write", json!({ "path": "a.txt", "content": "two\n" })).await;
    let result = &stale["result"];
    assert_eq!(result["isError"], true);
    assert_eq!(result["structuredContent"]["error"]["kind"], "base_required");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("base_required: ") && text.contains("\nNext step: "), "{text}");
    client.close().await;
}

#[tokio::test]
async fn unknown_tool_is_invalid_params_and_recorded() {
    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    let answer = client.call_tool("delete_everything", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let entries = client.workspace.entries(&JournalEntryQuery { limit: 10, ..JournalEntryQuery::default() }).unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].entry.caller.session, "line client");
    client.close().await;
}

#[tokio::test]
async fn unknown_argument_error_suggests_right_name() {
    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    let answer = client.call_tool("read", json!({ "file_path": "a.txt" })).await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("did you mean `path`?"), "{text}");
    client.close().await;
}

#[tokio::test]
async fn same_idempotency_key_applies_once() {
    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    let params = json!({
        "name": "append", "arguments": { "path": "log.txt", "content": "x" }, "_meta": { "stead/key": "k1" }
    });
    let first = client.request("tools/call", params.clone()).await;
    let second = client.request("tools/call", params).await;
    assert_eq!(
        first["result"]["structuredContent"]["entry"], second["result"]["structuredContent"]["entry"],
        "{second}"
    );
    assert_eq!(client.workspace.bytes("log.txt"), Some(b"x".to_vec()));
    let params =
        json!({ "name": "append", "arguments": { "path": "log.txt", "content": "x" }, "_meta": { "stead/key": 7 } });
    let refused = client.request("tools/call", params).await;
    assert_eq!(refused["result"]["structuredContent"]["error"]["kind"], "bad_request", "{refused}");
    client.close().await;
}

#[tokio::test]
async fn waiting_call_blocks_nothing_and_can_be_cancelled() {
    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    client.workspace.put_file("a.txt", "a\n");
    client
        .send(&json!({ "jsonrpc": "2.0", "id": "wait", "method": "tools/call", "params": {
            "name": "changes", "arguments": { "since": "now", "wait_ms": 60_000 } } }))
        .await;
    let read = client.call_tool("read", json!({ "path": "a.txt" })).await;
    assert_eq!(read["result"]["isError"], false);
    client
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "wait" } }))
        .await;
    let pong = client.request("ping", json!({})).await;
    assert!(pong["result"].is_object());
    assert_eq!(client.close().await, Vec::<Value>::new(), "a cancelled call is not answered");
}

#[tokio::test]
async fn disconnect_ends_waits_but_not_changes() {
    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    client
        .send(&json!({ "jsonrpc": "2.0", "id": "wait", "method": "tools/call", "params": {
            "name": "changes", "arguments": { "since": "now", "wait_ms": 60_000 } } }))
        .await;
    client
        .send(&json!({ "jsonrpc": "2.0", "id": "work", "method": "tools/call", "params": {
            "name": "write", "arguments": { "path": "b.txt", "content": "b\n", "base": "" } } }))
        .await;
    let workspace = client.workspace.clone();
    let rest = client.close().await;
    assert!(rest.iter().any(|answer| answer["id"] == "work"), "{rest:?}");
    assert_eq!(workspace.bytes("b.txt"), Some(b"b\n".to_vec()));
}

#[tokio::test]
async fn many_concurrent_requests_are_answered() {
    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    client.workspace.put_file("a.txt", "a\n");
    let count = 300;
    for id in 0..count {
        let name = if id % 2 == 0 { "read" } else { "list" };
        let arguments = if id % 2 == 0 { json!({ "path": "a.txt" }) } else { json!({}) };
        client
            .send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": name, "arguments": arguments } }))
            .await;
    }
    let mut seen: Vec<i64> = Vec::new();
    for _ in 0..count {
        seen.push(client.receive().await["id"].as_i64().unwrap());
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..count).collect::<Vec<_>>());
    client.close().await;
}
