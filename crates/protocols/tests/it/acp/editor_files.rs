//! Tests an ACP editor that offers file methods: the agent reads the editor's text, and the editor applies the agent's
//! writes.

use serde_json::{Value, json};
use stead_engine::{ApprovalMode, Tree};

use super::harness::{AcpProxyTestHarness, BOTH_FILE_METHODS};

const LINES: &str = "1\n2\n3\n4\n5\n6\n";

async fn harness_with_editor_files() -> AcpProxyTestHarness {
    let offers = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });
    AcpProxyTestHarness::initialized_with(BOTH_FILE_METHODS, ApprovalMode::TrustClient, &offers).await
}

async fn answer_next_request(harness: &mut AcpProxyTestHarness, response: Value) -> Value {
    let request = harness.editor.receive().await;
    let mut line = response;
    line["jsonrpc"] = "2.0".into();
    line["id"] = request["id"].clone();
    harness.editor.send(&line).await;
    request
}

fn text_result(content: &str) -> Value {
    json!({ "result": { "content": content } })
}

async fn read_with_editor_text(harness: &mut AcpProxyTestHarness, params: Value, editor_text: &str) -> Value {
    harness.send_from_agent("fs/read_text_file", params).await;
    let request = answer_next_request(harness, text_result(editor_text)).await;
    assert_eq!(
        (&request["method"], &request["params"]),
        (&json!("fs/read_text_file"), &json!({ "sessionId": "s1", "path": "/ws/a.txt" }))
    );
    harness.agent.receive().await
}

async fn write_with_editor_text(harness: &mut AcpProxyTestHarness, content: &str, editor_text: &str) -> String {
    harness.send_from_agent("fs/write_text_file", json!({ "path": "/ws/a.txt", "content": content })).await;
    answer_next_request(harness, text_result(editor_text)).await;
    let request = answer_next_request(harness, json!({ "result": null })).await;
    let written = request["params"]["content"].as_str().unwrap().to_owned();
    let told = if written == content { json!({}) } else { json!({ "_meta": { "stead": { "merged": true } } }) };
    assert_eq!(harness.agent.receive().await["result"], told);
    written
}

#[tokio::test]
async fn agent_reads_unsaved_editor_text() {
    let mut harness = harness_with_editor_files().await;
    harness.root_workspace("/ws").put_file("a.txt", "saved\n");
    let response = read_with_editor_text(&mut harness, json!({ "path": "/ws/./x/../a.txt" }), LINES).await;
    assert_eq!(response["result"]["content"], LINES);
    let response =
        read_with_editor_text(&mut harness, json!({ "path": "/ws/a.txt", "line": 2, "limit": 2 }), LINES).await;
    assert_eq!(response["result"]["content"], "2\n3\n");
    harness.root_workspace("/ws").remove_silently("a.txt");
    let response = read_with_editor_text(&mut harness, json!({ "path": "/ws/a.txt" }), "new\n").await;
    assert_eq!(response["result"]["content"], "new\n");
}

#[tokio::test]
async fn editor_errors_are_forwarded_unchanged() {
    let mut harness = harness_with_editor_files().await;
    let error = json!({ "code": -32603, "message": "Internal error", "data": { "details": "no such buffer" } });
    harness.send_from_agent("fs/read_text_file", json!({ "path": "/ws/a.txt" })).await;
    answer_next_request(&mut harness, json!({ "error": error })).await;
    let missing = harness.agent.receive().await;
    assert_eq!(
        missing["error"],
        json!({ "code": -32002, "message": "Resource not found", "data": { "uri": "/ws/a.txt" } })
    );
    harness.root_workspace("/ws").put_file("a.txt", "there\n");
    harness.send_from_agent("fs/read_text_file", json!({ "path": "/ws/a.txt" })).await;
    answer_next_request(&mut harness, json!({ "error": error })).await;
    assert_eq!(harness.agent.receive().await["error"], error);
}

