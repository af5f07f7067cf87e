//! Gets a plan ready: looks again at everything it expects, puts new bytes beside their place under temporary names,
//! and writes down the steps. Until the journal has taken them nothing of the workspace has changed.

use std::collections::HashSet;

use disk::{Attributes, Directory, ErrorKind, OpenFile, Source, Stat};
use engine::{
    Change, CommitError, Content, Expect, Failure, Kind, Mode, NEW_FILE_MODE, Plan, Seen, Top, Tree, Version,
};
use journal::{ChangeKind, State};
use path::{Name, RelPath};

use crate::{
    failure,
    intent::{Id, Kept, Place, Replaced, Step, Temporary, nanoseconds},
    look,
    open::LocalWorkspace,
};

/// Bytes up to this many are kept in the database and need no sync of their own.
pub(crate) const INLINE_BYTES_MAX: u64 = 64 << 10;

/// A plan ready to be recorded and applied.
#[derive(Default)]
pub(crate) struct Prepared {
    pub(crate) steps: Vec<Step>,
    pub(crate) changes: Vec<journal::Change>,
    /// Bytes to keep, by version; nothing when they are or will be a file of their own.
    pub(crate) kept: Vec<(Version, u64, Option<Vec<u8>>)>,
    pub(crate) trashed: Vec<Trashing>,
    pub(crate) restored: Vec<String>,
    pub(crate) notices: Vec<String>,
    pub(crate) bytes: u64,
    /// Staged files, to be discarded unless they are used.
    staged: Vec<(Directory, Name)>,
    overlay: Overlay,
}

/// One thing on its way to the trash.
pub(crate) struct Trashing {
    pub(crate) id: String,
    pub(crate) path: RelPath,
    pub(crate) tree: Tree,
    pub(crate) keep_until_ms: i64,
}

/// What earlier changes of the same plan have done to the tree.
#[derive(Default)]
struct Overlay {
    freed: HashSet<RelPath>,
    made: HashSet<RelPath>,
}

impl Overlay {
    /// Whether the disk cannot tell what is at this place, because this plan itself decides it.
    fn covers(&self, path: &RelPath) -> bool {
        let decided = |place: &RelPath| self.freed.contains(place) || self.made.contains(place);
        decided(path) || path.ancestors().any(|above| decided(&above))
    }
}

