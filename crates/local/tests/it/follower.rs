//! A listener that does as it is told, held against the disk.

#![expect(clippy::disallowed_methods, reason = "the truth is on the disk, beside the server")]

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::watch::{Listener, short};

/// Longest time until a listener that does not know everything hears more.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long one call waits for events.
const LISTEN_MS: u64 = 500;
/// How many of the differences a failure names.
const TOLD_MAX: usize = 5;

/// Every file and what it holds.
pub(crate) type Model = BTreeMap<String, String>;

pub(crate) fn on_disk(ws: &Path) -> Model {
    let mut model = Model::new();
    let mut waiting = vec![ws.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        // Others may still be at work.
        let Ok(listed) = fs::read_dir(&directory) else { continue };
        for entry in listed.map(Result::unwrap) {
            if entry.file_name().as_encoded_bytes().starts_with(path::TEMPORARY_PREFIX.as_bytes()) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            } else if let Ok(bytes) = fs::read(entry.path()) {
                let version = engine::Version::of(&bytes).to_string();
                let name = entry.path().strip_prefix(ws).unwrap().to_str().unwrap().to_owned();
                model.insert(name, version);
            }
        }
    }
    model
}

/// What a listener that does as it is told knows.
#[derive(Default)]
pub(crate) struct Follower {
    model: Model,
    pub(crate) rescans: usize,
    pub(crate) events: usize,
    /// Whether it looked around since it last knew everything.
    unsure: bool,
    /// What it was told, in short.
    pub(crate) heard: Vec<String>,
}

impl Follower {
    /// One that has looked around before it listens.
    pub(crate) fn of(ws: &Path) -> Self {
        Self { model: on_disk(ws), ..Self::default() }
    }

    pub(crate) fn take(&mut self, event: &Value, ws: &Path) {
        self.events += 1;
        self.heard.push(format!("{} {} {}", event["entry"], event["actor"], short(event)));
        let path = event["path"].as_str().unwrap();
        let version = event["version"].as_str();
        match event["event"].as_str().unwrap() {
            "create" | "modify" => {
                if let Some(version) = version {
                    self.model.insert(path.to_owned(), version.to_owned());
                }
            }
            "delete" => drop(self.branch(path)),
            // What it saw when it looked around may be later than this move.
            "rename" if self.unsure => self.model = on_disk(ws),
            "rename" => {
                let to = event["new_path"].as_str().unwrap();
                for (below, known) in self.branch(path) {
                    self.model.insert(format!("{to}{below}"), known);
                }
                if let Some(version) = version {
                    self.model.insert(to.to_owned(), version.to_owned());
                }
            }
            "rescan" => {
                self.rescans += 1;
                self.unsure = true;
                self.model = on_disk(ws);
            }
            other => panic!("{other}"),
        }
    }

    /// Takes a place out with everything below it.
    fn branch(&mut self, top: &str) -> Vec<(String, String)> {
        let below = format!("{top}/");
        let gone: Vec<String> =
            self.model.keys().filter(|path| *path == top || path.starts_with(&below)).cloned().collect();
        gone.into_iter()
            .filter_map(|path| self.model.remove(&path).map(|known| (path[top.len()..].to_owned(), known)))
            .collect()
    }

    /// Listens until it knows what is on the disk, where nobody changes anything any more.
    pub(crate) fn catch_up(&mut self, listener: &mut Listener<'_>, ws: &Path) -> Result<(), String> {
        let (disk, mut end) = (on_disk(ws), Instant::now() + PATIENCE);
        while self.model != disk {
            for event in listener.page(LISTEN_MS) {
                self.take(&event, ws);
                end = Instant::now() + PATIENCE;
            }
            if Instant::now() > end {
                let unlike = |(path, known): &(&String, &String)| self.model.get(*path) != Some(*known);
                let missing: Vec<_> = disk.iter().filter(unlike).take(TOLD_MAX).collect();
                let extra = self.model.keys().filter(|path| !disk.contains_key(*path)).take(TOLD_MAX);
                let extra: Vec<_> = extra.collect();
                return Err(format!("missing {missing:?}, extra {extra:?}, rescans {}", self.rescans));
            }
        }
        // Whoever has looked around knows more than it was told, and hears the rest of it later.
        while self.unsure {
            let page = listener.page(LISTEN_MS);
            page.iter().for_each(|event| self.take(event, ws));
            self.unsure = !page.is_empty();
        }
        Ok(())
    }
}
