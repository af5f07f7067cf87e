//! Tests undo and redo on long random chains of changes: repeated undo restores every earlier state in reverse order,
//! and repeated redo restores every later state.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stead_engine::ErrorKind;
use testkit::engine_fixture::EngineFixture;

struct UndoRedoTestRng(u64);

impl UndoRedoTestRng {
    fn next_below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn random_path(&mut self) -> &'static str {
        const PATHS: [&str; 10] = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "e/a", "e/d/x", "f/g/h"];
        PATHS[self.next_below(PATHS.len())]
    }
}

type TestFileContentsByPath = BTreeMap<String, Option<Vec<u8>>>;

fn snapshot_files(fixture: &EngineFixture) -> TestFileContentsByPath {
    fixture.workspace.all_paths().into_iter().map(|path| (path.clone(), fixture.workspace.bytes(&path))).collect()
}

fn random_change(fixture: &EngineFixture, rng: &mut UndoRedoTestRng, trash: &mut Vec<Value>) -> bool {
    let (one, two) = (rng.random_path(), rng.random_path());
    let content = format!("line {}\n", rng.next_below(1000));
    let (operation, arguments) = match rng.next_below(8) {
        0..=1 => {
            let bytes = fixture.workspace.bytes(one);
            let base = bytes.map(|bytes| stead_engine::Version::hash_bytes(&bytes).to_string()).unwrap_or_default();
            ("write", json!({ "path": one, "content": content, "base": base }))
        }
        2 => ("append", json!({ "path": one, "content": content })),
        3 => ("remove", json!({ "path": one, "recursive": true })),
        4..=5 => ("move", json!({ "from": one, "to": two, "overwrite": true })),
        6 => ("copy", json!({ "from": one, "to": two, "overwrite": true })),
        _ => match trash.pop() {
            Some(id) => ("restore", json!({ "trash": id, "to": two })),
            None => return false,
        },
    };
    match fixture.call(operation, arguments) {
        Ok(outcome) => {
            trash.extend(outcome.json.get("trash").cloned());
            outcome.json.contains_key("entry")
        }
        Err(_) => false,
    }
}

fn run_chain(seed: u64) {
    let fixture = EngineFixture::new();
    let mut rng = UndoRedoTestRng(seed);
    let mut trash = Vec::new();
    let mut states = vec![snapshot_files(&fixture)];
    for _ in 0..60 {
        if random_change(&fixture, &mut rng, &mut trash) {
            states.push(snapshot_files(&fixture));
        }
    }
    for round in 0..2 {
        for (left, state) in states.iter().enumerate().rev().skip(1) {
            let outcome = fixture.call_ok("undo", json!({}));
            assert_eq!(outcome["kept"], json!([]), "seed {seed}, round {round}, {left} left: {outcome:?}");
            assert_eq!(snapshot_files(&fixture), *state, "seed {seed}, round {round}, {left} left: {outcome:?}");
        }
        fixture.call_err("undo", json!({}), ErrorKind::NothingToDo);
        for (done, state) in states.iter().enumerate().skip(1) {
            let outcome = fixture.call_ok("redo", json!({}));
            assert_eq!(snapshot_files(&fixture), *state, "seed {seed}, round {round}, {done} done: {outcome:?}");
        }
        fixture.call_err("redo", json!({}), ErrorKind::NothingToDo);
    }
}

#[test]
fn undo_and_redo_traverse_every_state() {
    (0..25).for_each(run_chain);
}
