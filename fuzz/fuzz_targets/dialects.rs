//! Fuzz target: a call of any tool of any dialect with any arguments does not panic, adds one journal entry and gets a
//! reply in the form of its dialect.
#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use stead_engine::{CallControl, Caller, Engine, Principal};
use stead_protocols::dialect::{DialectSet, DialectWorkspaceRootPath, dialect_names};
use testkit::MemoryWorkspace;

fn all_dialects() -> &'static [DialectSet] {
    static ALL_DIALECTS: OnceLock<Vec<DialectSet>> = OnceLock::new();
    ALL_DIALECTS.get_or_init(|| {
        let location = DialectWorkspaceRootPath { root: MemoryWorkspace::ROOT.to_owned() };
        let build_set = |name: &&str| {
            DialectSet::from_names(&[(*name).to_owned()], &[], &location).expect("a single dialect can be served")
        };
        dialect_names().iter().map(build_set).collect()
    })
}

/// Converts fuzzer input to tool arguments: parses it as a JSON object or, if it is not one, splits it at 0xff into
/// argument values.
fn arguments_from_bytes(bytes: &[u8], keys: &[String]) -> Map<String, Value> {
    if let Ok(Value::Object(object)) = serde_json::from_slice(bytes) {
        return object;
    }
    let mut pieces = bytes.split(|byte| *byte == 0xff);
    let mut arguments = Map::new();
    for key in keys {
        let Some(piece) = pieces.next() else { break };
        let text = String::from_utf8_lossy(piece).into_owned();
        let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        arguments.insert(key.clone(), value);
    }
    arguments
}

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (dialect, tool, bytes) = input;
    let dialects = all_dialects();
    let dialect = dialects[usize::from(dialect) % dialects.len()].iter().next().expect("each set has one dialect");
    let tools = &dialect.definition().operations;
    let tool = &tools[usize::from(tool) % tools.len()];
    let keys: Vec<String> = tool.inputs.iter().map(|input| input.name.clone()).collect();
    let arguments = arguments_from_bytes(bytes, &keys);
    let workspace = Arc::new(MemoryWorkspace::new());
    for (path, content) in [("a.txt", "alpha\nbeta\n"), ("d/b.txt", "b"), ("crlf", "a\r\nb\r\n"), ("bin", "\0")] {
        workspace.put_file(path, content);
    }
    let engine = Engine::new(workspace);
    let caller = Caller::new(Principal::Agent("fuzz".to_owned()), "fuzz", "fuzz");
    let call = dialect.clone().translate(&tool.name, &arguments);
    // This operation can wait for changes, and the fuzzer would report a hang.
    if call.operation() == "changes" {
        return;
    }
    let reply = call.run(&engine, &caller, None, &CallControl::default()).reply;
    let head = engine.workspace().head().expect("the journal can be read");
    assert_eq!(head.number, 1, "one call adds one entry");
    assert!(!reply.json.is_empty());
});
