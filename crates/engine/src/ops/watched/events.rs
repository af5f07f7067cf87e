//! Turns one recorded change into the events of one watch. A watch event never contains file content or a path that the
//! caller may not read. A directory created or removed with its content causes one watch event, even if the pattern
//! does not match the directory. If a parent directory of the watched path is removed, moved or restored, the watch
//! event names the watched path.

use std::cell::OnceCell;

use serde::Serialize;
use stead_journal::{ChangeKind, PathState, RecordedChange};
use stead_path::RelPath;

use crate::{
    call_context::CallContext,
    errors::Error,
    glob::GlobPatternSet,
    outcome::{FileVersionFields, UtcTime},
    version::Version,
    watches::{Watch, WatchDepth, WatchEventKind},
    workspace::StoredJournalEntry,
};

pub(crate) struct WatchMatcher<'a> {
    watch: &'a Watch,
    globs: OnceCell<Option<GlobPatternSet>>,
}

/// An event that a watch reports.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WatchEventRow {
    pub watch: String,
    pub event: WatchEventKind,
    pub path: RelPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_path: Option<RelPath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Version>,
    #[serde(flatten)]
    pub version: Option<FileVersionFields>,
    /// The first and the last line of each changed range; `None` if the changed lines are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<[usize; 2]>>,
    pub actor: String,
    pub session: String,
    pub operation: String,
    pub time: UtcTime,
    pub entry: u64,
}

impl<'a> WatchMatcher<'a> {
    pub(crate) fn new(watch: &'a Watch) -> Self {
        Self { watch, globs: OnceCell::new() }
    }

    pub(crate) fn collect_events(
        &self,
        context: &CallContext<'_>,
        stored: &StoredJournalEntry,
        change: &RecordedChange,
        events: &mut Vec<WatchEventRow>,
    ) -> Result<(), Error> {
        if stored.entry.number <= self.watch.started_at_entry {
            return Ok(());
        }
        let path = RelPath::from_wire(&change.path)?;
        let to = change.to.as_deref().map(RelPath::from_wire).transpose()?;
        for (event_kind, path, new_path) in self.classify(context, change, path, to) {
            let entry = &stored.entry;
            let after = version_of_state(&change.after).filter(|_| event_kind != WatchEventKind::Delete);
            events.push(WatchEventRow {
                watch: self.watch.id.clone(),
                event: event_kind,
                path,
                new_path,
                before: version_of_state(&change.before),
                version: after.map(|version| FileVersionFields::new(version, format!("r{}", entry.number))),
                lines: None,
                actor: entry.caller.principal.clone(),
                session: entry.caller.session.clone(),
                operation: entry.operation.clone(),
                time: UtcTime { unix_ms: entry.time_ms },
                entry: entry.number,
            });
        }
        Ok(())
    }

