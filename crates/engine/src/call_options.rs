//! Options that a dialect sets for a call: path syntax, strictness and the form of the result. Operations read the call
//! options and never test which dialect is in use. Call options never give a caller more access: the workspace root,
//! scopes and protected paths apply in any case.

use std::sync::Arc;

use stead_path::PathSyntax;
pub use stead_text::patch::{PatchChunkMatching, PatchGrammar};

use crate::{glob::GlobPatternSet, plan::FileModeSource, policy::SupervisionTier, watches::WatchLifetimeKind};

/// The options that a dialect sets for one call; stead's own dialect uses the default options.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// The name of the called tool, as recorded in the journal, for example `comma/edit_file`.
    pub tool: Option<String>,
    /// All tools that the dialect offers, so that the `policy` operation can report the blocked tools.
    pub offered_tools: Vec<OfferedToolAndOperation>,
    /// The supervision tier that the dialect declares for the tool; the policy may set a stricter tier. A tool without
    /// a declared tier has the tier [`SupervisionTier::Autonomous`].
    pub declared_tier: Option<SupervisionTier>,
    /// The syntax of the path arguments of the call.
    pub path_spelling: PathSyntax,
    /// Whether a call that gives no base version may replace an existing file.
    pub missing_base: MissingBaseVersionPolicy,
    /// Whether a call creates the missing parent directories of a file.
    pub missing_parents: MissingParentPolicy,
    /// Whether new text takes over the line endings and byte order mark of the replaced text.
    pub replacement_format: LineEndingAndBomPolicy,
    /// Whether the call may remove directories.
    pub directory_removal: DirectoryRemovalPermission,
    /// The kinds of entries that the call may copy and move.
    pub copy_move_scope: CopyMoveAllowedEntryKinds,
    /// How long entries that the call removes stay in the trash.
    pub removal_retention: CallTrashRetentionOverride,
    /// Whether a move keeps the file that it overwrites as an old version or in the trash.
    pub overwritten_file: OverwrittenFilePolicy,
    /// Whether restoring an entry from the trash may replace an existing file.
    pub restore_conflict: TrashRestoreOverwritePolicy,
    /// The lifetime of a watch that the call starts.
    pub watch_lifetime: WatchLifetimeKind,
    /// The page size of a directory listing, and the attributes that the listing includes.
    pub listing_style: ListingPageSizeAndDetail,
    /// The glob patterns that further restrict the files that `find` and `search` visit.
    pub walk_filter: WalkFilter,
    /// The rules by which `edit` finds quoted text and replaces it.
    pub edit_rules: stead_text::edit::EditMatchingRules,
    /// The rules by which `patch` parses and applies a patch.
    pub patch_options: PatchOptions,
    /// The permissions of files that the call writes.
    pub written_file_mode: WrittenFileMode,
    /// The order of search hits, for dialects that render the hits as lines.
    pub hit_ranking: SearchHitOrder,
    /// Which secrets of administration the protocol of the call carries.
    pub secrets: SecretTransport,
    /// Whether the outcome of the call contains the file content before and after the call.
    pub before_after: BeforeAfterContentInclusion,
    /// The text of the file that the caller last saw, as the base for merging a write. Without a known text, a write
    /// uses the engine's cache of seen files as merge base.
    pub known_text: Option<Arc<str>>,
    /// Whether the server or an editor writes the changed file.
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
    /// The command line takes and returns secrets.
    CommandLine,
}

/// A tool that a dialect offers to its client, and the operation that the tool calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedToolAndOperation {
    /// The name of the operation that the offered tool calls.
    pub operation: String,
    /// The name of the offered tool, as recorded in the journal.
    pub tool: Option<String>,
}

/// A filter for the files of a directory walk, with patterns for paths relative to the start directory.
#[derive(Debug, Clone, Default)]
pub struct WalkFilter {
    /// The walk includes only files that match one of these patterns; an empty set includes all files.
    pub include: GlobPatternSet,
    /// The walk excludes files that match one of these patterns.
    pub exclude: GlobPatternSet,
}

/// Whether a call that gives no base version may replace an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingBaseVersionPolicy {
    /// The call is refused if it gives no base version for an existing file.
    #[default]
    Refuse,
    /// The call replaces the existing file and keeps the overwritten content as an old version.
    Overwrite,
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
    /// The call creates the missing parent directories of a file.
    #[default]
    Create,
    /// The call is refused if a parent directory of the file is missing.
    Refuse,
}

/// Whether new text takes over the line endings and byte order mark of the replaced text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineEndingAndBomPolicy {
    /// The new text is written exactly as given.
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

/// Whether the call may remove directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DirectoryRemovalPermission {
    /// The call may remove directories if its arguments request it.
    #[default]
    Allow,
    /// The call must not remove a directory.
    Refuse,
}

