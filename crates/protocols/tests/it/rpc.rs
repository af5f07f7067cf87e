//! Tests of JSON-RPC error codes, ids, batches, notifications, cancellation and rejected messages.

use serde_json::{Value, json};
use stead_engine::{JournalEntryQuery, OPERATIONS, RequiredAuthority, Workspace, find_operation};
use stead_protocols::limits::{BATCH_REQUESTS_MAX, MESSAGE_BYTES_MAX};
use testkit::engine_fixture::approver;

use crate::test_client::JsonLinesTestClient;

fn request_message(id: &Value, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

async fn check_still_serving(client: &mut JsonLinesTestClient) {
    let listed = client.request("capabilities.list", json!({})).await;
    assert!(listed["result"]["capabilities"].is_array(), "{listed}");
}

#[tokio::test]
async fn invalid_requests_get_error_codes_and_server_continues() {
    let lines: &[(&[u8], i64, Value)] = &[
        (b"nonsense\n", -32700, Value::Null),
        (b"\xff\xfe{}\n", -32700, Value::Null),
        (b"[1\n", -32700, Value::Null),
        (b"[]\n", -32600, Value::Null),
        (b"{}\n", -32600, Value::Null),
        (b"7\n", -32600, Value::Null),
        (b"{\"id\":5,\"method\":\"read\"}\n", -32600, json!(5)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}\n", -32600, json!(5)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"read\"}\n", -32600, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"read\",\"method\":\"write\"}\n", -32600, json!("x")),
        (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"read\",\"params\":[\"a\"]}\n", -32602, json!(5)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"read\",\"params\":{\"x\":1}}\n", -32602, json!(5)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"nothing\"}\n", -32601, json!(5)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"read\",\"params\":{\"path\":\"no\"}}\n", -32004, Value::Null),
    ];
    let mut client = JsonLinesTestClient::rpc_client(&["stead"]);
    for (line, code, id) in lines {
        client.send_raw(line).await;
        let answer = client.receive().await;
        let shown = String::from_utf8_lossy(line);
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), id), "{shown}: {answer}");
        assert!(answer["error"]["message"].is_string() && answer.get("id").is_some(), "{answer}");
    }
    check_still_serving(&mut client).await;
    client.close().await;
}

#[tokio::test]
async fn oversized_nested_or_large_batches_are_refused() {
    let mut client = JsonLinesTestClient::rpc_client(&["stead"]);
    let long = format!("{{\"id\":\"long\",\"x\":\"{}\"}}\n", "x".repeat(MESSAGE_BYTES_MAX));
    client.send_raw(long.as_bytes()).await;
    let answer = client.receive().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &json!("long")), "{answer}");
    client.send_raw(format!("{}{}\n", "[".repeat(100_000), "]".repeat(100_000)).as_bytes()).await;
    assert_eq!(client.receive().await["error"]["code"], -32600);
    let many = vec![request_message(&json!(1), "stat", &json!({ "path": "." })); BATCH_REQUESTS_MAX + 1];
    client.send(&Value::Array(many)).await;
    assert_eq!(client.receive().await["error"]["code"], -32600);
    client.send_raw(b"\n\r\n\n").await;
    check_still_serving(&mut client).await;
    client.close().await;
}

#[tokio::test]
async fn batch_is_answered_in_order_without_notifications() {
    let mut client = JsonLinesTestClient::rpc_client(&["stead"]);
    let write = json!({ "path": "a.txt", "content": "one\n", "base": "" });
    let quiet = json!({ "jsonrpc": "2.0", "method": "append", "params": { "path": "a.txt", "content": "two\n" } });
    client
        .send(&json!([
            request_message(&json!("w"), "write", &write),
            quiet,
            1,
            request_message(&json!("r"), "read", &json!({ "path": "a.txt" })),
            request_message(&json!("w"), "write", &write),
        ]))
        .await;
    let answers = client.receive().await;
    let ids: Vec<&Value> = answers.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!("w"), &Value::Null, &json!("r"), &json!("w")], "{answers}");
    assert_eq!(answers[2]["result"]["content"], "one\ntwo\n", "{answers}");
    assert_eq!(answers[3]["error"]["data"]["error"]["kind"], "exists", "{answers}");
    // A batch of notifications gets no response, not even an empty batch.
    client.send(&json!([quiet])).await;
    client.send(&quiet).await;
    let mut content = Value::Null;
    for _ in 0..1_000 {
        content = client.request("read", json!({ "path": "a.txt" })).await["result"]["content"].clone();
        if content == "one\ntwo\ntwo\ntwo\n" {
            break;
        }
    }
    assert_eq!(content, "one\ntwo\ntwo\ntwo\n");
    client.close().await;
}

