//! Conversations over a WebSocket: what is pushed, and what becomes of what a client leaves behind.

use std::collections::HashSet;

use faces::limits::REQUESTS_PENDING_MAX;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::{House, PATIENCE, hear_head};

/// A text message as a client frames it.
pub(super) fn framed(text: &str) -> Vec<u8> {
    let mask = [1_u8, 2, 3, 4];
    let length = u16::try_from(text.len()).unwrap();
    let mut frame = vec![0x81, 0x80 | 126];
    frame.extend(length.to_be_bytes());
    frame.extend(mask);
    frame.extend(text.bytes().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// A ping of the server, which has nothing in it, and the answer of a client.
const PING: [u8; 2] = [0x89, 0];
const PONG: [u8; 6] = [0x8A, 0x80, 1, 2, 3, 4];

/// The next text message of the server. On a busy machine pings come between.
pub(super) async fn message(stream: &mut BufReader<TcpStream>) -> Value {
    let mut head = [0; 2];
    loop {
        tokio::time::timeout(PATIENCE, stream.read_exact(&mut head)).await.expect("a message").unwrap();
        if head != PING {
            break;
        }
        stream.get_mut().write_all(&PONG).await.unwrap();
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

/// A call as a client frames it.
fn call(id: i64, method: &str, params: Value) -> Vec<u8> {
    framed(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())
}

fn upgrade(house: &House, token: &str, more: &str) -> String {
    format!(
        "GET /rpc HTTP/1.1\r\nHost: localhost:{}\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n",
        house.port
    )
}

/// A conversation of whoever has this token.
async fn socket(house: &House, token: &str) -> BufReader<TcpStream> {
    let mut stream = house.connect().await;
    stream.get_mut().write_all(upgrade(house, token, "").as_bytes()).await.unwrap();
    assert_eq!(hear_head(&mut stream).await.status, 101);
    stream
}

/// Waits until the server counts so many streams.
async fn streams(house: &House, count: usize) {
    let counted = async {
        let line = format!("stead_http_streams {count}\n");
        while !String::from_utf8_lossy(&house.ask("one", "GET /metrics", &[], b"").await.body).contains(&line)
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.expect("every stream ends");
}

#[tokio::test]
async fn a_websocket_carries_a_conversation_and_what_is_pushed() {
    let house = House::open().await;
    let upgrade = |token: &str, more: &str| upgrade(&house, token, more);
    // A page of another site cannot even with the right token; nobody can without.
    let foreign = upgrade("one", "Origin: https://evil.example\r\n");
    assert_eq!(house.raw(foreign.as_bytes()).await.status, 403);
    assert_eq!(house.raw(upgrade("none", "").as_bytes()).await.status, 401);
    let mut stream = socket(&house, "reader").await;
    stream.get_mut().write_all(&call(1, "watch", json!({ "path": "." }))).await.unwrap();
    assert!(message(&mut stream).await["result"]["watch"].is_string());
    let written = house.call("two", "write", &json!({ "path": "b.txt", "content": "x", "base": "" })).await;
    assert_eq!(written.status, 200);
    let args = json!({ "path": "a.txt", "content": "x", "base": "" });
    let other = house.call("one", "write", &args).await;
    assert_eq!(other.status, 200);
    let event = message(&mut stream).await;
    assert_eq!((&event["method"], &event["params"]["path"]), (&json!("filesystem.event"), &json!("a.txt")));
    stream.get_mut().write_all(&call(2, "stat", json!({ "path": "a.txt" }))).await.unwrap();
    assert_eq!(message(&mut stream).await["result"]["size"], 1);
    drop(stream);
    house.close().await;
}

#[tokio::test]
async fn what_an_editor_had_open_is_a_draft_when_its_connection_ends() {
    let house = House::open().await;
    house.doors.workspaces[0].put_file("a.txt", "saved\n");
    let mut editor = socket(&house, "ann").await;
    let open = json!({ "path": "a.txt", "text": "saved\ntyped\n" });
    editor.get_mut().write_all(&call(1, "buffer.open", open.clone())).await.unwrap();
    assert_eq!(message(&mut editor).await["result"]["state"], "unsaved");
    let read = || async { house.call("one", "read", &json!({ "path": "a.txt" })).await.json() };
    assert_eq!(read().await["content"], "saved\ntyped\n");
    // Another connection of the same person can type into it, but a single request opens nothing: nobody could tell
    // when it is over.
    let typed = json!({ "path": "a.txt", "revision": 1, "text": "saved\ntyped on\n" });
    assert_eq!(house.call("ann", "buffer.change", &typed).await.status, 200);
    let alone = house.call("ann", "buffer.open", &json!({ "path": "b.txt", "text": "b\n" })).await;
    assert_eq!((alone.status, &alone.json()["error"]["kind"]), (400, &json!("bad_request")));
    // It goes without a word, as an editor does that is killed.
    drop(editor);
    streams(&house, 0).await;
    let seen = read().await;
    assert_eq!((&seen["content"], seen["notices"].is_array()), (&json!("saved\n"), true), "{seen}");
    let left = house.call("ann", "buffer.list", &json!({ "path": "a.txt" })).await.json();
    assert_eq!(
        (&left["buffers"][0]["state"], &left["buffers"][0]["text"]),
        (&json!("draft"), &typed["text"])
    );
    // The next one takes it up; one that brings the same text stands for it.
    for again in [json!({ "path": "a.txt" }), json!({ "path": "a.txt", "text": typed["text"] })] {
        let mut editor = socket(&house, "ann").await;
        editor.get_mut().write_all(&call(1, "buffer.open", again)).await.unwrap();
        assert_eq!(message(&mut editor).await["result"]["state"], "unsaved");
        assert_eq!(read().await["content"], typed["text"]);
        let now = house.call("ann", "buffer.list", &json!({})).await.json();
        assert_eq!(now["buffers"].as_array().map(Vec::len), Some(1), "{now}");
        drop(editor);
        streams(&house, 0).await;
    }
    house.close().await;
}

#[tokio::test]
async fn a_client_that_goes_without_its_answers_leaves_nothing_running() {
    let house = House::open().await;
    let mut stream = socket(&house, "one").await;
    for id in 0..50 {
        stream.get_mut().write_all(&call(id, "stat", json!({ "path": "." }))).await.unwrap();
    }
    drop(stream);
    streams(&house, 0).await;
    house.close().await;
}

/// Answers go out while more comes in than may be worked on at a time.
#[tokio::test]
async fn a_client_that_asks_faster_than_it_is_answered_is_answered_all_the_same() {
    let house = House::open().await;
    let stream = socket(&house, "one").await.into_inner().into_std().unwrap();
    let count = 3 * i64::try_from(REQUESTS_PENDING_MAX).unwrap();
    let asked: Vec<u8> = (0..count).flat_map(|id| call(id, "stat", json!({ "path": "." }))).collect();
    let mut to = TcpStream::from_std(stream.try_clone().unwrap()).unwrap();
    let mut from = BufReader::new(TcpStream::from_std(stream).unwrap());
    let (_, answered) = tokio::join!(async { to.write_all(&asked).await.unwrap() }, async {
        let mut answered = HashSet::new();
        for _ in 0..count {
            answered.insert(message(&mut from).await["id"].as_i64());
        }
        answered.len()
    });
    assert_eq!(i64::try_from(answered).unwrap(), count);
    drop((from, to));
    house.close().await;
}
