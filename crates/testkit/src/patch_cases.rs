//! A table of patches, each with the tree that it leaves or the error that it causes. All workspace implementations are
//! tested with the same patch cases.

use std::collections::BTreeMap;

use crate::native::RenderedOutcome;
use serde::Deserialize;
use serde_json::{Value, json};
use stead_engine::{Error, Tree};

use crate::engine_fixture::{EngineFixture, rel_path};

use crate::next_steps::error_json;

const CASES_JSON: &str = include_str!("../cases/patches.json");

/// One patch with its initial tree and its expected result.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatchCase {
    /// The name of the patch case.
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

/// An adapter for the workspace on which patch cases run.
pub trait PatchCaseWorkspaceAdapter {
    /// Creates a file in the workspace without calling an operation.
    fn put_file(&self, path: &str, bytes: &[u8]);
    /// Creates a symbolic link in the workspace without calling an operation.
    fn put_link(&self, path: &str, target: &str);
    /// Calls an operation as an agent.
    fn call(&self, operation: &str, arguments: Value) -> Result<RenderedOutcome, Error>;
    /// Returns the whole tree: files with their bytes, links as `-> target`, directories as `None`.
    fn read_tree(&self) -> BTreeMap<String, Option<Vec<u8>>>;
}

impl PatchCaseWorkspaceAdapter for EngineFixture {
    fn put_file(&self, path: &str, bytes: &[u8]) {
        self.workspace.put_file(path, bytes);
    }

    fn put_link(&self, path: &str, target: &str) {
        self.workspace.put_link(path, target);
    }

    fn call(&self, operation: &str, arguments: Value) -> Result<RenderedOutcome, Error> {
        EngineFixture::call(self, operation, arguments)
    }

    fn read_tree(&self) -> BTreeMap<String, Option<Vec<u8>>> {
        let link = |path: &str| {
            self.workspace
                .entry_at(&rel_path(path))
                .and_then(|entry| entry.read_link())
                .ok()
                .map(|target| [b"-> ", target.as_slice()].concat())
        };
        let paths = self.workspace.all_paths().into_iter();
        paths.map(|path| (path.clone(), self.workspace.bytes(&path).or_else(|| link(&path)))).collect()
    }
}

/// Parses all patch cases.
#[expect(clippy::expect_used, reason = "a table that cannot be read is a mistake in the test")]
pub fn load_cases() -> Vec<PatchCase> {
    serde_json::from_str(CASES_JSON).expect("a table of cases")
}

impl PatchCase {
    /// Applies, undoes and redoes the patch on an empty workspace; the error describes the first problem.
    pub fn check(&self, backend: &dyn PatchCaseWorkspaceAdapter) -> Result<(), String> {
        for (path, text) in &self.tree {
            backend.put_file(path, text.as_bytes());
        }
        for (path, target) in &self.links {
            backend.put_link(path, target);
        }
        let before = backend.read_tree();
        let answer = backend.call("patch", self.patch_arguments());
        let now = backend.read_tree();
        match (&self.error, answer) {
            (Some(kind), Err(failure)) => self.check_refusal(kind, &failure, &before, &now),
            (Some(kind), Ok(answer)) => Err(format!("should fail as {kind}, but: {}", answer.text)),
            (None, Err(failure)) => Err(failure.to_string()),
            (None, Ok(answer)) => self.check_success(backend, &answer, &before, &now),
        }
    }

    fn patch_arguments(&self) -> Value {
        let lines: String = self.patch.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let whole = self.whole.clone().unwrap_or_else(|| format!("*** Begin Patch\n{lines}*** End Patch\n"));
        json!({ "patch": whole, "base": self.base, "overwrite": self.overwrite, "dry_run": self.dry_run })
    }

