//! Tests the ACP proxy in a chain, where the proxy exchanges all messages with a conductor.

use serde_json::{Value, json};

use super::harness::AcpProxyTestHarness;

async fn check_conductor_chain(opening: &str, envelope: &str) {
    let mut harness = AcpProxyTestHarness::in_chain();
    let conductor = &mut harness.editor;
    let params = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    conductor.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": opening, "params": params })).await;
    let received = conductor.receive().await;
    assert_eq!((&received["method"], &received["params"]["method"]), (&json!(envelope), &json!("initialize")));
    assert_eq!(received["params"]["params"]["clientCapabilities"]["fs"]["readTextFile"], true);
    let id = received["id"].clone();
    conductor.send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "protocolVersion": 1 } })).await;
    let response = conductor.receive().await;
    assert_eq!((&response["id"], &response["result"]["protocolVersion"]), (&json!(0), &json!(1)));

    let params = json!({ "cwd": "/ws", "mcpServers": [] });
    conductor.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params })).await;
    let received = conductor.receive().await;
    assert_eq!(received["params"]["method"], "session/new");
    assert_eq!(received["params"]["params"]["mcpServers"][0]["name"], "stead");
    conductor.send(&json!({ "jsonrpc": "2.0", "id": received["id"], "result": { "sessionId": "s1" } })).await;
    assert_eq!(conductor.receive().await["result"]["sessionId"], "s1");

    let enveloped = |id: Option<i64>, method: &str, params: Value| {
        let mut message =
            json!({ "jsonrpc": "2.0", "method": envelope, "params": { "method": method, "params": params } });
        if let Some(id) = id {
            message["id"] = id.into();
        }
        message
    };
    let write = json!({ "sessionId": "s1", "path": "/ws/a.txt", "content": "x\n" });
    conductor.send(&enveloped(Some(2), "fs/write_text_file", write)).await;
    assert_eq!(conductor.receive().await, json!({ "jsonrpc": "2.0", "id": 2, "result": {} }));
    let update = json!({ "sessionId": "s1", "update": {} });
    conductor.send(&enveloped(None, "session/update", update.clone())).await;
    assert_eq!(conductor.receive().await, json!({ "jsonrpc": "2.0", "method": "session/update", "params": update }));
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s1" } });
    conductor.send(&cancel).await;
    assert_eq!(conductor.receive().await, enveloped(None, "session/cancel", json!({ "sessionId": "s1" })));

    let write = json!({ "sessionId": "s1", "path": "/ws/.git/config", "content": "x\n" });
    conductor.send(&enveloped(Some(3), "fs/write_text_file", write)).await;
    let question = conductor.receive().await;
    assert_eq!(question["method"], "session/request_permission");
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } });
    conductor.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": outcome })).await;
    assert_eq!(conductor.receive().await, json!({ "jsonrpc": "2.0", "id": 3, "result": {} }));
    conductor.close_output();
    harness.proxy.await.unwrap().unwrap();
}

#[tokio::test]
async fn joins_chain_with_conductor_envelopes() {
    check_conductor_chain("proxy/initialize", "proxy/successor").await;
    check_conductor_chain("_proxy/initialize", "_proxy/successor").await;
}
