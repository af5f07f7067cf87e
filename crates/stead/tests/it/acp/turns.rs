//! What an agent does at a prompt is a turn, which a person looks at and takes back at a terminal.

use std::fs;

use serde_json::{Value, json};

use super::harness::AcpProcess;
use crate::cli_fixture::CliFixture;

const NINE_LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

/// The editor prompts, and the agent hears what it said.
fn send_prompt(puppet: &mut AcpProcess) {
    let params = json!({ "sessionId": "s1", "prompt": [{ "type": "text", "text": "do it" }] });
    let prompt = json!({ "jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": params });
    puppet.send_from_editor(&prompt);
    assert_eq!(puppet.receive_at_agent(), prompt);
}

#[test]
fn turn_is_reviewed_and_undone_while_the_agent_runs() {
    let bench = CliFixture::new();
    let file = bench.workspace().join("a.txt");
    fs::write(&file, NINE_LINES).unwrap();
    let params = json!({ "cwd": bench.workspace(), "mcpServers": [] });
    let mut puppet = AcpProcess::with_session(&bench.state(), &["--durability", "fast"], &params);
    send_prompt(&mut puppet);
    puppet.read_text_file(&file);
    let first = NINE_LINES.replace('1', "one");
    assert_eq!(puppet.write_text_file(&file, &first)["result"], json!({}));
    send_prompt(&mut puppet);
    let second = first.replace('5', "five");
    assert_eq!(puppet.write_text_file(&file, &second)["result"], json!({}));
    fs::write(&file, second.replace('9', "nine")).unwrap();

    let review: Value = bench.run_successfully(&["review", "--json"]).json();
    assert_eq!((&review["author"], &review["session"]), (&json!("agent:acp"), &json!("s1")), "{review}");
    let hunks = review["files"][0]["hunks"].as_array().unwrap();
    let by: Vec<&Value> = hunks.iter().map(|hunk| &hunk["by"]).collect();
    assert_eq!(by, [&json!(["agent:acp"]), &json!(["agent:acp"]), &json!(["outside"])], "{review}");
    bench.run_successfully(&["reject", "--since", "turn"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), first.replace('9', "nine"));
    // The agent reads what the person made of it, and goes on from there.
    assert_eq!(puppet.read_text_file(&file)["result"]["content"], first.replace('9', "nine"));
}
