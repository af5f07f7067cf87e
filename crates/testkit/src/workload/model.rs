//! What the tree must be after each change, and which change comes next.

use std::collections::BTreeMap;

use engine::Version;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::tree::{Item, Pieces, Places, piece_text};
use crate::rig::Chance;

/// Changes that can be undone.
const UNDO_DEPTH: usize = 24;
/// From here on the tree only shrinks.
const ITEMS_MAX: usize = 60;
/// Most pieces in one file.
const PIECES_MAX: usize = 8;
/// Directories that files are written into; parents are made when they are missing.
const DIRECTORIES: &[&str] = &["", "a/", "a/b/", "c/d/e/"];
/// Lengths of pieces: small ones live in the database, large ones in files of their own.
const LENGTHS: &[usize] = &[16, 200, 3_000, 100_000];

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// A file gets this piece as its whole content.
    Write {
        /// Where.
        path: String,
        /// What.
        piece: (u64, usize),
    },
    /// A file gets this piece at its end.
    Append {
        /// Where.
        path: String,
        /// What.
        piece: (u64, usize),
    },
    /// A file or tree is copied to a free place.
    Copy {
        /// From where.
        from: String,
        /// To where.
        to: String,
    },
    /// A file or tree is moved to a free place, or a file over a file.
    Move {
        /// From where.
        from: String,
        /// To where.
        to: String,
    },
    /// A file or tree goes to the trash.
    Remove {
        /// Which.
        path: String,
    },
    /// A thing comes back from the trash.
    Restore {
        /// Which.
        id: String,
    },
    /// The last change is taken back.
    Undo,
    /// The change that was last taken back is made again.
    Redo,
}

type Tree = BTreeMap<String, Item>;

/// Something in the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Trashed {
    id: String,
    path: String,
    branch: Tree,
}

/// One change that can be taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Past {
    before: Tree,
    after: Tree,
    step: Step,
    /// The trash item it made, if it did.
    trash: Option<String>,
}

/// The tree, the trash, and what can be undone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    tree: Tree,
    trash: Vec<Trashed>,
    past: Vec<Past>,
    undone: Vec<Past>,
    serial: u64,
}

impl Model {
    /// The tree as a walk over the directory would find it.
    pub fn places(&self) -> Places {
        self.tree
            .iter()
            .map(|(path, item)| match item {
                Item::Directory => (path.clone(), None),
                Item::File(pieces) => (path.clone(), Some(Version::of(Item::content(pieces).as_bytes()))),
            })
            .collect()
    }

    /// A change that will succeed.
    pub fn next(&mut self, chance: &mut Chance) -> Step {
        self.serial += 1;
        for _ in 0..8 {
            if let Some(step) = self.choose(chance) {
                return step;
            }
        }
        let path = self.fresh_file(chance);
        Step::Write { path, piece: (self.serial, LENGTHS[0]) }
    }

    fn choose(&self, chance: &mut Chance) -> Option<Step> {
        let full = self.tree.len() > ITEMS_MAX;
        let piece = (self.serial, *chance.pick(LENGTHS)?);
        Some(match if full { 12 } else { chance.below(20) } {
            0..=4 => Step::Write { path: self.fresh_file(chance), piece },
            5..=7 => {
                let path = self.fresh_file(chance);
                match self.tree.get(&path) {
                    Some(Item::File(pieces)) if pieces.len() < PIECES_MAX => Step::Append { path, piece },
                    Some(_) | None => return None,
                }
            }
            8..=9 => {
                let from = if chance.happens(70) { self.any_directory(chance)? } else { self.any(chance)? };
                Step::Copy { to: self.free_place(chance, &from)?, from }
            }
            10..=11 => {
                let from = self.any(chance)?;
                let over = self.fresh_file(chance);
                let to = match (self.tree.get(&from), self.tree.get(&over)) {
                    (Some(Item::File(_)), _) if from != over => over,
                    (Some(Item::Directory | Item::File(_)) | None, _) => self.free_place(chance, &from)?,
                };
                Step::Move { from, to }
            }
            12..=14 => Step::Remove { path: self.any(chance)? },
            15..=16 => {
                let item = chance.pick(&self.trash)?;
                let below_file = |(at, _)| matches!(self.tree.get(&item.path[..at]), Some(Item::File(_)));
                let free =
                    !self.tree.contains_key(&item.path) && !item.path.match_indices('/').any(below_file);
                return free.then(|| Step::Restore { id: item.id.clone() });
            }
            17..=18 => return (!self.past.is_empty()).then_some(Step::Undo),
            _ => return (!self.undone.is_empty()).then_some(Step::Redo),
        })
    }

    /// The call that makes a change.
    pub fn call(&self, step: &Step) -> (&'static str, Map<String, Value>) {
        let (operation, arguments) = match step {
            Step::Write { path, piece } => {
                let base = match self.tree.get(path) {
                    Some(Item::File(pieces)) => Version::of(Item::content(pieces).as_bytes()).to_string(),
                    Some(Item::Directory) | None => String::new(),
                };
                ("write", json!({ "path": path, "content": piece_text(*piece), "base": base }))
            }
            Step::Append { path, piece } => {
                ("append", json!({ "path": path, "content": piece_text(*piece) }))
            }
            Step::Copy { from, to } => ("copy", json!({ "from": from, "to": to })),
            Step::Move { from, to } => {
                ("move", json!({ "from": from, "to": to, "overwrite": self.tree.contains_key(to) }))
            }
            Step::Remove { path } => ("remove", json!({ "path": path, "recursive": true })),
            Step::Restore { id } => ("restore", json!({ "trash": id })),
            Step::Undo => ("undo", json!({})),
            Step::Redo => ("redo", json!({})),
        };
        let Value::Object(arguments) = arguments else { return (operation, Map::new()) };
        (operation, arguments)
    }

