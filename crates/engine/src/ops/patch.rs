//! `patch`: changes many files atomically. Parses the patch, resolves and authorizes every path and places every
//! chunk, in memory and in order, before it builds one plan. Each section sees the results of earlier ones. Removed
//! files go to the trash.

mod already_applied;
mod base_versions;
mod chunk_errors;
mod errors;
mod files;
mod report;
mod suggest_path;

use std::collections::BTreeMap;

use serde::Deserialize;
use stead_text::patch::{FilePatch, PatchChunk, PatchRules, PatchSectionKind, PatchedText, apply_chunks, parse_patch};

use self::{
    base_versions::PatchBases,
    errors::PatchSectionRef,
    files::PatchFiles,
    report::{PatchReport, PatchReportKind, PatchReportRow},
};
use super::{r#move::Overwrite, older_revisions::CurrentFileText, planning};
use crate::{
    authorization,
    call_context::CallContext,
    call_options::{MissingParentPolicy, PatchChunkPlacement, PatchRepeatedFilePolicy},
    errors::{Error, ErrorKind},
    limits,
    operation::{Operation, PathAccess, PlannedEffect, RequestedPath, ResolvedTarget},
    plan::{FileKind, Plan},
    version::Version,
    workspace::FinalSymlink,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatchArgs {
    patch: String,
    #[serde(default)]
    base: BTreeMap<String, String>,
    #[serde(default)]
    overwrite: bool,
    #[serde(default)]
    dry_run: bool,
}

impl Operation for PatchArgs {
    fn requested_paths(&self, context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        let sections = self.parse_sections(context)?;
        for (number, section) in sections.iter().enumerate() {
            for written in base_versions::written_paths(section) {
                // Checked here so that the error names the section; the pipeline resolves the path again.
                base_versions::resolve_section_path(context, written).map_err(|error| {
                    // Errors never contain absolute paths, not even one that the caller wrote.
                    let relative = !written.starts_with('/');
                    let error = if relative { error.with_detail("path", written) } else { error };
                    PatchSectionRef::for_section(number, section).with_section(error)
                })?;
            }
        }
        Ok(sections.iter().flat_map(section_requested_paths).collect())
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let sections = self.parse_sections(context)?;
        let versions = PatchBases::new(context, &self.base, &sections)?;
        let mut work = PatchApplier {
            files: PatchFiles::new(context),
            context,
            bases: &versions,
            overwrite: self.overwrite.into(),
            touched: Vec::new(),
        };
        let mut rows = Vec::with_capacity(sections.len());
        let mut left = targets;
        for (number, section) in sections.iter().enumerate() {
            let (own, rest) = left.split_at(section_requested_paths(section).len());
            left = rest;
            context.control.check()?;
            let at = PatchSectionRef::for_section(number, section);
            rows.push(work.apply_section(&section.kind, own, at).map_err(|error| at.with_section(error))?);
        }
        let changes = work.files.planned_changes().map_err(errors::with_nothing_written)?;
        let plan = Plan::new(changes);
        let before: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].is_already_applied()).collect();
        if !before.is_empty() && !plan.is_empty() {
            return Err(errors::partly_applied_error(&sections, &before));
        }
        let report = PatchReport::new(context, rows, &plan);
        if self.dry_run {
            // A dry run passes the same authorization as the real call.
            authorization::check_plan(context, &plan)?;
            return Ok(PlannedEffect::Preview(report.preview_outcome()));
        }
        if plan.is_empty() {
            return Ok(PlannedEffect::Read { outcome: report.unchanged_outcome(), bytes: 0 });
        }
        Ok(PlannedEffect::Files { plan, build_outcome: Box::new(move |receipt| report.committed_outcome(receipt)) })
    }
}

impl PatchArgs {
    fn parse_sections(&self, context: &CallContext<'_>) -> Result<Vec<FilePatch>, Error> {
        if self.patch.len() as u64 > limits::WRITE_BYTES_MAX {
            return Err(Error::new(ErrorKind::TooLarge, "the patch is too large")
                .with_next_step("split it")
                .with_detail("limit_bytes", limits::WRITE_BYTES_MAX));
        }
        let patch = parse_patch(&self.patch, context.options.patch_options.grammar)
            .map_err(|error| errors::malformed_patch_error(&error))?;
        if patch.sections.len() > limits::PATCH_SECTIONS_MAX {
            return Err(Error::new(ErrorKind::TooMany, format!("the patch names {} files", patch.sections.len()))
                .with_next_step(format!("name at most {} in one patch", limits::PATCH_SECTIONS_MAX)));
        }
        Ok(patch.sections)
    }
}

