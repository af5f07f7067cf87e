//! The directories of a race: a workspace, an outside directory full of canaries, and a place for moved directories. A
//! canary is a name, size, time, content or version that exists only outside the workspace.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use stead_engine::Version;
use stead_local::{Durability, LocalWorkspace, LocalWorkspaceOptions};
use tempfile::TempDir;

use crate::stress::{Fallible, scratch_directory};

pub(super) const CANARY: &str = "CANARY";
pub(super) const OUTSIDE_ONLY_NAME: &str = "only-outside";
const CANARY_YEAR: &str = "1999-";
/// The modification time of the canary files is in [`CANARY_YEAR`].
const CANARY_TIME: Duration = Duration::from_secs(930_000_000);
/// The size in bytes of the first canary file; each later canary file is one byte longer.
const CANARY_BYTES: usize = 777_001;
/// Most outside files have the name of a workspace file, so that a change that escapes would hit one of them.
const OUTSIDE_FILES: &[&str] = &[
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
pub(super) const INSIDE_CONTENT: &str = "inside";
const INSIDE_FILES: &[&str] =
    &["d/f", "d/sub/g", "leaf", "stable/x", "stable/tree/a/b/f", "stable/tree/a/b/n0", "stable/tree/x"];

#[derive(Debug, PartialEq, Eq)]
struct RaceTestFileFingerprint {
    inode: u64,
    mode: u32,
    links: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    version: Option<Version>,
}

pub(super) struct RaceTestDirectories {
    directory: TempDir,
    outside_before: BTreeMap<PathBuf, RaceTestFileFingerprint>,
    outside_versions: Vec<String>,
}

impl RaceTestDirectories {
    pub(super) fn new() -> Fallible<Self> {
        let place = scratch_directory()?;
        let mut ground = Self { directory: place, outside_before: BTreeMap::new(), outside_versions: Vec::new() };
        fs::create_dir(ground.exile_path())?;
        for (number, name) in OUTSIDE_FILES.iter().enumerate() {
            let mut content = format!("{CANARY} {name} ").into_bytes();
            content.resize(CANARY_BYTES + number, b'#');
            let path = ground.outside_path().join(name);
            write_file(&path, &content)?;
            let file = fs::File::options().write(true).open(&path)?;
            file.set_modified(SystemTime::UNIX_EPOCH + CANARY_TIME)?;
            ground.outside_versions.push(Version::hash_bytes(&content).to_string());
        }
        for name in INSIDE_FILES {
            write_file(&ground.inside_path(name), format!("{INSIDE_CONTENT} {name}\n").as_bytes())?;
        }
        symlink("d", ground.inside_path("link"))?;
        ground.outside_before = fingerprint_tree(&ground.outside_path())?;
        Ok(ground)
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.directory.path().join("ws")
    }

    pub(super) fn inside_path(&self, name: &str) -> PathBuf {
        self.workspace().join(name)
    }

    pub(super) fn outside_path(&self) -> PathBuf {
        self.directory.path().join("out")
    }

    pub(super) fn exile_path(&self) -> PathBuf {
        self.directory.path().join("exile")
    }

    pub(super) fn open_workspace(&self, resolver: stead_disk::PathResolutionMethod) -> Fallible<Arc<LocalWorkspace>> {
        let mut options = LocalWorkspaceOptions::new(self.workspace(), self.directory.path().join("state"));
        options.durability = Durability::Fast;
        options.resolver = resolver;
        Ok(LocalWorkspace::open(options)?)
    }

    pub(super) fn find_leak(&self, reply: &str) -> Option<String> {
        let out = self.outside_path();
        let words = [CANARY, OUTSIDE_ONLY_NAME, CANARY_YEAR, out.to_str().unwrap_or(CANARY)];
        if let Some(word) = words.iter().find(|word| reply.contains(**word)) {
            return Some((*word).to_owned());
        }
        // Numbers and versions are compared whole, because a hash may contain any digits.
        let known = |word: &&str| {
            let size = word
                .parse()
                .is_ok_and(|size: usize| (CANARY_BYTES..CANARY_BYTES + OUTSIDE_FILES.len()).contains(&size));
            size || self.outside_versions.iter().any(|version| version == word)
        };
        reply.split(|letter: char| !letter.is_ascii_alphanumeric()).find(known).map(str::to_owned)
    }

    pub(super) fn check_outside_unchanged(&self) -> Fallible<()> {
        let now = fingerprint_tree(&self.outside_path())?;
        let differs = |path: &&PathBuf| self.outside_before.get(*path) != now.get(*path);
        match self.outside_before.keys().chain(now.keys()).find(differs) {
            None => Ok(()),
            Some(path) => {
                let (was, is) = (self.outside_before.get(path), now.get(path));
                Err(format!("outside {} was {was:?} and is {is:?}", path.display()).into())
            }
        }
    }
}

fn write_file(path: &Path, content: &[u8]) -> Fallible<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    Ok(fs::write(path, content)?)
}

fn fingerprint_tree(top: &Path) -> Fallible<BTreeMap<PathBuf, RaceTestFileFingerprint>> {
    let mut found = BTreeMap::new();
    let mut open = vec![top.to_path_buf()];
    while let Some(path) = open.pop() {
        let meta = fs::symlink_metadata(&path)?;
        if meta.is_dir() {
            for entry in fs::read_dir(&path)? {
                open.push(entry?.path());
            }
        }
        let version = if meta.is_file() { Some(Version::hash_bytes(&fs::read(&path)?)) } else { None };
        let fact = RaceTestFileFingerprint {
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
    fn find_leak_reports_every_canary_and_nothing_else() {
        let ground = RaceTestDirectories::new().unwrap();
        for leak in [
            "x CANARY f".to_owned(),
            "only-outside-7f3a".to_owned(),
            "modified 1999-06-21T".to_owned(),
            "size: 777003,".to_owned(),
            format!("\"{}\"", ground.outside_versions[2]),
            ground.outside_path().join("f").to_str().unwrap().to_owned(),
        ] {
            assert!(ground.find_leak(&leak).is_some(), "{leak}");
        }
        for plain in ["d/f does not exist", "hash 0777001f", "777099", "2026-05-05"] {
            assert_eq!(ground.find_leak(plain), None);
        }
    }

    #[test]
    fn every_outside_change_is_detected() {
        let changes: [fn(&Path); 4] = [
            |out| fs::remove_file(out.join("f")).unwrap(),
            |out| fs::write(out.join("n9"), "x").unwrap(),
            |out| fs::rename(out.join("n0"), out.join("sub/n0")).unwrap(),
            |out| fs::hard_link(out.join("f"), out.join("../f")).unwrap(),
        ];
        for change in changes {
            let ground = RaceTestDirectories::new().unwrap();
            ground.check_outside_unchanged().unwrap();
            change(&ground.outside_path());
            assert!(ground.check_outside_unchanged().is_err());
        }
    }
}