impl Prepared {
    /// Removes staged files that were not used.
    pub(crate) fn discard(&mut self) {
        for (directory, name) in self.staged.drain(..) {
            // A leftover is hidden from every listing and swept later; the failure that led here matters more.
            match directory.remove_file(&name) {
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// The staged files belong to the journal now.
    pub(crate) fn recorded(&mut self) {
        self.staged.clear();
    }
}

/// Gets a plan ready, or says what moved.
pub(crate) fn prepare(workspace: &LocalWorkspace, plan: &Plan) -> Result<Prepared, CommitError> {
    let mut prepared = Prepared::default();
    for change in &plan.changes {
        if let Err(error) = workspace.ready(change, &mut prepared) {
            prepared.discard();
            return Err(error);
        }
    }
    Ok(prepared)
}

impl LocalWorkspace {
    fn ready(&self, change: &Change, prepared: &mut Prepared) -> Result<(), CommitError> {
        match change {
            Change::Put { path, expect, content, version, size, mode } => {
                self.ready_put(&Putting { path, expect, content, version, size: *size, mode }, prepared)
            }
            Change::MakeDirectory { path, mode } => {
                self.expect(path, &Expect::Absent, prepared)?;
                prepared.overlay.made.insert(path.clone());
                prepared.steps.push(Step::MakeDirectory { path: Place(path.clone()), mode: *mode });
                push(prepared, path, ChangeKind::MakeDir, State::Absent, State::Directory { mode: *mode });
                Ok(())
            }
            Change::MakeLink { path, target } => {
                self.expect(path, &Expect::Absent, prepared)?;
                prepared.overlay.made.insert(path.clone());
                let shown = State::Link { target: String::from_utf8_lossy(target).into_owned() };
                prepared.steps.push(Step::MakeLink { path: Place(path.clone()), target: target.clone() });
                push(prepared, path, ChangeKind::MakeLink, State::Absent, shown);
                Ok(())
            }
            Change::Move { from, to, expect, over, tree } => {
                self.ready_move(from, to, expect, over, tree, prepared)
            }
            Change::Remove { path, expect, keep_until_ms, tree } => {
                let stat =
                    self.expect(path, expect, prepared)?.ok_or_else(|| CommitError::Moved(path.clone()))?;
                self.refuse_far_from_trash(path)?;
                self.settle_below(path)?;
                let id = crate::trash::new_id().map_err(|error| failure::own(&error))?;
                prepared.steps.push(Step::Remove {
                    path: Place(path.clone()),
                    id: Id::of(&stat),
                    trash: id.clone(),
                });
                let version = match expect {
                    Expect::File(seen) => Some(seen.version.0),
                    Expect::Absent | Expect::Node(_) => None,
                };
                let (files, bytes) = (tree.files, tree.bytes);
                let before = State::Tree { trash: Some(id.clone()), files, bytes, version };
                push(prepared, path, ChangeKind::Remove, before, State::Absent);
                prepared.trashed.push(Trashing {
                    id,
                    path: path.clone(),
                    tree: *tree,
                    keep_until_ms: *keep_until_ms,
                });
                prepared.overlay.freed.insert(path.clone());
                Ok(())
            }
            Change::RemoveDirectory { path } => {
                let stat = self.stat_of(path)?.ok_or_else(|| CommitError::Moved(path.clone()))?;
                let (mode, id) = (stat.mode, Id::of(&stat));
                prepared.steps.push(Step::RemoveDirectory { path: Place(path.clone()), id, mode });
                push(prepared, path, ChangeKind::Remove, State::Directory { mode }, State::Absent);
                prepared.overlay.freed.insert(path.clone());
                Ok(())
            }
            Change::Restore { trash, path, tree } => self.ready_restore(trash, path, tree, prepared),
        }
    }

    fn ready_put(&self, put: &Putting<'_>, prepared: &mut Prepared) -> Result<(), CommitError> {
        let current = self.expect(put.path, put.expect, prepared)?;
        let old = match (put.expect, current) {
            (Expect::File(seen), Some(_)) => Some((self.open_current(put.path)?, *seen)),
            (Expect::File(_) | Expect::Absent | Expect::Node(_), _) => None,
        };
        let (directory_path, directory) = self.nearest(put.path, prepared)?;
        let source = self.source(put)?;
        let model = self.model(put)?;
        let mode = match (put.mode, &model, &old, &source) {
            (Mode::Set(mode), ..) => mode & 0o777,
            (Mode::Like(..), Some(file), ..) | (_, _, Some((file, _)), _) => file.stat().mode & 0o777,
            (Mode::Keep | Mode::Like(..), _, None, Bytes::Of(file)) => file.stat().mode & 0o777,
            (Mode::Keep | Mode::Like(..), _, None, Bytes::Here(_)) => NEW_FILE_MODE,
        };
        let like = model.as_ref().or(old.as_ref().map(|(file, _)| file));
        let attributes = like.map_or(Attributes::New { mode }, Attributes::Like);
        let held = directory.try_clone().map_err(|error| failure::at(put.path, &error))?;
        let staged = match &source {
            Bytes::Here(bytes) => directory.stage(Source::Bytes(bytes), attributes),
            Bytes::Of(file) => directory.stage(Source::File(file), attributes),
        }
        .map_err(|error| failure::at(put.path, &error))?;
        prepared.staged.push((held, staged.name().clone()));
        if let (Mode::Set(_), Some(_)) = (put.mode, &old) {
            directory.set_mode(staged.name(), mode).map_err(|error| failure::at(put.path, &error))?;
        }
        if !staged.lost().is_empty() {
            prepared.notices.push(format!(
                "{}: some attributes could not be kept: {:?}",
                put.path,
                staged.lost()
            ));
        }
        let stamp = staged.stamp().map_err(|error| failure::at(put.path, &error))?;
        let after = self.settle_bytes(put, source, &directory, &staged, prepared)?;
        let over = old.map(|(file, seen)| self.replaced(put.path, &file, &seen, prepared)).transpose()?;
        let before = over.as_ref().map_or(State::Absent, |(_, state)| state.clone());
        let kind = if over.is_some() { ChangeKind::Modify } else { ChangeKind::Create };
        push(prepared, put.path, kind, before, State::File { version: put.version.0, size: put.size, mode });
        prepared.steps.push(Step::Put {
            path: Place(put.path.clone()),
            staged: Temporary {
                directory: Place(directory_path),
                name: Place(RelPath::root().join(staged.name()).map_err(Failure::from)?),
                id: Id::staged(&staged),
                modified_ns: nanoseconds(stamp.modified_ns),
            },
            over: over.map(|(replaced, _)| replaced),
            version: put.version.0,
            mode,
            after,
        });
        prepared.bytes += put.size;
        prepared.overlay.made.insert(put.path.clone());
        Ok(())
    }

    /// The file that the new one is to be like, still as it was seen.
    fn model(&self, put: &Putting<'_>) -> Result<Option<OpenFile>, CommitError> {
        let Mode::Like(from, seen) = put.mode else { return Ok(None) };
        let file = self.root.open_file(from).map_err(|error| self.moved_or(from, &error))?;
        if look::stamp(&file.stat().stamp) != seen.stamp {
            return Err(CommitError::Moved(from.clone()));
        }
        Ok(Some(file))
    }

    /// Where the new bytes will be found after a crash: in the database, or in the staged file, synced now.
    fn settle_bytes(
        &self,
        put: &Putting<'_>,
        source: Bytes,
        directory: &Directory,
        staged: &disk::Staged,
        prepared: &mut Prepared,
    ) -> Result<Kept, CommitError> {
        if put.size <= INLINE_BYTES_MAX {
            let bytes = match source {
                Bytes::Here(bytes) => bytes,
                Bytes::Of(file) => {
                    file.read_all(INLINE_BYTES_MAX).map_err(|error| failure::at(put.path, &error))?
                }
            };
            if Version::of(&bytes) != *put.version {
                return Err(CommitError::Moved(put.path.clone()));
            }
            prepared.kept.push((*put.version, put.size, Some(bytes)));
            return Ok(Kept::Row);
        }
        if let Bytes::Of(_) = source {
            // A foreign writer may have changed the source while it was copied: what counts is what was staged.
            let copy = directory.open_file(staged.name()).map_err(|error| failure::at(put.path, &error))?;
            let (hash, _) = copy.hash().map_err(|error| failure::at(put.path, &error))?;
            if hash != *put.version.0.as_bytes() {
                return Err(CommitError::Moved(put.path.clone()));
            }
        }
        if self.durable() {
            let synced = staged.sync().and_then(|()| directory.sync());
            if let Err(error) = synced {
                self.store.condemn();
                return Err(failure::at(put.path, &error).into());
            }
        }
        Ok(Kept::File)
    }

    fn source(&self, put: &Putting<'_>) -> Result<Bytes, CommitError> {
        match put.content {
            Content::Bytes(bytes) => Ok(Bytes::Here(bytes.clone())),
            Content::Kept(version) => match self.kept_bytes(version)? {
                Some(bytes) => Ok(Bytes::Here(bytes)),
                None => {
                    Err(Failure::new(Kind::Expired, format!("the bytes of {} are no longer kept", put.path))
                        .into())
                }
            },
            Content::CopyOf(from, seen) => {
                let file = self.root.open_file(from).map_err(|error| self.moved_or(from, &error))?;
                if look::stamp(&file.stat().stamp) != seen.stamp {
                    return Err(CommitError::Moved(from.clone()));
                }
                Ok(Bytes::Of(file))
            }
        }
    }

    /// Writes down the file that will be replaced, and takes its bytes into keeping when they are small.
    fn replaced(
        &self,
        path: &RelPath,
        file: &OpenFile,
        seen: &Seen,
        prepared: &mut Prepared,
    ) -> Result<(Replaced, State), CommitError> {
        let stat = file.stat();
        let kept = if stat.size <= INLINE_BYTES_MAX {
            let bytes = file.read_all(INLINE_BYTES_MAX).map_err(|error| failure::at(path, &error))?;
            if Version::of(&bytes) != seen.version {
                return Err(CommitError::Moved(path.clone()));
            }
            prepared.kept.push((seen.version, stat.size, Some(bytes)));
            Kept::Row
        } else {
            prepared.kept.push((seen.version, stat.size, None));
            Kept::File
        };
        if stat.links > 1 {
            prepared.notices.push(format!("{path} had {} names; the others keep the old bytes", stat.links));
        }
        let state = State::File { version: seen.version.0, size: stat.size, mode: stat.mode };
        let replaced = Replaced {
            version: seen.version.0,
            id: Id::of(&stat),
            size: stat.size,
            modified_ns: nanoseconds(stat.modified_ns),
            mode: stat.mode & 0o777,
            kept,
        };
        Ok((replaced, state))
    }

    fn ready_move(
        &self,
        from: &RelPath,
        to: &RelPath,
        expect: &Expect,
        over: &Expect,
        tree: &Tree,
        prepared: &mut Prepared,
    ) -> Result<(), CommitError> {
        let stat = self.expect(from, expect, prepared)?.ok_or_else(|| CommitError::Moved(from.clone()))?;
        let under = self.expect(to, over, prepared)?;
        self.refuse_between_mounts(from, to)?;
        self.settle_below(from)?;
        self.settle_below(to)?;
        if let (Expect::File(seen), Some(_)) = (over, under) {
            let file = self.open_current(to)?;
            let (replaced, state) = self.replaced(to, &file, seen, prepared)?;
            push(prepared, to, ChangeKind::Remove, state, State::Absent);
            prepared.steps.push(move_step(from, to, &stat, Some(replaced)));
        } else {
            prepared.steps.push(move_step(from, to, &stat, None));
        }
        let state = self.state_of(from, &stat, expect, tree)?;
        prepared.changes.push(journal::Change {
            path: from.to_string(),
            kind: ChangeKind::Rename,
            to: Some(to.to_string()),
            before: state.clone(),
            after: state,
        });
        prepared.overlay.freed.insert(from.clone());
        prepared.overlay.made.insert(to.clone());
        Ok(())
    }

    /// What was made lately and goes elsewhere, or is moved over, is brought to the device first: after a power cut it
    /// would be looked for, and made again as another file, at the place where it was made.
    fn settle_below(&self, path: &RelPath) -> Result<(), Failure> {
        if !self.durable() || !self.is_unsettled(path)? {
            return Ok(());
        }
        self.settle()?;
        // What is left is another process's to settle, but its bytes must be on the device all the same.
        if self.is_unsettled(path)? { self.sync_tree() } else { Ok(()) }
    }

    fn ready_restore(
        &self,
        id: &str,
        path: &RelPath,
        tree: &Tree,
        prepared: &mut Prepared,
    ) -> Result<(), CommitError> {
        self.expect(path, &Expect::Absent, prepared)?;
        self.refuse_far_from_trash(path)?;
        let gone = || Failure::new(Kind::NotFound, format!("{id} is not in the trash"));
        let name = Name::new(id.as_bytes()).map_err(|_| gone())?;
        let stat = self.trash_place.stat(&name).map_err(|error| failure::own(&error))?.ok_or_else(gone)?;
        let after = match tree.top {
            Top::File => {
                let file = self.trash_place.open_file(&name).map_err(|error| failure::own(&error))?;
                let (hash, size) = file.hash().map_err(|error| failure::own(&error))?;
                State::File { version: journal::Digest(hash), size, mode: stat.mode }
            }
            Top::Link => {
                let target = self.trash_place.read_link(&name).map_err(|error| failure::own(&error))?;
                State::Link { target: String::from_utf8_lossy(&target).into_owned() }
            }
            Top::Directory | Top::Special => State::Tree {
                trash: Some(id.to_owned()),
                files: tree.files,
                bytes: tree.bytes,
                version: None,
            },
        };
        prepared.steps.push(Step::Restore {
            path: Place(path.clone()),
            id: Id::of(&stat),
            trash: id.to_owned(),
        });
        push(prepared, path, ChangeKind::Create, State::Absent, after);
        prepared.restored.push(id.to_owned());
        prepared.overlay.made.insert(path.clone());
        Ok(())
    }

    fn state_of(
        &self,
        path: &RelPath,
        stat: &Stat,
        expect: &Expect,
        tree: &Tree,
    ) -> Result<State, CommitError> {
        Ok(match (tree.top, expect) {
            (Top::File, Expect::File(seen)) => {
                State::File { version: seen.version.0, size: stat.size, mode: stat.mode }
            }
            (Top::Link, _) => {
                let target = self.root.read_link(path).map_err(|error| self.moved_or(path, &error))?;
                State::Link { target: String::from_utf8_lossy(&target).into_owned() }
            }
            (Top::File | Top::Directory | Top::Special, _) => {
                State::Tree { trash: None, files: tree.files, bytes: tree.bytes, version: None }
            }
        })
    }

    /// Looks whether a place is still what the plan expects.
    fn expect(
        &self,
        path: &RelPath,
        expect: &Expect,
        prepared: &Prepared,
    ) -> Result<Option<Stat>, CommitError> {
        if prepared.overlay.covers(path) {
            // Whoever expects something where this plan makes or takes away the way there has seen another tree.
            return match expect {
                Expect::Absent => Ok(None),
                Expect::File(_) | Expect::Node(_) => Err(CommitError::Moved(path.clone())),
            };
        }
        let stat = self.stat_of(path)?;
        match (expect, stat) {
            (Expect::Absent, None) => Ok(None),
            (Expect::File(seen), Some(stat)) if look::stamp(&stat.stamp) == seen.stamp => Ok(Some(stat)),
            (Expect::File(_), Some(stat)) if stat.file_type != disk::FileType::File => {
                Err(CommitError::Moved(path.clone()))
            }
            (Expect::File(seen), Some(stat)) => {
                let file = self.open_current(path)?;
                let (hash, _) = file.hash().map_err(|error| failure::at(path, &error))?;
                if hash == *seen.version.0.as_bytes() {
                    Ok(Some(stat))
                } else {
                    Err(CommitError::Moved(path.clone()))
                }
            }
            (Expect::Node(stamp), Some(stat)) if look::stamp(&stat.stamp).identity == stamp.identity => {
                Ok(Some(stat))
            }
            (Expect::Absent, Some(_)) | (Expect::File(_), None) | (Expect::Node(_), _) => {
                Err(CommitError::Moved(path.clone()))
            }
        }
    }

    fn stat_of(&self, path: &RelPath) -> Result<Option<Stat>, CommitError> {
        self.root.stat(path).map_err(|error| self.moved_or(path, &error))
    }

    fn open_current(&self, path: &RelPath) -> Result<OpenFile, CommitError> {
        self.root.open_file(path).map_err(|error| self.moved_or(path, &error))
    }

    /// A place that became a link or vanished moved; anything else failed.
    fn moved_or(&self, path: &RelPath, error: &disk::DiskError) -> CommitError {
        if matches!(error.kind, ErrorKind::Moved | ErrorKind::IsLink | ErrorKind::NotFound) {
            return CommitError::Moved(path.clone());
        }
        CommitError::Failed(failure::at(path, error))
    }

    /// The nearest directory above a place that exists now: new bytes are staged there.
    fn nearest(&self, path: &RelPath, prepared: &Prepared) -> Result<(RelPath, Directory), CommitError> {
        let mut above: Vec<RelPath> = path.ancestors().collect();
        while let Some(place) = above.pop() {
            if prepared.overlay.covers(&place) && !place.is_root() {
                continue;
            }
            match self.root.open_directory(&place) {
                Ok(directory) => return Ok((place, directory)),
                Err(error) if error.kind == ErrorKind::NotFound => {}
                Err(error) => return Err(self.moved_or(&place, &error)),
            }
        }
        Err(CommitError::Moved(path.clone()))
    }
}

/// One file to be written.
struct Putting<'a> {
    path: &'a RelPath,
    expect: &'a Expect,
    content: &'a Content,
    version: &'a Version,
    size: u64,
    mode: &'a Mode,
}

/// New bytes, here or in another file.
enum Bytes {
    Here(Vec<u8>),
    Of(OpenFile),
}

fn move_step(from: &RelPath, to: &RelPath, stat: &Stat, over: Option<Replaced>) -> Step {
    Step::Move { from: Place(from.clone()), to: Place(to.clone()), id: Id::of(stat), over }
}

fn push(prepared: &mut Prepared, path: &RelPath, kind: ChangeKind, before: State, after: State) {
    prepared.changes.push(journal::Change { path: path.to_string(), kind, to: None, before, after });
}
