//! The tree of the memory workspace, and the resolution of paths with links.

use std::{collections::BTreeMap, sync::Arc};

use stead_engine::{
    DirectoryEntry, DirectoryReader, Error, ErrorKind, FileIdentity, FileKind, FileOwnerAndCreationTime, FileReader,
    FileStamp, FileStat, FileStatLookupResult, FinalSymlink, OpenDirectoryWithEntries, TreeEntry,
};
use stead_path::{FileName, RelPath};

const LINKS_MAX: usize = 40;

#[derive(Debug, Clone)]
pub(super) enum InMemoryTreeNodeContent {
    File(Vec<u8>),
    Directory,
    Link(Vec<u8>),
    Special,
}

#[derive(Debug, Clone)]
pub(super) struct MemoryNode {
    pub(super) item: InMemoryTreeNodeContent,
    pub(super) mode: u32,
    pub(super) links: u64,
    pub(super) modified_ms: i64,
    /// The number of the node, which a move keeps and a replacement of the file changes.
    pub(super) id: u64,
}

impl MemoryNode {
    pub(super) fn tree_top(&self) -> FileKind {
        match self.item {
            InMemoryTreeNodeContent::File(_) => FileKind::File,
            InMemoryTreeNodeContent::Directory => FileKind::Directory,
            InMemoryTreeNodeContent::Link(_) => FileKind::Link,
            InMemoryTreeNodeContent::Special => FileKind::Special,
        }
    }

    pub(super) fn node(&self) -> FileStat {
        let size = match &self.item {
            InMemoryTreeNodeContent::File(bytes) | InMemoryTreeNodeContent::Link(bytes) => bytes.len() as u64,
            InMemoryTreeNodeContent::Directory | InMemoryTreeNodeContent::Special => 0,
        };
        // The digests of approvals contain these bytes, so they must never change.
        let (id, modified) = (u128::from(self.id) | 1 << 64, i128::from(self.modified_ms) * 1_000_000);
        let (id, modified) = (id.to_be_bytes(), modified.to_be_bytes());
        let mut stamp = [0; 56];
        for (at, bytes) in [(0, &id[..]), (16, &size.to_be_bytes()[..]), (24, &modified[..]), (40, &modified[..])] {
            stamp[at..][..bytes.len()].copy_from_slice(bytes);
        }
        FileStat {
            kind: self.tree_top(),
            size,
            mode: self.mode,
            link_count: self.links,
            modified_ms: self.modified_ms,
            identity: FileIdentity(id),
            stamp: FileStamp(stamp),
        }
    }
}

/// The nodes of a subtree, with paths relative to the top of the subtree.
pub(super) type InMemoryWorkspaceSubtree = Vec<(RelPath, MemoryNode)>;

#[derive(Debug, Clone)]
pub(super) struct MemoryTree {
    /// Open entries share the nodes until the tree changes.
    nodes: Arc<BTreeMap<RelPath, MemoryNode>>,
    last_id: u64,
}

impl MemoryTree {
    pub(super) fn new(now_ms: i64) -> Self {
        let mut tree = Self { nodes: Arc::default(), last_id: 0 };
        tree.put(&RelPath::root(), InMemoryTreeNodeContent::Directory, 0o755, now_ms);
        tree
    }

    pub(super) fn get(&self, path: &RelPath) -> Option<&MemoryNode> {
        self.nodes.get(path)
    }

    pub(super) fn get_mut(&mut self, path: &RelPath) -> Option<&mut MemoryNode> {
        Arc::make_mut(&mut self.nodes).get_mut(path)
    }

    pub(super) fn is_directory(&self, path: &RelPath) -> bool {
        self.get(path).is_some_and(|placed| placed.tree_top() == FileKind::Directory)
    }

