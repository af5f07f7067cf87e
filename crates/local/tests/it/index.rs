//! Tests that searches have the same results with and without the index, even if files change or the index is damaged.

#![expect(clippy::disallowed_methods, reason = "the test changes trees and the index from outside")]

mod attacks;
mod edits;

use std::{fs, path::Path, sync::Arc, time::Duration};

use edits::RandomTree;
use serde_json::{Value, json};
use stead_engine::{Caller, Engine};
use stead_local::{IndexBuildAndUseMode, IndexStatus, LocalWorkspace, LocalWorkspaceOptions};
use tempfile::TempDir;
use testkit::native::{EngineJsonCalls, JsonCall};
use testkit::{stress::SeededRng, wait::wait_until};

use crate::support::tester;

/// Two changes that are at least this far apart get different timestamps on every file system that the tests run on.
const MIN_FILE_AGE: Duration = Duration::from_millis(30);

pub(crate) struct SearchTestWorkspace {
    pub(crate) workspace: Arc<LocalWorkspace>,
    engine: Engine,
}

impl SearchTestWorkspace {
    pub(crate) fn open(directory: &Path, state: &str, indexing: IndexBuildAndUseMode) -> Self {
        fs::create_dir_all(directory.join("ws")).unwrap();
        let mut options = LocalWorkspaceOptions::new(directory.join("ws"), directory.join(state));
        options.index_mode = indexing;
        options.index_files_min = 1;
        options.index_min_file_age = MIN_FILE_AGE;
        let workspace = LocalWorkspace::open(options).unwrap();
        let engine = Engine::new(Arc::clone(&workspace) as Arc<dyn stead_engine::Workspace>);
        Self { workspace, engine }
    }

    pub(crate) fn search(&self, arguments: &Value) -> String {
        self.search_as(&tester(), arguments)
    }

    pub(crate) fn search_as(&self, caller: &Caller, arguments: &Value) -> String {
        let Value::Object(fields) = arguments.clone() else { panic!("arguments are an object") };
        match self.engine.call(&JsonCall::new(caller, "search", fields)) {
            Ok(answer) => format!("{:#}\n{}", Value::Object(answer.json), answer.text),
            Err(error) => error.to_string(),
        }
    }

    pub(crate) fn index_status(&self) -> IndexStatus {
        self.workspace.index_status()
    }

    pub(crate) fn wait_until_indexed(&self) {
        wait_until("the workspace is watched and indexed", || {
            let status = self.index_status();
            status.is_watched && status.segments > 0
        });
    }
}

pub(crate) fn wait_for_new_timestamps(directory: &Path) {
    let probe = directory.join("clock");
    let touched = || {
        fs::write(&probe, "").unwrap();
        fs::metadata(&probe).unwrap().modified().unwrap()
    };
    let begun = touched();
    wait_until("the clock of the file system moves", || {
        touched().duration_since(begun).is_ok_and(|passed| passed >= MIN_FILE_AGE * 2)
    });
}

/// The workspaces share one tree: without an index, with an index that needs a walk, and with a watched tree.
struct SearchTestWorkspaceVariants {
    directory: TempDir,
    unindexed: SearchTestWorkspace,
    indexed: SearchTestWorkspace,
    watched: SearchTestWorkspace,
}

impl SearchTestWorkspaceVariants {
    fn new(directory: TempDir) -> Self {
        let open = |state: &str, indexing| SearchTestWorkspace::open(directory.path(), state, indexing);
        let (unindexed, indexed) =
            (open("plain", IndexBuildAndUseMode::Off), open("swept", IndexBuildAndUseMode::UseExisting));
        let watched = open("watched", IndexBuildAndUseMode::Maintain);
        Self { directory, unindexed, indexed, watched }
    }

