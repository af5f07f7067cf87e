//! Which files a session changed, what each was before, and how it became what it is. Owns the way through the journal:
//! renames are followed, what others did in between is told apart, and what nobody recorded is laid to the outside.

use std::collections::BTreeMap;

use journal::{Change, ChangeKind, Decision, Entry, State};
use path::RelPath;

use super::{Since, Whose, blame::Blame, hunk, hunk::Hunk};
use crate::{
    failure::Failure,
    limits,
    ops::text_of,
    plan::{Seen, Top},
    version::Version,
    view::View,
    workspace::{EntryFilter, Order, Stored, Want, Which},
};

/// Entries asked for at a time.
const BATCH: usize = 500;
/// Who did what nobody recorded.
const OUTSIDE: &str = "outside";

/// What stood at a place, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stood {
    Absent,
    File(Version),
    /// A directory, a link, or something that was not looked at.
    Other,
}

impl From<&State> for Stood {
    fn from(state: &State) -> Self {
        match state {
            State::Absent => Stood::Absent,
            State::File { version, .. } | State::Tree { version: Some(version), .. } => {
                Stood::File(Version(*version))
            }
            State::Directory { .. }
            | State::Link { .. }
            | State::Tree { version: None, .. }
            | State::Unknown { .. } => Stood::Other,
        }
    }
}

/// One step from one text to the next.
#[derive(Debug)]
struct Turned {
    by: String,
    before: Stood,
    after: Stood,
}

/// A file on its way through a session.
#[derive(Debug)]
struct Track {
    /// Where it was when the session first touched it.
    origin: RelPath,
    baseline: Stood,
    turns: Vec<Turned>,
    /// Where in the trash it is, if the session removed it last.
    trash: Option<String>,
}

/// What a file is now.
pub(super) struct Now {
    pub(super) seen: Seen,
    pub(super) bytes: Vec<u8>,
}

/// A file that a session changed, as it was and as it is.
pub(super) struct Tracked {
    pub(super) path: RelPath,
    /// Where it was, if it was moved.
    pub(super) moved_from: Option<RelPath>,
    /// The text before; nothing when there was no file.
    pub(super) before: Option<String>,
    /// What is there; nothing when no file is.
    pub(super) now: Option<Now>,
    /// Both as text with their hunks; nothing when one of them is no text or no longer kept.
    pub(super) text: Option<(Blame, Vec<Hunk>)>,
    /// Where in the trash it is, if the session removed it last.
    pub(super) trash: Option<String>,
    /// Everybody who changed it since.
    pub(super) actors: Vec<String>,
}

/// What a session changed.
pub(super) struct Work {
    pub(super) files: Vec<Tracked>,
    /// Whether not all of the journal was looked through.
    pub(super) truncated: bool,
}

/// Finds what a session changed and nobody has kept yet.
pub(super) fn find(
    view: &View<'_>,
    whose: &Whose,
    since: Since,
    only: Option<&RelPath>,
) -> Result<Work, Failure> {
    let after = match since {
        Since::Session => 0,
        Since::Turn => last_turn(view, whose)?,
    };
    let (tracks, truncated) = tracks(view, whose, after)?;
    let kept: BTreeMap<RelPath, Option<Vec<u8>>> = match since {
        Since::Session => {
            let reviewed = view.workspace().reviewed(&whose.principal, &whose.session)?;
            reviewed.into_iter().map(|kept| (kept.path, kept.text)).collect()
        }
        // A turn is taken back whatever was kept of it.
        Since::Turn => BTreeMap::new(),
    };
    let mut files = Vec::new();
    for (path, track) in tracks {
        view.control.check()?;
        if view.may_read(&path)
            && only.is_none_or(|only| path.is_within(only))
            && let Some(tracked) = tracked(view, path, &track, &kept)?
        {
            files.push(tracked);
        }
    }
    Ok(Work { files, truncated })
}

/// The entry that began the last turn of a session; zero when none did.
fn last_turn(view: &View<'_>, whose: &Whose) -> Result<u64, Failure> {
    let filter = EntryFilter {
        principal: Some(whose.principal.clone()),
        operation: Some("turn".to_owned()),
        order: Order::NewestFirst,
        limit: limits::ENTRIES_SCANNED_MAX,
        ..EntryFilter::default()
    };
    let entries = view.workspace().entries(&filter)?;
    // One that was refused, or could not be recorded as it was meant, began nothing.
    let own = entries.iter().find(|stored| {
        stored.entry.decision == Decision::Allowed && stored.entry.caller.session == whose.session
    });
    Ok(own.map_or(0, |stored| stored.entry.number))
}

