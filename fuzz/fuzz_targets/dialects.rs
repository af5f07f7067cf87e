//! Whatever a client sends to whatever tool: no panic, one entry, an answer in the dialect's own shape.
#![no_main]

use std::sync::{Arc, OnceLock};

use engine::{Call, Caller, Engine, Principal};
use faces::dialect::{Dialects, Place, names};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use testkit::MemoryWorkspace;

/// Every dialect, made once.
fn dialects() -> &'static [Dialects] {
    static MADE: OnceLock<Vec<Dialects>> = OnceLock::new();
    MADE.get_or_init(|| {
        let place = Place { workspace: MemoryWorkspace::ROOT.to_owned() };
        let one = |name: &&str| Dialects::choose(&[(*name).to_owned()], &[], &place).expect("it can be served");
        names().iter().map(one).collect()
    })
}

fn arguments(bytes: &[u8], keys: &[String]) -> Map<String, Value> {
    // Half of the time the bytes are JSON as they are, otherwise they fill the arguments that are declared.
    if let Ok(Value::Object(object)) = serde_json::from_slice(bytes) {
        return object;
    }
    let mut pieces = bytes.split(|byte| *byte == 0xff);
    let mut filled = Map::new();
    for key in keys {
        let Some(piece) = pieces.next() else { break };
        let text = String::from_utf8_lossy(piece).into_owned();
        let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        filled.insert(key.clone(), value);
    }
    filled
}

fuzz_target!(|given: (u8, u8, &[u8])| {
    let (dialect, tool, bytes) = given;
    let dialects = dialects();
    let dialect = dialects[usize::from(dialect) % dialects.len()].iter().next().expect("one was chosen");
    let tools = &dialect.definition().operations;
    let tool = &tools[usize::from(tool) % tools.len()];
    let keys: Vec<String> = tool.inputs.iter().map(|input| input.name.clone()).collect();
    let arguments = arguments(bytes, &keys);
    let workspace = Arc::new(MemoryWorkspace::new());
    for (path, content) in [("a.txt", "alpha\nbeta\n"), ("d/b.txt", "b"), ("crlf", "a\r\nb\r\n"), ("bin", "\0")] {
        workspace.put_file(path, content);
    }
    let engine = Engine::new(workspace);
    let caller = Caller::new(Principal::Agent("fuzz".to_owned()), "fuzz", "fuzz");
    let request = dialect.request(&tool.name, &arguments);
    // Waiting is not what is tried here.
    if request.operation == "changes" {
        return;
    }
    let mut call = Call::new(&caller, &request.operation, request.arguments);
    call.terms = request.terms;
    let outcome = engine.call(&call);
    let head = engine.workspace().head().expect("there is a journal");
    assert_eq!(head.number, 1, "one call, one entry");
    let reply = dialect.reply(&tool.name, &arguments, outcome);
    assert!(!reply.json.is_empty());
});
