//! Collects file system events in memory until they are recorded.
//!
//! A touched path is a path with an event that is not a move. The moves of a batch are recorded first and in order; the
//! touched paths follow, under their last names. A reader who applies the recorded changes of a batch in order gets the
//! state of every path after the batch.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use stead_disk::fs_events::FsEventFileType;
use stead_path::RelPath;

/// The longest time to wait until a program closes a file that it is writing.
pub(crate) const WRITER_CLOSE_WAIT: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathEventSummary {
    /// Whether the first event of the path was the creation of the path.
    pub(crate) created: bool,
    /// Whether the path was created, was the target of a move, or was found in a new directory.
    pub(crate) appeared: bool,
    pub(crate) disappeared: bool,
    pub(crate) content_changed: bool,
    pub(crate) writer_closed: bool,
    /// Whether the path can be examined at once, because no further event of the path is expected.
    pub(crate) complete: bool,
    /// Whether a file that clients may have seen before was moved to the path or into the directory at the path.
    pub(crate) moved_in: bool,
}

impl PathEventSummary {
    pub(crate) const APPEARED: PathEventSummary =
        PathEventSummary { appeared: true, content_changed: true, complete: true, ..PathEventSummary::NO_HINTS };
    pub(crate) const DISAPPEARED: PathEventSummary =
        PathEventSummary { disappeared: true, ..PathEventSummary::NO_HINTS };
    pub(crate) const NO_HINTS: PathEventSummary = PathEventSummary {
        created: false,
        appeared: false,
        disappeared: false,
        content_changed: false,
        writer_closed: false,
        complete: false,
        moved_in: false,
    };

    fn is_settled(self) -> bool {
        self.writer_closed || self.disappeared || self.complete || !(self.content_changed || self.created)
    }

    /// Marks a path as appeared and disappeared, so that every difference between disk and journal is reported.
    pub(crate) fn force_report(&mut self) {
        self.merge(PathEventSummary::APPEARED);
        self.merge(PathEventSummary::DISAPPEARED);
        self.created = false;
    }

    /// Merging later events keeps the field `created`, which describes the first event of a path.
    fn merge(&mut self, later: PathEventSummary) {
        self.appeared |= later.appeared;
        self.disappeared |= later.disappeared;
        self.content_changed |= later.content_changed;
        self.writer_closed |= later.writer_closed;
        self.complete |= later.complete;
        self.moved_in |= later.moved_in;
    }
}

/// An observed rename, or an observed move out of the watched directory tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExternalMove {
    pub(crate) from: RelPath,
    /// The new path of the moved file; `None` if the file left the watched directory tree.
    pub(crate) to: Option<RelPath>,
    pub(crate) subject: FsEventFileType,
    pub(crate) seen_before: OldPathKnownToClients,
    /// The touched paths at and below the old path of a file that left the watched tree.
    pub(crate) touched_paths: Vec<RelPath>,
}

impl ExternalMove {
    pub(crate) fn paths(&self) -> impl Iterator<Item = &RelPath> {
        std::iter::once(&self.from).chain(&self.to)
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let meet = |one: &RelPath, two: &RelPath| one.is_within(two) || two.is_within(one);
        self.paths().any(|one| other.paths().any(|two| meet(one, two)))
    }

    /// The new names of the touched paths, if the target of the move is known.
    pub(crate) fn paths_left_behind(&self) -> impl Iterator<Item = RelPath> {
        self.touched_paths.iter().filter_map(|path| self.new_path_of(path.clone()))
    }

