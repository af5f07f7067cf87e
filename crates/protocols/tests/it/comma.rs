//! Tests of the comma dialect over MCP that the examples of its definition do not cover.

use serde_json::{Value, json};
use stead_engine::Version;

use crate::test_client::JsonLinesTestClient;

async fn open_client(options: &[&str], files: &[(&str, &str)]) -> JsonLinesTestClient {
    let mut client = JsonLinesTestClient::uninitialized_with_dialect("comma", options);
    client.initialize("2025-11-25").await;
    for (path, content) in files {
        client.workspace.put_file(path, content);
    }
    client
}

async fn call_and_check(client: &mut JsonLinesTestClient, tool: &str, arguments: Value) -> Value {
    let answer = client.call_tool(tool, arguments).await;
    let (result, envelope) = (&answer["result"], &answer["result"]["structuredContent"]);
    assert_eq!(result["isError"], !envelope["ok"].as_bool().unwrap(), "{answer}");
    let output = envelope["output"].as_str().unwrap();
    let error = &envelope["error"];
    let expected = match (error["recoverable"] == true, error["suggestedNextAction"].as_str()) {
        (true, Some(next)) => format!("{output}\n\nNext step: {next}"),
        (_, _) => output.to_owned(),
    };
    assert_eq!(result["content"][0]["text"], expected);
    envelope.clone()
}

async fn error_kind(client: &mut JsonLinesTestClient, tool: &str, arguments: Value) -> String {
    let envelope = call_and_check(client, tool, arguments).await;
    envelope["error"]["kind"].as_str().unwrap_or("ok").to_owned()
}

async fn file_content(client: &mut JsonLinesTestClient, path: &str) -> Value {
    call_and_check(client, "read_file", json!({ "path": path })).await["data"]["content"].clone()
}

fn sha256_hex(text: &str) -> String {
    Version::hash_bytes(text.as_bytes()).to_string()
}

#[tokio::test]
async fn deleted_file_is_restored_once_by_handle() {
    let mut client = open_client(&[], &[("d/del.txt", "bye\n")]).await;
    let deleted = call_and_check(&mut client, "delete_file", json!({ "path": "d/del.txt" })).await;
    let handle = deleted["data"]["trashedTo"].as_str().unwrap().to_owned();
    assert!(handle.starts_with("/trash/") && handle.ends_with("/del.txt"), "{handle}");
    assert_eq!(error_kind(&mut client, "read_file", json!({ "path": "d/del.txt" })).await, "not_found");
    let restored = call_and_check(&mut client, "restore_file", json!({ "trashedPath": handle })).await;
    assert_eq!(restored["data"], json!({ "restored": true, "path": "d/del.txt", "from": handle, "sizeBytes": 4 }));
    assert_eq!(file_content(&mut client, "d/del.txt").await, "bye\n");
    assert_eq!(error_kind(&mut client, "restore_file", json!({ "trashedPath": handle })).await, "not_found");
    for foreign in ["/etc/passwd", "../x.tar.gz", "/trash/", "/trash/../../etc/passwd"] {
        assert_eq!(
            error_kind(&mut client, "restore_file", json!({ "trashedPath": foreign })).await,
            "not_found",
            "{foreign}"
        );
    }
    client.close().await;
}

#[tokio::test]
async fn overwritten_move_target_goes_to_trash() {
    let mut client = open_client(&[], &[("a.txt", "new"), ("b.txt", "old")]).await;
    let overwrite =
        json!({ "fromPath": "a.txt", "toPath": "b.txt", "expectedSha256": sha256_hex("new"), "overwrite": true });
    let moved = call_and_check(&mut client, "move_file", overwrite).await;
    let handle = moved["data"]["overwroteTrashedTo"].clone();
    assert_eq!(file_content(&mut client, "b.txt").await, "new");
    let restore = json!({ "trashedPath": handle, "targetPath": "c.txt" });
    assert_eq!(error_kind(&mut client, "restore_file", restore).await, "ok");
    assert_eq!(file_content(&mut client, "c.txt").await, "old");
    client.close().await;
}

