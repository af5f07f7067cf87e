//! Finds the files that a session changed, the content of each file before the session, and all later changes of the
//! file. Renames of a file are followed through the journal. Unrecorded changes have the author `outside`.

use std::collections::BTreeMap;

use stead_journal::{ChangeKind, JournalEntry, JournaledCallOutcomeStatus, PathState, RecordedChange};
use stead_path::RelPath;

use super::{
    ReviewedSessionKey, SessionOrTurnStart,
    attribution::{self, EXTERNAL_AUTHOR, ReviewHunk, ReviewLineAuthorTracker},
};
use crate::{
    call_context::CallContext,
    errors::Error,
    limits,
    ops::decode_diff_text,
    plan::{FileKind, PlanTimeFileVersion},
    tree::BytesToRead,
    version::Version,
    workspace::{JournalEntryOrder, JournalEntryQuery, StoredJournalEntry},
};

const TRACKING_BATCH_ENTRIES: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
enum JournaledFileState {
    Absent,
    File(Version),
    /// The journal records a directory, a link or an unknown state for the path.
    Other,
}

impl From<&PathState> for JournaledFileState {
    fn from(state: &PathState) -> Self {
        match state {
            PathState::Absent => JournaledFileState::Absent,
            PathState::File { version, .. } | PathState::Tree { version: Some(version), .. } => {
                JournaledFileState::File(Version(*version))
            }
            PathState::Directory { .. }
            | PathState::Link { .. }
            | PathState::Tree { version: None, .. }
            | PathState::Unknown { .. } => JournaledFileState::Other,
        }
    }
}

#[derive(Debug)]
struct AuthoredChange {
    author: String,
    before: JournaledFileState,
    after: JournaledFileState,
}

#[derive(Debug)]
struct SessionChangedFileHistory {
    origin: RelPath,
    baseline: JournaledFileState,
    changes: Vec<AuthoredChange>,
    /// The trash id of the file, if the reviewed session removed the file last.
    trash_id: Option<String>,
}

pub(super) struct ReviewedFileCurrentContent {
    pub(super) observed: PlanTimeFileVersion,
    pub(super) bytes: Vec<u8>,
}

pub(super) struct ReviewedFile {
    pub(super) path: RelPath,
    pub(super) moved_from: Option<RelPath>,
    pub(super) before: Option<String>,
    /// The file's current content; `None` if the file is missing or too large to compare.
    pub(super) current: Option<ReviewedFileCurrentContent>,
    /// The line authors and hunks of the file; `None` if a version of the file is not text or no longer stored.
    pub(super) blame_and_hunks: Option<(ReviewLineAuthorTracker, Vec<ReviewHunk>)>,
    pub(super) trash_id: Option<String>,
    /// All principals that changed the file since the reviewed session first changed it.
    pub(super) actors: Vec<String>,
}

pub(super) struct SessionChanges {
    pub(super) files: Vec<ReviewedFile>,
    /// Whether the journal scan stopped at its limit, so that changes of the session may be missing.
    pub(super) truncated: bool,
}

pub(super) fn find_session_changes(
    context: &CallContext<'_>,
    session: &ReviewedSessionKey,
    since: SessionOrTurnStart,
    only: Option<&RelPath>,
) -> Result<SessionChanges, Error> {
    let after = match since {
        SessionOrTurnStart::Session => 0,
        SessionOrTurnStart::Turn => last_turn_entry(context, session)?,
    };
    let (tracks, truncated) = collect_tracks(context, session, after)?;
    let accepted: BTreeMap<RelPath, Option<Vec<u8>>> = match since {
        SessionOrTurnStart::Session => {
            let reviewed = context.workspace().review_baselines(&session.principal, &session.session)?;
            reviewed.into_iter().map(|baseline| (baseline.path, baseline.text)).collect()
        }
        // The review of a turn also shows accepted changes.
        SessionOrTurnStart::Turn => BTreeMap::new(),
    };
    let mut files = Vec::new();
    for (path, track) in tracks {
        context.control.check()?;
        if context.may_read(&path)
            && only.is_none_or(|only| path.is_within(only))
            && let Some(tracked) = reviewed_file(context, path, &track, &accepted)?
        {
            files.push(tracked);
        }
    }
    Ok(SessionChanges { files, truncated })
}

/// The number of the journal entry that started the session's last turn; 0 if the session has no turn.
fn last_turn_entry(context: &CallContext<'_>, session: &ReviewedSessionKey) -> Result<u64, Error> {
    let filter = JournalEntryQuery {
        principal: Some(session.principal.clone()),
        operation: Some("turn".to_owned()),
        order: JournalEntryOrder::NewestFirst,
        limit: limits::ENTRIES_SCANNED_MAX,
        ..JournalEntryQuery::default()
    };
    let entries = context.workspace().entries(&filter)?;
    // A `turn` call that was refused or failed starts no turn.
    let started = entries.iter().find(|stored| {
        stored.entry.decision == JournaledCallOutcomeStatus::Allowed && stored.entry.caller.session == session.session
    });
    Ok(started.map_or(0, |stored| stored.entry.number))
}

