//! What a watch is: a place that somebody wants to hear about, and what they want to hear. Pure values; who looks at the
//! disk and who reads the journal is elsewhere.

use path::RelPath;

/// Whether a watch reaches below the names of its own directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Depth {
    /// The place itself and the names in it.
    Shallow,
    /// Everything below.
    Deep,
}

/// What can happen at a watched place. A rescan is told whatever was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Happening {
    /// Something came into being.
    Create,
    /// Content or permission bits changed.
    Modify,
    /// Something went away.
    Delete,
    /// Something has another name now.
    Rename,
    /// Anything at the place or below may have changed; look again.
    Rescan,
}

impl Happening {
    /// Those that can be asked for.
    pub const CHOICES: &[Happening] =
        &[Happening::Create, Happening::Modify, Happening::Delete, Happening::Rename];

    /// The word on every face.
    pub fn word(self) -> &'static str {
        match self {
            Happening::Create => "create",
            Happening::Modify => "modify",
            Happening::Delete => "delete",
            Happening::Rename => "rename",
            Happening::Rescan => "rescan",
        }
    }

    /// What a word asks for.
    pub fn chosen(word: &str) -> Option<Self> {
        Self::CHOICES.iter().copied().find(|happening| happening.word() == word)
    }
}

/// One watch, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    /// Its id.
    pub id: String,
    /// Who wants to hear.
    pub owner: String,
    /// The session it was made in.
    pub session: String,
    /// On what.
    pub path: RelPath,
    /// How far down.
    pub depth: Depth,
    /// What to hear; everything when nothing is chosen.
    pub happenings: Vec<Happening>,
    /// Only names that match; those without a slash mean a name at any depth.
    pub glob: Option<String>,
    /// The entry that began it: what comes after is told.
    pub started: u64,
}

impl Watch {
    /// Whether somebody wants to hear this.
    pub(crate) fn wants(&self, happening: Happening) -> bool {
        happening == Happening::Rescan || self.happenings.is_empty() || self.happenings.contains(&happening)
    }

    /// Whether a place is in reach, whatever the pattern says.
    pub fn reaches(&self, path: &RelPath) -> bool {
        match path.below(&self.path) {
            None => false,
            Some(below) => self.depth == Depth::Deep || below.depth() <= 1,
        }
    }
}

/// How long a watch lasts unless it is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lasting {
    /// Over restarts, as long as somebody asks for its events now and then.
    #[default]
    Kept,
    /// At most as long as the process that serves who began it.
    Process,
}

/// What to do with a watch.
#[derive(Debug, Clone)]
pub enum WatchAsk {
    /// Begin one.
    Begin {
        /// On what.
        path: RelPath,
        /// How far down.
        depth: Depth,
        /// What to hear.
        happenings: Vec<Happening>,
        /// Only names that match.
        glob: Option<String>,
        /// How long it lasts.
        lasting: Lasting,
    },
    /// End one of the caller's own.
    End {
        /// Which.
        id: String,
    },
}
