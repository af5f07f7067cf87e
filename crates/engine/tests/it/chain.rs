//! Long random chains of changes: undo must lead back through every state there was, and redo forward again.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::desk::Desk;

/// A small generator, so that a failing chain can be run again by its seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn path(&mut self) -> &'static str {
        const PATHS: [&str; 10] = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "e/a", "e/d/x", "f/g/h"];
        PATHS[self.below(PATHS.len())]
    }
}

type Files = BTreeMap<String, Option<Vec<u8>>>;

fn files(desk: &Desk) -> Files {
    desk.workspace.paths().into_iter().map(|path| (path.clone(), desk.workspace.bytes(&path))).collect()
}

/// One random change; whether something changed.
fn step(desk: &Desk, dice: &mut Dice, trash: &mut Vec<Value>) -> bool {
    let (one, two) = (dice.path(), dice.path());
    let content = format!("line {}\n", dice.below(1000));
    let (operation, arguments) = match dice.below(8) {
        0..=1 => {
            let bytes = desk.workspace.bytes(one);
            let base = bytes.map(|bytes| engine::Version::of(&bytes).to_string()).unwrap_or_default();
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
    match desk.call(operation, arguments) {
        Ok(answer) => {
            trash.extend(answer.get("trash").cloned());
            answer.contains_key("entry")
        }
        Err(_) => false,
    }
}

fn chain(seed: u64) {
    let desk = Desk::new();
    let mut dice = Dice(seed);
    let mut trash = Vec::new();
    let mut states = vec![files(&desk)];
    for _ in 0..60 {
        if step(&desk, &mut dice, &mut trash) {
            states.push(files(&desk));
        }
    }
    for round in 0..2 {
        for (left, state) in states.iter().enumerate().rev().skip(1) {
            let answer = desk.run("undo", json!({}));
            assert_eq!(answer["kept"], json!([]), "seed {seed}, round {round}, {left} left: {answer:?}");
            assert_eq!(files(&desk), *state, "seed {seed}, round {round}, {left} left: {answer:?}");
        }
        assert_eq!(desk.fails("undo", json!({})).0, "nothing_to_do");
        for (done, state) in states.iter().enumerate().skip(1) {
            let answer = desk.run("redo", json!({}));
            assert_eq!(files(&desk), *state, "seed {seed}, round {round}, {done} done: {answer:?}");
        }
        assert_eq!(desk.fails("redo", json!({})).0, "nothing_to_do");
    }
}

#[test]
fn undo_and_redo_lead_through_every_state() {
    (0..25).for_each(chain);
}
