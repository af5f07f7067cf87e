//! Checks that krux watch events are the same over JSON-RPC, over MCP and with a cursor. Capabilities that the policy
//! blocks must not be listed.

use serde_json::{Value, json};
use testkit::engine_fixture::agent;

use crate::test_client::JsonLinesTestClient;

fn comparable_event(event: &Value, watch: &Value) -> Value {
    assert_eq!(&event["watch_id"], watch, "{event}");
    assert!(event["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{event}");
    assert_eq!(event["actor"], "agent:other", "{event}");
    assert!(event.get("watch").is_none() && event.get("time").is_none(), "{event}");
    json!([event["type"], event["event"], event["path"], event["new_path"]])
}

async fn pushed_events(mut client: JsonLinesTestClient, protocol: &str) -> Vec<Value> {
    let watch = json!({ "path": "/ws", "pattern": "*.txt" });
    let started = match protocol {
        "mcp" => client.call_tool("filesystem__watch", watch).await["result"]["structuredContent"].clone(),
        _ => client.request("filesystem.watch", watch).await["result"].clone(),
    };
    client.write_as_other("unwatched.md", "x\n");
    client.write_as_other("a.txt", "one\n");
    client.write_as_other("a.txt", "two\n");
    client.other_caller(&agent("other")).call_ok("move", json!({ "from": "a.txt", "to": "b.txt" }));
    let mut pushed = Vec::new();
    for _ in 0..3 {
        let notification = client.receive().await;
        assert_eq!(
            (&notification["method"], notification.get("id")),
            (&json!("filesystem.event"), None),
            "{notification}"
        );
        pushed.push(notification["params"].clone());
    }
    let since = json!({ "cursor": started["cursor"] });
    let polled = match protocol {
        "mcp" => client.call_tool("session.events", since).await["result"]["structuredContent"].clone(),
        _ => client.request("session.events", since).await["result"].clone(),
    };
    assert_eq!(polled["events"], Value::Array(pushed.clone()), "pushed and polled events are the same");
    let end = json!({ "watch_id": started["watch_id"] });
    match protocol {
        "mcp" => drop(client.call_tool("filesystem.unwatch", end).await),
        _ => drop(client.request("filesystem.unwatch", end).await),
    }
    client.write_as_other("c.txt", "after the watch\n");
    assert_eq!(client.close().await, Vec::<Value>::new());
    pushed.iter().map(|event| comparable_event(event, &started["watch_id"])).collect()
}

#[tokio::test]
async fn events_are_identical_over_every_protocol() {
    let mcp = pushed_events(JsonLinesTestClient::initialized_with_dialect("krux").await, "mcp").await;
    let rpc = pushed_events(JsonLinesTestClient::rpc_client(&["krux"]), "rpc").await;
    let expected = [
        json!(["file_changed", "create", "/ws/a.txt", null]),
        json!(["file_changed", "modify", "/ws/a.txt", null]),
        json!(["file_changed", "rename", "/ws/a.txt", "/ws/b.txt"]),
    ];
    assert_eq!(mcp, expected);
    assert_eq!(rpc, expected);
}

#[tokio::test]
async fn stateless_clients_get_no_unsolicited_events() {
    let mut client = JsonLinesTestClient::uninitialized_with_dialect("krux", &[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "line client", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments, "_meta": meta });
    let started = client.request("tools/call", call("filesystem__watch", json!({ "path": "/ws" }))).await;
    let cursor = started["result"]["structuredContent"]["cursor"].clone();
    client.write_as_other("a.txt", "one\n");
    let polled =
        client.request("tools/call", call("session__events", json!({ "cursor": cursor, "wait_ms": 5000 }))).await;
    assert_eq!(polled["result"]["structuredContent"]["events"][0]["path"], "/ws/a.txt", "{polled}");
    assert_eq!(client.close().await, Vec::<Value>::new());
}

const BLOCKING_POLICY: &str = r#"
[[system.rules]]
name = "nothing is deleted"
operations = ["filesystem.delete", "append"]
tier = "blocked"
[[system.rules]]
name = "not there"
operations = ["filesystem.write"]
paths = ["secret/**"]
tier = "blocked"
"#;

fn capability_names(listed: &Value) -> Vec<&str> {
    listed.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn blocked_capabilities_are_listed_nowhere() {
    let blocked = ["filesystem.delete", "filesystem.append"];
    let mut client = JsonLinesTestClient::rpc_client(&["krux"]);
    let all = client.request("capabilities.list", json!({})).await;
    let before = capability_names(&all["result"]["capabilities"]).len();
    client.workspace.set_policy(BLOCKING_POLICY);
    let listed = client.request("capabilities.list", json!({})).await;
    let methods = client.request("rpc.discover", json!({})).await;
    let reported = client.request("agent.capabilities", json!({})).await;
    for offered in
        [&listed["result"]["capabilities"], &methods["result"]["methods"], &reported["result"]["capabilities"]]
    {
        let offered = capability_names(offered);
        assert!(offered.contains(&"filesystem.write"), "{offered:?}");
        assert!(!offered.iter().any(|name| blocked.contains(name)), "{offered:?}");
    }
    assert_eq!(capability_names(&listed["result"]["capabilities"]).len(), before - blocked.len());
    assert_eq!(reported["result"]["total"], before - blocked.len());
    let described = client.request("capabilities.describe", json!({ "name": "filesystem.delete" })).await;
    assert_eq!(described["result"]["permission_tier"], "blocked", "{described}");
    let policy = client.request("agent.policy", json!({})).await;
    let tier = |name: &str| {
        let rules = policy["result"]["rules"].as_array().unwrap();
        rules.iter().find(|rule| rule["capability"] == name).unwrap()["tier"].clone()
    };
    assert_eq!((tier("filesystem.delete"), tier("filesystem.append")), (json!("blocked"), json!("blocked")));
    assert_eq!(tier("filesystem.write"), "notify");
    client.close().await;

    let mut client = JsonLinesTestClient::initialized_with_dialect("krux").await;
    client.workspace.set_policy(BLOCKING_POLICY);
    let tools = client.request("tools/list", json!({})).await;
    let offered = capability_names(&tools["result"]["tools"]);
    assert!(offered.contains(&"filesystem__write"), "{offered:?}");
    for name in ["filesystem__delete", "filesystem__append"] {
        assert!(!offered.contains(&name), "{offered:?}");
    }
    let refused = client.call_tool("filesystem__delete", json!({ "path": "/ws/a" })).await;
    assert_eq!(refused["result"]["structuredContent"]["error"], "PolicyDenied", "{refused}");
    client.close().await;

    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    client.workspace.set_policy("[[system.rules]]\noperations = [\"append\"]\ntier = \"blocked\"\n");
    let tools = client.request("tools/list", json!({})).await;
    assert!(!capability_names(&tools["result"]["tools"]).contains(&"append"));
    client.close().await;
}
