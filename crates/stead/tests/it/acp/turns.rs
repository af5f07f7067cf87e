//! What an agent does at a prompt is a turn, which a person looks at and takes back at a terminal.

use std::fs;

use serde_json::{Value, json};

use super::puppet::Puppet;
use crate::bench::Bench;

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

/// The editor prompts, and the agent hears what it said.
fn prompt(puppet: &mut Puppet) {
    let params = json!({ "sessionId": "s1", "prompt": [{ "type": "text", "text": "do it" }] });
    let prompt = json!({ "jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": params });
    puppet.editor(&prompt);
    assert_eq!(puppet.agent_hears(), prompt);
}

#[test]
fn a_turn_is_reviewed_and_taken_back_while_the_agent_is_there() {
    let bench = Bench::new();
    let file = bench.workspace().join("a.txt");
    fs::write(&file, LINES).unwrap();
    let params = json!({ "cwd": bench.workspace(), "mcpServers": [] });
    let mut puppet = Puppet::with_session(&bench.state(), &["--durability", "fast"], &params);
    prompt(&mut puppet);
    puppet.read(&file);
    let first = LINES.replace('1', "one");
    assert_eq!(puppet.write(&file, &first)["result"], json!({}));
    prompt(&mut puppet);
    let second = first.replace('5', "five");
    assert_eq!(puppet.write(&file, &second)["result"], json!({}));
    fs::write(&file, second.replace('9', "nine")).unwrap();

    let review: Value = bench.ok(&["review", "--json"]).json();
    assert_eq!((&review["author"], &review["session"]), (&json!("agent:acp"), &json!("s1")), "{review}");
    let hunks = review["files"][0]["hunks"].as_array().unwrap();
    let by: Vec<&Value> = hunks.iter().map(|hunk| &hunk["by"]).collect();
    assert_eq!(by, [&json!(["agent:acp"]), &json!(["agent:acp"]), &json!(["outside"])], "{review}");
    bench.ok(&["reject", "--since", "turn"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), first.replace('9', "nine"));
    // The agent reads what the person made of it, and goes on from there.
    assert_eq!(puppet.read(&file)["result"]["content"], first.replace('9', "nine"));
}
