//! Tests of the review methods, the lease notifications, and the write report to the agent.

use serde_json::{Value, json};
use stead_engine::ApprovalMode;
use testkit::engine_fixture::user;

use super::harness::{AcpProxyTestHarness, BOTH_FILE_METHODS};

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

async fn call_review_method(harness: &mut AcpProxyTestHarness, method: &str, params: Value) -> Value {
    send_review_method(harness, method, params).await;
    harness.editor.receive().await
}

async fn send_review_method(harness: &mut AcpProxyTestHarness, method: &str, mut params: Value) {
    if params.get("sessionId").is_none() {
        params["sessionId"] = "s1".into();
    }
    harness.editor.send(&json!({ "jsonrpc": "2.0", "id": "ask", "method": method, "params": params })).await;
}

async fn answer_next_request(harness: &mut AcpProxyTestHarness, result: Value) -> Value {
    let request = harness.editor.receive().await;
    harness.editor.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    request
}

async fn send_prompt(harness: &mut AcpProxyTestHarness) {
    let params = json!({ "sessionId": "s1", "prompt": [] });
    harness.editor.send(&json!({ "jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": params })).await;
    harness.agent.receive().await;
}

fn file_bytes(harness: &AcpProxyTestHarness, path: &str) -> Vec<u8> {
    harness.root_workspace("/ws").bytes(path).unwrap()
}

#[tokio::test]
async fn initialize_advertises_review_methods() {
    let mut harness = AcpProxyTestHarness::uninitialized();
    let params = json!({ "protocolVersion": 1 });
    harness.editor.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
    harness.agent.receive().await;
    let line = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"_meta":{"x":1.0}}}"#;
    harness.agent.send_raw(line).await;
    assert_eq!(
        harness.editor.receive_raw().await,
        r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"_meta":{"x":1.0,"stead":{"methods":["_stead/review","_stead/keep","_stead/reject","_stead/undo_turn"]}}}}"#
    );
}

#[tokio::test]
async fn review_keep_and_reject_by_hunk_and_turn() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    harness.root_workspace("/ws").put_file("a.txt", LINES);
    send_prompt(&mut harness).await;
    harness.read_file("/ws/a.txt").await;
    let first = LINES.replace('1', "one").replace('5', "five");
    harness.write_file("/ws/a.txt", &first).await;
    send_prompt(&mut harness).await;
    let second = first.replace('9', "nine");
    harness.write_file("/ws/a.txt", &second).await;
    harness.write_file("/ws/new/b.txt", "new\n").await;

    let review = call_review_method(&mut harness, "_stead/review", json!({})).await["result"].clone();
    let files = review["files"].as_array().unwrap();
    let report: Vec<(&Value, &Value)> = files.iter().map(|file| (&file["path"], &file["change"])).collect();
    assert_eq!(
        report,
        [(&json!("/ws/a.txt"), &json!("modify")), (&json!("/ws/new/b.txt"), &json!("create"))],
        "{review}"
    );
    assert_eq!(
        files[0]["content"],
        json!([{ "type": "diff", "path": "/ws/a.txt", "oldText": LINES, "newText": second }])
    );
    assert_eq!(
        files[1]["content"],
        json!([{ "type": "diff", "path": "/ws/new/b.txt", "oldText": null, "newText": "new\n" }])
    );
    let hunks = files[0]["hunks"].as_array().unwrap();
    assert!(hunks.iter().all(|hunk| hunk["by"] == json!(["agent:tester"])), "{review}");
    let name = |at: usize| hunks[at]["hunk"].clone();

    let kept = call_review_method(&mut harness, "_stead/keep", json!({ "path": "/ws/a.txt", "hunk": name(0) })).await;
    assert_eq!(kept["result"]["kept"], json!(["/ws/a.txt"]), "{kept}");
    let params = json!({ "path": "/ws/a.txt", "hunk": name(1) });
    let rejected = call_review_method(&mut harness, "_stead/reject", params).await;
    assert_eq!(rejected["result"]["rejected"], json!(["/ws/a.txt"]), "{rejected}");
    assert_eq!(file_bytes(&harness, "a.txt"), second.replace("five", "5").as_bytes());
    let undone = call_review_method(&mut harness, "_stead/undo_turn", json!({})).await;
    assert_eq!(undone["result"]["rejected"], json!(["/ws/a.txt", "/ws/new/b.txt"]), "{undone}");
    assert_eq!(file_bytes(&harness, "a.txt"), LINES.replace('1', "one").as_bytes());
    assert_eq!(harness.root_workspace("/ws").bytes("new/b.txt"), None);
    let review = call_review_method(&mut harness, "_stead/review", json!({})).await;
    assert_eq!(review["result"]["files"], json!([]), "the first hunk was kept: {review}");
}