fn section_requested_paths(section: &FilePatch) -> Vec<RequestedPath> {
    match &section.kind {
        PatchSectionKind::Add { path, .. } | PatchSectionKind::Update { path, .. } => {
            vec![RequestedPath::write(path)]
        }
        PatchSectionKind::Delete { path, .. } => {
            vec![RequestedPath::from_argument(path, PathAccess::Remove, FinalSymlink::Keep)]
        }
        PatchSectionKind::Move { from, to, .. } => {
            vec![
                RequestedPath::from_argument(from, PathAccess::Remove, FinalSymlink::Keep),
                RequestedPath::from_argument(to, PathAccess::Write, FinalSymlink::Keep),
            ]
        }
    }
}

struct PatchApplier<'v, 'w> {
    context: &'v CallContext<'w>,
    files: PatchFiles<'v, 'w>,
    bases: &'v PatchBases,
    overwrite: Overwrite,
    /// Paths of the sections so far.
    touched: Vec<stead_path::RelPath>,
}

impl PatchApplier<'_, '_> {
    fn apply_section(
        &mut self,
        action: &PatchSectionKind,
        targets: &[ResolvedTarget],
        at: PatchSectionRef,
    ) -> Result<PatchReportRow, Error> {
        for target in targets {
            self.files.track(target);
        }
        if let (PatchSectionKind::Move { from, .. }, [source, destination]) = (action, targets)
            && source.path == destination.path
        {
            return Err(errors::same_path_error(from));
        }
        self.refuse_repeated(targets)?;
        match (action, targets) {
            (PatchSectionKind::Add { path, content }, [target]) => self.add_file(path, content, target),
            (PatchSectionKind::Update { path, chunks }, [target]) => self.update_file(path, chunks, target, at),
            (PatchSectionKind::Delete { path, chunks }, [target]) => self.delete_file(path, chunks, target, at),
            (PatchSectionKind::Move { from, to, chunks }, [source, destination]) => {
                self.move_file((from, to), chunks, source, destination, at)
            }
            (
                PatchSectionKind::Add { .. }
                | PatchSectionKind::Update { .. }
                | PatchSectionKind::Delete { .. }
                | PatchSectionKind::Move { .. },
                _,
            ) => Err(Error::new(ErrorKind::BadRequest, "a section names the wrong number of paths")),
        }
    }

    fn refuse_repeated(&mut self, targets: &[ResolvedTarget]) -> Result<(), Error> {
        for target in targets {
            if self.context.options.patch_options.repeated_files == PatchRepeatedFilePolicy::Refuse
                && self.touched.contains(&target.path)
            {
                return Err(errors::repeated_file_error(&target.path));
            }
        }
        self.touched.extend(targets.iter().map(|target| target.path.clone()));
        Ok(())
    }

    fn add_file(&mut self, written: &str, content: &str, target: &ResolvedTarget) -> Result<PatchReportRow, Error> {
        if let Some(row) = self.already_added(content, target)? {
            return Ok(row);
        }
        if let Some(top) = self.files.kind(&target.path) {
            errors::require_replaceable(&target.path, top, self.overwrite)?;
        } else {
            self.bases.check_absent_base(written, target)?;
            self.check_parent_exists(target)?;
        }
        let before = self.files.bytes_if_requested(&target.path)?;
        let row = PatchReportRow::new(PatchReportKind::Add, &target.path)
            .with_line_counts(stead_text::lines::count_lines(content.as_bytes()), 0);
        self.files.put_bytes(&target.path, content.as_bytes().to_vec());
        Ok(row.with_bytes(content.as_bytes()).with_before_after(self.context, before, Some(content.as_bytes())))
    }

    fn update_file(
        &mut self,
        written: &str,
        chunks: &[PatchChunk],
        target: &ResolvedTarget,
        at: PatchSectionRef,
    ) -> Result<PatchReportRow, Error> {
        self.require_file(target)?;
        self.bases.check_base(&mut self.files, written, target)?;
        let before = self.files.bytes(&target.path)?;
        let (bytes, applied) = match self.apply_chunks(&target.path, &before, chunks, at) {
            Ok(made) => made,
            Err(_) if self.is_already_applied(&target.path, &before, chunks)? => {
                return Ok(PatchReportRow::already_applied(PatchReportKind::Update, &target.path).with_bytes(&before));
            }
            Err(error) => return Err(error),
        };
        let row = PatchReportRow::new(PatchReportKind::Update, &target.path).with_chunks(&applied).with_bytes(&bytes);
        let row = row.with_before_after(self.context, Some(before), Some(&bytes));
        self.files.put_bytes(&target.path, bytes);
        Ok(row)
    }

