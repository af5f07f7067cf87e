//! Makes one written-down step true in the directory, by parent handle and one name. A step that meets somebody else's
//! work stops without harming it. What a step replaces stays beside it until every step of the plan is done; only then
//! is it let go, so that until the end everything can be taken back as it was.

use disk::{Directory, DiskError, ErrorKind, Over, Root, Source, StateDirectory};
use path::{Name, RelPath};

use crate::intent::{Id, Kept, Replaced, Step, Temporary, nanoseconds};

/// What the steps work with.
pub(crate) struct Hands<'a> {
    pub(crate) root: &'a Root,
    pub(crate) state: &'a StateDirectory,
    pub(crate) trash: &'a Directory,
    /// Bytes kept in the database, by version.
    pub(crate) kept: &'a dyn Fn(&journal::Digest) -> Option<Vec<u8>>,
}

/// Why a step did not happen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trouble {
    /// Somebody else's work is in the way; it was left alone.
    Foreign,
    /// The disk failed.
    Disk(DiskError),
}

impl From<DiskError> for Trouble {
    fn from(error: DiskError) -> Self {
        match error.kind {
            ErrorKind::NotFound
            | ErrorKind::Exists
            | ErrorKind::NotDirectory
            | ErrorKind::IsDirectory
            | ErrorKind::NotRegular
            | ErrorKind::Moved
            | ErrorKind::IsLink
            | ErrorKind::Escape
            | ErrorKind::CrossMount
            | ErrorKind::Hidden
            | ErrorKind::NotEmpty => Trouble::Foreign,
            ErrorKind::LinkLoop
            | ErrorKind::Busy
            | ErrorKind::NoSpace
            | ErrorKind::Quota
            | ErrorKind::ReadOnly
            | ErrorKind::Denied
            | ErrorKind::NameTooLong
            | ErrorKind::TooManyOpen
            | ErrorKind::TooLarge
            | ErrorKind::Unsupported
            | ErrorKind::Io => Trouble::Disk(error),
        }
    }
}

