//! Tests the published dialects through `stead mcp --dialect` over pipes.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use serde_json::{Value, json};
use testkit::session_fixture::SessionFixture;

use crate::cli_fixture::CliFixture;

struct DialectMcpClient {
    session: SessionFixture,
}

impl DialectMcpClient {
    fn start(fixture: &CliFixture, arguments: &[&str]) -> Self {
        let mut session = fixture.connect(&[&["mcp", "--durability", "fast", "--dialect"], arguments].concat());
        session.initialize(&json!({}));
        Self { session }
    }

    /// Calls a tool, and checks that the text and the error flag of the result agree with the structured content.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.session.call_tool(tool, arguments)["result"].take();
        let object = result["structuredContent"].clone();
        match object.get("for_llm") {
            Some(text) => {
                assert_eq!(&result["content"][0]["text"], text);
                assert_eq!(result["isError"], object["is_error"]);
            }
            None => {
                let text = result["content"][0]["text"].as_str().unwrap();
                assert_eq!(serde_json::from_str::<Value>(text).unwrap(), object);
                assert_eq!(result["isError"], object.get("error").is_some());
            }
        }
        object
    }

    fn call_for_text(&mut self, tool: &str, arguments: &Value) -> String {
        self.call(tool, arguments)["for_llm"].as_str().unwrap().to_owned()
    }

    fn close(self) {
        assert!(self.session.close().is_empty(), "one response per request");
    }
}

#[test]
fn weaver_with_machine_reach_reads_outside_the_workspace() {
    let fixture = CliFixture::new();
    let secret = fixture.directory.path().join("secret.txt");
    std::fs::write(&secret, "top").unwrap();
    symlink(&secret, fixture.workspace().join("leak")).unwrap();
    let mut client = DialectMcpClient::start(&fixture, &["weaver", "--dialect-option", "restrict=false"]);
    assert_eq!(client.call_for_text("read_file", &json!({ "path": "leak" })), "top");
    assert_eq!(client.call_for_text("read_file", &json!({ "path": secret })), "top");
    assert_eq!(
        client.call_for_text("write_file", &json!({ "path": "../up.txt", "content": "NEW" })),
        "File written: ../up.txt"
    );
    assert_eq!(client.call_for_text("write_file", &json!({ "path": "leak", "content": "NEW" })), "File written: leak");
    assert_eq!(std::fs::read(&secret).unwrap(), b"NEW");
    let hidden = client.call("list_dir", &json!({ "path": fixture.state().join("stead") }));
    assert_eq!(hidden["is_error"], true, "{hidden}");
    client.close();
    let states: Vec<_> = std::fs::read_dir(fixture.state().join("stead")).unwrap().map(Result::unwrap).collect();
    let [state] = states.as_slice() else { panic!("expected one state directory") };
    assert!(state.file_name().to_str().unwrap().ends_with("-machine"), "a journal of its own");
    let undo = ["undo", "--reach", "machine", "--principal", "agent:mcp"];
    assert!(fixture.run_successfully(&["log", "--reach", "machine"]).text().contains("up.txt"));
    fixture.run_successfully(&undo);
    assert_eq!(std::fs::read(&secret).unwrap(), b"top");
    fixture.run_successfully(&undo);
    assert!(!fixture.directory.path().join("up.txt").exists());
}

#[test]
fn weaver_stays_inside_the_workspace_by_default() {
    let fixture = CliFixture::new();
    let outside = fixture.directory.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "top").unwrap();
    for (link, target) in [("leak", "secret"), ("dangout", "new.txt"), ("outdir", ".")] {
        symlink(outside.join(target), fixture.workspace().join(link)).unwrap();
    }
    symlink("nowhere", fixture.workspace().join("dangling")).unwrap();
    let mut client = DialectMcpClient::start(&fixture, &["weaver"]);
    let by_link = "access denied: symlink resolves outside workspace";
    for path in ["leak", "dangout", "outdir/new", "outdir/deep/new"] {
        assert_eq!(client.call_for_text("write_file", &json!({ "path": path, "content": "x" })), by_link, "{path}");
        assert_eq!(client.call_for_text("append_file", &json!({ "path": path, "content": "x" })), by_link, "{path}");
        assert_eq!(client.call_for_text("read_file", &json!({ "path": path })), by_link, "{path}");
    }
    let by_name = "access denied: path is outside the workspace";
    for path in ["..", "../outside/secret", "a/../../outside/secret", "/etc/passwd", "/", "../ws2/x"] {
        assert_eq!(client.call_for_text("list_dir", &json!({ "path": path })), by_name, "{path}");
    }
    // A dangling link to a path inside the workspace is followed, and stays a link.
    client.call("write_file", &json!({ "path": "dangling", "content": "x" }));
    assert!(fixture.workspace().join("dangling").is_symlink());
    client.call("write_file", &json!({ "path": "new/deep/f", "content": "x" }));
    let mode = |path: &str| std::fs::metadata(fixture.workspace().join(path)).unwrap().mode() & 0o777;
    assert_eq!((mode("nowhere"), mode("new/deep"), mode("new/deep/f")), (0o644, 0o755, 0o644));
    std::fs::set_permissions(fixture.workspace().join("nowhere"), std::fs::Permissions::from_mode(0o755)).unwrap();
    client.call("append_file", &json!({ "path": "nowhere", "content": "y" }));
    assert_eq!(mode("nowhere"), 0o755, "an existing file keeps its mode");
    client.close();
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    let log = fixture.run_successfully(&["log", "--json"]).text();
    assert!(log.contains("weaver/write_file") && log.contains("path_escape"), "refusals are recorded");
}

