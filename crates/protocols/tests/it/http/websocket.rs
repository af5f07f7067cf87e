//! Tests of WebSocket connections: pushed events, and the cleanup after a client has disconnected.

use std::collections::HashSet;

use serde_json::{Value, json};
use stead_protocols::limits::REQUESTS_PENDING_MAX;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::{TEST_TIMEOUT, TestHttpServer, read_head};

pub(super) fn frame_text(text: &str) -> Vec<u8> {
    let mask = [1_u8, 2, 3, 4];
    let length = u16::try_from(text.len()).unwrap();
    let mut frame = vec![0x81, 0x80 | 126];
    frame.extend(length.to_be_bytes());
    frame.extend(mask);
    frame.extend(text.bytes().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

const PING_FRAME: [u8; 2] = [0x89, 0];
const PONG_FRAME: [u8; 6] = [0x8A, 0x80, 1, 2, 3, 4];
const NO_STREAMS: &str = "stead_http_streams 0";

pub(super) async fn read_message(stream: &mut BufReader<TcpStream>) -> Value {
    let mut head = [0; 2];
    loop {
        tokio::time::timeout(TEST_TIMEOUT, stream.read_exact(&mut head)).await.expect("a message").unwrap();
        if head != PING_FRAME {
            break;
        }
        stream.get_mut().write_all(&PONG_FRAME).await.unwrap();
    }
    assert_eq!(head[0], 0x81, "text in one frame");
    let length = match head[1] {
        126 => usize::from(stream.read_u16().await.unwrap()),
        short => usize::from(short),
    };
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await.unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn frame_call(id: i64, method: &str, params: Value) -> Vec<u8> {
    frame_text(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())
}

fn upgrade_request(server: &TestHttpServer, token: &str, more: &str) -> String {
    format!(
        "GET /rpc HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n",
        server.port
    )
}

async fn open_websocket(server: &TestHttpServer, token: &str) -> BufReader<TcpStream> {
    let mut stream = server.connect().await;
    stream.get_mut().write_all(upgrade_request(server, token, "").as_bytes()).await.unwrap();
    assert_eq!(read_head(&mut stream).await.status, 101);
    stream
}

#[tokio::test]
async fn websocket_carries_calls_and_pushed_events() {
    let server = TestHttpServer::start().await;
    let upgrade = |token: &str, more: &str| upgrade_request(&server, token, more);
    // A cross-site request fails even with a valid token, and a request without a valid token always fails.
    let foreign = upgrade("one", "Origin: https://evil.example\r\n");
    assert_eq!(server.send_raw(foreign.as_bytes()).await.status, 403);
    assert_eq!(server.send_raw(upgrade("none", "").as_bytes()).await.status, 401);
    let mut stream = open_websocket(&server, "reader").await;
    stream.get_mut().write_all(&frame_call(1, "watch", json!({ "path": "." }))).await.unwrap();
    assert!(read_message(&mut stream).await["result"]["watch"].is_string());
    let written = server.call_operation("two", "write", &json!({ "path": "b.txt", "content": "x", "base": "" })).await;
    assert_eq!(written.status, 200);
    let args = json!({ "path": "a.txt", "content": "x", "base": "" });
    let other = server.call_operation("one", "write", &args).await;
    assert_eq!(other.status, 200);
    let event = read_message(&mut stream).await;
    assert_eq!((&event["method"], &event["params"]["path"]), (&json!("filesystem.event"), &json!("a.txt")));
    stream.get_mut().write_all(&frame_call(2, "stat", json!({ "path": "a.txt" }))).await.unwrap();
    assert_eq!(read_message(&mut stream).await["result"]["size"], 1);
    drop(stream);
    server.shut_down().await;
}

#[tokio::test]
async fn open_buffers_become_drafts_on_disconnect() {
    let server = TestHttpServer::start().await;
    server.authenticator.workspaces[0].put_file("a.txt", "saved\n");
    let mut editor = open_websocket(&server, "ann").await;
    let open = json!({ "path": "a.txt", "text": "saved\ntyped\n" });
    editor.get_mut().write_all(&frame_call(1, "buffer.open", open.clone())).await.unwrap();
    assert_eq!(read_message(&mut editor).await["result"]["state"], "unsaved");
    let read = || async { server.call_operation("one", "read", &json!({ "path": "a.txt" })).await.json() };
    assert_eq!(read().await["content"], "saved\ntyped\n");
    // A single HTTP request cannot open a buffer, because no connection would end with the request.
    let typed = json!({ "path": "a.txt", "revision": 1, "text": "saved\ntyped on\n" });
    assert_eq!(server.call_operation("ann", "buffer.change", &typed).await.status, 200);
    let alone = server.call_operation("ann", "buffer.open", &json!({ "path": "b.txt", "text": "b\n" })).await;
    assert_eq!((alone.status, &alone.json()["error"]["kind"]), (400, &json!("bad_request")));
    // The connection ends without a close message, like the connection of a killed editor.
    drop(editor);
    server.wait_for_metric(NO_STREAMS).await;
    let seen = read().await;
    assert_eq!((&seen["content"], seen["notices"].is_array()), (&json!("saved\n"), true), "{seen}");
    let left = server.call_operation("ann", "buffer.list", &json!({ "path": "a.txt" })).await.json();
    assert_eq!((&left["buffers"][0]["state"], &left["buffers"][0]["text"]), (&json!("draft"), &typed["text"]));
    // The next connection gets the draft, and opening a buffer with the same text replaces the draft.
    for again in [json!({ "path": "a.txt" }), json!({ "path": "a.txt", "text": typed["text"] })] {
        let mut editor = open_websocket(&server, "ann").await;
        editor.get_mut().write_all(&frame_call(1, "buffer.open", again)).await.unwrap();
        assert_eq!(read_message(&mut editor).await["result"]["state"], "unsaved");
        assert_eq!(read().await["content"], typed["text"]);
        let now = server.call_operation("ann", "buffer.list", &json!({})).await.json();
        assert_eq!(now["buffers"].as_array().map(Vec::len), Some(1), "{now}");
        drop(editor);
        server.wait_for_metric(NO_STREAMS).await;
    }
    server.shut_down().await;
}

#[tokio::test]
async fn disconnect_leaves_nothing_running() {
    let server = TestHttpServer::start().await;
    let mut stream = open_websocket(&server, "one").await;
    for id in 0..50 {
        stream.get_mut().write_all(&frame_call(id, "stat", json!({ "path": "." }))).await.unwrap();
    }
    drop(stream);
    server.wait_for_metric(NO_STREAMS).await;
    server.shut_down().await;
}

/// The server must keep sending responses while more messages arrive than can run concurrently.
#[tokio::test]
async fn client_sending_faster_than_reading_is_served() {
    let server = TestHttpServer::start().await;
    let stream = open_websocket(&server, "one").await.into_inner().into_std().unwrap();
    let count = 3 * i64::try_from(REQUESTS_PENDING_MAX).unwrap();
    let asked: Vec<u8> = (0..count).flat_map(|id| frame_call(id, "stat", json!({ "path": "." }))).collect();
    let mut to = TcpStream::from_std(stream.try_clone().unwrap()).unwrap();
    let mut from = BufReader::new(TcpStream::from_std(stream).unwrap());
    let (_, answered) = tokio::join!(async { to.write_all(&asked).await.unwrap() }, async {
        let mut answered = HashSet::new();
        for _ in 0..count {
            answered.insert(read_message(&mut from).await["id"].as_i64());
        }
        answered.len()
    });
    assert_eq!(i64::try_from(answered).unwrap(), count);
    drop((from, to));
    server.shut_down().await;
}
