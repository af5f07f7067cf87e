//! Generates random calls, whose arguments use data from the results of earlier calls.

#![expect(clippy::disallowed_methods, reason = "the test edits files behind the workspace's back")]

use std::path::Path;

use serde_json::{Map, Value, json};
use stead_engine::ErrorKind;

pub(crate) struct RandomCallRng(u64);

impl RandomCallRng {
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

    pub(crate) fn random_below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    pub(crate) fn one_in(&mut self, of: usize) -> bool {
        self.random_below(of) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.random_below(list.len())]
    }
}

/// The trash ids are pairs: the id in the local workspace and the id in the model.
#[derive(Default)]
pub(crate) struct ModelBasedTestKnownIds {
    trash: Vec<(String, String)>,
    versions: Vec<String>,
    entries: u64,
}

impl ModelBasedTestKnownIds {
    pub(crate) fn learn_from_answers(&mut self, real: &Map<String, Value>, model: &Map<String, Value>) {
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

pub(crate) struct RandomCall {
    pub(crate) caller: usize,
    pub(crate) operation: &'static str,
    pub(crate) arguments: Value,
    pub(crate) key: Option<String>,
    /// The trash id to use in the model, which differs from the trash id in the local workspace.
    model_trash: Option<String>,
}

impl RandomCall {
    pub(crate) fn model_arguments(&self) -> Value {
        let mut arguments = self.arguments.clone();
        if let Some(id) = &self.model_trash {
            arguments["trash"] = json!(id);
        }
        arguments
    }
}

const PATHS: &[&str] = &["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/b", "e", "e/a", "e/d/a", "x/y/z"];

pub(crate) fn path(random: &mut RandomCallRng) -> &'static str {
    random.pick(PATHS)
}

/// Random contents have most lines in common, so that an undo has something to merge.
pub(crate) fn random_content(random: &mut RandomCallRng) -> String {
    if random.one_in(12) {
        return random.pick(&["x", "y"]).repeat(70_000);
    }
    let mut lines: Vec<String> = (0..12).map(|line| format!("line {line}\n")).collect();
    for _ in 0..=random.random_below(2) {
        let line = random.random_below(12);
        lines[line] = format!("changed {}\n", random.random_below(4));
    }
    lines.concat()
}

fn add_random_base(
    random: &mut RandomCallRng,
    known: &ModelBasedTestKnownIds,
    current: Option<String>,
    arguments: &mut Value,
) {
    match random.random_below(10) {
        0 => {}
        1 => arguments["base"] = json!(""),
        2 if !known.versions.is_empty() => {
            arguments["base"] = json!(known.versions[random.random_below(known.versions.len())]);
        }
        3 => arguments["base"] = json!(format!("r{}", 1 + random.random_below(40))),
        _ => arguments["base"] = json!(current.unwrap_or_default()),
    }
}

pub(crate) fn random_call(
    random: &mut RandomCallRng,
    known: &ModelBasedTestKnownIds,
    current: impl Fn(&str) -> Option<String>,
) -> RandomCall {
    let (at, to) = (path(random), path(random));
    let mut model_trash = None;
    let (operation, mut arguments) = match random.random_below(30) {
        0..=7 => ("write", json!({ "path": at, "content": random_content(random) })),
        8..=9 => ("append", json!({ "path": at, "content": random_content(random) })),
        10..=11 => ("copy", json!({ "from": at, "to": to })),
        12..=14 => ("move", json!({ "from": at, "to": to })),
        15..=17 => ("remove", json!({ "path": at, "recursive": !random.one_in(3) })),
        18..=19 if !known.trash.is_empty() => {
            let (one, other) = known.trash[random.random_below(known.trash.len())].clone();
            model_trash = Some(other);
            ("restore", if random.one_in(3) { json!({ "trash": one, "to": to }) } else { json!({ "trash": one }) })
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
        "write" => add_random_base(random, known, current(at), &mut arguments),
        "append" | "remove" if random.one_in(2) => add_random_base(random, known, current(at), &mut arguments),
        "copy" | "move" if random.one_in(2) => arguments["overwrite"] = json!(true),
        "undo" | "redo" if random.one_in(3) && known.entries > 0 => {
            let last = usize::try_from(known.entries).unwrap();
            arguments["entry"] = json!(last + 1 - (1 + random.random_below(last.min(20))));
            if random.one_in(4) {
                arguments["dry_run"] = json!(true);
            }
        }
        _ => {}
    }
    let key = random.one_in(6).then(|| format!("k{}", random.random_below(8)));
    RandomCall { caller: random.random_below(3), operation, arguments, key, model_trash }
}

/// The local workspace and the model refuse an undo of large content with different errors, because the local workspace
/// retains large content only once its file is replaced.
pub(crate) fn comparable_kind(kind: ErrorKind) -> ErrorKind {
    if kind == ErrorKind::Expired { ErrorKind::Conflict } else { kind }
}

pub(crate) fn remove_incomparable_fields(answer: &mut Value) {
    match answer {
        Value::Object(fields) => {
            fields.remove("reason");
            // The test inspects the tree through the local workspace, which therefore has recorded more reads.
            for name in ["trash", "restores", "hash", "modified", "changed_since_read"] {
                fields.remove(name);
            }
            fields.values_mut().for_each(remove_incomparable_fields);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_incomparable_fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub(crate) fn shorten_arguments(arguments: &Value) -> String {
    let mut arguments = arguments.clone();
    if let Some(Value::String(text)) = arguments.get_mut("content") {
        let changed: Vec<&str> = text.lines().filter(|line| !line.starts_with("line")).collect();
        *text = format!("{} bytes, {:.30}", text.len(), changed.join(","));
    }
    arguments.to_string()
}

/// Replaces a file as an editor does: by a new file with the same permission bits.
pub(crate) fn overwrite_externally(target: &Path, content: &str) {
    let permissions = std::fs::metadata(target).unwrap().permissions();
    let beside = target.with_extension("beside");
    std::fs::write(&beside, content).unwrap();
    std::fs::set_permissions(&beside, permissions).unwrap();
    std::fs::rename(&beside, target).unwrap();
}

pub(crate) fn remove_externally(target: &Path) {
    std::fs::remove_file(target).unwrap();
}