/// Collects all changes since the session's first change after entry `after`, and whether the scan reached its limit.
fn collect_tracks(
    context: &CallContext<'_>,
    session: &ReviewedSessionKey,
    after: u64,
) -> Result<(BTreeMap<RelPath, SessionChangedFileHistory>, bool), Error> {
    let is_own =
        |entry: &JournalEntry| entry.caller.principal == session.principal && entry.caller.session == session.session;
    let page = |principal: Option<&str>, after: u64| -> Result<Vec<StoredJournalEntry>, Error> {
        context.control.check()?;
        context.workspace().entries(&JournalEntryQuery {
            principal: principal.map(str::to_owned),
            after: Some(after),
            ..JournalEntryQuery::changes(JournalEntryOrder::OldestFirst, TRACKING_BATCH_ENTRIES)
        })
    };
    // Changes before the first change of the session are not part of the review.
    let mut start = after;
    let first = loop {
        let entries = page(Some(&session.principal), start)?;
        if let Some(first) = entries.iter().find(|stored| is_own(&stored.entry)) {
            break first.entry.number;
        }
        match entries.last() {
            Some(last) if entries.len() == TRACKING_BATCH_ENTRIES => start = last.entry.number,
            Some(_) | None => return Ok((BTreeMap::new(), false)),
        }
    };
    let (mut tracks, mut position, mut scanned) = (BTreeMap::new(), first - 1, 0);
    loop {
        let entries = page(None, position)?;
        for stored in &entries {
            for change in &stored.entry.changes {
                track_change(&mut tracks, &stored.entry.caller.principal, change, is_own(&stored.entry))?;
            }
            position = stored.entry.number;
        }
        scanned += entries.len();
        if entries.len() < TRACKING_BATCH_ENTRIES {
            return Ok((tracks, false));
        }
        if scanned >= limits::ENTRIES_SCANNED_MAX {
            return Ok((tracks, true));
        }
    }
}

/// Adds a change to the history of its file; only a change by the session (`own`) starts a history.
fn track_change(
    tracks: &mut BTreeMap<RelPath, SessionChangedFileHistory>,
    author: &str,
    change: &RecordedChange,
    own: bool,
) -> Result<(), Error> {
    let path = RelPath::from_wire(&change.path)?;
    let to = change.to.as_deref().map(RelPath::from_wire).transpose()?;
    let is_file = matches!(change.before, PathState::File { .. } | PathState::Absent)
        || matches!(change.before, PathState::Tree { version: Some(_), .. });
    match (change.kind, to) {
        (ChangeKind::MakeDir | ChangeKind::SetMode | ChangeKind::Rescan, _) => {}
        (ChangeKind::Rename, Some(to)) => {
            if own && is_file {
                ensure_track(tracks, &path, (&change.before).into());
            }
            let below: Vec<RelPath> = tracks.keys().filter(|known| known.is_within(&path)).cloned().collect();
            for known in below {
                if let (Some(rest), Some(track)) = (known.strip_prefix(&path), tracks.remove(&known)) {
                    tracks.insert(to.append(&rest)?, track);
                }
            }
        }
        (ChangeKind::Copy, Some(to)) => {
            if own {
                ensure_track(tracks, &to, JournaledFileState::Absent);
            }
            add_change(tracks, &to, author, JournaledFileState::Absent, (&change.after).into());
        }
        (_, _) => {
            if own && is_file {
                ensure_track(tracks, &path, (&change.before).into());
            }
            if change.kind == ChangeKind::Remove {
                let below: Vec<RelPath> = tracks.keys().filter(|known| known.is_within(&path)).cloned().collect();
                for known in below {
                    add_change(tracks, &known, author, JournaledFileState::Other, JournaledFileState::Absent);
                }
                if let Some(track) = tracks.get_mut(&path) {
                    track.trash_id = trash_id(&change.before).filter(|_| own);
                }
            } else {
                add_change(tracks, &path, author, (&change.before).into(), (&change.after).into());
            }
        }
    }
    Ok(())
}

fn trash_id(state: &PathState) -> Option<String> {
    if let PathState::Tree { trash, .. } = state { trash.clone() } else { None }
}

fn ensure_track(
    tracks: &mut BTreeMap<RelPath, SessionChangedFileHistory>,
    path: &RelPath,
    baseline: JournaledFileState,
) {
    let new_track =
        || SessionChangedFileHistory { origin: path.clone(), baseline, changes: Vec::new(), trash_id: None };
    tracks.entry(path.clone()).or_insert_with(new_track);
}

fn add_change(
    tracks: &mut BTreeMap<RelPath, SessionChangedFileHistory>,
    path: &RelPath,
    author: &str,
    before: JournaledFileState,
    after: JournaledFileState,
) {
    if let Some(track) = tracks.get_mut(path) {
        track.changes.push(AuthoredChange { author: author.to_owned(), before, after });
    }
}

