//! A tree of files that changes randomly, through stead and by other programs.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use stead_engine::Engine;
use testkit::native::{EngineJsonCalls, JsonCall};
use testkit::stress::SeededRng;

use crate::support::tester;

const WORDS: &[&str] =
    &["needle", "Needle", "haystack", "buffer", "stream", "parse", "render", "zebra", "quartz", "sphinx", "jackdaws"];
const DIRECTORIES: &[&str] = &["", "a", "a/b", "a/b/c", "d", "d/e", ".hidden", "target", "a/target", "new"];
const NAMES: &[&str] =
    &["one.rs", "two.rs", "three.txt", "four.log", "five.md", ".dot", "six.bak", "seven.rs", "eight"];
const IGNORE_PATTERNS: &[&str] =
    &["*.log\n", "target/\n", "/a\n", "!four.log\n", "*.rs\n!one.rs\n", "!.git\n!.hidden\n", ""];

pub(super) fn random_word(chance: &mut SeededRng) -> String {
    let word = chance.pick(WORDS).copied().unwrap_or_default();
    if chance.below(3) == 0 { format!("{word}{}", chance.below(9)) } else { word.to_owned() }
}

pub(super) struct RandomTree {
    top: PathBuf,
}

impl RandomTree {
    pub(super) fn new(top: PathBuf) -> Self {
        Self { top }
    }

    pub(super) fn create(&self, chance: &mut SeededRng) {
        fs::create_dir_all(self.top.join(".git/info")).unwrap();
        fs::write(self.top.join(".git/info/exclude"), "*.bak\n").unwrap();
        fs::write(self.top.join(".gitignore"), "target/\n*.log\n").unwrap();
        for directory in DIRECTORIES.iter().filter(|directory| **directory != "new") {
            for name in NAMES {
                self.write(&self.path_of(directory, name), &random_content(chance));
            }
        }
    }

    fn path_of(&self, directory: &str, name: &str) -> PathBuf {
        self.top.join(directory).join(name)
    }

    fn random_path(&self, chance: &mut SeededRng) -> PathBuf {
        self.path_of(self.random_directory(chance), chance.pick(NAMES).copied().unwrap_or_default())
    }

    fn random_directory(&self, chance: &mut SeededRng) -> &'static str {
        chance.pick(DIRECTORIES).copied().unwrap_or_default()
    }

    fn write(&self, path: &Path, bytes: &[u8]) {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).unwrap_or_default();
        }
        fs::write(path, bytes).unwrap_or_default();
    }

    /// A random change that fails is ignored.
    pub(super) fn random_edit(&self, chance: &mut SeededRng, engine: &Engine) -> String {
        let path = self.random_path(chance);
        let other = self.random_path(chance);
        let shown = path.strip_prefix(&self.top).unwrap().display().to_string();
        let kind = chance.below(16);
        match kind {
            0..=2 => self.write(&path, &random_content(chance)),
            3 => self.rewrite_with_same_size_and_time(&path),
            4 => fs::remove_file(&path).unwrap_or_default(),
            5 => fs::rename(&path, &other).unwrap_or_default(),
            6 => {
                let (from, to) = (self.random_directory(chance), self.random_directory(chance));
                if !from.is_empty() {
                    fs::rename(self.top.join(from), self.top.join(to).join("moved")).unwrap_or_default();
                }
            }
            7 => {
                let directory = self.random_directory(chance);
                if !directory.is_empty() {
                    fs::remove_dir_all(self.top.join(directory)).unwrap_or_default();
                }
            }
            8 => self.write(&self.path_of(self.random_directory(chance), ".gitignore"), random_ignore_file(chance)),
            9 => self.write(&self.path_of(self.random_directory(chance), ".ignore"), random_ignore_file(chance)),
            10 => self.write(&self.top.join(".git/info/exclude"), random_ignore_file(chance)),
            11 => {
                fs::remove_file(&other).unwrap_or_default();
                fs::hard_link(&path, &other).unwrap_or_default();
            }
            12 => fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap_or_default(),
            13 => {
                fs::remove_file(&path).unwrap_or_default();
                symlink("one.rs", &path).unwrap_or_default();
            }
            14 => {
                let file = fs::OpenOptions::new().append(true).open(&path);
                if let Ok(mut file) = file {
                    std::io::Write::write_all(&mut file, b"\nappended needle\n").unwrap();
                }
            }
            _ => self.edit_through_engine(chance, engine, &shown),
        }
        format!("{kind} {shown}")
    }

    fn rewrite_with_same_size_and_time(&self, path: &Path) {
        let (Ok(bytes), Ok(metadata)) = (fs::read(path), fs::symlink_metadata(path)) else { return };
        if !metadata.is_file() {
            return;
        }
        let turned: Vec<u8> = bytes.iter().rev().copied().collect();
        fs::write(path, turned).unwrap();
        let time = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH + Duration::from_secs(1));
        fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }

    fn edit_through_engine(&self, chance: &mut SeededRng, engine: &Engine, path: &str) {
        let text = format!("written by the server {}\n", random_word(chance));
        let removed = engine.call(&JsonCall::new(&tester(), "remove", object(json!({ "path": path }))));
        let arguments = json!({ "path": path, "content": text, "base": "" });
        let written = engine.call(&JsonCall::new(&tester(), "write", object(arguments)));
        assert!(removed.is_ok() || removed.is_err() || written.is_ok());
    }
}

fn object(value: Value) -> serde_json::Map<String, Value> {
    let Value::Object(fields) = value else { panic!("arguments are an object") };
    fields
}

fn random_ignore_file(chance: &mut SeededRng) -> &'static [u8] {
    chance.pick(IGNORE_PATTERNS).copied().unwrap_or_default().as_bytes()
}

fn random_content(chance: &mut SeededRng) -> Vec<u8> {
    let mut text = String::new();
    for _ in 0..chance.below(30) {
        for _ in 0..1 + chance.below(4) {
            text.push_str(&random_word(chance));
            text.push(' ');
        }
        text.push('\n');
    }
    match chance.below(12) {
        0 => [text.as_bytes(), b"\0\x01\x02"].concat(),
        1 => [&b"\xff\xfe"[..], &text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()].concat(),
        2 => [text.as_bytes(), b"\xe7\xe0 et l\xe0, d\xe9j\xe0 vu et caf\xe9\n"].concat(),
        3 => Vec::new(),
        5 => [text.as_bytes(), &[b'x'; 20_000], random_word(chance).as_bytes(), b"\n"].concat(),
        _ => text.into_bytes(),
    }
}
