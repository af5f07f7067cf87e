//! Tests of event streams over HTTP, and of their end at shutdown.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::{TEST_TIMEOUT, TestHttpServer, read_head, read_response};

async fn read_until(stream: &mut BufReader<TcpStream>, start: &str) -> String {
    let found = async {
        loop {
            let mut line = String::new();
            assert!(stream.read_line(&mut line).await.unwrap() > 0, "the stream ended before {start}");
            if line.starts_with(start) {
                return line.trim_end()[start.len()..].to_owned();
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, found).await.expect("what is waited for comes")
}

async fn open_event_stream(server: &TestHttpServer, token: &str, query: &str, header: &str) -> BufReader<TcpStream> {
    let mut connection = server.connect().await;
    let head = format!(
        "GET /events{query} HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer {token}\r\n{header}\r\n",
        server.port
    );
    connection.get_mut().write_all(head.as_bytes()).await.unwrap();
    connection
}

#[tokio::test]
async fn events_stream_live_and_resume_at_cursor() {
    let server = TestHttpServer::start().await;
    let mut stream = open_event_stream(&server, "reader", "", "").await;
    let head = read_head(&mut stream).await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    let write = |path: &'static str| {
        let server = &server;
        async move {
            let written =
                server.call_operation("one", "write", &json!({ "path": path, "content": "x", "base": "" })).await;
            assert_eq!(written.status, 200);
        }
    };
    write("a.txt").await;
    let id = read_until(&mut stream, "id: ").await;
    let event: Value = serde_json::from_str(&read_until(&mut stream, "data: ").await).unwrap();
    assert_eq!((&event["path"], &event["kind"]), (&json!("a.txt"), &json!("create")));
    drop(stream);
    write("b.txt").await;
    // HTP-032: an event id is valid only for the client that received it.
    let last = format!("Last-Event-ID: {id}\r\n");
    for (token, status) in [("one", 403), ("two", 403)] {
        let mut stream = open_event_stream(&server, token, "", &last).await;
        assert_eq!(read_response(&mut stream).await.status, status, "{token}");
    }
    let mut stream = open_event_stream(&server, "reader", "", &last).await;
    assert_eq!(read_head(&mut stream).await.status, 200);
    let event: Value = serde_json::from_str(&read_until(&mut stream, "data: ").await).unwrap();
    assert_eq!(event["path"], "b.txt");
    for query in ["?since=yesterday", "?token=one", "?since=1&x=2"] {
        let mut refused = open_event_stream(&server, "one", query, "").await;
        assert_eq!(read_response(&mut refused).await.status, 400, "{query}");
    }
    server.state.shut_down();
    read_until(&mut stream, "event: stop").await;
    server.shut_down().await;
}

#[tokio::test]
async fn all_streams_receive_the_same_events() {
    let server = TestHttpServer::start().await;
    let mut streams = Vec::new();
    for _ in 0..200 {
        let mut stream = open_event_stream(&server, "reader", "", "").await;
        assert_eq!(read_head(&mut stream).await.status, 200);
        streams.push(stream);
    }
    server.call_operation("one", "write", &json!({ "path": "a.txt", "content": "x", "base": "" })).await;
    for stream in &mut streams {
        assert!(read_until(stream, "data: ").await.contains("a.txt"));
    }
    // The first read of a stream is recorded, but wakes no stream; later reads are not recorded.
    let filter =
        stead_engine::JournalEntryQuery { operation: Some("changes".to_owned()), limit: 10_000, ..Default::default() };
    let looked = stead_engine::Workspace::entries(&*server.authenticator.workspaces[0], &filter).unwrap().len();
    assert_eq!(looked, streams.len());
    let counted = String::from_utf8(server.request("one", "GET /metrics", &[], b"").await.body).unwrap();
    assert!(counted.contains("stead_http_streams 200"), "{counted}");
    drop(streams);
    server.shut_down().await;
}

#[tokio::test]
async fn json_rpc_post_handles_request_batch_and_notification() {
    let server = TestHttpServer::start().await;
    let ask = |message: Value| {
        let server = &server;
        async move {
            let body = message.to_string();
            server.request("one", "POST /rpc", &["Content-Type: application/json"], body.as_bytes()).await
        }
    };
    let call = |id: i64| json!({ "jsonrpc": "2.0", "id": id, "method": "stat", "params": { "path": "." } });
    assert_eq!(ask(call(1)).await.json()["result"]["type"], "directory");
    assert_eq!(ask(json!([call(1), call(2)])).await.json().as_array().unwrap().len(), 2);
    let quiet = json!({ "jsonrpc": "2.0", "method": "stat", "params": { "path": "." } });
    let response = ask(quiet).await;
    assert_eq!((response.status, response.body.len()), (204, 0));
    let wrong = ask(json!({ "jsonrpc": "2.0", "id": 3, "method": "nothing" })).await;
    assert_eq!((wrong.status, &wrong.json()["error"]["code"]), (200, &json!(-32601)));
    server.shut_down().await;
}

#[tokio::test]
async fn shutdown_finishes_running_calls() {
    let server = TestHttpServer::start().await;
    let waiting = json!({ "since": "now", "wait_ms": 400 });
    let stop = async {
        // The calls are waiting by now; a call that had not started would be refused and fail the test.
        server.wait_for_metric("stead_http_connections 9").await;
        server.state.shut_down();
    };
    let mut statuses = Vec::new();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let head = format!(
            "POST /v1/changes HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer one\r\nContent-Type: \
             application/json\r\nContent-Length: {}\r\n\r\n{waiting}",
            server.port,
            waiting.to_string().len()
        );
        let mut connection = server.connect().await;
        connection.get_mut().write_all(head.as_bytes()).await.unwrap();
        running.spawn(async move { read_response(&mut connection).await.status });
    }
    stop.await;
    while let Some(status) = running.join_next().await {
        statuses.push(status.unwrap());
    }
    assert_eq!(statuses, [200; 8]);
    server.shut_down().await;
}