fn reviewed_file(
    context: &CallContext<'_>,
    path: RelPath,
    track: &SessionChangedFileHistory,
    accepted: &BTreeMap<RelPath, Option<Vec<u8>>>,
) -> Result<Option<ReviewedFile>, Error> {
    let current = current_content(context, &path)?;
    let start = match (&track.baseline, &current) {
        // The file was only moved, or its current content equals its content before the session.
        (JournaledFileState::File(version), Some(now)) if now.observed.version == *version => {
            Some(Some(now.bytes.clone()))
        }
        (baseline, _) => state_bytes(context, &path, baseline)?,
    };
    let before = match accepted.get(&path) {
        Some(accepted) => Some(accepted.clone()),
        None => start.clone(),
    };
    let moved_from = (track.origin != path).then(|| track.origin.clone());
    let same = before.as_ref().is_some_and(|before| before.as_deref() == current.as_ref().map(|now| &*now.bytes));
    if same && moved_from.is_none() {
        return Ok(None);
    }
    let as_text = |bytes: Option<&[u8]>| match bytes {
        None => Some(String::new()),
        Some(bytes) => decode_diff_text(bytes).map(std::borrow::Cow::into_owned),
    };
    let before_text = before.as_ref().and_then(|before| as_text(before.as_deref()));
    let current_text = as_text(current.as_ref().map(|now| &*now.bytes));
    let blame_and_hunks =
        match (&before_text, &current_text, start.as_ref().and_then(|start| as_text(start.as_deref()))) {
            (Some(before), Some(current), Some(start)) => {
                let blame = compute_blame(context, &path, track, &start, current)?;
                let hunks = attribution::diff_hunks(before, &blame);
                Some((blame, hunks))
            }
            (_, _, _) => None,
        };
    let mut actors: Vec<String> = track.changes.iter().map(|change| change.author.clone()).collect();
    // Unsaved and external changes have no journal entry, so their authors come from the hunks.
    actors.extend(blame_and_hunks.iter().flat_map(|(_, hunks)| hunks).flat_map(|hunk| hunk.authors.iter().cloned()));
    actors.sort();
    actors.dedup();
    let before = before.flatten().and_then(|bytes| as_text(Some(&bytes)));
    let trash_id = track.trash_id.clone().filter(|_| current.is_none());
    Ok(Some(ReviewedFile { path, moved_from, before, current, blame_and_hunks, trash_id, actors }))
}

fn current_content(context: &CallContext<'_>, path: &RelPath) -> Result<Option<ReviewedFileCurrentContent>, Error> {
    let stat = context.workspace().stat(path)?.filter(|stat| stat.kind == FileKind::File);
    if stat.is_none_or(|stat| stat.size > limits::DIFF_BYTES_MAX) {
        return Ok(None);
    }
    let file = context.read(path, BytesToRead::Whole { limit_bytes: limits::DIFF_BYTES_MAX })?;
    let observed = file.observed();
    Ok(Some(ReviewedFileCurrentContent { observed, bytes: file.bytes }))
}

/// Returns the stored content of a file: `None` if unknown, `Some(None)` if the file did not exist.
#[expect(clippy::option_option, reason = "unknown content and no file are different results")]
fn state_bytes(
    context: &CallContext<'_>,
    path: &RelPath,
    state: &JournaledFileState,
) -> Result<Option<Option<Vec<u8>>>, Error> {
    match state {
        JournaledFileState::Absent => Ok(Some(None)),
        JournaledFileState::File(version) => Ok(context.workspace().retained_bytes(path, version)?.map(Some)),
        JournaledFileState::Other => Ok(None),
    }
}

fn compute_blame(
    context: &CallContext<'_>,
    path: &RelPath,
    track: &SessionChangedFileHistory,
    start: &str,
    current: &str,
) -> Result<ReviewLineAuthorTracker, Error> {
    let mut blame = ReviewLineAuthorTracker::new(start);
    let mut last = track.baseline.clone();
    let step = |blame: &mut ReviewLineAuthorTracker, state: &JournaledFileState, author: &str| -> Result<(), Error> {
        // Lines changed by a version that is no longer stored are attributed to the author of the next stored version.
        if let Some(bytes) = state_bytes(context, path, state)?
            && let Some(text) =
                bytes.map_or_else(|| Some(String::new()), |bytes| decode_diff_text(&bytes).map(Into::into))
        {
            blame.apply_change(&text, author);
        }
        Ok(())
    };
    for change in track.changes.iter().rev().take(limits::REVIEW_BLAME_CHANGES_MAX).rev() {
        if change.before != last && change.before != JournaledFileState::Other {
            step(&mut blame, &change.before, EXTERNAL_AUTHOR)?;
        }
        step(&mut blame, &change.after, &change.author)?;
        last = change.after.clone();
    }
    if let Some(unsaved) = context.unsaved_file(path)? {
        if last != JournaledFileState::File(unsaved.saved_version.version) {
            let extent = BytesToRead::Whole { limit_bytes: limits::DIFF_BYTES_MAX };
            let file = context.workspace().read(path, extent)?;
            if let Some(text) = decode_diff_text(&file.bytes) {
                blame.apply_change(&text, EXTERNAL_AUTHOR);
            }
        }
        blame.apply_change(current, &unsaved.buffer.owner);
    } else {
        blame.apply_change(current, EXTERNAL_AUTHOR);
    }
    Ok(blame)
}
