//! Tests an ACP editor that offers no file methods but reports its open buffers, whose text the agent reads.

use serde_json::json;
use testkit::engine_fixture::user;

use super::harness::AcpProxyTestHarness;

const LINES: &str = "1\n2\n3\n4\n5\n6\n";

#[tokio::test]
async fn agent_reads_buffers_and_writes_keep_user_edits() {
    let mut harness = AcpProxyTestHarness::initialized().await;
    harness.root_workspace("/ws").put_file("a.txt", LINES);
    let typed = LINES.replace('6', "six");
    let editor = harness.other_caller("/ws", &user("ann"));
    editor.call_ok("buffer.open", json!({ "path": "a.txt", "text": typed }));
    assert_eq!(harness.read_file("/ws/a.txt").await["result"]["content"], typed);
    assert_eq!(harness.write_file("/ws/a.txt", &typed.replace('1', "one")).await["result"], json!({}));
    assert_eq!(harness.read_file("/ws/a.txt").await["result"]["content"], "one\n2\n3\n4\n5\nsix\n");
    let refused = harness.write_file("/ws/a.txt", "one\n2\n3\n4\n5\nSIX\n").await;
    let outcome = refused["error"]["data"].as_str().unwrap();
    assert!(outcome.starts_with("conflict: "), "{outcome}");
    assert_eq!(harness.read_file("/ws/a.txt").await["result"]["content"], "one\n2\n3\n4\n5\nsix\n");
}
