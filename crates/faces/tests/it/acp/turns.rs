//! Prompts begin turns, so that a person sees what the agent did and takes back one turn of it.

use engine::{Call, Caller, Engine, EntryFilter, Failure, Kind, Principal, Version, Workspace};
use serde_json::{Value, json};

use super::stage::Stage;

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

/// What a person asks the workspace of a root.
fn person(stage: &Stage, root: &str, operation: &str, arguments: &Value) -> Result<Value, Failure> {
    let person = Caller::new(Principal::User("ann".to_owned()), "desk", "cli");
    let arguments = arguments.as_object().unwrap().clone();
    Engine::new(stage.root(root))
        .call(&Call::new(&person, operation, arguments))
        .map(|answer| answer.json.into())
}

fn prompt(session: &str) -> String {
    format!(
        r#"{{"params": {{"prompt":[ {{"type":"text","text":"\u0064o it"}} ],"sessionId":"{session}","n":1.50}},"method":"session/prompt","id":"p","jsonrpc":"2.0"}}"#
    )
}

/// The editor prompts; the agent hears the very same line.
async fn prompted(stage: &mut Stage, session: &str) {
    let line = prompt(session);
    stage.editor.say_raw(&line).await;
    assert_eq!(stage.agent.hear_raw().await, line);
}

/// Operations and sessions of the marks and writes in a journal, oldest first.
fn recorded(stage: &Stage, root: &str) -> Vec<(String, String)> {
    let filter = EntryFilter { limit: 99, ..EntryFilter::default() };
    let mut entries: Vec<_> =
        stage.root(root).entries(&filter).unwrap().into_iter().map(|stored| stored.entry).collect();
    entries.sort_by_key(|entry| entry.number);
    let told = entries.into_iter().filter(|entry| ["turn", "write"].contains(&entry.operation.as_str()));
    told.map(|entry| (entry.operation, format!("{} {}", entry.caller.principal, entry.caller.session)))
        .collect()
}

fn bytes(stage: &Stage, path: &str) -> String {
    String::from_utf8(stage.root("/ws").bytes(path).unwrap()).unwrap()
}

#[tokio::test]
async fn a_person_takes_back_the_last_turn_and_nothing_else() {
    let mut stage = Stage::open().await;
    stage.root("/ws").put_file("a.txt", LINES);
    prompted(&mut stage, "s1").await;
    stage.read("/ws/a.txt").await;
    let first = LINES.replace('1', "one");
    assert_eq!(stage.write("/ws/a.txt", &first).await["result"], json!({}));
    prompted(&mut stage, "s1").await;
    let second = first.replace('5', "five");
    assert_eq!(stage.write("/ws/a.txt", &second).await["result"], json!({}));
    assert_eq!(stage.write("/ws/b.txt", "new\n").await["result"], json!({}));
    let who = || "agent:tester s1".to_owned();
    let order = ["turn", "write", "turn", "write", "write"].map(|operation| (operation.to_owned(), who()));
    assert_eq!(recorded(&stage, "/ws"), order);

    let edit = json!({ "path": "a.txt", "content": second.replace('9', "nine"), "base": Version::of(second.as_bytes()).to_string() });
    person(&stage, "/ws", "write", &edit).unwrap();
    let review = person(&stage, "/ws", "review", &json!({ "path": "a.txt" })).unwrap();
    assert_eq!((&review["author"], &review["session"]), (&json!("agent:tester"), &json!("s1")));
    let hunks = review["files"][0]["hunks"].as_array().unwrap();
    let by: Vec<&Value> = hunks.iter().map(|hunk| &hunk["by"]).collect();
    assert_eq!(by, [&json!(["agent:tester"]), &json!(["agent:tester"]), &json!(["user:ann"])], "{review}");
    let review = person(&stage, "/ws", "review", &json!({ "since": "turn" })).unwrap();
    let of_turn: Vec<&Value> = review["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(of_turn, ["a.txt", "b.txt"]);
    assert_eq!(review["files"][0]["hunks"].as_array().unwrap().len(), 2, "{review}");

    person(&stage, "/ws", "reject", &json!({ "since": "turn" })).unwrap();
    assert_eq!(bytes(&stage, "a.txt"), first.replace('9', "nine"));
    assert_eq!(stage.root("/ws").bytes("b.txt"), None);
}

#[tokio::test]
async fn a_mark_that_fails_changes_nothing_for_the_prompt() {
    let mut stage = Stage::open().await;
    stage.root("/ws").fail_next(Failure::new(Kind::Io, "the disk is gone"));
    prompted(&mut stage, "s1").await;
    // The mark took the failure upon itself, and the write did not wait for another.
    assert_eq!(stage.write("/ws/a.txt", "x\n").await["result"], json!({}));
    assert_eq!(bytes(&stage, "a.txt"), "x\n");
    let filter = EntryFilter { operation: Some("turn".to_owned()), limit: 9, ..EntryFilter::default() };
    let marks = stage.root("/ws").entries(&filter).unwrap();
    let reasons: Vec<Option<&str>> = marks.iter().map(|mark| mark.entry.reason.as_deref()).collect();
    assert_eq!(reasons, [Some("io_error")]);
    prompted(&mut stage, "nobody's").await;
    assert_eq!(stage.write("/ws/a.txt", "y\n").await["result"], json!({}));
}

#[tokio::test]
async fn every_root_of_the_session_is_marked_and_no_other_session() {
    let mut stage = Stage::open().await;
    let params = json!({ "cwd": "/ws", "additionalDirectories": ["/more"], "mcpServers": [] });
    stage.session("s2", &params).await;
    prompted(&mut stage, "s2").await;
    let write = json!({ "sessionId": "s2", "path": "/more/a.txt", "content": "x\n" });
    assert_eq!(stage.call("fs/write_text_file", write).await["result"], json!({}));
    let mark = ("turn".to_owned(), "agent:tester s2".to_owned());
    assert_eq!(recorded(&stage, "/ws"), std::slice::from_ref(&mark));
    assert_eq!(recorded(&stage, "/more"), [mark.clone(), ("write".to_owned(), mark.1)]);
}