    /// The change has happened. `trash` is the item it made, if it made one.
    pub fn happened(&mut self, step: &Step, trash: Option<String>) {
        match step {
            Step::Undo => {
                let Some(past) = self.past.pop() else { return };
                self.tree = past.before.clone();
                if let Some(id) = &past.trash {
                    self.trash.retain(|item| item.id != *id);
                }
                self.undone.push(past);
            }
            Step::Redo => {
                let Some(past) = self.undone.pop() else { return };
                self.tree = past.after.clone();
                self.past.push(Past { trash: None, ..past });
            }
            Step::Write { .. }
            | Step::Append { .. }
            | Step::Copy { .. }
            | Step::Move { .. }
            | Step::Remove { .. }
            | Step::Restore { .. } => self.forward(step, trash),
        }
    }

    fn forward(&mut self, step: &Step, trash: Option<String>) {
        let before = self.tree.clone();
        if let Step::Write { piece, .. } | Step::Append { piece, .. } = step {
            self.serial = self.serial.max(piece.0);
        }
        match step {
            Step::Write { path, piece } => self.put(path, Item::File(vec![*piece])),
            Step::Append { path, piece } => {
                let mut pieces: Pieces = match self.tree.get(path) {
                    Some(Item::File(pieces)) => pieces.clone(),
                    Some(Item::Directory) | None => Vec::new(),
                };
                pieces.push(*piece);
                self.put(path, Item::File(pieces));
            }
            Step::Copy { from, to } => {
                let branch = branch_of(&self.tree, from);
                self.graft(to, branch);
            }
            Step::Move { from, to } => {
                let branch = branch_of(&self.tree, from);
                self.tree.retain(|path, _| !is_within(path, from));
                self.graft(to, branch);
            }
            Step::Remove { path } => {
                let branch = branch_of(&self.tree, path);
                self.tree.retain(|place, _| !is_within(place, path));
                if let Some(id) = &trash {
                    self.trash.push(Trashed { id: id.clone(), path: path.clone(), branch });
                }
            }
            Step::Restore { id } => {
                if let Some(at) = self.trash.iter().position(|item| item.id == *id) {
                    let item = self.trash.remove(at);
                    self.graft(&item.path, item.branch);
                }
            }
            Step::Undo | Step::Redo => {}
        }
        self.undone.clear();
        self.past.push(Past { before, after: self.tree.clone(), step: step.clone(), trash });
        if self.past.len() > UNDO_DEPTH {
            self.past.remove(0);
        }
    }

    fn put(&mut self, path: &str, item: Item) {
        for (at, _) in path.match_indices('/') {
            self.tree.entry(path[..at].to_owned()).or_insert(Item::Directory);
        }
        self.tree.insert(path.to_owned(), item);
    }

    fn graft(&mut self, top: &str, branch: Tree) {
        for (below, item) in branch {
            self.put(&format!("{top}{below}"), item);
        }
    }

    /// Whether this thing in the trash is known.
    pub fn knows_trash(&self, id: &str) -> bool {
        self.trash.iter().any(|item| item.id == id)
    }

    /// How many files a change stages at most.
    pub fn staged_by(&self, step: &Step) -> usize {
        let files = |top: &str| {
            let inside = |(path, item): &(&String, &Item)| is_within(path, top) && **item != Item::Directory;
            self.tree.iter().filter(inside).count()
        };
        match step {
            Step::Write { .. } | Step::Append { .. } => 1,
            Step::Copy { from, .. } => files(from),
            Step::Move { .. } | Step::Remove { .. } | Step::Restore { .. } => 0,
            // Taking back a removal or making it again may put several files.
            Step::Undo | Step::Redo => ITEMS_MAX,
        }
    }

    /// A path for a file, there or not.
    fn fresh_file(&self, chance: &mut Chance) -> String {
        let directory = chance.pick(DIRECTORIES).copied().unwrap_or_default();
        format!("{directory}f{}", chance.below(4))
    }

    fn any(&self, chance: &mut Chance) -> Option<String> {
        let paths: Vec<&String> = self.tree.keys().collect();
        chance.pick(&paths).map(|path| (*path).clone())
    }

    fn any_directory(&self, chance: &mut Chance) -> Option<String> {
        let directory = |(path, item): (&String, &Item)| (*item == Item::Directory).then(|| path.clone());
        let paths: Vec<String> = self.tree.iter().filter_map(directory).collect();
        chance.pick(&paths).cloned()
    }

    /// A free place that is not inside of what goes there.
    fn free_place(&self, chance: &mut Chance, from: &str) -> Option<String> {
        let place = format!("t{}/u{}", chance.below(3), chance.below(3));
        (!self.tree.contains_key(&place) && !is_within(&place, from)).then_some(place)
    }
}

fn is_within(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Everything at and below a place, by the rest of its path.
fn branch_of(tree: &Tree, top: &str) -> Tree {
    tree.iter()
        .filter(|(path, _)| is_within(path, top))
        .map(|(path, item)| (path[top.len()..].to_owned(), item.clone()))
        .collect()
}
