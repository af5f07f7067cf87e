//! Tests that malformed messages get a clear error and that the server continues.

use serde_json::{Value, json};

use crate::test_client::JsonLinesTestClient;

async fn check_still_serving(client: &mut JsonLinesTestClient) {
    let pong = client.request("ping", json!({})).await;
    assert!(pong["result"].is_object(), "{pong}");
}

#[tokio::test]
async fn client_that_sends_nothing_is_no_error() {
    assert_eq!(JsonLinesTestClient::uninitialized().close().await, Vec::<Value>::new());
}

#[tokio::test]
async fn malformed_messages_get_errors_before_and_after_handshake() {
    let lines: &[(&[u8], i64, Value)] = &[
        (b"nonsense\n", -32700, Value::Null),
        (b"{\"a\":\n", -32700, Value::Null),
        (b"\xff\xfe{}\n", -32700, Value::Null),
        (b"[]\n", -32600, Value::Null),
        (b"{}\n", -32600, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}\n", -32600, Value::Null),
        (b"{\"id\":5,\"method\":\"ping\"}\n", -32600, json!(5)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"method\":\"tools/list\"}\n", -32600, json!(5)),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"tools/call\",\"params\":{\"name\":\"stat\",\"arguments\":{\"path\":\"a\",\"path\":\"b\"}}}\n",
            -32600,
            json!(6),
        ),
    ];
    let mut client = JsonLinesTestClient::uninitialized();
    for round in 0..2 {
        for (line, code, id) in lines {
            client.send_raw(line).await;
            let answer = client.receive().await;
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), id), "round {round}: {answer}");
        }
        if round == 0 {
            client.initialize("2025-11-25").await;
        }
        check_still_serving(&mut client).await;
    }
    client.close().await;
}

#[tokio::test]
async fn stray_messages_before_handshake_are_ignored() {
    let mut client = JsonLinesTestClient::uninitialized();
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    client.send(&json!({ "jsonrpc": "2.0", "method": "$/whatever", "params": {} })).await;
    client.send(&json!({ "jsonrpc": "2.0", "id": 3, "result": {} })).await;
    client.send_raw(b"\r\n\n").await;
    let refused = client.request("tools/list", json!({})).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } })).await;
    client.initialize("2025-06-18").await;
    check_still_serving(&mut client).await;
    client.close().await;
}

#[tokio::test]
async fn invalid_params_are_reported_as_such() {
    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    for params in
        [json!({ "name": 5 }), json!({ "arguments": {} }), json!({ "name": "stat", "arguments": [] }), json!(null)]
    {
        let answer = client.request("tools/call", params.clone()).await;
        assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
    }
    let answer = client.request("no/such/method", json!({})).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    for arguments in [json!({ "path": 5 }), json!({ "path": null }), json!({})] {
        let answer = client.call_tool("stat", arguments).await;
        assert_eq!(answer["result"]["structuredContent"]["error"]["kind"], "bad_request", "{answer}");
    }
    check_still_serving(&mut client).await;
    client.close().await;
}

#[tokio::test]
async fn deeply_nested_message_is_refused() {
    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"params\":{}{},\"id\":9}}\n",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    client.send_raw(deep.as_bytes()).await;
    let answer = client.receive().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &json!(9)), "{answer}");
    check_still_serving(&mut client).await;
    client.close().await;
}

#[tokio::test]
async fn oversized_message_is_refused_with_its_id() {
    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    let chunk = vec![b'x'; 1 << 20];
    client.send_raw(b"{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"").await;
    for _ in 0..=(stead_protocols::limits::MESSAGE_BYTES_MAX >> 20) {
        client.send_raw(&chunk).await;
    }
    client.send_raw(b"\"},\"id\":\"long\"}\n").await;
    let answer = client.receive().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &json!("long")), "{answer}");
    check_still_serving(&mut client).await;
    client.close().await;
}

fn many_pings() -> Vec<Value> {
    let count = 4 * stead_protocols::limits::REQUESTS_PENDING_MAX;
    (1..=count).map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).collect()
}

#[tokio::test]
async fn a_client_that_reads_late_gets_every_response() {
    for mut client in
        [JsonLinesTestClient::initialized("2025-11-25").await, JsonLinesTestClient::rpc_client(&["stead"])]
    {
        let answers = client.send_all_then_receive_all(&many_pings()).await;
        let mut ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
        ids.sort_unstable();
        assert!(ids.into_iter().eq(1..=many_pings().len() as u64));
        client.close().await;
    }
}

#[tokio::test]
async fn server_ends_when_a_client_disconnects_without_reading() {
    JsonLinesTestClient::initialized("2025-11-25").await.send_all_and_disconnect(&many_pings()).await;
}
