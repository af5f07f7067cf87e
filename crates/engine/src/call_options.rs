//! Options that a dialect sets for a call: path syntax, strictness and the form of the result. Strictness is decided
//! only here, so that no operation knows a dialect.
//!
//! Options never widen access: confinement, scope and protected paths do not depend on them.

pub(crate) mod patch;

use std::sync::Arc;

use stead_path::PathSyntax;

use self::patch::PatchOptions;
use crate::{errors::Error, glob::Globs, plan::FileModeSource, policy::PolicyTier, watches::WatchLifetime};

/// The options of one call. The default is the native dialect.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// The dialect's tool name, as recorded in the journal: `comma/edit_file`.
    pub tool: Option<String>,
    /// The tools of the dialect, for a call that asks which of them the policy allows.
    pub offered_tools: Vec<OfferedTool>,
    /// The options of the inspected call, for a call that asks for the verdict on another one.
    pub options_of_inspected_call: Option<Arc<CallOptions>>,
    /// The tier in the tool's definition; a policy may be stricter. `None` is [`PolicyTier::Autonomous`].
    pub declared_tier: Option<PolicyTier>,
    /// The path syntax.
    pub path_spelling: PathSyntax,
    /// The dialect's error about the arguments: the call is refused with it and recorded.
    pub argument_error: Option<Error>,
    /// The treatment of an existing file if the call gives no base version.
    pub missing_base: MissingBase,
    /// The treatment of missing parent directories.
    pub missing_parents: MissingParentPolicy,
    /// The format of new text.
    pub replacement_format: ReplacementFormat,
    /// Whether directories can be removed.
    pub directory_removal: DirectoryRemovalPolicy,
    /// The kinds of entries that can be copied and moved.
    pub copy_move_scope: CopyMoveScope,
    /// The retention of removed entries.
    pub removal_retention: RemovalRetention,
    /// The treatment of a file that a move overwrites.
    pub overwritten_file: OverwrittenFilePolicy,
    /// The treatment of an existing entry at the destination of a restore.
    pub restore_conflict: RestoreConflictPolicy,
    /// The lifetime of a watch.
    pub watch_lifetime: WatchLifetime,
    /// The size and detail of a directory listing.
    pub listing_style: ListingStyle,
    /// Further restrictions on the files of a walk.
    pub walk_filter: WalkFilter,
    /// The rules for quoted edits.
    pub edit_rules: stead_text::edit::EditRules,
    /// The rules for patches.
    pub patch_options: PatchOptions,
    /// The permission bits of written files.
    pub written_file_mode: WrittenFileMode,
    /// The order of search hits, if the dialect renders their lines.
    pub hit_ranking: HitRanking,
    /// Whether the outcome contains the bytes before and after.
    pub before_after: BeforeAfterInclusion,
    /// The text that the caller knows, if its protocol tracks it: the base of a merging write. `None` uses the
    /// engine's own tracking.
    pub known_text: Option<Arc<str>>,
    /// Who applies the change.
    pub applied_by: AppliedBy,
}

/// A tool of a dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedTool {
    /// The operation that it maps to.
    pub operation: String,
    /// Its name, as recorded in the journal.
    pub tool: Option<String>,
}

/// Restricts the files of a walk. Patterns match the path relative to the start of the walk.
#[derive(Debug, Clone, Default)]
pub struct WalkFilter {
    /// Only matching files, unless empty.
    pub include: Globs,
    /// No matching files.
    pub exclude: Globs,
}

/// The treatment of an existing file if the call gives no base version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingBase {
    /// Refuse the call.
    #[default]
    Refuse,
    /// Replace the file; its content is retained as usual.
    Overwrite,
}

/// Who applies a change once it is planned, authorized and approved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AppliedBy {
    /// The workspace, atomically with the record.
    #[default]
    Workspace,
    /// An editor that has the file open: the change is recorded, and no file is touched. The editor's text counts as
    /// the content of the file; `None` if it has none. The outcome contains the whole new text.
    Editor(Option<Arc<str>>),
}

/// The treatment of missing parent directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingParentPolicy {
    /// Create them.
    #[default]
    Create,
    /// Refuse the call.
    Refuse,
}

/// The format of new text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplacementFormat {
    /// Write the text as given.
    #[default]
    AsGiven,
    /// Use the line endings and the byte order mark of the replaced text.
    MatchReplaced,
    /// Convert LF-only text to CRLF if the replaced text is CRLF-only; otherwise write it as given.
    MatchLineEndings,
}

/// The permission bits of written files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WrittenFileMode {
    /// The default mode for new files; replaced files keep their mode.
    #[default]
    Default,
    /// Readable by the owner only, whatever the previous mode.
    OwnerOnly,
    /// Executable by everyone who may read it.
    Executable,
}

impl WrittenFileMode {
    pub(crate) fn mode_source(self) -> FileModeSource {
        match self {
            WrittenFileMode::Default => FileModeSource::KeepExisting,
            WrittenFileMode::OwnerOnly => FileModeSource::Set(OWNER_ONLY_MODE),
            WrittenFileMode::Executable => FileModeSource::Set(EXECUTABLE_MODE),
        }
    }
}

const OWNER_ONLY_MODE: u32 = 0o600;
const EXECUTABLE_MODE: u32 = 0o755;

/// Whether directories can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DirectoryRemovalPolicy {
    /// As the arguments say.
    #[default]
    Allow,
    /// Never.
    Refuse,
}

/// The kinds of entries that can be copied and moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyMoveScope {
    /// Files, symlinks and trees.
    #[default]
    FilesAndTrees,
    /// Files only.
    FilesOnly,
}

/// The order of search hits, if the dialect renders their lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HitRanking {
    /// By path in byte order, then by line.
    #[default]
    ByPath,
    /// By relevance.
    ByRelevance,
}

/// The retention of removed entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RemovalRetention {
    /// The trash retention of the principal.
    #[default]
    PrincipalDefault,
    /// No retention.
    None,
}

/// The treatment of a file that a move overwrites.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverwrittenFilePolicy {
    /// Store its version, as for any replaced file.
    #[default]
    RetainVersion,
    /// Move it to the trash, from where it can be restored separately.
    MoveToTrash,
}

/// The treatment of an existing entry at the destination of a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RestoreConflictPolicy {
    /// Refuse the call.
    #[default]
    Refuse,
    /// Move an existing file to the trash if a file is restored.
    TrashExisting,
}

/// The size and detail of a directory listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListingStyle {
    /// A page of native size.
    #[default]
    NativePage,
    /// At most this many entries, each with its time and, for a symlink, its target.
    DetailedEntries(usize),
}

/// Whether the outcome contains the bytes before and after, for dialects that render them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BeforeAfterInclusion {
    /// Omit them.
    #[default]
    Omit,
    /// Include them.
    Include,
}
