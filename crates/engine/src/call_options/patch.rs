//! Options that a dialect sets for patches. Values only: the operation is the same for all dialects.

pub use stead_text::patch::PatchGrammar;

/// The options for patches. The default is the native dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchOptions {
    /// The syntax of patches.
    pub grammar: PatchGrammar,
    /// The placement of chunks.
    pub chunk_placement: PatchChunkPlacement,
    /// The comparison of base paths with the paths of the patch.
    pub base_matching: PatchBasePathMatching,
    /// The treatment of a file with several sections.
    pub repeated_files: PatchRepeatedFilePolicy,
    /// The treatment of binary files.
    pub binary_files: PatchBinaryFilePolicy,
    /// The treatment of a patch that was already applied.
    pub reapplied_patch: ReappliedPatchPolicy,
}

impl Default for PatchOptions {
    fn default() -> Self {
        Self {
            grammar: PatchGrammar::TOLERANT,
            chunk_placement: PatchChunkPlacement::Tolerant,
            base_matching: PatchBasePathMatching::ResolvedPath,
            repeated_files: PatchRepeatedFilePolicy::ApplyInOrder,
            binary_files: PatchBinaryFilePolicy::Refuse,
            reapplied_patch: ReappliedPatchPolicy::ReportUnchanged,
        }
    }
}

impl PatchOptions {
    /// Strict rules, for dialects whose original is strict.
    pub const STRICT: Self = Self {
        grammar: PatchGrammar::STRICT,
        chunk_placement: PatchChunkPlacement::Strict,
        base_matching: PatchBasePathMatching::ExactSpelling,
        repeated_files: PatchRepeatedFilePolicy::Refuse,
        binary_files: PatchBinaryFilePolicy::TreatAsText,
        reapplied_patch: ReappliedPatchPolicy::Refuse,
    };

    /// Strict rules with one syntax for each element.
    pub const EXACT: Self = Self { grammar: PatchGrammar::EXACT, ..Self::STRICT };
}

/// The placement of chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchChunkPlacement {
    /// Finds every unambiguous match; chunks are located together.
    Tolerant,
    /// Lines match exactly; chunks follow one another.
    Strict,
}

/// The comparison of base paths with the paths of the patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchBasePathMatching {
    /// As resolved paths; a base for an untouched path is refused.
    ResolvedPath,
    /// As written; other bases are ignored.
    ExactSpelling,
}

/// The treatment of a file with several sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchRepeatedFilePolicy {
    /// Apply the sections in order.
    ApplyInOrder,
    /// Refuse the patch.
    Refuse,
}

/// The treatment of binary files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchBinaryFilePolicy {
    /// Refuse to patch the content.
    Refuse,
    /// Patch the file if its bytes are valid UTF-8.
    TreatAsText,
}

/// The treatment of a patch that was already applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReappliedPatchPolicy {
    /// Change nothing and report it.
    ReportUnchanged,
    /// Refuse the patch.
    Refuse,
}
