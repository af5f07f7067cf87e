//! Tests which messages the ACP proxy forwards or changes, and how a connection ends.

use serde_json::{Value, json};
use stead_engine::ApprovalMode;
use stead_protocols::acp::{AcpConnectionClosedBy, AcpFileCapabilities};

use super::harness::AcpProxyTestHarness;

/// Lines that peers of any version might send, with unknown methods and members and unusual numbers and escapes.
const UNKNOWN_MESSAGES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":"a\u0062","method":"session/prompt","params":{"x": 1.50, "y":[ ] ,"z":1e3}}"#,
    r#"{ "method" : "_vendor/notice", "params": {"deep":[[[{"\u0061":"\ud83d\ude00"}]]]}, "jsonrpc":"2.0", "later":true }"#,
    r#"{"id":18446744073709551615,"jsonrpc":"2.0","result":{"a":null,"a2":-0.0},"_meta":{"k":1}}"#,
    r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"x","data":[1,2]},"more":{}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"new_kind"}}}"#,
    r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"nobody's"}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"terminal/create","params":{"command":"ls"}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"proxy/successor","params":{"method":"x"}}"#,
];

#[tokio::test]
async fn unknown_messages_are_forwarded_unchanged() {
    let mut harness = AcpProxyTestHarness::uninitialized();
    for line in UNKNOWN_MESSAGES {
        harness.editor.send_raw(line).await;
        assert_eq!(harness.agent.receive_raw().await, *line);
        harness.agent.send_raw(line).await;
        assert_eq!(harness.editor.receive_raw().await, *line);
    }
    let large = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"text":"{}"}}}}"#, "ab\\n".repeat(2_500_000));
    let (said, received) = tokio::join!(harness.editor.send_raw(&large), harness.agent.receive_raw());
    assert_eq!((said, received.len()), ((), large.len()));
    assert_eq!(received, large);
}

#[tokio::test]
async fn ambiguous_messages_are_not_forwarded() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    let smuggled = r#"{"jsonrpc":"2.0","id":9,"method":"session/update","method":"fs/write_text_file","params":{}}"#;
    harness.agent.send_raw(smuggled).await;
    assert_eq!(harness.agent.receive().await["error"]["code"], -32600);
    for line in ["not json", "[]", "{\"jsonrpc\":\"2.0\"", "7"] {
        harness.agent.send_raw(line).await;
        let response = harness.agent.receive().await;
        assert_eq!((&response["error"]["code"], &response["id"]), (&json!(-32700), &Value::Null), "{line}");
    }
    // A file method without an id is neither executed nor forwarded to the editor.
    let silent =
        json!({ "method": "fs/write_text_file", "params": { "sessionId": "s1", "path": "/ws/a", "content": "x" } });
    harness.agent.send(&silent).await;
    harness.agent.send(&json!({ "method": "after" })).await;
    assert_eq!(harness.editor.receive().await["method"], "after");
    assert_eq!(harness.read_file("/ws/a").await["error"]["code"], -32002);
}

#[tokio::test]
async fn agent_gets_file_capabilities_and_mcp_server() {
    let mut harness = AcpProxyTestHarness::uninitialized();
    let received = harness.initialize(1, &json!({ "terminal": true })).await;
    let told = json!({ "terminal": true, "fs": { "readTextFile": true, "writeTextFile": true } });
    assert_eq!(received["params"]["clientCapabilities"], told);
    let received =
        harness.create_session("s1", &json!({ "cwd": "/ws", "mcpServers": [{ "name": "x" }], "_meta": 7 })).await;
    let added = json!({ "name": "stead", "command": "/bin/stead", "args": ["mcp", "--workspace", "/ws"], "env": [] });
    assert_eq!(received["params"], json!({ "cwd": "/ws", "mcpServers": [{ "name": "x" }, added], "_meta": 7 }));
}

#[tokio::test]
async fn read_only_proxy_does_not_offer_writes() {
    let offer = AcpFileCapabilities { read_text_file: true, write_text_file: false };
    let mut harness = AcpProxyTestHarness::initialized_with(offer, ApprovalMode::TrustClient, &json!({})).await;
    let refused = harness.write_file("/ws/a", "x").await;
    assert_eq!(
        refused["error"],
        json!({ "code": -32601, "message": "Method not found", "data": "fs/write_text_file" })
    );
    assert_eq!(harness.read_file("/ws/a").await["error"]["code"], -32002);
}

#[tokio::test]
async fn protocol_v2_adds_mcp_server_without_files() {
    let mut harness = AcpProxyTestHarness::uninitialized();
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"e"},"capabilities":{}}}"#;
    harness.editor.send_raw(initialize).await;
    assert_eq!(harness.agent.receive_raw().await, initialize);
    let capabilities = json!({ "session": { "mcp": { "stdio": {} } } });
    harness.agent.send(&json!({ "id": 0, "result": { "protocolVersion": 2, "capabilities": capabilities } })).await;
    harness.editor.receive().await;
    let received = harness.create_session("s1", &json!({ "cwd": "/ws" })).await;
    assert_eq!(received["params"]["mcpServers"][0]["type"], "stdio", "{received}");
    assert_eq!(harness.read_file("/ws/a").await["error"]["code"], -32601);
}