    fn assert_same_answers(&self, arguments: &Value, after: &str) {
        let expected = self.unindexed.search(arguments);
        for (side, how) in [(&self.indexed, "swept"), (&self.watched, "watched")] {
            let found = side.search(arguments);
            assert_eq!(found, expected, "{how}, {arguments} after {after}: {:?}", side.index_status());
        }
    }
}

fn random_query(chance: &mut SeededRng) -> Value {
    let word = edits::random_word(chance);
    match chance.below(13) {
        0 => json!({ "query": word, "ignore_case": true }),
        1 => json!({ "query": word, "word": true }),
        2 => json!({ "query": format!("{}.*{}", &word[..3], edits::random_word(chance)), "regex": true }),
        3 => json!({ "query": [word, edits::random_word(chance)] }),
        4 => json!({ "query": format!("({word}|{})[a-c]?$", edits::random_word(chance)), "regex": true }),
        5 => json!({ "query": word, "all": true }),
        6 => json!({ "query": word, "glob": "*.rs" }),
        7 => json!({ "query": word, "path": "a" }),
        8 => json!({ "query": &word[..2] }),
        9 => json!({ "query": "çà et là" }),
        _ => json!({ "query": word }),
    }
}

fn random_edits(seed: u64, steps: usize) {
    let sides = SearchTestWorkspaceVariants::new(tempfile::tempdir().unwrap());
    let mut chance = SeededRng::from_seed(seed);
    let tree = RandomTree::new(sides.directory.path().join("ws"));
    tree.create(&mut chance);
    wait_for_new_timestamps(sides.directory.path());
    sides.indexed.workspace.build_index().unwrap();
    sides.assert_same_answers(&json!({ "query": "needle" }), "the beginning");
    sides.watched.wait_until_indexed();
    for step in 0..steps {
        let did = tree.random_edit(&mut chance, &sides.unindexed.engine);
        for _ in 0..2 {
            sides.assert_same_answers(&random_query(&mut chance), &format!("{seed}, step {step}: {did}"));
        }
        if chance.below(20) == 0 {
            wait_for_new_timestamps(sides.directory.path());
            sides.indexed.workspace.build_index().unwrap();
            sides.watched.workspace.build_index().unwrap();
        }
    }
    let (swept, watched) = (sides.indexed.index_status(), sides.watched.index_status());
    assert!(swept.filtered_searches as usize > steps / 2, "{swept:?}");
    assert!(watched.indexed_walks as usize > steps / 2, "{watched:?}");
}

#[test]
fn indexed_answers_equal_unindexed_answers() {
    for seed in [1, SeededRng::seed_of_run().unwrap()] {
        random_edits(seed, 60);
    }
}

#[test]
fn the_index_is_really_used() {
    let sides = SearchTestWorkspaceVariants::new(tempfile::tempdir().unwrap());
    let top = sides.directory.path().join("ws");
    for number in 0..300 {
        let directory = top.join(format!("d{}", number % 20));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(format!("f{number}.txt")), format!("line {number}\nneedle{number}\n")).unwrap();
    }
    wait_for_new_timestamps(sides.directory.path());
    sides.indexed.workspace.build_index().unwrap();
    sides.assert_same_answers(&json!({ "query": "needle7" }), "the beginning");
    sides.watched.wait_until_indexed();
    assert_eq!(sides.indexed.index_status().files, 300);
    let before = (sides.indexed.index_status().filtered_searches, sides.watched.index_status().indexed_walks);
    sides.assert_same_answers(&json!({ "query": "needle123" }), "building");
    assert_eq!(
        (sides.indexed.index_status().filtered_searches, sides.watched.index_status().indexed_walks),
        (before.0 + 1, before.1 + 1)
    );
    for number in 0..40 {
        let query = json!({ "query": format!("needle{number}"), "word": true });
        sides.assert_same_answers(&query, "each");
    }
    assert!(sides.watched.index_status().indexed_walks >= before.1 + 40);
}

