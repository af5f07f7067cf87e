//! Snapshots of directory trees, whose comparison shows the changes. Taking a snapshot never follows a link, opens a
//! special file or enters another file system.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

const DEPTH_MAX: usize = 64;
/// The size in bytes above which a snapshot compares only the length of a file.
const BYTES_MAX: u64 = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimestampComparisonScope {
    All,
    /// Only the times of files are compared, because temporary files change the time of their directory.
    FilesOnly,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AttackTreeSnapshot(BTreeMap<PathBuf, AttackTestSnapshotItem>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct AttackTestSnapshotItem {
    kind: &'static str,
    mode: u32,
    size: u64,
    modified_ns: Option<i128>,
    content: Vec<u8>,
}

impl AttackTreeSnapshot {
    pub(crate) fn take(top: &Path, except: &[&Path], times: TimestampComparisonScope) -> io::Result<Self> {
        let mut seen = BTreeMap::new();
        let device = match fs::symlink_metadata(top) {
            Ok(meta) => meta.dev(),
            // The whole tree was removed.
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
                // A path that disappears during the walk counts as missing.
                let Ok(meta) = fs::symlink_metadata(&path) else { continue };
                let kind = file_kind_name(&meta);
                if kind == "directory" && depth < DEPTH_MAX && meta.dev() == device {
                    waiting.push((path.clone(), depth + 1));
                }
                seen.insert(path.clone(), snapshot_item(&path, &meta, kind, times)?);
            }
        }
        Ok(Self(seen))
    }

    pub(crate) fn describe_changes(&self, later: &Self) -> Vec<String> {
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

fn snapshot_item(
    path: &Path,
    meta: &fs::Metadata,
    kind: &'static str,
    times: TimestampComparisonScope,
) -> io::Result<AttackTestSnapshotItem> {
    let content = match kind {
        "file" if meta.len() <= BYTES_MAX => fs::read(path).unwrap_or_default(),
        "link" => fs::read_link(path)?.into_os_string().into_encoded_bytes(),
        _ => Vec::new(),
    };
    let modified = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
    let timed = times == TimestampComparisonScope::All || kind != "directory";
    Ok(AttackTestSnapshotItem {
        kind,
        mode: meta.mode(),
        size: if kind == "directory" { 0 } else { meta.len() },
        modified_ns: timed.then_some(modified),
        content,
    })
}

pub(crate) fn file_kind_name(meta: &fs::Metadata) -> &'static str {
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
    fn every_kind_of_change_is_reported() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["same", "other", "gone", "mode"] {
            fs::write(at(name), name).unwrap();
        }
        let before = AttackTreeSnapshot::take(place.path(), &[], TimestampComparisonScope::All).unwrap();
        assert_eq!(before.describe_changes(&before), Vec::<String>::new());
        fs::write(at("other"), "OTHER").unwrap();
        fs::remove_file(at("gone")).unwrap();
        fs::write(at("fresh"), "").unwrap();
        fs::set_permissions(at("mode"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let after = AttackTreeSnapshot::take(place.path(), &[], TimestampComparisonScope::All).unwrap();
        let mut changes = before.describe_changes(&after);
        changes.sort();
        assert_eq!(changes, ["fresh is new", "gone is gone", "mode is different", "other is different"]);
        let without = AttackTreeSnapshot::take(place.path(), &[&at("fresh")], TimestampComparisonScope::All).unwrap();
        assert_eq!(after.describe_changes(&without), ["fresh is gone"]);
    }
}
