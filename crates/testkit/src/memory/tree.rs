//! The tree: a map from link-free places to what is there, the root included, and the one way a path with links is
//! resolved.

use std::collections::BTreeMap;

use engine::{Failure, Kind, Last, Listed, Node, Stamp, Top};
use path::{Name, RelPath};

/// Most links expanded for one path.
const LINKS_MAX: usize = 40;

/// What is at a place.
#[derive(Debug, Clone)]
pub(super) enum Item {
    File(Vec<u8>),
    Directory,
    Link(Vec<u8>),
    Special,
}

/// Something with its facts.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) item: Item,
    pub(super) mode: u32,
    pub(super) links: u64,
    pub(super) modified_ms: i64,
    /// Stays when it moves; a replaced file gets another.
    pub(super) id: u64,
}

impl Placed {
    pub(super) fn top(&self) -> Top {
        match self.item {
            Item::File(_) => Top::File,
            Item::Directory => Top::Directory,
            Item::Link(_) => Top::Link,
            Item::Special => Top::Special,
        }
    }

    pub(super) fn node(&self) -> Node {
        let size = match &self.item {
            Item::File(bytes) | Item::Link(bytes) => bytes.len() as u64,
            Item::Directory | Item::Special => 0,
        };
        let modified_ns = i128::from(self.modified_ms) * 1_000_000;
        let stamp = Stamp { identity: (1, self.id), size, modified_ns, changed_ns: modified_ns };
        Node {
            top: self.top(),
            size,
            mode: self.mode,
            links: self.links,
            modified_ms: self.modified_ms,
            stamp,
        }
    }
}

/// A tree taken out of its place: what is in it, by the path below its top.
pub(super) type Branch = Vec<(RelPath, Placed)>;

/// All there is.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    places: BTreeMap<RelPath, Placed>,
    last_id: u64,
}

impl Tree {
    pub(super) fn new(now_ms: i64) -> Self {
        let mut tree = Self { places: BTreeMap::new(), last_id: 0 };
        tree.put(&RelPath::root(), Item::Directory, 0o755, now_ms);
        tree
    }

    pub(super) fn get(&self, path: &RelPath) -> Option<&Placed> {
        self.places.get(path)
    }

    pub(super) fn get_mut(&mut self, path: &RelPath) -> Option<&mut Placed> {
        self.places.get_mut(path)
    }

    pub(super) fn is_directory(&self, path: &RelPath) -> bool {
        self.get(path).is_some_and(|placed| placed.top() == Top::Directory)
    }

    /// Whether something new can be made here.
    pub(super) fn has_parent(&self, path: &RelPath) -> bool {
        path.parent().is_some_and(|parent| self.is_directory(&parent))
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &RelPath> {
        self.places.keys().filter(|path| !path.is_root())
    }

    /// Puts a new thing at a place, over whatever was there.
    pub(super) fn put(&mut self, path: &RelPath, item: Item, mode: u32, now_ms: i64) {
        self.last_id += 1;
        let placed = Placed { item, mode, links: 1, modified_ms: now_ms, id: self.last_id };
        self.places.insert(path.clone(), placed);
    }

    /// Takes a thing out with everything below it.
    pub(super) fn take(&mut self, top: &RelPath) -> Branch {
        let inside: Vec<RelPath> = self.places.keys().filter(|path| path.is_within(top)).cloned().collect();
        inside.iter().filter_map(|path| Some((path.below(top)?, self.places.remove(path)?))).collect()
    }

    /// Puts a branch back, at any place.
    pub(super) fn graft(&mut self, top: &RelPath, branch: Branch) -> Result<(), Failure> {
        for (below, placed) in branch {
            self.places.insert(top.append(&below)?, placed);
        }
        Ok(())
    }

    /// The names in a directory, in byte order.
    pub(super) fn list(&self, path: &RelPath) -> Result<Vec<Listed>, Failure> {
        match self.get(path).map(Placed::top) {
            Some(Top::Directory) => {}
            Some(Top::File | Top::Link | Top::Special) => {
                return Err(Failure::new(Kind::NotDirectory, format!("{path} is not a directory")));
            }
            None => return Err(Failure::new(Kind::NotFound, format!("{path} does not exist"))),
        }
        let mut names: Vec<Listed> = self
            .places
            .iter()
            .filter_map(|(place, placed)| place.split().map(|(parent, name)| (parent, name, placed.top())))
            .filter(|(parent, _, _)| parent == path)
            .map(|(_, name, top)| Listed { name, top })
            .collect();
        names.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(names)
    }

    /// The link-free place a path means. What does not exist yet is kept as it is written.
    pub(super) fn locate(&self, path: &RelPath, last: Last, roots: &[String]) -> Result<RelPath, Failure> {
        let escape = || Failure::new(Kind::PathEscape, format!("{path} leads out of the workspace"));
        let mut pending: Vec<Vec<u8>> = path.components().rev().map(<[u8]>::to_vec).collect();
        let mut found = RelPath::root();
        let (mut links, mut missing, mut went_up) = (0, false, false);
        while let Some(part) = pending.pop() {
            if !missing && !self.is_directory(&found) {
                return Err(Failure::new(Kind::NotDirectory, format!("{found} is not a directory")));
            }
            match part.as_slice() {
                b"" | b"." => continue,
                b".." => {
                    went_up |= missing;
                    found = found.parent().ok_or_else(escape)?;
                    continue;
                }
                _ => {}
            }
            let child = found.join(&Name::new(&part)?)?;
            let placed = if missing { None } else { self.get(&child) };
            match placed.map(|placed| &placed.item) {
                Some(Item::Link(_)) if last == Last::Keep && pending.is_empty() => return Ok(child),
                Some(Item::Link(target)) => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(Failure::new(
                            Kind::LinkLoop,
                            format!("{path} goes through too many links"),
                        ));
                    }
                    let relative = if target.starts_with(b"/") {
                        found = RelPath::root();
                        roots.iter().find_map(|root| below(target, root)).ok_or_else(escape)?
                    } else {
                        target.clone()
                    };
                    pending.extend(relative.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec));
                }
                Some(Item::File(_) | Item::Directory | Item::Special) => found = child,
                None => {
                    missing = true;
                    found = child;
                }
            }
        }
        // A `..` behind a missing name leads nowhere.
        if went_up { Err(Failure::new(Kind::NotFound, format!("{path} does not exist"))) } else { Ok(found) }
    }
}

/// The rest of an absolute target below a spelling of the root.
fn below(target: &[u8], root: &str) -> Option<Vec<u8>> {
    let rest = target.strip_prefix(root.as_bytes())?;
    match rest.first() {
        None => Some(Vec::new()),
        Some(b'/') => Some(rest[1..].to_vec()),
        Some(_) => None,
    }
}
