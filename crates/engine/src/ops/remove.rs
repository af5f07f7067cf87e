//! `remove` moves a file, link or tree to the trash of the caller, where the item can be restored until it expires.
//! `restore` moves a trash item back to its old path or to another free path. `restore` never overwrites a file: it
//! fails or, with `trash_existing`, trashes the existing file. `restore` authorizes the
//! recorded path of a trash item like a path that the caller gave.

use serde::{Deserialize, Serialize};
use stead_journal::{JournalEntryRelation, PathState};
use stead_path::RelPath;

use crate::{
    call_context::CallContext,
    call_options::BeforeAfterContentInclusion,
    engine::BeforeAfterBytes,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{
        Operation, OperationPlanningResult, PathAccessRequest, PlanResult, RequestedAccessKind, ResolvedTarget,
        ValueForPlan,
    },
    ops::{
        HistoryArgs, file_kind_name,
        r#move::{self, OverwriteAllowed},
        planning,
        text_pages::{format_iso_utc, shorten_for_error},
    },
    outcome::{OperationOutcome, RecordedEntryFields, UtcTime},
    plan::{FileKind, Plan, PlannedChange},
    tree::{BytesToRead, FileStat, FinalSymlink},
    version::Version,
    workspace::TrashItem,
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveArgs {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recursive: bool,
    #[serde(skip)]
    pub files_only: bool,
    /// The removed entry does not stay in the trash.
    #[serde(skip)]
    pub expires_at_once: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct RemoveOutcome {
    pub path: RelPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trash: Option<String>,
    pub recoverable_until: UtcTime,
    pub files: u64,
    pub bytes: u64,
    #[serde(flatten)]
    pub recorded: RecordedEntryFields,
    #[serde(skip)]
    pub before_after: Option<BeforeAfterBytes>,
}

impl OperationOutcome for RemoveOutcome {
    fn take_before_after(&mut self) -> Vec<BeforeAfterBytes> {
        self.before_after.take().into_iter().collect()
    }
}

impl Operation for RemoveArgs {
    type Paths = PathAccessRequest;
    type Outcome = RemoveOutcome;

    fn resolve(&self, _context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        let request = PathAccessRequest::from_argument(&self.path, RequestedAccessKind::Remove, FinalSymlink::Keep)
            .including_subtree();
        request.with_base(self.base.as_deref())
    }

    fn plan(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        let stat = planning::require_present(target)?;
        let path = target.path.clone();
        if stat.kind == FileKind::Directory && self.files_only {
            return Err(Error::new(ErrorKind::IsDirectory, format!("{path} is a directory"))
                .with_next_step("this call can remove only files"));
        }
        if stat.kind == FileKind::Directory && !self.recursive && !context.workspace().list(&path)?.is_empty() {
            return Err(Error::new(ErrorKind::NotEmpty, format!("{path} is not empty"))
                .with_next_step(NextStep::repeat_with_flag("recursive", "remove it with its content")));
        }
        let expectation = planning::expectation_at(context, &path, stat, target.observed)?;
        let tree = planning::count_tree(context, &path, stat)?;
        let retain_until_ms =
            if self.expires_at_once { context.workspace().now_ms() } else { planning::trash_deadline_ms(context) };
        let before_after = bytes_before(context, target, stat)?;
        let removed = path.clone();
        let plan = Plan::new(vec![PlannedChange::Remove { path, expectation, retain_until_ms, tree }]);
        Ok(OperationPlanningResult::Files {
            plan,
            build_outcome: Box::new(move |receipt| RemoveOutcome {
                path: removed,
                trash: receipt.trash_ids.first().cloned(),
                recoverable_until: UtcTime { unix_ms: retain_until_ms },
                files: tree.files,
                bytes: tree.bytes,
                recorded: receipt.into(),
                before_after,
            }),
        })
    }
}

fn bytes_before(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    stat: FileStat,
) -> Result<Option<BeforeAfterBytes>, Error> {
    if context.options.before_after == BeforeAfterContentInclusion::Omit
        || stat.kind != FileKind::File
        || stat.size > limits::DIFF_BYTES_MAX
    {
        return Ok(None);
    }
    let file = context.read(&target.path, BytesToRead::Whole { limit_bytes: limits::DIFF_BYTES_MAX })?;
    Ok(context.before_after(&target.path, Some(&file.bytes), None))
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreFromTrashArgs {
    pub trash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(skip)]
    pub trash_existing: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct RestoreFromTrashOutcome {
    pub path: RelPath,
    pub trash: String,
    pub from: RelPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    pub rev: String,
    pub files: u64,
    pub bytes: u64,
    /// The trash id of the file that the restored item replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<String>,
    #[serde(flatten)]
    pub recorded: RecordedEntryFields,
}

impl OperationOutcome for RestoreFromTrashOutcome {}

impl Operation for RestoreFromTrashArgs {
    type Paths = (ValueForPlan<TrashItem>, PathAccessRequest);
    type Outcome = RestoreFromTrashOutcome;

    fn resolve(&self, context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        let item = self.find_trash_item(context)?;
        let destination = match &self.to {
            Some(to) => PathAccessRequest::from_argument(to, RequestedAccessKind::Write, FinalSymlink::Keep),
            None => PathAccessRequest::from_recorded_path(item.path.clone(), RequestedAccessKind::Write),
        };
        Ok((ValueForPlan(item), destination))
    }

    fn plan(&self, context: &CallContext<'_>, (item, target): (TrashItem, &ResolvedTarget)) -> PlanResult<Self> {
        let path = target.path.clone();
        let mut changes = planning::create_missing_parents(context, &path)?;
        if let Some(existing) = target.stat {
            if !self.trash_existing {
                return Err(Error::new(ErrorKind::Exists, format!("{path} already exists"))
                    .with_next_step("choose a free destination; restore never overwrites")
                    .with_path(path.to_string())
                    .with_file_type(file_kind_name(existing.kind)));
            }
            r#move::require_replaceable(&path, item.summary.kind, existing.kind, OverwriteAllowed::Yes)?;
            changes.push(r#move::move_to_trash(context, &path, context.observe_version(&path)?, existing));
        }
        changes.push(PlannedChange::Restore { trash: item.id.clone(), path: path.clone(), tree: item.summary });
        let plan = Plan::with_link(changes, JournalEntryRelation::Restores(item.id.clone()));
        let version = version_when_removed(context, &item)?;
        Ok(OperationPlanningResult::Files {
            plan,
            build_outcome: Box::new(move |receipt| RestoreFromTrashOutcome {
                path,
                trash: item.id,
                from: item.path,
                version,
                rev: format!("r{}", receipt.entry),
                files: item.summary.files,
                bytes: item.summary.bytes,
                replaced: receipt.trash_ids.first().cloned(),
                recorded: receipt.into(),
            }),
        })
    }
}

impl RestoreFromTrashArgs {
    fn find_trash_item(&self, context: &CallContext<'_>) -> Result<TrashItem, Error> {
        let name = shorten_for_error(&self.trash);
        let found = match context.workspace().trash_item(&self.trash)? {
            Some(item) => Some(item),
            None => self.newest_item_at_path(context)?,
        };
        let item = found.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("the trash has no item {name}"))
                .with_next_step(NextStep::call(HistoryArgs::default(), "find the removal; the item may have expired"))
        })?;
        if !context.caller.principal.may_see_items_of(&item.owner) {
            return Err(Error::new(ErrorKind::NotOwner, format!("{name} was removed by another principal"))
                .with_next_step(NextStep::ask_person("restore it")));
        }
        if item.retain_until_ms < context.workspace().now_ms() {
            return Err(Error::new(
                ErrorKind::Expired,
                format!("{name} expired at {}", format_iso_utc(item.retain_until_ms)),
            )
            .with_next_step(NextStep::ask_person("restore it from a backup")));
        }
        Ok(item)
    }

    /// Finds the item last removed from the path that the call names; an agent finds only its own items.
    fn newest_item_at_path(&self, context: &CallContext<'_>) -> Result<Option<TrashItem>, Error> {
        let profile = context.workspace().profile();
        let Ok(parsed) = stead_path::parse_path(&self.trash, &profile.root_spellings, &context.options.path_spelling)
        else {
            return Ok(None);
        };
        let items = context.workspace().trash(context.caller.principal.only_visible_owner())?;
        Ok(items.into_iter().find(|item| item.path == parsed.path))
    }
}

fn version_when_removed(context: &CallContext<'_>, item: &TrashItem) -> Result<Option<Version>, Error> {
    if item.summary.kind != FileKind::File {
        return Ok(None);
    }
    let Some(stored) = context.workspace().entry(item.entry)? else { return Ok(None) };
    let wire = item.path.to_wire();
    Ok(stored.entry.changes.iter().filter(|change| change.path == wire).find_map(|change| match &change.before {
        PathState::File { version, .. } => Some(Version(*version)),
        PathState::Tree { version, .. } => version.map(Version),
        PathState::Absent | PathState::Directory { .. } | PathState::Link { .. } | PathState::Unknown { .. } => None,
    }))
}
