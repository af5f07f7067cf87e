//! JSON-RPC as a client meets it: codes, ids, batches, notifications, cancellation, and what is refused.

use engine::{Approver, Call, Caller, Engine, EntryFilter, Principal, Workspace};
use faces::limits::{BATCH_REQUESTS_MAX, MESSAGE_BYTES_MAX};
use serde_json::{Map, Value, json};

use crate::client::Client;

fn call(id: &Value, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

async fn still_there(client: &mut Client) {
    let listed = client.request("capabilities.list", json!({})).await;
    assert!(listed["result"]["capabilities"].is_array(), "{listed}");
}

#[tokio::test]
async fn what_is_no_request_is_answered_with_its_code_and_the_server_goes_on() {
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
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"read\",\"method\":\"write\"}\n",
            -32600,
            json!("x"),
        ),
        (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"read\",\"params\":[\"a\"]}\n", -32602, json!(5)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"read\",\"params\":{\"x\":1}}\n", -32602, json!(5)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"nothing\"}\n", -32601, json!(5)),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"read\",\"params\":{\"path\":\"no\"}}\n",
            -32004,
            Value::Null,
        ),
    ];
    let mut client = Client::rpc(&["stead"]);
    for (line, code, id) in lines {
        client.say_raw(line).await;
        let answer = client.hear().await;
        let shown = String::from_utf8_lossy(line);
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), id), "{shown}: {answer}");
        assert!(answer["error"]["message"].is_string() && answer.get("id").is_some(), "{answer}");
    }
    still_there(&mut client).await;
    client.close().await;
}

#[tokio::test]
async fn what_is_too_long_too_deep_or_too_many_is_refused() {
    let mut client = Client::rpc(&["stead"]);
    let long = format!("{{\"id\":\"long\",\"x\":\"{}\"}}\n", "x".repeat(MESSAGE_BYTES_MAX));
    client.say_raw(long.as_bytes()).await;
    let answer = client.hear().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &json!("long")), "{answer}");
    client.say_raw(format!("{}{}\n", "[".repeat(100_000), "]".repeat(100_000)).as_bytes()).await;
    assert_eq!(client.hear().await["error"]["code"], -32600);
    let many = vec![call(&json!(1), "stat", &json!({ "path": "." })); BATCH_REQUESTS_MAX + 1];
    client.say(&Value::Array(many)).await;
    assert_eq!(client.hear().await["error"]["code"], -32600);
    client.say_raw(b"\n\r\n\n").await;
    still_there(&mut client).await;
    client.close().await;
}

#[tokio::test]
async fn a_batch_is_done_and_answered_in_order_without_its_notifications() {
    let mut client = Client::rpc(&["stead"]);
    let write = json!({ "path": "a.txt", "content": "one\n", "base": "" });
    let quiet =
        json!({ "jsonrpc": "2.0", "method": "append", "params": { "path": "a.txt", "content": "two\n" } });
    client
        .say(&json!([
            call(&json!("w"), "write", &write),
            quiet,
            1,
            call(&json!("r"), "read", &json!({ "path": "a.txt" })),
            call(&json!("w"), "write", &write),
        ]))
        .await;
    let answers = client.hear().await;
    let ids: Vec<&Value> = answers.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!("w"), &Value::Null, &json!("r"), &json!("w")], "{answers}");
    assert_eq!(answers[2]["result"]["content"], "one\ntwo\n", "{answers}");
    assert_eq!(answers[3]["error"]["data"]["error"]["kind"], "exists", "{answers}");
    // Only notifications: nothing comes back, not even an empty batch. They are done, each in its own time.
    client.say(&json!([quiet])).await;
    client.say(&quiet).await;
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
async fn a_call_that_waits_holds_up_nobody_and_can_be_cancelled() {
    let mut client = Client::rpc(&["stead"]);
    let wait = json!({ "since": "r0", "wait_ms": 50_000 });
    client.say(&call(&json!("slow"), "changes", &wait)).await;
    client.say(&call(&json!("slow"), "changes", &wait)).await;
    still_there(&mut client).await;
    client.say(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": "other" } })).await;
    client.say(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": "slow" } })).await;
    for _ in 0..2 {
        let answer = client.hear().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["data"]["error"]["kind"]),
            (&json!("slow"), &json!("cancelled"))
        );
    }
    // A client that goes away leaves nobody to wait.
    client.say(&call(&json!("gone"), "changes", &wait)).await;
    assert_eq!(client.close().await.len(), 1);
}

