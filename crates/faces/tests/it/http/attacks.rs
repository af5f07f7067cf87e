//! What attackers and careless pages send: every one is told no before anything is done.

use faces::http::{Keeping, Listener, Names, limits::REQUESTS_PER_CLIENT_MAX};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{House, PATIENCE, hear};

/// A request line with headers, and the status it gets. `PORT` is the server's; the token is added where `Bearer` stands.
struct Attack {
    id: &'static str,
    head: &'static str,
    body: &'static str,
    status: u16,
}

const fn attack(id: &'static str, head: &'static str, body: &'static str, status: u16) -> Attack {
    Attack { id, head, body, status }
}

const OWN: &str = "Host: localhost:PORT\r\nAuthorization: Bearer one\r\n";
const LIST: &str = "{\"path\":\".\"}";
const JSON: &str = "Content-Type: application/json\r\n";

const ATTACKS: &[Attack] = &[
    attack("HTP-001 rebinding", "GET /health\r\nHost: evil.example:PORT\r\n", "", 403),
    attack("HTP-002 suffix", "GET /health\r\nHost: 127.0.0.1.evil.example\r\n", "", 403),
    attack("HTP-003 malformed authority", "GET /health\r\nHost: localhost@evil.example\r\n", "", 400),
    attack("HTP-004 no host", "GET /health\r\n", "", 400),
    attack("HTP-004 two hosts", "GET /health\r\nHost: localhost:PORT\r\nHost: localhost:PORT\r\n", "", 400),
    attack("HTP-005 case and dot", "GET /health\r\nHost: LOCALHOST.:PORT\r\n", "", 200),
    attack("HTP-007 unspecified address", "GET /health\r\nHost: 0.0.0.0:PORT\r\n", "", 403),
    attack("HTP-008 absolute form", "GET http://evil.example/mcp\r\nOWN", "", 403),
    attack("HTP-009 foreign origin", "GET /events\r\nOWNOrigin: https://evil.example\r\n", "", 403),
    attack(
        "HTP-009 foreign origin posts",
        "POST /v1/list\r\nOWNJSONOrigin: https://evil.example\r\n",
        LIST,
        403,
    ),
    attack("HTP-010 opaque origin", "POST /v1/list\r\nOWNJSONOrigin: null\r\n", LIST, 403),
    attack("HTP-012 other port", "POST /v1/list\r\nOWNJSONOrigin: http://localhost:1\r\n", LIST, 403),
    attack("HTP-013 no origin", "POST /v1/list\r\nOWNJSON", LIST, 200),
    attack("HTP-014 cross-site", "POST /v1/list\r\nOWNJSONSec-Fetch-Site: cross-site\r\n", LIST, 403),
    attack("HTP-015 form post", "POST /v1/list\r\nOWNContent-Type: text/plain\r\n", LIST, 415),
    attack("HTP-015 form post to MCP", "POST /mcp\r\nOWNContent-Type: text/plain\r\n", LIST, 415),
    attack("HTP-015 form post to JSON-RPC", "POST /rpc\r\nOWN", LIST, 415),
    attack(
        "HTP-017 preflight",
        "OPTIONS /v1/list\r\nHost: localhost:PORT\r\nOrigin: https://evil.example\r\n",
        "",
        403,
    ),
    attack("HTP-022 token in the query", "GET /events?token=one\r\nHost: localhost:PORT\r\n", "", 401),
    attack("HTP-022 token in the query beside the right one", "GET /events?token=one\r\nOWN", "", 400),
    attack(
        "token of nobody",
        "GET /metrics\r\nHost: localhost:PORT\r\nAuthorization: Bearer none\r\n",
        "",
        401,
    ),
    attack("token without scheme", "GET /metrics\r\nHost: localhost:PORT\r\nAuthorization: one\r\n", "", 401),
    attack(
        "token by another scheme",
        "GET /metrics\r\nHost: localhost:PORT\r\nAuthorization: Basic one\r\n",
        "",
        401,
    ),
    attack("two tokens", "GET /metrics\r\nOWNAuthorization: Bearer two\r\n", "", 400),
    attack("HTP-026 two lengths", "POST /v1/list\r\nOWNJSONTransfer-Encoding: chunked\r\n", LIST, 400),
    attack("nowhere", "GET /nothing\r\nOWN", "", 404),
    attack("wrong method", "GET /v1/list\r\nOWN", "", 405),
    attack("no object", "POST /v1/list\r\nOWNJSON", "[1]", 400),
    attack("a name twice", "POST /v1/list\r\nOWNJSON", "{\"path\":\".\",\"path\":\"..\"}", 400),
];

