//! Making a plan true on a copy of the tree, change by change. The copy replaces the tree only when every change
//! fitted, so a plan is all or nothing by construction.

use engine::{
    Change, CommitError, Content, Expect, Failure, Kind, Mode, NEW_FILE_MODE, Plan, Trashed, Tree as Amount,
    Version,
};
use journal::{ChangeKind, State as Recorded};
use path::RelPath;

use super::{
    State,
    tree::{Branch, Item, Placed, Tree},
};

/// Permission bits that are ever written.
const MODE_BITS: u32 = 0o777;

/// Something in the trash.
#[derive(Clone)]
pub(super) struct InTrash {
    pub(super) facts: Trashed,
    branch: Branch,
}

/// What a plan comes to.
pub(super) struct Applied {
    pub(super) tree: Tree,
    pub(super) changes: Vec<journal::Change>,
    pub(super) kept: Vec<(Version, Vec<u8>)>,
    pub(super) trashed: Vec<InTrash>,
    pub(super) restored: Vec<String>,
    pub(super) notices: Vec<String>,
}

/// Applies a plan to a copy of the tree.
pub(super) fn apply(state: &State, plan: &Plan, owner: &str) -> Result<Applied, CommitError> {
    let mut applying = Applying {
        state,
        owner,
        done: Applied {
            tree: state.tree.clone(),
            changes: Vec::new(),
            kept: Vec::new(),
            trashed: Vec::new(),
            restored: Vec::new(),
            notices: Vec::new(),
        },
    };
    plan.changes.iter().try_for_each(|change| applying.change(change))?;
    Ok(applying.done)
}

struct Applying<'a> {
    state: &'a State,
    owner: &'a str,
    done: Applied,
}

