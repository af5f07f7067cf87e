//! The proxy in a chain: everything comes from a conductor and goes to it.

use serde_json::{Value, json};

use super::stage::Stage;

/// Plays the conductor for both spellings.
async fn chain(opening: &str, envelope: &str) {
    let mut stage = Stage::chained();
    let conductor = &mut stage.editor;
    let params = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    conductor.say(&json!({ "jsonrpc": "2.0", "id": 0, "method": opening, "params": params })).await;
    let heard = conductor.hear().await;
    assert_eq!((&heard["method"], &heard["params"]["method"]), (&json!(envelope), &json!("initialize")));
    assert_eq!(heard["params"]["params"]["clientCapabilities"]["fs"]["readTextFile"], true);
    let id = heard["id"].clone();
    conductor.say(&json!({ "jsonrpc": "2.0", "id": id, "result": { "protocolVersion": 1 } })).await;
    let answer = conductor.hear().await;
    assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&json!(0), &json!(1)));

    let params = json!({ "cwd": "/ws", "mcpServers": [] });
    conductor.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params })).await;
    let heard = conductor.hear().await;
    assert_eq!(heard["params"]["method"], "session/new");
    assert_eq!(heard["params"]["params"]["mcpServers"][0]["name"], "stead");
    conductor.say(&json!({ "jsonrpc": "2.0", "id": heard["id"], "result": { "sessionId": "s1" } })).await;
    assert_eq!(conductor.hear().await["result"]["sessionId"], "s1");

    let enveloped = |id: Option<i64>, method: &str, params: Value| {
        let mut message =
            json!({ "jsonrpc": "2.0", "method": envelope, "params": { "method": method, "params": params } });
        if let Some(id) = id {
            message["id"] = id.into();
        }
        message
    };
    let write = json!({ "sessionId": "s1", "path": "/ws/a.txt", "content": "x\n" });
    conductor.say(&enveloped(Some(2), "fs/write_text_file", write)).await;
    assert_eq!(conductor.hear().await, json!({ "jsonrpc": "2.0", "id": 2, "result": {} }));
    let update = json!({ "sessionId": "s1", "update": {} });
    conductor.say(&enveloped(None, "session/update", update.clone())).await;
    assert_eq!(
        conductor.hear().await,
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": update })
    );
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s1" } });
    conductor.say(&cancel).await;
    assert_eq!(conductor.hear().await, enveloped(None, "session/cancel", json!({ "sessionId": "s1" })));

    // A question of ours, and its answer, among everything else.
    let write = json!({ "sessionId": "s1", "path": "/ws/.git/config", "content": "x\n" });
    conductor.say(&enveloped(Some(3), "fs/write_text_file", write)).await;
    let question = conductor.hear().await;
    assert_eq!(question["method"], "session/request_permission");
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } });
    conductor.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": outcome })).await;
    assert_eq!(conductor.hear().await, json!({ "jsonrpc": "2.0", "id": 3, "result": {} }));
    conductor.close();
    stage.proxy.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_chain_is_joined_as_the_conductor_speaks() {
    chain("proxy/initialize", "proxy/successor").await;
    chain("_proxy/initialize", "_proxy/successor").await;
}
