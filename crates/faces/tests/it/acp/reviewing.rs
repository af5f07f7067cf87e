//! What the editor asks about the agent's work, what it is told of leases, and what an agent is told of a file's form.

use engine::{Asking, Call, Caller, Engine, Principal};
use serde_json::{Value, json};

use super::stage::{BOTH, Stage};

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

/// The editor asks, and nobody else has a part in it.
async fn ask(stage: &mut Stage, method: &str, params: Value) -> Value {
    begin(stage, method, params).await;
    stage.editor.hear().await
}

async fn begin(stage: &mut Stage, method: &str, mut params: Value) {
    if params.get("sessionId").is_none() {
        params["sessionId"] = "s1".into();
    }
    stage.editor.say(&json!({ "jsonrpc": "2.0", "id": "ask", "method": method, "params": params })).await;
}

/// The editor answers what it is asked next; what that was.
async fn answers(stage: &mut Stage, result: Value) -> Value {
    let asked = stage.editor.hear().await;
    stage.editor.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })).await;
    asked
}

async fn prompted(stage: &mut Stage) {
    let params = json!({ "sessionId": "s1", "prompt": [] });
    stage
        .editor
        .say(&json!({ "jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": params }))
        .await;
    stage.agent.hear().await;
}

fn bytes(stage: &Stage, path: &str) -> Vec<u8> {
    stage.root("/ws").bytes(path).unwrap()
}

#[tokio::test]
async fn the_editor_is_told_what_it_may_ask() {
    let mut stage = Stage::silent();
    let params = json!({ "protocolVersion": 1 });
    stage.editor.say(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
    stage.agent.hear().await;
    let line = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"_meta":{"x":1.0}}}"#;
    stage.agent.say_raw(line).await;
    assert_eq!(
        stage.editor.hear_raw().await,
        r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"_meta":{"x":1.0,"stead":{"methods":["_stead/review","_stead/keep","_stead/reject","_stead/undo_turn"]}}}}"#
    );
}

#[tokio::test]
async fn work_is_shown_as_differences_and_kept_and_taken_back_by_hunk_and_by_turn() {
    let mut stage = Stage::open().await;
    stage.root("/ws").put_file("a.txt", LINES);
    prompted(&mut stage).await;
    stage.read("/ws/a.txt").await;
    let first = LINES.replace('1', "one").replace('5', "five");
    stage.write("/ws/a.txt", &first).await;
    prompted(&mut stage).await;
    let second = first.replace('9', "nine");
    stage.write("/ws/a.txt", &second).await;
    stage.write("/ws/new/b.txt", "new\n").await;

    let review = ask(&mut stage, "_stead/review", json!({})).await["result"].clone();
    let files = review["files"].as_array().unwrap();
    let told: Vec<(&Value, &Value)> = files.iter().map(|file| (&file["path"], &file["change"])).collect();
    assert_eq!(
        told,
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

    let kept = ask(&mut stage, "_stead/keep", json!({ "path": "/ws/a.txt", "hunk": name(0) })).await;
    assert_eq!(kept["result"]["kept"], json!(["/ws/a.txt"]), "{kept}");
    let params = json!({ "path": "/ws/a.txt", "hunk": name(1) });
    let rejected = ask(&mut stage, "_stead/reject", params).await;
    assert_eq!(rejected["result"]["rejected"], json!(["/ws/a.txt"]), "{rejected}");
    assert_eq!(bytes(&stage, "a.txt"), second.replace("five", "5").as_bytes());
    let undone = ask(&mut stage, "_stead/undo_turn", json!({})).await;
    assert_eq!(undone["result"]["rejected"], json!(["/ws/a.txt", "/ws/new/b.txt"]), "{undone}");
    assert_eq!(bytes(&stage, "a.txt"), LINES.replace('1', "one").as_bytes());
    assert_eq!(stage.root("/ws").bytes("new/b.txt"), None);
    let review = ask(&mut stage, "_stead/review", json!({})).await;
    assert_eq!(review["result"]["files"], json!([]), "the first hunk was kept: {review}");
}

#[tokio::test]
async fn what_the_editor_wrote_is_shown_and_taken_back_in_the_editor() {
    let offers = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });
    let mut stage = Stage::opened(BOTH, Asking::Client, &offers).await;
    let held = |text: &str| json!({ "content": text });
    let first = LINES.replace('1', "one");
    let second = first.replace('5', "five");
    for (held_now, content) in [(LINES, &first), (first.as_str(), &second)] {
        prompted(&mut stage).await;
        stage.send("fs/read_text_file", json!({ "path": "/ws/a.txt" })).await;
        answers(&mut stage, held(held_now)).await;
        stage.agent.hear().await;
        stage.send("fs/write_text_file", json!({ "path": "/ws/a.txt", "content": content })).await;
        answers(&mut stage, held(held_now)).await;
        assert_eq!(answers(&mut stage, json!({})).await["params"]["content"], **content);
        assert_eq!(stage.agent.hear().await["result"], json!({}));
    }
    // Typed since.
    let now = second.replace('9', "typed");
    begin(&mut stage, "_stead/review", json!({})).await;
    answers(&mut stage, held(&now)).await;
    let review = stage.editor.hear().await;
    let file = &review["result"]["files"][0];
    let by: Vec<&Value> = file["hunks"].as_array().unwrap().iter().map(|hunk| &hunk["by"][0]).collect();
    assert_eq!(by, ["agent:tester", "agent:tester", "user:ann"], "{review}");
    assert_eq!(
        file["content"],
        json!([{ "type": "diff", "path": "/ws/a.txt", "oldText": LINES, "newText": now }])
    );
    // The last turn goes, what was typed and the turn before stay.
    begin(&mut stage, "_stead/undo_turn", json!({})).await;
    answers(&mut stage, held(&now)).await;
    let asked = answers(&mut stage, json!({})).await;
    let left = first.replace('9', "typed");
    assert_eq!((&asked["method"], &asked["params"]["content"]), (&json!("fs/write_text_file"), &json!(left)));
    assert_eq!(stage.editor.hear().await["result"]["rejected"], json!(["/ws/a.txt"]));
    // What stands is not shown again.
    begin(&mut stage, "_stead/keep", json!({ "path": "/ws/a.txt" })).await;
    answers(&mut stage, held(&left)).await;
    assert_eq!(stage.editor.hear().await["result"]["kept"], json!(["/ws/a.txt"]));
    begin(&mut stage, "_stead/review", json!({})).await;
    answers(&mut stage, held(&left)).await;
    assert_eq!(stage.editor.hear().await["result"]["files"], json!([]));
    // No file was touched here, and the journal says who had it written.
    assert_eq!(stage.root("/ws").bytes("a.txt"), None);
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_and_the_agent_has_no_part_in_it() {
    let mut stage = Stage::open().await;
    for (params, code) in [
        (json!({ "sessionId": "nobody's" }), -32002),
        (json!({ "path": "/etc/passwd" }), -32002),
        (json!({ "hunk": "x" }), -32602),
        (json!({ "since": "ever" }), -32602),
    ] {
        let answer = ask(&mut stage, "_stead/reject", params.clone()).await;
        assert_eq!(answer["error"]["code"], code, "{params} {answer}");
    }
    let nothing = ask(&mut stage, "_stead/undo_turn", json!({})).await;
    assert_eq!(nothing["error"]["data"], "nothing_to_do: there is nothing to review");
    // From the agent it is a message like any other, for the editor to refuse.
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"_stead/keep","params":{"sessionId":"s1"}}"#;
    stage.agent.say_raw(line).await;
    assert_eq!(stage.editor.hear_raw().await, line);
}

