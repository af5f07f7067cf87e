//! What one principal takes of the server, and what is left for another: told by who is answered first, not by a clock.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use faces::http::{Keeping, Listener, Names, PerAddress, Rate, limits::REQUESTS_PER_CLIENT_MAX};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{
    House, PATIENCE, hear, hear_head,
    sockets::{framed, message},
};

/// Calls that one principal has under way.
const MANY: usize = 1_000;
/// Calls of the busy one that may be answered while another's single call is: a tenth, where without shares it would be all.
const BEFORE_MAX: usize = MANY / 10;
const JSON: &str = "Content-Type: application/json";

#[tokio::test]
async fn a_thousand_calls_of_one_do_not_hold_up_another() {
    let house = House::open().await;
    let long = "a line that nobody looks for\n".repeat(20_000);
    for path in ["long.txt", "longer.txt"] {
        let written = house.call("one", "write", &json!({ "path": path, "content": long, "base": "" })).await;
        assert_eq!(written.status, 200);
    }
    let mut stream = house.connect().await;
    let upgrade = format!(
        "GET /rpc HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer one\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        house.port
    );
    stream.get_mut().write_all(upgrade.as_bytes()).await.unwrap();
    assert_eq!(hear_head(&mut stream).await.status, 101);
    let mut calls = Vec::new();
    for id in 0..MANY {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "search", "params": { "query": "needle" } });
        calls.extend(framed(&call.to_string()));
    }
    stream.get_mut().write_all(&calls).await.unwrap();
    let answered = Arc::new(AtomicUsize::new(0));
    let counted = answered.clone();
    let counting = tokio::spawn(async move {
        for _ in 0..MANY {
            let answer = message(&mut stream).await;
            assert_eq!(answer["result"]["total"], 0, "{answer}");
            counted.fetch_add(1, Ordering::SeqCst);
        }
    });
    let begun = async {
        while answered.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, begun).await.expect("the first is answered");
    // One that is made at once, and one that needs a thread.
    for (operation, arguments) in
        [("read", json!({ "path": "long.txt", "bytes": "0-9" })), ("search", json!({ "query": "needle" }))]
    {
        let before = answered.load(Ordering::SeqCst);
        assert_eq!(house.call("other", operation, &arguments).await.status, 200);
        let between = answered.load(Ordering::SeqCst) - before;
        assert!(between <= BEFORE_MAX, "{operation}: {between} of {MANY} came first");
    }
    assert!(answered.load(Ordering::SeqCst) < MANY, "there was nothing to wait for");
    counting.await.unwrap();
    house.close().await;
}

#[tokio::test]
async fn more_tokens_are_no_larger_share() {
    let house = House::open().await;
    let waiting = json!({ "since": "now", "wait_ms": 60_000 }).to_string();
    let head = |token: &str| {
        format!(
            "POST /v1/changes HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer {token}\r\n{JSON}\r\n\
             Content-Length: {}\r\n\r\n{waiting}",
            house.port,
            waiting.len()
        )
    };
    let mut connections = Vec::new();
    for at in 0..REQUESTS_PER_CLIENT_MAX {
        let token = if at % 2 == 0 { "one" } else { "one-more" };
        let mut connection = house.connect().await;
        connection.get_mut().write_all(head(token).as_bytes()).await.unwrap();
        connections.push(connection);
    }
    // The last of them may still be on its way in.
    let full = async { while house.call("one", "stat", &json!({ "path": "." })).await.status != 429 {} };
    tokio::time::timeout(PATIENCE, full).await.expect("the share is taken");
    assert_eq!(house.call("one-more", "stat", &json!({ "path": "." })).await.status, 429);
    // Another has its share whole: also calls that need a thread, and that wait.
    assert_eq!(house.call("other", "search", &json!({ "query": "x" })).await.status, 200);
    assert_eq!(house.call("other", "changes", &json!({ "since": "now", "wait_ms": 1 })).await.status, 200);
    drop(connections);
    house.close().await;
}

