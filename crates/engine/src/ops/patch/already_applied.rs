//! Detects sections that were applied before, for example by a repeated call whose response was lost. The proof is
//! the current content, and the journal for removed files. Never applies to paths that the patch itself touched.

use stead_path::RelPath;
use stead_text::patch::{PatchChunk, find_already_applied};

use super::{PatchApplier, PatchReportKind, files, report::PatchReportRow};
use crate::{
    call_options::ReappliedPatchPolicy,
    errors::Error,
    operation::ResolvedTarget,
    ops::older_revisions::{RemovalOrMove, find_removal_or_move},
    plan::FileKind,
};

impl PatchApplier<'_, '_> {
    fn detects_reapplied(&self) -> bool {
        match self.context.options.patch_options.reapplied_patch {
            ReappliedPatchPolicy::ReportUnchanged => true,
            ReappliedPatchPolicy::Refuse => false,
        }
    }

    pub(super) fn is_already_applied(
        &self,
        path: &RelPath,
        bytes: &[u8],
        chunks: &[PatchChunk],
    ) -> Result<bool, Error> {
        if !self.detects_reapplied() || !self.files.is_untouched(path) {
            return Ok(false);
        }
        let (text, _) = files::decode_file_text(path, bytes, self.context.options.patch_options.binary_files)?;
        let name = path.to_string();
        Ok(find_already_applied(&text, chunks, &self.chunk_rules(&name)).is_some())
    }

    /// The row of a file that already has the content to add.
    pub(super) fn already_added(
        &mut self,
        content: &str,
        target: &ResolvedTarget,
    ) -> Result<Option<PatchReportRow>, Error> {
        let path = &target.path;
        let is_same_size = target.stat.is_some_and(|stat| stat.size == content.len() as u64);
        if !self.detects_reapplied()
            || !is_same_size
            || self.files.kind(path) != Some(FileKind::File)
            || !self.files.is_untouched(path)
            || self.files.bytes(path)? != content.as_bytes()
        {
            return Ok(None);
        }
        Ok(Some(PatchReportRow::already_applied(PatchReportKind::Add, path).with_bytes(content.as_bytes())))
    }

    /// Whether the file to delete was already removed.
    pub(super) fn already_removed(&self, target: &ResolvedTarget) -> bool {
        self.detects_reapplied()
            && self.files.is_untouched(&target.path)
            && matches!(find_removal_or_move(self.context, &target.path), Some(RemovalOrMove::Removed))
    }

    /// The row of a file that already has its new path and content.
    pub(super) fn already_moved(
        &mut self,
        chunks: &[PatchChunk],
        source: &ResolvedTarget,
        destination: &ResolvedTarget,
    ) -> Result<Option<PatchReportRow>, Error> {
        let is_gone = self.files.kind(&source.path).is_none() && self.files.is_untouched(&source.path);
        if !self.detects_reapplied() || !is_gone || self.files.kind(&destination.path) != Some(FileKind::File) {
            return Ok(None);
        }
        let moved = match find_removal_or_move(self.context, &source.path) {
            Some(RemovalOrMove::MovedTo(to)) => to == destination.path,
            // A move with chunks writes the new file and removes the old one.
            Some(RemovalOrMove::Removed) => !chunks.is_empty(),
            None => false,
        };
        if !moved || !self.files.is_untouched(&destination.path) {
            return Ok(None);
        }
        let bytes = self.files.bytes(&destination.path)?;
        if !chunks.is_empty() && !self.is_already_applied(&destination.path, &bytes, chunks)? {
            return Ok(None);
        }
        Ok(Some(
            PatchReportRow::already_applied(PatchReportKind::Move, &source.path)
                .with_destination(&destination.path)
                .with_bytes(&bytes),
        ))
    }
}
