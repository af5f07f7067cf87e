//! What goes by, what is changed on the way, and how it ends.

use engine::Asking;
use faces::acp::{Ended, FileOffer, Offer};
use serde_json::{Value, json};

use super::stage::Stage;

/// Lines as peers of any version might write them: unknown methods, members, numbers and spellings.
const ODD: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":"a\u0062","method":"session/prompt","params":{"x": 1.50, "y":[ ] ,"z":1e3}}"#,
    r#"{ "method" : "_vendor/notice", "params": {"deep":[[[{"\u0061":"\ud83d\ude00"}]]]}, "jsonrpc":"2.0", "later":true }"#,
    r#"{"id":18446744073709551615,"jsonrpc":"2.0","result":{"a":null,"a2":-0.0},"_meta":{"k":1}}"#,
    r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"x","data":[1,2]},"more":{}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"new_kind"}}}"#,
    r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"nobody's"}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"terminal/create","params":{"command":"ls"}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"proxy/successor","params":{"method":"x"}}"#,
];

#[tokio::test]
async fn what_is_not_known_goes_by_byte_for_byte() {
    let mut stage = Stage::silent();
    for line in ODD {
        stage.editor.say_raw(line).await;
        assert_eq!(stage.agent.hear_raw().await, *line);
        stage.agent.say_raw(line).await;
        assert_eq!(stage.editor.hear_raw().await, *line);
    }
    let large =
        format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"text":"{}"}}}}"#, "ab\\n".repeat(2_500_000));
    let (said, heard) = tokio::join!(stage.editor.say_raw(&large), stage.agent.hear_raw());
    assert_eq!((said, heard.len()), ((), large.len()));
    assert_eq!(heard, large);
}

#[tokio::test]
async fn what_could_be_read_in_two_ways_goes_nowhere() {
    let mut stage = Stage::open().await;
    let smuggled =
        r#"{"jsonrpc":"2.0","id":9,"method":"session/update","method":"fs/write_text_file","params":{}}"#;
    stage.agent.say_raw(smuggled).await;
    assert_eq!(stage.agent.hear().await["error"]["code"], -32600);
    for line in ["not json", "[]", "{\"jsonrpc\":\"2.0\"", "7"] {
        stage.agent.say_raw(line).await;
        let answer = stage.agent.hear().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32700), &Value::Null), "{line}");
    }
    // A file method that nobody would hear of is not done, and does not reach an editor that might do it.
    let silent = json!({ "method": "fs/write_text_file", "params": { "sessionId": "s1", "path": "/ws/a", "content": "x" } });
    stage.agent.say(&silent).await;
    stage.agent.say(&json!({ "method": "after" })).await;
    assert_eq!(stage.editor.hear().await["method"], "after");
    assert_eq!(stage.read("/ws/a").await["error"]["code"], -32002);
}

#[tokio::test]
async fn the_agent_is_told_of_files_and_of_the_server() {
    let mut stage = Stage::silent();
    let heard = stage.initialize(1, &json!({ "terminal": true })).await;
    let told = json!({ "terminal": true, "fs": { "readTextFile": true, "writeTextFile": true } });
    assert_eq!(heard["params"]["clientCapabilities"], told);
    let heard =
        stage.session("s1", &json!({ "cwd": "/ws", "mcpServers": [{ "name": "x" }], "_meta": 7 })).await;
    let added =
        json!({ "name": "stead", "command": "/bin/stead", "args": ["mcp", "--workspace", "/ws"], "env": [] });
    assert_eq!(heard["params"], json!({ "cwd": "/ws", "mcpServers": [{ "name": "x" }, added], "_meta": 7 }));
}

#[tokio::test]
async fn a_reader_is_not_told_of_writing() {
    let offer = FileOffer { reads: Offer::Yes, writes: Offer::No };
    let mut stage = Stage::opened(offer, Asking::Client, &json!({})).await;
    let refused = stage.write("/ws/a", "x").await;
    assert_eq!(
        refused["error"],
        json!({ "code": -32601, "message": "Method not found", "data": "fs/write_text_file" })
    );
    assert_eq!(stage.read("/ws/a").await["error"]["code"], -32002);
}

#[tokio::test]
async fn the_draft_of_the_second_version_has_servers_and_no_files() {
    let mut stage = Stage::silent();
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"e"},"capabilities":{}}}"#;
    stage.editor.say_raw(initialize).await;
    assert_eq!(stage.agent.hear_raw().await, initialize);
    let capabilities = json!({ "session": { "mcp": { "stdio": {} } } });
    stage
        .agent
        .say(&json!({ "id": 0, "result": { "protocolVersion": 2, "capabilities": capabilities } }))
        .await;
    stage.editor.hear().await;
    let heard = stage.session("s1", &json!({ "cwd": "/ws" })).await;
    assert_eq!(heard["params"]["mcpServers"][0]["type"], "stdio", "{heard}");
    assert_eq!(stage.read("/ws/a").await["error"]["code"], -32601);
}

