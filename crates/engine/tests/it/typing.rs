//! Random typing, agent edits, saves, closes and crashes on one file, held against what a person would expect: no
//! character that was typed is ever lost, unless the person took it away, closed without saving or overwrote it.
//!
//! Every typed word is unique, so that it can be looked for.

use std::collections::BTreeSet;

use engine::{Caller, Failure, Kind, Principal};
use serde_json::{Value, json};

use crate::world::World;

/// A small generator: the same seed gives the same life.
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap()
    }
}

/// A person at an editor that hears nothing but the answers to its own calls.
struct Person {
    caller: Caller,
    text: String,
    revision: u64,
    open: bool,
    /// Words that were typed and must be somewhere.
    typed: BTreeSet<String>,
}

struct Life {
    world: World,
    chance: Chance,
    person: Person,
    words: usize,
    conflicts: usize,
    merges: usize,
}

const PATH: &str = "a.txt";

impl Life {
    fn new(seed: u64) -> Self {
        let lines: String = (0..12).map(|line| format!("line {line}\n")).collect();
        let world = World::with(&[(PATH, &lines)]);
        let caller = Caller::new(Principal::User("ann".to_owned()), "editor", "library");
        let person = Person { caller, text: lines, revision: 0, open: false, typed: BTreeSet::new() };
        Self { world, chance: Chance(seed * 2 + 1), person, words: 0, conflicts: 0, merges: 0 }
    }

    fn person(&self, operation: &str, arguments: Value) -> Result<Value, Failure> {
        let answer = self.world.call_as(&self.person.caller, operation, arguments)?;
        Ok(Value::Object(answer.json))
    }

    fn disk(&self) -> String {
        String::from_utf8(self.world.workspace.bytes(PATH).unwrap()).unwrap()
    }

    fn word(&mut self, who: &str) -> String {
        self.words += 1;
        format!("{who}{}", self.words)
    }

    /// The text with a word put into it, in a new line or at the end of one.
    fn typed_into(&mut self, text: &str, word: &str) -> String {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let at = self.chance.next(lines.len() + 1);
        match lines.get_mut(at) {
            Some(line) if self.chance.next(2) == 0 => line.push_str(&format!(" {word}")),
            Some(_) | None => lines.insert(at, word.to_owned()),
        }
        lines.join("\n") + "\n"
    }

    fn types(&mut self) {
        if !self.person.open {
            self.person.text = self.disk();
            let opened =
                self.person("buffer.open", json!({ "path": PATH, "text": self.person.text })).unwrap();
            self.person.revision = opened["revision"].as_u64().unwrap();
            self.person.open = true;
        }
        let word = self.word("typed");
        let text = self.typed_into(&self.person.text.clone(), &word);
        self.person.typed.insert(word);
        self.person.text = text;
        self.tells();
    }

    /// Tells the server what the editor has. Where it meets what an agent wrote, the person keeps both.
    fn tells(&mut self) {
        let (text, revision) = (self.person.text.clone(), self.person.revision);
        match self.person("buffer.change", json!({ "path": PATH, "revision": revision, "text": text })) {
            Ok(answer) => {
                self.person.revision = answer["revision"].as_u64().unwrap();
                if let Some(text) = answer["text"].as_str() {
                    self.merges += 1;
                    text.clone_into(&mut self.person.text);
                }
            }
            Err(failure) => {
                assert!(matches!(failure.kind, Kind::Conflict | Kind::Stale), "{failure}");
                self.conflicts += 1;
                let now = failure.facts["text"].as_str().unwrap().to_owned();
                self.person.revision = failure.facts["revision"].as_u64().unwrap();
                let missing: Vec<String> =
                    self.person.typed.iter().filter(|word| !holds(&now, word)).cloned().collect();
                self.person.text = now + &missing.join("\n") + if missing.is_empty() { "" } else { "\n" };
                self.tells();
            }
        }
    }

    fn agent_edits(&mut self) {
        let read = self.world.ok("read", json!({ "path": PATH })).json;
        let (content, version) = (read["content"].as_str().unwrap(), read["version"].clone());
        let word = self.word("agent");
        let text = self.typed_into(content, &word);
        // Sometimes it takes a line away, which may be one that was just typed.
        let text = if self.chance.next(3) == 0 {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.remove(self.chance.next(lines.len()));
            lines.join("\n") + "\n"
        } else {
            text
        };
        match self.world.call("write", json!({ "path": PATH, "content": text, "base": version })) {
            Ok(_) => {}
            Err(failure) => {
                assert_eq!(failure.kind, Kind::Conflict, "{failure}");
                self.conflicts += 1;
            }
        }
    }

    fn saves(&mut self) {
        if !self.person.open {
            return;
        }
        self.tells();
        match self.person("buffer.save", json!({ "path": PATH })) {
            Ok(answer) => {
                self.person.revision = answer["revision"].as_u64().unwrap();
                if let Some(text) = answer["text"].as_str() {
                    text.clone_into(&mut self.person.text);
                }
                // What is on disk is for everybody to change; it is kept in the history.
                self.person.typed.clear();
            }
            Err(failure) => {
                assert_eq!(failure.kind, Kind::Conflict, "{failure}");
                self.conflicts += 1;
            }
        }
    }

    fn closes(&mut self) {
        if self.person.open {
            self.person("buffer.close", json!({ "path": PATH })).unwrap();
            self.person.open = false;
            self.person.typed.clear();
        }
    }

    fn crashes(&mut self) {
        if !self.person.open {
            return;
        }
        self.world.workspace.lose_editors();
        self.person.open = false;
        if self.chance.next(2) == 0 {
            self.agent_edits();
        }
        match self.person("buffer.open", json!({ "path": PATH })) {
            Ok(taken) => {
                self.person.open = true;
                self.person.revision = taken["revision"].as_u64().unwrap();
                taken["text"].as_str().unwrap().clone_into(&mut self.person.text);
            }
            // What was left is on disk.
            Err(failure) => assert_eq!(failure.kind, Kind::NotFound, "{failure}"),
        }
    }

    fn others_change_the_disk(&mut self) {
        let word = self.word("outside");
        let text = self.typed_into(&self.disk(), &word);
        self.world.workspace.put_file(PATH, text);
    }

    fn check(&self, what: &str) {
        let seen = self.world.ok("read", json!({ "path": PATH })).json;
        let (seen, disk) = (seen["content"].as_str().unwrap(), self.disk());
        for word in &self.person.typed {
            assert!(
                holds(seen, word) || holds(&disk, word),
                "{what}: {word} is neither in\n{seen}nor in\n{disk}"
            );
        }
    }
}

fn holds(text: &str, word: &str) -> bool {
    text.split_whitespace().any(|found| found == word)
}

#[test]
fn no_typed_character_is_lost() {
    let (mut conflicts, mut merges) = (0, 0);
    for seed in 1..=60 {
        let mut life = Life::new(seed);
        for step in 0..80 {
            let what = life.chance.next(16);
            match what {
                0..=5 => life.types(),
                6..=11 => life.agent_edits(),
                12 => life.saves(),
                13 => life.closes(),
                14 => life.crashes(),
                _ => life.others_change_the_disk(),
            }
            life.check(&format!("seed {seed}, step {step}, action {what}"));
        }
        conflicts += life.conflicts;
        merges += life.merges;
    }
    // A life without quarrels shows nothing.
    assert!(conflicts > 50 && merges > 50, "{conflicts} conflicts, {merges} merges");
}
