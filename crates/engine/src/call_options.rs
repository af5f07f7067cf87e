//! Options that a dialect sets for a call: path syntax, strictness and the form of the result. Operations read the call
//! options and never test which dialect is in use. Call options never give a caller more access: the workspace root,
//! scopes and protected paths apply in any case.

use std::sync::Arc;

use stead_path::PathSyntax;
pub use stead_text::patch::PatchGrammar;

use crate::{glob::GlobPatternSet, plan::FileModeSource, policy::SupervisionTier};

/// The options that a dialect sets for one call; stead's own dialect uses the default options.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// The name as recorded in the journal, for example `comma/edit_file`.
    pub tool: Option<String>,
    /// The supervision tier that the dialect declares for the tool; the policy may set a stricter tier. A tool without
    /// a declared tier has the tier [`SupervisionTier::Autonomous`].
    pub declared_tier: Option<SupervisionTier>,
    pub path_spelling: PathSyntax,
    pub missing_parents: MissingParentPolicy,
    pub listing_style: ListingPageSizeAndDetail,
    pub walk_filter: WalkFilter,
    pub written_file_mode: WrittenFileMode,
    pub secrets: SecretTransport,
    pub before_after: BeforeAfterContentInclusion,
    pub applied_by: ChangeApplierChoice,
}

/// Which secrets of administration a protocol carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecretTransport {
    /// The protocol carries no secret, because a model may see its calls and replies.
    #[default]
    None,
    /// The protocol returns new secrets, such as tokens, but takes none.
    NewSecrets,
    CommandLine,
}

/// A tool that a dialect offers to its client, and the operation that the tool calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedToolAndOperation {
    pub operation: String,
    pub tool: Option<String>,
}

/// A filter for the files of a directory walk, with patterns for paths relative to the start directory.
#[derive(Debug, Clone, Default)]
pub struct WalkFilter {
    /// The walk includes only files that match one of these patterns; an empty set includes all files.
    pub include: GlobPatternSet,
    pub exclude: GlobPatternSet,
}

/// Whether the server or an editor writes an approved change to the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ChangeApplierChoice {
    /// The server writes the files and the journal entry atomically.
    #[default]
    Workspace,
    /// An editor that has the file open writes the change, and the engine only records the change in the journal. The
    /// call treats the editor's text as the file content; `None` means that the editor has no text.
    Editor(Option<Arc<str>>),
}

/// Whether a call creates the missing parent directories of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingParentPolicy {
    #[default]
    Create,
    Refuse,
}

/// Whether new text takes over the line endings and byte order mark of the replaced text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineEndingAndBomPolicy {
    #[default]
    AsGiven,
    /// The new text gets the line endings and the byte order mark of the replaced text.
    MatchReplaced,
    /// New text with only LF line endings is converted to CRLF if the replaced text has only CRLF.
    MatchLineEndings,
}

/// The permissions of files that a call writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WrittenFileMode {
    /// New files get the default permissions; replaced files keep their permissions.
    #[default]
    Default,
    /// Only the owner can read and write the written file, even if the file had other permissions before.
    OwnerOnly,
    /// Everyone can read and execute the written file, and its owner can write it.
    Executable,
}

impl WrittenFileMode {
    pub(crate) fn mode_source(self) -> FileModeSource {
        match self {
            WrittenFileMode::Default => FileModeSource::KeepExisting,
            WrittenFileMode::OwnerOnly => FileModeSource::Set(0o600),
            WrittenFileMode::Executable => FileModeSource::Set(0o755),
        }
    }
}

/// The order of search hits, for dialects that render the hits as lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchHitOrder {
    /// Search hits are sorted by path in byte order, then by line number.
    #[default]
    ByPath,
    ByRelevance,
}

/// The page size of a directory listing, and the attributes that the listing includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListingPageSizeAndDetail {
    #[default]
    NativePage,
    /// At most this many entries, each with its modification time and symlink target.
    DetailedEntries(usize),
}

/// Whether the outcome of the call contains the file content before and after the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BeforeAfterContentInclusion {
    #[default]
    Omit,
    Include,
}
