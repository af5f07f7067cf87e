//! If a file changes after a session read it, the outcome of the session's next call says so, once. Changes through
//! stead, external changes under a watch and unsaved text of editors count. The tracker reads the journal only if the
//! journal has grown. Its memory is bounded: it drops the oldest sessions and files first.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;
use stead_journal::{ChangeKind, PathState, RecordedChange};
use stead_path::RelPath;

use crate::{
    buffers::EditorBufferMetadata,
    call_options::BeforeAfterContentInclusion,
    engine::CallMetadata,
    errors::Error,
    limits,
    ops::{changed_lines::ChangedLineFinder, journal_feed::JournalCursor},
    tree::BytesToRead,
    version::Version,
    workspace::{JournalEntryOrder, JournalEntryQuery, StoredJournalEntry},
    workspace_reader::WorkspaceReader,
};

const READ_OPERATION: &str = "read";
const STALE_READ_BATCH_ENTRIES: usize = 200;

#[derive(Default)]
pub(crate) struct StaleReadNotifier {
    sessions: Mutex<SessionReadsBySessionId>,
}

#[derive(Default)]
struct SessionReadsBySessionId {
    by_id: HashMap<String, Arc<Mutex<SessionStaleReadTracker>>>,
    order: VecDeque<String>,
}

struct SessionStaleReadTracker {
    /// The journal position up to which changes were compared with the files that the session read.
    position: JournalCursor,
    change_counter: u64,
    reads: HashMap<String, LastReadFileVersion>,
    read_order: VecDeque<String>,
    /// The notices that the last outcome could not carry; a later outcome carries them.
    pending_notices: Vec<StaleReadNotice>,
}

/// A version of a file as an outcome showed it to a session.
pub(crate) struct LastReadFileVersion {
    pub(crate) version: Version,
    pub(crate) rev: String,
    pub(crate) unsaved: bool,
}

/// A file that another caller changed since the session read it. The lines are those that the change touched, as far as
/// they are known.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StaleReadNotice {
    pub path: String,
    pub from: String,
    pub to: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<[usize; 2]>,
    pub actor: String,
}

impl StaleReadNotifier {
    /// Starts to track a session before its first read, so that no change is missed.
    pub(crate) fn before_call(&self, workspace: &WorkspaceReader<'_>, operation: &str, call: &CallMetadata<'_>) {
        if operation != READ_OPERATION || !is_native_call(call) {
            return;
        }
        let name = session_key(call);
        let mut sessions = lock_ignoring_poison(&self.sessions);
        if sessions.by_id.contains_key(&name) {
            return;
        }
        let (Ok(position), Ok(change_counter)) = (JournalCursor::at_end(workspace), workspace.change_counter()) else {
            return;
        };
        if sessions.order.len() >= limits::TRACKED_SESSIONS_MAX
            && let Some(oldest) = sessions.order.pop_front()
        {
            sessions.by_id.remove(&oldest);
        }
        sessions.order.push_back(name.clone());
        let session = SessionStaleReadTracker {
            position,
            change_counter,
            reads: HashMap::new(),
            read_order: VecDeque::new(),
            pending_notices: Vec::new(),
        };
        sessions.by_id.insert(name, Arc::new(Mutex::new(session)));
    }

    /// The notices for the outcome of a call; remembers the version of the file that the outcome is about.
    pub(crate) fn after_call(
        &self,
        workspace: &WorkspaceReader<'_>,
        operation: &str,
        call: &CallMetadata<'_>,
        shown: Option<(RelPath, LastReadFileVersion)>,
    ) -> Vec<StaleReadNotice> {
        if !is_native_call(call) {
            return Vec::new();
        }
        let Some(session) = lock_ignoring_poison(&self.sessions).by_id.get(&session_key(call)).cloned() else {
            return Vec::new();
        };
        let mut session = lock_ignoring_poison(&session);
        // If the lookup of changes fails, it is repeated with the next outcome.
        let mut stale = std::mem::take(&mut session.pending_notices);
        stale.extend(session.collect_stale_reads(workspace, call).unwrap_or_default());
        let shown = shown.map(|(path, seen)| (path.to_string(), seen));
        let read = match shown {
            Some(read) if operation == READ_OPERATION => Some(read),
            Some((path, written)) => {
                session.remember_written(&path, written);
                None
            }
            None => None,
        };
        if can_carry_notices(call) {
            stale.extend(session.collect_unsaved_changes(workspace).unwrap_or_default());
        }
        if let Some((path, seen)) = read {
            stale.retain(|stale| stale.path != path);
            session.remember_read(path, seen);
        }
        stale.truncate(limits::STALE_NOTICES_MAX);
        if can_carry_notices(call) {
            return stale;
        }
        session.pending_notices = stale;
        Vec::new()
    }
}