#[tokio::test]
async fn editor_gets_no_request_for_denied_paths() {
    let mut harness = harness_with_editor_files().await;
    harness.root_workspace("/ws").put_link("out", "/etc");
    for path in ["/etc/passwd", "/ws/out/passwd", "/ws/../x"] {
        assert_eq!(harness.read_file(path).await["error"]["code"], -32002, "{path}");
        assert_eq!(harness.write_file(path, "x").await["error"]["code"], -32002, "{path}");
    }
}

#[tokio::test]
async fn writes_are_merged_with_editor_text() {
    let mut harness = harness_with_editor_files().await;
    harness.root_workspace("/ws").put_file("a.txt", "saved\n");
    read_with_editor_text(&mut harness, json!({ "path": "/ws/a.txt" }), LINES).await;
    let written = write_with_editor_text(&mut harness, &LINES.replace('1', "one"), LINES).await;
    assert_eq!(written, "one\n2\n3\n4\n5\n6\n");
    let typed = "one\n2\n3\n4\n5\nsix\n";
    let written = write_with_editor_text(&mut harness, "one\n2\nthree\n4\n5\n6\n", typed).await;
    assert_eq!(written, "one\n2\nthree\n4\n5\nsix\n");
    let written = write_with_editor_text(&mut harness, "ONE\n2\nthree\n4\n5\n6\n", "one\n2\nthree\n4\n5\nsix\n").await;
    assert_eq!(written, "ONE\n2\nthree\n4\n5\nsix\n");
    let root = harness.root_workspace("/ws");
    let file = root
        .read(&stead_path::RelPath::from_wire("a.txt").unwrap(), stead_engine::BytesToRead::Whole { limit_bytes: 99 })
        .unwrap();
    assert_eq!(file.bytes, b"saved\n");
}

#[tokio::test]
async fn conflicting_typing_keeps_editor_text() {
    let mut harness = harness_with_editor_files().await;
    read_with_editor_text(&mut harness, json!({ "path": "/ws/a.txt" }), LINES).await;
    harness
        .send_from_agent("fs/write_text_file", json!({ "path": "/ws/a.txt", "content": LINES.replace('3', "three") }))
        .await;
    answer_next_request(&mut harness, text_result(&LINES.replace('3', "drei"))).await;
    let response = harness.agent.receive().await;
    let result = response["error"]["data"].as_str().unwrap();
    assert!(result.starts_with("conflict: ") && result.contains("lines 3"), "{result}");
}

#[tokio::test]
async fn permission_request_shows_editor_text() {
    let mut harness = harness_with_editor_files().await;
    harness.send_from_agent("fs/write_text_file", json!({ "path": "/ws/.git/config", "content": "new\n" })).await;
    answer_next_request(&mut harness, text_result("typed\n")).await;
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } });
    let question = answer_next_request(&mut harness, json!({ "result": outcome })).await;
    assert_eq!(question["params"]["toolCall"]["content"][0]["oldText"], "typed\n");
    let request = answer_next_request(&mut harness, json!({ "result": {} })).await;
    assert_eq!((&request["method"], &request["params"]["content"]), (&json!("fs/write_text_file"), &json!("new\n")));
    assert_eq!(harness.agent.receive().await["result"], json!({}));
    harness.send_from_agent("fs/write_text_file", json!({ "path": "/ws/.git/config", "content": "new\n" })).await;
    answer_next_request(&mut harness, text_result("new\n")).await;
    let question =
        answer_next_request(&mut harness, json!({ "result": { "outcome": { "outcome": "cancelled" } } })).await;
    assert_eq!(question["method"], "session/request_permission");
    assert_eq!(harness.agent.receive().await["error"]["code"], -32800);
}

#[tokio::test]
async fn editor_disconnect_ends_pending_read() {
    let mut harness = harness_with_editor_files().await;
    harness.send_from_agent("fs/read_text_file", json!({ "path": "/ws/a.txt" })).await;
    harness.editor.receive().await;
    harness.editor.close_output();
    assert_eq!(harness.agent.receive().await["error"]["code"], -32800);
}
