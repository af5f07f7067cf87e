//! An editor that offers files itself: its text is what the agent reads, and it writes.

use engine::{Asking, Workspace};
use serde_json::{Value, json};

use super::stage::{BOTH, Stage};

const LINES: &str = "1\n2\n3\n4\n5\n6\n";

async fn open() -> Stage {
    let offers = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });
    Stage::opened(BOTH, Asking::Client, &offers).await
}

/// The editor answers what it is asked next; what that was.
async fn answers(stage: &mut Stage, answer: Value) -> Value {
    let asked = stage.editor.hear().await;
    let mut line = answer;
    line["jsonrpc"] = "2.0".into();
    line["id"] = asked["id"].clone();
    stage.editor.say(&line).await;
    asked
}

fn text(content: &str) -> Value {
    json!({ "result": { "content": content } })
}

/// The agent reads a file while the editor holds this text.
async fn reads(stage: &mut Stage, params: Value, held: &str) -> Value {
    stage.send("fs/read_text_file", params).await;
    let asked = answers(stage, text(held)).await;
    assert_eq!(
        (&asked["method"], &asked["params"]),
        (&json!("fs/read_text_file"), &json!({ "sessionId": "s1", "path": "/ws/a.txt" }))
    );
    stage.agent.hear().await
}

/// The agent writes a file while the editor holds this text; what the editor is told to write, which the agent is told of
/// where it is more than that.
async fn writes(stage: &mut Stage, content: &str, held: &str) -> String {
    stage.send("fs/write_text_file", json!({ "path": "/ws/a.txt", "content": content })).await;
    answers(stage, text(held)).await;
    let asked = answers(stage, json!({ "result": null })).await;
    let written = asked["params"]["content"].as_str().unwrap().to_owned();
    let told =
        if written == content { json!({}) } else { json!({ "_meta": { "stead": { "merged": true } } }) };
    assert_eq!(stage.agent.hear().await["result"], told);
    written
}

#[tokio::test]
async fn the_agent_reads_what_is_not_saved_yet() {
    let mut stage = open().await;
    stage.root("/ws").put_file("a.txt", "saved\n");
    let answer = reads(&mut stage, json!({ "path": "/ws/./x/../a.txt" }), LINES).await;
    assert_eq!(answer["result"]["content"], LINES);
    let answer = reads(&mut stage, json!({ "path": "/ws/a.txt", "line": 2, "limit": 2 }), LINES).await;
    assert_eq!(answer["result"]["content"], "2\n3\n");
    // A file that only the editor has.
    stage.root("/ws").take("a.txt");
    let answer = reads(&mut stage, json!({ "path": "/ws/a.txt" }), "new\n").await;
    assert_eq!(answer["result"]["content"], "new\n");
}

#[tokio::test]
async fn what_the_editor_refuses_is_told_as_it_said_it() {
    let mut stage = open().await;
    let error =
        json!({ "code": -32603, "message": "Internal error", "data": { "details": "no such buffer" } });
    stage.send("fs/read_text_file", json!({ "path": "/ws/a.txt" })).await;
    answers(&mut stage, json!({ "error": error })).await;
    let missing = stage.agent.hear().await;
    assert_eq!(
        missing["error"],
        json!({ "code": -32002, "message": "Resource not found", "data": { "uri": "/ws/a.txt" } })
    );
    stage.root("/ws").put_file("a.txt", "there\n");
    stage.send("fs/read_text_file", json!({ "path": "/ws/a.txt" })).await;
    answers(&mut stage, json!({ "error": error })).await;
    assert_eq!(stage.agent.hear().await["error"], error);
}

#[tokio::test]
async fn the_editor_is_not_asked_for_what_is_outside_or_refused() {
    let mut stage = open().await;
    stage.root("/ws").put_link("out", "/etc");
    for path in ["/etc/passwd", "/ws/out/passwd", "/ws/../x"] {
        assert_eq!(stage.read(path).await["error"]["code"], -32002, "{path}");
        assert_eq!(stage.write(path, "x").await["error"]["code"], -32002, "{path}");
    }
}

#[tokio::test]
async fn writes_go_to_the_editor_with_what_its_person_typed() {
    let mut stage = open().await;
    stage.root("/ws").put_file("a.txt", "saved\n");
    reads(&mut stage, json!({ "path": "/ws/a.txt" }), LINES).await;
    let written = writes(&mut stage, &LINES.replace('1', "one"), LINES).await;
    assert_eq!(written, "one\n2\n3\n4\n5\n6\n");
    // Typed meanwhile, elsewhere in the file.
    let typed = "one\n2\n3\n4\n5\nsix\n";
    let written = writes(&mut stage, "one\n2\nthree\n4\n5\n6\n", typed).await;
    assert_eq!(written, "one\n2\nthree\n4\n5\nsix\n");
    // Once more, still without having read it.
    let written = writes(&mut stage, "ONE\n2\nthree\n4\n5\n6\n", "one\n2\nthree\n4\n5\nsix\n").await;
    assert_eq!(written, "ONE\n2\nthree\n4\n5\nsix\n");
    // The disk is the editor's to write.
    let root = stage.root("/ws");
    let file = root
        .read(&path::RelPath::from_wire("a.txt").unwrap(), engine::Want::Whole { limit_bytes: 99 })
        .unwrap();
    assert_eq!(file.bytes, b"saved\n");
}

#[tokio::test]
async fn typing_where_the_agent_writes_is_a_conflict_and_the_editor_keeps_its_text() {
    let mut stage = open().await;
    reads(&mut stage, json!({ "path": "/ws/a.txt" }), LINES).await;
    stage
        .send("fs/write_text_file", json!({ "path": "/ws/a.txt", "content": LINES.replace('3', "three") }))
        .await;
    answers(&mut stage, text(&LINES.replace('3', "drei"))).await;
    let answer = stage.agent.hear().await;
    let said = answer["error"]["data"].as_str().unwrap();
    assert!(said.starts_with("conflict: ") && said.contains("lines 3"), "{said}");
}

#[tokio::test]
async fn a_write_that_needs_a_yes_is_asked_about_with_the_editor_s_text() {
    let mut stage = open().await;
    stage.send("fs/write_text_file", json!({ "path": "/ws/.git/config", "content": "new\n" })).await;
    answers(&mut stage, text("typed\n")).await;
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } });
    let question = answers(&mut stage, json!({ "result": outcome })).await;
    assert_eq!(question["params"]["toolCall"]["content"][0]["oldText"], "typed\n");
    let asked = answers(&mut stage, json!({ "result": {} })).await;
    assert_eq!(
        (&asked["method"], &asked["params"]["content"]),
        (&json!("fs/write_text_file"), &json!("new\n"))
    );
    assert_eq!(stage.agent.hear().await["result"], json!({}));
    // The yes is used up.
    stage.send("fs/write_text_file", json!({ "path": "/ws/.git/config", "content": "new\n" })).await;
    answers(&mut stage, text("new\n")).await;
    let question = answers(&mut stage, json!({ "result": { "outcome": { "outcome": "cancelled" } } })).await;
    assert_eq!(question["method"], "session/request_permission");
    assert_eq!(stage.agent.hear().await["error"]["code"], -32800);
}

#[tokio::test]
async fn an_editor_that_goes_ends_the_read() {
    let mut stage = open().await;
    stage.send("fs/read_text_file", json!({ "path": "/ws/a.txt" })).await;
    stage.editor.hear().await;
    stage.editor.close();
    assert_eq!(stage.agent.hear().await["error"]["code"], -32800);
}
