//! The search index: the same answers with and without it, whatever happens to the tree and to the index itself.

#![expect(clippy::disallowed_methods, reason = "the test changes trees and the index from outside")]

mod attacks;
mod edits;

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use edits::Tree;
use engine::{Call, Caller, Engine, Principal};
use local::{IndexFacts, Indexing, LocalWorkspace, Options};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::rig::Chance;

/// Two changes further apart than this have different stamps on every file system that tests run on.
const SETTLED: Duration = Duration::from_millis(30);

/// One opening of the workspace.
pub(crate) struct Side {
    pub(crate) workspace: Arc<LocalWorkspace>,
    engine: Engine,
}

impl Side {
    pub(crate) fn open(place: &Path, state: &str, indexing: Indexing) -> Self {
        fs::create_dir_all(place.join("ws")).unwrap();
        let mut options = Options::new(place.join("ws"), place.join(state));
        options.indexing = indexing;
        options.index_files_min = 1;
        options.index_settled = SETTLED;
        let workspace = LocalWorkspace::open(options).unwrap();
        let engine = Engine::new(Arc::clone(&workspace) as Arc<dyn engine::Workspace>);
        Self { workspace, engine }
    }

    /// Everything that a caller is told.
    pub(crate) fn search(&self, arguments: &Value) -> String {
        self.search_as(&caller(), arguments)
    }

    pub(crate) fn search_as(&self, caller: &Caller, arguments: &Value) -> String {
        let Value::Object(fields) = arguments.clone() else { panic!("arguments are an object") };
        match self.engine.call(&Call::new(caller, "search", fields)) {
            Ok(answer) => format!("{:#}\n{}", Value::Object(answer.json), answer.text),
            Err(failure) => failure.to_string(),
        }
    }

    pub(crate) fn facts(&self) -> IndexFacts {
        self.workspace.index_facts()
    }

    /// Waits until the tree is watched and everything in it known.
    pub(crate) fn settle(&self) {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let facts = self.facts();
            if facts.is_watched && facts.segments > 0 {
                return;
            }
            assert!(Instant::now() < until, "not watched: {facts:?}");
            std::thread::yield_now();
        }
    }
}

/// Waits until the file system's own clock says that what was changed so far has settled.
pub(crate) fn stamps_pass(place: &Path) {
    let probe = place.join("clock");
    let touched = || {
        fs::write(&probe, "").unwrap();
        fs::metadata(&probe).unwrap().modified().unwrap()
    };
    let begun = touched();
    while touched().duration_since(begun).is_ok_and(|passed| passed < SETTLED * 2) {
        std::thread::yield_now();
    }
}

pub(crate) fn caller() -> Caller {
    Caller::new(Principal::Agent("tester".into()), "s1", "library")
}

/// The same tree without an index, with one and a walk, and watched.
struct Sides {
    place: TempDir,
    plain: Side,
    swept: Side,
    watched: Side,
}

impl Sides {
    fn new(place: TempDir) -> Self {
        let open = |state: &str, indexing| Side::open(place.path(), state, indexing);
        let (plain, swept) = (open("plain", Indexing::Off), open("swept", Indexing::Use));
        let watched = open("watched", Indexing::Keep);
        Self { place, plain, swept, watched }
    }

    fn agree(&self, arguments: &Value, after: &str) {
        let expected = self.plain.search(arguments);
        for (side, how) in [(&self.swept, "swept"), (&self.watched, "watched")] {
            let found = side.search(arguments);
            assert_eq!(found, expected, "{how}, {arguments} after {after}: {:?}", side.facts());
        }
    }
}

/// A query that may or may not be true of a file.
fn query(chance: &mut Chance) -> Value {
    let word = edits::word(chance);
    match chance.below(13) {
        0 => json!({ "query": word, "ignore_case": true }),
        1 => json!({ "query": word, "word": true }),
        2 => json!({ "query": format!("{}.*{}", &word[..3], edits::word(chance)), "regex": true }),
        3 => json!({ "query": [word, edits::word(chance)] }),
        4 => json!({ "query": format!("({word}|{})[a-c]?$", edits::word(chance)), "regex": true }),
        5 => json!({ "query": word, "all": true }),
        6 => json!({ "query": word, "glob": "*.rs" }),
        7 => json!({ "query": word, "path": "a" }),
        8 => json!({ "query": &word[..2] }),
        9 => json!({ "query": "çà et là" }),
        _ => json!({ "query": word }),
    }
}

fn random_edits(seed: u64, steps: usize) {
    let sides = Sides::new(tempfile::tempdir().unwrap());
    let mut chance = Chance::seeded(seed);
    let tree = Tree::new(sides.place.path().join("ws"));
    tree.make(&mut chance);
    stamps_pass(sides.place.path());
    sides.swept.workspace.build_index().unwrap();
    sides.agree(&json!({ "query": "needle" }), "the beginning");
    sides.watched.settle();
    for step in 0..steps {
        let did = tree.edit(&mut chance, &sides.plain.engine);
        for _ in 0..2 {
            sides.agree(&query(&mut chance), &format!("{seed}, step {step}: {did}"));
        }
        if chance.below(20) == 0 {
            stamps_pass(sides.place.path());
            sides.swept.workspace.build_index().unwrap();
            sides.watched.workspace.build_index().unwrap();
        }
    }
    let (swept, watched) = (sides.swept.facts(), sides.watched.facts());
    assert!(swept.sifted as usize > steps / 2, "{swept:?}");
    assert!(watched.surveyed as usize > steps / 2, "{watched:?}");
}

