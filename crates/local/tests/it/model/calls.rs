//! Random calls, and what is known from earlier answers to make them with.

#![expect(clippy::disallowed_methods, reason = "the test edits files behind the workspace's back")]

use std::path::Path;

use engine::Kind;
use serde_json::{Map, Value, json};

/// Chances from a seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    /// One time in `of`.
    pub(crate) fn chance(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }
}

/// What earlier answers told: ids of removed things on both sides, versions, keys.
#[derive(Default)]
pub(crate) struct Known {
    trash: Vec<(String, String)>,
    versions: Vec<String>,
    entries: u64,
}

impl Known {
    pub(crate) fn learn(&mut self, real: &Map<String, Value>, model: &Map<String, Value>) {
        if let (Some(one), Some(other)) =
            (real.get("trash").and_then(Value::as_str), model.get("trash").and_then(Value::as_str))
        {
            self.trash.push((one.to_owned(), other.to_owned()));
        }
        if let Some(version) = real.get("version").and_then(Value::as_str) {
            self.versions.push(version.to_owned());
        }
        if let Some(entry) = real.get("entry").and_then(Value::as_u64) {
            self.entries = self.entries.max(entry);
        }
    }
}

/// One call.
pub(crate) struct Asked {
    pub(crate) caller: usize,
    pub(crate) operation: &'static str,
    pub(crate) arguments: Value,
    pub(crate) key: Option<String>,
    /// The same removed thing has another id in the model.
    model_trash: Option<String>,
}

impl Asked {
    pub(crate) fn model_arguments(&self) -> Value {
        let mut arguments = self.arguments.clone();
        if let Some(id) = &self.model_trash {
            arguments["trash"] = json!(id);
        }
        arguments
    }
}

const PATHS: &[&str] = &["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/b", "e", "e/a", "e/d/a", "x/y/z"];

pub(crate) fn path(dice: &mut Dice) -> &'static str {
    dice.pick(PATHS)
}

/// Lines that are mostly alike, so that undoing has something to merge; now and then a large file.
pub(crate) fn content(dice: &mut Dice) -> String {
    if dice.chance(12) {
        return dice.pick(&["x", "y"]).repeat(70_000);
    }
    let mut lines: Vec<String> = (0..12).map(|line| format!("line {line}\n")).collect();
    for _ in 0..=dice.below(2) {
        let line = dice.below(12);
        lines[line] = format!("changed {}\n", dice.below(4));
    }
    lines.concat()
}

fn base(dice: &mut Dice, known: &Known, current: Option<String>, arguments: &mut Value) {
    match dice.below(10) {
        0 => {}
        1 => arguments["base"] = json!(""),
        2 if !known.versions.is_empty() => {
            arguments["base"] = json!(known.versions[dice.below(known.versions.len())]);
        }
        3 => arguments["base"] = json!(format!("r{}", 1 + dice.below(40))),
        _ => arguments["base"] = json!(current.unwrap_or_default()),
    }
}

pub(crate) fn ask(dice: &mut Dice, known: &Known, current: impl Fn(&str) -> Option<String>) -> Asked {
    let (at, to) = (path(dice), path(dice));
    let mut model_trash = None;
    let (operation, mut arguments) = match dice.below(30) {
        0..=7 => ("write", json!({ "path": at, "content": content(dice) })),
        8..=9 => ("append", json!({ "path": at, "content": content(dice) })),
        10..=11 => ("copy", json!({ "from": at, "to": to })),
        12..=14 => ("move", json!({ "from": at, "to": to })),
        15..=17 => ("remove", json!({ "path": at, "recursive": !dice.chance(3) })),
        18..=19 if !known.trash.is_empty() => {
            let (one, other) = known.trash[dice.below(known.trash.len())].clone();
            model_trash = Some(other);
            (
                "restore",
                if dice.chance(3) { json!({ "trash": one, "to": to }) } else { json!({ "trash": one }) },
            )
        }
        18..=22 => ("undo", json!({})),
        23..=24 => ("redo", json!({})),
        25 => ("lock", json!({ "path": at, "seconds": 60 })),
        26 => ("unlock", json!({ "path": at })),
        27 => ("read", json!({ "path": at })),
        28 => ("list", json!({ "depth": 3 })),
        _ => ("history", json!({ "path": at })),
    };
    match operation {
        "write" => base(dice, known, current(at), &mut arguments),
        "append" | "remove" if dice.chance(2) => base(dice, known, current(at), &mut arguments),
        "copy" | "move" if dice.chance(2) => arguments["overwrite"] = json!(true),
        "undo" | "redo" if dice.chance(3) && known.entries > 0 => {
            let last = usize::try_from(known.entries).unwrap();
            arguments["entry"] = json!(last + 1 - (1 + dice.below(last.min(20))));
            if dice.chance(4) {
                arguments["dry_run"] = json!(true);
            }
        }
        _ => {}
    }
    let key = dice.chance(6).then(|| format!("k{}", dice.below(8)));
    Asked { caller: dice.below(3), operation, arguments, key, model_trash }
}

/// Large bytes are kept when the server replaces them, not when they are written; the model keeps all. So an undo that
/// would have to merge them is refused for another reason; it is refused by both.
pub(crate) fn comparable(kind: Kind) -> Kind {
    if kind == Kind::Expired { Kind::Conflict } else { kind }
}

/// Takes out of an answer what may differ: ids of removed things, hashes that cover the workspace's id, times of files,
/// and why an undo left something alone.
pub(crate) fn leave_out_what_differs(answer: &mut Value) {
    match answer {
        Value::Object(fields) => {
            fields.remove("reason");
            // The tree is looked at through the real one, so that one has read more.
            for name in ["trash", "restores", "hash", "modified", "changed_since_read"] {
                fields.remove(name);
            }
            fields.values_mut().for_each(leave_out_what_differs);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_what_differs),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The arguments, with long texts cut.
pub(crate) fn shortened(arguments: &Value) -> String {
    let mut arguments = arguments.clone();
    if let Some(Value::String(text)) = arguments.get_mut("content") {
        let changed: Vec<&str> = text.lines().filter(|line| !line.starts_with("line")).collect();
        *text = format!("{} bytes, {:.30}", text.len(), changed.join(","));
    }
    arguments.to_string()
}

/// Writes as an editor does: a new file in the place of the old one, with its permission bits.
pub(crate) fn overwrite(target: &Path, content: &str) {
    let permissions = std::fs::metadata(target).unwrap().permissions();
    let beside = target.with_extension("beside");
    std::fs::write(&beside, content).unwrap();
    std::fs::set_permissions(&beside, permissions).unwrap();
    std::fs::rename(&beside, target).unwrap();
}

pub(crate) fn remove(target: &Path) {
    std::fs::remove_file(target).unwrap();
}
