//! Tests that the HTTP server rejects malicious and malformed requests before it executes anything.

use serde_json::json;
use stead_protocols::{
    http::{AllowedHosts, HttpListener, HttpServerOptions},
    limits::REQUESTS_PER_CLIENT_MAX,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{TEST_TIMEOUT, TestHttpServer, read_response};

/// A test request and the expected status code. In `head`, `PORT` stands for the server's port, `OWN` for valid headers
/// with a token, and `JSON` for a content type.
struct HttpAttack {
    id: &'static str,
    head: &'static str,
    body: &'static str,
    status: u16,
}

const fn http_attack(id: &'static str, head: &'static str, body: &'static str, status: u16) -> HttpAttack {
    HttpAttack { id, head, body, status }
}

const VALID_HEADERS: &str = "Host: localhost:PORT\r\nAuthorization: Bearer one\r\n";
const LIST_BODY: &str = "{\"path\":\".\"}";
const JSON_HEADER: &str = "Content-Type: application/json\r\n";

const ATTACKS: &[HttpAttack] = &[
    http_attack("HTP-001 rebinding", "GET /health\r\nHost: evil.example:PORT\r\n", "", 403),
    http_attack("HTP-002 suffix", "GET /health\r\nHost: 127.0.0.1.evil.example\r\n", "", 403),
    http_attack("HTP-003 malformed authority", "GET /health\r\nHost: localhost@evil.example\r\n", "", 400),
    http_attack("HTP-004 no host", "GET /health\r\n", "", 400),
    http_attack("HTP-004 two hosts", "GET /health\r\nHost: localhost:PORT\r\nHost: localhost:PORT\r\n", "", 400),
    http_attack("HTP-005 case and dot", "GET /health\r\nHost: LOCALHOST.:PORT\r\n", "", 200),
    http_attack("HTP-007 unspecified address", "GET /health\r\nHost: 0.0.0.0:PORT\r\n", "", 403),
    http_attack("HTP-008 absolute form", "GET http://evil.example/mcp\r\nOWN", "", 403),
    http_attack("HTP-009 foreign origin", "GET /events\r\nOWNOrigin: https://evil.example\r\n", "", 403),
    http_attack(
        "HTP-009 foreign origin posts",
        "POST /v1/list\r\nOWNJSONOrigin: https://evil.example\r\n",
        LIST_BODY,
        403,
    ),
    http_attack("HTP-010 opaque origin", "POST /v1/list\r\nOWNJSONOrigin: null\r\n", LIST_BODY, 403),
    http_attack("HTP-012 other port", "POST /v1/list\r\nOWNJSONOrigin: http://localhost:1\r\n", LIST_BODY, 403),
    http_attack("HTP-013 no origin", "POST /v1/list\r\nOWNJSON", LIST_BODY, 200),
    http_attack("HTP-014 cross-site", "POST /v1/list\r\nOWNJSONSec-Fetch-Site: cross-site\r\n", LIST_BODY, 403),
    http_attack("HTP-015 form post", "POST /v1/list\r\nOWNContent-Type: text/plain\r\n", LIST_BODY, 415),
    http_attack("HTP-015 form post to MCP", "POST /mcp\r\nOWNContent-Type: text/plain\r\n", LIST_BODY, 415),
    http_attack("HTP-015 form post to JSON-RPC", "POST /rpc\r\nOWN", LIST_BODY, 415),
    http_attack(
        "HTP-017 preflight",
        "OPTIONS /v1/list\r\nHost: localhost:PORT\r\nOrigin: https://evil.example\r\n",
        "",
        403,
    ),
    http_attack("HTP-022 token in the query", "GET /events?token=one\r\nHost: localhost:PORT\r\n", "", 401),
    http_attack("HTP-022 token in the query beside the right one", "GET /events?token=one\r\nOWN", "", 400),
    http_attack("token of nobody", "GET /metrics\r\nHost: localhost:PORT\r\nAuthorization: Bearer none\r\n", "", 401),
    http_attack("token without scheme", "GET /metrics\r\nHost: localhost:PORT\r\nAuthorization: one\r\n", "", 401),
    http_attack(
        "token by another scheme",
        "GET /metrics\r\nHost: localhost:PORT\r\nAuthorization: Basic one\r\n",
        "",
        401,
    ),
    http_attack("two tokens", "GET /metrics\r\nOWNAuthorization: Bearer two\r\n", "", 400),
    http_attack("HTP-026 two lengths", "POST /v1/list\r\nOWNJSONTransfer-Encoding: chunked\r\n", LIST_BODY, 400),
    http_attack("nowhere", "GET /nothing\r\nOWN", "", 404),
    http_attack("wrong method", "GET /v1/list\r\nOWN", "", 405),
    http_attack("no object", "POST /v1/list\r\nOWNJSON", "[1]", 400),
    http_attack("a name twice", "POST /v1/list\r\nOWNJSON", "{\"path\":\".\",\"path\":\"..\"}", 400),
];

#[tokio::test]
async fn every_request_is_checked_before_execution() {
    let server = TestHttpServer::start().await;
    for HttpAttack { id, head, body, status } in ATTACKS {
        let (line, headers) = head.split_once("\r\n").unwrap();
        let headers = headers
            .replace("OWN", VALID_HEADERS)
            .replace("JSON", JSON_HEADER)
            .replace("PORT", &server.port.to_string());
        let length = body.len();
        let request = format!("{line} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        let response = server.send_raw(request.as_bytes()).await;
        assert_eq!(response.status, *status, "{id}: {}", String::from_utf8_lossy(&response.body));
        assert_eq!(response.header("access-control-allow-origin"), None, "{id}");
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{id}");
        if *status >= 400 {
            assert!(response.json()["error"]["detail"].is_string(), "{id}");
        }
    }
    server.shut_down().await;
}

#[tokio::test]
async fn caller_is_derived_from_token_only() {
    let server = TestHttpServer::start().await;
    server.authenticator.workspaces[0].put_file("a.txt", "one\n");
    // HTP-024: a principal in the body is an argument that no operation has.
    let claimed = json!({ "path": "a.txt", "principal": "user:owner" });
    assert_eq!(server.call_operation("one", "remove", &claimed).await.status, 400);
    let response = server.call_operation("reader", "remove", &json!({ "path": "a.txt" })).await;
    assert_eq!((response.status, &response.json()["error"]["kind"]), (403, &json!("read_only")));
    assert_eq!(server.request("two", "GET /v1/files/a.txt", &[], b"").await.status, 404);
    assert_eq!(server.request("one", "GET /v1/files/a.txt", &[], b"").await.status, 200);
    server.shut_down().await;
}

#[tokio::test]
async fn mcp_header_mismatch_is_refused() {
    let server = TestHttpServer::start().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "x", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = |tool: &str| {
        let params = json!({ "name": tool, "arguments": { "path": "." }, "_meta": meta });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
    };
    for (tool, status) in [("list", 200), ("read", 400)] {
        let headers = [
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            "MCP-Protocol-Version: 2026-07-28",
            "Mcp-Method: tools/call",
            &format!("Mcp-Name: {tool}"),
        ];
        let response = server.request("one", "POST /mcp", &headers, body("list").as_bytes()).await;
        assert_eq!(response.status, status, "{}", String::from_utf8_lossy(&response.body));
    }
    server.shut_down().await;
}

#[tokio::test]
async fn sessions_are_bound_to_their_token() {
    let server = TestHttpServer::start().await;
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } } });
    let headers = ["Content-Type: application/json", "Accept: application/json, text/event-stream"];
    let response = server.request("one", "POST /mcp", &headers, hello.to_string().as_bytes()).await;
    let session = response.header("mcp-session-id").expect("a session").to_owned();
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }).to_string();
    let session_header = format!("Mcp-Session-Id: {session}");
    for (token, status) in [("two", 404), ("reader", 404), ("one", 200)] {
        let headers = [headers[0], headers[1], &session_header, "MCP-Protocol-Version: 2025-11-25"];
        assert_eq!(server.request(token, "POST /mcp", &headers, ping.as_bytes()).await.status, status, "{token}");
    }
    let session_headers = [headers[0], headers[1], &session_header, "MCP-Protocol-Version: 2025-11-25"];
    server.request("two", "DELETE /mcp", &session_headers, b"").await;
    assert_eq!(server.request("one", "POST /mcp", &session_headers, ping.as_bytes()).await.status, 200);
    let ended = server.request("one", "DELETE /mcp", &session_headers, b"").await;
    assert_eq!((ended.status, ended.body.len()), (204, 0));
    assert_eq!(server.request("one", "POST /mcp", &session_headers, ping.as_bytes()).await.status, 404);
    server.shut_down().await;
}

