//! A simulation of one file that an editor and an agent change at random, with saves, closes and crashes of the editor.
//! A typed word may be lost only if the person removes it, overwrites it, or closes the file without saving. Every
//! typed word is unique, so that the test can find it.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use stead_engine::{Caller, Error, ErrorKind, Principal};
use testkit::{ErrorDetailsJson, engine_fixture::EngineFixture};

/// A random number generator with a seed, so that a failing run can be repeated.
struct TypingRng(u64);

impl TypingRng {
    fn next_below(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap()
    }
}

/// A simulated editor, which learns about agents' changes only from the results of its own calls.
struct TypingSimulationEditor {
    caller: Caller,
    text: String,
    revision: u64,
    open: bool,
    /// The typed words that must still be in the buffer or in the file on disk.
    typed_words: BTreeSet<String>,
}

struct TypingSimulation {
    fixture: EngineFixture,
    rng: TypingRng,
    editor: TypingSimulationEditor,
    words_used: usize,
    conflicts: usize,
    merges: usize,
}

const PATH: &str = "a.txt";

impl TypingSimulation {
    fn new(seed: u64) -> Self {
        let lines: String = (0..12).map(|line| format!("line {line}\n")).collect();
        let fixture = EngineFixture::with_files(&[(PATH, &lines)]);
        let caller = Caller::new(Principal::User("ann".to_owned()), "editor", "library");
        let editor =
            TypingSimulationEditor { caller, text: lines, revision: 0, open: false, typed_words: BTreeSet::new() };
        Self { fixture, rng: TypingRng(seed * 2 + 1), editor, words_used: 0, conflicts: 0, merges: 0 }
    }

    fn call_as_editor(&self, operation: &str, arguments: Value) -> Result<Value, Error> {
        let outcome = self.fixture.call_as(&self.editor.caller, operation, arguments)?;
        Ok(Value::Object(outcome.json))
    }

    fn disk_text(&self) -> String {
        String::from_utf8(self.fixture.workspace.bytes(PATH).unwrap()).unwrap()
    }

    fn next_word(&mut self, who: &str) -> String {
        self.words_used += 1;
        format!("{who}{}", self.words_used)
    }

    fn insert_word(&mut self, text: &str, word: &str) -> String {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let at = self.rng.next_below(lines.len() + 1);
        match lines.get_mut(at) {
            Some(line) if self.rng.next_below(2) == 0 => line.push_str(&format!(" {word}")),
            Some(_) | None => lines.insert(at, word.to_owned()),
        }
        lines.join("\n") + "\n"
    }

    fn editor_types(&mut self) {
        if !self.editor.open {
            self.editor.text = self.disk_text();
            let opened = self.call_as_editor("buffer.open", json!({ "path": PATH, "text": self.editor.text })).unwrap();
            self.editor.revision = opened["revision"].as_u64().unwrap();
            self.editor.open = true;
        }
        let word = self.next_word("typed");
        let text = self.insert_word(&self.editor.text.clone(), &word);
        self.editor.typed_words.insert(word);
        self.editor.text = text;
        self.send_buffer_change();
    }

    /// Sends the editor's text; on a conflict with an agent's change, the person keeps the words of both.
    fn send_buffer_change(&mut self) {
        let (text, revision) = (self.editor.text.clone(), self.editor.revision);
        match self.call_as_editor("buffer.change", json!({ "path": PATH, "revision": revision, "text": text })) {
            Ok(outcome) => {
                self.editor.revision = outcome["revision"].as_u64().unwrap();
                if let Some(text) = outcome["text"].as_str() {
                    self.merges += 1;
                    text.clone_into(&mut self.editor.text);
                }
            }
            Err(error) => {
                assert!(matches!(error.kind, ErrorKind::Conflict | ErrorKind::Stale), "{error}");
                self.conflicts += 1;
                let now = error.details_json()["text"].as_str().unwrap().to_owned();
                self.editor.revision = error.details_json()["revision"].as_u64().unwrap();
                let missing: Vec<String> =
                    self.editor.typed_words.iter().filter(|word| !text_contains_word(&now, word)).cloned().collect();
                self.editor.text = now + &missing.join("\n") + if missing.is_empty() { "" } else { "\n" };
                self.send_buffer_change();
            }
        }
    }