#[tokio::test]
async fn a_rate_is_kept_by_each_principal() {
    let keeping = Keeping { rate: Some(Rate { per_second: 1, burst: 3 }), ..Keeping::default() };
    let house = House::kept(Listener::Tcp, Names::loopback, keeping).await;
    let stat = json!({ "path": "." });
    let mut refused = Vec::new();
    // Some come back while this runs, but not as many as are asked for.
    for at in 0..40 {
        let token = if at % 2 == 0 { "one" } else { "one-more" };
        let said = house.call(token, "stat", &stat).await;
        if said.status != 200 {
            assert_eq!((said.status, said.header("retry-after")), (429, Some("1")));
            refused.push(at);
        }
    }
    assert!(refused.first() >= Some(&3) && refused.len() > 10, "{refused:?}");
    assert_eq!(house.call("other", "stat", &stat).await.status, 200);
    // A batch counts as many as it holds, and what was too much is waited for.
    let call = |id: usize| json!({ "jsonrpc": "2.0", "id": id, "method": "stat", "params": stat });
    let batch = Value::from((0..200).map(call).collect::<Vec<_>>());
    let said = house.ask("other", "POST /rpc", &[JSON], batch.to_string().as_bytes()).await;
    assert_eq!((said.status, said.json().as_array().map(Vec::len)), (200, Some(200)));
    let said = house.call("other", "stat", &stat).await;
    let wait: u64 = said.header("retry-after").unwrap().parse().unwrap();
    assert!(said.status == 429 && (100..=200).contains(&wait), "{} {wait}", said.status);
    house.close().await;
}

#[tokio::test]
async fn one_key_beside_a_message_is_one_call() {
    let house = House::open().await;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "append", "params": { "path": "a.txt", "content": "x" } });
    let headers = [JSON, "Idempotency-Key: k1"];
    let body = call.to_string();
    let first = house.ask("one", "POST /rpc", &headers, body.as_bytes()).await.json();
    let again = house.ask("one", "POST /rpc", &headers, body.as_bytes()).await.json();
    assert_eq!(first["result"]["entry"], again["result"]["entry"], "{first} {again}");
    assert!(first["result"]["entry"].is_u64(), "{first}");
    assert_eq!(house.ask("one", "GET /v1/files/a.txt", &[], b"").await.body, b"x");
    let batch = json!([call, call]).to_string();
    let refused = house.ask("one", "POST /rpc", &headers, batch.as_bytes()).await.json();
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    assert_eq!(house.ask("one", "GET /v1/files/a.txt", &[], b"").await.body, b"x");
    house.close().await;
}

#[tokio::test]
async fn an_address_is_not_all_connections_before_it_has_shown_a_token() {
    let keeping = Keeping { per_address: PerAddress::AtMost(3), ..Keeping::default() };
    let house = House::kept(Listener::Tcp, Names::loopback, keeping).await;
    let health = format!("GET /health HTTP/1.1\r\nHost: localhost:{}\r\n", house.port);
    let ask = |token: &str| match token {
        "" => format!("{health}\r\n"),
        token => format!("{health}Authorization: Bearer {token}\r\n\r\n").replace("/health", "/metrics"),
    };
    let mut strangers = Vec::new();
    for (token, status) in [("", 200), ("nobody's", 401), ("", 200)] {
        let mut connection = house.connect().await;
        connection.get_mut().write_all(ask(token).as_bytes()).await.unwrap();
        assert_eq!(hear(&mut connection).await.status, status);
        strangers.push(connection);
    }
    let mut late = house.connect().await;
    let read = tokio::time::timeout(PATIENCE, late.read_to_end(&mut Vec::new())).await;
    assert_eq!(read.expect("it is closed").unwrap_or_default(), 0);
    // Who shows a token stays and is a stranger no more.
    let first = &mut strangers[0];
    first.get_mut().write_all(ask("one").as_bytes()).await.unwrap();
    let said = hear(first).await;
    assert_eq!(said.status, 200);
    let counted = String::from_utf8(said.body).unwrap();
    assert!(counted.contains("stead_http_strangers_refused_total 1\n"), "{counted}");
    assert_eq!(house.ask("one", "GET /health", &[], b"").await.status, 200);
    drop(strangers);
    house.close().await;
}
