//! The table of patches that change files: what they leave, or how they are refused. Owns the cases and the way each is
//! checked, so that every workspace is held to the same ones. Every patch that changes something is also undone and
//! done again.

use std::collections::BTreeMap;

use engine::{Answer, Failure};
use serde::Deserialize;
use serde_json::{Value, json};

const CASES: &str = include_str!("../cases/patches.json");

/// One case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name.
    pub id: String,
    #[serde(default)]
    tree: BTreeMap<String, String>,
    #[serde(default)]
    links: BTreeMap<String, String>,
    #[serde(default)]
    patch: Vec<String>,
    whole: Option<String>,
    #[serde(default)]
    base: BTreeMap<String, String>,
    #[serde(default)]
    overwrite: bool,
    #[serde(default)]
    dry_run: bool,
    after: Option<BTreeMap<String, Option<String>>>,
    files: Option<Vec<String>>,
    #[serde(default)]
    unchanged: bool,
    error: Option<String>,
    mentions: Option<String>,
}

/// A workspace that cases are run on.
pub trait Ground {
    /// Puts a file.
    fn put(&self, path: &str, bytes: &[u8]);
    /// Puts a link.
    fn link(&self, path: &str, target: &str);
    /// Calls an operation as an agent.
    fn call(&self, operation: &str, arguments: Value) -> Result<Answer, Failure>;
    /// Every file with its bytes, every link as `-> target`, every directory as nothing.
    fn tree(&self) -> BTreeMap<String, Option<Vec<u8>>>;
}

/// Every case.
#[expect(clippy::expect_used, reason = "a table that cannot be read is a mistake in the test")]
pub fn cases() -> Vec<Case> {
    serde_json::from_str(CASES).expect("a table of cases")
}

impl Case {
    /// Runs it on an empty ground; answers what went wrong.
    pub fn check(&self, ground: &dyn Ground) -> Result<(), String> {
        for (path, text) in &self.tree {
            ground.put(path, text.as_bytes());
        }
        for (path, target) in &self.links {
            ground.link(path, target);
        }
        let before = ground.tree();
        let answer = ground.call("patch", self.arguments());
        let now = ground.tree();
        match (&self.error, answer) {
            (Some(kind), Err(failure)) => self.refused(kind, &failure, &before, &now),
            (Some(kind), Ok(answer)) => Err(format!("should fail as {kind}, but: {}", answer.text)),
            (None, Err(failure)) => Err(failure.to_string()),
            (None, Ok(answer)) => self.done(ground, &answer, &before, &now),
        }
    }

    fn arguments(&self) -> Value {
        let lines: String = self.patch.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let whole = self.whole.clone().unwrap_or_else(|| format!("*** Begin Patch\n{lines}*** End Patch\n"));
        json!({ "patch": whole, "base": self.base, "overwrite": self.overwrite, "dry_run": self.dry_run })
    }

    fn refused(&self, kind: &str, failure: &Failure, before: &Tree, now: &Tree) -> Result<(), String> {
        same("a refused patch left", before, now)?;
        if failure.kind.code() != kind {
            return Err(format!("should fail as {kind}: {failure}"));
        }
        match &self.mentions {
            Some(words) if !failure.to_string().contains(words) => Err(format!("no {words:?} in {failure}")),
            Some(_) | None => Ok(()),
        }
    }

    fn done(&self, ground: &dyn Ground, answer: &Answer, before: &Tree, now: &Tree) -> Result<(), String> {
        let mut expected = before.clone();
        for (path, text) in self.after.iter().flatten() {
            match text {
                Some(text) => expected.insert(path.clone(), Some(text.clone().into_bytes())),
                None => expected.remove(path),
            };
        }
        same("the patch left", &files(&expected), &files(now))?;
        if let Some(files) = &self.files {
            let told: Vec<String> = answer.json["files"].as_array().into_iter().flatten().map(told).collect();
            if told != *files {
                return Err(format!("told {told:?}"));
            }
        }
        if self.unchanged {
            return same("an idle patch left", before, now);
        }
        ground.call("undo", json!({})).map_err(|failure| format!("undo: {failure}"))?;
        same("undo left", before, &ground.tree())?;
        ground.call("redo", json!({})).map_err(|failure| format!("redo: {failure}"))?;
        same("redo left", now, &ground.tree())
    }
}

