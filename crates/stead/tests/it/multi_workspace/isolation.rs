//! Tests a thousand workspaces in one server process, many more than may be open at a time. Random calls over every
//! protocol may return only data of the token's own workspace.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use testkit::http_client::TestHttpClient;

use super::WorkspaceRegistryTestServer;

const WORKSPACE_COUNT: usize = 1_000;
const CALLS_PER_THREAD: usize = 3_000;
const THREADS: usize = 4;
const TIME_MAX: Duration = Duration::from_secs(240);
const MCP_VERSION: &str = "2026-07-28";

fn send_json_request(client: &TestHttpClient, token: &str, line: &str, body: &Value) -> (u16, Value) {
    let (status, answer) = client.send_request(token, line, &[], body.to_string().as_bytes()).unwrap();
    (status, serde_json::from_slice(&answer).unwrap_or(Value::Null))
}

struct IsolationRng(u64);

impl IsolationRng {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

fn workspace_secret(number: usize) -> String {
    format!("the secret of workspace {number}, and of no other")
}

fn create_workspace(server: &WorkspaceRegistryTestServer, client: &TestHttpClient, number: usize) -> String {
    let name = format!("w{number}");
    let options = json!({ "name": name, "lasting": "ephemeral" });
    let created = send_json_request(client, &server.token, "POST /v1/workspaces", &options);
    assert_eq!(created.0, 201, "{created:?}");
    let principal = json!({ "principal": "agent:same" });
    let created = send_json_request(client, &server.token, &format!("POST /v1/workspaces/{name}/tokens"), &principal);
    let token = created.1["token"].as_str().unwrap().to_owned();
    let secret = workspace_secret(number);
    for (path, content) in [("secret.txt", secret.as_str()), (&format!("only-{number}.txt"), "")] {
        let line = format!("PUT /v1/files/{path}");
        assert_eq!(client.send_request(&token, &line, &[], content.as_bytes()).unwrap().0, 201);
    }
    token
}

fn call_as_random_workspace(client: &TestHttpClient, dice: &mut IsolationRng, tokens: &[String]) {
    let number = dice.below(tokens.len());
    let other = (number + 1 + dice.below(tokens.len() - 1)) % tokens.len();
    let token = &tokens[number];
    let content = match dice.below(6) {
        0 => {
            let (status, body) = client.send_request(token, "GET /v1/files/secret.txt", &[], b"").unwrap();
            assert_eq!(status, 200);
            String::from_utf8(body).unwrap()
        }
        1 => {
            let message =
                json!({ "jsonrpc": "2.0", "id": number, "method": "read", "params": { "path": "secret.txt" } });
            send_json_request(client, token, "POST /rpc", &message).1["result"]["content"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        }
        2 => {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": MCP_VERSION,
                "io.modelcontextprotocol/clientInfo": { "name": "isolation", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            let message = json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call",
                "params": { "_meta": meta, "name": "read", "arguments": { "path": "secret.txt" } } });
            let headers = [
                ("Accept", "application/json, text/event-stream"),
                ("MCP-Protocol-Version", MCP_VERSION),
                ("Mcp-Method", "tools/call"),
                ("Mcp-Name", "read"),
            ];
            let body = message.to_string();
            let answer = client.send_request(token, "POST /mcp", &headers, body.as_bytes()).unwrap().1;
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            answer["result"]["structuredContent"]["content"].as_str().unwrap_or_default().to_owned()
        }
        3 => {
            let query = json!({ "query": [workspace_secret(other), workspace_secret(number)] });
            let answer = send_json_request(client, token, "POST /v1/search", &query).1;
            let found = (&answer["total"], &answer["files"][0]["path"]);
            assert_eq!(found, (&json!(1), &json!("secret.txt")), "{answer}");
            workspace_secret(number)
        }
        4 => {
            assert_eq!(
                client.send_request(token, &format!("GET /v1/files/only-{other}.txt"), &[], b"").unwrap().0,
                404
            );
            workspace_secret(number)
        }
        _ => {
            let answer = send_json_request(client, token, "POST /v1/list", &json!({})).1.to_string();
            assert!(answer.contains(&format!("only-{number}.txt")) && !answer.contains(&format!("only-{other}.txt")));
            workspace_secret(number)
        }
    };
    assert_eq!(content, workspace_secret(number));
}

#[test]
fn thousand_workspaces_never_leak_into_each_other() {
    let started = Instant::now();
    // A file system in memory is faster, and isolation does not depend on the device.
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let flags = ["--listen", "127.0.0.1:0", "--durability", "fast", "--open-max", "200"];
    let server = WorkspaceRegistryTestServer::start_in(place, &flags);
    let next = AtomicUsize::new(0);
    let mut tokens: Vec<(usize, String)> = std::thread::scope(|scope| {
        let maker = || {
            let client = TestHttpClient::new(&server.address);
            let mut created = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= WORKSPACE_COUNT {
                    return created;
                }
                created.push((number, create_workspace(&server, &client, number)));
            }
        };
        let creators: Vec<_> = (0..THREADS).map(|_| scope.spawn(maker)).collect();
        creators.into_iter().flat_map(|maker| maker.join().unwrap()).collect()
    });
    tokens.sort();
    let tokens: Vec<String> = tokens.into_iter().map(|(_, token)| token).collect();
    println!("{WORKSPACE_COUNT} workspaces were created and filled in {:?}", started.elapsed());
    let calling = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (server, tokens) = (&server, &tokens);
            scope.spawn(move || {
                let (client, mut dice) = (TestHttpClient::new(&server.address), IsolationRng(thread as u64 + 1));
                for _ in 0..CALLS_PER_THREAD / THREADS {
                    call_as_random_workspace(&client, &mut dice, tokens);
                }
            });
        }
    });
    println!("{CALLS_PER_THREAD} calls in {:?}", calling.elapsed());
    assert!(started.elapsed() < TIME_MAX, "{:?}", started.elapsed());
    server.terminate();
}
