//! The types of watches: a watch is a path and the kinds of events to report for it. The workspace watches the files,
//! and the operation `watched` reads the events from the journal.

use serde::{Deserialize, Serialize};
use stead_path::RelPath;

/// Whether a watch includes subdirectories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchDepth {
    /// The watch includes the watched path itself and, if it is a directory, its direct entries.
    Shallow,
    /// The watch includes the path itself and everything below it.
    Deep,
}

/// The kind of a watch event. A client can exclude every kind of watch event except [`WatchEventKind::Rescan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WatchEventKind {
    Create,
    /// The content or the permission bits of a file or directory changed.
    Modify,
    Delete,
    Rename,
    /// Watch events were lost, so the client must read the files at and below the event's path again.
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

/// A client's request to report changes at a path, as the workspace stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    pub id: String,
    pub owner: String,
    pub session: String,
    pub path: RelPath,
    /// Whether the watch includes subdirectories.
    pub depth: WatchDepth,
    /// The kinds of events that the watch reports; an empty list means every kind.
    pub event_kinds: Vec<WatchEventKind>,
    /// The glob pattern that a path must match to be reported by the watch. A glob pattern without a slash matches a
    /// name at any depth.
    pub glob: Option<String>,
    /// The number of the journal entry that began the watch; the watch reports only later changes.
    pub started_at_entry: u64,
}

impl Watch {
    pub(crate) fn includes_kind(&self, kind: WatchEventKind) -> bool {
        kind == WatchEventKind::Rescan || self.event_kinds.is_empty() || self.event_kinds.contains(&kind)
    }

    /// Whether the watch includes a path by its location and depth, regardless of the glob pattern.
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
    /// The watch survives restarts of the server, as long as its events are fetched from time to time.
    #[default]
    Persistent,
    /// The watch ends when the server process of its owner ends.
    Process,
}

/// A request to begin or end a watch.
#[derive(Debug, Clone)]
pub enum WatchBeginOrEndRequest {
    Begin {
        path: RelPath,
        depth: WatchDepth,
        /// An empty list means every kind.
        event_kinds: Vec<WatchEventKind>,
        glob: Option<String>,
        lifetime: WatchLifetimeKind,
    },
    /// The caller ends one of its own watches.
    End { id: String },
}
