//! Observes the state of a path on disk and compares it with the state in the journal.

use stead_disk::{DiskErrorKind, FileType};
use stead_engine::{Error, Version};
use stead_journal::{ChangeKind, Digest, PathState};
use stead_path::RelPath;

use super::{event_batch::PathEventSummary, recorded_state::LastRecordedPathState};
use crate::{
    limits::{HASHED_BYTES_MAX, INLINE_BYTES_MAX},
    open::LocalWorkspace,
};

const MODE_BITS: u32 = 0o777;

pub(super) struct ObservedPathState {
    pub(super) state: PathState,
    bytes: Option<Vec<u8>>,
}

impl ObservedPathState {
    pub(super) fn is_absent(&self) -> bool {
        self.state == PathState::Absent
    }
}

/// Reads the state of a path on disk, or returns `None` if the path is reserved, on another mount or unreadable.
pub(super) fn observe_path(workspace: &LocalWorkspace, path: &RelPath) -> Result<Option<ObservedPathState>, Error> {
    let absent = || Ok(Some(ObservedPathState { state: PathState::Absent, bytes: None }));
    let plain = |state| Ok(Some(ObservedPathState { state, bytes: None }));
    let stat = match workspace.root.stat(path) {
        Ok(Some(stat)) => stat,
        Ok(None) => return absent(),
        Err(error) => return if is_gone(error.kind) { absent() } else { Ok(None) },
    };
    match stat.file_type {
        FileType::Directory => plain(PathState::Directory { mode: stat.mode }),
        FileType::Symlink => match workspace.root.read_link(path) {
            Ok(target) => plain(PathState::Link { target: String::from_utf8_lossy(&target).into_owned() }),
            Err(error) if is_gone(error.kind) => absent(),
            Err(_) => Ok(None),
        },
        FileType::RegularFile if stat.size <= HASHED_BYTES_MAX => {
            let read = workspace.root.open_file(path).and_then(|file| {
                let stat = file.stat();
                file.read_and_hash(HASHED_BYTES_MAX).map(|(bytes, hash)| (stat, bytes, hash))
            });
            match read {
                Ok((stat, bytes, hash)) => {
                    let (version, size) = (Digest(hash), bytes.len() as u64);
                    let bytes = (size <= INLINE_BYTES_MAX).then_some(bytes);
                    Ok(Some(ObservedPathState { state: PathState::File { version, size, mode: stat.mode }, bytes }))
                }
                Err(error) if error.kind == DiskErrorKind::NotFound => absent(),
                Err(_) => plain(PathState::Unknown { size: Some(stat.size) }),
            }
        }
        FileType::RegularFile => plain(PathState::Unknown { size: Some(stat.size) }),
        FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
            plain(PathState::Unknown { size: None })
        }
    }
}

fn is_gone(kind: DiskErrorKind) -> bool {
    let gone = [
        DiskErrorKind::NotFound,
        DiskErrorKind::NotDirectory,
        DiskErrorKind::IsSymlink,
        DiskErrorKind::ChangedConcurrently,
    ];
    gone.contains(&kind)
}

pub(super) fn retainable_bytes(seen: &ObservedPathState) -> Option<(Version, Vec<u8>)> {
    match (&seen.state, &seen.bytes) {
        (PathState::File { version, .. }, Some(bytes)) => Some((Version(*version), bytes.clone())),
        (_, _) => None,
    }
}

/// Whether the state of a path on disk equals its state in the journal, apart from permission bits.
pub(super) fn is_same_state(known: &PathState, seen: &PathState) -> bool {
    match (known, seen) {
        (
            PathState::File { version, .. } | PathState::Tree { version: Some(version), .. },
            PathState::File { version: now, .. },
        ) => version == now,
        // A tree that was restored from the trash has no single version to compare.
        (PathState::Tree { version: None, .. }, PathState::File { .. } | PathState::Unknown { .. }) => true,
        (PathState::Directory { .. } | PathState::Tree { .. }, PathState::Directory { .. }) => true,
        (PathState::Link { target }, PathState::Link { target: now }) => target == now,
        (PathState::Tree { version: None, .. }, PathState::Link { .. }) => true,
        (PathState::Absent, PathState::Absent) => true,
        (_, _) => false,
    }
}

/// Compares the recorded state of a path with the observed state, and returns the change and the state before the
/// change.
pub(super) fn change_since_recorded(
    known: &LastRecordedPathState,
    seen: &PathState,
    hints: PathEventSummary,
) -> Option<(ChangeKind, PathState)> {
    let before = match &known.state {
        Some(state) => state.clone(),
        None if hints.created => PathState::Absent,
        // A file that appears may have replaced another file. A directory cannot replace one.
        None if hints.appeared && matches!(seen, PathState::Directory { .. }) => PathState::Absent,
        None => PathState::Unknown { size: None },
    };
    if is_same_state(&before, seen) {
        return mode_change(&before, seen, hints);
    }
    let kind = match (&before, seen) {
        (PathState::Absent, PathState::Directory { .. }) => ChangeKind::MakeDir,
        (PathState::Absent, PathState::Link { .. }) => ChangeKind::MakeLink,
        (PathState::Absent, PathState::Absent) => return None,
        (PathState::Absent, _) => ChangeKind::Create,
        // The path was created and removed before it was observed.
        (PathState::Unknown { .. }, PathState::Absent) if hints.created => return None,
        (PathState::Unknown { .. }, PathState::Absent) if !hints.disappeared => return None,
        (_, PathState::Absent) => ChangeKind::Remove,
        // The file was opened for writing and closed, or only its attributes changed: its content need not differ.
        (PathState::Unknown { .. }, _) if !(hints.content_changed || hints.appeared) => return None,
        (PathState::Unknown { .. }, PathState::Directory { .. }) if !hints.appeared => return None,
        (PathState::Unknown { .. }, PathState::Link { .. }) if hints.appeared => ChangeKind::MakeLink,
        (PathState::Unknown { .. }, _) if hints.appeared => ChangeKind::Create,
        (_, _) => ChangeKind::Modify,
    };
    Some((kind, before))
}

fn mode_change(before: &PathState, seen: &PathState, hints: PathEventSummary) -> Option<(ChangeKind, PathState)> {
    match (before, seen) {
        (PathState::File { mode, .. }, PathState::File { mode: now, .. })
            if !(hints.content_changed || hints.appeared) && mode & MODE_BITS != now & MODE_BITS =>
        {
            Some((ChangeKind::SetMode, before.clone()))
        }
        (_, _) => None,
    }
}