impl SessionStaleReadTracker {
    fn remember_read(&mut self, path: String, seen: LastReadFileVersion) {
        if self.reads.insert(path.clone(), seen).is_some() {
            return;
        }
        self.read_order.push_back(path);
        if self.read_order.len() > limits::SESSION_TRACKED_FILES_MAX
            && let Some(oldest) = self.read_order.pop_front()
        {
            self.reads.remove(&oldest);
        }
    }

    /// Each file that changed since the session read it is reported once and is then no longer tracked.
    fn collect_stale_reads(
        &mut self,
        workspace: &WorkspaceReader<'_>,
        call: &CallMetadata<'_>,
    ) -> Result<Vec<StaleReadNotice>, Error> {
        let change_counter = workspace.change_counter()?;
        if change_counter == self.change_counter || self.reads.is_empty() {
            return Ok(Vec::new());
        }
        let (mut stale, mut scanned) = (Vec::new(), 0);
        let mut ranges = ChangedLineFinder::new(workspace);
        loop {
            let filter = JournalEntryQuery {
                after: Some(self.position.last_complete_entry()),
                ..JournalEntryQuery::changes(JournalEntryOrder::OldestFirst, STALE_READ_BATCH_ENTRIES)
            };
            let batch = workspace.entries(&filter)?;
            for stored in &batch {
                self.compare_with_entry(stored, call, &mut ranges, &mut stale)?;
                self.position = JournalCursor::after_entry(stored);
            }
            scanned += batch.len();
            if batch.len() < STALE_READ_BATCH_ENTRIES {
                self.change_counter = change_counter;
                return Ok(stale);
            }
            if scanned >= limits::ENTRIES_SCANNED_MAX {
                // The remaining entries are checked with the next outcome.
                return Ok(stale);
            }
        }
    }

    fn compare_with_entry(
        &mut self,
        stored: &StoredJournalEntry,
        call: &CallMetadata<'_>,
        ranges: &mut ChangedLineFinder<'_>,
        stale: &mut Vec<StaleReadNotice>,
    ) -> Result<(), Error> {
        let entry = &stored.entry;
        let is_own =
            entry.caller.principal == call.caller.principal.to_string() && entry.caller.session == call.caller.session;
        for change in &entry.changes {
            let Some(seen) = self.reads.get(&change.path) else { continue };
            let to = match read_file_status(change) {
                RecordedChangeEffectOnReadFile::HasVersion(version) if version == seen.version => continue,
                RecordedChangeEffectOnReadFile::HasVersion(version) if is_own => {
                    let rev = format!("r{}", entry.number);
                    let seen = LastReadFileVersion { version, rev, unsaved: false };
                    self.reads.insert(change.path.clone(), seen);
                    continue;
                }
                RecordedChangeEffectOnReadFile::HasVersion(_) => format!("r{}", entry.number),
                RecordedChangeEffectOnReadFile::Gone => "gone".to_owned(),
                RecordedChangeEffectOnReadFile::Unknown => "unknown".to_owned(),
                RecordedChangeEffectOnReadFile::Unchanged => continue,
            };
            let Some(seen) = self.reads.remove(&change.path) else { continue };
            self.read_order.retain(|path| *path != change.path);
            if is_own || stale.len() >= limits::STALE_NOTICES_MAX {
                continue;
            }
            stale.push(StaleReadNotice {
                path: change.path.clone(),
                from: seen.rev,
                to,
                lines: ranges.changed_ranges(change)?.unwrap_or_default(),
                actor: entry.caller.principal.clone(),
            });
        }
        Ok(())
    }