#[tokio::test]
async fn invalid_roots_are_refused_before_reaching_agent() {
    let mut harness = AcpProxyTestHarness::uninitialized();
    harness.initialize(1, &json!({})).await;
    for (method, params) in [
        ("session/new", json!({ "cwd": "ws", "mcpServers": [] })),
        ("session/new", json!({ "cwd": "/missing", "mcpServers": [] })),
        (
            "session/load",
            json!({ "sessionId": "s", "cwd": "/ws", "additionalDirectories": ["/missing"], "mcpServers": [] }),
        ),
        ("session/resume", json!({ "sessionId": "s", "mcpServers": [] })),
    ] {
        harness.editor.send(&json!({ "id": 5, "method": method, "params": params })).await;
        let response = harness.editor.receive().await;
        assert_eq!((&response["id"], &response["error"]["code"]), (&json!(5), &json!(-32602)), "{response}");
    }
    harness.editor.send(&json!({ "method": "after" })).await;
    assert_eq!(harness.agent.receive().await["method"], "after");
}

#[tokio::test]
async fn sessions_have_separate_roots_and_can_close() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    harness
        .create_session("s2", &json!({ "cwd": "/other", "additionalDirectories": ["/ws/sub"], "mcpServers": [] }))
        .await;
    harness.root_workspace("/ws").put_file("a", "one");
    harness.root_workspace("/ws/sub").put_file("a", "two");
    let read = |session: &str, path: &str| json!({ "sessionId": session, "path": path });
    assert_eq!(harness.call_from_agent("fs/read_text_file", read("s1", "/ws/a")).await["result"]["content"], "one");
    assert_eq!(harness.call_from_agent("fs/read_text_file", read("s2", "/ws/sub/a")).await["result"]["content"], "two");
    assert_eq!(harness.call_from_agent("fs/read_text_file", read("s2", "/ws/a")).await["error"]["code"], -32002);
    let params = json!({ "sessionId": "s1", "cwd": "/other", "mcpServers": [] });
    harness.editor.send(&json!({ "id": 5, "method": "session/load", "params": params })).await;
    harness.agent.receive().await;
    assert_eq!(harness.call_from_agent("fs/read_text_file", read("s1", "/ws/a")).await["error"]["code"], -32002);
    harness.agent.send(&json!({ "id": 5, "error": { "code": -1, "message": "no" } })).await;
    harness.editor.receive().await;
    assert_eq!(harness.call_from_agent("fs/read_text_file", read("s1", "/ws/a")).await["result"]["content"], "one");
    harness.editor.send(&json!({ "id": 6, "method": "session/close", "params": { "sessionId": "s1" } })).await;
    harness.agent.receive().await;
    harness.agent.send(&json!({ "id": 6, "result": {} })).await;
    harness.editor.receive().await;
    assert_eq!(
        harness.call_from_agent("fs/read_text_file", read("s1", "/ws/a")).await["error"]["data"],
        json!({ "sessionId": "s1" })
    );
}

#[tokio::test]
async fn oversized_message_is_refused_and_next_is_forwarded() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    let long = "x".repeat(stead_protocols::limits::MESSAGE_BYTES_MAX);
    let line = format!(r#"{{"jsonrpc":"2.0","id":77,"method":"session/prompt","params":{{"text":"{long}"}}}}"#);
    harness.editor.send_raw(&line).await;
    let refused = harness.editor.receive().await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    harness.agent.send_raw(&line.replace("77", "78")).await;
    let refused = harness.agent.receive().await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    let next = r#"{"jsonrpc":"2.0","id":79,"method":"x/next"}"#;
    harness.editor.send_raw(next).await;
    assert_eq!(harness.agent.receive_raw().await, next);
    harness.agent.send_raw(next).await;
    assert_eq!(harness.editor.receive_raw().await, next);
}

#[tokio::test]
async fn either_peer_may_close_the_conversation() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    harness.agent.close_output();
    assert_eq!(harness.proxy.await.unwrap().unwrap(), AcpConnectionClosedBy::Agent);
    let mut harness = AcpProxyTestHarness::initialized().await;
    harness.editor.close_output();
    assert_eq!(harness.agent.receive_raw().await, "", "the agent sees the end");
    harness.agent.send(&json!({ "method": "last/words" })).await;
    assert_eq!(harness.editor.receive().await["method"], "last/words");
    harness.agent.close_output();
    assert_eq!(harness.proxy.await.unwrap().unwrap(), AcpConnectionClosedBy::Editor);
}
