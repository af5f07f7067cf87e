//! The library for editors: the example as it is run, and what it promises beyond.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use engine::{Call, Caller, Kind, Presence, Principal};
use local::{Editor, Options, Typed};
use serde_json::{Value, json};
use tempfile::TempDir;

#[path = "../../examples/editor.rs"]
#[expect(dead_code, reason = "the example is run from here by its parts")]
mod example;

fn editor(place: &TempDir) -> Editor {
    std::fs::create_dir_all(place.path().join("ws")).unwrap();
    let options = Options::new(place.path().join("ws"), place.path().join("state"));
    Editor::open(options, Principal::parse("user:ann").unwrap()).unwrap()
}

#[test]
fn the_example_runs_and_ends_as_it_says() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("project")).unwrap();
    example::show(place.path()).unwrap();
    let text = std::fs::read_to_string(place.path().join("project/shopping.txt")).unwrap();
    assert_eq!(text, "milk\nbread\nsix eggs\nsalt\ntea\ncoffee\nsugar\n");
}

#[test]
fn where_both_type_the_editor_gets_both() {
    let place = tempfile::tempdir().unwrap();
    let editor = editor(&place);
    let agent = editor.agent("agent:one", "s").unwrap();
    assert!(!agent.write_text_file("d/a.txt", "one\ntwo\n").unwrap());
    let held = editor.open_buffer("d/a.txt", "one\ntwo\n").unwrap();
    assert!(!held.unsaved);
    agent.write_text_file("d/a.txt", "1\ntwo\n").unwrap();
    let met = editor.change_buffer("d/a.txt", held.revision, "uno\ntwo\n").unwrap();
    let Typed::Met { text, revision } = met else { panic!("{met:?}") };
    assert_eq!(text, "1\ntwo\n");
    editor.change_buffer("d/a.txt", revision, "uno\ntwo\n").unwrap();
    assert_eq!(agent.read_text_file("d/a.txt", Some(1), Some(1)).unwrap(), "uno\n");
    // The agent has seen the unsaved line now, and may not take it away.
    assert_eq!(agent.write_text_file("d/a.txt", "x\ntwo\n").unwrap_err().kind, Kind::Conflict);
    assert_eq!(agent.read_text_file("d/a.txt", Some(9), None).unwrap_err().kind, Kind::BadRequest);
    assert_eq!(agent.read_text_file("no.txt", None, None).unwrap_err().kind, Kind::NotFound);
    assert_eq!(editor.buffer("d/a.txt").unwrap().unwrap().text.as_deref(), Some("uno\ntwo\n"));
}

#[test]
fn what_a_dead_editor_left_is_taken_up() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("ws")).unwrap();
    std::fs::write(place.path().join("ws/a.txt"), "a\r\n").unwrap();
    let first = editor(&place);
    first.open_buffer("a.txt", "a\ntyped\n").unwrap();
    drop(first);
    let second = editor(&place);
    let drafts = second.drafts().unwrap();
    assert_eq!(drafts.len(), 1);
    assert_eq!(second.take_up("a.txt").unwrap().text.as_deref(), Some("a\ntyped\n"));
    second.save_buffer("a.txt").unwrap();
    assert_eq!(std::fs::read(place.path().join("ws/a.txt")).unwrap(), b"a\r\ntyped\r\n");
    assert!(second.drafts().unwrap().is_empty());
    assert_eq!(second.drop_draft(&drafts[0].id).unwrap_err().kind, Kind::NotFound);
    second.close_buffer("a.txt").unwrap();
}

#[test]
fn a_turn_is_taken_back() {
    let place = tempfile::tempdir().unwrap();
    let editor = editor(&place);
    let agent = editor.agent("agent:one", "s").unwrap();
    agent.write_text_file("a.txt", "a\n").unwrap();
    agent.turn().unwrap();
    agent.write_text_file("a.txt", "a\nb\n").unwrap();
    agent.write_text_file("b.txt", "b\n").unwrap();
    let review = editor.reviewing("agent:one", "s");
    assert_eq!(review.files().unwrap().len(), 2);
    review.reject_turn().unwrap();
    assert_eq!(std::fs::read_to_string(place.path().join("ws/a.txt")).unwrap(), "a\n");
    assert!(!place.path().join("ws/b.txt").exists());
}

#[test]
fn what_a_connection_had_open_ends_with_it_for_every_process() {
    let place = tempfile::tempdir().unwrap();
    let (server, other) = (editor(&place), editor(&place));
    let over = |presence: &Presence| {
        let mut caller = Caller::new(Principal::parse("user:ann").unwrap(), "s", "rpc");
        caller.presence = presence.clone();
        caller
    };
    let call = |editor: &Editor, caller: &Caller, operation: &str, arguments: Value| {
        let arguments = arguments.as_object().cloned().unwrap();
        editor
            .engine()
            .call(&Call::new(caller, operation, arguments))
            .map(|answer| Value::Object(answer.json))
    };
    let standings = |editor: &Editor| -> Vec<String> {
        let listed = call(editor, &over(&Presence::Process), "buffer.list", json!({})).unwrap();
        let state = |buffer: &Value| buffer["state"].as_str().unwrap().to_owned();
        listed["buffers"].as_array().unwrap().iter().map(state).collect()
    };
    let (first, second) = (Presence::connected(), Presence::connected());
    for (presence, path) in [(&first, "a.txt"), (&first, "b.txt"), (&second, "c.txt")] {
        call(&server, &over(presence), "buffer.open", json!({ "path": path, "text": "typed\n" })).unwrap();
    }
    assert_eq!(standings(&server), ["unsaved"; 3]);
    // Looking from elsewhere takes nobody's life.
    for _ in 0..2 {
        assert_eq!(standings(&other), ["unsaved"; 3]);
    }
    first.end();
    for editor in [&server, &other] {
        assert_eq!(standings(editor), ["draft", "draft", "unsaved"]);
    }
    // Nothing can be opened any more by who is gone, nor by who was never there for long.
    for (presence, kind) in [(&first, Kind::Cancelled), (&Presence::Call, Kind::BadRequest)] {
        let late = call(&server, &over(presence), "buffer.open", json!({ "path": "d.txt", "text": "d\n" }));
        assert_eq!(late.unwrap_err().kind, kind);
    }
    // Taken up over another connection it lives as long as that.
    call(&server, &over(&second), "buffer.open", json!({ "path": "a.txt" })).unwrap();
    assert_eq!(standings(&other), ["unsaved", "draft", "unsaved"]);
    drop(second);
    assert_eq!(standings(&other), ["draft"; 3], "nobody has to say that it is over");
}

#[test]
fn drafts_that_nobody_needs_do_not_gather() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("ws")).unwrap();
    std::fs::write(place.path().join("ws/a.txt"), "saved\n").unwrap();
    let texts = ["saved\n", "saved\n", "typed\n", "typed\n", "other\n"];
    for text in texts {
        // Each goes away without closing it.
        editor(&place).open_buffer("a.txt", text).unwrap();
    }
    let last = editor(&place);
    assert_eq!(last.drafts().unwrap().len(), 2, "each text that is nowhere else, once");
}