    fn classify(
        &self,
        context: &CallContext<'_>,
        change: &RecordedChange,
        path: RelPath,
        to: Option<RelPath>,
    ) -> Vec<(WatchEventKind, RelPath, Option<RelPath>)> {
        let extent = change_extent(change);
        let here = self.covers(context, &path, extent);
        let one = |event_kind: WatchEventKind, path: RelPath| {
            if self.watch.includes_kind(event_kind) { vec![(event_kind, path, None)] } else { Vec::new() }
        };
        match (change.kind, to) {
            (ChangeKind::Rename, Some(to)) => match (here, self.covers(context, &to, extent)) {
                (true, true) if self.watch.includes_kind(WatchEventKind::Rename) => {
                    vec![(WatchEventKind::Rename, path, Some(to))]
                }
                (true, true) => {
                    let mut both = one(WatchEventKind::Delete, path);
                    both.append(&mut one(WatchEventKind::Create, to));
                    both
                }
                (true, false) => one(WatchEventKind::Delete, path),
                (false, true) if !self.matches_path(&to) => one(WatchEventKind::Rescan, to),
                (false, true) => one(WatchEventKind::Create, to),
                (false, false) if self.is_below(context, &path) => one(WatchEventKind::Delete, self.watch.path.clone()),
                (false, false) if self.is_below(context, &to) => one(WatchEventKind::Rescan, self.watch.path.clone()),
                (false, false) => Vec::new(),
            },
            (ChangeKind::Copy, Some(to)) if self.covers(context, &to, extent) => {
                one(if self.matches_path(&to) { WatchEventKind::Create } else { WatchEventKind::Rescan }, to)
            }
            (ChangeKind::Copy, _) => Vec::new(),
            (ChangeKind::Rescan, _) if self.watch.covers_path(&path) && context.may_traverse(&path) => {
                one(WatchEventKind::Rescan, path)
            }
            (ChangeKind::Rescan, _) if self.is_below(context, &path) => {
                one(WatchEventKind::Rescan, self.watch.path.clone())
            }
            (ChangeKind::Remove, _) if here => one(WatchEventKind::Delete, path),
            (ChangeKind::Remove, _) if self.is_below(context, &path) => {
                one(WatchEventKind::Delete, self.watch.path.clone())
            }
            (ChangeKind::Create | ChangeKind::MakeDir | ChangeKind::MakeLink, _) if here => {
                one(if self.matches_path(&path) { WatchEventKind::Create } else { WatchEventKind::Rescan }, path)
            }
            // A tree that contains the watched path was restored.
            (ChangeKind::Create, _)
                if self.is_below(context, &path) && matches!(change.after, PathState::Tree { .. }) =>
            {
                one(WatchEventKind::Rescan, self.watch.path.clone())
            }
            (ChangeKind::Modify | ChangeKind::SetMode, _) if here => one(WatchEventKind::Modify, path),
            (
                ChangeKind::Create
                | ChangeKind::Modify
                | ChangeKind::Remove
                | ChangeKind::Rename
                | ChangeKind::MakeDir
                | ChangeKind::MakeLink
                | ChangeKind::SetMode
                | ChangeKind::Rescan,
                _,
            ) => Vec::new(),
        }
    }

    /// Whether the directory `above` contains the watched path, and the caller may read the watched path.
    fn is_below(&self, context: &CallContext<'_>, above: &RelPath) -> bool {
        self.watch.path != *above && self.watch.path.is_within(above) && context.may_read(&self.watch.path)
    }

    /// Whether the watch reports a change; a changed tree is reported even if its path does not match the pattern.
    fn covers(&self, context: &CallContext<'_>, path: &RelPath, extent: RecordedChangeExtent) -> bool {
        let deep = extent == RecordedChangeExtent::WholeTree && self.watch.depth == WatchDepth::Deep;
        self.watch.covers_path(path) && context.may_read(path) && (deep || self.matches_path(path))
    }

    fn matches_path(&self, path: &RelPath) -> bool {
        let compile = || self.watch.glob.as_deref().and_then(|glob| GlobPatternSet::from_name_patterns([glob]).ok());
        match (self.globs.get_or_init(compile), path.strip_prefix(&self.watch.path)) {
            (Some(globs), Some(below)) => below.is_root() || globs.matches(&below),
            (None, Some(_)) => true,
            (_, None) => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordedChangeExtent {
    EntryOnly,
    WholeTree,
}

fn change_extent(change: &RecordedChange) -> RecordedChangeExtent {
    let tree = |state: &PathState| matches!(state, PathState::Tree { version: None, .. });
    let directory = |state: &PathState| tree(state) || matches!(state, PathState::Directory { .. });
    let whole = match change.kind {
        ChangeKind::Rename | ChangeKind::Copy => directory(&change.before) || directory(&change.after),
        ChangeKind::Remove => directory(&change.before),
        ChangeKind::Create => tree(&change.after),
        ChangeKind::Modify | ChangeKind::MakeDir | ChangeKind::MakeLink | ChangeKind::SetMode | ChangeKind::Rescan => {
            false
        }
    };
    if whole { RecordedChangeExtent::WholeTree } else { RecordedChangeExtent::EntryOnly }
}

fn version_of_state(state: &PathState) -> Option<Version> {
    match state {
        PathState::File { version, .. } | PathState::Tree { version: Some(version), .. } => Some(Version(*version)),
        PathState::Absent
        | PathState::Directory { .. }
        | PathState::Link { .. }
        | PathState::Tree { version: None, .. }
        | PathState::Unknown { .. } => None,
    }
}