#[tokio::test]
async fn capabilities_are_listed_described_and_invoked() {
    let mut client = Client::rpc(&["stead"]);
    let listed = client.request("capabilities.list", json!({})).await;
    let names: Vec<&str> = listed["result"]["capabilities"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, engine::OPERATIONS.iter().map(|row| row.name).collect::<Vec<_>>());
    let none = client.request("capabilities.list", json!({ "category": "nothing" })).await;
    assert_eq!(none["result"]["capabilities"], json!([]));
    let described = client.request("capabilities.describe", json!({ "name": "read" })).await;
    assert_eq!(described["result"]["inputs"][0]["name"], "path", "{described}");
    assert!(described["result"]["errors"].as_array().is_some_and(|errors| !errors.is_empty()));
    for params in
        [json!({}), json!({ "name": 1 }), json!({ "name": "read", "x": 1 }), json!({ "name": "nothing" })]
    {
        let answer = client.request("capabilities.describe", params).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    let invoke =
        |capability: &str, arguments: Value| json!({ "capability": capability, "arguments": arguments });
    let written = client
        .request("capabilities.invoke", invoke("write", json!({ "path": "a", "content": "x", "base": "" })))
        .await;
    assert_eq!(
        (&written["result"]["success"], &written["result"]["data"]["size"]),
        (&json!(true), &json!(1))
    );
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
async fn an_idempotency_key_makes_a_change_once_and_every_call_is_recorded() {
    let mut client = Client::rpc(&["stead"]);
    let append = json!({ "path": "a", "content": "x", "_meta": { "stead/key": "k1" } });
    client.request("append", append.clone()).await;
    let again = client.request("append", append).await;
    assert!(again.get("result").is_some(), "{again}");
    let read = client.request("read", json!({ "path": "a" })).await;
    assert_eq!(read["result"]["content"], "x");
    client.request("no_such_method", json!({})).await;
    let filter = EntryFilter { limit: 10, ..EntryFilter::default() };
    let entries = client.workspace.entries(&filter).unwrap();
    let faces: Vec<&str> = entries.iter().map(|stored| stored.entry.caller.face.as_str()).collect();
    assert_eq!(faces, ["rpc"; 4]);
    client.close().await;
}

#[tokio::test]
async fn the_document_of_methods_is_the_one_in_the_reference_and_is_sound() {
    let mut client = Client::rpc(&["stead", "krux"]);
    let document = client.request("rpc.discover", json!({})).await["result"].clone();
    let reference: Value =
        serde_json::from_str(include_str!("../../../../docs/reference/openrpc.json")).unwrap();
    assert_eq!(document, reference);
    assert!(document["openrpc"].is_string() && document["info"]["title"].is_string());
    let methods = document["methods"].as_array().unwrap();
    let mut names: Vec<&str> = methods.iter().map(|method| method["name"].as_str().unwrap()).collect();
    for method in methods {
        let params = method["params"].as_array().unwrap();
        assert!(
            params.iter().all(|param| param["name"].is_string() && param["schema"].is_object()),
            "{method}"
        );
        assert!(params.is_sorted_by_key(|param| param["required"] != true), "{method}");
        assert!(method["result"]["name"].is_string() && method["result"]["schema"].is_object(), "{method}");
        for error in method["errors"].as_array().unwrap() {
            let place = error["$ref"].as_str().unwrap().trim_start_matches('#');
            assert!(document.pointer(place).is_some_and(|error| error["code"].is_i64()), "{error}");
        }
    }
    for operation in engine::OPERATIONS {
        assert!(names.contains(&operation.name), "{}", operation.name);
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), methods.len(), "no method comes twice");
    client.close().await;
}

/// Approves, as a person, what waits; nothing when nothing does.
fn approve(client: &Client) -> Option<String> {
    let engine = Engine::new(client.workspace.clone());
    let mut person = Caller::new(Principal::User("ada".to_owned()), "cli", "cli");
    person.grants.approver = Approver::Shown;
    let listed = engine.call(&Call::new(&person, "approvals", Map::new())).unwrap();
    let id = listed.json["approvals"][0]["id"].as_str()?.to_owned();
    engine.call(&Call::new(&person, "approve", Map::from_iter([("id".to_owned(), json!(id))]))).unwrap();
    Some(id)
}

#[tokio::test]
async fn a_call_that_needs_approval_is_pending_polled_by_id_or_held() {
    let mut client = Client::rpc(&["stead", "krux"]);
    for name in ["a.txt", "b.txt"] {
        client.workspace.put_file(name, "x");
    }
    let pending = client.request("filesystem.delete", json!({ "path": "/ws/a.txt" })).await;
    assert_eq!(pending["error"]["code"], -32002, "{pending}");
    let data = &pending["error"]["data"];
    assert_eq!(
        (&data["status"], &data["capability"]),
        (&json!("pending_approval"), &json!("filesystem.delete"))
    );
    let id = data["approval_id"].clone();
    let polled = client.request("approvals", json!({ "id": id })).await;
    assert_eq!(polled["result"]["state"], "pending", "{polled}");
    let refused = client.request("approve", json!({ "id": id })).await;
    assert!(refused.get("error").is_some(), "an agent approves nothing: {refused}");
    assert_eq!(approve(&client).map(Value::from), Some(id.clone()));
    assert_eq!(client.request("approvals", json!({ "id": id })).await["result"]["state"], "approved");
    let heard = client.request("session.events", json!({})).await;
    let event = &heard["result"]["events"][0];
    assert_eq!((&event["type"], &event["data"]["approval"]), (&json!("approval_resolved"), &id), "{heard}");
    let deleted = client.request("filesystem.delete", json!({ "path": "/ws/a.txt" })).await;
    assert_eq!(deleted["result"]["deleted_path"], "/ws/a.txt", "{deleted}");
    // The same, waiting for the answer.
    let held = json!({ "path": "/ws/b.txt", "_meta": { "stead/hold_ms": 15_000 } });
    client.say(&call(&json!("held"), "filesystem.delete", &held)).await;
    while approve(&client).is_none() {
        still_there(&mut client).await;
    }
    let answer = client.hear().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["deleted_path"]),
        (&json!("held"), &json!("/ws/b.txt")),
        "{answer}"
    );
    client.close().await;
}

#[tokio::test]
async fn events_of_a_watch_are_pushed_to_who_began_it() {
    let mut client = Client::rpc(&["stead"]);
    let begun = client.request("watch", json!({ "recursive": true })).await;
    let watch = begun["result"]["watch"].clone();
    assert!(watch.is_string(), "{begun}");
    client.others_write("a.txt", "theirs\n");
    let pushed = client.hear().await;
    assert_eq!((&pushed["method"], pushed.get("id")), (&json!("filesystem.event"), None), "{pushed}");
    let event = &pushed["params"];
    assert_eq!(
        (&event["event"], &event["path"], &event["watch"]),
        (&json!("create"), &json!("a.txt"), &watch)
    );
    assert_eq!(event["actor"], "agent:other");
    // One's own changes are answered, not told.
    let write = json!({ "path": "b.txt", "content": "own\n", "base": "" });
    assert!(client.request("write", write).await["result"]["entry"].is_number());
    assert!(client.request("unwatch", json!({ "watch": watch })).await["result"]["entry"].is_number());
    client.others_write("c.txt", "unheard\n");
    still_there(&mut client).await;
    client.close().await;
}