/// The kinds of entries that the call may copy and move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyMoveAllowedEntryKinds {
    /// The call may copy and move files, symlinks and whole directory trees.
    #[default]
    FilesAndTrees,
    /// The call may copy and move only regular files.
    FilesOnly,
}

/// The order of search hits, for dialects that render the hits as lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchHitOrder {
    /// Search hits are sorted by path in byte order, then by line number.
    #[default]
    ByPath,
    /// The most relevant search hits come first.
    ByRelevance,
}

/// How long entries that the call removes stay in the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallTrashRetentionOverride {
    /// Removed entries stay in the trash as long as the policy says for the principal.
    #[default]
    PrincipalDefault,
    /// Removed entries expire at once and do not stay in the trash.
    None,
}

/// Whether a move keeps the file that it overwrites as an old version or in the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverwrittenFilePolicy {
    /// The content of the overwritten file is stored as an old version.
    #[default]
    RetainVersion,
    /// The overwritten file is moved to the trash and can be restored from there.
    MoveToTrash,
}

/// Whether restoring an entry from the trash may replace an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrashRestoreOverwritePolicy {
    /// The restore is refused if the path already exists.
    #[default]
    Refuse,
    /// A restored file replaces an existing file, which moves to the trash; a directory or link is never replaced.
    TrashExisting,
}

/// The page size of a directory listing, and the attributes that the listing includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListingPageSizeAndDetail {
    /// A page of a directory listing has the size and the attributes of stead's own dialect.
    #[default]
    NativePage,
    /// A listing page has at most the given number of entries, each with its modification time and symlink target.
    DetailedEntries(usize),
}

/// Whether the outcome of the call contains the file content before and after the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BeforeAfterContentInclusion {
    /// The outcome of the call does not contain file content.
    #[default]
    Omit,
    /// The outcome of the call contains the file content before and after the call.
    Include,
}

/// The rules for parsing and applying patches; the default rules are those of stead's own dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchOptions {
    /// The patch syntax that the patch parser accepts.
    pub grammar: PatchGrammar,
    /// How the position of a patch chunk in its file is found.
    pub chunk_placement: PatchChunkMatching,
    /// How the paths of base versions are compared with the paths in the patch.
    pub base_matching: PatchBaseVersionPathMatching,
    /// Whether one patch may have several sections for the same file.
    pub repeated_files: PatchRepeatedFilePolicy,
    /// Whether the content of a binary file can be patched.
    pub binary_files: PatchBinaryFilePolicy,
    /// Whether a patch that was already applied causes an error.
    pub reapplied_patch: ReappliedPatchPolicy,
}

impl Default for PatchOptions {
    fn default() -> Self {
        Self {
            grammar: PatchGrammar::Tolerant,
            chunk_placement: PatchChunkMatching::Tolerant,
            base_matching: PatchBaseVersionPathMatching::ResolvedPath,
            repeated_files: PatchRepeatedFilePolicy::ApplyInOrder,
            binary_files: PatchBinaryFilePolicy::Refuse,
            reapplied_patch: ReappliedPatchPolicy::ReportUnchanged,
        }
    }
}

impl PatchOptions {
    /// The strict patch rules, for dialects whose clients expect exact matches.
    pub const STRICT: Self = Self {
        grammar: PatchGrammar::Strict,
        chunk_placement: PatchChunkMatching::Strict,
        base_matching: PatchBaseVersionPathMatching::ExactSpelling,
        repeated_files: PatchRepeatedFilePolicy::Refuse,
        binary_files: PatchBinaryFilePolicy::TreatAsText,
        reapplied_patch: ReappliedPatchPolicy::Refuse,
    };

    /// The strict patch rules, with a syntax that allows only one way to write each change.
    pub const EXACT: Self = Self { grammar: PatchGrammar::Exact, ..Self::STRICT };
}

/// How the base versions that a `patch` call gives are assigned to the files of the patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchBaseVersionPathMatching {
    /// A base version applies to the patched file that has the same resolved path. A base version for a path that the
    /// patch does not change is an error.
    ResolvedPath,
    /// The path of a base version must be written as in the patch; otherwise the base version is ignored.
    ExactSpelling,
}

/// Whether one patch may have several sections for the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchRepeatedFilePolicy {
    /// All sections of the patch for one file are applied in order.
    ApplyInOrder,
    /// A patch with several sections for one file is refused.
    Refuse,
}

/// Whether the content of a binary file can be patched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchBinaryFilePolicy {
    /// A patch of a binary file is refused.
    Refuse,
    /// A binary file whose bytes are valid UTF-8 is patched as text.
    TreatAsText,
}

/// Whether a patch that was already applied causes an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReappliedPatchPolicy {
    /// Applying the same patch again succeeds and reports that nothing changed.
    ReportUnchanged,
    /// A patch that was already applied is refused.
    Refuse,
}
