//! Files as resources: read by address, and heard about in both eras.

use serde_json::{Value, json};

use crate::client::Client;

/// What every request of the newest era carries.
fn modern(params: Value) -> Value {
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
    let mut client = Client::open("2025-11-25").await;
    client.others_write("d/a.txt", "one\n");
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
async fn the_initialize_era_subscribes_and_is_told() {
    let mut client = Client::open("2025-11-25").await;
    client.others_write("a.txt", "one\n");
    let uri = "stead:///a.txt";
    let subscribed = client.request("resources/subscribe", json!({ "uri": uri })).await;
    assert_eq!(subscribed["result"], json!({}), "{subscribed}");
    client.others_write("b.txt", "unheard\n");
    client.others_write("a.txt", "two\n");
    let told = client.hear().await;
    assert_eq!(
        (&told["method"], &told["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!(uri)),
        "{told}"
    );
    let over = client.request("resources/unsubscribe", json!({ "uri": uri })).await;
    assert_eq!(over["result"], json!({}), "{over}");
    client.others_write("a.txt", "three\n");
    let missing = client.request("resources/subscribe", json!({ "uri": "stead:///nowhere" })).await;
    assert!(missing["error"]["code"].is_number(), "{missing}");
    client.close().await;
}

#[tokio::test]
async fn the_newest_era_listens_and_is_told_after_the_acknowledgement() {
    let mut client = Client::silent();
    client.others_write("d/a.txt", "one\n");
    let listen = json!({
        "jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen",
        "params": modern(json!({ "notifications": { "resourceSubscriptions": ["stead:///d", "bad:"] } }))
    });
    client.say(&listen).await;
    let acknowledged = client.hear().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
    let look = client.hear().await;
    assert_eq!(look["params"]["uri"], "stead:///d", "what changed meanwhile must be looked for: {look}");
    client.others_write("d/b.txt", "new\n");
    let told = client.hear().await;
    assert_eq!(
        (&told["method"], &told["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!("stead:///d")),
        "{told}"
    );
    client
        .say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": modern(json!({ "requestId": 7 })) }))
        .await;
    client.close().await;
}
