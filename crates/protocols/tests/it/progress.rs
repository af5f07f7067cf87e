//! Tests of progress notifications over MCP and JSON-RPC.

use std::time::Instant;

use serde_json::{Value, json};
use stead_protocols::limits::PROGRESS_INTERVAL;

use crate::test_client::JsonLinesTestClient;

struct ProgressTestProtocolAdapter {
    open_client: fn() -> std::pin::Pin<Box<dyn Future<Output = JsonLinesTestClient>>>,
    call_message: fn(&str, &Value) -> Value,
    progress_method: &'static str,
    token_member: &'static str,
    progress_member: &'static str,
}

const MCP: ProgressTestProtocolAdapter = ProgressTestProtocolAdapter {
    open_client: || Box::pin(JsonLinesTestClient::initialized("2025-11-25")),
    call_message: |name, arguments| {
        let params = json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": "p" } });
        json!({ "jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params })
    },
    progress_method: "notifications/progress",
    token_member: "progressToken",
    progress_member: "progress",
};

const RPC: ProgressTestProtocolAdapter = ProgressTestProtocolAdapter {
    open_client: || Box::pin(async { JsonLinesTestClient::rpc_client(&["stead"]) }),
    call_message: |name, arguments| {
        let mut params = arguments.clone();
        params["_meta"] = json!({ "progressToken": "p" });
        json!({ "jsonrpc": "2.0", "id": name, "method": name, "params": params })
    },
    progress_method: "$/progress",
    token_member: "token",
    progress_member: "done",
};

const ENVELOPE: ProgressTestProtocolAdapter = ProgressTestProtocolAdapter {
    call_message: |name, arguments| {
        let params = json!({ "capability": name, "arguments": arguments, "_meta": { "progressToken": "p" } });
        json!({ "jsonrpc": "2.0", "id": name, "method": "capabilities.invoke", "params": params })
    },
    ..RPC
};

#[tokio::test]
async fn long_calls_report_progress_on_request() {
    let calls = [
        ("copy", json!({ "from": "d", "to": "e" }), "entries"),
        ("search", json!({ "query": "x" }), "found"),
        ("find", json!({ "pattern": "*.txt" }), "found"),
    ];
    for way in [MCP, RPC, ENVELOPE] {
        for (name, arguments, expected_message) in &calls {
            way.check_progress(name, arguments.clone(), expected_message).await;
        }
    }
}

impl ProgressTestProtocolAdapter {
    /// Repeats a call until it reports progress, because a fast call may end before the first report.
    async fn check_progress(&self, name: &str, mut arguments: Value, expected_message: &str) {
        let mut client = (self.open_client)().await;
        for number in 0..5_000 {
            client.workspace.put_file(&format!("d/{number}.txt"), "x");
        }
        for attempt in 0..50 {
            if name == "copy" {
                arguments["to"] = format!("e{attempt}").into();
            }
            client.send(&(self.call_message)(name, &arguments)).await;
            let told = self.collect_progress(&mut client, name, expected_message).await;
            // No progress follows the response.
            client.send(&json!({ "jsonrpc": "2.0", "id": "after", "method": "ping" })).await;
            assert_eq!(client.receive().await["id"], "after");
            if !told.is_empty() {
                client.close().await;
                return;
            }
        }
        panic!("{name} never told anything by {}", self.progress_method);
    }

    async fn collect_progress(&self, client: &mut JsonLinesTestClient, name: &str, expected_message: &str) -> Vec<f64> {
        let started = Instant::now();
        let mut told = Vec::new();
        let answer = loop {
            let message = client.receive().await;
            if message["method"] != self.progress_method {
                break message;
            }
            let params = &message["params"];
            assert_eq!(params[self.token_member], "p");
            assert_eq!(params.get("total"), None);
            assert!(params["message"].as_str().unwrap().ends_with(expected_message), "{message}");
            told.push(params[self.progress_member].as_f64().unwrap());
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
async fn invalid_progress_token_is_refused() {
    let mut client = JsonLinesTestClient::rpc_client(&["stead"]);
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
