//! A test client that applies every watch event to its copy of the tree, which is then compared with the disk.

#![expect(clippy::disallowed_methods, reason = "the truth is on the disk, beside the server")]

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::watch::{TestWatchClient, short_event};

const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(30);
const LISTEN_MS: u64 = 500;
const SHOWN_EVENTS_MAX: usize = 5;

pub(crate) type FileContentsByPath = BTreeMap<String, String>;

pub(crate) fn read_tree(ws: &Path) -> FileContentsByPath {
    let mut model = FileContentsByPath::new();
    let mut waiting = vec![ws.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        // Other threads may still be writing.
        let Ok(listed) = fs::read_dir(&directory) else { continue };
        for entry in listed.map(Result::unwrap) {
            if entry.file_name().as_encoded_bytes().starts_with(stead_path::TEMPORARY_PREFIX.as_bytes()) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            } else if let Ok(bytes) = fs::read(entry.path()) {
                let version = stead_engine::Version::hash_bytes(&bytes).to_string();
                let name = entry.path().strip_prefix(ws).unwrap().to_str().unwrap().to_owned();
                model.insert(name, version);
            }
        }
    }
    model
}

#[derive(Default)]
pub(crate) struct EventDerivedTestTree {
    tree: FileContentsByPath,
    pub(crate) rescans: usize,
    pub(crate) events: usize,
    /// Whether the test client's copy was read from disk and may be newer than the next watch events.
    is_unsure: bool,
    pub(crate) recent_events: Vec<String>,
}

impl EventDerivedTestTree {
    pub(crate) fn from_directory(ws: &Path) -> Self {
        Self { tree: read_tree(ws), ..Self::default() }
    }

    /// The test client reads the directory at most once per page of events, because reading a large tree takes long.
    pub(crate) fn apply_page(&mut self, page: &[Value], ws: &Path) {
        let mut needs_read = false;
        for event in page {
            needs_read |= self.apply_event(event);
        }
        if needs_read {
            self.tree = read_tree(ws);
        }
    }

    fn apply_event(&mut self, event: &Value) -> bool {
        self.events += 1;
        self.recent_events.push(format!("{} {} {}", event["entry"], event["actor"], short_event(event)));
        let path = event["path"].as_str().unwrap();
        let version = event["version"].as_str();
        match event["event"].as_str().unwrap() {
            "create" | "modify" => {
                if let Some(version) = version {
                    self.tree.insert(path.to_owned(), version.to_owned());
                }
            }
            "delete" => drop(self.take_branch(path)),
            // The directory may have been read after this move.
            "rename" if self.is_unsure => return true,
            "rename" => {
                let to = event["new_path"].as_str().unwrap();
                for (below, known) in self.take_branch(path) {
                    self.tree.insert(format!("{to}{below}"), known);
                }
                if let Some(version) = version {
                    self.tree.insert(to.to_owned(), version.to_owned());
                }
            }
            "rescan" => {
                self.rescans += 1;
                self.is_unsure = true;
                return true;
            }
            other => panic!("{other}"),
        }
        false
    }

    fn take_branch(&mut self, top: &str) -> Vec<(String, String)> {
        let below = format!("{top}/");
        let gone: Vec<String> =
            self.tree.keys().filter(|path| *path == top || path.starts_with(&below)).cloned().collect();
        gone.into_iter()
            .filter_map(|path| self.tree.remove(&path).map(|known| (path[top.len()..].to_owned(), known)))
            .collect()
    }

    pub(crate) fn catch_up(&mut self, listener: &mut TestWatchClient<'_>, ws: &Path) -> Result<(), String> {
        let (disk, mut end) = (read_tree(ws), Instant::now() + CATCH_UP_TIMEOUT);
        while self.tree != disk {
            let page = listener.next_page(LISTEN_MS);
            if !page.is_empty() {
                self.apply_page(&page, ws);
                end = Instant::now() + CATCH_UP_TIMEOUT;
            }
            if Instant::now() > end {
                let unlike = |(path, known): &(&String, &String)| self.tree.get(*path) != Some(*known);
                let missing: Vec<_> = disk.iter().filter(unlike).take(SHOWN_EVENTS_MAX).collect();
                let extra = self.tree.keys().filter(|path| !disk.contains_key(*path)).take(SHOWN_EVENTS_MAX);
                let extra: Vec<_> = extra.collect();
                return Err(format!("missing {missing:?}, extra {extra:?}, rescans {}", self.rescans));
            }
        }
        // After reading the directory the client is ahead of the events, which arrive later.
        while self.is_unsure {
            let page = listener.next_page(LISTEN_MS);
            self.apply_page(&page, ws);
            self.is_unsure = !page.is_empty();
        }
        Ok(())
    }
}