#[tokio::test]
async fn a_file_that_a_person_holds_is_not_written_and_the_editor_hears_of_it() {
    let offers = json!({ "_meta": { "stead": {} } });
    let mut stage = Stage::opened(BOTH, Asking::Client, &offers).await;
    stage.root("/ws").put_file("a.txt", LINES);
    let person = Caller::new(Principal::User("bob".to_owned()), "desk", "cli");
    let arguments = json!({ "path": "a.txt" }).as_object().unwrap().clone();
    Engine::new(stage.root("/ws")).call(&Call::new(&person, "lock", arguments)).unwrap();
    let refused = stage.write("/ws/a.txt", "x\n").await;
    let said = refused["error"]["data"].as_str().unwrap();
    assert!(said.starts_with("locked: a.txt is held by user:bob until "), "{said}");
    let heard = stage.editor.hear().await;
    assert_eq!(heard["method"], "_stead/locked");
    let params = &heard["params"];
    assert_eq!((&params["path"], &params["holder"]), (&json!("/ws/a.txt"), &json!("user:bob")));
    assert!(params["endsMs"].is_i64(), "{heard}");
    assert_eq!(bytes(&stage, "a.txt"), LINES.as_bytes());
}

#[tokio::test]
async fn a_file_keeps_its_form_unless_the_call_says_otherwise_and_that_is_told() {
    let mut stage = Stage::open().await;
    stage.root("/ws").put_file("a.txt", "a\r\nb\r\n");
    let write_to = |path: &str, content: &str, ours: Value| {
        let meta = json!({ "stead": ours });
        json!({ "path": path, "content": content, "_meta": meta })
    };
    let write = |content: &str, ours: Value| write_to("/ws/a.txt", content, ours);
    let kept = stage.call("fs/write_text_file", write("A\nb\n", json!({}))).await;
    assert_eq!(kept["result"], json!({ "_meta": { "stead": { "lineEndings": "crlf" } } }));
    assert_eq!(bytes(&stage, "a.txt"), b"A\r\nb\r\n");
    let review = ask(&mut stage, "_stead/review", json!({})).await;
    assert_eq!(review["result"]["files"][0]["lineEndings"], "crlf", "{review}");
    let given = stage.call("fs/write_text_file", write("A\nb\n", json!({ "lineEndings": "given" }))).await;
    assert_eq!(given["result"], json!({}));
    assert_eq!(bytes(&stage, "a.txt"), b"A\nb\n");

    let wide: Vec<u8> = "\u{feff}a\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    stage.root("/ws").put_file("wide.txt", &wide);
    let write = |content: &str, ours: Value| write_to("/ws/wide.txt", content, ours);
    let kept = stage.call("fs/write_text_file", write("b\n", json!({}))).await;
    assert_eq!(kept["result"]["_meta"]["stead"]["encoding"], "utf-16le-bom", "{kept}");
    assert_eq!(bytes(&stage, "wide.txt")[..2], [0xff, 0xfe]);
    let given = stage.call("fs/write_text_file", write("c\n", json!({ "encoding": "utf-8" }))).await;
    assert_eq!(given["result"], json!({}));
    assert_eq!(bytes(&stage, "wide.txt"), b"c\n");
    let wrong = stage.call("fs/write_text_file", write("c\n", json!({ "lineEndings": "cr" }))).await;
    assert_eq!(wrong["error"]["code"], -32602);
}