    fn check_refusal(
        &self,
        kind: &str,
        failure: &Error,
        before: &PatchTestTreeContents,
        now: &PatchTestTreeContents,
    ) -> Result<(), String> {
        compare_trees("a refused patch left", before, now)?;
        if failure.kind.code() != kind {
            return Err(format!("should fail as {kind}: {failure}"));
        }
        match &self.mentions {
            Some(words) if !error_json(failure).to_string().contains(words) => {
                Err(format!("no {words:?} in {failure}"))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_success(
        &self,
        backend: &dyn PatchCaseWorkspaceAdapter,
        answer: &RenderedOutcome,
        before: &PatchTestTreeContents,
        now: &PatchTestTreeContents,
    ) -> Result<(), String> {
        let mut expected = before.clone();
        for (path, text) in self.after.iter().flatten() {
            match text {
                Some(text) => expected.insert(path.clone(), Some(text.clone().into_bytes())),
                None => expected.remove(path),
            };
        }
        compare_trees("the patch left", &without_directories(&expected), &without_directories(now))?;
        if let Some(files) = &self.files {
            let listed: Vec<String> = answer.json["files"].as_array().into_iter().flatten().map(row_text).collect();
            if listed != *files {
                return Err(format!("the result lists {listed:?}"));
            }
        }
        if self.unchanged {
            return compare_trees("an idle patch left", before, now);
        }
        backend.call("undo", json!({})).map_err(|failure| format!("undo: {failure}"))?;
        compare_trees("undo left", before, &backend.read_tree())?;
        backend.call("redo", json!({})).map_err(|failure| format!("redo: {failure}"))?;
        compare_trees("redo left", now, &backend.read_tree())
    }
}

/// Applies a random patch, whose sections may contradict each other. A rejected patch must leave everything unchanged,
/// and an applied patch must be undone and redone exactly.
pub fn try_random_patch(seed: u64, backend: &dyn PatchCaseWorkspaceAdapter) -> Result<RandomPatchOutcome, String> {
    let mut dice = PatchRng(seed.wrapping_mul(2).wrapping_add(1));
    for path in ["a", "b", "d/c"] {
        if dice.roll(4) > 0 {
            backend.put_file(path, format!("{path}1\nx\n{path}3\nx\n").as_bytes());
        }
    }
    let mut patch = String::from("*** Begin Patch\n");
    for _ in 0..=dice.roll(5) {
        patch.push_str(&random_section(&mut dice));
    }
    patch.push_str("*** End Patch\n");
    let before = backend.read_tree();
    let arguments = json!({ "patch": patch, "overwrite": dice.roll(2) == 0 });
    let wrong = |what: String| format!("seed {seed}: {what}\n{patch}");
    match backend.call("patch", arguments) {
        Err(failure) => {
            compare_trees("a refused patch left", &before, &backend.read_tree()).map_err(wrong)?;
            let is_known = failure.message.contains("nothing was written");
            if is_known { Ok(RandomPatchOutcome::Refused) } else { Err(wrong(failure.to_string())) }
        }
        Ok(answer) if answer.json.get("changed") == Some(&json!(false)) => {
            compare_trees("an idle patch left", &before, &backend.read_tree()).map_err(wrong)?;
            Ok(RandomPatchOutcome::Unchanged)
        }
        Ok(_) => {
            let now = backend.read_tree();
            backend.call("undo", json!({})).map_err(|failure| wrong(format!("undo: {failure}")))?;
            compare_trees("undo left", &before, &backend.read_tree()).map_err(wrong)?;
            backend.call("redo", json!({})).map_err(|failure| wrong(format!("redo: {failure}")))?;
            compare_trees("redo left", &now, &backend.read_tree()).map_err(wrong)?;
            Ok(RandomPatchOutcome::Applied)
        }
    }
}

/// The outcome of a random patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RandomPatchOutcome {
    /// The random patch was applied, undone and redone.
    Applied,
    /// The random patch was accepted and changed nothing.
    Unchanged,
    /// The random patch was rejected and changed nothing.
    Refused,
}

fn random_section(dice: &mut PatchRng) -> String {
    let place = |dice: &mut PatchRng| ["a", "b", "d/c", "n", "e/f"][dice.roll(5)];
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

/// The seed of the random number generator determines the whole patch.
struct PatchRng(u64);

impl PatchRng {
    fn roll(&mut self, sides: u64) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % sides).unwrap_or_default()
    }
}

type PatchTestTreeContents = BTreeMap<String, Option<Vec<u8>>>;

fn row_text(row: &Value) -> String {
    let fields = ["operation", "path", "to"].iter().filter_map(|name| row[name].as_str());
    fields.collect::<Vec<_>>().join(" ")
}

fn without_directories(tree: &PatchTestTreeContents) -> PatchTestTreeContents {
    tree.iter().filter(|(_, bytes)| bytes.is_some()).map(|(path, bytes)| (path.clone(), bytes.clone())).collect()
}

fn compare_trees(what: &str, expected: &PatchTestTreeContents, found: &PatchTestTreeContents) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    let shown = |tree: &PatchTestTreeContents| {
        let line = |(path, bytes): (&String, &Option<Vec<u8>>)| {
            let text = bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            format!("{path}={text:?}")
        };
        tree.iter().map(line).collect::<Vec<_>>().join(" ")
    };
    Err(format!("{what} {} instead of {}", shown(found), shown(expected)))
}