#[tokio::test]
async fn every_request_is_judged_before_anything_is_done() {
    let house = House::open().await;
    for Attack { id, head, body, status } in ATTACKS {
        let (line, headers) = head.split_once("\r\n").unwrap();
        let headers =
            headers.replace("OWN", OWN).replace("JSON", JSON).replace("PORT", &house.port.to_string());
        let length = body.len();
        let request = format!("{line} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        let said = house.raw(request.as_bytes()).await;
        assert_eq!(said.status, *status, "{id}: {}", String::from_utf8_lossy(&said.body));
        assert_eq!(said.header("access-control-allow-origin"), None, "{id}");
        assert_eq!(said.header("x-content-type-options"), Some("nosniff"), "{id}");
        if *status >= 400 {
            assert!(said.json()["error"]["detail"].is_string(), "{id}");
        }
    }
    house.close().await;
}

#[tokio::test]
async fn who_asks_comes_from_the_token_alone() {
    let house = House::open().await;
    house.doors.workspaces[0].put_file("a.txt", "one\n");
    // HTP-024: a principal in the body is an argument that no operation has.
    let claimed = json!({ "path": "a.txt", "principal": "user:owner" });
    assert_eq!(house.call("one", "remove", &claimed).await.status, 400);
    let said = house.call("reader", "remove", &json!({ "path": "a.txt" })).await;
    assert_eq!((said.status, &said.json()["error"]["kind"]), (403, &json!("read_only")));
    // What one workspace holds is not there for the token of another.
    assert_eq!(house.ask("two", "GET /v1/files/a.txt", &[], b"").await.status, 404);
    assert_eq!(house.ask("one", "GET /v1/files/a.txt", &[], b"").await.status, 200);
    house.close().await;
}

#[tokio::test]
async fn an_mcp_header_that_differs_from_the_body_is_refused() {
    let house = House::open().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "x", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = |tool: &str| {
        let params = json!({ "name": tool, "arguments": { "path": "." }, "_meta": meta });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
    };
    for (named, status) in [("list", 200), ("read", 400)] {
        let headers = [
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            "MCP-Protocol-Version: 2026-07-28",
            "Mcp-Method: tools/call",
            &format!("Mcp-Name: {named}"),
        ];
        let said = house.ask("one", "POST /mcp", &headers, body("list").as_bytes()).await;
        assert_eq!(said.status, status, "{}", String::from_utf8_lossy(&said.body));
    }
    house.close().await;
}

#[tokio::test]
async fn a_session_of_one_token_is_no_session_of_another() {
    let house = House::open().await;
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } } });
    let headers = ["Content-Type: application/json", "Accept: application/json, text/event-stream"];
    let said = house.ask("one", "POST /mcp", &headers, hello.to_string().as_bytes()).await;
    let session = said.header("mcp-session-id").expect("a session").to_owned();
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }).to_string();
    let named = format!("Mcp-Session-Id: {session}");
    for (token, status) in [("two", 404), ("reader", 404), ("one", 200)] {
        let headers = [headers[0], headers[1], &named, "MCP-Protocol-Version: 2025-11-25"];
        assert_eq!(house.ask(token, "POST /mcp", &headers, ping.as_bytes()).await.status, status, "{token}");
    }
    // It ends for who began it, and is over then.
    let of_session = [headers[0], headers[1], &named, "MCP-Protocol-Version: 2025-11-25"];
    house.ask("two", "DELETE /mcp", &of_session, b"").await;
    assert_eq!(house.ask("one", "POST /mcp", &of_session, ping.as_bytes()).await.status, 200);
    let ended = house.ask("one", "DELETE /mcp", &of_session, b"").await;
    assert_eq!((ended.status, ended.body.len()), (204, 0));
    assert_eq!(house.ask("one", "POST /mcp", &of_session, ping.as_bytes()).await.status, 404);
    house.close().await;
}