#[test]
fn answers_are_the_same_whatever_happens_to_the_tree() {
    for seed in [1, Chance::seed().unwrap()] {
        random_edits(seed, 60);
    }
}

#[test]
fn the_index_is_really_used() {
    let sides = Sides::new(tempfile::tempdir().unwrap());
    let top = sides.place.path().join("ws");
    for number in 0..300 {
        let directory = top.join(format!("d{}", number % 20));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(format!("f{number}.txt")), format!("line {number}\nneedle{number}\n"))
            .unwrap();
    }
    stamps_pass(sides.place.path());
    sides.swept.workspace.build_index().unwrap();
    sides.agree(&json!({ "query": "needle7" }), "the beginning");
    sides.watched.settle();
    assert_eq!(sides.swept.facts().files, 300);
    let before = (sides.swept.facts().sifted, sides.watched.facts().surveyed);
    sides.agree(&json!({ "query": "needle123" }), "building");
    assert_eq!((sides.swept.facts().sifted, sides.watched.facts().surveyed), (before.0 + 1, before.1 + 1));
    for number in 0..40 {
        let query = json!({ "query": format!("needle{number}"), "word": true });
        sides.agree(&query, "each");
    }
    assert!(sides.watched.facts().surveyed >= before.1 + 40);
}

/// A tree of a few files that is watched already.
fn watched(files: &[(&str, &str)]) -> Sides {
    let sides = Sides::new(tempfile::tempdir().unwrap());
    for (path, text) in files {
        let path = sides.place.path().join("ws").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    stamps_pass(sides.place.path());
    sides.swept.workspace.build_index().unwrap();
    sides.agree(&json!({ "query": "needle" }), "the beginning");
    sides.watched.settle();
    sides.agree(&json!({ "query": "needle" }), "settling");
    assert!(sides.watched.facts().surveyed > 0);
    sides
}

#[test]
fn a_write_through_another_name_is_seen() {
    let sides = watched(&[("a/one.txt", "first\n"), ("b/two.txt", "second\n")]);
    let top = sides.place.path().join("ws");
    fs::hard_link(top.join("a/one.txt"), top.join("b/name.txt")).unwrap();
    fs::write(top.join("b/name.txt"), "needle\n").unwrap();
    sides.agree(&json!({ "query": "needle" }), "a link and a write");
    fs::write(top.join("b/name.txt"), "other\n").unwrap();
    sides.agree(&json!({ "query": "needle" }), "another write");
    sides.agree(&json!({ "query": "other" }), "another write");
}

#[test]
fn a_line_that_is_too_long_for_a_pattern_is_told_all_the_same() {
    let long = format!("{}\n", "x".repeat(40_000));
    let sides = watched(&[("a/long.txt", &long), ("a/needle.txt", "a needle\n"), ("b/short.txt", "x\n")]);
    let query = json!({ "query": "needle|zebra\\w{60}", "regex": true });
    assert!(sides.plain.search(&query).contains("\"left\""), "{}", sides.plain.search(&query));
    sides.agree(&query, "nothing");
    let large = format!("{}needle\n", "a line of it\n".repeat(400_000));
    let sides = watched(&[("large.txt", &large), ("small.txt", "a needle\n")]);
    sides.agree(&json!({ "query": "needle" }), "nothing");
}

#[test]
fn very_many_changes_at_once_are_all_seen_and_the_tree_is_watched_again() {
    let sides = watched(&[("a/one.txt", "needle\n"), ("b/two.txt", "second\n")]);
    let top = sides.place.path().join("ws");
    for number in 0..6_000 {
        fs::write(top.join(format!("a/f{}", number % 10)), "x").unwrap();
    }
    fs::write(top.join("b/two.txt"), "needle as well\n").unwrap();
    sides.agree(&json!({ "query": "needle" }), "very many changes");
    sides.watched.settle();
    let before = sides.watched.facts().surveyed;
    sides.agree(&json!({ "query": "needle" }), "recovering");
    assert!(sides.watched.facts().surveyed > before, "{:?}", sides.watched.facts());
}

#[test]
fn an_index_shows_nobody_what_they_may_not_see() {
    let text = "needle\nother\n";
    let sides = watched(&[
        ("open/a.txt", text),
        ("closed/b.txt", text),
        ("closed/deep/c.txt", text),
        (".gitignore", "*.log\n"),
        ("closed/.gitignore", "c.txt\n"),
    ]);
    let mut narrow = caller();
    narrow.grants.readable = vec![path::RelPath::from_wire("open").unwrap()];
    let mut hiding = caller();
    hiding.grants.hidden = engine::Globs::new(["closed/**"]).unwrap();
    for caller in [narrow, hiding] {
        for query in ["needle", "nowhere", "other"] {
            let arguments = json!({ "query": query });
            let expected = sides.plain.search_as(&caller, &arguments);
            assert!(!expected.contains("closed"), "{expected}");
            assert_eq!(sides.swept.search_as(&caller, &arguments), expected);
            assert_eq!(sides.watched.search_as(&caller, &arguments), expected);
        }
    }
}
