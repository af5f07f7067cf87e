//! Holds what happened against the disk and the journal: what the journal knows already is dropped, the rest becomes
//! changes. A place that somebody is changing through here right now is looked at again later, under its lock.

use std::time::{Duration, Instant};

use disk::{ErrorKind, FileType};
use engine::{Failure, Guard, Kind, LockAsk, Version, Workspace};
use journal::{Change, ChangeKind, Digest, State};
use path::RelPath;

use super::{
    batch::{Hint, Item},
    known::{Knowledge, Known},
    scopes::Scopes,
};
use crate::{open::LocalWorkspace, stage::INLINE_BYTES_MAX};

/// Largest file whose version is told. A larger one changes too fast to be hashed each time.
pub(crate) const HASHED_BYTES_MAX: u64 = 16 << 20;
/// How long a place is waited for that somebody is changing through here.
const LOCK_WAIT: Duration = Duration::from_millis(50);
/// Permission bits that are compared.
const MODE_BITS: u32 = 0o777;

/// A change that the journal does not know, and what it was held against.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) change: Change,
    /// The places, each with the last entry about it: another one since, and the change must be judged again.
    pub(crate) against: Vec<(RelPath, u64)>,
    /// Bytes worth keeping, for telling later which lines changed.
    pub(crate) kept: Option<(Version, Vec<u8>)>,
    /// What it was judged from.
    pub(crate) item: Item,
}

/// What was seen at a place.
struct Seen {
    state: State,
    bytes: Option<Vec<u8>>,
}

impl Seen {
    fn is_absent(&self) -> bool {
        self.state == State::Absent
    }
}

/// How a look ended.
enum Verdict {
    /// The journal knows it, or it is nobody's concern.
    Known,
    /// It is news.
    News(Box<Judged>),
    /// The place is just being changed through here.
    Busy,
}