#[tokio::test]
async fn what_is_too_large_is_read_no_further() {
    let house = House::open().await;
    let mut connection = house.connect().await;
    let head = format!(
        "POST /v1/write HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer one\r\nContent-Type: application/json\r\n\
         Content-Length: 999999999999\r\n\r\n{{",
        house.port
    );
    connection.get_mut().write_all(head.as_bytes()).await.unwrap();
    assert_eq!(hear(&mut connection).await.status, 413);
    // A head that never ends.
    let mut connection = house.connect().await;
    let long =
        format!("GET /health HTTP/1.1\r\nHost: localhost:{}\r\nX: {}", house.port, "x".repeat(200 << 10));
    // The server may close before everything is sent.
    drop(connection.get_mut().write_all(long.as_bytes()).await);
    let mut answer = Vec::new();
    drop(connection.read_to_end(&mut answer).await);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&answer));
    house.close().await;
}

#[tokio::test]
async fn a_revoked_token_ends_at_once() {
    let house = House::open().await;
    assert_eq!(house.call("one", "list", &json!({})).await.status, 200);
    house.doors.revoked.store(true, std::sync::atomic::Ordering::Relaxed);
    let said = house.call("one", "list", &json!({})).await;
    assert_eq!((said.status, said.header("www-authenticate")), (401, Some("Bearer realm=\"stead\"")));
    assert_eq!(house.call("reader", "list", &json!({})).await.status, 200);
    house.close().await;
}

#[tokio::test]
async fn a_client_that_asks_for_too_much_at_once_is_told_to_come_back_and_nobody_else_is() {
    let house = House::open().await;
    let waiting = json!({ "since": "now", "wait_ms": 60_000 }).to_string();
    let head = format!(
        "POST /v1/changes HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer one\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{waiting}",
        house.port,
        waiting.len()
    );
    let mut connections = Vec::new();
    for _ in 0..REQUESTS_PER_CLIENT_MAX {
        let mut connection = house.connect().await;
        connection.get_mut().write_all(head.as_bytes()).await.unwrap();
        connections.push(connection);
    }
    // The last of them may still be on its way in.
    let full = async {
        loop {
            let said = house.call("one", "stat", &json!({ "path": "." })).await;
            if said.status != 200 {
                break said;
            }
        }
    };
    let refused = tokio::time::timeout(PATIENCE, full).await.expect("the share is taken");
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    assert_eq!(house.call("two", "stat", &json!({ "path": "." })).await.status, 200);
    // Whoever hangs up gives its place back, and its call ends.
    drop(connections);
    let free = async { while house.call("one", "stat", &json!({ "path": "." })).await.status != 200 {} };
    tokio::time::timeout(PATIENCE, free).await.expect("the share is given back");
    house.close().await;
}

/// Nobody leaves by itself: who waits for a place must not keep the server from hearing that it is to end.
#[tokio::test]
async fn a_full_house_can_be_closed() {
    let house =
        House::kept(Listener::Tcp, Names::loopback, Keeping { connections: Some(1), ..Keeping::default() })
            .await;
    let mut only = house.connect().await;
    // The answer to the first says that the connection has its place; the body of the second never comes.
    let asked = |line: &str| {
        format!("{line} HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer one\r\n", house.port)
    };
    let (first, second) = (asked("GET /health"), asked("PUT /v1/files/a.txt"));
    only.get_mut().write_all(format!("{first}\r\n").as_bytes()).await.unwrap();
    assert_eq!(hear(&mut only).await.status, 200);
    only.get_mut().write_all(format!("{second}Content-Length: 9\r\n\r\n").as_bytes()).await.unwrap();
    house.hall.stop();
    let port = house.port;
    let refuses = async { while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, refuses).await.expect("nothing new is taken in");
    drop(only);
    house.close().await;
}
