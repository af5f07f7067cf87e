//! Tests that each prompt starts a turn, so that a person can review and undo the work of one turn.

use serde_json::{Value, json};
use stead_engine::{Error, ErrorKind, JournalEntryQuery, Version, Workspace};
use testkit::engine_fixture::user;

use super::harness::AcpProxyTestHarness;

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

fn prompt_line(session: &str) -> String {
    format!(
        r#"{{"params": {{"prompt":[ {{"type":"text","text":"\u0064o it"}} ],"sessionId":"{session}","n":1.50}},"method":"session/prompt","id":"p","jsonrpc":"2.0"}}"#
    )
}

async fn send_prompt(harness: &mut AcpProxyTestHarness, session: &str) {
    let line = prompt_line(session);
    harness.editor.send_raw(&line).await;
    assert_eq!(harness.agent.receive_raw().await, line);
}

fn recorded_operations(harness: &AcpProxyTestHarness, root: &str) -> Vec<(String, String)> {
    let filter = JournalEntryQuery { limit: 99, ..JournalEntryQuery::default() };
    let mut entries: Vec<_> =
        harness.root_workspace(root).entries(&filter).unwrap().into_iter().map(|stored| stored.entry).collect();
    entries.sort_by_key(|entry| entry.number);
    let told = entries.into_iter().filter(|entry| ["turn", "write"].contains(&entry.operation.as_str()));
    told.map(|entry| (entry.operation, format!("{} {}", entry.caller.principal, entry.caller.session))).collect()
}

fn file_text(harness: &AcpProxyTestHarness, path: &str) -> String {
    String::from_utf8(harness.root_workspace("/ws").bytes(path).unwrap()).unwrap()
}

#[tokio::test]
async fn undo_turn_reverts_only_the_last_turn() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    harness.root_workspace("/ws").put_file("a.txt", LINES);
    send_prompt(&mut harness, "s1").await;
    harness.read_file("/ws/a.txt").await;
    let first = LINES.replace('1', "one");
    assert_eq!(harness.write_file("/ws/a.txt", &first).await["result"], json!({}));
    send_prompt(&mut harness, "s1").await;
    let second = first.replace('5', "five");
    assert_eq!(harness.write_file("/ws/a.txt", &second).await["result"], json!({}));
    assert_eq!(harness.write_file("/ws/b.txt", "new\n").await["result"], json!({}));
    let who = || "agent:tester s1".to_owned();
    let order = ["turn", "write", "turn", "write", "write"].map(|operation| (operation.to_owned(), who()));
    assert_eq!(recorded_operations(&harness, "/ws"), order);

    let person = harness.other_caller("/ws", &user("ann"));
    let base = Version::hash_bytes(second.as_bytes()).to_string();
    person.call_ok("write", json!({ "path": "a.txt", "content": second.replace('9', "nine"), "base": base }));
    let review = person.call_ok("review", json!({ "path": "a.txt" }));
    assert_eq!((&review["author"], &review["session"]), (&json!("agent:tester"), &json!("s1")));
    let hunks = review["files"][0]["hunks"].as_array().unwrap();
    let by: Vec<&Value> = hunks.iter().map(|hunk| &hunk["by"]).collect();
    assert_eq!(by, [&json!(["agent:tester"]), &json!(["agent:tester"]), &json!(["user:ann"])], "{review:?}");
    let review = person.call_ok("review", json!({ "since": "turn" }));
    let of_turn: Vec<&Value> = review["files"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(of_turn, ["a.txt", "b.txt"]);
    assert_eq!(review["files"][0]["hunks"].as_array().unwrap().len(), 2, "{review:?}");

    person.call_ok("reject", json!({ "since": "turn" }));
    assert_eq!(file_text(&harness, "a.txt"), first.replace('9', "nine"));
    assert_eq!(harness.root_workspace("/ws").bytes("b.txt"), None);
}

#[tokio::test]
async fn failed_turn_mark_does_not_block_the_prompt() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    harness.root_workspace("/ws").fail_next(Error::new(ErrorKind::Io, "the disk is gone"));
    send_prompt(&mut harness, "s1").await;
    // Only the turn mark failed; the write did not wait for another mark.
    assert_eq!(harness.write_file("/ws/a.txt", "x\n").await["result"], json!({}));
    assert_eq!(file_text(&harness, "a.txt"), "x\n");
    let filter = JournalEntryQuery { operation: Some("turn".to_owned()), limit: 9, ..JournalEntryQuery::default() };
    let marks = harness.root_workspace("/ws").entries(&filter).unwrap();
    let reasons: Vec<Option<&str>> = marks.iter().map(|mark| mark.entry.reason.as_deref()).collect();
    assert_eq!(reasons, [Some("io_error")]);
    send_prompt(&mut harness, "nobody's").await;
    assert_eq!(harness.write_file("/ws/a.txt", "y\n").await["result"], json!({}));
}

#[tokio::test]
async fn turn_mark_covers_all_roots_of_one_session() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    let params = json!({ "cwd": "/ws", "additionalDirectories": ["/more"], "mcpServers": [] });
    harness.create_session("s2", &params).await;
    send_prompt(&mut harness, "s2").await;
    let write = json!({ "sessionId": "s2", "path": "/more/a.txt", "content": "x\n" });
    assert_eq!(harness.call_from_agent("fs/write_text_file", write).await["result"], json!({}));
    let mark = ("turn".to_owned(), "agent:tester s2".to_owned());
    assert_eq!(recorded_operations(&harness, "/ws"), std::slice::from_ref(&mark));
    assert_eq!(recorded_operations(&harness, "/more"), [mark.clone(), ("write".to_owned(), mark.1)]);
}
