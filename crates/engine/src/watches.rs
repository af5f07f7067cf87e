//! Watches: a path and the kinds of events to report for it. This module has only the types: the workspace watches the
//! files, and the operation `watched` reads the events from the journal.

use stead_path::RelPath;

/// Whether a watch includes subdirectories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WatchDepth {
    /// The watch includes the path itself and the direct entries of that directory.
    Shallow,
    /// The watch includes the path itself and everything below it.
    Deep,
}

/// The kind of a watch event. Every watch reports [`WatchEventKind::Rescan`]; the other kinds can be excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchEventKind {
    /// A file, directory or symlink was created.
    Create,
    /// The content or the permission bits of a file or directory changed.
    Modify,
    /// A file, directory or symlink was removed.
    Delete,
    /// A file, directory or symlink was renamed.
    Rename,
    /// Events were lost, so every file at or below the path may have changed and must be read again.
    Rescan,
}

impl WatchEventKind {
    /// The kinds of events that a client can select for a watch.
    pub const CHOICES: &[WatchEventKind] =
        &[WatchEventKind::Create, WatchEventKind::Modify, WatchEventKind::Delete, WatchEventKind::Rename];

    /// The name of the event kind in arguments and results, such as `create`.
    pub fn as_str(self) -> &'static str {
        match self {
            WatchEventKind::Create => "create",
            WatchEventKind::Modify => "modify",
            WatchEventKind::Delete => "delete",
            WatchEventKind::Rename => "rename",
            WatchEventKind::Rescan => "rescan",
        }
    }

    /// Parses the name of an event kind that a client can select for a watch.
    pub fn parse(word: &str) -> Option<Self> {
        Self::CHOICES.iter().copied().find(|kind| kind.as_str() == word)
    }
}

/// A stored watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// The watch id.
    pub id: String,
    /// The principal who owns the watch.
    pub owner: String,
    /// The session that began the watch.
    pub session: String,
    /// The watched path.
    pub path: RelPath,
    /// Whether the watch includes subdirectories.
    pub depth: WatchDepth,
    /// The kinds of events that the watch reports; if the list is empty, the watch reports every kind.
    pub event_kinds: Vec<WatchEventKind>,
    /// The watch reports only paths that match this glob pattern. A glob pattern without a slash matches a name at any
    /// depth.
    pub glob: Option<String>,
    /// The number of the journal entry that began the watch; the watch reports changes in later entries.
    pub started_at_entry: u64,
}

impl Watch {
    /// Whether the watch reports events of this kind.
    pub(crate) fn includes_kind(&self, kind: WatchEventKind) -> bool {
        kind == WatchEventKind::Rescan || self.event_kinds.is_empty() || self.event_kinds.contains(&kind)
    }

    /// Whether a path is within the depth of the watch, regardless of its glob pattern.
    pub fn covers_path(&self, path: &RelPath) -> bool {
        match path.strip_prefix(&self.path) {
            None => false,
            Some(below) => self.depth == WatchDepth::Deep || below.depth() <= 1,
        }
    }
}

/// How long a watch exists if its owner does not end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatchLifetimeKind {
    /// The watch survives restarts, as long as its events are fetched from time to time.
    #[default]
    Persistent,
    /// The watch ends when the server process of its owner ends.
    Process,
}

/// A request to begin or end a watch.
#[derive(Debug, Clone)]
pub enum WatchBeginOrEndRequest {
    /// Begins a watch.
    Begin {
        /// The path to watch.
        path: RelPath,
        /// Whether the watch includes subdirectories.
        depth: WatchDepth,
        /// The kinds of events that the watch reports; if the list is empty, the watch reports every kind.
        event_kinds: Vec<WatchEventKind>,
        /// The watch reports only paths that match this glob pattern.
        glob: Option<String>,
        /// How long the watch exists if its owner does not end it.
        lifetime: WatchLifetimeKind,
    },
    /// Ends a watch of the caller.
    End {
        /// The watch id.
        id: String,
    },
}