/// Judges items of one batch.
pub(crate) struct Judge<'a> {
    workspace: &'a LocalWorkspace,
    scopes: &'a Scopes,
    knowledge: Knowledge<'a>,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(workspace: &'a LocalWorkspace, scopes: &'a Scopes) -> Self {
        Self { workspace, scopes, knowledge: Knowledge::new(&workspace.store) }
    }

    /// Judges these. What cannot be judged now comes back in `again`.
    pub(crate) fn all(&mut self, items: Vec<Item>, again: &mut Vec<Item>) -> Result<Vec<Judged>, Failure> {
        let mut news = Vec::new();
        for item in items {
            // The name a thing had and the name it has may both be news.
            for part in self.parts(item)? {
                match self.judge(&part)? {
                    Verdict::Known => {}
                    Verdict::News(judged) => news.push(*judged),
                    Verdict::Busy => again.push(part),
                }
            }
        }
        Ok(news)
    }

    /// A rename of which only one end is heard, or whose end is gone again or known already, is what happened to the ends.
    fn parts(&mut self, item: Item) -> Result<Vec<Item>, Failure> {
        let Item::Renamed { from, to } = &item else { return Ok(vec![item]) };
        let left = || {
            let hint = Hint { left: true, ..Hint::default() };
            Item::Touched { path: from.clone(), hint }
        };
        let came = || {
            let hint = Hint { came: true, content: true, whole: true, ..Hint::default() };
            Item::Touched { path: to.clone(), hint }
        };
        Ok(match (self.scopes.matters(from), self.scopes.matters(to)) {
            (true, true) => {
                let seen = self.look(to)?;
                let known = self.knowledge.of(to)?;
                let settled = seen.as_ref().is_none_or(|seen| {
                    seen.is_absent() || known.state.as_ref().is_some_and(|state| same(state, &seen.state))
                });
                if settled { vec![left(), came()] } else { vec![item] }
            }
            (true, false) => vec![left()],
            (false, true) => vec![came()],
            (false, false) => Vec::new(),
        })
    }

    fn judge(&mut self, item: &Item) -> Result<Verdict, Failure> {
        match self.hold(item)? {
            Verdict::Busy => {}
            settled @ (Verdict::Known | Verdict::News(_)) => return Ok(settled),
        }
        // The last entry about the place may not be true yet. Under its lock it is, or its process is dead and it is
        // finished first.
        let places = match item {
            Item::Touched { path, .. } => vec![LockAsk { path: path.clone() }],
            Item::Renamed { from, to } => vec![LockAsk { path: from.clone() }, LockAsk { path: to.clone() }],
        };
        let guard: Box<dyn Guard> = match self.workspace.lock(&places, Instant::now() + LOCK_WAIT) {
            Ok(guard) => guard,
            Err(failure) if failure.kind == Kind::Busy => return Ok(Verdict::Busy),
            Err(failure) => return Err(failure),
        };
        self.knowledge = Knowledge::new(&self.workspace.store);
        let verdict = match item {
            Item::Touched { path, hint } => self.touched(path, *hint, item)?,
            Item::Renamed { from, to } => self.renamed(from, to, item)?,
        };
        drop(guard);
        Ok(verdict.map_or(Verdict::Known, |(judged, _)| Verdict::News(Box::new(judged))))
    }

    /// Judges without a lock; busy when that cannot be trusted.
    fn hold(&mut self, item: &Item) -> Result<Verdict, Failure> {
        let verdict = match item {
            Item::Touched { path, hint } => self.touched(path, *hint, item)?,
            Item::Renamed { from, to } => self.renamed(from, to, item)?,
        };
        Ok(match verdict {
            None => Verdict::Known,
            Some((_, Trust::Pending)) => Verdict::Busy,
            Some((judged, Trust::Settled)) => Verdict::News(Box::new(judged)),
        })
    }

    fn touched(
        &mut self,
        path: &RelPath,
        hint: Hint,
        item: &Item,
    ) -> Result<Option<(Judged, Trust)>, Failure> {
        let known = self.knowledge.of(path)?;
        let Some(seen) = self.look(path)? else { return Ok(None) };
        if seen.is_absent() && known.moved_above && !self.has_parent(path)? {
            return Ok(None);
        }
        let heard = self.scopes.covers(path) || hint.came || hint.left;
        let Some((kind, before)) = news(&known, &seen.state, hint).filter(|_| heard) else { return Ok(None) };
        let change = Change { path: path.to_string(), kind, to: None, before, after: seen.state.clone() };
        let trust = Trust::of(&[&known]);
        let against = vec![(path.clone(), known.number)];
        Ok(Some((Judged { kept: kept(&seen), change, against, item: item.clone() }, trust)))
    }

    fn renamed(
        &mut self,
        from: &RelPath,
        to: &RelPath,
        item: &Item,
    ) -> Result<Option<(Judged, Trust)>, Failure> {
        let (known_from, known_to) = (self.knowledge.of(from)?, self.knowledge.of(to)?);
        let Some(seen) = self.look(to)? else { return Ok(None) };
        if seen.is_absent() || known_to.state.as_ref().is_some_and(|state| same(state, &seen.state)) {
            return Ok(None);
        }
        let before = match (&known_from.state, &seen.state) {
            (Some(state), _) if *state != State::Absent => state.clone(),
            (_, State::Directory { mode }) => State::Directory { mode: *mode },
            (_, _) => State::Unknown { size: None },
        };
        let change = Change {
            path: from.to_string(),
            kind: ChangeKind::Rename,
            to: Some(to.to_string()),
            before,
            after: seen.state.clone(),
        };
        let trust = Trust::of(&[&known_from, &known_to]);
        let against = vec![(from.clone(), known_from.number), (to.clone(), known_to.number)];
        Ok(Some((Judged { kept: kept(&seen), change, against, item: item.clone() }, trust)))
    }

    fn has_parent(&self, path: &RelPath) -> Result<bool, Failure> {
        let Some(parent) = path.parent() else { return Ok(true) };
        Ok(self.look(&parent)?.is_some_and(|seen| !seen.is_absent()))
    }

    /// What is at a place; nothing when it is the server's own, on another mount, or closed to the server.
    fn look(&self, path: &RelPath) -> Result<Option<Seen>, Failure> {
        let absent = || Ok(Some(Seen { state: State::Absent, bytes: None }));
        let plain = |state| Ok(Some(Seen { state, bytes: None }));
        let stat = match self.workspace.root.stat(path) {
            Ok(Some(stat)) => stat,
            Ok(None) => return absent(),
            Err(error) => return skipped(error.kind).map_or_else(absent, |()| Ok(None)),
        };
        match stat.file_type {
            FileType::Directory => plain(State::Directory { mode: stat.mode }),
            FileType::Link => match self.workspace.root.read_link(path) {
                Ok(target) => plain(State::Link { target: String::from_utf8_lossy(&target).into_owned() }),
                Err(error) => skipped(error.kind).map_or_else(absent, |()| Ok(None)),
            },
            FileType::File if stat.size <= HASHED_BYTES_MAX => {
                let read = self.workspace.root.open_file(path).and_then(|file| {
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
}

/// Whether a verdict holds without a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    Settled,
    /// The last entry about a place may not be true yet.
    Pending,
}

impl Trust {
    fn of(known: &[&Known]) -> Self {
        if known.iter().any(|known| known.pending) { Trust::Pending } else { Trust::Settled }
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

fn kept(seen: &Seen) -> Option<(Version, Vec<u8>)> {
    match (&seen.state, &seen.bytes) {
        (State::File { version, .. }, Some(bytes)) => Some((Version(*version), bytes.clone())),
        (_, _) => None,
    }
}

/// Whether what stands somewhere is what the journal left there.
fn same(known: &State, seen: &State) -> bool {
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
fn news(known: &Known, seen: &State, hint: Hint) -> Option<(ChangeKind, State)> {
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