fn watched_variants(files: &[(&str, &str)]) -> SearchTestWorkspaceVariants {
    let sides = SearchTestWorkspaceVariants::new(tempfile::tempdir().unwrap());
    for (path, text) in files {
        let path = sides.directory.path().join("ws").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    wait_for_new_timestamps(sides.directory.path());
    sides.indexed.workspace.build_index().unwrap();
    sides.assert_same_answers(&json!({ "query": "needle" }), "the beginning");
    sides.watched.wait_until_indexed();
    sides.assert_same_answers(&json!({ "query": "needle" }), "settling");
    assert!(sides.watched.index_status().indexed_walks > 0);
    sides
}

#[test]
fn writes_through_a_hard_link_are_seen() {
    let sides = watched_variants(&[("a/one.txt", "first\n"), ("b/two.txt", "second\n")]);
    let top = sides.directory.path().join("ws");
    fs::hard_link(top.join("a/one.txt"), top.join("b/name.txt")).unwrap();
    fs::write(top.join("b/name.txt"), "needle\n").unwrap();
    sides.assert_same_answers(&json!({ "query": "needle" }), "a link and a write");
    fs::write(top.join("b/name.txt"), "other\n").unwrap();
    sides.assert_same_answers(&json!({ "query": "needle" }), "another write");
    sides.assert_same_answers(&json!({ "query": "other" }), "another write");
}

#[test]
fn overlong_lines_are_reported_with_the_index() {
    let long = format!("{}\n", "x".repeat(40_000));
    let sides = watched_variants(&[("a/long.txt", &long), ("a/needle.txt", "a needle\n"), ("b/short.txt", "x\n")]);
    let query = json!({ "query": "needle|zebra\\w{60}", "regex": true });
    assert!(sides.unindexed.search(&query).contains("\"left\""), "{}", sides.unindexed.search(&query));
    sides.assert_same_answers(&query, "nothing");
    let large = format!("{}needle\n", "a line of it\n".repeat(400_000));
    let sides = watched_variants(&[("large.txt", &large), ("small.txt", "a needle\n")]);
    sides.assert_same_answers(&json!({ "query": "needle" }), "nothing");
}

#[test]
fn watching_resumes_after_an_event_overflow() {
    let sides = watched_variants(&[("a/one.txt", "needle\n"), ("b/two.txt", "second\n")]);
    let top = sides.directory.path().join("ws");
    for number in 0..6_000 {
        fs::write(top.join(format!("a/f{}", number % 10)), "x").unwrap();
    }
    fs::write(top.join("b/two.txt"), "needle as well\n").unwrap();
    sides.assert_same_answers(&json!({ "query": "needle" }), "very many changes");
    sides.watched.wait_until_indexed();
    let before = sides.watched.index_status().indexed_walks;
    sides.assert_same_answers(&json!({ "query": "needle" }), "recovering");
    assert!(sides.watched.index_status().indexed_walks > before, "{:?}", sides.watched.index_status());
}

#[test]
fn the_index_respects_permissions() {
    let text = "needle\nother\n";
    let sides = watched_variants(&[
        ("open/a.txt", text),
        ("closed/b.txt", text),
        ("closed/deep/c.txt", text),
        (".gitignore", "*.log\n"),
        ("closed/.gitignore", "c.txt\n"),
    ]);
    let mut narrow = tester();
    narrow.grants.readable = vec![stead_path::RelPath::from_wire("open").unwrap()];
    let mut hiding = tester();
    hiding.grants.hidden = stead_engine::GlobPatternSet::new(["closed/**"]).unwrap();
    for caller in [narrow, hiding] {
        for query in ["needle", "nowhere", "other"] {
            let arguments = json!({ "query": query });
            let expected = sides.unindexed.search_as(&caller, &arguments);
            assert!(!expected.contains("closed"), "{expected}");
            assert_eq!(sides.indexed.search_as(&caller, &arguments), expected);
            assert_eq!(sides.watched.search_as(&caller, &arguments), expected);
        }
    }
}
