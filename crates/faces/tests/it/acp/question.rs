//! A write that needs a person's yes, put before the editor's person.

use engine::{ApprovalState, Asking, Workspace};
use serde_json::{Value, json};

use super::stage::{BOTH, Stage};

const GUARDED: &str = "/ws/.git/config";

/// The agent writes where a person must be asked; what the editor is asked.
async fn asked(stage: &mut Stage) -> (i64, Value) {
    let id = stage.send("fs/write_text_file", json!({ "path": GUARDED, "content": "new\n" })).await;
    let question = stage.editor.hear().await;
    assert_eq!(question["method"], "session/request_permission", "{question}");
    (id, question)
}

fn selected(question: &Value, option: &str) -> Value {
    let outcome = json!({ "outcome": "selected", "optionId": option });
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "outcome": outcome } })
}

fn states(stage: &Stage) -> Vec<ApprovalState> {
    let filter = engine::ApprovalFilter { limit: 9, ..Default::default() };
    stage.root("/ws").approvals(&filter).unwrap().iter().map(|approval| approval.state).collect()
}

#[tokio::test]
async fn the_question_shows_the_exact_difference_and_four_choices() {
    let mut stage = Stage::open().await;
    stage.root("/ws").put_file(".git/config", "old\n");
    let (id, question) = asked(&mut stage).await;
    let params = &question["params"];
    assert_eq!(params["sessionId"], "s1");
    let diff = json!({ "type": "diff", "path": GUARDED, "newText": "new\n", "oldText": "old\n" });
    assert_eq!(params["toolCall"]["content"], json!([diff]));
    let kinds: Vec<&str> =
        params["options"].as_array().unwrap().iter().map(|option| option["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once", "reject_always"]);
    stage.editor.say(&selected(&question, "allow_once")).await;
    let answer = stage.agent.hear().await;
    assert_eq!((&answer["id"], &answer["result"]), (&json!(id), &json!({})));
    assert_eq!(states(&stage), [ApprovalState::Used]);
    assert_eq!(stage.read(GUARDED).await["result"]["content"], "new\n");
}

#[tokio::test]
async fn a_refusal_is_a_clear_error_and_lasts_as_long_as_it_was_said() {
    let mut stage = Stage::open().await;
    let (_, question) = asked(&mut stage).await;
    stage.editor.say(&selected(&question, "reject_once")).await;
    let answer = stage.agent.hear().await;
    assert_eq!(answer["error"]["code"], -32603);
    let said = answer["error"]["data"].as_str().unwrap();
    assert!(said.starts_with("approval_denied: "), "{said}");
    // The same again stays refused; another write is another question.
    assert_eq!(stage.write(GUARDED, "new\n").await["error"]["code"], -32603);
    stage.send("fs/write_text_file", json!({ "path": GUARDED, "content": "other\n" })).await;
    let question = stage.editor.hear().await;
    stage.editor.say(&selected(&question, "reject_always")).await;
    assert_eq!(stage.agent.hear().await["error"]["code"], -32603);
    // Not asked any more.
    assert_eq!(stage.write(GUARDED, "newer\n").await["error"]["code"], -32603);
    assert_eq!(stage.read(GUARDED).await["error"]["code"], -32002);
}

#[tokio::test]
async fn always_becomes_a_rule() {
    let mut stage = Stage::open().await;
    let (_, question) = asked(&mut stage).await;
    stage.editor.say(&selected(&question, "allow_always")).await;
    assert_eq!(stage.agent.hear().await["result"], json!({}));
    assert_eq!(stage.ground.always.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn whatever_is_no_yes_is_none() {
    for (said, code) in [
        (json!({ "result": { "outcome": { "outcome": "cancelled" } } }), -32800),
        (json!({ "result": { "outcome": { "outcome": "selected", "optionId": "yes" } } }), -32603),
        (json!({ "result": null }), -32603),
        (json!({ "error": { "code": -32601, "message": "Method not found" } }), -32603),
    ] {
        let mut stage = Stage::open().await;
        let (_, question) = asked(&mut stage).await;
        let mut answer = said.clone();
        answer["id"] = question["id"].clone();
        stage.editor.say(&answer).await;
        assert_eq!(stage.agent.hear().await["error"]["code"], code, "{said}");
        assert_eq!(stage.read(GUARDED).await["error"]["code"], -32002, "{said}");
    }
}

#[tokio::test]
async fn a_question_ends_when_nobody_wants_it_any_more() {
    let mut stage = Stage::open().await;
    let (id, question) = asked(&mut stage).await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s1" } });
    stage.editor.say(&cancel).await;
    let mut heard = [stage.agent.hear().await, stage.agent.hear().await];
    heard.sort_by_key(|message| message.get("method").is_some());
    assert_eq!((&heard[0]["id"], &heard[0]["error"]["code"]), (&json!(id), &json!(-32800)));
    assert_eq!(heard[1], cancel);
    let notice = stage.editor.hear().await;
    assert_eq!(
        (&notice["method"], &notice["params"]["requestId"]),
        (&json!("$/cancel_request"), &question["id"])
    );
    // An answer that comes too late is ours, and reaches nobody.
    stage.editor.say(&selected(&question, "allow_once")).await;
    let (id, question) = asked(&mut stage).await;
    stage.agent.say(&json!({ "method": "$/cancel_request", "params": { "requestId": id } })).await;
    assert_eq!(stage.agent.hear().await["error"], json!({ "code": -32800, "message": "Request cancelled" }));
    assert_eq!(stage.editor.hear().await["params"]["requestId"], question["id"]);
    assert_eq!(stage.read(GUARDED).await["error"]["code"], -32002);
}

#[tokio::test]
async fn an_editor_or_an_agent_that_goes_ends_the_question() {
    let mut stage = Stage::open().await;
    let (id, _) = asked(&mut stage).await;
    stage.editor.close();
    let answer = stage.agent.hear().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32800)));
    let mut stage = Stage::open().await;
    asked(&mut stage).await;
    stage.agent.close();
    stage.proxy.await.unwrap().unwrap();
}

#[tokio::test]
async fn where_the_terminal_decides_the_editor_is_not_asked() {
    let mut stage = Stage::opened(BOTH, Asking::Ask, &json!({})).await;
    let answer = stage.write(GUARDED, "x\n").await;
    let said = answer["error"]["data"].as_str().unwrap();
    assert!(said.starts_with("approval_pending: ") && said.contains("stead approvals approve"), "{said}");
}
