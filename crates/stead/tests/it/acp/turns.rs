//! Tests that a person can review and revert the changes that an agent made after a prompt.

use std::fs;

use serde_json::{Value, json};

use super::harness::AcpProxyTestProcess;
use crate::cli_fixture::CliFixture;

const NINE_LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

fn send_prompt(proxy: &mut AcpProxyTestProcess) {
    let params = json!({ "sessionId": "s1", "prompt": [{ "type": "text", "text": "do it" }] });
    let prompt = json!({ "jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": params });
    proxy.send_from_editor(&prompt);
    assert_eq!(proxy.receive_at_agent(), prompt);
}

#[test]
fn turn_is_reviewed_and_undone_while_the_agent_runs() {
    let fixture = CliFixture::new();
    let file = fixture.workspace().join("a.txt");
    fs::write(&file, NINE_LINES).unwrap();
    let params = json!({ "cwd": fixture.workspace(), "mcpServers": [] });
    let mut proxy = AcpProxyTestProcess::with_session(&fixture.state(), &["--durability", "fast"], &params);
    send_prompt(&mut proxy);
    proxy.read_text_file(&file);
    let first = NINE_LINES.replace('1', "one");
    assert_eq!(proxy.write_text_file(&file, &first)["result"], json!({}));
    send_prompt(&mut proxy);
    let second = first.replace('5', "five");
    assert_eq!(proxy.write_text_file(&file, &second)["result"], json!({}));
    fs::write(&file, second.replace('9', "nine")).unwrap();

    let review: Value = fixture.run_successfully(&["review", "--json"]).json();
    assert_eq!((&review["author"], &review["session"]), (&json!("agent:acp"), &json!("s1")), "{review}");
    let hunks = review["files"][0]["hunks"].as_array().unwrap();
    let by: Vec<&Value> = hunks.iter().map(|hunk| &hunk["by"]).collect();
    assert_eq!(by, [&json!(["agent:acp"]), &json!(["agent:acp"]), &json!(["outside"])], "{review}");
    fixture.run_successfully(&["reject", "--since", "turn"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), first.replace('9', "nine"));
    assert_eq!(proxy.read_text_file(&file)["result"]["content"], first.replace('9', "nine"));
}