    fn agent_edits(&mut self) {
        let read = self.fixture.call_ok("read", json!({ "path": PATH }));
        let (content, version) = (read["content"].as_str().unwrap(), read["version"].clone());
        let word = self.next_word("agent");
        let text = self.insert_word(content, &word);
        let text = if self.rng.next_below(3) == 0 {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.remove(self.rng.next_below(lines.len()));
            lines.join("\n") + "\n"
        } else {
            text
        };
        match self.fixture.call("write", json!({ "path": PATH, "content": text, "base": version })) {
            Ok(_) => {}
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Conflict, "{error}");
                self.conflicts += 1;
            }
        }
    }

    fn editor_saves(&mut self) {
        if !self.editor.open {
            return;
        }
        self.send_buffer_change();
        match self.call_as_editor("buffer.save", json!({ "path": PATH })) {
            Ok(outcome) => {
                self.editor.revision = outcome["revision"].as_u64().unwrap();
                if let Some(text) = outcome["text"].as_str() {
                    text.clone_into(&mut self.editor.text);
                }
                // The history keeps saved text, so anyone may change saved words.
                self.editor.typed_words.clear();
            }
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Conflict, "{error}");
                self.conflicts += 1;
            }
        }
    }

    fn editor_closes(&mut self) {
        if self.editor.open {
            self.call_as_editor("buffer.close", json!({ "path": PATH })).unwrap();
            self.editor.open = false;
            self.editor.typed_words.clear();
        }
    }

    fn editor_crashes(&mut self) {
        if !self.editor.open {
            return;
        }
        self.fixture.workspace.kill_editors();
        self.editor.open = false;
        if self.rng.next_below(2) == 0 {
            self.agent_edits();
        }
        match self.call_as_editor("buffer.open", json!({ "path": PATH })) {
            Ok(taken) => {
                self.editor.open = true;
                self.editor.revision = taken["revision"].as_u64().unwrap();
                taken["text"].as_str().unwrap().clone_into(&mut self.editor.text);
            }
            // Without a draft, the whole text is on disk.
            Err(error) => assert_eq!(error.kind, ErrorKind::NotFound, "{error}"),
        }
    }

    fn change_disk_externally(&mut self) {
        let word = self.next_word("outside");
        let text = self.insert_word(&self.disk_text(), &word);
        self.fixture.workspace.put_file(PATH, text);
    }

    fn check_nothing_lost(&self, what: &str) {
        let seen = self.fixture.call_ok("read", json!({ "path": PATH }));
        let (seen, disk) = (seen["content"].as_str().unwrap(), self.disk_text());
        for word in &self.editor.typed_words {
            assert!(
                text_contains_word(seen, word) || text_contains_word(&disk, word),
                "{what}: {word} is neither in\n{seen}nor in\n{disk}"
            );
        }
    }
}

fn text_contains_word(text: &str, word: &str) -> bool {
    text.split_whitespace().any(|found| found == word)
}

#[test]
fn typed_words_are_never_lost() {
    let (mut conflicts, mut merges) = (0, 0);
    for seed in 1..=60 {
        let mut life = TypingSimulation::new(seed);
        for step in 0..80 {
            let what = life.rng.next_below(16);
            match what {
                0..=5 => life.editor_types(),
                6..=11 => life.agent_edits(),
                12 => life.editor_saves(),
                13 => life.editor_closes(),
                14 => life.editor_crashes(),
                _ => life.change_disk_externally(),
            }
            life.check_nothing_lost(&format!("seed {seed}, step {step}, action {what}"));
        }
        conflicts += life.conflicts;
        merges += life.merges;
    }
    // Without a single conflict, the simulation would not have tested the merge.
    assert!(conflicts > 50 && merges > 50, "{conflicts} conflicts, {merges} merges");
}
