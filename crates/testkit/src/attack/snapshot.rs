//! A tree as it is at one moment: names, types, bytes, modes and times. Two of them say what changed. Never follows a
//! link, never opens what is not a regular file, never enters another file system.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

/// Deeper than this a tree is only counted as deep.
const DEPTH_MAX: usize = 64;
/// Bytes of one file that are compared; the length is always.
const BYTES_MAX: u64 = 1 << 16;

/// Which times are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Times {
    /// Of everything.
    All,
    /// Of everything but directories: making and taking away a temporary file may touch those.
    NotOfDirectories,
}

/// One tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<PathBuf, Thing>);

/// One thing in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Thing {
    kind: &'static str,
    mode: u32,
    size: u64,
    modified_ns: Option<i128>,
    content: Vec<u8>,
}

impl Snapshot {
    /// Looks at everything below `top` except the places left out.
    pub(crate) fn of(top: &Path, except: &[&Path], times: Times) -> io::Result<Self> {
        let mut seen = BTreeMap::new();
        let device = match fs::symlink_metadata(top) {
            Ok(meta) => meta.dev(),
            // Somebody took all of it away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self(seen)),
            Err(error) => return Err(error),
        };
        let mut waiting = vec![(top.to_path_buf(), 0)];
        while let Some((directory, depth)) = waiting.pop() {
            for entry in fs::read_dir(&directory)? {
                let path = entry?.path();
                if except.contains(&path.as_path()) {
                    continue;
                }
                // Something that goes away while it is looked at is not there.
                let Ok(meta) = fs::symlink_metadata(&path) else { continue };
                let kind = kind_of(&meta);
                if kind == "directory" && depth < DEPTH_MAX && meta.dev() == device {
                    waiting.push((path.clone(), depth + 1));
                }
                seen.insert(path.clone(), thing(&path, &meta, kind, times)?);
            }
        }
        Ok(Self(seen))
    }

    /// What is different, in words; empty when nothing is.
    pub(crate) fn changes(&self, later: &Self) -> Vec<String> {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let gone = self.0.keys().filter(|path| !later.0.contains_key(*path));
        let mut found: Vec<String> = gone.map(|path| format!("{} is gone", name(path))).collect();
        for (path, now) in &later.0 {
            match self.0.get(path) {
                None => found.push(format!("{} is new", name(path))),
                Some(before) if before != now => found.push(format!("{} is different", name(path))),
                Some(_) => {}
            }
        }
        found
    }
}

fn thing(path: &Path, meta: &fs::Metadata, kind: &'static str, times: Times) -> io::Result<Thing> {
    let content = match kind {
        "file" if meta.len() <= BYTES_MAX => fs::read(path).unwrap_or_default(),
        "link" => fs::read_link(path)?.into_os_string().into_encoded_bytes(),
        _ => Vec::new(),
    };
    let modified = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
    let timed = times == Times::All || kind != "directory";
    Ok(Thing {
        kind,
        mode: meta.mode(),
        size: if kind == "directory" { 0 } else { meta.len() },
        modified_ns: timed.then_some(modified),
        content,
    })
}

/// The word for what something is.
pub(crate) fn kind_of(meta: &fs::Metadata) -> &'static str {
    let file_type = meta.file_type();
    if file_type.is_dir() {
        "directory"
    } else if file_type.is_symlink() {
        "link"
    } else if file_type.is_file() {
        "file"
    } else if file_type.is_fifo() {
        "fifo"
    } else if file_type.is_socket() {
        "socket"
    } else {
        "device"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_every_kind_of_change() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["same", "other", "gone", "mode"] {
            fs::write(at(name), name).unwrap();
        }
        let before = Snapshot::of(place.path(), &[], Times::All).unwrap();
        assert_eq!(before.changes(&before), Vec::<String>::new());
        fs::write(at("other"), "OTHER").unwrap();
        fs::remove_file(at("gone")).unwrap();
        fs::write(at("fresh"), "").unwrap();
        fs::set_permissions(at("mode"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let after = Snapshot::of(place.path(), &[], Times::All).unwrap();
        let mut changes = before.changes(&after);
        changes.sort();
        assert_eq!(changes, ["fresh is new", "gone is gone", "mode is different", "other is different"]);
        let without = Snapshot::of(place.path(), &[&at("fresh")], Times::All).unwrap();
        assert_eq!(after.changes(&without), ["fresh is gone"]);
    }
}