/// Goes through the journal from a session's first change on.
fn tracks(view: &View<'_>, whose: &Whose, after: u64) -> Result<(BTreeMap<RelPath, Track>, bool), Failure> {
    let own =
        |entry: &Entry| entry.caller.principal == whose.principal && entry.caller.session == whose.session;
    let page = |principal: Option<&str>, after: u64| -> Result<Vec<Stored>, Failure> {
        view.control.check()?;
        view.workspace().entries(&EntryFilter {
            principal: principal.map(str::to_owned),
            after: Some(after),
            what: Which::Changes,
            order: Order::OldestFirst,
            limit: BATCH,
            ..EntryFilter::default()
        })
    };
    // The first one first: what came before it is of no concern.
    let mut start = after;
    let first = loop {
        let entries = page(Some(&whose.principal), start)?;
        if let Some(first) = entries.iter().find(|stored| own(&stored.entry)) {
            break first.entry.number;
        }
        match entries.last() {
            Some(last) if entries.len() == BATCH => start = last.entry.number,
            Some(_) | None => return Ok((BTreeMap::new(), false)),
        }
    };
    let (mut tracks, mut position, mut scanned) = (BTreeMap::new(), first - 1, 0);
    loop {
        let entries = page(None, position)?;
        for stored in &entries {
            for change in &stored.entry.changes {
                follow(&mut tracks, &stored.entry.caller.principal, change, own(&stored.entry))?;
            }
            position = stored.entry.number;
        }
        scanned += entries.len();
        if entries.len() < BATCH {
            return Ok((tracks, false));
        }
        if scanned >= limits::ENTRIES_SCANNED_MAX {
            return Ok((tracks, true));
        }
    }
}

/// Takes one change into account.
fn follow(
    tracks: &mut BTreeMap<RelPath, Track>,
    by: &str,
    change: &Change,
    own: bool,
) -> Result<(), Failure> {
    let path = RelPath::from_wire(&change.path)?;
    let to = change.to.as_deref().map(RelPath::from_wire).transpose()?;
    let is_file = matches!(change.before, State::File { .. } | State::Absent)
        || matches!(change.before, State::Tree { version: Some(_), .. });
    match (change.kind, to) {
        (ChangeKind::MakeDir | ChangeKind::SetMode | ChangeKind::Rescan, _) => {}
        (ChangeKind::Rename, Some(to)) => {
            if own && is_file {
                touched(tracks, &path, (&change.before).into());
            }
            let below: Vec<RelPath> = tracks.keys().filter(|known| known.is_within(&path)).cloned().collect();
            for known in below {
                if let (Some(rest), Some(track)) = (known.below(&path), tracks.remove(&known)) {
                    tracks.insert(to.append(&rest)?, track);
                }
            }
        }
        (ChangeKind::Copy, Some(to)) => {
            if own {
                touched(tracks, &to, Stood::Absent);
            }
            turn(tracks, &to, by, Stood::Absent, (&change.after).into());
        }
        (_, _) => {
            if own && is_file {
                touched(tracks, &path, (&change.before).into());
            }
            if change.kind == ChangeKind::Remove {
                let below: Vec<RelPath> =
                    tracks.keys().filter(|known| known.is_within(&path)).cloned().collect();
                for known in below {
                    turn(tracks, &known, by, Stood::Other, Stood::Absent);
                }
                if let Some(track) = tracks.get_mut(&path) {
                    track.trash = in_trash(&change.before).filter(|_| own);
                }
            } else {
                turn(tracks, &path, by, (&change.before).into(), (&change.after).into());
            }
        }
    }
    Ok(())
}

/// Where a removed thing went.
fn in_trash(state: &State) -> Option<String> {
    match state {
        State::Tree { trash, .. } => trash.clone(),
        State::Absent
        | State::File { .. }
        | State::Directory { .. }
        | State::Link { .. }
        | State::Unknown { .. } => None,
    }
}

fn touched(tracks: &mut BTreeMap<RelPath, Track>, path: &RelPath, baseline: Stood) {
    let fresh = || Track { origin: path.clone(), baseline, turns: Vec::new(), trash: None };
    tracks.entry(path.clone()).or_insert_with(fresh);
}

fn turn(tracks: &mut BTreeMap<RelPath, Track>, path: &RelPath, by: &str, before: Stood, after: Stood) {
    if let Some(track) = tracks.get_mut(path) {
        track.turns.push(Turned { by: by.to_owned(), before, after });
    }
}

