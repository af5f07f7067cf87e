//! An editor that offers no files over the protocol and tells what it has open in another way: the agent sees that text.

use engine::{Call, Caller, Engine, Principal};
use serde_json::{Value, json};

use super::stage::Stage;

const LINES: &str = "1\n2\n3\n4\n5\n6\n";

/// A person's editor says something about a buffer.
fn editor(stage: &Stage, operation: &str, arguments: &Value) -> Value {
    let person = Caller::new(Principal::User("ann".to_owned()), "editor", "rpc");
    let engine = Engine::new(stage.root("/ws"));
    let arguments = arguments.as_object().unwrap().clone();
    engine.call(&Call::new(&person, operation, arguments)).unwrap().json.into()
}

#[tokio::test]
async fn the_agent_sees_open_buffers_and_typing_survives_its_writes() {
    let mut stage = Stage::open().await;
    stage.root("/ws").put_file("a.txt", LINES);
    let typed = LINES.replace('6', "six");
    editor(&stage, "buffer.open", &json!({ "path": "a.txt", "text": typed }));
    assert_eq!(stage.read("/ws/a.txt").await["result"]["content"], typed);
    assert_eq!(stage.write("/ws/a.txt", &typed.replace('1', "one")).await["result"], json!({}));
    assert_eq!(stage.read("/ws/a.txt").await["result"]["content"], "one\n2\n3\n4\n5\nsix\n");
    // Whoever writes where the person types is told, and the typing stays.
    let refused = stage.write("/ws/a.txt", "one\n2\n3\n4\n5\nSIX\n").await;
    let said = refused["error"]["data"].as_str().unwrap();
    assert!(said.starts_with("conflict: "), "{said}");
    assert_eq!(stage.read("/ws/a.txt").await["result"]["content"], "one\n2\n3\n4\n5\nsix\n");
}
