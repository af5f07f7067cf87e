//! Tests that the server logs one line per request, without any content from clients.

use serde_json::Value;

use crate::server_process::ServerProcess;

/// The secret that tests put into every request field that the server must not log.
const SECRET: &str = "hunter2";
const JSON_CONTENT_TYPE: &str = "Content-Type: application/json";

fn start_logging_server() -> (ServerProcess, String) {
    let server = ServerProcess::start(&["--listen", "127.0.0.1:0", "--log-format", "json"]);
    let token = server.run_cli(&["token", "create", "--principal", "agent:ci"]).trim().to_owned();
    (server, token)
}

fn wait_for_log_line(server: &ServerProcess, id: &str) -> Value {
    let about = format!("\"id\":\"{id}\"");
    serde_json::from_str(&server.wait_for_line(|line| line.contains(&about))).unwrap()
}

#[test]
fn every_request_has_a_log_line() {
    let (server, token) = start_logging_server();
    let bearer = format!("Authorization: Bearer {token}");
    let answer = server.send_request("PUT /v1/files/b.txt", &[&bearer, "X-Request-Id: w1"], "text");
    assert!(answer.starts_with("HTTP/1.1 201") && answer.contains("x-request-id: w1\r\n"), "{answer}");
    let put = wait_for_log_line(&server, "w1");
    let entry = put["entry"].as_u64().unwrap();
    assert!(server.run_cli(&["log", "--json"]).contains(&format!("\"number\":{entry},")), "{entry}");
    for (member, value) in [
        ("event", "request"),
        ("level", "info"),
        ("route", "files"),
        ("method", "PUT"),
        ("principal", "agent:ci"),
        ("operation", "write"),
    ] {
        assert_eq!(put[member], value, "{put}");
    }
    assert!(put["status"] == 201 && put["duration_us"].as_u64() > Some(0) && put["workspace"].is_string(), "{put}");
    let call = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"read\",\"params\":{\"path\":\"a.txt\"}}";
    server.send_request("POST /rpc", &[&bearer, JSON_CONTENT_TYPE, "X-Request-Id: r1"], &format!("[{call},{call}]"));
    let both = wait_for_log_line(&server, "r1");
    assert_eq!((&both["calls_count"], &both["calls"][1]["operation"]), (&2.into(), &"read".into()), "{both}");
    server.send_request("POST /v1/nothing", &[&bearer, JSON_CONTENT_TYPE, "X-Request-Id: o1"], "{}");
    let unknown = wait_for_log_line(&server, "o1");
    assert_eq!((&unknown["operation"], &unknown["status"]), (&"unknown".into(), &404.into()), "{unknown}");
    assert_eq!(unknown["failed"], "unknown_operation");
    let meta = "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
                \"io.modelcontextprotocol/clientCapabilities\":{},\
                \"io.modelcontextprotocol/clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}";
    let call = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"read\",\"arguments\":{{\"path\":\"a.txt\"}},{meta}}}}}"
    );
    let headers = [
        &bearer,
        JSON_CONTENT_TYPE,
        "X-Request-Id: m1",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        "Mcp-Name: read",
    ];
    let answer = server.send_request("POST /mcp", &headers, &call);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let read = wait_for_log_line(&server, "m1");
    assert_eq!((&read["route"], &read["operation"]), (&"mcp".into(), &"read".into()), "{read}");
    server.send_request("GET /v1/files/a.txt", &["X-Request-Id: n1"], "");
    let nobody = wait_for_log_line(&server, "n1");
    assert_eq!((&nobody["status"], &nobody["level"]), (&401.into(), &"warn".into()), "{nobody}");
    assert!(nobody.get("principal").is_none(), "{nobody}");
    for printed in server.stderr_lines() {
        assert!(serde_json::from_str::<Value>(&printed).is_ok(), "{printed}");
    }
    server.terminate();
}

#[test]
fn request_log_contains_no_client_content() {
    let (server, token) = start_logging_server();
    let bearer = format!("Authorization: Bearer {token}");
    let secret = token.rsplit('_').next().unwrap().to_owned();
    let put_away = format!("X-Request-Id: {token}");
    let headers = [
        format!("Authorization: Bearer {SECRET}"),
        format!("Authorization: Basic {SECRET}"),
        format!("Cookie: session={SECRET}"),
        format!("User-Agent: {SECRET}"),
        format!("Stead-Session: {SECRET}"),
        format!("Idempotency-Key: {SECRET}"),
        format!("X-Request-Id: {SECRET} {SECRET}"),
        format!("X-{SECRET}: {SECRET}"),
        format!("Origin: https://{SECRET}.example"),
        format!("Referer: https://{SECRET}.example"),
        format!("Last-Event-ID: {SECRET}"),
        format!("If-Match: \"{SECRET}\""),
        format!("Mcp-Session-Id: {SECRET}"),
    ];
    let lines = [
        format!("PUT /v1/files/{SECRET}.txt"),
        format!("GET /v1/files/a.txt?token={SECRET}"),
        format!("GET /events?since={SECRET}"),
        format!("POST /v1/{SECRET}"),
        format!("POST /mcp/{SECRET}"),
        format!("GET /{SECRET}"),
        format!("{} /v1/files/a.txt", SECRET.to_uppercase()),
        "POST /v1/write".to_owned(),
        "POST /rpc".to_owned(),
        "POST /mcp".to_owned(),
    ];
    let body = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"{SECRET}\",\"method\":\"{SECRET}\",\"path\":\"{SECRET}\",\"content\":\"{SECRET}\",\
         \"params\":{{\"name\":\"{SECRET}\",\"path\":\"{SECRET}\",\"clientInfo\":{{\"name\":\"{SECRET}\"}}}}}}"
    );
    let mut sent = 0;
    for line in &lines {
        for header in &headers {
            server.send_request(line, &[&bearer, JSON_CONTENT_TYPE, header], &body);
            sent += 1;
        }
        server.send_request(line, &[&bearer, JSON_CONTENT_TYPE, &put_away], &body);
        server.send_request(line, &[JSON_CONTENT_TYPE, &format!("Authorization: Bearer {token}x")], &body);
        sent += 2;
    }
    server.send_raw(&format!("{SECRET}\r\n\r\n"));
    server.send_request("GET /health", &["X-Request-Id: last"], "");
    wait_for_log_line(&server, "last");
    let printed = server.stderr_lines();
    let requests = printed.iter().filter(|line| line.contains("\"event\":\"request\"")).count();
    assert_eq!(requests, sent + 1, "a line each");
    for line in printed {
        let line = line.to_lowercase();
        assert!(!line.contains(SECRET) && !line.contains(&secret), "{line}");
    }
    server.terminate();
}

#[test]
fn log_level_selects_lines() {
    let server = ServerProcess::start(&["--listen", "127.0.0.1:0", "--log", "warn", "--log-format", "plain"]);
    server.send_request("GET /health", &["X-Request-Id: fine"], "");
    server.send_request("GET /v1/files/a.txt", &["X-Request-Id: refused"], "");
    let line = server.wait_for_line(|line| line.contains("id=refused"));
    assert!(line.contains(" warn request ") && line.contains("status=401"), "{line}");
    assert!(!server.stderr_lines().iter().any(|line| line.contains("id=fine")));
    server.terminate();
}
