//! Looking: from the disk's plain values to the engine's. Never writes, never follows a link.

use disk::{FileType, Stat};
use engine::{
    Branch, Entered, FileBytes, Last, Listed, Looked, Node, Particulars, Pieces, Stamp, Top, Version, Want,
};
use engine::{Failure, Kind};
use journal::Digest;
use path::{Name, RelPath};

use crate::{failure, open::LocalWorkspace};

/// How often a look is repeated when a component turns out to have become a link meanwhile.
const LOOKS_MAX: usize = 16;

pub(crate) fn stamp(stamp: &disk::Stamp) -> Stamp {
    Stamp {
        identity: (stamp.id.dev, stamp.id.ino),
        size: stamp.size,
        modified_ns: stamp.modified_ns,
        changed_ns: stamp.changed_ns,
    }
}

pub(crate) fn top(file_type: FileType) -> Top {
    match file_type {
        FileType::File => Top::File,
        FileType::Directory => Top::Directory,
        FileType::Link => Top::Link,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharDevice
        | FileType::BlockDevice
        | FileType::Unknown => Top::Special,
    }
}

pub(crate) fn node(stat: &Stat) -> Node {
    let top = top(stat.file_type);
    Node {
        top,
        size: if top == Top::Directory { 0 } else { stat.size },
        mode: stat.mode,
        links: stat.links,
        modified_ms: i64::try_from(stat.modified_ns / 1_000_000).unwrap_or(i64::MAX),
        stamp: stamp(&stat.stamp),
    }
}

impl LocalWorkspace {
    pub(crate) fn find_place(&self, path: &RelPath, last: Last) -> Result<(RelPath, Option<Node>), Failure> {
        let last = match last {
            Last::Follow => disk::Last::Follow,
            Last::Keep => disk::Last::Keep,
        };
        let mut tries = 0;
        loop {
            match self.root.find(path, last) {
                Err(error) if error.kind == disk::ErrorKind::Moved && tries < LOOKS_MAX => tries += 1,
                Ok((place, seen)) => return Ok((place, seen.map(|stat| node(&stat)))),
                Err(error) => return Err(failure::at(path, &error)),
            }
        }
    }

    pub(crate) fn stat_place(&self, path: &RelPath) -> Result<Option<Node>, Failure> {
        let stat = self.root.stat(path).map_err(|error| failure::at(path, &error))?;
        Ok(stat.map(|stat| node(&stat)))
    }

    pub(crate) fn particulars_of(&self, path: &RelPath) -> Result<Particulars, Failure> {
        let stat = self.root.stat(path).map_err(|error| failure::at(path, &error))?;
        Ok(stat.map_or_else(Particulars::default, |stat| Particulars {
            created_ms: stat.born_ns.and_then(|born_ns| i64::try_from(born_ns / 1_000_000).ok()),
            owner: Some(self.users.get(&stat.uid).cloned().unwrap_or_else(|| stat.uid.to_string())),
        }))
    }

    pub(crate) fn stat_names_in(&self, directory: &RelPath, names: &[Name]) -> Result<Vec<Looked>, Failure> {
        let open = self.root.open_directory(directory).map_err(|error| failure::at(directory, &error))?;
        Ok(names
            .iter()
            .map(|name| match open.stat(name) {
                Ok(stat) => Ok(stat.map(|stat| node(&stat))),
                Err(error) => Err(failure::at(&directory.join(name)?, &error)),
            })
            .collect())
    }

    pub(crate) fn read_place(&self, path: &RelPath, want: Want) -> Result<FileBytes, Failure> {
        let at = |error: disk::DiskError| failure::at(path, &error);
        let file = self.root.open_file(path).map_err(at)?;
        let node = node(&file.stat());
        let (bytes, hash) = match want {
            Want::Whole { limit_bytes } => file.read_and_hash(limit_bytes).map_err(at)?,
            Want::Nothing => (Vec::new(), file.hash().map_err(at)?.0),
            // The whole file as a range: one pass is enough.
            Want::Range { offset: 0, length } if length >= node.size => {
                file.read_and_hash(length).map_err(at)?
            }
            Want::Range { offset, length } => {
                let length = usize::try_from(length.min(node.size.saturating_sub(offset)))
                    .map_err(|_| Failure::new(Kind::TooLarge, "the range is too long"))?;
                (file.read_range(offset, length).map_err(at)?, file.hash().map_err(at)?.0)
            }
        };
        Ok(FileBytes { bytes, version: Version(Digest(hash)), node })
    }