impl Applying<'_> {
    fn change(&mut self, change: &Change) -> Result<(), CommitError> {
        match change {
            Change::Put { path, expect, content, version, mode, size: _ } => {
                self.put(path, *expect, content, version, mode)
            }
            Change::MakeDirectory { path, mode } => {
                self.make(path, Item::Directory, *mode)?;
                self.record(path, ChangeKind::MakeDir, Recorded::Absent, Recorded::Directory { mode: *mode });
                Ok(())
            }
            Change::MakeLink { path, target } => {
                self.make(path, Item::Link(target.clone()), MODE_BITS)?;
                let after = Recorded::Link { target: String::from_utf8_lossy(target).into_owned() };
                self.record(path, ChangeKind::MakeLink, Recorded::Absent, after);
                Ok(())
            }
            Change::Move { from, to, expect, over, tree } => {
                self.expect(from, *expect)?;
                self.expect(to, *over)?;
                self.rename(from, to, tree)
            }
            Change::Remove { path, expect, keep_until_ms, tree } => {
                self.expect(path, *expect)?;
                self.remove(path, *keep_until_ms, tree);
                Ok(())
            }
            Change::RemoveDirectory { path } => {
                let Some(mode) = self.done.tree.get(path).map(|placed| placed.mode) else {
                    return Err(moved(path));
                };
                if !self.done.tree.list(path)?.is_empty() {
                    return Err(moved(path));
                }
                self.done.tree.take(path);
                self.record(path, ChangeKind::Remove, Recorded::Directory { mode }, Recorded::Absent);
                Ok(())
            }
            Change::Restore { trash, path, tree: _ } => self.restore(trash, path),
        }
    }

    fn put(
        &mut self,
        path: &RelPath,
        expect: Expect,
        content: &Content,
        version: &Version,
        mode: &Mode,
    ) -> Result<(), CommitError> {
        self.expect(path, expect)?;
        self.parent_of(path)?;
        let (bytes, source_mode) = self.content(content)?;
        if Version::of(&bytes) != *version {
            return Err(moved(path));
        }
        let old = self.done.tree.get(path).cloned();
        let mut before = Recorded::Absent;
        if let Some(old) = &old {
            self.keep(old);
            if let Item::File(bytes) = &old.item {
                before = file_state(bytes, old.mode);
            }
            if old.links > 1 {
                self.done
                    .notices
                    .push(format!("{path} had {} names; the others keep the old bytes", old.links));
            }
        }
        let kind = if old.is_some() { ChangeKind::Modify } else { ChangeKind::Create };
        let mode = match (mode, old) {
            (Mode::Set(mode), _) => *mode,
            (Mode::Like(from, seen), _) => {
                // As it was before the plan, which may have put something else there by now.
                let model = self.state.tree.get(from).filter(|model| match &model.item {
                    Item::File(bytes) => Version::of(bytes) == seen.version,
                    Item::Directory | Item::Link(_) | Item::Special => false,
                });
                model.ok_or_else(|| moved(from))?.mode
            }
            (Mode::Keep, Some(old)) => old.mode,
            (Mode::Keep, None) => source_mode.unwrap_or(NEW_FILE_MODE),
        };
        let after = file_state(&bytes, mode & MODE_BITS);
        self.done.kept.push((*version, bytes.clone()));
        self.done.tree.put(path, Item::File(bytes), mode & MODE_BITS, self.state.now_ms);
        self.record(path, kind, before, after);
        Ok(())
    }

    fn rename(&mut self, from: &RelPath, to: &RelPath, tree: &Amount) -> Result<(), CommitError> {
        self.parent_of(to)?;
        let before = self.state_at(from, tree, None)?;
        if let Some(replaced) = self.done.tree.get(to).cloned() {
            let lost = self.state_at(to, tree, None)?;
            self.keep(&replaced);
            self.done.tree.take(to);
            self.record(to, ChangeKind::Remove, lost, Recorded::Absent);
        }
        let branch = self.done.tree.take(from);
        self.done.tree.graft(to, branch)?;
        let (path, to, after) = (from.to_string(), Some(to.to_string()), before.clone());
        self.done.changes.push(journal::Change { path, kind: ChangeKind::Rename, to, before, after });
        Ok(())
    }

    fn remove(&mut self, path: &RelPath, keep_until_ms: i64, tree: &Amount) {
        let id = format!("t{}-{}", self.state.ledger.head().number + 1, self.done.trashed.len());
        let facts = Trashed {
            id: id.clone(),
            owner: self.owner.to_owned(),
            path: path.clone(),
            tree: *tree,
            removed_ms: self.state.now_ms,
            keep_until_ms,
            entry: 0,
        };
        let version = match self.done.tree.get(path).map(|placed| &placed.item) {
            Some(Item::File(bytes)) => Some(Version::of(bytes).0),
            Some(Item::Link(_) | Item::Directory | Item::Special) | None => None,
        };
        let branch = self.done.tree.take(path);
        self.done.trashed.push(InTrash { facts, branch });
        let before = Recorded::Tree { trash: Some(id), files: tree.files, bytes: tree.bytes, version };
        self.record(path, ChangeKind::Remove, before, Recorded::Absent);
    }

    fn restore(&mut self, id: &str, path: &RelPath) -> Result<(), CommitError> {
        self.expect(path, Expect::Absent)?;
        self.parent_of(path)?;
        let gone = || Failure::new(Kind::NotFound, format!("{id} is not in the trash"));
        let item = self.state.trash.get(id).cloned().ok_or_else(gone)?;
        self.done.tree.graft(path, item.branch)?;
        self.done.restored.push(id.to_owned());
        let after = self.state_at(path, &item.facts.tree, Some(id))?;
        self.record(path, ChangeKind::Create, Recorded::Absent, after);
        Ok(())
    }

    fn make(&mut self, path: &RelPath, item: Item, mode: u32) -> Result<(), CommitError> {
        self.expect(path, Expect::Absent)?;
        self.parent_of(path)?;
        self.done.tree.put(path, item, mode, self.state.now_ms);
        Ok(())
    }

    /// Bytes to be written, with the permission bits of the file they are copied from.
    fn content(&self, content: &Content) -> Result<(Vec<u8>, Option<u32>), CommitError> {
        match content {
            Content::Bytes(bytes) => Ok((bytes.clone(), None)),
            Content::Kept(version) => match self.state.kept.get(version) {
                Some(bytes) => Ok((bytes.clone(), None)),
                None => Err(Failure::new(Kind::Expired, "those bytes are no longer kept").into()),
            },
            Content::CopyOf(from, seen) => match self.done.tree.get(from) {
                Some(Placed { item: Item::File(bytes), mode, .. }) if Version::of(bytes) == seen.version => {
                    Ok((bytes.clone(), Some(*mode)))
                }
                Some(_) | None => Err(moved(from)),
            },
        }
    }

    /// Whether a place is what the plan expects, earlier changes of the same plan included.
    fn expect(&self, path: &RelPath, expect: Expect) -> Result<(), CommitError> {
        let fits = match (expect, self.done.tree.get(path)) {
            (Expect::Absent, None) => true,
            (Expect::File(seen), Some(Placed { item: Item::File(bytes), .. })) => {
                Version::of(bytes) == seen.version
            }
            (Expect::Node(stamp), Some(placed)) => placed.node().stamp.identity == stamp.identity,
            (Expect::Absent, Some(_)) | (Expect::File(_), Some(_) | None) | (Expect::Node(_), None) => false,
        };
        if fits { Ok(()) } else { Err(moved(path)) }
    }

    fn parent_of(&self, path: &RelPath) -> Result<(), CommitError> {
        if self.done.tree.has_parent(path) { Ok(()) } else { Err(moved(path)) }
    }

    /// How the journal describes what is at a place: a file or link by itself, anything else by how much it is.
    fn state_at(&self, path: &RelPath, tree: &Amount, trash: Option<&str>) -> Result<Recorded, CommitError> {
        let placed = self.done.tree.get(path).ok_or_else(|| moved(path))?;
        Ok(match &placed.item {
            Item::File(bytes) => file_state(bytes, placed.mode),
            Item::Link(target) => Recorded::Link { target: String::from_utf8_lossy(target).into_owned() },
            Item::Directory | Item::Special => Recorded::Tree {
                trash: trash.map(str::to_owned),
                files: tree.files,
                bytes: tree.bytes,
                version: None,
            },
        })
    }

    fn keep(&mut self, placed: &Placed) {
        if let Item::File(bytes) = &placed.item {
            self.done.kept.push((Version::of(bytes), bytes.clone()));
        }
    }

    fn record(&mut self, path: &RelPath, kind: ChangeKind, before: Recorded, after: Recorded) {
        self.done.changes.push(journal::Change { path: path.to_string(), kind, to: None, before, after });
    }
}

fn file_state(bytes: &[u8], mode: u32) -> Recorded {
    Recorded::File { version: Version::of(bytes).0, size: bytes.len() as u64, mode }
}

fn moved(path: &RelPath) -> CommitError {
    CommitError::Moved(path.clone())
}
