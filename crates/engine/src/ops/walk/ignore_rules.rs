//! The paths that a walk omits because of `.ignore`, `.gitignore` and `.git/info/exclude` in every directory from the
//! workspace root down. The closer file wins, `.ignore` wins over `.gitignore`, and git rules end at a repository
//! boundary. Ignore files that the caller may not read are skipped.

use std::sync::Arc;

use stead_path::{FileName, RelPath};

use super::ignore_file::IgnoreFile;
pub(super) use super::ignore_file::{IgnorePathKind, IgnoreVerdict};
use crate::{call_context::CallContext, limits, plan::FileKind, workspace::DirectoryEntry};

/// The ignore files of a directory and of its parents.
#[derive(Debug, Default)]
pub(crate) struct IgnoreRules {
    parent: Option<Arc<IgnoreRules>>,
    /// Length of the path prefix up to the directory.
    prefix_bytes: usize,
    ignore_file: Option<IgnoreFile>,
    git_ignore_file: Option<IgnoreFile>,
    git_exclude_file: Option<IgnoreFile>,
    is_repository_root: bool,
}

const IGNORE: &[u8] = b".ignore";
const GIT_IGNORE: &[u8] = b".gitignore";
const GIT_DIRECTORY: &[u8] = b".git";
const GIT_EXCLUDE: [&[u8]; 2] = [b"info", b"exclude"];

impl IgnoreRules {
    /// The rules above the directory where a walk starts.
    pub(super) fn for_start_directory(context: &CallContext<'_>, start: &RelPath) -> Arc<Self> {
        let mut rules = Arc::new(Self::default());
        let mut above: Vec<RelPath> = start.ancestors().filter(|above| above != start).collect();
        above.sort_by_key(RelPath::depth);
        let names: Vec<FileName> =
            [GIT_DIRECTORY, GIT_IGNORE, IGNORE].into_iter().filter_map(|name| FileName::new(name).ok()).collect();
        for directory in above {
            let Ok(stats) = context.stat_names(&directory, &names) else { continue };
            let there = names.iter().zip(stats).filter_map(|(name, stat)| {
                let top = stat.ok()??.kind;
                Some(DirectoryEntry { name: name.clone(), kind: top })
            });
            rules =
                rules.enter_directory(&|path| read_ignore_file(context, path), &directory, &there.collect::<Vec<_>>());
        }
        rules
    }

    /// The rules inside a directory with these names, in byte order. `read` loads an ignore file.
    pub(crate) fn enter_directory(
        self: Arc<Self>,
        read: &dyn Fn(&RelPath) -> Option<Vec<u8>>,
        directory: &RelPath,
        listed: &[DirectoryEntry],
    ) -> Arc<Self> {
        let top_of = |name: &[u8]| {
            let found = listed.binary_search_by(|listed| listed.name.as_bytes().cmp(name));
            found.ok().map(|at| listed[at].kind)
        };
        let file = |name: &[u8]| {
            (top_of(name) == Some(FileKind::File)).then(|| parse_ignore_file(read, directory, &[name]))?
        };
        let repository = top_of(GIT_DIRECTORY);
        let ignore = file(IGNORE);
        let git = file(GIT_IGNORE);
        let exclude = (repository == Some(FileKind::Directory))
            .then(|| parse_ignore_file(read, directory, &[GIT_DIRECTORY, GIT_EXCLUDE[0], GIT_EXCLUDE[1]]))
            .flatten();
        if ignore.is_none() && git.is_none() && exclude.is_none() && repository.is_none() {
            return self;
        }
        let base = if directory.is_root() { 0 } else { directory.as_bytes().len() + 1 };
        Arc::new(Self {
            parent: Some(self),
            prefix_bytes: base,
            ignore_file: ignore,
            git_ignore_file: git,
            git_exclude_file: exclude,
            is_repository_root: repository.is_some(),
        })
    }

    /// The verdict for an entry of the directory.
    pub(super) fn evaluate(&self, path: &RelPath, kind: IgnorePathKind) -> IgnoreVerdict {
        let (mut ignore, mut git, mut exclude) =
            (IgnoreVerdict::NoMatch, IgnoreVerdict::NoMatch, IgnoreVerdict::NoMatch);
        let mut outside = false;
        let mut next = Some(self);
        while let Some(rules) = next {
            let below = path.as_bytes().get(rules.prefix_bytes..).unwrap_or_default();
            let update = |verdict: &mut IgnoreVerdict, patterns: &Option<IgnoreFile>| {
                if *verdict == IgnoreVerdict::NoMatch
                    && let Some(patterns) = patterns
                {
                    *verdict = patterns.evaluate(below, kind);
                }
            };
            update(&mut ignore, &rules.ignore_file);
            if ignore != IgnoreVerdict::NoMatch {
                return ignore;
            }
            if !outside {
                update(&mut git, &rules.git_ignore_file);
                update(&mut exclude, &rules.git_exclude_file);
            }
            outside |= rules.is_repository_root;
            next = rules.parent.as_deref();
        }
        if git == IgnoreVerdict::NoMatch { exclude } else { git }
    }
}

/// The patterns of one file below a directory, if it exists and may be read.
fn parse_ignore_file(
    read: &dyn Fn(&RelPath) -> Option<Vec<u8>>,
    directory: &RelPath,
    names: &[&[u8]],
) -> Option<IgnoreFile> {
    let mut path = directory.clone();
    for name in names {
        path = path.join(&FileName::new(name).ok()?).ok()?;
    }
    IgnoreFile::parse(&read(&path)?)
}

pub(super) fn read_ignore_file(context: &CallContext<'_>, path: &RelPath) -> Option<Vec<u8>> {
    if !context.may_read(path) {
        return None;
    }
    context.workspace().read_without_version(path, limits::IGNORE_FILE_BYTES_MAX).ok()
}