    fn delete_file(
        &mut self,
        written: &str,
        chunks: &[PatchChunk],
        target: &ResolvedTarget,
        at: PatchSectionRef,
    ) -> Result<PatchReportRow, Error> {
        if self.files.kind(&target.path).is_none() && self.already_removed(target) {
            return Ok(PatchReportRow::already_applied(PatchReportKind::Delete, &target.path));
        }
        let top = self.require_existing(target)?;
        if top == FileKind::Directory {
            return Err(errors::is_directory_error(&target.path));
        }
        if top == FileKind::File {
            self.bases.check_base(&mut self.files, written, target)?;
        }
        let mut row = PatchReportRow::new(PatchReportKind::Delete, &target.path);
        if !chunks.is_empty() {
            self.require_file(target)?;
            let before = self.files.bytes(&target.path)?;
            let (bytes, applied) = self.apply_chunks(&target.path, &before, chunks, at)?;
            if !bytes.is_empty() {
                return Err(errors::delete_mismatch_error(&target.path));
            }
            row = row.with_chunks(&applied);
        }
        let before = if top == FileKind::File { self.files.bytes_if_requested(&target.path)? } else { None };
        self.files.remove_file(&target.path);
        Ok(row.with_before_after(self.context, before, None))
    }

    fn move_file(
        &mut self,
        (written, to): (&str, &str),
        chunks: &[PatchChunk],
        source: &ResolvedTarget,
        destination: &ResolvedTarget,
        at: PatchSectionRef,
    ) -> Result<PatchReportRow, Error> {
        if let Some(row) = self.already_moved(chunks, source, destination)? {
            return Ok(row);
        }
        let top = self.require_existing(source)?;
        if top == FileKind::Directory {
            return Err(errors::is_directory_error(&source.path));
        }
        if top == FileKind::File {
            self.bases.check_base(&mut self.files, written, source)?;
        }
        match self.files.kind(&destination.path) {
            Some(over) => errors::require_replaceable(&destination.path, over, self.overwrite)?,
            None => {
                self.bases.check_absent_base(to, destination)?;
                self.check_parent_exists(destination)?;
            }
        }
        let mut row = PatchReportRow::new(PatchReportKind::Move, &source.path).with_destination(&destination.path);
        let mut before = if top == FileKind::File { self.files.bytes_if_requested(&source.path)? } else { None };
        let mut after = before.clone();
        let mut changed = None;
        if !chunks.is_empty() {
            self.require_file(source)?;
            let old = self.files.bytes(&source.path)?;
            let (bytes, applied) = self.apply_chunks(&source.path, &old, chunks, at)?;
            row = row.with_chunks(&applied);
            (before, after) = (Some(old.clone()), Some(bytes.clone()));
            changed = (bytes != old).then_some(bytes);
        }
        self.files.rename_file(&source.path, &destination.path);
        if let Some(bytes) = changed {
            row = row.with_bytes(&bytes);
            self.files.put_bytes(&destination.path, bytes);
        } else if top == FileKind::File {
            row = row.with_version(self.files.version(&destination.path)?);
        }
        Ok(row.with_before_after(self.context, before, after.as_deref()))
    }

    /// Rejects a new path without a parent directory, if the call options require one.
    fn check_parent_exists(&self, target: &ResolvedTarget) -> Result<(), Error> {
        match self.context.options.missing_parents {
            MissingParentPolicy::Create => Ok(()),
            MissingParentPolicy::Refuse => planning::create_missing_parents(self.context, &target.path)
                .map(drop)
                .map_err(|error| error.with_detail("path", target.path.to_string())),
        }
    }

    /// The kind of an existing entry, or an error with a suggested path.
    fn require_existing(&self, target: &ResolvedTarget) -> Result<FileKind, Error> {
        self.files.kind(&target.path).ok_or_else(|| suggest_path::missing_file_error(self.context, &target.path))
    }

    /// Requires a regular file.
    fn require_file(&self, target: &ResolvedTarget) -> Result<(), Error> {
        match self.require_existing(target)? {
            FileKind::File => Ok(()),
            FileKind::Directory => Err(errors::is_directory_error(&target.path)),
            FileKind::Link | FileKind::Special => Err(errors::not_regular_error(&target.path)),
        }
    }

    fn chunk_rules<'n>(&self, name: &'n str) -> PatchRules<'n> {
        match self.context.options.patch_options.chunk_placement {
            PatchChunkPlacement::Tolerant => PatchRules::tolerant(name),
            PatchChunkPlacement::Strict => PatchRules::strict(name),
        }
    }

    /// Applies chunks to the bytes of a file.
    fn apply_chunks(
        &self,
        path: &stead_path::RelPath,
        before: &[u8],
        chunks: &[PatchChunk],
        at: PatchSectionRef,
    ) -> Result<(Vec<u8>, PatchedText), Error> {
        let (text, encoding) = files::decode_file_text(path, before, self.context.options.patch_options.binary_files)?;
        let name = path.to_string();
        let rules = self.chunk_rules(&name);
        let applied = apply_chunks(&text, chunks, &rules).map_err(|error| {
            let now = CurrentFileText { path, version: Version::hash_bytes(before), text: &text };
            chunk_errors::chunk_not_placed_error(self.context, now, &error, at)
        })?;
        let bytes = files::encode_file_text(path, &applied.text, encoding)?;
        Ok((bytes, applied))
    }
}
