//! The outcome of `patch`, after a commit or for a dry run, with one row per section in the order of the patch.

use serde::{Serialize, Serializer};
use stead_path::RelPath;
use stead_text::{
    locate::FuzzyTextMatchPass,
    patch::{FinalNewlineChange, PatchChunkMatch, PatchChunkRepair, PatchPlacementBasis, PatchedText},
};

use crate::{
    call_context::CallContext,
    engine::BeforeAfterBytes,
    outcome::{FileShownInOutcome, OperationOutcome, RecordedEntryFields, SavedAndUnsavedVersion, UtcTime, is_default},
    plan::{Plan, PlannedChange},
    version::Version,
    workspace::CommitReceipt,
};

#[derive(Debug, Serialize, JsonSchema)]
pub struct PatchOutcome {
    pub files: Vec<PatchedFileRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<bool>,
    #[serde(skip_serializing_if = "is_default")]
    pub dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recoverable_until: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rev: Option<String>,
    #[serde(flatten)]
    pub recorded: Option<RecordedEntryFields>,
}

/// The change of one section of a patch.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PatchedFileRow {
    pub operation: PatchedFileChangeKind,
    pub path: RelPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<RelPath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rev: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<SavedAndUnsavedVersion>,
    pub added: usize,
    pub removed: usize,
    pub chunks: usize,
    /// The chunks that matched inexactly or have no context.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matched: Vec<InexactPatchChunkRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_newline: Option<PatchedFinalNewlineChange>,
    #[serde(skip_serializing_if = "is_default")]
    pub already_applied: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trash: Option<String>,
    #[serde(skip)]
    pub before_after: Option<BeforeAfterBytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchedFileChangeKind {
    Add,
    Update,
    Delete,
    Move,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatchedFinalNewlineChange {
    Added,
    Dropped,
}

/// How a chunk of a patch was placed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InexactPatchChunkRow {
    pub chunk: usize,
    pub line: usize,
    /// The pass that found the lines of the chunk; `None` for a chunk without context lines and without an anchor.
    #[serde(serialize_with = "serialize_chunk_placement")]
    #[schemars(with = "String")]
    pub by: Option<FuzzyTextMatchPass>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reading: Option<&'static str>,
}

impl InexactPatchChunkRow {
    fn new((chunk, matched): (usize, &PatchChunkMatch)) -> Option<Self> {
        let by = (matched.basis != PatchPlacementBasis::Default).then_some(matched.pass);
        let is_exact = by.is_some_and(|pass| pass <= FuzzyTextMatchPass::LineEndings) && matched.repair.is_none();
        let reading = matched.repair.map(PatchChunkRepair::name);
        (!is_exact).then_some(Self { chunk, line: matched.line, by, reading })
    }
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn serialize_chunk_placement<S: Serializer>(by: &Option<FuzzyTextMatchPass>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(by.map_or("no_context", FuzzyTextMatchPass::name))
}

impl PatchedFileRow {
    pub(super) fn new(operation: PatchedFileChangeKind, path: &RelPath) -> Self {
        Self {
            operation,
            path: path.clone(),
            to: None,
            version: None,
            rev: None,
            unsaved: None,
            added: 0,
            removed: 0,
            chunks: 0,
            matched: Vec::new(),
            final_newline: None,
            already_applied: false,
            trash: None,
            before_after: None,
        }
    }

    pub(super) fn already_applied(operation: PatchedFileChangeKind, path: &RelPath) -> Self {
        Self { already_applied: true, ..Self::new(operation, path) }
    }

    pub(super) fn with_bytes(self, bytes: &[u8]) -> Self {
        Self { version: Some(Version::hash_bytes(bytes)), ..self }
    }

    pub(super) fn with_chunks(self, applied: &PatchedText) -> Self {
        Self {
            added: applied.added,
            removed: applied.removed,
            chunks: applied.matches.len(),
            matched: applied.matches.iter().enumerate().filter_map(InexactPatchChunkRow::new).collect(),
            final_newline: match applied.final_newline {
                FinalNewlineChange::Unchanged => None,
                FinalNewlineChange::TerminatorAdded => Some(PatchedFinalNewlineChange::Added),
                FinalNewlineChange::TerminatorDropped => Some(PatchedFinalNewlineChange::Dropped),
            },
            ..self
        }
    }

    pub(super) fn with_before_after(
        mut self,
        context: &CallContext<'_>,
        before: Option<Vec<u8>>,
        after: Option<&[u8]>,
    ) -> Self {
        let path = self.to.as_ref().unwrap_or(&self.path);
        self.before_after = context.before_after(path, before.as_deref(), after);
        self
    }
}

impl PatchOutcome {
    pub(super) fn preview(files: Vec<PatchedFileRow>) -> Self {
        Self { files, changed: None, dry_run: true, recoverable_until: None, rev: None, recorded: None }
    }

    pub(super) fn unchanged(context: &CallContext<'_>, mut files: Vec<PatchedFileRow>) -> Self {
        for row in &mut files {
            row.rev = row.version.map(|version| context.revision_name(&row.path, &version));
        }
        Self { changed: Some(false), dry_run: false, ..Self::preview(files) }
    }

    pub(super) fn committed(
        mut files: Vec<PatchedFileRow>,
        removals: &[PatchedFileRemoval],
        receipt: &CommitReceipt,
    ) -> Self {
        let rev = format!("r{}", receipt.entry);
        for row in &mut files {
            row.rev = row.version.map(|_| rev.clone());
            if row.operation == PatchedFileChangeKind::Delete {
                let at = removals.iter().position(|removal| removal.path == row.path);
                row.trash = at.and_then(|at| receipt.trash_ids.get(at)).cloned();
            }
        }
        Self {
            files,
            changed: Some(true),
            dry_run: false,
            recoverable_until: removals.last().map(|removal| removal.recoverable_until),
            rev: Some(rev),
            recorded: Some(receipt.into()),
        }
    }
}

impl OperationOutcome for PatchOutcome {
    fn take_before_after(&mut self) -> Vec<BeforeAfterBytes> {
        self.files.iter_mut().filter_map(|row| row.before_after.take()).collect()
    }

    fn shown_files(&mut self) -> Vec<FileShownInOutcome<'_>> {
        let rows = self.files.iter_mut();
        rows.filter_map(|PatchedFileRow { path, version, rev, unsaved, .. }| {
            Some(FileShownInOutcome { path, version: Some(((*version)?, rev.as_mut())), unsaved })
        })
        .collect()
    }
}

/// A removal of a patch's plan; the commit gives the trash items in the same order.
pub(super) struct PatchedFileRemoval {
    path: RelPath,
    recoverable_until: UtcTime,
}

pub(super) fn planned_removals(plan: &Plan) -> Vec<PatchedFileRemoval> {
    let removal = |change: &PlannedChange| {
        let PlannedChange::Remove { path, retain_until_ms, .. } = change else { return None };
        Some(PatchedFileRemoval { path: path.clone(), recoverable_until: UtcTime { unix_ms: *retain_until_ms } })
    };
    plan.changes.iter().filter_map(removal).collect()
}
