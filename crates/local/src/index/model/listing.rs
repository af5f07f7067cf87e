//! Listing one directory for the model, by the rules of a walk.

use std::collections::HashMap;

use disk::{Directory, ErrorKind};
use engine::{Listed, Top, index::Ignored};
use path::{Name, RelPath};

use super::{Counts, Folder, Halt, Model, NOBODY, Role, Why};
use crate::{
    index::{
        ground::{Ground, is_file},
        segment::Sort,
        snapshot::Shelves,
    },
    look,
};

const GIT: &[u8] = b".git";
const INNER: &[u8] = b"info";

impl Model {
    /// Lists a directory again. Directories in it that are new are listed next.
    pub(super) fn list_again(&mut self, ground: &Ground, number: u32) -> Result<(), Halt> {
        let Some(path) = self.folder(number).map(|folder| folder.path.clone()) else { return Ok(()) };
        let (directory, listed) = match self.look(ground, number, &path)? {
            Looked::There(directory, listed) => (directory, listed),
            Looked::Gone => {
                self.forget_unless_root(number);
                return Ok(());
            }
            Looked::Closed => {
                self.set_closed(number);
                return Ok(());
            }
        };
        self.watch_git(number, &directory, &listed)?;
        let above = self.folder(number).and_then(|folder| self.folder(folder.above));
        let above = above.map_or_else(Ignored::default, |above| above.ignored.clone());
        let ignored = above.within(&path, &listed, &|path| ground.ignore_file(path));
        self.fill(number, &path, &directory, &listed, ignored)
    }

    /// Opens a directory, watches it, and only then lists it.
    fn look(&mut self, ground: &Ground, number: u32, path: &RelPath) -> Result<Looked, Halt> {
        let directory = match ground.root.open_directory(path) {
            Ok(directory) => directory,
            Err(error) => return Ok(Looked::from(error.kind)),
        };
        match self.watch_as(number, &directory, Role::Own) {
            Ok(()) => {}
            Err(ErrorKind::Denied) => return Ok(Looked::Closed),
            Err(_) => return Err(Halt::Unwatchable),
        }
        match ground.list(&directory) {
            Ok(listed) => Ok(Looked::There(directory, listed)),
            Err(error) => Ok(Looked::from(error.kind)),
        }
    }

    fn watch_as(&mut self, number: u32, directory: &Directory, role: Role) -> Result<(), ErrorKind> {
        let Some(watch) = &self.watch else { return Ok(()) };
        if self.watched.len() >= self.watches_max {
            return Err(ErrorKind::NoSpace);
        }
        let id = watch.add(directory).map_err(|error| error.kind)?;
        // Where the walk enters a `.git` it is watched for itself, and tells of its patterns too.
        if role != Role::Own && matches!(self.watched.get(&id), Some((_, Role::Own))) {
            return Ok(());
        }
        self.watched.insert(id, (number, role));
        if let Some(folder) = self.folder_mut(number)
            && !folder.watches.contains(&id)
        {
            folder.watches.push(id);
        }
        Ok(())
    }

    /// Watches where git keeps patterns of its own.
    fn watch_git(&mut self, number: u32, directory: &Directory, listed: &[Listed]) -> Result<(), Halt> {
        let is_git = |listed: &Listed| listed.name.as_bytes() == GIT && listed.top == Top::Directory;
        if self.watch.is_none() || !listed.iter().any(is_git) {
            return Ok(());
        }
        let mut at = None;
        for (name, role) in [(GIT, Role::Git), (INNER, Role::GitInfo)] {
            let Ok(name) = Name::new(name) else { return Ok(()) };
            let opened = at.as_ref().unwrap_or(directory).open_directory(&name);
            let opened = match opened {
                Ok(opened) => opened,
                // What is not there or is none says nothing; should it come, that is an event in what is watched.
                Err(_) => return Ok(()),
            };
            self.watch_as(number, &opened, role).map_err(|_| Halt::Unwatchable)?;
            at = Some(opened);
        }
        Ok(())
    }

    /// Puts down what a directory holds.
    fn fill(
        &mut self,
        number: u32,
        path: &RelPath,
        directory: &Directory,
        listed: &[Listed],
        ignored: Ignored,
    ) -> Result<(), Halt> {
        let shelves = self.snapshot.shelves(path)?;
        let telling = if self.watch.is_some() { Telling::ThisName } else { Telling::Nothing };
        let mut seen = Seen::default();
        let mut entered: Vec<(Name, RelPath)> = Vec::new();
        for Listed { name, top } in listed {
            // A name deeper than a path can say cannot be read either.
            let Ok(below) = path.join(name) else { continue };
            if !ignored.takes(&below, name, *top) {
                seen.counts.ignored += 1;
                continue;
            }
            seen.counts.entries += 1;
            match top {
                Top::File => seen.file(directory, name, &shelves, telling),
                Top::Directory => entered.push((name.clone(), below)),
                Top::Link | Top::Special => {}
            }
        }
        self.put(number, seen, &ignored);
        self.enter(number, entered, &ignored);
        Ok(())
    }

