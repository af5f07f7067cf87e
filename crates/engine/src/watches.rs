//! Watches: a path and the kinds of events to report. Plain values; the watcher and the journal reader are elsewhere.

use stead_path::RelPath;

/// The depth of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WatchDepth {
    /// The path itself and its direct entries.
    Shallow,
    /// Everything below the path.
    Deep,
}

/// The kind of a watch event. A rescan is always reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchEventKind {
    /// An entry was created.
    Create,
    /// Content or permission bits changed.
    Modify,
    /// An entry was removed.
    Delete,
    /// An entry was renamed.
    Rename,
    /// Any entry at or below the path may have changed; read it again.
    Rescan,
}

impl WatchEventKind {
    /// The kinds that can be selected.
    pub const CHOICES: &[WatchEventKind] =
        &[WatchEventKind::Create, WatchEventKind::Modify, WatchEventKind::Delete, WatchEventKind::Rename];

    /// The kind's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            WatchEventKind::Create => "create",
            WatchEventKind::Modify => "modify",
            WatchEventKind::Delete => "delete",
            WatchEventKind::Rename => "rename",
            WatchEventKind::Rescan => "rescan",
        }
    }

    /// Parses a selectable kind.
    pub fn parse(word: &str) -> Option<Self> {
        Self::CHOICES.iter().copied().find(|kind| kind.as_str() == word)
    }
}

/// A stored watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// The watch id.
    pub id: String,
    /// The principal it belongs to.
    pub owner: String,
    /// The session that began it.
    pub session: String,
    /// The watched path.
    pub path: RelPath,
    /// The depth.
    pub depth: WatchDepth,
    /// The kinds to report; all if empty.
    pub event_kinds: Vec<WatchEventKind>,
    /// Only matching names; a pattern without a slash matches a name at any depth.
    pub glob: Option<String>,
    /// The entry that began it; later entries are reported.
    pub started_at_entry: u64,
}

impl Watch {
    /// Whether the watch reports events of this kind.
    pub(crate) fn includes_kind(&self, kind: WatchEventKind) -> bool {
        kind == WatchEventKind::Rescan || self.event_kinds.is_empty() || self.event_kinds.contains(&kind)
    }

    /// Whether a path is within the watch, regardless of the pattern.
    pub fn covers_path(&self, path: &RelPath) -> bool {
        match path.strip_prefix(&self.path) {
            None => false,
            Some(below) => self.depth == WatchDepth::Deep || below.depth() <= 1,
        }
    }
}

/// The lifetime of a watch that is not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchLifetime {
    /// Survives restarts while its events are fetched from time to time.
    #[default]
    Persistent,
    /// At most as long as the process that serves its owner.
    Process,
}

/// A change of a watch.
#[derive(Debug, Clone)]
pub enum WatchRequest {
    /// Begins a watch.
    Begin {
        /// The path.
        path: RelPath,
        /// The depth.
        depth: WatchDepth,
        /// The kinds to report.
        event_kinds: Vec<WatchEventKind>,
        /// Only matching names.
        glob: Option<String>,
        /// The lifetime.
        lifetime: WatchLifetime,
    },
    /// Ends a watch of the caller.
    End {
        /// The watch id.
        id: String,
    },
}
