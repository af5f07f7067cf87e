//! What stays open: events, and what a stopping server does about it.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::{House, PATIENCE, hear, hear_head};

/// Reads lines of a stream until one begins so. Chunk sizes are lines of their own and are passed over.
async fn until(stream: &mut BufReader<TcpStream>, start: &str) -> String {
    let found = async {
        loop {
            let mut line = String::new();
            assert!(stream.read_line(&mut line).await.unwrap() > 0, "the stream ended before {start}");
            if line.starts_with(start) {
                return line.trim_end()[start.len()..].to_owned();
            }
        }
    };
    // A stream that only says that it is alive does not count as news.
    tokio::time::timeout(PATIENCE, found).await.expect("what is waited for comes")
}

async fn listen(house: &House, token: &str, query: &str, header: &str) -> BufReader<TcpStream> {
    let mut connection = house.connect().await;
    let head = format!(
        "GET /events{query} HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer {token}\r\n{header}\r\n",
        house.port
    );
    connection.get_mut().write_all(head.as_bytes()).await.unwrap();
    connection
}

#[tokio::test]
async fn events_come_as_they_happen_and_go_on_where_they_ended() {
    let house = House::open().await;
    let mut stream = listen(&house, "reader", "", "").await;
    let head = hear_head(&mut stream).await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    let write = |path: &'static str| {
        let house = &house;
        async move {
            let written =
                house.call("one", "write", &json!({ "path": path, "content": "x", "base": "" })).await;
            assert_eq!(written.status, 200);
        }
    };
    write("a.txt").await;
    let id = until(&mut stream, "id: ").await;
    let event: Value = serde_json::from_str(&until(&mut stream, "data: ").await).unwrap();
    assert_eq!((&event["path"], &event["kind"]), (&json!("a.txt"), &json!("create")));
    drop(stream);
    write("b.txt").await;
    // HTP-032: an event id belongs to who received it.
    let last = format!("Last-Event-ID: {id}\r\n");
    for (token, status) in [("one", 403), ("two", 403)] {
        let mut stream = listen(&house, token, "", &last).await;
        assert_eq!(hear(&mut stream).await.status, status, "{token}");
    }
    let mut stream = listen(&house, "reader", "", &last).await;
    assert_eq!(hear_head(&mut stream).await.status, 200);
    let event: Value = serde_json::from_str(&until(&mut stream, "data: ").await).unwrap();
    assert_eq!(event["path"], "b.txt");
    for query in ["?since=yesterday", "?token=one", "?since=1&x=2"] {
        let mut refused = listen(&house, "one", query, "").await;
        assert_eq!(hear(&mut refused).await.status, 400, "{query}");
    }
    // A server that stops says so.
    house.hall.stop();
    until(&mut stream, "event: stop").await;
    house.close().await;
}

#[tokio::test]
async fn many_streams_hear_the_same() {
    let house = House::open().await;
    let mut streams = Vec::new();
    for _ in 0..200 {
        let mut stream = listen(&house, "reader", "", "").await;
        assert_eq!(hear_head(&mut stream).await.status, 200);
        streams.push(stream);
    }
    house.call("one", "write", &json!({ "path": "a.txt", "content": "x", "base": "" })).await;
    for stream in &mut streams {
        assert!(until(stream, "data: ").await.contains("a.txt"));
    }
    // Looking is recorded when a stream begins, and wakes nobody; what it then hears is not.
    let filter =
        engine::EntryFilter { operation: Some("changes".to_owned()), limit: 10_000, ..Default::default() };
    let looked = engine::Workspace::entries(&*house.doors.workspaces[0], &filter).unwrap().len();
    assert_eq!(looked, streams.len());
    let counted = String::from_utf8(house.ask("one", "GET /metrics", &[], b"").await.body).unwrap();
    assert!(counted.contains("stead_http_streams 200"), "{counted}");
    drop(streams);
    house.close().await;
}

#[tokio::test]
async fn json_rpc_answers_a_request_a_batch_and_nothing() {
    let house = House::open().await;
    let ask = |message: Value| {
        let house = &house;
        async move {
            let body = message.to_string();
            house.ask("one", "POST /rpc", &["Content-Type: application/json"], body.as_bytes()).await
        }
    };
    let call = |id: i64| json!({ "jsonrpc": "2.0", "id": id, "method": "stat", "params": { "path": "." } });
    assert_eq!(ask(call(1)).await.json()["result"]["type"], "directory");
    assert_eq!(ask(json!([call(1), call(2)])).await.json().as_array().unwrap().len(), 2);
    let quiet = json!({ "jsonrpc": "2.0", "method": "stat", "params": { "path": "." } });
    let said = ask(quiet).await;
    assert_eq!((said.status, said.body.len()), (204, 0));
    let wrong = ask(json!({ "jsonrpc": "2.0", "id": 3, "method": "nothing" })).await;
    assert_eq!((wrong.status, &wrong.json()["error"]["code"]), (200, &json!(-32601)));
    house.close().await;
}

#[tokio::test]
async fn a_stopping_server_finishes_what_runs() {
    let house = House::open().await;
    let waiting = json!({ "since": "now", "wait_ms": 400 });
    let stop = async {
        // The calls wait by then; a call that had not begun would be refused and fail the test.
        while !String::from_utf8_lossy(&house.ask("reader", "GET /metrics", &[], b"").await.body)
            .contains("stead_http_connections 9")
        {
            tokio::task::yield_now().await;
        }
        house.hall.stop();
    };
    let mut statuses = Vec::new();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let head = format!(
            "POST /v1/changes HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer one\r\nContent-Type: \
             application/json\r\nContent-Length: {}\r\n\r\n{waiting}",
            house.port,
            waiting.to_string().len()
        );
        let mut connection = house.connect().await;
        connection.get_mut().write_all(head.as_bytes()).await.unwrap();
        running.spawn(async move { hear(&mut connection).await.status });
    }
    stop.await;
    while let Some(status) = running.join_next().await {
        statuses.push(status.unwrap());
    }
    assert_eq!(statuses, [200; 8]);
    house.close().await;
}