#[tokio::test]
async fn editor_writes_are_reviewed_and_reverted_in_editor() {
    let offers = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });
    let mut harness =
        AcpProxyTestHarness::initialized_with(BOTH_FILE_METHODS, ApprovalMode::TrustClient, &offers).await;
    let held = |text: &str| json!({ "content": text });
    let first = LINES.replace('1', "one");
    let second = first.replace('5', "five");
    for (held_now, content) in [(LINES, &first), (first.as_str(), &second)] {
        send_prompt(&mut harness).await;
        harness.send_from_agent("fs/read_text_file", json!({ "path": "/ws/a.txt" })).await;
        answer_next_request(&mut harness, held(held_now)).await;
        harness.agent.receive().await;
        harness.send_from_agent("fs/write_text_file", json!({ "path": "/ws/a.txt", "content": content })).await;
        answer_next_request(&mut harness, held(held_now)).await;
        assert_eq!(answer_next_request(&mut harness, json!({})).await["params"]["content"], **content);
        assert_eq!(harness.agent.receive().await["result"], json!({}));
    }
    let now = second.replace('9', "typed");
    send_review_method(&mut harness, "_stead/review", json!({})).await;
    answer_next_request(&mut harness, held(&now)).await;
    let review = harness.editor.receive().await;
    let file = &review["result"]["files"][0];
    let by: Vec<&Value> = file["hunks"].as_array().unwrap().iter().map(|hunk| &hunk["by"][0]).collect();
    assert_eq!(by, ["agent:tester", "agent:tester", "user:ann"], "{review}");
    assert_eq!(file["content"], json!([{ "type": "diff", "path": "/ws/a.txt", "oldText": LINES, "newText": now }]));
    // Only the last turn is reverted; the typed text and the previous turn stay.
    send_review_method(&mut harness, "_stead/undo_turn", json!({})).await;
    answer_next_request(&mut harness, held(&now)).await;
    let request = answer_next_request(&mut harness, json!({})).await;
    let left = first.replace('9', "typed");
    assert_eq!((&request["method"], &request["params"]["content"]), (&json!("fs/write_text_file"), &json!(left)));
    assert_eq!(harness.editor.receive().await["result"]["rejected"], json!(["/ws/a.txt"]));
    send_review_method(&mut harness, "_stead/keep", json!({ "path": "/ws/a.txt" })).await;
    answer_next_request(&mut harness, held(&left)).await;
    assert_eq!(harness.editor.receive().await["result"]["kept"], json!(["/ws/a.txt"]));
    send_review_method(&mut harness, "_stead/review", json!({})).await;
    answer_next_request(&mut harness, held(&left)).await;
    assert_eq!(harness.editor.receive().await["result"]["files"], json!([]));
    assert_eq!(harness.root_workspace("/ws").bytes("a.txt"), None);
}