    pub(super) fn has_parent_directory(&self, path: &RelPath) -> bool {
        path.parent().is_some_and(|parent| self.is_directory(&parent))
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &RelPath> {
        self.nodes.keys().filter(|path| !path.is_root())
    }

    pub(super) fn put(&mut self, path: &RelPath, item: InMemoryTreeNodeContent, mode: u32, now_ms: i64) {
        self.last_id += 1;
        let placed = MemoryNode { item, mode, links: 1, modified_ms: now_ms, id: self.last_id };
        Arc::make_mut(&mut self.nodes).insert(path.clone(), placed);
    }

    pub(super) fn take_subtree(&mut self, top: &RelPath) -> InMemoryWorkspaceSubtree {
        let inside: Vec<RelPath> = self.nodes.keys().filter(|path| path.is_within(top)).cloned().collect();
        let nodes = Arc::make_mut(&mut self.nodes);
        inside.iter().filter_map(|path| Some((path.strip_prefix(top)?, nodes.remove(path)?))).collect()
    }

    pub(super) fn insert_subtree(&mut self, top: &RelPath, branch: InMemoryWorkspaceSubtree) -> Result<(), Error> {
        for (below, placed) in branch {
            Arc::make_mut(&mut self.nodes).insert(top.append(&below)?, placed);
        }
        Ok(())
    }

    pub(super) fn list(&self, path: &RelPath) -> Result<Vec<DirectoryEntry>, Error> {
        match self.get(path).map(MemoryNode::tree_top) {
            Some(FileKind::Directory) => {}
            Some(FileKind::File | FileKind::Link | FileKind::Special) => {
                return Err(Error::new(ErrorKind::NotDirectory, format!("{path} is not a directory")));
            }
            None => return Err(Error::new(ErrorKind::NotFound, format!("{path} does not exist"))),
        }
        let mut names: Vec<DirectoryEntry> = self
            .nodes
            .iter()
            .filter_map(|(place, placed)| place.split().map(|(parent, name)| (parent, name, placed.tree_top())))
            .filter(|(parent, _, _)| parent == path)
            .map(|(_, name, top)| DirectoryEntry { name, kind: top })
            .collect();
        names.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(names)
    }

    /// Resolves a path in the memory tree. The components of the path after the first missing component are kept as
    /// written.
    pub(super) fn locate(&self, path: &RelPath, last: FinalSymlink, roots: &[String]) -> Result<RelPath, Error> {
        let escape = || Error::new(ErrorKind::PathEscape, format!("{path} leads out of the workspace"));
        let mut pending: Vec<Vec<u8>> = path.components().rev().map(<[u8]>::to_vec).collect();
        let mut found = RelPath::root();
        let (mut links, mut missing, mut went_up) = (0, false, false);
        while let Some(part) = pending.pop() {
            if !missing && !self.is_directory(&found) {
                return Err(Error::new(ErrorKind::NotDirectory, format!("{found} is not a directory")));
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
            let child = found.join(&FileName::new(&part)?)?;
            let placed = if missing { None } else { self.get(&child) };
            match placed.map(|placed| &placed.item) {
                Some(InMemoryTreeNodeContent::Link(_)) if last == FinalSymlink::Keep && pending.is_empty() => {
                    return Ok(child);
                }
                Some(InMemoryTreeNodeContent::Link(target)) => {
                    links += 1;
                    if links > LINKS_MAX {
                        return Err(Error::new(ErrorKind::LinkLoop, format!("{path} goes through too many links")));
                    }
                    let relative = if target.starts_with(b"/") {
                        found = RelPath::root();
                        roots.iter().find_map(|root| strip_root(target, root)).ok_or_else(escape)?
                    } else {
                        target.clone()
                    };
                    pending.extend(relative.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec));
                }
                Some(
                    InMemoryTreeNodeContent::File(_)
                    | InMemoryTreeNodeContent::Directory
                    | InMemoryTreeNodeContent::Special,
                ) => found = child,
                None => {
                    missing = true;
                    found = child;
                }
            }
        }
        // A `..` after a missing name does not resolve.
        if went_up { Err(Error::new(ErrorKind::NotFound, format!("{path} does not exist"))) } else { Ok(found) }
    }
}

fn strip_root(target: &[u8], root: &str) -> Option<Vec<u8>> {
    let rest = target.strip_prefix(root.as_bytes())?;
    match rest.first() {
        None => Some(Vec::new()),
        Some(b'/') => Some(rest[1..].to_vec()),
        Some(_) => None,
    }
}

/// An entry of the tree as it was when the entry was opened.
#[derive(Debug)]
struct MemoryTreeEntry {
    tree: MemoryTree,
    path: RelPath,
    stat: FileStat,
}

impl MemoryTree {
    pub(super) fn entry(&self, path: &RelPath) -> Option<Arc<dyn TreeEntry>> {
        let stat = self.get(path)?.node();
        Some(Arc::new(MemoryTreeEntry { tree: self.clone(), path: path.clone(), stat }))
    }

