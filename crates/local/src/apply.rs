//! Makes one written-down step true in the directory, by parent handle and one name. Every step says what it found,
//! and a step that meets somebody else's work stops without harming it.

use disk::{Directory, DiskError, ErrorKind, Over, Root, Source, StateDirectory};
use path::{Name, RelPath};

use crate::intent::{Id, Kept, Replaced, Step, Temporary};

/// What the steps work with.
pub(crate) struct Hands<'a> {
    pub(crate) root: &'a Root,
    pub(crate) state: &'a StateDirectory,
    pub(crate) trash: &'a Directory,
    /// Bytes kept in the database, by version.
    pub(crate) kept: &'a dyn Fn(&journal::Digest) -> Option<Vec<u8>>,
}

/// Why a step did not happen.
#[derive(Debug, Clone)]
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
            | ErrorKind::Moved
            | ErrorKind::IsLink
            | ErrorKind::Escape
            | ErrorKind::CrossMount
            | ErrorKind::Hidden
            | ErrorKind::NotEmpty => Trouble::Foreign,
            ErrorKind::IsDirectory
            | ErrorKind::NotRegular
            | ErrorKind::LinkLoop
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
            Step::Put { path, staged, over, .. } => self.put(&path.0, staged, over.as_ref()),
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
                self.or_back(&path.0, &parent, || self.trash.rename(&item, &parent, &name, Over::Refuse))
            }
            Step::RemoveDirectory { path } => {
                let (parent, name) = self.parent(&path.0)?;
                Ok(parent.remove_directory(&name)?)
            }
            Step::Restore { path, trash, .. } => {
                let (parent, name) = self.parent(&path.0)?;
                let item = trash_name(trash)?;
                self.trash.rename(&item, &parent, &name, Over::Refuse)?;
                self.or_back(&path.0, &parent, || parent.rename(&name, self.trash, &item, Over::Refuse))
            }
        }
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

    fn put(&self, path: &RelPath, staged: &Temporary, over: Option<&Replaced>) -> Result<(), Trouble> {
        let (parent, name) = self.parent(path)?;
        let (source, temporary) = self.staged_in(staged)?;
        let Some(replaced) = over else {
            source.rename(&temporary, &parent, &name, Over::Refuse)?;
            return self.or_back(path, &parent, || parent.rename(&name, &source, &temporary, Over::Refuse));
        };
        match source.rename(&temporary, &parent, &name, Over::Exchange) {
            Err(error) if error.kind == ErrorKind::Unsupported => {
                return self.replace_plainly(&source, &temporary, &parent, &name, replaced);
            }
            exchanged => exchanged?,
        }
        let swap_back = || source.rename(&temporary, &parent, &name, Over::Exchange);
        self.or_back(path, &parent, swap_back)?;
        // Look at what came out before letting go of it: somebody may have replaced or written the file meanwhile.
        let kept = match self.is_replaced(&source, &temporary, replaced) {
            Ok(()) => self.let_go(&source, &temporary, replaced),
            trouble => trouble,
        };
        if kept.is_err() {
            swap_back()?;
        }
        kept
    }

    fn is_replaced(&self, source: &Directory, temporary: &Name, replaced: &Replaced) -> Result<(), Trouble> {
        match source.stat(temporary)? {
            Some(stat)
                if Id::from(stat.stamp.id) == replaced.id
                    && stat.size == replaced.size
                    && nanoseconds(stat.modified_ns) == replaced.modified_ns =>
            {
                Ok(())
            }
            Some(_) | None => Err(Trouble::Foreign),
        }
    }

    /// The way for file systems that cannot exchange: save the old bytes first, then rename over.
    fn replace_plainly(
        &self,
        source: &Directory,
        temporary: &Name,
        parent: &Directory,
        name: &Name,
        replaced: &Replaced,
    ) -> Result<(), Trouble> {
        if replaced.kept == Kept::File {
            let old = parent.open_file(name)?;
            self.state.put_blob(&replaced.version.to_string(), Source::File(&old), disk::Durable::Now)?;
        }
        Ok(source.rename(temporary, parent, name, Over::Replace)?)
    }

    /// Keeps or drops the file that was replaced.
    pub(crate) fn let_go(
        &self,
        source: &Directory,
        temporary: &Name,
        replaced: &Replaced,
    ) -> Result<(), Trouble> {
        match replaced.kept {
            // Its bytes are in the database; a leftover is invisible and swept later.
            Kept::Row => match source.remove_file(temporary) {
                Ok(()) | Err(_) => Ok(()),
            },
            Kept::File => Ok(self.state.adopt_blob(&replaced.version.to_string(), source, temporary)?),
        }
    }

    fn shift(&self, from: &RelPath, to: &RelPath, id: Id, over: Option<&Replaced>) -> Result<(), Trouble> {
        let (source, old_name) = self.parent(from)?;
        let (target, new_name) = self.parent(to)?;
        expect(&source, &old_name, id)?;
        let Some(replaced) = over else {
            source.rename(&old_name, &target, &new_name, Over::Refuse)?;
            return self.or_back(to, &target, || target.rename(&new_name, &source, &old_name, Over::Refuse));
        };
        expect(&target, &new_name, replaced.id)?;
        // Its bytes are kept already, so the rename may take the replaced file away.
        Ok(source.rename(&old_name, &target, &new_name, Over::Replace)?)
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

    /// Resolves the parent once more: a directory that was moved out of the workspace meanwhile took our change with
    /// it. Then the change is taken back through the open handles, and the caller hears of it.
    fn or_back(
        &self,
        path: &RelPath,
        parent: &Directory,
        back: impl FnOnce() -> Result<(), DiskError>,
    ) -> Result<(), Trouble> {
        match self.parent(path) {
            Ok((again, _)) if again.id() == parent.id() => Ok(()),
            Ok(_) | Err(_) => {
                back()?;
                Err(Trouble::Foreign)
            }
        }
    }
}

fn expect(parent: &Directory, name: &Name, id: Id) -> Result<(), Trouble> {
    match parent.stat(name)? {
        Some(stat) if Id::from(stat.stamp.id) == id => Ok(()),
        Some(_) | None => Err(Trouble::Foreign),
    }
}

/// The name of a trash item in the trash directory.
pub(crate) fn trash_name(id: &str) -> Result<Name, Trouble> {
    Name::new(id.as_bytes()).map_err(|_| Trouble::Foreign)
}

/// Times fit 64 bits until the year 2262.
pub(crate) fn nanoseconds(time: i128) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}
