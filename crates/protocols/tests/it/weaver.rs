//! Compares edits of the weaver dialect with a simple model of its specification. A weaver edit succeeds only if the
//! quoted text occurs exactly once, counted from left to right without overlaps.

use serde_json::{Value, json};
use stead_engine::CallControl;
use stead_protocols::dialect::DialectSet;
use testkit::engine_fixture::EngineFixture;

use crate::test_client::load_dialects;

struct WeaverFixture {
    dialects: DialectSet,
    fixture: EngineFixture,
}

impl WeaverFixture {
    fn new(options: &[&str]) -> Self {
        Self { dialects: load_dialects(&["weaver"], options), fixture: EngineFixture::new() }
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let dialect = self.dialects.find_by_tool(tool).unwrap();
        let arguments = arguments.as_object().unwrap();
        let call = dialect.clone().translate(tool, arguments);
        let finished = call.run(&self.fixture.engine, &self.fixture.caller, None, &CallControl::default());
        Value::Object(finished.reply.json_fields())
    }

    fn edit_text(&self, text: &str, old: &str, new: &str) -> (String, String) {
        self.fixture.workspace.put_file("f", text);
        let edited = self.call("edit_file", &json!({ "path": "f", "old_text": old, "new_text": new }));
        let read = self.call("read_file", &json!({ "path": "f" }));
        (edited["for_llm"].as_str().unwrap().to_owned(), read["for_llm"].as_str().unwrap().to_owned())
    }
}

fn expected_edit(text: &str, old: &str, new: &str) -> (String, String) {
    let count = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).count() };
    match count {
        0 => ("old_text not found in file. Make sure it matches exactly".to_owned(), text.to_owned()),
        1 => ("File edited: f".to_owned(), text.replacen(old, new, 1)),
        _ => {
            (format!("old_text appears {count} times. Please provide more context to make it unique"), text.to_owned())
        }
    }
}

fn all_texts(pieces: &[&str], length: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..length {
        last = last.iter().flat_map(|text| pieces.iter().map(move |piece| format!("{text}{piece}"))).collect();
        all.extend(last.iter().cloned());
    }
    all
}

#[test]
fn edits_match_text_literally() {
    let weaver = WeaverFixture::new(&[]);
    for text in all_texts(&["a", "\n", "\r\n", "ä"], 3) {
        for old in all_texts(&["a", "\n", "\r", "ä"], 2) {
            for new in ["", "b", "a\r\nb\n"] {
                let expected = expected_edit(&text, &old, new);
                assert_eq!(weaver.edit_text(&text, &old, new), expected, "{text:?} {old:?} {new:?}");
            }
        }
    }
}

#[test]
fn content_is_written_without_interpretation() {
    let weaver = WeaverFixture::new(&[]);
    for (text, old, new) in [
        ("fn a() {}\n", "fn a() {}", "// ... existing code ...\n"),
        ("    a\n", "  a\n", "b\n"),
        ("a\\nb\n", "a\nb", "c"),
        ("1\ta\n", "1\ta", "2\tb"),
        ("say “hi”\n", "say \"hi\"", "x"),
        ("a \nb\n", "a\nb", "c"),
        ("\u{feff}a\n", "a", "b"),
        ("same\n", "same", "same"),
    ] {
        assert_eq!(weaver.edit_text(text, old, new), expected_edit(text, old, new), "{text:?} {old:?} {new:?}");
    }
    let reply = weaver.call("edit_file", &json!({ "path": "none", "old_text": "", "new_text": "x" }));
    assert_eq!(reply["for_llm"], "file not found: none", "an empty quote does not create a file");
}

#[test]
fn newest_generation_shows_diff_and_overwrites_only_on_request() {
    let weaver = WeaverFixture::new(&["generation=newest"]);
    weaver.fixture.workspace.put_file("f", "a\nb\n");
    let reply = weaver.call("edit_file", &json!({ "path": "f", "old_text": "b", "new_text": "c" }));
    assert_eq!((&reply["for_llm"], &reply["silent"]), (&json!("File edited: f"), &json!(false)));
    assert!(reply["for_user"].as_str().unwrap().contains("-b\n+c\n"), "{reply}");
    let write = |arguments| weaver.call("write_file", &arguments)["is_error"] == false;
    assert!(!write(json!({ "path": "f", "content": "x" })));
    assert!(!write(json!({ "path": "f", "content": "x", "overwrite": "true" })));
    assert!(write(json!({ "path": "f", "content": "x", "overwrite": true })));
    let declared = |options: &[&str]| {
        let weaver = WeaverFixture::new(options);
        let dialect = weaver.dialects.find_by_tool("read_file").unwrap();
        let inputs = &dialect.definition().find_tool("read_file").unwrap().inputs;
        inputs.iter().map(|input| input.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(declared(&[]), ["path"]);
    assert_eq!(declared(&["generation=newest"]), ["path", "offset", "length"]);
    assert_eq!(declared(&["generation=newest", "read_mode=lines"]), ["path", "start_line", "max_lines"]);
}
