//! What a dialect settles about a call besides its arguments: how places are spelled, how strict the call is, and what
//! it wants to see of the result. Strictness is chosen here and nowhere else, so that no operation knows a dialect.
//!
//! Terms never widen what a caller may reach: confinement, scope and protected places know nothing of them.

use std::sync::Arc;

use path::Reading;

use crate::{failure::Failure, glob::Globs, patching::Patching, plan::Mode, policy::Tier, watching::Lasting};

/// The terms of one call. The default is the native dialect.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    /// The dialect's name for what is asked, as the journal shows it: `comma/edit_file`.
    pub tool: Option<String>,
    /// The tools that the dialect has, for a call that asks which of them the policy leaves.
    pub offers: Vec<Offer>,
    /// The terms of the call that is asked about, for a call that asks what another one would get.
    pub about: Option<Arc<Terms>>,
    /// How far a caller may go alone with this tool, as its definition says; a policy may be stricter. Nothing is
    /// [`Tier::Autonomous`].
    pub tier: Option<Tier>,
    /// How places are spelled.
    pub reading: Reading,
    /// What the dialect found wrong with the arguments: the call is refused with it, and recorded like any other.
    pub objection: Option<Failure>,
    /// What happens to an existing file when the call does not say which version was seen.
    pub unseen: Unseen,
    /// What happens when the directory of a new thing is missing.
    pub parents: Parents,
    /// Whether new text takes on the form of the text it replaces.
    pub form: Form,
    /// What can be removed.
    pub removable: Removable,
    /// What can be copied and moved.
    pub extent: Extent,
    /// How long removed things can come back.
    pub retention: Retention,
    /// What becomes of a file that another one is moved over.
    pub replaced: Replaced,
    /// What is done where something comes back to a place that is taken.
    pub occupied: Occupied,
    /// How long a watch lasts.
    pub lasting: Lasting,
    /// How much of a directory one answer lists.
    pub listing: Listing,
    /// Which files a walk takes in, beyond what the arguments say.
    pub filter: Filter,
    /// How quoted edits are judged.
    pub editing: text::edit::Rules,
    /// How patches are read, placed and checked.
    pub patching: Patching,
    /// Who may read what is written.
    pub privacy: Privacy,
    /// In which order hits come, where a dialect wants their lines.
    pub ranking: Ranking,
    /// Whether the answer brings the bytes themselves.
    pub evidence: Evidence,
    /// The text of the file that the caller knows, where its face remembers it: a merged write is held against it. Nothing
    /// where the engine's own memory counts.
    pub knows: Option<Arc<str>>,
    /// Who makes the change true.
    pub making: Making,
}

/// A tool that a dialect offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The operation that it becomes.
    pub operation: String,
    /// Its name, as the journal shows it.
    pub tool: Option<String>,
}

/// Which files a walk takes in. Patterns are compared with the path below the directory where the walk starts.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only these, if there are any.
    pub include: Globs,
    /// Not these.
    pub exclude: Globs,
}

/// What happens to an existing file when the call does not say which version was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unseen {
    /// It stays; the call must say what it saw.
    #[default]
    Stays,
    /// It is replaced. What is replaced is kept as ever.
    Yields,
}

/// Who makes a change true once it is planned, judged and approved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Making {
    /// The workspace, in the same step that records it.
    #[default]
    Here,
    /// Somebody else, such as an editor that holds the file: it is recorded, and no file is touched. What they hold is what
    /// the file counts as; nothing where they hold none. The answer brings the whole text that they are to make true.
    Elsewhere(Option<Arc<str>>),
}

/// What happens when the directory of a new thing is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Parents {
    /// It is made.
    #[default]
    Made,
    /// The call is refused.
    Required,
}

/// Whether new text takes on the form of the text it replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// It is written as given.
    #[default]
    AsGiven,
    /// It gets the line endings and the byte order mark of what it replaces.
    OfReplaced,
    /// Text with no line ending but LF gets CRLF where what it replaces has nothing else; any other is written as given.
    LinesOfReplaced,
}

/// Who may read what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Privacy {
    /// A new file is like any other, and one that is replaced keeps its permission bits.
    #[default]
    AsUsual,
    /// Only the owner, whoever could read it before.
    OwnerOnly,
    /// A program: whoever may read it may run it.
    Runnable,
}

impl Privacy {
    /// The permission bits of what is written.
    pub(crate) fn mode(self) -> Mode {
        match self {
            Privacy::AsUsual => Mode::Keep,
            Privacy::OwnerOnly => Mode::Set(OWNER_ONLY_MODE),
            Privacy::Runnable => Mode::Set(RUNNABLE_MODE),
        }
    }
}

/// Permission bits of a file that only its owner may read.
const OWNER_ONLY_MODE: u32 = 0o600;
/// The permission bits of a program.
const RUNNABLE_MODE: u32 = 0o755;

/// What can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Removable {
    /// Whatever the arguments say.
    #[default]
    Everything,
    /// Everything but directories.
    NoDirectories,
}

/// What can be copied and moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extent {
    /// Files, links and whole trees.
    #[default]
    Trees,
    /// Files.
    Files,
}

/// In which order hits come, where a dialect wants their lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ranking {
    /// By place: byte order of the paths, then line by line.
    #[default]
    ByPlace,
    /// What was meant first.
    ByMeaning,
}

/// How long removed things can come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Retention {
    /// As long as the principal's trash keeps them.
    #[default]
    OfPrincipal,
    /// Not at all.
    None,
}

/// What becomes of a file that another one is moved over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Replaced {
    /// Its bytes are kept, as those of any file that is replaced.
    #[default]
    Kept,
    /// It goes to the trash, from where it can be restored by itself.
    Trashed,
}

/// What is done where something comes back from the trash to a place that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Occupied {
    /// The call is refused.
    #[default]
    Stays,
    /// A file makes way for a file: it goes to the trash itself.
    MakesWay,
}

/// How much of a directory one answer lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listing {
    /// A page of native size.
    #[default]
    Page,
    /// At most this many entries, each with its time and, for a link, what it leads to.
    Entries(usize),
}

/// Whether the answer brings the bytes themselves, for a dialect that shows them in its own form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Evidence {
    /// No: what the native answer shows.
    #[default]
    None,
    /// What a file held, and what it holds now.
    Bytes,
}
