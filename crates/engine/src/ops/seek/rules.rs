//! Which places a walk leaves out by ignore files: `.ignore`, `.gitignore` and `.git/info/exclude` of every directory
//! from the root of the workspace down. The nearer file wins, `.ignore` wins over `.gitignore`, and what git ignores
//! ends at the border of a repository. Files are read through the view: one that its caller may not read says nothing.

use std::sync::Arc;

use path::{Name, RelPath};

use super::patterns::Patterns;
pub(super) use super::patterns::{Place, Verdict};
use crate::{limits, plan::Top, view::View, workspace::Listed};

/// What the ignore files of a directory and of those above it say.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    above: Option<Arc<Rules>>,
    /// Bytes of a path up to what is below the directory.
    base: usize,
    ignore: Option<Patterns>,
    git: Option<Patterns>,
    exclude: Option<Patterns>,
    repository: bool,
}

const IGNORE: &[u8] = b".ignore";
const GIT_IGNORE: &[u8] = b".gitignore";
const GIT: &[u8] = b".git";
const EXCLUDE: [&[u8]; 2] = [b"info", b"exclude"];

impl Rules {
    /// The rules above a directory where a walk starts.
    pub(super) fn above(view: &View<'_>, start: &RelPath) -> Arc<Self> {
        let mut rules = Arc::new(Self::default());
        let mut above: Vec<RelPath> = start.ancestors().filter(|above| above != start).collect();
        above.sort_by_key(RelPath::depth);
        let names: Vec<Name> =
            [GIT, GIT_IGNORE, IGNORE].into_iter().filter_map(|name| Name::new(name).ok()).collect();
        for directory in above {
            let Ok(looked) = view.stat_names(&directory, &names) else { continue };
            let there = names.iter().zip(looked).filter_map(|(name, looked)| {
                let top = looked.ok()??.top;
                Some(Listed { name: name.clone(), top })
            });
            rules = rules.within(&|path| bytes(view, path), &directory, &there.collect::<Vec<_>>());
        }
        rules
    }

    /// The rules in a directory with these names in byte order. `read` brings the bytes of an ignore file.
    pub(crate) fn within(
        self: Arc<Self>,
        read: &dyn Fn(&RelPath) -> Option<Vec<u8>>,
        directory: &RelPath,
        listed: &[Listed],
    ) -> Arc<Self> {
        let top_of = |name: &[u8]| {
            let found = listed.binary_search_by(|listed| listed.name.as_bytes().cmp(name));
            found.ok().map(|at| listed[at].top)
        };
        let file =
            |name: &[u8]| (top_of(name) == Some(Top::File)).then(|| patterns(read, directory, &[name]))?;
        let repository = top_of(GIT);
        let ignore = file(IGNORE);
        let git = file(GIT_IGNORE);
        let exclude = (repository == Some(Top::Directory))
            .then(|| patterns(read, directory, &[GIT, EXCLUDE[0], EXCLUDE[1]]))
            .flatten();
        if ignore.is_none() && git.is_none() && exclude.is_none() && repository.is_none() {
            return self;
        }
        let base = if directory.is_root() { 0 } else { directory.as_bytes().len() + 1 };
        Arc::new(Self { above: Some(self), base, ignore, git, exclude, repository: repository.is_some() })
    }

    /// What they say about a place in the directory.
    pub(super) fn judge(&self, path: &RelPath, place: Place) -> Verdict {
        let (mut ignore, mut git, mut exclude) = (Verdict::Silent, Verdict::Silent, Verdict::Silent);
        let mut outside = false;
        let mut next = Some(self);
        while let Some(rules) = next {
            let below = path.as_bytes().get(rules.base..).unwrap_or_default();
            let ask = |said: &mut Verdict, patterns: &Option<Patterns>| {
                if *said == Verdict::Silent
                    && let Some(patterns) = patterns
                {
                    *said = patterns.judge(below, place);
                }
            };
            ask(&mut ignore, &rules.ignore);
            if ignore != Verdict::Silent {
                return ignore;
            }
            if !outside {
                ask(&mut git, &rules.git);
                ask(&mut exclude, &rules.exclude);
            }
            outside |= rules.repository;
            next = rules.above.as_deref();
        }
        if git == Verdict::Silent { exclude } else { git }
    }
}

/// The patterns of one file below a directory, if it is there and may be read.
fn patterns(
    read: &dyn Fn(&RelPath) -> Option<Vec<u8>>,
    directory: &RelPath,
    names: &[&[u8]],
) -> Option<Patterns> {
    let mut path = directory.clone();
    for name in names {
        path = path.join(&Name::new(name).ok()?).ok()?;
    }
    Patterns::read(&read(&path)?)
}

/// The bytes of an ignore file, if the caller may read it.
pub(super) fn bytes(view: &View<'_>, path: &RelPath) -> Option<Vec<u8>> {
    if !view.may_read(path) {
        return None;
    }
    view.workspace().scan(path, limits::IGNORE_FILE_BYTES_MAX).ok()
}
