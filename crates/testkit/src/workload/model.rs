//! The model of the workload: the expected tree after each change, and the choice of the next change.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use stead_engine::Version;

use super::tree::{CrashTestFileVersionByPath, ModelItem, WorkloadFilePieces, piece_text};
use crate::stress::SeededRng;

const UNDO_DEPTH: usize = 24;
/// The number of items in the model's tree above which all changes are removals.
const MODEL_ITEMS_MAX: usize = 60;
/// A piece is the text that one write or append adds to a file.
const FILE_PIECES_MAX: usize = 8;
const DIRECTORIES: &[&str] = &["", "a/", "a/b/", "c/d/e/"];
/// The lengths of written pieces; stead stores short pieces in its database and long pieces in files.
const PIECE_LENGTHS: &[usize] = &[16, 200, 3_000, 100_000];

/// One change of the crash test's workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CrashTestWorkloadStep {
    /// The change replaces the content of a file by one piece.
    Write {
        /// The path of the written file.
        path: String,
        /// The serial number and the length of the written piece.
        piece: (u64, usize),
    },
    /// The change appends one piece to a file.
    Append {
        /// The path of the file that the change appends to.
        path: String,
        /// The serial number and the length of the appended piece.
        piece: (u64, usize),
    },
    /// The change copies a file or tree to a free path.
    Copy {
        /// The path of the copied file or tree.
        from: String,
        /// The path of the copy.
        to: String,
    },
    /// The change moves a file or tree to a free path, or a file over a file.
    Move {
        /// The path from which the file or tree is moved.
        from: String,
        /// The path to which the file or tree is moved.
        to: String,
    },
    /// The change moves a file or tree to the trash.
    Remove {
        /// The path of the removed file or tree.
        path: String,
    },
    /// The change restores an item from the trash.
    Restore {
        /// The id of the restored trash item.
        id: String,
    },
    /// The change undoes the last change.
    Undo,
    /// The change redoes the change that was undone last.
    Redo,
}

type ModelTree = BTreeMap<String, ModelItem>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ModelTrashItem {
    id: String,
    path: String,
    branch: ModelTree,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ModelUndoRecord {
    before: ModelTree,
    after: ModelTree,
    step: CrashTestWorkloadStep,
    trash: Option<String>,
}

/// A model of the workspace: the expected tree, trash and undo history.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceReferenceModel {
    tree: ModelTree,
    trash: Vec<ModelTrashItem>,
    past: Vec<ModelUndoRecord>,
    undone: Vec<ModelUndoRecord>,
    serial: u64,
}

impl WorkspaceReferenceModel {
    /// Returns the expected file versions by path, like the result of [`walk_workspace`](super::walk_workspace).
    pub fn path_versions(&self) -> CrashTestFileVersionByPath {
        self.tree
            .iter()
            .map(|(path, item)| match item {
                ModelItem::Directory => (path.clone(), None),
                ModelItem::File(pieces) => {
                    (path.clone(), Some(Version::hash_bytes(ModelItem::content_of(pieces).as_bytes())))
                }
            })
            .collect()
    }

    /// Chooses a random change that will succeed according to the model.
    pub fn next_step(&mut self, chance: &mut SeededRng) -> CrashTestWorkloadStep {
        self.serial += 1;
        for _ in 0..8 {
            if let Some(step) = self.choose_step(chance) {
                return step;
            }
        }
        let path = self.random_file_path(chance);
        CrashTestWorkloadStep::Write { path, piece: (self.serial, PIECE_LENGTHS[0]) }
    }

