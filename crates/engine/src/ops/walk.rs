//! The tree walk of `find` and `search`, which does not follow symbolic links. The tree walk skips paths that the
//! caller may not see and paths that a filter excludes.

mod ignore;
mod parallel;

use std::cmp::Ordering;

pub(crate) use ignore::IgnoreRules;
use ignore::{IgnorePathKind, IgnoreVerdict};
use parallel::ParallelWalk;
use stead_path::{FileName, RelPath};

use crate::{
    call_context::CallContext,
    errors::Error,
    limits,
    plan::FileKind,
    tree::{DirectoryReader, FileReader, FileStamp, FileStat},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IgnoredFileInclusionPolicy {
    Include,
    /// A walk omits ignored files and names with a leading dot, unless a negated ignore pattern includes the name.
    Exclude,
}

impl From<Option<bool>> for IgnoredFileInclusionPolicy {
    fn from(all: Option<bool>) -> Self {
        if all == Some(true) { Self::Include } else { Self::Exclude }
    }
}

pub(super) struct ParallelWalkEntry<'m> {
    pub(super) directory: &'m RelPath,
    pub(super) path: &'m RelPath,
    pub(super) kind: FileKind,
    pub(super) name: &'m FileName,
    /// The length in bytes of the path of the walk's start directory, with a trailing slash.
    prefix_bytes: usize,
    directory_reader: &'m dyn DirectoryReader,
}

impl ParallelWalkEntry<'_> {
    pub(super) fn path_below_start(&self) -> &[u8] {
        self.path.as_bytes().get(self.prefix_bytes..).unwrap_or_default()
    }

    pub(super) fn stamp(&self) -> Option<FileStamp> {
        self.directory_reader.stat(self.name).ok()?.map(|stat| stat.stamp)
    }

    /// Reads the visited file, or only its first bytes if `wants_rest` returns false for the first bytes.
    pub(super) fn read_bytes(&self, wants_rest: &dyn Fn(&[u8]) -> bool, bytes: &mut Vec<u8>) -> Result<(), Error> {
        self.directory_reader.read_without_version(self.name, limits::SEARCH_IN_MEMORY_BYTES_MAX, wants_rest, bytes)
    }

    pub(super) fn open_file(&self) -> Result<Box<dyn FileReader>, Error> {
        self.directory_reader.open_file(self.name)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WalkOmissions {
    pub(super) unlistable_directories: u64,
    pub(super) limit_reached: bool,
    /// The number of ignored and hidden entries that a walk omits; an omitted directory counts as one entry.
    pub(super) ignored: u64,
}

impl WalkOmissions {
    pub(super) fn ignored_count(&self) -> Option<u64> {
        (self.ignored > 0).then_some(self.ignored)
    }

    fn add(&mut self, other: Self) {
        self.unlistable_directories += other.unlistable_directories;
        self.limit_reached |= other.limit_reached;
        self.ignored += other.ignored;
    }
}

pub(super) type WalkVisitFn<'a, A> = dyn Fn(&mut A, &ParallelWalkEntry<'_>) -> Result<(), Error> + Sync + 'a;

/// Visits everything below a directory, with several threads if the tree is large. Each thread of the walk has its own
/// accumulator, and the threads visit entries in no defined order.
pub(super) fn walk_tree<A: Send>(
    context: &CallContext<'_>,
    start: &RelPath,
    ignored: IgnoredFileInclusionPolicy,
    make: &(dyn Fn() -> A + Sync),
    visit: &WalkVisitFn<'_, A>,
) -> Result<(Vec<A>, WalkOmissions), Error> {
    let rules = match ignored {
        IgnoredFileInclusionPolicy::Exclude => Some(IgnoreRules::for_start_directory(context, start)),
        IgnoredFileInclusionPolicy::Include => None,
    };
    ParallelWalk::new(context, start).run(rules, make, visit)
}

/// Compares paths by component in byte order, so that a directory comes before its children.
pub(super) fn compare_by_path(one: &RelPath, two: &RelPath) -> Ordering {
    one.components().cmp(two.components())
}

pub(super) fn stat_entry(context: &CallContext<'_>, path: &RelPath) -> Option<FileStat> {
    let (parent, name): (RelPath, FileName) = path.split()?;
    let stats = context.stat_names(&parent, &[name]).ok()?;
    stats.into_iter().next()?.ok()?
}

pub(crate) fn is_included(rules: &IgnoreRules, path: &RelPath, name: &FileName, kind: FileKind) -> bool {
    let kind = if kind == FileKind::Directory { IgnorePathKind::Directory } else { IgnorePathKind::Other };
    match rules.evaluate(path, kind) {
        IgnoreVerdict::NoMatch => !name.as_bytes().starts_with(b"."),
        IgnoreVerdict::Ignored => false,
        IgnoreVerdict::Included => true,
    }
}