#[tokio::test]
async fn refused_move_names_the_obstacle() {
    let mut client = open_client(&[], &[("a.txt", "a"), ("d/x", "x")]).await;
    client.workspace.put_link("l", "a.txt");
    let mut errors = Vec::new();
    for (from, to, overwrite) in [
        ("l", "m", false),
        ("d", "m", false),
        ("a.txt", ".env", false),
        ("a.txt", "./d/../.env", true),
        (".env", "m", false),
        ("a.txt", "./a.txt", true),
        ("a.txt", "./a.txt", false),
        ("a.txt", "l", true),
        ("a.txt", "l", false),
        ("a.txt", "d/x", false),
    ] {
        let call = json!({ "fromPath": from, "toPath": to, "expectedSha256": sha256_hex("a"), "overwrite": overwrite });
        let envelope = call_and_check(&mut client, "move_file", call).await;
        errors.push(json!({ "from": from, "to": to, "overwrite": overwrite, "error": envelope["error"] }));
    }
    insta::assert_json_snapshot!(errors);
    let refused =
        call_and_check(&mut client, "delete_file", json!({ "path": "l", "expectedSha256": sha256_hex("a") })).await;
    assert_eq!(refused["error"]["message"], "Path is a symbolic link, not a file: l");
    client.close().await;
}

#[tokio::test]
async fn file_deleted_by_patch_can_be_restored() {
    let mut client = open_client(&[], &[("a.txt", "a\n")]).await;
    let patch = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch";
    let applied = call_and_check(&mut client, "apply_patch", json!({ "patch": patch })).await;
    let handle = applied["data"]["changedFiles"][0]["trashedTo"].clone();
    assert_eq!(error_kind(&mut client, "restore_file", json!({ "trashedPath": handle })).await, "ok");
    assert_eq!(file_content(&mut client, "a.txt").await, "a\n");
    client.close().await;
}

#[tokio::test]
async fn arguments_of_the_document_work_unless_the_original_code_is_selected() {
    let parents = json!({ "path": "new/f.txt", "content": "x", "createParents": true });
    let all = json!({ "path": "a.txt", "expectedSha256": sha256_hex("x x"),
        "edits": [{ "oldText": "x", "newText": "y", "replaceAll": true }] });
    for (options, created, edited) in [(&[][..], "ok", "ok"), (&["origin=exact"], "not_found", "multiple_matches")] {
        let mut client = open_client(options, &[("a.txt", "x x")]).await;
        assert_eq!(error_kind(&mut client, "create_file", parents.clone()).await, created);
        assert_eq!(error_kind(&mut client, "edit_file", all.clone()).await, edited);
        client.close().await;
    }
}

#[tokio::test]
async fn edits_need_hash_and_exact_text_by_default() {
    let edit = json!({ "path": "a.txt", "edits": [{ "oldText": "let x = 1;", "newText": "let x = 2;" }] });
    for (options, expected) in [
        (&[][..], "unknown"),
        (&["edit_hash=optional"], "old_text_not_found"),
        (&["edit_hash=optional", "fuzzy=true"], "ok"),
        (&["origin=exact"], "ok"),
        (&["origin=exact", "fuzzy=false"], "old_text_not_found"),
        (&["origin=exact", "edit_hash=required"], "unknown"),
    ] {
        let mut client = open_client(options, &[("a.txt", "let   x =  1;\n")]).await;
        assert_eq!(error_kind(&mut client, "edit_file", edit.clone()).await, expected, "{options:?}");
        client.close().await;
    }
}

