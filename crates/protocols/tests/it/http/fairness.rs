//! Tests the fairness between principals by the order of their responses, not by response times.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use stead_protocols::{
    http::{AllowedHosts, HttpListener, HttpServerOptions, RateLimit, UnauthenticatedPerAddressLimit},
    limits::REQUESTS_PER_CLIENT_MAX,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{
    TEST_TIMEOUT, TestHttpServer, read_head, read_response,
    websocket::{frame_text, read_message},
};

const CONCURRENT_CALLS: usize = 1_000;
/// The maximum number of the busy client's calls that may finish before another client's single call.
const CALLS_BEFORE_MAX: usize = CONCURRENT_CALLS / 10;
const JSON_HEADER: &str = "Content-Type: application/json";

#[tokio::test]
async fn thousand_calls_of_one_client_do_not_delay_another() {
    let server = TestHttpServer::start().await;
    let long = "a line that nobody looks for\n".repeat(20_000);
    for path in ["long.txt", "longer.txt"] {
        let written =
            server.call_operation("one", "write", &json!({ "path": path, "content": long, "base": "" })).await;
        assert_eq!(written.status, 200);
    }
    let mut stream = server.connect().await;
    let upgrade = format!(
        "GET /rpc HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer one\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.port
    );
    stream.get_mut().write_all(upgrade.as_bytes()).await.unwrap();
    assert_eq!(read_head(&mut stream).await.status, 101);
    let mut calls = Vec::new();
    for id in 0..CONCURRENT_CALLS {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "search", "params": { "query": "needle" } });
        calls.extend(frame_text(&call.to_string()));
    }
    stream.get_mut().write_all(&calls).await.unwrap();
    let answered = Arc::new(AtomicUsize::new(0));
    let counted = answered.clone();
    let counting = tokio::spawn(async move {
        for _ in 0..CONCURRENT_CALLS {
            let response = read_message(&mut stream).await;
            assert_eq!(response["result"]["total"], 0, "{response}");
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let started = async {
        while answered.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, started).await.expect("the first response");
    // The first operation runs inline, and the second operation needs a thread.
    for (operation, arguments) in
        [("read", json!({ "path": "long.txt", "bytes": "0-9" })), ("search", json!({ "query": "needle" }))]
    {
        let before = answered.load(Ordering::SeqCst);
        assert_eq!(server.call_operation("other", operation, &arguments).await.status, 200);
        let between = answered.load(Ordering::SeqCst) - before;
        assert!(between <= CALLS_BEFORE_MAX, "{operation}: {between} of {CONCURRENT_CALLS} came first");
    }
    assert!(answered.load(Ordering::SeqCst) < CONCURRENT_CALLS, "there was nothing to wait for");
    counting.await.unwrap();
    server.shut_down().await;
}

#[tokio::test]
async fn more_tokens_give_no_larger_share() {
    let server = TestHttpServer::start_without_address_limit().await;
    let waiting = json!({ "since": "now", "wait_ms": 60_000 }).to_string();
    let head = |token: &str| {
        format!(
            "POST /v1/changes HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer {token}\r\n{JSON_HEADER}\r\n\
             Content-Length: {}\r\n\r\n{waiting}",
            server.port,
            waiting.len()
        )
    };
    let mut connections = Vec::new();
    for index in 0..REQUESTS_PER_CLIENT_MAX {
        let token = if index % 2 == 0 { "one" } else { "one-more" };
        let mut connection = server.connect().await;
        connection.get_mut().write_all(head(token).as_bytes()).await.unwrap();
        connections.push(connection);
    }
    // The server may not have accepted the last connection yet.
    let full = async { while server.call_operation("one", "stat", &json!({ "path": "." })).await.status != 429 {} };
    tokio::time::timeout(TEST_TIMEOUT, full).await.expect("the limit is reached");
    assert_eq!(server.call_operation("one-more", "stat", &json!({ "path": "." })).await.status, 429);
    assert_eq!(server.call_operation("other", "search", &json!({ "query": "x" })).await.status, 200);
    assert_eq!(server.call_operation("other", "changes", &json!({ "since": "now", "wait_ms": 1 })).await.status, 200);
    drop(connections);
    server.shut_down().await;
}

#[tokio::test]
async fn rate_limit_applies_per_principal() {
    let options =
        HttpServerOptions { rate_limit: Some(RateLimit { per_second: 1, burst: 3 }), ..HttpServerOptions::default() };
    let server = TestHttpServer::start_with_options(HttpListener::Tcp, AllowedHosts::loopback, options).await;
    let stat = json!({ "path": "." });
    let mut refused = Vec::new();
    // The bucket is refilled meanwhile, but with fewer tokens than there are requests.
    for index in 0..40 {
        let token = if index % 2 == 0 { "one" } else { "one-more" };
        let response = server.call_operation(token, "stat", &stat).await;
        if response.status != 200 {
            assert_eq!((response.status, response.header("retry-after")), (429, Some("1")));
            refused.push(index);
        }
    }
    assert!(refused.first() >= Some(&3) && refused.len() > 10, "{refused:?}");
    assert_eq!(server.call_operation("other", "stat", &stat).await.status, 200);
    // Every call of a batch counts, and the calls beyond the limit delay later requests.
    let call = |id: usize| json!({ "jsonrpc": "2.0", "id": id, "method": "stat", "params": stat });
    let batch = Value::from((0..200).map(call).collect::<Vec<_>>());
    let response = server.request("other", "POST /rpc", &[JSON_HEADER], batch.to_string().as_bytes()).await;
    assert_eq!((response.status, response.json().as_array().map(Vec::len)), (200, Some(200)));
    let response = server.call_operation("other", "stat", &stat).await;
    let wait: u64 = response.header("retry-after").unwrap().parse().unwrap();
    assert!(response.status == 429 && (100..=200).contains(&wait), "{} {wait}", response.status);
    server.shut_down().await;
}

#[tokio::test]
async fn idempotency_header_applies_to_one_call() {
    let server = TestHttpServer::start().await;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "append", "params": { "path": "a.txt", "content": "x" } });
    let headers = [JSON_HEADER, "Idempotency-Key: k1"];
    let body = call.to_string();
    let first = server.request("one", "POST /rpc", &headers, body.as_bytes()).await.json();
    let again = server.request("one", "POST /rpc", &headers, body.as_bytes()).await.json();
    assert_eq!(first["result"]["entry"], again["result"]["entry"], "{first} {again}");
    assert!(first["result"]["entry"].is_u64(), "{first}");
    assert_eq!(server.request("one", "GET /v1/files/a.txt", &[], b"").await.body, b"x");
    let batch = json!([call, call]).to_string();
    let refused = server.request("one", "POST /rpc", &headers, batch.as_bytes()).await.json();
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    assert_eq!(server.request("one", "GET /v1/files/a.txt", &[], b"").await.body, b"x");
    server.shut_down().await;
}