#[tokio::test]
async fn oversized_body_is_not_read() {
    let server = TestHttpServer::start().await;
    let mut connection = server.connect().await;
    let head = format!(
        "POST /v1/write HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer one\r\nContent-Type: application/json\r\n\
         Content-Length: 999999999999\r\n\r\n{{",
        server.port
    );
    connection.get_mut().write_all(head.as_bytes()).await.unwrap();
    assert_eq!(read_response(&mut connection).await.status, 413);
    let mut connection = server.connect().await;
    let long = format!("GET /health HTTP/1.1\r\nHost: localhost:{}\r\nX: {}", server.port, "x".repeat(200 << 10));
    // The server may close the connection before everything is sent.
    drop(connection.get_mut().write_all(long.as_bytes()).await);
    let mut response = Vec::new();
    drop(connection.read_to_end(&mut response).await);
    assert!(response.is_empty() || response.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&response));
    server.shut_down().await;
}

#[tokio::test]
async fn revoked_token_takes_effect_immediately() {
    let server = TestHttpServer::start().await;
    assert_eq!(server.call_operation("one", "list", &json!({})).await.status, 200);
    server.authenticator.is_revoked.store(true, std::sync::atomic::Ordering::Relaxed);
    let response = server.call_operation("one", "list", &json!({})).await;
    assert_eq!((response.status, response.header("www-authenticate")), (401, Some("Bearer realm=\"stead\"")));
    assert_eq!(server.call_operation("reader", "list", &json!({})).await.status, 200);
    server.shut_down().await;
}