#[tokio::test]
async fn invalid_review_calls_are_refused_without_agent() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    for (params, code) in [
        (json!({ "sessionId": "nobody's" }), -32002),
        (json!({ "path": "/etc/passwd" }), -32002),
        (json!({ "hunk": "x" }), -32602),
        (json!({ "since": "ever" }), -32602),
    ] {
        let response = call_review_method(&mut harness, "_stead/reject", params.clone()).await;
        assert_eq!(response["error"]["code"], code, "{params} {response}");
    }
    for (method, params) in [
        ("_stead/undo_turn", json!({})),
        ("_stead/reject", json!({ "since": "session" })),
        ("_stead/reject", json!({ "since": "turn" })),
    ] {
        let nothing = call_review_method(&mut harness, method, params).await;
        assert_eq!(nothing["error"]["data"], "nothing_to_do: no changes to review");
    }
    // The same method from the agent is an ordinary message, which is forwarded to the editor.
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"_stead/keep","params":{"sessionId":"s1"}}"#;
    harness.agent.send_raw(line).await;
    assert_eq!(harness.editor.receive_raw().await, line);
}

#[tokio::test]
async fn leased_file_is_not_written_and_editor_is_notified() {
    let offers = json!({ "_meta": { "stead": {} } });
    let mut harness =
        AcpProxyTestHarness::initialized_with(BOTH_FILE_METHODS, ApprovalMode::TrustClient, &offers).await;
    harness.root_workspace("/ws").put_file("a.txt", LINES);
    harness.other_caller("/ws", &user("bob")).call_ok("lock", json!({ "path": "a.txt" }));
    let refused = harness.write_file("/ws/a.txt", "x\n").await;
    let said = refused["error"]["data"].as_str().unwrap();
    assert!(said.starts_with("locked: a.txt is held by user:bob until "), "{said}");
    let received = harness.editor.receive().await;
    assert_eq!(received["method"], "_stead/locked");
    let params = &received["params"];
    assert_eq!((&params["path"], &params["holder"]), (&json!("/ws/a.txt"), &json!("user:bob")));
    assert!(params["endsMs"].is_i64(), "{received}");
    assert_eq!(file_bytes(&harness, "a.txt"), LINES.as_bytes());
}

#[tokio::test]
async fn file_format_is_kept_unless_overridden() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    harness.root_workspace("/ws").put_file("a.txt", "a\r\nb\r\n");
    let write_to = |path: &str, content: &str, ours: Value| {
        let meta = json!({ "stead": ours });
        json!({ "path": path, "content": content, "_meta": meta })
    };
    let write = |content: &str, ours: Value| write_to("/ws/a.txt", content, ours);
    let kept = harness.call_from_agent("fs/write_text_file", write("A\nb\n", json!({}))).await;
    assert_eq!(kept["result"], json!({ "_meta": { "stead": { "lineEndings": "crlf" } } }));
    assert_eq!(file_bytes(&harness, "a.txt"), b"A\r\nb\r\n");
    let review = call_review_method(&mut harness, "_stead/review", json!({})).await;
    assert_eq!(review["result"]["files"][0]["lineEndings"], "crlf", "{review}");
    let given = harness.call_from_agent("fs/write_text_file", write("A\nb\n", json!({ "lineEndings": "given" }))).await;
    assert_eq!(given["result"], json!({}));
    assert_eq!(file_bytes(&harness, "a.txt"), b"A\nb\n");

    let wide: Vec<u8> = "\u{feff}a\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    harness.root_workspace("/ws").put_file("wide.txt", &wide);
    let write = |content: &str, ours: Value| write_to("/ws/wide.txt", content, ours);
    let kept = harness.call_from_agent("fs/write_text_file", write("b\n", json!({}))).await;
    assert_eq!(kept["result"]["_meta"]["stead"]["encoding"], "utf-16le-bom", "{kept}");
    assert_eq!(file_bytes(&harness, "wide.txt")[..2], [0xff, 0xfe]);
    let given = harness.call_from_agent("fs/write_text_file", write("c\n", json!({ "encoding": "utf-8" }))).await;
    assert_eq!(given["result"], json!({}));
    assert_eq!(file_bytes(&harness, "wide.txt"), b"c\n");
    let wrong = harness.call_from_agent("fs/write_text_file", write("c\n", json!({ "lineEndings": "cr" }))).await;
    assert_eq!(wrong["error"]["code"], -32602);
}