    fn put(&mut self, number: u32, seen: Seen, ignored: &Ignored) {
        let Some(folder) = self.folder_mut(number) else { return };
        let before = std::mem::replace(&mut folder.known, seen.known);
        let known = folder.known.clone();
        // A file that got a second name may have been changed through either, and only one of them is told.
        let relinked = seen.linked.iter().any(|name| !folder.linked.contains(name));
        (folder.others, folder.linked, folder.counts) = (seen.others, seen.linked, seen.counts);
        folder.ignored = ignored.clone();
        self.disown(&before);
        for (segment, file) in known {
            let owner = self.owners.get_mut(segment as usize).and_then(|own| own.get_mut(file as usize));
            if let Some(owner) = owner {
                *owner = number;
            }
        }
        if relinked && self.complete {
            self.touch_all();
        }
    }

    /// Keeps the directories below that are still there, forgets the others, and has new ones listed.
    fn enter(&mut self, number: u32, entered: Vec<(Name, RelPath)>, ignored: &Ignored) {
        let before = self.folder(number).map(|folder| folder.below.clone()).unwrap_or_default();
        let named = |below: &u32| Some((self.folder(*below)?.name().to_vec(), *below));
        let mut before: HashMap<Vec<u8>, u32> = before.iter().filter_map(named).collect();
        for (name, path) in entered {
            if before.remove(name.as_bytes()).is_none() {
                let new = self.make(Folder::new(path, number, ignored.clone()));
                if let Some(folder) = self.folder_mut(number) {
                    folder.below.push(new);
                }
                self.touched.insert(new);
            }
        }
        for gone in before.into_values() {
            self.forget(gone);
        }
    }

    fn make(&mut self, folder: Folder) -> u32 {
        if let Some(number) = self.free.pop()
            && let Some(slot) = self.directories.get_mut(number as usize)
        {
            *slot = Some(folder);
            return number;
        }
        let number = u32::try_from(self.directories.len()).unwrap_or(NOBODY);
        self.directories.push(Some(folder));
        number
    }

    /// A directory that cannot be listed counts as such, and nothing in it does.
    fn set_closed(&mut self, number: u32) {
        for below in self.folder(number).map(|folder| folder.below.clone()).unwrap_or_default() {
            self.forget(below);
        }
        let seen = Seen { counts: Counts { closed: 1, ..Counts::default() }, ..Seen::default() };
        let ignored = self.folder(number).map(|folder| folder.ignored.clone()).unwrap_or_default();
        self.put(number, seen, &ignored);
    }

    fn forget_unless_root(&mut self, number: u32) {
        if number == 0 { self.set_closed(number) } else { self.forget(number) }
    }
}

/// What a look at a directory found.
enum Looked {
    There(Directory, Vec<Listed>),
    Gone,
    Closed,
}

impl From<ErrorKind> for Looked {
    fn from(kind: ErrorKind) -> Self {
        // Something else has come there: what is above will be listed again, and say what.
        let gone = [ErrorKind::NotFound, ErrorKind::NotDirectory, ErrorKind::IsLink, ErrorKind::Moved];
        if gone.contains(&kind) { Self::Gone } else { Self::Closed }
    }
}

/// What watches tell of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Telling {
    /// Nothing; it is looked at before it is relied on.
    Nothing,
    /// Writes through this name, not through others that it has elsewhere.
    ThisName,
}

/// What was seen in a directory.
#[derive(Default)]
struct Seen {
    known: Vec<(u16, u32)>,
    others: Vec<(Name, Why)>,
    linked: Vec<Name>,
    counts: Counts,
}

impl Seen {
    fn file(&mut self, directory: &Directory, name: &Name, shelves: &Shelves, telling: Telling) {
        let stat = directory.stat(name).ok().flatten().filter(is_file);
        let stamp = stat.as_ref().map(|stat| look::stamp(&stat.stamp));
        let known = stamp.and_then(|stamp| shelves.find(name, &stamp));
        let linked = telling == Telling::ThisName && stat.is_some_and(|stat| stat.links != 1);
        if linked {
            self.linked.push(name.clone());
        }
        let Some((segment, file, row)) = known else {
            self.others.push((name.clone(), Why::New));
            return;
        };
        match (row.sort, u16::try_from(segment)) {
            (Sort::Text, Ok(segment)) if !linked => {
                self.counts.texts += 1;
                self.counts.bytes += row.stamp.size;
                self.known.push((segment, file));
            }
            (Sort::Binary, Ok(segment)) if !linked => {
                self.counts.binary += 1;
                self.known.push((segment, file));
            }
            (Sort::Text | Sort::Binary | Sort::Loose, _) => {
                self.others.push((name.clone(), Why::Always));
            }
        }
    }
}
