//! Tests of files as MCP resources: reads and update notifications in both generations of the protocol.

use serde_json::{Value, json};

use crate::test_client::JsonLinesTestClient;

fn stateless_params(params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "line client", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    params
}

#[tokio::test]
async fn resources_are_listed_and_read_through_the_engine() {
    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    client.write_as_other("d/a.txt", "one\n");
    let listed = client.request("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"][0]["uri"], "stead:///");
    let templates = client.request("resources/templates/list", json!({})).await;
    assert_eq!(templates["result"]["resourceTemplates"][0]["uriTemplate"], "stead:///{+path}");
    let read = client.request("resources/read", json!({ "uri": "stead:///d/a.txt" })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "one\n");
    let listing = client.request("resources/read", json!({ "uri": "stead:///d" })).await;
    assert!(listing["result"]["contents"][0]["text"].as_str().unwrap().contains("a.txt"), "{listing}");
    for uri in ["stead:///nowhere", "stead:///../etc/passwd", "http://x/", "file:///etc/passwd"] {
        let refused = client.request("resources/read", json!({ "uri": uri })).await;
        assert!(refused["error"]["code"].is_number(), "{uri}: {refused}");
    }
    client.close().await;
}

#[tokio::test]
async fn handshake_clients_receive_subscribed_updates() {
    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    client.write_as_other("a.txt", "one\n");
    let uri = "stead:///a.txt";
    let subscribed = client.request("resources/subscribe", json!({ "uri": uri })).await;
    assert_eq!(subscribed["result"], json!({}), "{subscribed}");
    client.write_as_other("b.txt", "unheard\n");
    client.write_as_other("a.txt", "two\n");
    let told = client.receive().await;
    assert_eq!(
        (&told["method"], &told["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!(uri)),
        "{told}"
    );
    let over = client.request("resources/unsubscribe", json!({ "uri": uri })).await;
    assert_eq!(over["result"], json!({}), "{over}");
    client.write_as_other("a.txt", "three\n");
    let missing = client.request("resources/subscribe", json!({ "uri": "stead:///nowhere" })).await;
    assert!(missing["error"]["code"].is_number(), "{missing}");
    client.close().await;
}

#[tokio::test]
async fn stateless_clients_receive_updates_after_acknowledgement() {
    let mut client = JsonLinesTestClient::uninitialized();
    client.write_as_other("d/a.txt", "one\n");
    let listen = json!({
        "jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen",
        "params": stateless_params(json!({ "notifications": { "resourceSubscriptions": ["stead:///d", "bad:"] } }))
    });
    client.send(&listen).await;
    let acknowledged = client.receive().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
    let look = client.receive().await;
    assert_eq!(look["params"]["uri"], "stead:///d", "what changed meanwhile must be looked for: {look}");
    client.write_as_other("d/b.txt", "new\n");
    let told = client.receive().await;
    assert_eq!(
        (&told["method"], &told["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!("stead:///d")),
        "{told}"
    );
    client
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": stateless_params(json!({ "requestId": 7 })) }))
        .await;
    client.close().await;
}