#[tokio::test]
async fn overloading_client_gets_retry_after_and_others_do_not() {
    let server = TestHttpServer::start_without_address_limit().await;
    let waiting = json!({ "since": "now", "wait_ms": 60_000 }).to_string();
    let head = format!(
        "POST /v1/changes HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer one\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{waiting}",
        server.port,
        waiting.len()
    );
    let mut connections = Vec::new();
    for _ in 0..REQUESTS_PER_CLIENT_MAX {
        let mut connection = server.connect().await;
        connection.get_mut().write_all(head.as_bytes()).await.unwrap();
        connections.push(connection);
    }
    // The server may not have accepted the last connection yet.
    let full = async {
        loop {
            let response = server.call_operation("one", "stat", &json!({ "path": "." })).await;
            if response.status != 200 {
                break response;
            }
        }
    };
    let refused = tokio::time::timeout(TEST_TIMEOUT, full).await.expect("the limit is reached");
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    assert_eq!(server.call_operation("two", "stat", &json!({ "path": "." })).await.status, 200);
    // Disconnecting cancels the call and releases its permit.
    drop(connections);
    let free = async { while server.call_operation("one", "stat", &json!({ "path": "." })).await.status != 200 {} };
    tokio::time::timeout(TEST_TIMEOUT, free).await.expect("the permits are released");
    server.shut_down().await;
}

/// Waiting for a free connection slot must not delay a shutdown.
#[tokio::test]
async fn full_server_can_shut_down() {
    let server = TestHttpServer::start_with_options(
        HttpListener::Tcp,
        AllowedHosts::loopback,
        HttpServerOptions { connections_max: Some(1), ..HttpServerOptions::default() },
    )
    .await;
    let mut connection = server.connect().await;
    // The first response shows that the connection has a slot; the body of the second request is never sent.
    let request_head =
        |line: &str| format!("{line} HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer one\r\n", server.port);
    let (first, second) = (request_head("GET /health"), request_head("PUT /v1/files/a.txt"));
    connection.get_mut().write_all(format!("{first}\r\n").as_bytes()).await.unwrap();
    assert_eq!(read_response(&mut connection).await.status, 200);
    connection.get_mut().write_all(format!("{second}Content-Length: 9\r\n\r\n").as_bytes()).await.unwrap();
    server.state.shut_down();
    let port = server.port;
    let refuses = async { while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {} };
    tokio::time::timeout(TEST_TIMEOUT, refuses).await.expect("new connections are refused");
    drop(connection);
    server.shut_down().await;
}