#[test]
fn jettson_replies_match_its_documentation() {
    const MIB: usize = 1 << 20;
    let fixture = CliFixture::new();
    let ws = fixture.workspace();
    std::fs::write(ws.join("data.csv"), "id\n").unwrap();
    std::fs::write(ws.join("bad.bin"), b"a\xffb").unwrap();
    std::fs::write(ws.join("exact.txt"), "x".repeat(MIB)).unwrap();
    // The first mebibyte of the file ends in the middle of a character.
    std::fs::write(ws.join("long.txt"), format!("{}ä and more", "x".repeat(MIB - 1))).unwrap();
    std::fs::create_dir(ws.join("scratch")).unwrap();
    symlink("scratch", ws.join("to_dir")).unwrap();
    symlink("data.csv", ws.join("to_file")).unwrap();
    symlink("/etc", ws.join("to_outside")).unwrap();
    let mut client = DialectMcpClient::start(&fixture, &["jettson"]);
    insta::assert_json_snapshot!(client.call("jettson_files_list", &json!({})));
    let read = client.call("jettson_files_read", &json!({ "path": "./scratch/../bad.bin" }));
    assert_eq!(
        read,
        json!({ "path": "./scratch/../bad.bin", "content": "a\u{fffd}b", "size_bytes": 3, "truncated": false })
    );
    assert_eq!(client.call("jettson_files_read", &json!({ "path": "exact.txt" }))["truncated"], false);
    let long = client.call("jettson_files_read", &json!({ "path": "long.txt" }));
    assert_eq!((long["content"].as_str().unwrap().len(), &long["truncated"]), (MIB - 1, &json!(true)));
    assert_eq!(long["size_bytes"], MIB + 10);
    let rejected = |reason: &str| json!({ "error": format!("Jettson Files rejected the operation: {reason}") });
    let escapes = rejected("path escapes /workspace or is empty.");
    for path in ["../etc/passwd", "/", "/tmp/foo", "/workspace/a", "", "a/../..", "to_outside/passwd"] {
        assert_eq!(client.call("jettson_files_read", &json!({ "path": path })), escapes, "{path}");
        assert_eq!(client.call("jettson_files_write", &json!({ "path": path, "content": "x" })), escapes, "{path}");
        assert_eq!(client.call("jettson_files_delete", &json!({ "path": path })), escapes, "{path}");
    }
    let large = "x".repeat(5 * MIB + 1);
    let written = client.call("jettson_files_write", &json!({ "path": "big", "content": large }));
    assert_eq!(written, rejected("content exceeds 5 MB."));
    let written = client.call("jettson_files_write", &json!({ "path": "big", "content": &large[1..] }));
    assert_eq!(written, json!({ "path": "big", "bytes_written": 5 * MIB }));
    for (path, reason) in [
        ("scratch", "scratch is a directory — use Jettson Shell with rmdir for that."),
        (".", ". is a directory — use Jettson Shell with rmdir for that."),
        ("gone", "no such file: gone"),
    ] {
        assert_eq!(client.call("jettson_files_delete", &json!({ "path": path })), rejected(reason));
    }
    let deleted = client.call("jettson_files_delete", &json!({ "path": "to_dir" }));
    assert_eq!(deleted, json!({ "path": "to_dir", "deleted": true }));
    assert!(ws.join("scratch").is_dir() && !ws.join("to_dir").is_symlink(), "the link went, not its target");
    client.close();
}