    /// The path that `path` has after the move; `None` if the move took `path` out of the watched directory tree.
    pub(crate) fn new_path_of(&self, path: RelPath) -> Option<RelPath> {
        match (path.strip_prefix(&self.from), &self.to) {
            (None, _) => Some(path),
            (Some(rest), Some(to)) => to.append(&rest).ok(),
            (Some(_), None) => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OldPathKnownToClients {
    Yes,
    /// Clients know the old path only if a call changed the path, because the path appeared in the same batch.
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RenameCertainty {
    Certain,
    /// A rename that reverses the previous rename may be a move back or an exchange of two names.
    Ambiguous,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnclassifiedFsEvent {
    Moved(ExternalMove),
    Touched { path: RelPath, hints: PathEventSummary },
}

#[derive(Debug, Clone, Copy)]
struct PendingExternalPathEvent {
    hints: PathEventSummary,
    since: Instant,
    sequence: u64,
}

#[derive(Default)]
pub(crate) struct ExternalEventBatch {
    moves: Vec<ExternalMove>,
    touched: BTreeMap<RelPath, PendingExternalPathEvent>,
    next: u64,
}

impl ExternalEventBatch {
    pub(crate) fn len(&self) -> usize {
        self.moves.len() + self.touched.len()
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn touch(&mut self, path: &RelPath, hints: PathEventSummary, now: Instant) {
        self.next += 1;
        let order = self.next;
        self.insert_touch(path.clone(), PendingExternalPathEvent { hints, since: now, sequence: order });
    }

    /// Callers must requeue events before they add newer events to the batch.
    pub(crate) fn requeue(&mut self, events: impl IntoIterator<Item = UnclassifiedFsEvent>, now: Instant) {
        for event in events {
            match event {
                UnclassifiedFsEvent::Moved(moved) => self.push_move(moved),
                UnclassifiedFsEvent::Touched { path, hints } => {
                    self.touch(&path, PathEventSummary { complete: true, ..hints }, now)
                }
            }
        }
    }

    pub(crate) fn rename(
        &mut self,
        from: &RelPath,
        to: &RelPath,
        subject: FsEventFileType,
        now: Instant,
    ) -> RenameCertainty {
        let branch = self.take_branch(from);
        let seen_before = seen_before(from, &branch);
        let inverse = self.moves.last().is_some_and(|last| last.from == *to && last.to.as_ref() == Some(from));
        self.push_move(ExternalMove {
            from: from.clone(),
            to: Some(to.clone()),
            subject,
            seen_before,
            touched_paths: Vec::new(),
        });
        for (path, touch) in &branch {
            let Some(moved) = path.strip_prefix(from).and_then(|rest| to.append(&rest).ok()) else {
                continue;
            };
            // The rename may have replaced a file, so the new name does not count as created.
            let hints = match seen_before {
                OldPathKnownToClients::No if path == from => {
                    PathEventSummary { created: false, complete: true, ..touch.hints }
                }
                OldPathKnownToClients::No | OldPathKnownToClients::Yes => touch.hints,
            };
            self.insert_touch(moved, PendingExternalPathEvent { hints, ..*touch });
        }
        self.recheck_former_paths(branch, seen_before);
        if !inverse {
            return RenameCertainty::Certain;
        }
        self.touch(from, PathEventSummary::APPEARED, now);
        self.touch(to, PathEventSummary::APPEARED, now);
        RenameCertainty::Ambiguous
    }

    pub(crate) fn record_departure(&mut self, from: &RelPath, subject: FsEventFileType) {
        let branch = self.take_branch(from);
        let seen_before = seen_before(from, &branch);
        let touched = branch.iter().map(|(path, _)| path.clone()).collect();
        self.push_move(ExternalMove { from: from.clone(), to: None, subject, seen_before, touched_paths: touched });
        self.recheck_former_paths(branch, seen_before);
    }

    /// If clients do not know the old path of a move, the move may not be recorded, so the old path becomes a touched
    /// path.
    fn recheck_former_paths(
        &mut self,
        branch: Vec<(RelPath, PendingExternalPathEvent)>,
        seen_before: OldPathKnownToClients,
    ) {
        match seen_before {
            OldPathKnownToClients::Yes => {}
            OldPathKnownToClients::No => {
                for (path, mut touch) in branch.into_iter().filter(|(_, touch)| !touch.hints.created) {
                    touch.hints.merge(PathEventSummary::DISAPPEARED);
                    self.insert_touch(path, touch);
                }
            }
        }
    }

    pub(crate) fn has_moves(&self) -> bool {
        !self.moves.is_empty()
    }

    /// Takes all moves out of the batch in order, and then the touched paths that are due.
    pub(crate) fn take_ready(&mut self, now: Instant) -> Vec<UnclassifiedFsEvent> {
        let mut ready: Vec<(u64, RelPath, PathEventSummary)> = self
            .touched
            .iter()
            .filter(|(_, touch)| now >= touch.due_at())
            .map(|(path, touch)| (touch.sequence, path.clone(), touch.hints))
            .collect();
        ready.sort_unstable_by_key(|(order, _, _)| *order);
        for (_, path, _) in &ready {
            self.touched.remove(path);
        }
        let moves = std::mem::take(&mut self.moves).into_iter().map(UnclassifiedFsEvent::Moved);
        moves.chain(ready.into_iter().map(|(_, path, hints)| UnclassifiedFsEvent::Touched { path, hints })).collect()
    }

    pub(crate) fn next_due(&self, now: Instant) -> Option<Instant> {
        if !self.moves.is_empty() {
            return Some(now);
        }
        self.touched.values().map(PendingExternalPathEvent::due_at).min()
    }

    fn push_move(&mut self, moved: ExternalMove) {
        let joined = moved.to.iter().filter(|_| moved.seen_before == OldPathKnownToClients::Yes);
        for path in joined.flat_map(|to| to.ancestors().chain([to.clone()])) {
            if let Some(touch) = self.touched.get_mut(&path) {
                touch.hints.moved_in = true;
            }
        }
        self.moves.push(moved);
    }

    fn insert_touch(&mut self, path: RelPath, touch: PendingExternalPathEvent) {
        self.touched.entry(path).and_modify(|known| known.hints.merge(touch.hints)).or_insert(touch);
    }

    fn take_branch(&mut self, top: &RelPath) -> Vec<(RelPath, PendingExternalPathEvent)> {
        let branch: Vec<RelPath> = self
            .touched
            .range(top.clone()..)
            .map(|(path, _)| path)
            .take_while(|path| path.as_bytes().starts_with(top.as_bytes()))
            .filter(|path| path.is_within(top))
            .cloned()
            .collect();
        branch.into_iter().filter_map(|path| self.touched.remove_entry(&path)).collect()
    }
}

fn seen_before(from: &RelPath, branch: &[(RelPath, PendingExternalPathEvent)]) -> OldPathKnownToClients {
    let is_new = |hints: PathEventSummary| hints.appeared && !hints.moved_in;
    if branch.iter().any(|(path, touch)| path == from && is_new(touch.hints)) {
        OldPathKnownToClients::No
    } else {
        OldPathKnownToClients::Yes
    }
}

impl PendingExternalPathEvent {
    fn due_at(&self) -> Instant {
        if self.hints.is_settled() { self.since } else { self.since + WRITER_CLOSE_WAIT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rel_path(wire: &str) -> RelPath {
        RelPath::from_wire(wire).unwrap()
    }

    const CREATED: PathEventSummary = PathEventSummary { created: true, appeared: true, ..PathEventSummary::NO_HINTS };
    const WRITTEN: PathEventSummary =
        PathEventSummary { content_changed: true, writer_closed: true, ..PathEventSummary::NO_HINTS };

    fn moved_event(from: &str, to: &str) -> UnclassifiedFsEvent {
        moved_event_seen(from, to, OldPathKnownToClients::Yes)
    }

    fn moved_event_seen(from: &str, to: &str, seen_before: OldPathKnownToClients) -> UnclassifiedFsEvent {
        let (from, to, subject) = (rel_path(from), Some(rel_path(to)), FsEventFileType::Other);
        UnclassifiedFsEvent::Moved(ExternalMove { from, to, subject, seen_before, touched_paths: Vec::new() })
    }

    fn take_ready_later(batch: &mut ExternalEventBatch, now: Instant) -> Vec<UnclassifiedFsEvent> {
        batch.take_ready(now + WRITER_CLOSE_WAIT)
    }

    #[test]
    fn atomic_save_is_one_change_of_the_file() {
        let (mut batch, now) = (ExternalEventBatch::default(), Instant::now());
        batch.touch(&rel_path("a.tmp"), CREATED, now);
        batch.touch(&rel_path("a.tmp"), WRITTEN, now);
        batch.rename(&rel_path("a.tmp"), &rel_path("a"), FsEventFileType::Other, now);
        let items = take_ready_later(&mut batch, now);
        let [first, UnclassifiedFsEvent::Touched { path, hints }] = &items[..] else { panic!("{items:?}") };
        assert_eq!((first, path), (&moved_event_seen("a.tmp", "a", OldPathKnownToClients::No), &rel_path("a")));
        assert!(hints.appeared && hints.content_changed && !hints.created);
    }

    #[test]
    fn moves_keep_their_order_and_touched_paths_follow() {
        let (mut batch, now) = (ExternalEventBatch::default(), Instant::now());
        batch.touch(&rel_path("d/f"), WRITTEN, now);
        batch.rename(&rel_path("x"), &rel_path("y"), FsEventFileType::Other, now);
        batch.rename(&rel_path("y"), &rel_path("z"), FsEventFileType::Other, now);
        batch.rename(&rel_path("d"), &rel_path("e"), FsEventFileType::Other, now);
        assert_eq!(
            take_ready_later(&mut batch, now),
            [
                moved_event("x", "y"),
                moved_event("y", "z"),
                moved_event("d", "e"),
                UnclassifiedFsEvent::Touched { path: rel_path("e/f"), hints: WRITTEN },
            ]
        );
        assert_eq!(batch.next_due(now), None);
    }

    #[test]
    fn files_moved_into_a_new_directory_follow_its_renames() {
        let (mut batch, now) = (ExternalEventBatch::default(), Instant::now());
        batch.touch(&rel_path("new"), CREATED, now);
        batch.rename(&rel_path("old"), &rel_path("new/old"), FsEventFileType::Other, now);
        batch.rename(&rel_path("new"), &rel_path("last"), FsEventFileType::Other, now);
        let items = take_ready_later(&mut batch, now);
        assert_eq!(items[..2], [moved_event("old", "new/old"), moved_event("new", "last")]);
        assert!(matches!(&items[2], UnclassifiedFsEvent::Touched { path, .. } if *path == rel_path("last")));
    }

    #[test]
    fn directory_moved_over_an_empty_new_one_is_followed() {
        let (mut batch, now) = (ExternalEventBatch::default(), Instant::now());
        batch.touch(&rel_path("new"), CREATED, now);
        batch.rename(&rel_path("old"), &rel_path("new"), FsEventFileType::Other, now);
        batch.rename(&rel_path("new"), &rel_path("last"), FsEventFileType::Other, now);
        let items = take_ready_later(&mut batch, now);
        assert_eq!(items[..2], [moved_event("old", "new"), moved_event("new", "last")]);
    }

    #[test]
    fn former_paths_of_new_names_are_rechecked() {
        let (mut batch, now) = (ExternalEventBatch::default(), Instant::now());
        batch.touch(&rel_path("a"), PathEventSummary::DISAPPEARED, now);
        batch.touch(&rel_path("a"), CREATED, now);
        batch.rename(&rel_path("a"), &rel_path("b"), FsEventFileType::Other, now);
        let items = take_ready_later(&mut batch, now);
        let paths: Vec<String> = items
            .iter()
            .map(|item| match item {
                UnclassifiedFsEvent::Touched { path, hints } => format!("{path} {}", hints.created),
                UnclassifiedFsEvent::Moved(moved) => format!("{:?}", moved.seen_before),
            })
            .collect();
        assert_eq!(paths, ["No", "a false", "b false"]);
    }

    #[test]
    fn swapped_paths_are_both_rechecked() {
        let (mut batch, now) = (ExternalEventBatch::default(), Instant::now());
        batch.rename(&rel_path("a"), &rel_path("b"), FsEventFileType::Other, now);
        batch.rename(&rel_path("b"), &rel_path("a"), FsEventFileType::Other, now);
        let items = take_ready_later(&mut batch, now);
        assert_eq!(items[..2], [moved_event("a", "b"), moved_event("b", "a")]);
        assert_eq!(items.len(), 4);
    }

    #[test]
    fn log_rotation_is_a_rename_and_a_new_file() {
        let (mut batch, now) = (ExternalEventBatch::default(), Instant::now());
        batch.rename(&rel_path("log"), &rel_path("log.1"), FsEventFileType::Other, now);
        batch.touch(&rel_path("log"), CREATED, now);
        let items = take_ready_later(&mut batch, now);
        assert_eq!(
            items,
            [moved_event("log", "log.1"), UnclassifiedFsEvent::Touched { path: rel_path("log"), hints: CREATED }]
        );
    }

    #[test]
    fn waits_for_the_writer_to_close() {
        let (mut batch, now) = (ExternalEventBatch::default(), Instant::now());
        batch.touch(&rel_path("a"), CREATED, now);
        assert!(batch.take_ready(now).is_empty());
        assert_eq!(batch.next_due(now), Some(now + WRITER_CLOSE_WAIT));
        assert_eq!(take_ready_later(&mut batch, now).len(), 1);
    }
}