#[tokio::test]
async fn roots_that_cannot_be_had_are_refused_before_the_agent_hears_of_them() {
    let mut stage = Stage::silent();
    stage.initialize(1, &json!({})).await;
    for (method, params) in [
        ("session/new", json!({ "cwd": "ws", "mcpServers": [] })),
        ("session/new", json!({ "cwd": "/missing", "mcpServers": [] })),
        (
            "session/load",
            json!({ "sessionId": "s", "cwd": "/ws", "additionalDirectories": ["/missing"], "mcpServers": [] }),
        ),
        ("session/resume", json!({ "sessionId": "s", "mcpServers": [] })),
    ] {
        stage.editor.say(&json!({ "id": 5, "method": method, "params": params })).await;
        let answer = stage.editor.hear().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(5), &json!(-32602)), "{answer}");
    }
    stage.editor.say(&json!({ "method": "after" })).await;
    assert_eq!(stage.agent.hear().await["method"], "after");
}

#[tokio::test]
async fn sessions_have_their_own_roots_and_end() {
    let mut stage = Stage::open().await;
    stage
        .session("s2", &json!({ "cwd": "/other", "additionalDirectories": ["/ws/sub"], "mcpServers": [] }))
        .await;
    stage.root("/ws").put_file("a", "one");
    stage.root("/ws/sub").put_file("a", "two");
    let read = |session: &str, path: &str| json!({ "sessionId": session, "path": path });
    assert_eq!(stage.call("fs/read_text_file", read("s1", "/ws/a")).await["result"]["content"], "one");
    assert_eq!(stage.call("fs/read_text_file", read("s2", "/ws/sub/a")).await["result"]["content"], "two");
    assert_eq!(stage.call("fs/read_text_file", read("s2", "/ws/a")).await["error"]["code"], -32002);
    // Taken up with other roots: what was before is over.
    let params = json!({ "sessionId": "s1", "cwd": "/other", "mcpServers": [] });
    stage.editor.say(&json!({ "id": 5, "method": "session/load", "params": params })).await;
    stage.agent.hear().await;
    assert_eq!(stage.call("fs/read_text_file", read("s1", "/ws/a")).await["error"]["code"], -32002);
    // The agent could not: what was before is so again.
    stage.agent.say(&json!({ "id": 5, "error": { "code": -1, "message": "no" } })).await;
    stage.editor.hear().await;
    assert_eq!(stage.call("fs/read_text_file", read("s1", "/ws/a")).await["result"]["content"], "one");
    stage.editor.say(&json!({ "id": 6, "method": "session/close", "params": { "sessionId": "s1" } })).await;
    stage.agent.hear().await;
    stage.agent.say(&json!({ "id": 6, "result": {} })).await;
    stage.editor.hear().await;
    assert_eq!(
        stage.call("fs/read_text_file", read("s1", "/ws/a")).await["error"]["data"],
        json!({ "sessionId": "s1" })
    );
}

#[tokio::test]
async fn a_message_that_is_too_long_is_refused_and_the_next_goes_by() {
    let mut stage = Stage::open().await;
    let long = "x".repeat(faces::limits::MESSAGE_BYTES_MAX);
    let line =
        format!(r#"{{"jsonrpc":"2.0","id":77,"method":"session/prompt","params":{{"text":"{long}"}}}}"#);
    stage.editor.say_raw(&line).await;
    let refused = stage.editor.hear().await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    stage.agent.say_raw(&line.replace("77", "78")).await;
    let refused = stage.agent.hear().await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    // Nothing of either went on.
    let next = r#"{"jsonrpc":"2.0","id":79,"method":"x/next"}"#;
    stage.editor.say_raw(next).await;
    assert_eq!(stage.agent.hear_raw().await, next);
    stage.agent.say_raw(next).await;
    assert_eq!(stage.editor.hear_raw().await, next);
}

#[tokio::test]
async fn either_side_may_end_it() {
    let mut stage = Stage::open().await;
    stage.agent.close();
    assert_eq!(stage.proxy.await.unwrap().unwrap(), Ended::Agent);
    let mut stage = Stage::open().await;
    stage.editor.close();
    assert_eq!(stage.agent.hear_raw().await, "", "the agent sees the end");
    stage.agent.say(&json!({ "method": "last/words" })).await;
    assert_eq!(stage.editor.hear().await["method"], "last/words");
    stage.agent.close();
    assert_eq!(stage.proxy.await.unwrap().unwrap(), Ended::Editor);
}
