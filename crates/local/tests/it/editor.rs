//! Tests the interface for editors: the example of its documentation, and its other promises.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use serde_json::{Value, json};
use stead_engine::{Caller, CallerResourceLifetime, ErrorKind, Principal};
use stead_local::{BufferChangeResult, LocalWorkspaceOptions, WorkspaceEmbeddedInEditor};
use tempfile::TempDir;
use testkit::native::{EngineJsonCalls, JsonCall};

#[path = "../../examples/editor.rs"]
#[expect(dead_code, reason = "the example is run from here by its parts")]
mod example;

fn open_editor(directory: &TempDir) -> WorkspaceEmbeddedInEditor {
    std::fs::create_dir_all(directory.path().join("ws")).unwrap();
    let options = LocalWorkspaceOptions::new(directory.path().join("ws"), directory.path().join("state"));
    WorkspaceEmbeddedInEditor::open(options, Principal::parse("user:ann").unwrap()).unwrap()
}

#[test]
fn the_example_runs() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("project")).unwrap();
    example::run_example(directory.path()).unwrap();
    let text = std::fs::read_to_string(directory.path().join("project/shopping.txt")).unwrap();
    assert_eq!(text, "milk\nbread\nsix eggs\nsalt\ntea\ncoffee\nsugar\n");
}

#[test]
fn concurrent_changes_reach_the_editor() {
    let directory = tempfile::tempdir().unwrap();
    let editor = open_editor(&directory);
    let agent = editor.agent("agent:one", "s").unwrap();
    assert!(!agent.write_text_file("d/a.txt", "one\ntwo\n").unwrap());
    let held = editor.open_buffer("d/a.txt", "one\ntwo\n").unwrap();
    assert!(!held.unsaved);
    agent.write_text_file("d/a.txt", "1\ntwo\n").unwrap();
    let met = editor.change_buffer("d/a.txt", held.revision, "uno\ntwo\n").unwrap();
    let BufferChangeResult::Conflict { text, revision } = met else { panic!("{met:?}") };
    assert_eq!(text, "1\ntwo\n");
    editor.change_buffer("d/a.txt", revision, "uno\ntwo\n").unwrap();
    assert_eq!(agent.read_text_file("d/a.txt", Some(1), Some(1)).unwrap(), "uno\n");
    // The agent has read the unsaved line and may not remove it.
    assert_eq!(agent.write_text_file("d/a.txt", "x\ntwo\n").unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(agent.read_text_file("d/a.txt", Some(9), None).unwrap_err().kind, ErrorKind::BadRequest);
    assert_eq!(agent.read_text_file("no.txt", None, None).unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(editor.buffer("d/a.txt").unwrap().unwrap().text.as_deref(), Some("uno\ntwo\n"));
}

#[test]
fn drafts_of_a_dead_editor_are_resumed() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("ws")).unwrap();
    std::fs::write(directory.path().join("ws/a.txt"), "a\r\n").unwrap();
    let first = open_editor(&directory);
    first.open_buffer("a.txt", "a\ntyped\n").unwrap();
    drop(first);
    let second = open_editor(&directory);
    let drafts = second.drafts().unwrap();
    assert_eq!(drafts.len(), 1);
    assert_eq!(second.resume_draft("a.txt").unwrap().text.as_deref(), Some("a\ntyped\n"));
    second.save_buffer("a.txt").unwrap();
    assert_eq!(std::fs::read(directory.path().join("ws/a.txt")).unwrap(), b"a\r\ntyped\r\n");
    assert!(second.drafts().unwrap().is_empty());
    assert_eq!(second.discard_draft(&drafts[0].id).unwrap_err().kind, ErrorKind::NotFound);
    second.close_buffer("a.txt").unwrap();
}

#[test]
fn a_turn_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let editor = open_editor(&directory);
    let agent = editor.agent("agent:one", "s").unwrap();
    agent.write_text_file("a.txt", "a\n").unwrap();
    agent.begin_turn().unwrap();
    agent.write_text_file("a.txt", "a\nb\n").unwrap();
    agent.write_text_file("b.txt", "b\n").unwrap();
    let review = editor.review("agent:one", "s");
    assert_eq!(review.files().unwrap().len(), 2);
    review.reject_turn().unwrap();
    assert_eq!(std::fs::read_to_string(directory.path().join("ws/a.txt")).unwrap(), "a\n");
    assert!(!directory.path().join("ws/b.txt").exists());
}

#[test]
fn buffers_close_with_their_connection_for_every_process() {
    let directory = tempfile::tempdir().unwrap();
    let (server, other) = (open_editor(&directory), open_editor(&directory));
    let over = |presence: &CallerResourceLifetime| {
        let mut caller = Caller::new(Principal::parse("user:ann").unwrap(), "s", "rpc");
        caller.lifetime = presence.clone();
        caller
    };
    let call = |editor: &WorkspaceEmbeddedInEditor, caller: &Caller, operation: &str, arguments: Value| {
        let arguments = arguments.as_object().cloned().unwrap();
        editor.engine().call(&JsonCall::new(caller, operation, arguments)).map(|answer| Value::Object(answer.json))
    };
    let standings = |editor: &WorkspaceEmbeddedInEditor| -> Vec<String> {
        let listed = call(editor, &over(&CallerResourceLifetime::Process), "buffer.list", json!({})).unwrap();
        let state = |buffer: &Value| buffer["state"].as_str().unwrap().to_owned();
        listed["buffers"].as_array().unwrap().iter().map(state).collect()
    };
    let (first, second) = (CallerResourceLifetime::connected(), CallerResourceLifetime::connected());
    for (presence, path) in [(&first, "a.txt"), (&first, "b.txt"), (&second, "c.txt")] {
        call(&server, &over(presence), "buffer.open", json!({ "path": path, "text": "typed\n" })).unwrap();
    }
    assert_eq!(standings(&server), ["unsaved"; 3]);
    for _ in 0..2 {
        assert_eq!(standings(&other), ["unsaved"; 3]);
    }
    first.end();
    for editor in [&server, &other] {
        assert_eq!(standings(editor), ["draft", "draft", "unsaved"]);
    }
    for (presence, kind) in
        [(&first, ErrorKind::Cancelled), (&CallerResourceLifetime::SingleCall, ErrorKind::BadRequest)]
    {
        let late = call(&server, &over(presence), "buffer.open", json!({ "path": "d.txt", "text": "d\n" }));
        assert_eq!(late.unwrap_err().kind, kind);
    }
    // A draft resumed by another connection lives as long as that connection.
    call(&server, &over(&second), "buffer.open", json!({ "path": "a.txt" })).unwrap();
    assert_eq!(standings(&other), ["unsaved", "draft", "unsaved"]);
    drop(second);
    assert_eq!(standings(&other), ["draft"; 3], "nobody has to say that it is over");
}

#[test]
fn unneeded_drafts_are_deleted() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("ws")).unwrap();
    std::fs::write(directory.path().join("ws/a.txt"), "saved\n").unwrap();
    let texts = ["saved\n", "saved\n", "typed\n", "typed\n", "other\n"];
    for text in texts {
        // Each editor disappears without closing the buffer.
        open_editor(&directory).open_buffer("a.txt", text).unwrap();
    }
    let last = open_editor(&directory);
    assert_eq!(last.drafts().unwrap().len(), 2, "each text that is nowhere else, once");
}