#[tokio::test]
async fn unauthenticated_connections_are_limited_per_address() {
    let options = HttpServerOptions {
        per_address_limit: UnauthenticatedPerAddressLimit::AtMost(3),
        ..HttpServerOptions::default()
    };
    let server = TestHttpServer::start_with_options(HttpListener::Tcp, AllowedHosts::loopback, options).await;
    let health = format!("GET /health HTTP/1.1\r\nHost: localhost:{}\r\n", server.port);
    let request = |token: &str| match token {
        "" => format!("{health}\r\n"),
        token => format!("{health}Authorization: Bearer {token}\r\n\r\n").replace("/health", "/metrics"),
    };
    let mut unauthenticated = Vec::new();
    for (token, status) in [("", 200), ("nobody's", 401), ("", 200)] {
        let mut connection = server.connect().await;
        connection.get_mut().write_all(request(token).as_bytes()).await.unwrap();
        assert_eq!(read_response(&mut connection).await.status, status);
        unauthenticated.push(connection);
    }
    let mut late = server.connect().await;
    let read = tokio::time::timeout(TEST_TIMEOUT, late.read_to_end(&mut Vec::new())).await;
    assert_eq!(read.expect("the connection is closed").unwrap_or_default(), 0);
    let first = &mut unauthenticated[0];
    first.get_mut().write_all(request("one").as_bytes()).await.unwrap();
    let response = read_response(first).await;
    assert_eq!(response.status, 200);
    let counted = String::from_utf8(response.body).unwrap();
    assert!(counted.contains("stead_http_strangers_refused_total 1\n"), "{counted}");
    assert_eq!(server.request("one", "GET /health", &[], b"").await.status, 200);
    drop(unauthenticated);
    server.shut_down().await;
}
