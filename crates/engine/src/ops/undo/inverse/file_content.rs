//! Reverts a recorded change of file content. An undo restores the earlier bytes of a file that is unchanged since the
//! undone entry. An undo merges the earlier text of a changed file with the current text, unless the merge has
//! conflicts.

use stead_path::RelPath;
use stead_text::{
    encoding::{self, Encoding},
    merge::{self, MergeResult},
};

use super::{ChangedFileRevertPolicy, EntryAfterPlan, InversePlanner, RevertSkipReason, RevertStepPlanningResult};
use crate::{
    limits,
    ops::planning::PERMISSION_BITS,
    plan::{CommitExpectation, FileKind, FileModeSource, PlanTimeFileVersion, PlannedChange, PlannedContent},
    tree::{BytesToRead, FileStat},
    version::Version,
};

#[derive(Debug, Clone, Copy)]
pub(super) struct RecordedFileMetadata {
    pub(super) version: Version,
    pub(super) size: u64,
    pub(super) mode: u32,
}

impl InversePlanner<'_> {
    pub(super) fn revert_modification(
        &mut self,
        path: &RelPath,
        before: RecordedFileMetadata,
        after: RecordedFileMetadata,
    ) -> RevertStepPlanningResult {
        let stat = match self.projected_tree.entry_at(path)? {
            EntryAfterPlan::Existing(stat) if stat.kind == FileKind::File => stat,
            EntryAfterPlan::Existing(_) => return Ok(Some(RevertSkipReason::DifferentKind)),
            EntryAfterPlan::Absent => return Ok(Some(RevertSkipReason::AlreadyGone)),
            EntryAfterPlan::Planned(_) => return Ok(Some(RevertSkipReason::ChangedTwice)),
        };
        let seen = self.context.observe_version(path)?;
        let mode = mode_to_restore(before, after, stat);
        if seen.version == before.version && mode == FileModeSource::KeepExisting {
            return Ok(Some(RevertSkipReason::AlreadyReverted));
        }
        if seen.version == before.version {
            self.plan_put(path, seen, PlannedContent::CopyOf(path.clone(), seen), before.version, before.size, mode);
            return Ok(None);
        }
        if seen.version == after.version {
            if self.context.workspace().retained_bytes(path, &before.version)?.is_none() {
                return Ok(Some(RevertSkipReason::VersionNotRetained));
            }
            self.plan_put(path, seen, PlannedContent::Retained(before.version), before.version, before.size, mode);
            return Ok(None);
        }
        match self.policy {
            ChangedFileRevertPolicy::Leave => Ok(Some(RevertSkipReason::Changed)),
            ChangedFileRevertPolicy::Merge => self.revert_by_merge(path, stat, before, after),
        }
    }

    fn revert_by_merge(
        &mut self,
        path: &RelPath,
        stat: FileStat,
        before: RecordedFileMetadata,
        after: RecordedFileMetadata,
    ) -> RevertStepPlanningResult {
        if stat.size.max(before.size).max(after.size) > limits::DIFF_BYTES_MAX {
            return Ok(Some(RevertSkipReason::Changed));
        }
        let workspace = self.context.workspace();
        let current = self.context.read_for_change(path, BytesToRead::Whole { limit_bytes: limits::DIFF_BYTES_MAX })?;
        let (base, theirs) =
            (workspace.retained_bytes(path, &after.version)?, workspace.retained_bytes(path, &before.version)?);
        let (Some(base), Some(theirs)) = (base, theirs) else {
            return Ok(Some(RevertSkipReason::VersionNotRetained));
        };
        let Some((ours, encoding)) = decode_text(&current.bytes) else {
            return Ok(Some(RevertSkipReason::Changed));
        };
        let (Some((base, _)), Some((theirs, _))) = (decode_text(&base), decode_text(&theirs)) else {
            return Ok(Some(RevertSkipReason::Changed));
        };
        let MergeResult::Clean(text) = merge::merge(&base, &ours, &theirs) else {
            return Ok(Some(RevertSkipReason::SameLinesChanged));
        };
        let Ok(bytes) = encoding::encode(&text, encoding) else {
            return Ok(Some(RevertSkipReason::Changed));
        };
        let version = Version::hash_bytes(&bytes);
        if version == current.version {
            return Ok(Some(RevertSkipReason::AlreadyReverted));
        }
        let seen = current.observed();
        let size = bytes.len() as u64;
        self.plan_put(path, seen, PlannedContent::Bytes(bytes), version, size, FileModeSource::KeepExisting);
        self.inverse.merged.push(path.clone());
        Ok(None)
    }

    fn plan_put(
        &mut self,
        path: &RelPath,
        seen: PlanTimeFileVersion,
        content: PlannedContent,
        version: Version,
        size: u64,
        mode: FileModeSource,
    ) {
        self.projected_tree.mark_created(path, FileKind::File);
        let (path, expectation) = (path.clone(), CommitExpectation::File(seen));
        self.inverse.changes.push(PlannedChange::Put { path, expectation, content, version, size, mode });
    }
}

/// An undo restores permission bits only if the undone entry changed them and nobody changed them since.
fn mode_to_restore(before: RecordedFileMetadata, after: RecordedFileMetadata, stat: FileStat) -> FileModeSource {
    let (earlier, later) = (before.mode & PERMISSION_BITS, after.mode & PERMISSION_BITS);
    if earlier != later && stat.mode & PERMISSION_BITS == later {
        FileModeSource::Set(earlier)
    } else {
        FileModeSource::KeepExisting
    }
}

fn decode_text(bytes: &[u8]) -> Option<(String, Encoding)> {
    let encoding = encoding::detect_encoding(bytes)?;
    Some((encoding::decode(bytes, encoding).ok()?.into_owned(), encoding))
}