    pub(crate) fn scan_place(&self, path: &RelPath, limit_bytes: u64) -> Result<Vec<u8>, Failure> {
        let at = |error: disk::DiskError| failure::at(path, &error);
        let file = self.root.open_file(path).map_err(at)?;
        let mut bytes = Vec::new();
        file.read_into(&mut bytes, limit_bytes, &|_| true).map_err(at)?;
        Ok(bytes)
    }

    pub(crate) fn pieces_of(&self, path: &RelPath) -> Result<Box<dyn Pieces>, Failure> {
        let file = self.root.open_file(path).map_err(|error| failure::at(path, &error))?;
        Ok(Box::new(LocalPieces { file, path: path.clone() }))
    }

    pub(crate) fn list_place(&self, path: &RelPath) -> Result<Vec<Listed>, Failure> {
        let at = |error: disk::DiskError| failure::at(path, &error);
        let directory = self.root.open_directory(path).map_err(at)?;
        Ok(self.names(path, directory.list().map_err(at)?))
    }

    pub(crate) fn branch_at(&self, path: &RelPath) -> Result<Entered<'_>, Failure> {
        let at = |error: disk::DiskError| failure::at(path, &error);
        let directory = self.root.open_directory(path).map_err(at)?;
        let listed = self.names(path, directory.list().map_err(at)?);
        Ok((Box::new(LocalBranch { workspace: self, directory, path: path.clone() }), listed))
    }

    /// Names in byte order; half-made files are remembered, not named.
    fn names(&self, path: &RelPath, entries: Vec<disk::Listed>) -> Vec<Listed> {
        let mut names: Vec<Listed> = Vec::with_capacity(entries.len());
        for entry in entries {
            if entry.name.as_bytes().starts_with(path::TEMPORARY_PREFIX.as_bytes()) {
                self.suspect(path);
            } else {
                names.push(Listed { name: entry.name, top: top(entry.file_type) });
            }
        }
        names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        names
    }
}

/// A directory open for a walk.
struct LocalBranch<'w> {
    workspace: &'w LocalWorkspace,
    directory: disk::Directory,
    path: RelPath,
}

impl<'w> Branch<'w> for LocalBranch<'w> {
    fn enter(&self, name: &Name) -> Result<Entered<'w>, Failure> {
        let path = self.path.join(name)?;
        let (directory, entries) = self.directory.enter(name).map_err(|error| failure::at(&path, &error))?;
        let listed = self.workspace.names(&path, entries);
        Ok((Box::new(LocalBranch { workspace: self.workspace, directory, path }), listed))
    }

    fn stat(&self, name: &Name) -> Looked {
        match self.directory.stat(name) {
            Ok(stat) => Ok(stat.map(|stat| node(&stat))),
            Err(error) => Err(failure::at(&self.path.join(name)?, &error)),
        }
    }

    fn scan(
        &self,
        name: &Name,
        limit_bytes: u64,
        goes_on: &dyn Fn(&[u8]) -> bool,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let file = self.directory.open_listed_file(name);
        file.and_then(|file| file.read_into(bytes, limit_bytes, goes_on)).map_err(|error| {
            self.path.join(name).map_or_else(Failure::from, |path| failure::at(&path, &error))
        })
    }
    fn pieces(&self, name: &Name) -> Result<Box<dyn Pieces>, Failure> {
        let path = self.path.join(name)?;
        let file = self.directory.open_listed_file(name).map_err(|error| failure::at(&path, &error))?;
        Ok(Box::new(LocalPieces { file, path }))
    }
}

/// A file that is open to be read piece by piece.
struct LocalPieces {
    file: disk::OpenFile,
    path: RelPath,
}

impl Pieces for LocalPieces {
    fn size(&self) -> u64 {
        self.file.stat().size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Failure> {
        self.file.read_at(offset, buffer).map_err(|error| failure::at(&self.path, &error))
    }
}
