//! Options that a dialect sets for a call: path syntax, strictness and the form of the result. Operations read these
//! options and never test which dialect is in use.
//!
//! Options never widen access: confinement, scope and protected paths do not depend on them.

use std::sync::Arc;

use stead_path::PathSyntax;
pub use stead_text::patch::PatchParseOptions;

use crate::{errors::Error, glob::Globs, plan::FileModeSource, policy::SupervisionTier, watches::WatchLifetimeKind};

/// The options of one call. The default options are those of stead's own dialect.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// The dialect's name for the tool, as recorded in the journal, for example `comma/edit_file`.
    pub tool: Option<String>,
    /// The tools of the dialect. The `policy` operation reports which of these tools the policy allows.
    pub offered_tools: Vec<OfferedToolAndOperation>,
    /// The options of the call that the `policy` operation evaluates without running it.
    pub options_of_inspected_call: Option<Arc<CallOptions>>,
    /// The tier in the tool's definition. The policy may set a stricter tier. `None` means
    /// [`SupervisionTier::Autonomous`].
    pub declared_tier: Option<SupervisionTier>,
    /// The syntax of path arguments.
    pub path_spelling: PathSyntax,
    /// The error of the dialect if the dialect could not translate the arguments. In that case the call is recorded and
    /// fails with this error.
    pub argument_error: Option<Error>,
    /// Whether a call without a base version may replace an existing file.
    pub missing_base: MissingBaseVersionPolicy,
    /// Whether missing parent directories are created.
    pub missing_parents: MissingParentPolicy,
    /// The line endings and byte order mark of new text.
    pub replacement_format: LineEndingAndBomPolicy,
    /// Whether directories can be removed.
    pub directory_removal: DirectoryRemovalPermission,
    /// The kinds of entries that can be copied and moved.
    pub copy_move_scope: CopyMoveAllowedEntryKinds,
    /// How long removed entries stay in the trash.
    pub removal_retention: TrashRetentionChoice,
    /// Where a move puts the file that it overwrites.
    pub overwritten_file: OverwrittenFilePolicy,
    /// Whether a restore may replace an existing file at its destination.
    pub restore_conflict: RestoreConflictPolicy,
    /// The lifetime of a watch that this call begins.
    pub watch_lifetime: WatchLifetimeKind,
    /// The page size of a directory listing, and the attributes that the listing includes.
    pub listing_style: ListingPageSizeAndDetail,
    /// Glob patterns that restrict the files of `find` and `search`, in addition to the arguments.
    pub walk_filter: WalkFilter,
    /// The rules by which `edit` finds quoted text and replaces it.
    pub edit_rules: stead_text::edit::EditMatchingRules,
    /// The rules by which `patch` parses and applies a patch.
    pub patch_options: PatchOptions,
    /// The permission bits of files that the call writes.
    pub written_file_mode: WrittenFileMode,
    /// The order of search hits, for dialects that render the hits as lines.
    pub hit_ranking: SearchHitOrder,
    /// Whether the outcome contains the file content before and after the call.
    pub before_after: BeforeAfterContentInclusion,
    /// The text of the file as the caller last saw it, if the protocol tracks that text. A write uses this text as the
    /// common base when it merges later changes. `None` means that the engine's own record of seen files is used.
    pub known_text: Option<Arc<str>>,
    /// Whether the workspace or an editor applies the change.
    pub applied_by: ChangeApplierChoice,
}

/// A tool that a dialect offers to its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedToolAndOperation {
    /// The operation that the tool calls.
    pub operation: String,
    /// The tool's name, as recorded in the journal.
    pub tool: Option<String>,
}

/// Restricts the files of a directory walk. Patterns match the path relative to the directory where the walk starts.
#[derive(Debug, Clone, Default)]
pub struct WalkFilter {
    /// Only files that match one of these patterns are included. If there are no patterns, all files are included.
    pub include: Globs,
    /// Files that match one of these patterns are excluded.
    pub exclude: Globs,
}

/// Whether a call without a base version may replace an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingBaseVersionPolicy {
    /// Refuse the call.
    #[default]
    Refuse,
    /// Replace the file. The previous content of the file is retained, as for every write.
    Overwrite,
}

/// Who applies a change once it is planned, authorized and approved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ChangeApplierChoice {
    /// The workspace writes the files and the journal entry atomically.
    #[default]
    Workspace,
    /// An editor that has the file open applies the change. The engine records the change, writes no file, and returns
    /// the whole new text in the outcome. This value is the editor's current text and counts as the content of the
    /// file. `None` means that the editor has no text for the file.
    Editor(Option<Arc<str>>),
}

/// Whether missing parent directories are created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingParentPolicy {
    /// Create the missing directories.
    #[default]
    Create,
    /// Refuse the call.
    Refuse,
}

/// The line endings and byte order mark of new text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineEndingAndBomPolicy {
    /// Write the text as given.
    #[default]
    AsGiven,
    /// Use the line endings and the byte order mark of the replaced text.
    MatchReplaced,
    /// If all line endings of the new text are LF and all line endings of the replaced text are CRLF, convert the new
    /// text to CRLF. Otherwise write the new text as given.
    MatchLineEndings,
}