    /// Remembers the version that the session wrote to unsaved text, so that its own write is not reported.
    fn remember_written(&mut self, path: &str, written: LastReadFileVersion) {
        if written.unsaved
            && let Some(known) = self.reads.get_mut(path)
        {
            *known = written;
        }
    }

    /// The journal does not record changes in an editor as file changes, so the tracker compares the buffers.
    fn collect_unsaved_changes(&mut self, workspace: &WorkspaceReader<'_>) -> Result<Vec<StaleReadNotice>, Error> {
        if self.reads.is_empty() {
            return Ok(Vec::new());
        }
        let buffers = workspace.buffers()?;
        let open = |path: &str| buffers.iter().find(|buffer| buffer.is_open() && buffer.path.to_string() == path);
        let may_differ = |(path, seen): &(&String, &LastReadFileVersion)| seen.unsaved || open(path).is_some();
        let paths: Vec<String> = self.reads.iter().filter(may_differ).map(|(path, _)| path.clone()).collect();
        let mut stale = Vec::new();
        for path in paths {
            let buffer = open(&path);
            let Some(version) = current_version(workspace, &path, buffer) else { continue };
            let Some(seen) = self.reads.get(&path).filter(|seen| seen.version != version) else { continue };
            if stale.len() >= limits::STALE_NOTICES_MAX {
                break;
            }
            let actor = buffer.map_or_else(|| "editor".to_owned(), |buffer| buffer.owner.clone());
            let (from, to) = (seen.rev.clone(), version.short_form());
            stale.push(StaleReadNotice { path: path.clone(), from, to, lines: Vec::new(), actor });
            self.reads.remove(&path);
            self.read_order.retain(|known| *known != path);
        }
        Ok(stale)
    }
}

fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

enum RecordedChangeEffectOnReadFile {
    HasVersion(Version),
    Gone,
    Unknown,
    Unchanged,
}

fn read_file_status(change: &RecordedChange) -> RecordedChangeEffectOnReadFile {
    match (change.kind, &change.after) {
        (ChangeKind::Rename, _) => RecordedChangeEffectOnReadFile::Gone,
        (ChangeKind::Copy | ChangeKind::SetMode | ChangeKind::Rescan, _) => RecordedChangeEffectOnReadFile::Unchanged,
        (
            ChangeKind::Create | ChangeKind::Modify | ChangeKind::Remove | ChangeKind::MakeDir | ChangeKind::MakeLink,
            after,
        ) => match after {
            PathState::File { version, .. } | PathState::Tree { version: Some(version), .. } => {
                RecordedChangeEffectOnReadFile::HasVersion(Version(*version))
            }
            PathState::Absent => RecordedChangeEffectOnReadFile::Gone,
            PathState::Directory { .. }
            | PathState::Link { .. }
            | PathState::Tree { version: None, .. }
            | PathState::Unknown { .. } => RecordedChangeEffectOnReadFile::Unknown,
        },
    }
}

/// An outcome that consists of raw file content cannot carry notices.
fn can_carry_notices(call: &CallMetadata<'_>) -> bool {
    call.options.before_after == BeforeAfterContentInclusion::Omit
}

/// Only calls without a dialect are tracked, because dialects show no notices.
fn is_native_call(call: &CallMetadata<'_>) -> bool {
    call.options.tool.is_none()
}

fn session_key(call: &CallMetadata<'_>) -> String {
    format!("{}\n{}", call.caller.principal, call.caller.session)
}

fn current_version(
    workspace: &WorkspaceReader<'_>,
    path: &str,
    buffer: Option<&EditorBufferMetadata>,
) -> Option<Version> {
    let rel_path = RelPath::from_wire(path).ok()?;
    let saved = workspace.read(&rel_path, BytesToRead::VersionOnly).ok()?.version;
    Some(buffer.filter(|buffer| buffer.is_unsaved(Some(saved))).map_or(saved, |buffer| buffer.version))
}
