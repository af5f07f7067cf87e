//! What stands at a place, and what that tells beyond what the journal knows.

use disk::{ErrorKind, FileType};
use engine::{Failure, Version};
use journal::{ChangeKind, Digest, State};
use path::RelPath;

use super::{batch::Hint, known::Known};
use crate::{open::LocalWorkspace, stage::INLINE_BYTES_MAX};

/// Largest file whose version is told. A larger one changes too fast to be hashed each time.
pub(crate) const HASHED_BYTES_MAX: u64 = 16 << 20;
/// Permission bits that are compared.
const MODE_BITS: u32 = 0o777;

/// What was seen at a place.
pub(super) struct Seen {
    pub(super) state: State,
    bytes: Option<Vec<u8>>,
}

impl Seen {
    pub(super) fn is_absent(&self) -> bool {
        self.state == State::Absent
    }
}

/// What is at a place; nothing when it is the server's own, on another mount, or closed to the server.
pub(super) fn look(workspace: &LocalWorkspace, path: &RelPath) -> Result<Option<Seen>, Failure> {
    let absent = || Ok(Some(Seen { state: State::Absent, bytes: None }));
    let plain = |state| Ok(Some(Seen { state, bytes: None }));
    let stat = match workspace.root.stat(path) {
        Ok(Some(stat)) => stat,
        Ok(None) => return absent(),
        Err(error) => return skipped(error.kind).map_or_else(absent, |()| Ok(None)),
    };
    match stat.file_type {
        FileType::Directory => plain(State::Directory { mode: stat.mode }),
        FileType::Link => match workspace.root.read_link(path) {
            Ok(target) => plain(State::Link { target: String::from_utf8_lossy(&target).into_owned() }),
            Err(error) => skipped(error.kind).map_or_else(absent, |()| Ok(None)),
        },
        FileType::File if stat.size <= HASHED_BYTES_MAX => {
            let read = workspace.root.open_file(path).and_then(|file| {
                let stat = file.stat();
                file.read_and_hash(HASHED_BYTES_MAX).map(|(bytes, hash)| (stat, bytes, hash))
            });
            match read {
                Ok((stat, bytes, hash)) => {
                    let (version, size) = (Digest(hash), bytes.len() as u64);
                    let bytes = (size <= INLINE_BYTES_MAX).then_some(bytes);
                    Ok(Some(Seen { state: State::File { version, size, mode: stat.mode }, bytes }))
                }
                Err(error) if error.kind == ErrorKind::NotFound => absent(),
                // It is there, and nobody can say what it holds.
                Err(_) => plain(State::Unknown { size: Some(stat.size) }),
            }
        }
        FileType::File => plain(State::Unknown { size: Some(stat.size) }),
        FileType::Fifo
        | FileType::Socket
        | FileType::CharDevice
        | FileType::BlockDevice
        | FileType::Unknown => plain(State::Unknown { size: None }),
    }
}

/// Whether a place is passed over; otherwise nothing is there any more.
fn skipped(kind: ErrorKind) -> Option<()> {
    match kind {
        ErrorKind::NotFound | ErrorKind::NotDirectory | ErrorKind::IsLink | ErrorKind::Moved => None,
        ErrorKind::Exists
        | ErrorKind::IsDirectory
        | ErrorKind::NotRegular
        | ErrorKind::LinkLoop
        | ErrorKind::Escape
        | ErrorKind::CrossMount
        | ErrorKind::Hidden
        | ErrorKind::NotEmpty
        | ErrorKind::Busy
        | ErrorKind::NoSpace
        | ErrorKind::Quota
        | ErrorKind::ReadOnly
        | ErrorKind::Denied
        | ErrorKind::NameTooLong
        | ErrorKind::TooManyOpen
        | ErrorKind::TooLarge
        | ErrorKind::Unsupported
        | ErrorKind::Io => Some(()),
    }
}

pub(super) fn kept(seen: &Seen) -> Option<(Version, Vec<u8>)> {
    match (&seen.state, &seen.bytes) {
        (State::File { version, .. }, Some(bytes)) => Some((Version(*version), bytes.clone())),
        (_, _) => None,
    }
}

/// Whether what stands somewhere is what the journal left there.
pub(super) fn same(known: &State, seen: &State) -> bool {
    match (known, seen) {
        (
            State::File { version, .. } | State::Tree { version: Some(version), .. },
            State::File { version: now, .. },
        ) => version == now,
        // A tree that came whole from the trash: what it was is in no one version.
        (State::Tree { version: None, .. }, State::File { .. } | State::Unknown { .. }) => true,
        (State::Directory { .. } | State::Tree { .. }, State::Directory { .. }) => true,
        (State::Link { target }, State::Link { target: now }) => target == now,
        (State::Tree { version: None, .. }, State::Link { .. }) => true,
        (State::Absent, State::Absent) => true,
        (
            State::Absent
            | State::File { .. }
            | State::Directory { .. }
            | State::Link { .. }
            | State::Tree { .. }
            | State::Unknown { .. },
            _,
        ) => false,
    }
}

/// What a look tells beyond what the journal knows: the kind of change, and what stood there before.
pub(super) fn news(known: &Known, seen: &State, hint: Hint) -> Option<(ChangeKind, State)> {
    let before = match &known.state {
        Some(state) => state.clone(),
        None if hint.made => State::Absent,
        // Nobody knows whether a file was there before; a directory cannot have been.
        None if hint.came && matches!(seen, State::Directory { .. }) => State::Absent,
        None => State::Unknown { size: None },
    };
    if same(&before, seen) {
        return mode_only(&before, seen, hint);
    }
    let kind = match (&before, seen) {
        (State::Absent, State::Directory { .. }) => ChangeKind::MakeDir,
        (State::Absent, State::Link { .. }) => ChangeKind::MakeLink,
        (State::Absent, State::Absent) => return None,
        (State::Absent, _) => ChangeKind::Create,
        // Made and gone again before anybody could look.
        (State::Unknown { .. }, State::Absent) if hint.made => return None,
        (State::Unknown { .. }, State::Absent) if !hint.left => return None,
        (_, State::Absent) => ChangeKind::Remove,
        // Opened for writing and closed, or touched: nothing says that it holds anything else.
        (State::Unknown { .. }, _) if !(hint.content || hint.came) => return None,
        (State::Unknown { .. }, State::Directory { .. }) if !hint.came => return None,
        (State::Unknown { .. }, State::Link { .. }) if hint.came => ChangeKind::MakeLink,
        (State::Unknown { .. }, _) if hint.came => ChangeKind::Create,
        (_, _) => ChangeKind::Modify,
    };
    Some((kind, before))
}

/// A change of nothing but permission bits.
fn mode_only(before: &State, seen: &State, hint: Hint) -> Option<(ChangeKind, State)> {
    match (before, seen) {
        (State::File { mode, .. }, State::File { mode: now, .. })
            if !(hint.content || hint.came) && mode & MODE_BITS != now & MODE_BITS =>
        {
            Some((ChangeKind::SetMode, before.clone()))
        }
        (_, _) => None,
    }
}