    fn choose_step(&self, chance: &mut SeededRng) -> Option<CrashTestWorkloadStep> {
        let full = self.tree.len() > MODEL_ITEMS_MAX;
        let piece = (self.serial, *chance.pick(PIECE_LENGTHS)?);
        Some(match if full { 12 } else { chance.below(20) } {
            0..=4 => CrashTestWorkloadStep::Write { path: self.random_file_path(chance), piece },
            5..=7 => {
                let path = self.random_file_path(chance);
                match self.tree.get(&path) {
                    Some(ModelItem::File(pieces)) if pieces.len() < FILE_PIECES_MAX => {
                        CrashTestWorkloadStep::Append { path, piece }
                    }
                    Some(_) | None => return None,
                }
            }
            8..=9 => {
                let from =
                    if chance.happens_percent(70) { self.random_directory(chance)? } else { self.random_path(chance)? };
                CrashTestWorkloadStep::Copy { to: self.random_free_path(chance, &from)?, from }
            }
            10..=11 => {
                let from = self.random_path(chance)?;
                let over = self.random_file_path(chance);
                let to = match (self.tree.get(&from), self.tree.get(&over)) {
                    (Some(ModelItem::File(_)), _) if from != over => over,
                    (Some(ModelItem::Directory | ModelItem::File(_)) | None, _) => {
                        self.random_free_path(chance, &from)?
                    }
                };
                CrashTestWorkloadStep::Move { from, to }
            }
            12..=14 => CrashTestWorkloadStep::Remove { path: self.random_path(chance)? },
            15..=16 => {
                let item = chance.pick(&self.trash)?;
                let below_file = |(at, _)| matches!(self.tree.get(&item.path[..at]), Some(ModelItem::File(_)));
                let free = !self.tree.contains_key(&item.path) && !item.path.match_indices('/').any(below_file);
                return free.then(|| CrashTestWorkloadStep::Restore { id: item.id.clone() });
            }
            17..=18 => return (!self.past.is_empty()).then_some(CrashTestWorkloadStep::Undo),
            _ => return (!self.undone.is_empty()).then_some(CrashTestWorkloadStep::Redo),
        })
    }

    /// Returns the operation and the arguments of the call that makes a change.
    pub fn call_for(&self, step: &CrashTestWorkloadStep) -> (&'static str, Map<String, Value>) {
        let (operation, arguments) = match step {
            CrashTestWorkloadStep::Write { path, piece } => {
                let base = match self.tree.get(path) {
                    Some(ModelItem::File(pieces)) => {
                        Version::hash_bytes(ModelItem::content_of(pieces).as_bytes()).to_string()
                    }
                    Some(ModelItem::Directory) | None => String::new(),
                };
                ("write", json!({ "path": path, "content": piece_text(*piece), "base": base }))
            }
            CrashTestWorkloadStep::Append { path, piece } => {
                ("append", json!({ "path": path, "content": piece_text(*piece) }))
            }
            CrashTestWorkloadStep::Copy { from, to } => ("copy", json!({ "from": from, "to": to })),
            CrashTestWorkloadStep::Move { from, to } => {
                ("move", json!({ "from": from, "to": to, "overwrite": self.tree.contains_key(to) }))
            }
            CrashTestWorkloadStep::Remove { path } => ("remove", json!({ "path": path, "recursive": true })),
            CrashTestWorkloadStep::Restore { id } => ("restore", json!({ "trash": id })),
            CrashTestWorkloadStep::Undo => ("undo", json!({})),
            CrashTestWorkloadStep::Redo => ("redo", json!({})),
        };
        let Value::Object(arguments) = arguments else { return (operation, Map::new()) };
        (operation, arguments)
    }

    /// Applies a change to the model. `trash` is the id of the trash item that the change created, if any.
    pub fn apply_step(&mut self, step: &CrashTestWorkloadStep, trash: Option<String>) {
        match step {
            CrashTestWorkloadStep::Undo => {
                let Some(past) = self.past.pop() else { return };
                self.tree = past.before.clone();
                if let Some(id) = &past.trash {
                    self.trash.retain(|item| item.id != *id);
                }
                self.undone.push(past);
            }
            CrashTestWorkloadStep::Redo => {
                let Some(past) = self.undone.pop() else { return };
                self.tree = past.after.clone();
                self.past.push(ModelUndoRecord { trash: None, ..past });
            }
            CrashTestWorkloadStep::Write { .. }
            | CrashTestWorkloadStep::Append { .. }
            | CrashTestWorkloadStep::Copy { .. }
            | CrashTestWorkloadStep::Move { .. }
            | CrashTestWorkloadStep::Remove { .. }
            | CrashTestWorkloadStep::Restore { .. } => self.apply_forward(step, trash),
        }
    }