    fn open_file(&self, path: &RelPath) -> Result<Box<dyn FileReader>, Error> {
        self.entry(path)
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{path} does not exist")))
            .and_then(|entry| entry.open_file())
    }
}

impl TreeEntry for MemoryTreeEntry {
    fn stat(&self) -> FileStat {
        self.stat
    }

    fn details(&self) -> FileOwnerAndCreationTime {
        FileOwnerAndCreationTime::default()
    }

    fn read_link(&self) -> Result<Vec<u8>, Error> {
        match self.tree.get(&self.path).map(|node| &node.item) {
            Some(InMemoryTreeNodeContent::Link(target)) => Ok(target.clone()),
            Some(
                InMemoryTreeNodeContent::File(_)
                | InMemoryTreeNodeContent::Directory
                | InMemoryTreeNodeContent::Special,
            )
            | None => Err(Error::new(ErrorKind::NotFound, format!("{} is no link", self.path))),
        }
    }

    fn open_file(&self) -> Result<Box<dyn FileReader>, Error> {
        match self.tree.get(&self.path).map(|node| &node.item) {
            Some(InMemoryTreeNodeContent::File(bytes)) => {
                Ok(Box::new(MemoryFileReader { stat: self.stat, bytes: bytes.clone() }))
            }
            Some(InMemoryTreeNodeContent::Directory) => {
                Err(Error::new(ErrorKind::IsDirectory, format!("{} is a directory", self.path)))
            }
            Some(InMemoryTreeNodeContent::Link(_) | InMemoryTreeNodeContent::Special) | None => {
                Err(Error::new(ErrorKind::NotRegular, format!("{} is no file", self.path)))
            }
        }
    }

    fn open_directory(&self) -> Result<Box<dyn DirectoryReader>, Error> {
        self.tree.list(&self.path)?;
        Ok(Box::new(MemoryDirectoryReader { tree: self.tree.clone(), path: self.path.clone() }))
    }
}

struct MemoryDirectoryReader {
    tree: MemoryTree,
    path: RelPath,
}

impl DirectoryReader for MemoryDirectoryReader {
    fn list(&self) -> Result<Vec<DirectoryEntry>, Error> {
        self.tree.list(&self.path)
    }

    fn open_subdirectory(&self, name: &FileName) -> Result<OpenDirectoryWithEntries, Error> {
        let path = self.path.join(name)?;
        let entries = self.tree.list(&path)?;
        Ok((Box::new(Self { tree: self.tree.clone(), path }), entries))
    }

    fn stat(&self, name: &FileName) -> FileStatLookupResult {
        Ok(self.tree.get(&self.path.join(name)?).map(MemoryNode::node))
    }

    fn read_without_version(
        &self,
        name: &FileName,
        limit_bytes: u64,
        _goes_on: &dyn Fn(&[u8]) -> bool,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let file = self.open_file(name)?;
        let size = file.stat().size;
        if size > limit_bytes {
            return Err(Error::new(ErrorKind::TooLarge, "the file is too large to read at once"));
        }
        bytes.resize(usize::try_from(size).unwrap_or(usize::MAX), 0);
        file.read_at(0, bytes).map(drop)
    }

    fn open_file(&self, name: &FileName) -> Result<Box<dyn FileReader>, Error> {
        self.tree.open_file(&self.path.join(name)?)
    }
}

struct MemoryFileReader {
    stat: FileStat,
    bytes: Vec<u8>,
}

impl FileReader for MemoryFileReader {
    fn stat(&self) -> FileStat {
        self.stat
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.bytes.get(offset..)).unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}