#[tokio::test]
async fn settings_restrict_paths() {
    let files = [(".env", "secret"), ("src/a.rs", "a"), ("doc/b.md", "b"), ("x.lock", "l")];
    for (options, reads, writes) in [
        (&[][..], ["permission_denied", "ok", "ok", "ok"], ["permission_denied", "ok", "ok", "ok"]),
        (&["forbidden_globs=none"], ["ok"; 4], ["ok"; 4]),
        (
            &["forbidden_globs=src/**,*.lock"],
            ["ok", "permission_denied", "ok", "permission_denied"],
            ["ok", "permission_denied", "ok", "permission_denied"],
        ),
        (
            &["write_deny=**/*.lock,doc/**"],
            ["permission_denied", "ok", "ok", "ok"],
            ["permission_denied", "ok", "permission_denied", "permission_denied"],
        ),
        (
            &["read_deny=doc/**"],
            ["permission_denied", "ok", "permission_denied", "ok"],
            ["permission_denied", "ok", "permission_denied", "ok"],
        ),
        (
            &["write_allow=src"],
            ["permission_denied", "ok", "ok", "ok"],
            ["permission_denied", "ok", "permission_denied", "permission_denied"],
        ),
        (&["write_allow=none"], ["permission_denied", "ok", "ok", "ok"], ["permission_denied"; 4]),
        (
            &["read_allow=src,doc", "forbidden_globs=none"],
            ["permission_denied", "ok", "ok", "permission_denied"],
            ["ok"; 4],
        ),
    ] {
        let mut client = open_client(options, &files).await;
        for (index, (path, before)) in files.iter().enumerate() {
            assert_eq!(
                error_kind(&mut client, "read_file", json!({ "path": path })).await,
                reads[index],
                "{options:?} {path}"
            );
            let write = json!({ "path": path, "content": "new", "expectedSha256": sha256_hex(before) });
            assert_eq!(error_kind(&mut client, "write_file", write).await, writes[index], "{options:?} {path}");
        }
        client.close().await;
    }
}

#[tokio::test]
async fn absolute_paths_need_a_setting_and_must_be_inside_the_workspace() {
    let inside = json!({ "path": "/ws/a.txt" });
    for (options, expected) in [(&[][..], "outside_workspace"), (&["allow_absolute=true"], "ok")] {
        let mut client = open_client(options, &[("a.txt", "a")]).await;
        assert_eq!(error_kind(&mut client, "read_file", inside.clone()).await, expected);
        assert_eq!(error_kind(&mut client, "read_file", json!({ "path": "/etc/passwd" })).await, "outside_workspace");
        assert_eq!(
            error_kind(&mut client, "read_file", json!({ "path": "../../etc/passwd" })).await,
            "outside_workspace"
        );
        client.close().await;
    }
}

#[tokio::test]
async fn binary_file_is_reported_and_sent_as_base64_on_request() {
    let mut client = open_client(&[], &[("b", "\0a")]).await;
    let refused = call_and_check(&mut client, "read_file", json!({ "path": "b" })).await;
    assert_eq!(
        (&refused["error"]["kind"], &refused["data"]["sha256"]),
        (&json!("binary_file"), &json!(sha256_hex("\0a")))
    );
    let whole = call_and_check(&mut client, "read_file", json!({ "path": "b", "allowBinary": true })).await;
    assert_eq!(whole["data"]["contentBase64"], "AGE=");
    client.close().await;
}

#[tokio::test]
async fn read_is_truncated_at_a_character_boundary() {
    let mut client = open_client(&[], &[("a.txt", "héé")]).await;
    for (max_bytes, expected, truncated) in [(1, "h", true), (3, "hé", true), (4, "hé", true), (5, "héé", false)] {
        let read = json!({ "path": "a.txt", "maxBytes": max_bytes });
        let data = call_and_check(&mut client, "read_file", read).await["data"].clone();
        assert_eq!((&data["content"], &data["truncated"]), (&json!(expected), &json!(truncated)), "{max_bytes}");
    }
    client.close().await;
}
