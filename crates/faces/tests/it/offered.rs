//! What an MCP client is offered besides tools: guides, paths while somebody types, directories as resources.

use std::sync::Arc;

use engine::{Caller, Engine, Grants, Principal};
use faces::dialect::{Dialects, Place};
use serde_json::{Value, json};
use testkit::MemoryWorkspace;

use crate::client::Client;

/// Files whose names fill more than one page.
const MANY: usize = 400;

async fn completed(client: &mut Client, value: &str) -> Value {
    let reference = json!({ "type": "ref/resource", "uri": "stead:///{+path}" });
    let params = json!({ "ref": reference, "argument": { "name": "path", "value": value } });
    let mut answer = client.request("completion/complete", params).await;
    answer["result"]["completion"].take()
}

#[tokio::test]
async fn a_guide_says_what_the_definition_says_and_shows_what_is_named() {
    for dialect in faces::dialect::names() {
        let mut client = Client::open_in(dialect).await;
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
    let mut client = Client::open("2025-11-25").await;
    client.others_write("d/a b.txt", "one\n");
    let named = json!({ "name": "stead_guide", "arguments": { "path": "d/a b.txt" } });
    let guide = client.request("prompts/get", named).await;
    let shown = &guide["result"]["messages"][1]["content"]["resource"];
    assert_eq!((&shown["text"], &shown["uri"]), (&json!("one\n"), &json!("stead:///d/a%20b.txt")), "{guide}");
    for wrong in [json!({ "path": "../x" }), json!({ "path": "nowhere" }), json!({ "path": 7 })] {
        let refused =
            client.request("prompts/get", json!({ "name": "stead_guide", "arguments": wrong })).await;
        assert!(refused["error"]["code"].is_number(), "{wrong}: {refused}");
    }
    let unknown = client.request("prompts/get", json!({ "name": "no_guide" })).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    client.close().await;
}

#[tokio::test]
async fn paths_are_offered_as_they_are_typed() {
    let mut client = Client::open("2025-11-25").await;
    for name in ["src/main.rs", "src/map/a.rs", "src/map2.rs", "src/lib.rs", "sr", ".hidden", "notes.txt"] {
        client.others_write(name, "x\n");
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
        let offered = completed(&mut client, typed).await;
        assert_eq!(offered["values"], expected, "{typed}");
        assert_eq!(offered["hasMore"], false, "{typed}");
    }
    let many = completed(&mut client, "many/n").await;
    assert_eq!((many["values"].as_array().unwrap().len(), &many["hasMore"]), (100, &json!(true)));
    let argument = json!({ "name": "path", "value": "no" });
    let of_a_guide = json!({ "ref": { "type": "ref/prompt", "name": "stead_guide" }, "argument": argument });
    let offered = client.request("completion/complete", of_a_guide).await;
    assert_eq!(offered["result"]["completion"]["values"], json!(["notes.txt"]), "{offered}");
    client.close().await;
}

#[tokio::test]
async fn nobody_is_offered_what_they_could_not_list() {
    let workspace = Arc::new(MemoryWorkspace::new());
    for name in ["open/a.txt", "open/b.txt", "secret/plan.txt", "secretary.txt"] {
        workspace.put_file(name, "x\n");
    }
    let dialects =
        Dialects::choose(&["stead".to_owned()], &[], &Place { workspace: MemoryWorkspace::ROOT.to_owned() });
    let mut caller = Caller::new(Principal::Agent("narrow".to_owned()), "narrow", "mcp");
    let open = path::RelPath::from_wire("open").unwrap();
    caller.grants = Grants { readable: vec![open], ..Grants::default() };
    let mut client = Client::serving(Engine::new(workspace), caller, dialects.unwrap());
    client.initialize("2025-11-25").await;
    assert_eq!(completed(&mut client, "open/").await["values"], json!(["open/a.txt", "open/b.txt"]));
    for typed in ["secret/", "secret/p", "secret/plan.txt", "secretary.txt", "secre"] {
        assert_eq!(completed(&mut client, typed).await["values"], json!([]), "{typed}");
    }
    let read = client.request("resources/directory/read", json!({ "uri": "stead:///secret" })).await;
    assert_eq!(read["error"]["code"], -32602, "{read}");
    client.close().await;
}

#[tokio::test]
async fn directories_are_read_as_resources_by_page() {
    let mut client = Client::open("2025-11-25").await;
    client.others_write("d/a b.txt", "one\n");
    client.others_write("d/e/c.txt", "two\n");
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
    for number in 0..MANY {
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
    assert_eq!(names.len(), MANY, "each once");
    client.close().await;
}