/// A patch made by chance: sections that may or may not fit each other.
///
/// Whatever it is, a refused one leaves everything as it was, and one that is applied can be undone and done again.
pub fn by_chance(seed: u64, ground: &dyn Ground) -> Result<Outcome, String> {
    let mut dice = Dice(seed.wrapping_mul(2).wrapping_add(1));
    for path in ["a", "b", "d/c"] {
        if dice.roll(4) > 0 {
            ground.put(path, format!("{path}1\nx\n{path}3\nx\n").as_bytes());
        }
    }
    let mut patch = String::from("*** Begin Patch\n");
    for _ in 0..=dice.roll(5) {
        patch.push_str(&section(&mut dice));
    }
    patch.push_str("*** End Patch\n");
    let before = ground.tree();
    let asked = json!({ "patch": patch, "overwrite": dice.roll(2) == 0 });
    let wrong = |what: String| format!("seed {seed}: {what}\n{patch}");
    match ground.call("patch", asked) {
        Err(failure) => {
            same("a refused patch left", &before, &ground.tree()).map_err(wrong)?;
            let is_known = failure.detail.contains("nothing was written");
            if is_known { Ok(Outcome::Refused) } else { Err(wrong(failure.to_string())) }
        }
        Ok(answer) if answer.json.get("changed") == Some(&json!(false)) => {
            same("an idle patch left", &before, &ground.tree()).map_err(wrong)?;
            Ok(Outcome::Idle)
        }
        Ok(_) => {
            let now = ground.tree();
            ground.call("undo", json!({})).map_err(|failure| wrong(format!("undo: {failure}")))?;
            same("undo left", &before, &ground.tree()).map_err(wrong)?;
            ground.call("redo", json!({})).map_err(|failure| wrong(format!("redo: {failure}")))?;
            same("redo left", &now, &ground.tree()).map_err(wrong)?;
            Ok(Outcome::Applied)
        }
    }
}

/// What became of a patch made by chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was applied, undone and done again.
    Applied,
    /// It changed nothing.
    Idle,
    /// It was refused, whole.
    Refused,
}

fn section(dice: &mut Dice) -> String {
    let place = |dice: &mut Dice| ["a", "b", "d/c", "n", "e/f"][dice.roll(5)];
    let (path, to) = (place(dice), place(dice));
    let chunk = match dice.roll(4) {
        0 => format!("@@\n {path}1\n-x\n+y\n"),
        1 => format!("@@\n-{path}3\n+z\n"),
        2 => "@@\n+tail\n".to_owned(),
        _ => format!("@@ {path}3\n-x\n"),
    };
    match dice.roll(6) {
        0 | 1 => format!("*** Update File: {path}\n{chunk}"),
        2 => format!("*** Add File: {path}\n+{path}1\n+x\n+{path}3\n"),
        3 => format!("*** Delete File: {path}\n"),
        4 => format!("*** Move File: {path} -> {to}\n"),
        _ => format!("*** Move File: {path} -> {to}\n{chunk}"),
    }
}

/// A small generator, so that a seed says everything.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % sides).unwrap_or_default()
    }
}

type Tree = BTreeMap<String, Option<Vec<u8>>>;

/// What one row of the answer says.
fn told(row: &Value) -> String {
    let fields = ["operation", "path", "to"].iter().filter_map(|name| row[name].as_str());
    fields.collect::<Vec<_>>().join(" ")
}

/// Without the directories.
fn files(tree: &Tree) -> Tree {
    tree.iter()
        .filter(|(_, bytes)| bytes.is_some())
        .map(|(path, bytes)| (path.clone(), bytes.clone()))
        .collect()
}

fn same(what: &str, expected: &Tree, found: &Tree) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    let shown = |tree: &Tree| {
        let line = |(path, bytes): (&String, &Option<Vec<u8>>)| {
            let text = bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            format!("{path}={text:?}")
        };
        tree.iter().map(line).collect::<Vec<_>>().join(" ")
    };
    Err(format!("{what} {} instead of {}", shown(found), shown(expected)))
}