impl Hands<'_> {
    /// Does one step, or leaves everything as it was.
    pub(crate) fn apply(&self, step: &Step) -> Result<(), Trouble> {
        match step {
            Step::Put { path, staged, over, .. } => {
                let (source, temporary) = self.staged_in(staged)?;
                self.put(&path.0, &source, &temporary, over.as_ref())
            }
            Step::MakeDirectory { path, mode } => self.make_directory(&path.0, *mode),
            Step::MakeLink { path, target } => {
                let (parent, name) = self.parent(&path.0)?;
                Ok(parent.make_link(&name, target)?)
            }
            Step::Move { from, to, id, over } => self.shift(&from.0, &to.0, *id, over.as_ref()),
            Step::Remove { path, id, trash } => {
                let (parent, name) = self.parent(&path.0)?;
                let item = trash_name(trash)?;
                expect(&parent, &name, *id)?;
                parent.rename(&name, self.trash, &item, Over::Refuse)?;
                let looked = expect(self.trash, &item, *id);
                let back = || self.trash.rename(&item, &parent, &name, Over::Refuse);
                self.or_back(&path.0, &parent, looked, back)
            }
            Step::RemoveDirectory { path, id, .. } => {
                let (parent, name) = self.parent(&path.0)?;
                expect(&parent, &name, *id)?;
                match parent.remove_directory(&name) {
                    Err(error) if error.kind == ErrorKind::NotEmpty => {
                        drop_litter(&parent.open_directory(&name)?)?;
                        Ok(parent.remove_directory(&name)?)
                    }
                    removed => Ok(removed?),
                }
            }
            Step::Restore { path, id, trash } => {
                let (parent, name) = self.parent(&path.0)?;
                let item = trash_name(trash)?;
                self.trash.rename(&item, &parent, &name, Over::Refuse)?;
                let looked = expect(&parent, &name, *id);
                let back = || parent.rename(&name, self.trash, &item, Over::Refuse);
                self.or_back(&path.0, &parent, looked, back)
            }
        }
    }

    /// Keeps or drops what a step replaced. After this the step can no longer be taken back as it was, only alike.
    pub(crate) fn let_go(&self, step: &Step) -> Result<(), Trouble> {
        match step {
            Step::Put { staged, over: Some(replaced), .. } => {
                let (source, temporary) = self.staged_in(staged)?;
                match (self.let_go_of(&source, &temporary, replaced), replaced.kept) {
                    // Its bytes are in the database; a leftover under a temporary name is invisible and swept later.
                    (Err(_), Kept::Row) => Ok(()),
                    (gone, Kept::Row | Kept::File) => gone,
                }
            }
            Step::Move { from, over: Some(replaced), .. } => {
                let (source, old_name) = self.parent(&from.0)?;
                self.let_go_of(&source, &old_name, replaced)
            }
            Step::Put { .. }
            | Step::Move { .. }
            | Step::MakeDirectory { .. }
            | Step::MakeLink { .. }
            | Step::Remove { .. }
            | Step::RemoveDirectory { .. }
            | Step::Restore { .. } => Ok(()),
        }
    }

    /// Lets go of a replaced file, if it is what lies under this name.
    pub(crate) fn let_go_of(
        &self,
        source: &Directory,
        name: &Name,
        replaced: &Replaced,
    ) -> Result<(), Trouble> {
        if !is(source, name, replaced.id)? {
            return Ok(());
        }
        let gone = match replaced.kept {
            Kept::Row => source.remove_file(name),
            Kept::File => self.state.adopt_blob(&replaced.version.to_string(), source, name),
        };
        Ok(gone?)
    }

    /// Two calls may need the same missing directory at once: whoever comes second finds it made.
    fn make_directory(&self, path: &RelPath, mode: u32) -> Result<(), Trouble> {
        let (parent, name) = self.parent(path)?;
        match parent.make_directory(&name, mode) {
            Err(error) if error.kind == ErrorKind::Exists => match parent.stat(&name)? {
                Some(stat) if stat.file_type == disk::FileType::Directory => Ok(()),
                Some(_) | None => Err(Trouble::Foreign),
            },
            made => Ok(made?),
        }
    }

    /// Gives staged bytes their place. The file they replace is then under the temporary name.
    pub(crate) fn put(
        &self,
        path: &RelPath,
        source: &Directory,
        temporary: &Name,
        over: Option<&Replaced>,
    ) -> Result<(), Trouble> {
        let (parent, name) = self.parent(path)?;
        let Some(replaced) = over else {
            source.rename(temporary, &parent, &name, Over::Refuse)?;
            let back = || parent.rename(&name, source, temporary, Over::Refuse);
            return self.or_back(path, &parent, Ok(()), back);
        };
        match source.rename(temporary, &parent, &name, Over::Exchange) {
            Err(error) if error.kind == ErrorKind::Unsupported => {
                return self.replace_plainly((source, temporary), (&parent, &name), replaced);
            }
            exchanged => exchanged?,
        }
        // Look at what came out: somebody may have replaced or written the file meanwhile.
        let looked = is_replaced(source, temporary, replaced);
        self.or_back(path, &parent, looked, || source.rename(temporary, &parent, &name, Over::Exchange))
    }

    fn shift(&self, from: &RelPath, to: &RelPath, id: Id, over: Option<&Replaced>) -> Result<(), Trouble> {
        let (source, old_name) = self.parent(from)?;
        let (target, new_name) = self.parent(to)?;
        expect(&source, &old_name, id)?;
        let Some(replaced) = over else {
            source.rename(&old_name, &target, &new_name, Over::Refuse)?;
            let looked = expect(&target, &new_name, id);
            let back = || target.rename(&new_name, &source, &old_name, Over::Refuse);
            return self.or_back(to, &target, looked, back);
        };
        match source.rename(&old_name, &target, &new_name, Over::Exchange) {
            Err(error) if error.kind == ErrorKind::Unsupported => {
                return self.replace_plainly((&source, &old_name), (&target, &new_name), replaced);
            }
            exchanged => exchanged?,
        }
        let looked = expect(&target, &new_name, id).and_then(|()| is_replaced(&source, &old_name, replaced));
        self.or_back(to, &target, looked, || source.rename(&old_name, &target, &new_name, Over::Exchange))
    }

    /// The way for file systems that cannot exchange: save the old bytes first, then rename over.
    fn replace_plainly(
        &self,
        (source, old_name): (&Directory, &Name),
        (parent, name): (&Directory, &Name),
        replaced: &Replaced,
    ) -> Result<(), Trouble> {
        is_replaced(parent, name, replaced)?;
        if replaced.kept == Kept::File {
            let old = parent.open_file(name)?;
            self.state.put_blob(&replaced.version.to_string(), Source::File(&old), disk::Durable::Now)?;
        }
        Ok(source.rename(old_name, parent, name, Over::Replace)?)
    }

    /// The open directory that holds a place, and the name in it.
    pub(crate) fn parent(&self, path: &RelPath) -> Result<(Directory, Name), Trouble> {
        let (parent, name) = path.split().ok_or(Trouble::Foreign)?;
        Ok((self.root.open_directory(&parent)?, name))
    }

    /// The directory a staged file lies in, and its temporary name.
    pub(crate) fn staged_in(&self, staged: &Temporary) -> Result<(Directory, Name), Trouble> {
        let (_, name) = staged.name.0.split().ok_or(Trouble::Foreign)?;
        Ok((self.root.open_directory(&staged.directory.0)?, name))
    }

    /// After a rename: was it the right thing, and is its directory still where it was? A directory that was moved out
    /// of the workspace meanwhile took our change with it. Then the rename is taken back through the open handles.
    fn or_back(
        &self,
        path: &RelPath,
        parent: &Directory,
        looked: Result<(), Trouble>,
        back: impl FnOnce() -> Result<(), DiskError>,
    ) -> Result<(), Trouble> {
        let trouble = match looked.and_then(|()| self.parent(path)) {
            Ok((again, _)) if again.id() == parent.id() => return Ok(()),
            Ok(_) => Trouble::Foreign,
            Err(trouble) => trouble,
        };
        back()?;
        Err(trouble)
    }
}

