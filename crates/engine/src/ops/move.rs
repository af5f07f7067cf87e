//! `move` renames a file, link or tree atomically. `move` renames a symbolic link itself and not the link's target.
//! `move` lets only a file replace another file, and only if `overwrite` is set. The content of a replaced file is
//! retained.

use serde::{Deserialize, Serialize};
use stead_path::RelPath;

use super::{file_kind_name, planning};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    next_step::NextStep,
    operation::{
        Operation, OperationPlanningResult, PathAccessRequest, PlanResult, RequestedAccessKind, ResolvedTarget,
    },
    outcome::{FileShownInOutcome, OperationOutcome, RecordedEntryFields, SavedAndUnsavedVersion},
    plan::{CommitExpectation, FileKind, Plan, PlanTimeFileVersion, PlannedChange, TreeSummary},
    tree::{FileStat, FinalSymlink},
    version::Version,
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveArgs {
    pub from: String,
    pub to: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overwrite: bool,
    #[serde(skip)]
    pub trash_overwritten: bool,
    #[serde(skip)]
    pub files_only: bool,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct MoveOutcome {
    pub from: RelPath,
    pub path: RelPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rev: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<SavedAndUnsavedVersion>,
    pub changed: bool,
    #[serde(flatten)]
    pub moved: Option<MoveOutcomeTreeFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trash: Option<String>,
    #[serde(flatten)]
    pub recorded: Option<RecordedEntryFields>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct MoveOutcomeTreeFields {
    pub replaced: bool,
    pub files: u64,
    pub bytes: u64,
}

impl OperationOutcome for MoveOutcome {
    fn main_file(&mut self) -> Option<FileShownInOutcome<'_>> {
        let version = Some((self.version?, self.rev.as_mut()));
        Some(FileShownInOutcome { path: &self.path, version, unsaved: &mut self.unsaved })
    }
}

impl Operation for MoveArgs {
    type Paths = (PathAccessRequest, PathAccessRequest);
    type Outcome = MoveOutcome;

    fn resolve(&self, _context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        let from = PathAccessRequest::from_argument(&self.from, RequestedAccessKind::Remove, FinalSymlink::Keep)
            .including_subtree();
        let to = PathAccessRequest::from_argument(&self.to, RequestedAccessKind::Write, FinalSymlink::Keep);
        Ok((from.with_base(self.base.as_deref())?, to))
    }

    fn plan(
        &self,
        context: &CallContext<'_>,
        (source, destination): (&ResolvedTarget, &ResolvedTarget),
    ) -> PlanResult<Self> {
        let stat = planning::require_present(source)?;
        if self.files_only {
            planning::require_file_to_move(source, stat)?;
        }
        let (from, to) = (source.path.clone(), destination.path.clone());
        if from == to && self.trash_overwritten {
            // The source is also the destination, so the moved file itself would go to the trash.
            return Err(Error::new(ErrorKind::Exists, format!("{to} is both source and destination"))
                .with_next_step("choose another path")
                .with_path(to.to_string())
                .with_reason("same_place")
                .with_file_type(file_kind_name(stat.kind)));
        }
        if from == to {
            return unchanged_outcome(context, source, stat);
        }
        if to.is_within(&from) && stat.kind == FileKind::Directory {
            return Err(Error::new(ErrorKind::InvalidPath, format!("{from} cannot be moved into itself"))
                .with_next_step("choose a destination outside of it"));
        }
        let destination_state = self.expect_destination(context, stat, destination)?;
        let expectation = planning::expectation_at(context, &from, stat, source.observed)?;
        let tree = planning::count_tree(context, &from, stat)?;
        let moved = planning::expected_version(&expectation);
        let replaces = destination_state != CommitExpectation::Absent;
        let mut changes = planning::create_missing_parents(context, &to)?;
        let replaced = match (destination_state, destination.stat) {
            (CommitExpectation::File(observed), Some(existing)) if self.trash_overwritten => {
                changes.push(move_to_trash(context, &to, observed, existing));
                CommitExpectation::Absent
            }
            (state, _) => state,
        };
        changes.push(PlannedChange::Move { from: from.clone(), to: to.clone(), expectation, replaced, tree });
        Ok(OperationPlanningResult::Files {
            plan: Plan::new(changes),
            build_outcome: Box::new(move |receipt| MoveOutcome {
                from,
                path: to,
                version: moved.map(|observed| observed.version),
                rev: Some(format!("r{}", receipt.entry)),
                changed: true,
                moved: Some(MoveOutcomeTreeFields { replaced: replaces, files: tree.files, bytes: tree.bytes }),
                trash: receipt.trash_ids.first().cloned(),
                recorded: Some(receipt.into()),
                ..MoveOutcome::default()
            }),
        })
    }
}

pub(super) fn move_to_trash(
    context: &CallContext<'_>,
    path: &RelPath,
    observed: PlanTimeFileVersion,
    existing: FileStat,
) -> PlannedChange {
    let tree = TreeSummary { kind: FileKind::File, files: 1, directories: 0, bytes: existing.size };
    let retain_until_ms = planning::trash_deadline_ms(context);
    PlannedChange::Remove { path: path.clone(), expectation: CommitExpectation::File(observed), retain_until_ms, tree }
}

impl MoveArgs {
    fn expect_destination(
        &self,
        context: &CallContext<'_>,
        stat: FileStat,
        destination: &ResolvedTarget,
    ) -> Result<CommitExpectation, Error> {
        let Some(existing) = destination.stat else { return Ok(CommitExpectation::Absent) };
        require_replaceable(&destination.path, stat.kind, existing.kind, self.overwrite.into())?;
        Ok(CommitExpectation::File(context.observe_version(&destination.path)?))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverwriteAllowed {
    No,
    Yes,
}

impl From<bool> for OverwriteAllowed {
    fn from(requested: bool) -> Self {
        if requested { Self::Yes } else { Self::No }
    }
}

/// Fails unless a file replaces a file and `overwrite` allows the replacement.
pub(crate) fn require_replaceable(
    path: &RelPath,
    new: FileKind,
    old: FileKind,
    overwrite: OverwriteAllowed,
) -> Result<(), Error> {
    let exists = |next_step: NextStep| {
        let error = Error::new(ErrorKind::Exists, format!("{path} already exists")).with_next_step(next_step);
        Err(error.with_path(path.to_string()).with_file_type(file_kind_name(old)))
    };
    match (new, old, overwrite) {
        (FileKind::File, FileKind::File, OverwriteAllowed::Yes) => Ok(()),
        (FileKind::File, FileKind::File, OverwriteAllowed::No) => {
            exists(NextStep::repeat_with_flag("overwrite", "replace it").or("choose another path"))
        }
        (_, FileKind::Directory, _) => exists("pass the complete new path, including the new name".into()),
        (_, FileKind::File | FileKind::Link | FileKind::Special, _) => {
            exists("choose another path; only a file can replace a file".into())
        }
    }
}

fn unchanged_outcome(
    context: &CallContext<'_>,
    source: &ResolvedTarget,
    stat: FileStat,
) -> Result<OperationPlanningResult<MoveOutcome>, Error> {
    let observed = planning::expected_version(&planning::expectation_at(context, &source.path, stat, source.observed)?);
    let outcome = MoveOutcome {
        from: source.path.clone(),
        path: source.path.clone(),
        version: observed.map(|observed| observed.version),
        rev: observed.map(|observed| context.revision_name(&source.path, &observed.version)),
        ..MoveOutcome::default()
    };
    Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
}