    fn apply_forward(&mut self, step: &CrashTestWorkloadStep, trash: Option<String>) {
        let before = self.tree.clone();
        if let CrashTestWorkloadStep::Write { piece, .. } | CrashTestWorkloadStep::Append { piece, .. } = step {
            self.serial = self.serial.max(piece.0);
        }
        match step {
            CrashTestWorkloadStep::Write { path, piece } => self.put_item(path, ModelItem::File(vec![*piece])),
            CrashTestWorkloadStep::Append { path, piece } => {
                let mut pieces: WorkloadFilePieces = match self.tree.get(path) {
                    Some(ModelItem::File(pieces)) => pieces.clone(),
                    Some(ModelItem::Directory) | None => Vec::new(),
                };
                pieces.push(*piece);
                self.put_item(path, ModelItem::File(pieces));
            }
            CrashTestWorkloadStep::Copy { from, to } => {
                let branch = subtree_of(&self.tree, from);
                self.insert_subtree(to, branch);
            }
            CrashTestWorkloadStep::Move { from, to } => {
                let branch = subtree_of(&self.tree, from);
                self.tree.retain(|path, _| !is_within(path, from));
                self.insert_subtree(to, branch);
            }
            CrashTestWorkloadStep::Remove { path } => {
                let branch = subtree_of(&self.tree, path);
                self.tree.retain(|place, _| !is_within(place, path));
                if let Some(id) = &trash {
                    self.trash.push(ModelTrashItem { id: id.clone(), path: path.clone(), branch });
                }
            }
            CrashTestWorkloadStep::Restore { id } => {
                if let Some(at) = self.trash.iter().position(|item| item.id == *id) {
                    let item = self.trash.remove(at);
                    self.insert_subtree(&item.path, item.branch);
                }
            }
            CrashTestWorkloadStep::Undo | CrashTestWorkloadStep::Redo => {}
        }
        self.undone.clear();
        self.past.push(ModelUndoRecord { before, after: self.tree.clone(), step: step.clone(), trash });
        if self.past.len() > UNDO_DEPTH {
            self.past.remove(0);
        }
    }

    fn put_item(&mut self, path: &str, item: ModelItem) {
        for (at, _) in path.match_indices('/') {
            self.tree.entry(path[..at].to_owned()).or_insert(ModelItem::Directory);
        }
        self.tree.insert(path.to_owned(), item);
    }

    fn insert_subtree(&mut self, top: &str, branch: ModelTree) {
        for (below, item) in branch {
            self.put_item(&format!("{top}{below}"), item);
        }
    }

    /// Returns whether the model contains this trash item.
    pub fn knows_trash(&self, id: &str) -> bool {
        self.trash.iter().any(|item| item.id == id)
    }

    /// Returns the maximum number of temporary files that an interrupted change can leave.
    pub fn staged_files_max(&self, step: &CrashTestWorkloadStep) -> usize {
        let files = |top: &str| {
            let inside = |(path, item): &(&String, &ModelItem)| is_within(path, top) && **item != ModelItem::Directory;
            self.tree.iter().filter(inside).count()
        };
        match step {
            CrashTestWorkloadStep::Write { .. } | CrashTestWorkloadStep::Append { .. } => 1,
            CrashTestWorkloadStep::Copy { from, .. } => files(from),
            CrashTestWorkloadStep::Move { .. }
            | CrashTestWorkloadStep::Remove { .. }
            | CrashTestWorkloadStep::Restore { .. } => 0,
            // Undoing or redoing a removal may stage several files.
            CrashTestWorkloadStep::Undo | CrashTestWorkloadStep::Redo => MODEL_ITEMS_MAX,
        }
    }

    fn random_file_path(&self, chance: &mut SeededRng) -> String {
        let directory = chance.pick(DIRECTORIES).copied().unwrap_or_default();
        format!("{directory}f{}", chance.below(4))
    }

    fn random_path(&self, chance: &mut SeededRng) -> Option<String> {
        let paths: Vec<&String> = self.tree.keys().collect();
        chance.pick(&paths).map(|path| (*path).clone())
    }

    fn random_directory(&self, chance: &mut SeededRng) -> Option<String> {
        let directory = |(path, item): (&String, &ModelItem)| (*item == ModelItem::Directory).then(|| path.clone());
        let paths: Vec<String> = self.tree.iter().filter_map(directory).collect();
        chance.pick(&paths).cloned()
    }

    fn random_free_path(&self, chance: &mut SeededRng, from: &str) -> Option<String> {
        let place = format!("t{}/u{}", chance.below(3), chance.below(3));
        (!self.tree.contains_key(&place) && !is_within(&place, from)).then_some(place)
    }
}

fn is_within(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn subtree_of(tree: &ModelTree, top: &str) -> ModelTree {
    tree.iter()
        .filter(|(path, _)| is_within(path, top))
        .map(|(path, item)| (path[top.len()..].to_owned(), item.clone()))
        .collect()
}