/// The permission bits of files that a call writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WrittenFileMode {
    /// New files get the default mode; replaced files keep their mode.
    #[default]
    Default,
    /// Only the owner can read and write the file, even if it had a different mode before.
    OwnerOnly,
    /// Everyone can read and execute the file.
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

/// Whether directories can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DirectoryRemovalPermission {
    /// Directories can be removed as the arguments request.
    #[default]
    Allow,
    /// The removal of a directory is refused.
    Refuse,
}

/// The kinds of entries that can be copied and moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyMoveAllowedEntryKinds {
    /// Files, symlinks and trees.
    #[default]
    FilesAndTrees,
    /// Files only.
    FilesOnly,
}

/// The order of search hits, for dialects that render the hits as lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchHitOrder {
    /// By path in byte order, then by line number.
    #[default]
    ByPath,
    /// Most relevant hits first.
    ByRelevance,
}

/// How long removed entries stay in the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrashRetentionChoice {
    /// Removed entries stay as long as the policy keeps the trash of the principal.
    #[default]
    PrincipalDefault,
    /// Removed entries expire at once.
    None,
}

/// Where a move puts the file that it overwrites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverwrittenFilePolicy {
    /// The content of the overwritten file is stored as a version, as for every replaced file.
    #[default]
    RetainVersion,
    /// The overwritten file is moved to the trash and can be restored from there.
    MoveToTrash,
}

/// Whether a restore may replace an existing file at its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RestoreConflictPolicy {
    /// Refuse the call.
    #[default]
    Refuse,
    /// Move the existing file to the trash if the restored entry is also a file. Otherwise refuse the call.
    TrashExisting,
}

/// The page size of a directory listing, and the attributes that the listing includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListingPageSizeAndDetail {
    /// A page of the size and form that stead's own dialect uses.
    #[default]
    NativePage,
    /// A page has at most this many entries. Each entry has its modification time and, if it is a symlink, its target.
    DetailedEntries(usize),
}

/// Whether the outcome contains the file content before and after the call. Some dialects render this content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BeforeAfterContentInclusion {
    /// The outcome does not contain file content.
    #[default]
    Omit,
    /// The outcome contains the file content before and after the call.
    Include,
}

/// The rules for patches. The default rules are those of stead's own dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchOptions {
    /// The accepted patch syntax.
    pub grammar: PatchParseOptions,
    /// How the place of a chunk in its file is found.
    pub chunk_placement: PatchChunkMatching,
    /// How the paths of base versions are matched with the paths of the patch.
    pub base_matching: PatchBaseVersionPathMatching,
    /// Whether one patch may have several sections for the same file.
    pub repeated_files: PatchRepeatedFilePolicy,
    /// Whether the content of a binary file can be patched.
    pub binary_files: PatchBinaryFilePolicy,
    /// Whether a patch that was already applied is an error.
    pub reapplied_patch: ReappliedPatchPolicy,
}

impl Default for PatchOptions {
    fn default() -> Self {
        Self {
            grammar: PatchParseOptions::TOLERANT,
            chunk_placement: PatchChunkMatching::Tolerant,
            base_matching: PatchBaseVersionPathMatching::ResolvedPath,
            repeated_files: PatchRepeatedFilePolicy::ApplyInOrder,
            binary_files: PatchBinaryFilePolicy::Refuse,
            reapplied_patch: ReappliedPatchPolicy::ReportUnchanged,
        }
    }
}

impl PatchOptions {
    /// Strict rules, for dialects whose clients expect them.
    pub const STRICT: Self = Self {
        grammar: PatchParseOptions::STRICT,
        chunk_placement: PatchChunkMatching::Strict,
        base_matching: PatchBaseVersionPathMatching::ExactSpelling,
        repeated_files: PatchRepeatedFilePolicy::Refuse,
        binary_files: PatchBinaryFilePolicy::TreatAsText,
        reapplied_patch: ReappliedPatchPolicy::Refuse,
    };

    /// The rules of [`Self::STRICT`], with a patch syntax in which each change can be written in only one way.
    pub const EXACT: Self = Self { grammar: PatchParseOptions::EXACT, ..Self::STRICT };
}

/// How the place of a patch chunk in its file is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchChunkMatching {
    /// A chunk may match inexactly, if the match is unambiguous. All chunks of a file are located together.
    Tolerant,
    /// Lines must match exactly, and each chunk must come after the previous one.
    Strict,
}

/// How the paths of base versions are matched with the paths of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchBaseVersionPathMatching {
    /// Resolved paths are compared. A base version for a path that the patch does not change is refused.
    ResolvedPath,
    /// Paths are compared as written. A base version for another path is ignored.
    ExactSpelling,
}

/// Whether one patch may have several sections for the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchRepeatedFilePolicy {
    /// The sections are applied in order.
    ApplyInOrder,
    /// A patch with a repeated file is refused.
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

/// Whether a patch that was already applied is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReappliedPatchPolicy {
    /// The call succeeds, changes nothing and reports that nothing changed.
    ReportUnchanged,
    /// A patch that was already applied is refused.
    Refuse,
}