/// A file as it was and as it is; nothing when the two are the same.
fn tracked(
    view: &View<'_>,
    path: RelPath,
    track: &Track,
    kept: &BTreeMap<RelPath, Option<Vec<u8>>>,
) -> Result<Option<Tracked>, Failure> {
    let now = now(view, &path)?;
    let start = match (&track.baseline, &now) {
        // It was only moved, or is again what it was.
        (Stood::File(version), Some(now)) if now.seen.version == *version => Some(Some(now.bytes.clone())),
        (baseline, _) => bytes_of(view, baseline)?,
    };
    let before = match kept.get(&path) {
        Some(kept) => Some(kept.clone()),
        None => start.clone(),
    };
    let moved_from = (track.origin != path).then(|| track.origin.clone());
    let same = before.as_ref().is_some_and(|before| before.as_deref() == now.as_ref().map(|now| &*now.bytes));
    if same && moved_from.is_none() {
        return Ok(None);
    }
    let as_text = |bytes: Option<&[u8]>| match bytes {
        None => Some(String::new()),
        Some(bytes) => text_of(bytes).map(std::borrow::Cow::into_owned),
    };
    let known = before.as_ref().and_then(|before| as_text(before.as_deref()));
    let current = as_text(now.as_ref().map(|now| &*now.bytes));
    let text = match (&known, &current, start.as_ref().and_then(|start| as_text(start.as_deref()))) {
        (Some(before), Some(current), Some(start)) => {
            let blame = blamed(view, &path, track, &start, current)?;
            let hunks = hunk::between(before, &blame);
            Some((blame, hunks))
        }
        (_, _, _) => None,
    };
    let mut actors: Vec<String> = track.turns.iter().map(|turned| turned.by.clone()).collect();
    // Whoever typed, or changed it outside, is in no entry.
    actors.extend(text.iter().flat_map(|(_, hunks)| hunks).flat_map(|hunk| hunk.by.iter().cloned()));
    actors.sort();
    actors.dedup();
    let before = before.flatten().and_then(|bytes| as_text(Some(&bytes)));
    let trash = track.trash.clone().filter(|_| now.is_none());
    Ok(Some(Tracked { path, moved_from, before, now, text, trash, actors }))
}

/// What is there now: the text of an editor, or the file.
fn now(view: &View<'_>, path: &RelPath) -> Result<Option<Now>, Failure> {
    let node = view.workspace().stat(path)?.filter(|node| node.top == Top::File);
    if node.is_none_or(|node| node.size > limits::DIFF_BYTES_MAX) {
        return Ok(None);
    }
    let file = view.read(path, Want::Whole { limit_bytes: limits::DIFF_BYTES_MAX })?;
    let seen = Seen { version: file.version, stamp: file.node.stamp };
    Ok(Some(Now { seen, bytes: file.bytes }))
}

/// The bytes of what stood there: outer nothing when they are not known, inner nothing when no file stood there.
#[expect(clippy::option_option, reason = "not known and not there are two things")]
fn bytes_of(view: &View<'_>, stood: &Stood) -> Result<Option<Option<Vec<u8>>>, Failure> {
    match stood {
        Stood::Absent => Ok(Some(None)),
        Stood::File(version) => Ok(view.workspace().kept(version)?.map(Some)),
        Stood::Other => Ok(None),
    }
}

/// Who wrote which line of the text as it is.
fn blamed(
    view: &View<'_>,
    path: &RelPath,
    track: &Track,
    start: &str,
    current: &str,
) -> Result<Blame, Failure> {
    let mut blame = Blame::new(start);
    let mut last = track.baseline.clone();
    let step = |blame: &mut Blame, stood: &Stood, by: &str| -> Result<(), Failure> {
        // A text in between that is no longer kept leaves its lines to whoever comes next.
        if let Some(bytes) = bytes_of(view, stood)?
            && let Some(text) =
                bytes.map_or_else(|| Some(String::new()), |bytes| text_of(&bytes).map(Into::into))
        {
            blame.becomes(&text, by);
        }
        Ok(())
    };
    for turned in track.turns.iter().rev().take(limits::REVIEW_TURNS_MAX).rev() {
        if turned.before != last && turned.before != Stood::Other {
            step(&mut blame, &turned.before, OUTSIDE)?;
        }
        step(&mut blame, &turned.after, &turned.by)?;
        last = turned.after.clone();
    }
    if let Some(unsaved) = view.unsaved(path)? {
        if last != Stood::File(unsaved.saved.version) {
            let want = Want::Whole { limit_bytes: limits::DIFF_BYTES_MAX };
            let file = view.workspace().read(path, want)?;
            if let Some(text) = text_of(&file.bytes) {
                blame.becomes(&text, OUTSIDE);
            }
        }
        blame.becomes(current, &unsaved.buffer.owner);
    } else {
        blame.becomes(current, OUTSIDE);
    }
    Ok(blame)
}
