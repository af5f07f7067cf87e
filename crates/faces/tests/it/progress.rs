//! Progress of long work, as the clients of both protocols are told of it.

use std::time::Instant;

use faces::limits::PROGRESS_INTERVAL;
use serde_json::{Value, json};

use crate::client::Client;

/// How a protocol asks for progress and tells it.
struct Way {
    open: fn() -> std::pin::Pin<Box<dyn Future<Output = Client>>>,
    ask: fn(&str, &Value) -> Value,
    method: &'static str,
    token: &'static str,
    done: &'static str,
}

const MCP: Way = Way {
    open: || Box::pin(Client::open("2025-11-25")),
    ask: |name, arguments| {
        let params = json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": "p" } });
        json!({ "jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params })
    },
    method: "notifications/progress",
    token: "progressToken",
    done: "progress",
};

const RPC: Way = Way {
    open: || Box::pin(async { Client::rpc(&["stead"]) }),
    ask: |name, arguments| {
        let mut params = arguments.clone();
        params["_meta"] = json!({ "progressToken": "p" });
        json!({ "jsonrpc": "2.0", "id": name, "method": name, "params": params })
    },
    method: "$/progress",
    token: "token",
    done: "done",
};

const ENVELOPE: Way = Way {
    ask: |name, arguments| {
        let params = json!({ "capability": name, "arguments": arguments, "_meta": { "progressToken": "p" } });
        json!({ "jsonrpc": "2.0", "id": name, "method": "capabilities.invoke", "params": params })
    },
    ..RPC
};

#[tokio::test]
async fn long_work_tells_its_progress_when_asked() {
    let calls = [
        ("copy", json!({ "from": "d", "to": "e" }), "entries"),
        ("search", json!({ "query": "x" }), "found"),
        ("find", json!({ "pattern": "*.txt" }), "found"),
    ];
    for way in [MCP, RPC, ENVELOPE] {
        for (name, arguments, said) in &calls {
            way.tells(name, arguments.clone(), said).await;
        }
    }
}

impl Way {
    /// A call may end before there is a moment to tell anything, so it is made until one is told of.
    async fn tells(&self, name: &str, mut arguments: Value, said: &str) {
        let mut client = (self.open)().await;
        for number in 0..5_000 {
            client.workspace.put_file(&format!("d/{number}.txt"), "x");
        }
        for attempt in 0..50 {
            if name == "copy" {
                arguments["to"] = format!("e{attempt}").into();
            }
            client.say(&(self.ask)(name, &arguments)).await;
            let told = self.hear_out(&mut client, name, said).await;
            // Nothing about it comes after its answer.
            client.say(&json!({ "jsonrpc": "2.0", "id": "after", "method": "ping" })).await;
            assert_eq!(client.hear().await["id"], "after");
            if !told.is_empty() {
                client.close().await;
                return;
            }
        }
        panic!("{name} never told anything by {}", self.method);
    }

    /// What is told until the answer comes.
    async fn hear_out(&self, client: &mut Client, name: &str, said: &str) -> Vec<f64> {
        let started = Instant::now();
        let mut told = Vec::new();
        let answer = loop {
            let message = client.hear().await;
            if message["method"] != self.method {
                break message;
            }
            let params = &message["params"];
            assert_eq!(params[self.token], "p");
            assert_eq!(params.get("total"), None);
            assert!(params["message"].as_str().unwrap().ends_with(said), "{message}");
            told.push(params[self.done].as_f64().unwrap());
        };
        assert_eq!(answer["id"], name, "{answer}");
        assert!(answer.get("error").is_none() && answer["result"]["isError"] != true, "{answer}");
        assert!(told.is_sorted_by(|a, b| a < b), "{told:?}");
        let most = started.elapsed().div_duration_f64(PROGRESS_INTERVAL) + 1.0;
        assert!(told.len() as f64 <= most, "{} in {:?}", told.len(), started.elapsed());
        told
    }
}

#[tokio::test]
async fn progress_that_cannot_be_told_by_its_name_is_refused() {
    let mut client = Client::rpc(&["stead"]);
    for meta in [
        json!({ "progressToken": {} }),
        json!({ "progressToken": null }),
        json!({ "progressToken": "x".repeat(300) }),
        json!("p"),
    ] {
        let answer = client.request("stat", json!({ "path": ".", "_meta": meta })).await;
        assert_eq!(answer["error"]["code"], -32602, "{meta}: {answer}");
    }
    client.close().await;
}
