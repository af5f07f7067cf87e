//! Where a race takes place: a workspace, a place outside full of canaries, and a place of exile for what is moved out.
//!
//! A canary is a name, a size, a time, a content or a version that exists outside only. Promises: whatever of it gets
//! into a reply is noticed, and so is every change of the tree outside.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use engine::Version;
use local::{Durability, LocalWorkspace, Options};
use tempfile::TempDir;

use crate::rig::{Fallible, fast_place};

/// In every canary's content.
pub(super) const CANARY: &str = "CANARY";
/// In every name that exists outside only.
pub(super) const ONLY_OUTSIDE: &str = "only-outside";
/// In the year of every canary's time.
const CANARY_YEAR: &str = "1999-";
/// Seconds from 1970 to a day in that year.
const CANARY_TIME: Duration = Duration::from_secs(930_000_000);
/// The size of the first canary; each further one is a byte longer.
const CANARY_BYTES: usize = 777_001;
/// Files outside. Most have a twin inside, so that a change that escapes hits one of them.
const OUTSIDE: &[&str] = &[
    "f",
    "n0",
    "n1",
    "n2",
    "n3",
    "leaf",
    "sub/g",
    "q/n0",
    "q/n1",
    "d/f",
    "d/n0",
    "d/n1",
    "only-outside-7f3a",
    "sub/only-outside-91c2",
];
/// Files inside, all with this in their content.
pub(super) const INSIDE: &str = "inside";
const INSIDE_FILES: &[&str] =
    &["d/f", "d/sub/g", "leaf", "stable/x", "stable/tree/a/b/f", "stable/tree/a/b/n0", "stable/tree/x"];

/// What is known about one place outside.
#[derive(Debug, PartialEq, Eq)]
struct Fact {
    inode: u64,
    mode: u32,
    links: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    version: Option<Version>,
}

/// One place for one race.
pub(super) struct Ground {
    place: TempDir,
    outside: BTreeMap<PathBuf, Fact>,
    versions: Vec<String>,
}

impl Ground {
    pub(super) fn new() -> Fallible<Self> {
        let place = fast_place()?;
        let mut ground = Self { place, outside: BTreeMap::new(), versions: Vec::new() };
        fs::create_dir(ground.exile())?;
        for (number, name) in OUTSIDE.iter().enumerate() {
            let mut content = format!("{CANARY} {name} ").into_bytes();
            content.resize(CANARY_BYTES + number, b'#');
            let path = ground.out().join(name);
            put(&path, &content)?;
            let file = fs::File::options().write(true).open(&path)?;
            file.set_modified(SystemTime::UNIX_EPOCH + CANARY_TIME)?;
            ground.versions.push(Version::of(&content).to_string());
        }
        for name in INSIDE_FILES {
            put(&ground.inside(name), format!("{INSIDE} {name}\n").as_bytes())?;
        }
        symlink("d", ground.inside("link"))?;
        ground.outside = facts(&ground.out())?;
        Ok(ground)
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.place.path().join("ws")
    }

    pub(super) fn inside(&self, name: &str) -> PathBuf {
        self.workspace().join(name)
    }

    pub(super) fn out(&self) -> PathBuf {
        self.place.path().join("out")
    }

    pub(super) fn exile(&self) -> PathBuf {
        self.place.path().join("exile")
    }

    pub(super) fn open(&self, resolver: disk::Resolver) -> Fallible<Arc<LocalWorkspace>> {
        let mut options = Options::new(self.workspace(), self.place.path().join("state"));
        options.durability = Durability::Fast;
        options.resolver = resolver;
        Ok(LocalWorkspace::open(options)?)
    }

    /// What a reply says that only somebody who was outside can know.
    pub(super) fn leaked(&self, reply: &str) -> Option<String> {
        let out = self.out();
        let words = [CANARY, ONLY_OUTSIDE, CANARY_YEAR, out.to_str().unwrap_or(CANARY)];
        if let Some(word) = words.iter().find(|word| reply.contains(**word)) {
            return Some((*word).to_owned());
        }
        // Numbers and versions are compared whole: a hash may hold any digits.
        let known = |word: &&str| {
            let size = word
                .parse()
                .is_ok_and(|size: usize| (CANARY_BYTES..CANARY_BYTES + OUTSIDE.len()).contains(&size));
            size || self.versions.iter().any(|version| version == word)
        };
        reply.split(|letter: char| !letter.is_ascii_alphanumeric()).find(known).map(str::to_owned)
    }

    /// Says no when anything outside is not what it was, down to the time of its last change.
    pub(super) fn must_be_untouched(&self) -> Fallible<()> {
        let now = facts(&self.out())?;
        let differs = |path: &&PathBuf| self.outside.get(*path) != now.get(*path);
        match self.outside.keys().chain(now.keys()).find(differs) {
            None => Ok(()),
            Some(path) => {
                let (was, is) = (self.outside.get(path), now.get(path));
                Err(format!("outside {} was {was:?} and is {is:?}", path.display()).into())
            }
        }
    }
}

fn put(path: &Path, content: &[u8]) -> Fallible<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    Ok(fs::write(path, content)?)
}

fn facts(top: &Path) -> Fallible<BTreeMap<PathBuf, Fact>> {
    let mut found = BTreeMap::new();
    let mut open = vec![top.to_path_buf()];
    while let Some(path) = open.pop() {
        let meta = fs::symlink_metadata(&path)?;
        if meta.is_dir() {
            for entry in fs::read_dir(&path)? {
                open.push(entry?.path());
            }
        }
        let version = if meta.is_file() { Some(Version::of(&fs::read(&path)?)) } else { None };
        let fact = Fact {
            inode: meta.ino(),
            mode: meta.mode(),
            links: meta.nlink(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
            version,
        };
        found.insert(path, fact);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_canary_is_noticed_and_nothing_else() {
        let ground = Ground::new().unwrap();
        for leak in [
            "x CANARY f".to_owned(),
            "only-outside-7f3a".to_owned(),
            "modified 1999-06-21T".to_owned(),
            "size: 777003,".to_owned(),
            format!("\"{}\"", ground.versions[2]),
            ground.out().join("f").to_str().unwrap().to_owned(),
        ] {
            assert!(ground.leaked(&leak).is_some(), "{leak}");
        }
        for plain in ["d/f does not exist", "hash 0777001f", "777099", "2026-05-05"] {
            assert_eq!(ground.leaked(plain), None);
        }
    }

    #[test]
    fn every_change_outside_is_noticed() {
        let changes: [fn(&Path); 4] = [
            |out| fs::remove_file(out.join("f")).unwrap(),
            |out| fs::write(out.join("n9"), "x").unwrap(),
            |out| fs::rename(out.join("n0"), out.join("sub/n0")).unwrap(),
            |out| fs::hard_link(out.join("f"), out.join("../f")).unwrap(),
        ];
        for change in changes {
            let ground = Ground::new().unwrap();
            ground.must_be_untouched().unwrap();
            change(&ground.out());
            assert!(ground.must_be_untouched().is_err());
        }
    }
}
