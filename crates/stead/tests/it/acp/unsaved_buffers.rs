//! Tests an editor that reports its open buffers over JSON-RPC while an agent works on the same files.

use std::fs;

use serde_json::json;
use testkit::session_fixture::SessionFixture;

use super::harness::AcpProxyTestProcess;
use crate::cli_fixture::CliFixture;

const NINE_LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

fn connect_editor(fixture: &CliFixture) -> SessionFixture {
    fixture.connect(&["rpc", "--principal", "user:ann", "--durability", "fast"])
}

#[test]
fn unsaved_buffer_is_visible_and_survives_an_editor_crash() {
    let fixture = CliFixture::new();
    let file = fixture.workspace().join("a.txt");
    fs::write(&file, NINE_LINES).unwrap();
    let params = json!({ "cwd": fixture.workspace(), "mcpServers": [] });
    let mut proxy = AcpProxyTestProcess::with_session(&fixture.state(), &["--durability", "fast"], &params);
    let mut editor = connect_editor(&fixture);
    let typed = NINE_LINES.replace('9', "nine");
    editor.request_ok("buffer.open", &json!({ "path": "a.txt", "text": typed }));
    assert_eq!(proxy.read_text_file(&file)["result"]["content"], typed);
    // A write to other lines changes both the file and the buffer, and leaves the unsaved text out of the file.
    assert!(proxy.write_text_file(&file, &typed.replace('1', "one")).get("result").is_some());
    assert_eq!(fs::read_to_string(&file).unwrap(), NINE_LINES.replace('1', "one"));
    let held = editor.request_ok("buffer.list", &json!({ "path": "a.txt" }));
    assert_eq!(held["buffers"][0]["text"], typed.replace('1', "one"), "{held}");
    // A write to the lines that the person edits is refused and changes nothing.
    let refused = proxy.write_text_file(&file, &typed.replace("nine", "NINE"));
    assert!(refused["error"]["data"].as_str().unwrap().starts_with("conflict: "), "{refused}");
    assert_eq!(fs::read_to_string(&file).unwrap(), NINE_LINES.replace('1', "one"));
    editor.request_ok("buffer.close", &json!({ "path": "a.txt" }));
    assert_eq!(proxy.read_text_file(&file)["result"]["content"], NINE_LINES.replace('1', "one"));
    // After the editor crashes, agents no longer read its unsaved text, which is kept as a draft.
    editor.request_ok("buffer.open", &json!({ "path": "a.txt", "text": NINE_LINES.replace('5', "five") }));
    assert_eq!(proxy.read_text_file(&file)["result"]["content"], NINE_LINES.replace('5', "five"));
    drop(editor);
    assert_eq!(proxy.read_text_file(&file)["result"]["content"], NINE_LINES.replace('1', "one"));
    let mut editor = connect_editor(&fixture);
    editor.request_ok("buffer.open", &json!({ "path": "a.txt" }));
    assert_eq!(proxy.read_text_file(&file)["result"]["content"], NINE_LINES.replace('5', "five"));
}