#[tokio::test]
async fn waiting_call_blocks_nothing_and_can_be_cancelled() {
    let mut client = JsonLinesTestClient::rpc_client(&["stead"]);
    let wait = json!({ "since": "r0", "wait_ms": 50_000 });
    client.send(&request_message(&json!("slow"), "changes", &wait)).await;
    client.send(&request_message(&json!("slow"), "changes", &wait)).await;
    check_still_serving(&mut client).await;
    client.send(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": "other" } })).await;
    client.send(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": "slow" } })).await;
    for _ in 0..2 {
        let answer = client.receive().await;
        assert_eq!((&answer["id"], &answer["error"]["data"]["error"]["kind"]), (&json!("slow"), &json!("cancelled")));
    }
    client.send(&request_message(&json!("gone"), "changes", &wait)).await;
    assert_eq!(client.close().await.len(), 1);
}

#[tokio::test]
async fn capabilities_are_listed_described_and_invoked() {
    let mut client = JsonLinesTestClient::rpc_client(&["stead"]);
    let listed = client.request("capabilities.list", json!({})).await;
    let names: Vec<&str> =
        listed["result"]["capabilities"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    let usable = OPERATIONS.iter().filter(|row| row.authority == RequiredAuthority::Use);
    assert_eq!(names, usable.map(|row| row.name).collect::<Vec<_>>());
    let none = client.request("capabilities.list", json!({ "category": "nothing" })).await;
    assert_eq!(none["result"]["capabilities"], json!([]));
    let described = client.request("capabilities.describe", json!({ "name": "read" })).await;
    assert_eq!(described["result"]["inputs"][0]["name"], "path", "{described}");
    assert!(described["result"]["errors"].as_array().is_some_and(|errors| !errors.is_empty()));
    for params in [json!({}), json!({ "name": 1 }), json!({ "name": "read", "x": 1 }), json!({ "name": "nothing" })] {
        let answer = client.request("capabilities.describe", params).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    let invoke = |capability: &str, arguments: Value| json!({ "capability": capability, "arguments": arguments });
    let written = client
        .request("capabilities.invoke", invoke("write", json!({ "path": "a", "content": "x", "base": "" })))
        .await;
    assert_eq!((&written["result"]["success"], &written["result"]["data"]["size"]), (&json!(true), &json!(1)));
    let missing = client.request("capabilities.invoke", invoke("read", json!({ "path": "no" }))).await;
    assert_eq!(missing["result"]["success"], false);
    assert_eq!(missing["result"]["error"]["type"], "not_found");
    assert!(missing["result"]["error"]["recovery"][0]["description"].is_string(), "{missing}");
    let unknown = client.request("capabilities.invoke", invoke("nothing", json!({}))).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let misfit = client.request("capabilities.invoke", json!({ "name": "read" })).await;
    assert_eq!(misfit["error"]["code"], -32602, "{misfit}");
    client.close().await;
}

#[tokio::test]
async fn idempotency_key_applies_once_and_calls_are_recorded() {
    let mut client = JsonLinesTestClient::rpc_client(&["stead"]);
    let append = json!({ "path": "a", "content": "x", "_meta": { "stead/key": "k1" } });
    client.request("append", append.clone()).await;
    let again = client.request("append", append).await;
    assert!(again.get("result").is_some(), "{again}");
    let read = client.request("read", json!({ "path": "a" })).await;
    assert_eq!(read["result"]["content"], "x");
    client.request("no_such_method", json!({})).await;
    let filter = JournalEntryQuery { limit: 10, ..JournalEntryQuery::default() };
    let entries = client.workspace.entries(&filter).unwrap();
    let faces: Vec<&str> = entries.iter().map(|stored| stored.entry.caller.protocol.as_str()).collect();
    assert_eq!(faces, ["rpc"; 4]);
    client.close().await;
}

#[tokio::test]
async fn openrpc_document_matches_reference_and_is_valid() {
    let mut client = JsonLinesTestClient::rpc_client(&["stead", "krux"]);
    let document = client.request("rpc.discover", json!({})).await["result"].clone();
    let reference: Value = serde_json::from_str(include_str!("../../../../docs/reference/openrpc.json")).unwrap();
    let administers = |name: &str| find_operation(name).is_some_and(|row| row.authority != RequiredAuthority::Use);
    let mut expected = reference.clone();
    expected["methods"].as_array_mut().unwrap().retain(|method| !administers(method["name"].as_str().unwrap()));
    assert_eq!(document, expected, "an agent cannot administer");
    let document = reference;
    assert!(document["openrpc"].is_string() && document["info"]["title"].is_string());
    let methods = document["methods"].as_array().unwrap();
    let mut names: Vec<&str> = methods.iter().map(|method| method["name"].as_str().unwrap()).collect();
    for method in methods {
        let params = method["params"].as_array().unwrap();
        assert!(params.iter().all(|param| param["name"].is_string() && param["schema"].is_object()), "{method}");
        assert!(params.is_sorted_by_key(|param| param["required"] != true), "{method}");
        assert!(method["result"]["name"].is_string() && method["result"]["schema"].is_object(), "{method}");
        for error in method["errors"].as_array().unwrap() {
            let place = error["$ref"].as_str().unwrap().trim_start_matches('#');
            assert!(document.pointer(place).is_some_and(|error| error["code"].is_i64()), "{error}");
        }
    }
    for operation in stead_engine::OPERATIONS {
        assert!(names.contains(&operation.name), "{}", operation.name);
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), methods.len(), "no method comes twice");
    client.close().await;
}

fn approve_pending(client: &JsonLinesTestClient) -> Option<String> {
    let person = client.other_caller(&approver("ada"));
    let id = person.call_ok("approvals", json!({}))["approvals"][0]["id"].as_str()?.to_owned();
    person.call_ok("approve", json!({ "id": id }));
    Some(id)
}

#[tokio::test]
async fn approval_can_be_polled_or_awaited() {
    let mut client = JsonLinesTestClient::rpc_client(&["stead", "krux"]);
    for name in ["a.txt", "b.txt"] {
        client.workspace.put_file(name, "x");
    }
    let pending = client.request("filesystem.delete", json!({ "path": "/ws/a.txt" })).await;
    assert_eq!(pending["error"]["code"], -32002, "{pending}");
    let data = &pending["error"]["data"];
    assert_eq!((&data["status"], &data["capability"]), (&json!("pending_approval"), &json!("filesystem.delete")));
    let id = data["approval_id"].clone();
    let polled = client.request("approvals", json!({ "id": id })).await;
    assert_eq!(polled["result"]["state"], "pending", "{polled}");
    let refused = client.request("approve", json!({ "id": id })).await;
    assert!(refused.get("error").is_some(), "an agent approves nothing: {refused}");
    assert_eq!(approve_pending(&client).map(Value::from), Some(id.clone()));
    assert_eq!(client.request("approvals", json!({ "id": id })).await["result"]["state"], "approved");
    let heard = client.request("session.events", json!({})).await;
    let event = &heard["result"]["events"][0];
    assert_eq!((&event["type"], &event["data"]["approval"]), (&json!("approval_resolved"), &id), "{heard}");
    let deleted = client.request("filesystem.delete", json!({ "path": "/ws/a.txt" })).await;
    assert_eq!(deleted["result"]["deleted_path"], "/ws/a.txt", "{deleted}");
    let held = json!({ "path": "/ws/b.txt", "_meta": { "stead/hold_ms": 15_000 } });
    client.send(&request_message(&json!("held"), "filesystem.delete", &held)).await;
    while approve_pending(&client).is_none() {
        check_still_serving(&mut client).await;
    }
    let answer = client.receive().await;
    assert_eq!((&answer["id"], &answer["result"]["deleted_path"]), (&json!("held"), &json!("/ws/b.txt")), "{answer}");
    client.close().await;
}

#[tokio::test]
async fn watch_events_are_pushed_to_the_client_that_started_the_watch() {
    let mut client = JsonLinesTestClient::rpc_client(&["stead"]);
    let begun = client.request("watch", json!({ "recursive": true })).await;
    let watch = begun["result"]["watch"].clone();
    assert!(watch.is_string(), "{begun}");
    client.write_as_other("a.txt", "theirs\n");
    let pushed = client.receive().await;
    assert_eq!((&pushed["method"], pushed.get("id")), (&json!("filesystem.event"), None), "{pushed}");
    let event = &pushed["params"];
    assert_eq!((&event["event"], &event["path"], &event["watch"]), (&json!("create"), &json!("a.txt"), &watch));
    assert_eq!(event["actor"], "agent:other");
    let write = json!({ "path": "b.txt", "content": "own\n", "base": "" });
    assert!(client.request("write", write).await["result"]["entry"].is_number());
    assert!(client.request("unwatch", json!({ "watch": watch })).await["result"]["entry"].is_number());
    client.write_as_other("c.txt", "unheard\n");
    check_still_serving(&mut client).await;
    client.close().await;
}
