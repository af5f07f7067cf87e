//! Tests of prompts, path completions, and directories as resources over MCP.

use serde_json::{Value, json};
use stead_engine::{Caller, Grants, Principal};
use testkit::engine_fixture::{EngineFixture, rel_path};

use crate::test_client::{JsonLinesTestClient, load_dialects};

/// The number of test files, chosen so that a listing of them needs more than one page.
const FILE_COUNT: usize = 400;

async fn complete_path(client: &mut JsonLinesTestClient, value: &str) -> Value {
    let reference = json!({ "type": "ref/resource", "uri": "stead:///{+path}" });
    let params = json!({ "ref": reference, "argument": { "name": "path", "value": value } });
    let mut answer = client.request("completion/complete", params).await;
    answer["result"]["completion"].take()
}

#[tokio::test]
async fn guide_prompt_shows_definition_and_named_path() {
    for dialect in stead_protocols::dialect::dialect_names() {
        let mut client = JsonLinesTestClient::initialized_with_dialect(dialect).await;
        let listed = client.request("prompts/list", json!({})).await;
        let name = listed["result"]["prompts"][0]["name"].as_str().unwrap().to_owned();
        let guide = client.request("prompts/get", json!({ "name": name })).await;
        let text = guide["result"]["messages"][0]["content"]["text"].as_str().unwrap().to_owned();
        let listed = client.request("tools/list", json!({})).await;
        for tool in listed["result"]["tools"].as_array().unwrap() {
            let line = format!("\n- {}: ", tool["name"].as_str().unwrap());
            assert!(text.contains(&line), "{dialect}: {line} in {text}");
        }
        client.close().await;
    }
    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    client.write_as_other("d/a b.txt", "one\n");
    let named = json!({ "name": "stead_guide", "arguments": { "path": "d/a b.txt" } });
    let guide = client.request("prompts/get", named).await;
    let shown = &guide["result"]["messages"][1]["content"]["resource"];
    assert_eq!((&shown["text"], &shown["uri"]), (&json!("one\n"), &json!("stead:///d/a%20b.txt")), "{guide}");
    for wrong in [json!({ "path": "../x" }), json!({ "path": "nowhere" }), json!({ "path": 7 })] {
        let refused = client.request("prompts/get", json!({ "name": "stead_guide", "arguments": wrong })).await;
        assert!(refused["error"]["code"].is_number(), "{wrong}: {refused}");
    }
    let unknown = client.request("prompts/get", json!({ "name": "no_guide" })).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    client.close().await;
}

#[tokio::test]
async fn paths_complete_from_prefix() {
    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    for name in ["src/main.rs", "src/map/a.rs", "src/map2.rs", "src/lib.rs", "sr", ".hidden", "notes.txt"] {
        client.write_as_other(name, "x\n");
    }
    for number in 0..150 {
        client.workspace.put_file(&format!("many/n{number:03}"), "x\n");
    }
    for (typed, expected) in [
        ("", json!(["many/", "notes.txt", "sr", "src/"])),
        ("s", json!(["sr", "src/"])),
        ("sr", json!(["sr", "src/"])),
        ("src", json!(["src/"])),
        ("src/ma", json!(["src/main.rs", "src/map/", "src/map2.rs"])),
        ("src/map", json!(["src/map/", "src/map2.rs"])),
        ("src/zz", json!([])),
        (".", json!([".hidden"])),
        ("../", json!([])),
        ("nowhere/", json!([])),
        ("notes.txt/", json!([])),
    ] {
        let offered = complete_path(&mut client, typed).await;
        assert_eq!(offered["values"], expected, "{typed}");
        assert_eq!(offered["hasMore"], false, "{typed}");
    }
    let many = complete_path(&mut client, "many/n").await;
    assert_eq!((many["values"].as_array().unwrap().len(), &many["hasMore"]), (100, &json!(true)));
    let argument = json!({ "name": "path", "value": "no" });
    let of_a_guide = json!({ "ref": { "type": "ref/prompt", "name": "stead_guide" }, "argument": argument });
    let offered = client.request("completion/complete", of_a_guide).await;
    assert_eq!(offered["result"]["completion"]["values"], json!(["notes.txt"]), "{offered}");
    client.close().await;
}

#[tokio::test]
async fn completion_hides_unlistable_paths() {
    let names = ["open/a.txt", "open/b.txt", "secret/plan.txt", "secretary.txt"];
    let fixture = EngineFixture::with_files(&names.map(|name| (name, "x\n")));
    let mut caller = Caller::new(Principal::Agent("narrow".to_owned()), "narrow", "mcp");
    caller.grants = Grants { readable: vec![rel_path("open")], ..Grants::default() };
    let mut client = JsonLinesTestClient::over_engine(fixture.engine, caller, load_dialects(&["stead"], &[]));
    client.initialize("2025-11-25").await;
    assert_eq!(complete_path(&mut client, "open/").await["values"], json!(["open/a.txt", "open/b.txt"]));
    for typed in ["secret/", "secret/p", "secret/plan.txt", "secretary.txt", "secre"] {
        assert_eq!(complete_path(&mut client, typed).await["values"], json!([]), "{typed}");
    }
    let read = client.request("resources/directory/read", json!({ "uri": "stead:///secret" })).await;
    assert_eq!(read["error"]["code"], -32602, "{read}");
    client.close().await;
}

#[tokio::test]
async fn directory_resources_are_paged() {
    let mut client = JsonLinesTestClient::initialized("2025-11-25").await;
    client.write_as_other("d/a b.txt", "one\n");
    client.write_as_other("d/e/c.txt", "two\n");
    let read = client.request("resources/directory/read", json!({ "uri": "stead:///d" })).await;
    assert_eq!(
        read["result"],
        json!({ "resources": [
            { "uri": "stead:///d/a%20b.txt", "name": "a b.txt", "size": 4 },
            { "uri": "stead:///d/e", "name": "e", "mimeType": "inode/directory" }
        ] })
    );
    for uri in ["stead:///d/a%20b.txt", "stead:///nowhere", "stead:///../x", "other:x"] {
        let refused = client.request("resources/directory/read", json!({ "uri": uri })).await;
        assert_ne!(refused["error"]["code"], Value::Null, "{uri}: {refused}");
    }
    let long = "n".repeat(200);
    for number in 0..FILE_COUNT {
        client.workspace.put_file(&format!("many/{long}{number:04}"), "x\n");
    }
    let (mut names, mut cursor, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let mut params = json!({ "uri": "stead:///many" });
        if !cursor.is_null() {
            params["cursor"] = cursor;
        }
        let mut page = client.request("resources/directory/read", params).await;
        let children = page["result"]["resources"].as_array().unwrap();
        names.extend(children.iter().map(|child| child["name"].as_str().unwrap().to_owned()));
        cursor = page["result"]["nextCursor"].take();
        pages += 1;
        if cursor.is_null() {
            break;
        }
    }
    assert!(pages > 1, "one page holds them all");
    names.dedup();
    assert_eq!(names.len(), FILE_COUNT, "each once");
    client.close().await;
}
