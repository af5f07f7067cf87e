//! What a broken or hostile client sees: a clear error, and a server that goes on.

use serde_json::{Value, json};

use crate::client::Client;

async fn still_there(client: &mut Client) {
    let pong = client.request("ping", json!({})).await;
    assert!(pong["result"].is_object(), "{pong}");
}

#[tokio::test]
async fn a_client_that_says_nothing_is_no_failure() {
    assert_eq!(Client::silent().close().await, Vec::<Value>::new());
}

#[tokio::test]
async fn what_is_no_message_is_answered_before_and_after_the_opening() {
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
    let mut client = Client::silent();
    for round in 0..2 {
        for (line, code, id) in lines {
            client.say_raw(line).await;
            let answer = client.hear().await;
            assert_eq!(
                (&answer["error"]["code"], &answer["id"]),
                (&json!(code), id),
                "round {round}: {answer}"
            );
        }
        if round == 0 {
            client.initialize("2025-11-25").await;
        }
        still_there(&mut client).await;
    }
    client.close().await;
}

#[tokio::test]
async fn stray_notifications_and_answers_before_the_opening_are_ignored() {
    let mut client = Client::silent();
    client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    client.say(&json!({ "jsonrpc": "2.0", "method": "$/whatever", "params": {} })).await;
    client.say(&json!({ "jsonrpc": "2.0", "id": 3, "result": {} })).await;
    client.say_raw(b"\r\n\n").await;
    let refused = client.request("tools/list", json!({})).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    client
        .say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }))
        .await;
    client.initialize("2025-06-18").await;
    still_there(&mut client).await;
    client.close().await;
}

#[tokio::test]
async fn parameters_that_do_not_fit_are_named_as_such() {
    let mut client = Client::open("2025-11-25").await;
    for params in [
        json!({ "name": 5 }),
        json!({ "arguments": {} }),
        json!({ "name": "stat", "arguments": [] }),
        json!(null),
    ] {
        let answer = client.request("tools/call", params.clone()).await;
        assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
    }
    let answer = client.request("no/such/method", json!({})).await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    for arguments in [json!({ "path": 5 }), json!({ "path": null }), json!({})] {
        let answer = client.call("stat", arguments).await;
        assert_eq!(answer["result"]["structuredContent"]["error"]["kind"], "bad_request", "{answer}");
    }
    still_there(&mut client).await;
    client.close().await;
}

#[tokio::test]
async fn a_message_nested_too_deeply_is_refused() {
    let mut client = Client::open("2025-11-25").await;
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"params\":{}{},\"id\":9}}\n",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    client.say_raw(deep.as_bytes()).await;
    let answer = client.hear().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &json!(9)), "{answer}");
    still_there(&mut client).await;
    client.close().await;
}

#[tokio::test]
async fn a_message_too_long_is_refused_by_its_id() {
    let mut client = Client::open("2025-11-25").await;
    let chunk = vec![b'x'; 1 << 20];
    client.say_raw(b"{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"").await;
    for _ in 0..=(faces::limits::MESSAGE_BYTES_MAX >> 20) {
        client.say_raw(&chunk).await;
    }
    client.say_raw(b"\"},\"id\":\"long\"}\n").await;
    let answer = client.hear().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &json!("long")), "{answer}");
    still_there(&mut client).await;
    client.close().await;
}