/// Removes half-made files from a directory that holds nothing else. Whoever makes something in a directory holds a
/// lock on it, and so does whoever removes it: they are what a dead process left.
fn drop_litter(directory: &Directory) -> Result<(), DiskError> {
    let names = directory.list()?;
    let half_made = |name: &Name| name.as_bytes().starts_with(path::TEMPORARY_PREFIX.as_bytes());
    if names.iter().all(|listed| half_made(&listed.name) && listed.file_type == disk::FileType::File) {
        for listed in &names {
            directory.remove_file(&listed.name)?;
        }
    }
    Ok(())
}

/// Whether a name stands for this file.
pub(crate) fn is(parent: &Directory, name: &Name, id: Id) -> Result<bool, Trouble> {
    Ok(parent.stat(name)?.is_some_and(|stat| Id::of(&stat) == id))
}

fn expect(parent: &Directory, name: &Name, id: Id) -> Result<(), Trouble> {
    if is(parent, name, id)? { Ok(()) } else { Err(Trouble::Foreign) }
}

/// Whether a name stands for the file to be replaced, unchanged.
pub(crate) fn is_replaced(source: &Directory, name: &Name, replaced: &Replaced) -> Result<(), Trouble> {
    match source.stat(name)? {
        Some(stat)
            if Id::of(&stat) == replaced.id
                && stat.size == replaced.size
                && nanoseconds(stat.modified_ns) == replaced.modified_ns =>
        {
            Ok(())
        }
        Some(_) | None => Err(Trouble::Foreign),
    }
}

/// The name of a trash item in the trash directory.
pub(crate) fn trash_name(id: &str) -> Result<Name, Trouble> {
    Name::new(id.as_bytes()).map_err(|_| Trouble::Foreign)
}
