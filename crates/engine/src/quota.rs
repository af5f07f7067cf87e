//! Quotas limit the files of a workspace, the trash of a principal and the stored file versions. The workspace quota
//! limits only growth: a call that frees at least as much as it adds is never refused. An undo may exceed the workspace
//! quota, up to the usage that the workspace had before the undone call.

use serde::Deserialize;
use serde::Serialize;
use stead_journal::JournalEntryRelation;

use crate::{
    call_context::CallContext,
    caller::Principal,
    error_details::RemainingQuotaOrFiles,
    errors::{Error, ErrorKind},
    next_step::NextStep,
    operation::OperationEffectClass,
    ops::UsageArgs,
    plan::{CommitExpectation, Plan, PlannedChange, TreeSummary},
};

/// The storage limits that a policy file sets; a limit that is `None` is not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageQuotaLimits {
    /// The maximum total size of all files in the workspace, in bytes.
    pub bytes: Option<u64>,
    /// The maximum number of files, symlinks and directories in the workspace.
    pub files: Option<u64>,
    /// The maximum number of bytes in the trash of one principal.
    pub trash_bytes: Option<u64>,
    /// The maximum number of bytes of stored file versions that one principal wrote or overwrote.
    pub history_bytes: Option<u64>,
}

impl StorageQuotaLimits {
    #[must_use]
    pub(crate) fn stricter_of(self, other: Self) -> Self {
        let least = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        Self {
            bytes: least(self.bytes, other.bytes),
            files: least(self.files, other.files),
            trash_bytes: least(self.trash_bytes, other.trash_bytes),
            history_bytes: least(self.history_bytes, other.history_bytes),
        }
    }
}

/// The size of a workspace, as quotas count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkspaceUsage {
    /// The total size of the workspace's files in bytes; a symlink counts with the length of its target.
    pub bytes: u64,
    /// The number of files, symlinks and directories in the workspace, without the root directory.
    pub files: u64,
}

impl WorkspaceUsage {
    fn for_tree(tree: &TreeSummary) -> Self {
        Self { bytes: tree.bytes, files: tree.files.saturating_add(tree.directories) }
    }

    fn one_file(bytes: u64) -> Self {
        Self { bytes, files: 1 }
    }

    fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.files = self.files.saturating_add(other.files);
    }
}

/// The usage of the workspace and of one principal's trash, to compare with the principal's quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrincipalUsage {
    pub workspace: WorkspaceUsage,
    pub trash_bytes: u64,
}

/// The required freshness of the reported workspace usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredUsageFreshness {
    /// The last known usage of the workspace is reported without counting again.
    Cached,
    /// The workspace usage is counted again only if the last known usage is missing or too old.
    RecountIfStale,
    /// Expired trash is purged, and the workspace usage is counted again unless it was counted a moment ago.
    Recount,
}

/// The workspace usage that one plan adds and frees, and the quota that applies to the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaCharge {
    quota: StorageQuotaLimits,
    added: WorkspaceUsage,
    freed: WorkspaceUsage,
    trash_bytes: u64,
    undone_entry: Option<u64>,
}

impl QuotaCharge {
    /// Computes the workspace usage that a plan adds and frees under a quota.
    pub fn for_plan(plan: &Plan, quota: StorageQuotaLimits) -> Self {
        let undone_entry = if let JournalEntryRelation::Undoes(number) = plan.link { Some(number) } else { None };
        let (added, freed) = (WorkspaceUsage::default(), WorkspaceUsage::default());
        let mut charge = Self { quota, added, freed, trash_bytes: 0, undone_entry };
        for change in &plan.changes {
            charge.count_change(change);
        }
        charge
    }

    fn count_change(&mut self, change: &PlannedChange) {
        match change {
            PlannedChange::Put { expectation, size, .. } => {
                self.added.add(WorkspaceUsage::one_file(*size));
                self.count_replaced(expectation);
            }
            PlannedChange::MakeDirectory { .. } => self.added.add(WorkspaceUsage::one_file(0)),
            PlannedChange::MakeLink { target, .. } => self.added.add(WorkspaceUsage::one_file(target.len() as u64)),
            PlannedChange::Move { replaced, .. } => self.count_replaced(replaced),
            PlannedChange::Remove { tree, .. } => {
                self.freed.add(WorkspaceUsage::for_tree(tree));
                self.trash_bytes = self.trash_bytes.saturating_add(tree.bytes);
            }
            PlannedChange::RemoveDirectory { .. } => self.freed.add(WorkspaceUsage::one_file(0)),
            PlannedChange::Restore { tree, .. } => self.added.add(WorkspaceUsage::for_tree(tree)),
        }
    }

    fn count_replaced(&mut self, replaced: &CommitExpectation) {
        match replaced {
            CommitExpectation::File(seen) => self.freed.add(WorkspaceUsage::one_file(seen.size)),
            CommitExpectation::SameEntry(_) => self.freed.add(WorkspaceUsage::one_file(0)),
            CommitExpectation::Absent => {}
        }
    }

    /// Returns the number of the journal entry that the plan undoes; `None` if the plan is no undo. An undo may exceed
    /// the quota up to the workspace usage before the undone entry.
    pub fn undone_entry(&self) -> Option<u64> {
        self.undone_entry
    }

    /// Computes the usage of the workspace after the plan is committed.
    pub fn usage_after(&self, used: WorkspaceUsage) -> WorkspaceUsage {
        let apply = |now: u64, added: u64, freed: u64| now.saturating_add(added).saturating_sub(freed);
        WorkspaceUsage {
            bytes: apply(used.bytes, self.added.bytes, self.freed.bytes),
            files: apply(used.files, self.added.files, self.freed.files),
        }
    }

    /// Fails if the plan would exceed the quota. The argument `before` is the workspace usage before the undone call,
    /// which an undo may restore.
    pub fn check(&self, usage: &PrincipalUsage, before: Option<WorkspaceUsage>) -> Result<(), Error> {
        let (now, after) = (usage.workspace, self.usage_after(usage.workspace));
        let before = before.unwrap_or_default();
        let tree = [
            (QuotaKind::Bytes, self.quota.bytes, now.bytes, after.bytes, before.bytes),
            (QuotaKind::Files, self.quota.files, now.files, after.files, before.files),
        ];
        for (measure, limit, used, after, before) in tree {
            let Some(limit) = limit else { continue };
            if after > used && after > limit.max(before) {
                return Err(measure.exceeded_error(limit, used, after - used));
            }
        }
        let (used, added) = (usage.trash_bytes, self.trash_bytes);
        match self.quota.trash_bytes {
            Some(limit) if added > 0 && used.saturating_add(added) > limit => {
                Err(QuotaKind::Trash.exceeded_error(limit, used, added))
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuotaKind {
    Bytes,
    Files,
    Trash,
    History,
}

impl QuotaKind {
    fn as_str(self) -> &'static str {
        match self {
            QuotaKind::Bytes => "bytes",
            QuotaKind::Files => "files",
            QuotaKind::Trash => "trash_bytes",
            QuotaKind::History => "history_bytes",
        }
    }

    fn exceeded_error(self, limit: u64, used: u64, added: u64) -> Error {
        let see_usage = NextStep::call(UsageArgs {}, "see how much is free");
        let (place, unit, hint) = match self {
            QuotaKind::Bytes | QuotaKind::History => ("workspace", "bytes", see_usage.or("remove or shrink files")),
            QuotaKind::Files => ("workspace", "files and directories", see_usage.or("remove files")),
            QuotaKind::Trash => (
                "trash",
                "bytes",
                NextStep::from(
                    "nothing was removed, because it could not be restored afterwards; shrink the file instead",
                )
                .or(NextStep::person_command("trash purge --all", "empty the trash")),
            ),
        };
        let message = format!("{place} quota exceeded: {used} of {limit} {unit} used, this call adds {added}");
        Error::new(ErrorKind::QuotaExceeded, message)
            .with_next_step(hint)
            .with_quota(self.as_str())
            .with_limit(limit)
            .with_used(used)
            .with_asked(added)
            .with_left(RemainingQuotaOrFiles::Quota(limit.saturating_sub(used)))
    }
}

/// Counts the workspace usage for a quota. The calling code must not hold path locks, because counting may lock the
/// whole workspace.
pub(crate) fn ensure_usage_counted(context: &CallContext<'_>, effect: OperationEffectClass) -> Result<(), Error> {
    if effect != OperationEffectClass::None && context.policy.policy.has_quota() {
        context.workspace().principal_usage(&context.caller.principal, RequiredUsageFreshness::RecountIfStale)?;
    }
    Ok(())
}

pub(crate) fn recount_usage(context: &CallContext<'_>) -> Result<(), Error> {
    context.workspace().principal_usage(&context.caller.principal, RequiredUsageFreshness::Recount).map(|_| ())
}

/// Fails if a plan would exceed the caller's quota. The commit checks the quota again, because other calls may commit
/// first.
pub(crate) fn check_plan(context: &CallContext<'_>, plan: &Plan) -> Result<(), Error> {
    let Some(quota) = context.policy.policy.quota(&context.caller.principal) else { return Ok(()) };
    let charge = QuotaCharge::for_plan(plan, quota);
    let usage = context
        .workspace()
        .principal_usage(&context.caller.principal, RequiredUsageFreshness::Cached)?
        .ok_or_else(usage_not_counted)?;
    let before = match charge.undone_entry() {
        Some(number) => context.workspace().usage_before_entry(number)?,
        None => None,
    };
    charge.check(&usage, before)
}

/// Returns the error for a quota that cannot be checked, because the workspace usage was never counted.
pub fn usage_not_counted() -> Error {
    Error::new(
        ErrorKind::QuotaExceeded,
        "the quota cannot be checked yet: the files of the workspace are still being counted; nothing was changed",
    )
    .with_next_step(NextStep::repeat())
}

/// The limits of a quota with their present use; `None` where the quota sets no limit.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct QuotaReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<QuotaLimitAndUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<QuotaLimitAndUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trash_bytes: Option<QuotaLimitAndUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history_bytes: Option<QuotaLimitAndUse>,
}

impl QuotaReport {
    /// Every limit that the quota sets, with its name.
    pub fn limits(&self) -> impl Iterator<Item = (&'static str, QuotaLimitAndUse)> {
        let kinds = [QuotaKind::Bytes, QuotaKind::Files, QuotaKind::Trash, QuotaKind::History];
        let limits = [self.bytes, self.files, self.trash_bytes, self.history_bytes];
        kinds.into_iter().zip(limits).filter_map(|(kind, limit)| Some((kind.as_str(), limit?)))
    }
}

/// One limit of a quota, in bytes or files.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct QuotaLimitAndUse {
    pub limit: u64,
    pub used: u64,
    pub left: u64,
}

impl QuotaLimitAndUse {
    fn new(limit: Option<u64>, used: u64) -> Option<Self> {
        limit.map(|limit| Self { limit, used, left: limit.saturating_sub(used) })
    }
}

pub(crate) fn report_quota(context: &CallContext<'_>, principal: &Principal) -> Result<Option<QuotaReport>, Error> {
    let Some(quota) = context.policy.policy.quota(principal) else { return Ok(None) };
    if quota == StorageQuotaLimits::default() {
        return Ok(None);
    }
    let usage = context
        .workspace()
        .principal_usage(principal, RequiredUsageFreshness::RecountIfStale)?
        .ok_or_else(usage_not_counted)?;
    let history_used = match quota.history_bytes {
        Some(_) => context.workspace().history_bytes(principal)?,
        None => 0,
    };
    Ok(Some(QuotaReport {
        bytes: QuotaLimitAndUse::new(quota.bytes, usage.workspace.bytes),
        files: QuotaLimitAndUse::new(quota.files, usage.workspace.files),
        trash_bytes: QuotaLimitAndUse::new(quota.trash_bytes, usage.trash_bytes),
        history_bytes: QuotaLimitAndUse::new(quota.history_bytes, history_used),
    }))
}

#[cfg(test)]
mod tests {
    use stead_path::RelPath;

    use super::*;
    use crate::{
        plan::{FileKind, FileModeSource, PlanTimeFileVersion, PlannedContent},
        tree::FileStamp,
        version::Version,
    };

    fn rel_path(name: &str) -> RelPath {
        RelPath::from_wire(name).expect("a path")
    }

    fn expect_file_of_size(size: u64) -> CommitExpectation {
        CommitExpectation::File(PlanTimeFileVersion {
            version: Version::hash_bytes(b""),
            size,
            stamp: FileStamp([0; 56]),
        })
    }

    fn put_of_size(size: u64, expectation: CommitExpectation) -> PlannedChange {
        let (content, version) = (PlannedContent::Bytes(Vec::new()), Version::hash_bytes(b""));
        PlannedChange::Put {
            path: rel_path("a"),
            expectation,
            content,
            version,
            size,
            mode: FileModeSource::KeepExisting,
        }
    }

    fn tree_of_size(files: u64, directories: u64, bytes: u64) -> TreeSummary {
        TreeSummary { kind: FileKind::Directory, files, directories, bytes }
    }

    const TIGHT_QUOTA: StorageQuotaLimits =
        StorageQuotaLimits { bytes: Some(100), files: Some(10), trash_bytes: Some(50), history_bytes: None };

    fn rejected_measure(
        changes: Vec<PlannedChange>,
        link: JournalEntryRelation,
        used: (u64, u64),
        before: Option<WorkspaceUsage>,
    ) -> Option<String> {
        let charge = QuotaCharge::for_plan(&Plan::with_link(changes, link), TIGHT_QUOTA);
        let workspace = WorkspaceUsage { bytes: used.0, files: used.1 };
        let error = charge.check(&PrincipalUsage { workspace, trash_bytes: 40 }, before).err()?;
        error.details.quota
    }

    #[test]
    fn plan_over_quota_is_rejected_by_its_measure() {
        let remove = |bytes| PlannedChange::Remove {
            path: rel_path("d"),
            expectation: CommitExpectation::Absent,
            retain_until_ms: 0,
            tree: tree_of_size(2, 1, bytes),
        };
        let restore =
            |bytes| PlannedChange::Restore { trash: "t".into(), path: rel_path("d"), tree: tree_of_size(2, 1, bytes) };
        let directory = || PlannedChange::MakeDirectory { path: rel_path("d"), mode: 0o755 };
        let rename = |replaced| PlannedChange::Move {
            from: rel_path("a"),
            to: rel_path("b"),
            expectation: expect_file_of_size(1),
            replaced,
            tree: TreeSummary { kind: FileKind::File, files: 1, directories: 0, bytes: 1 },
        };
        for (changes, used, expected) in [
            (vec![put_of_size(10, CommitExpectation::Absent)], (90, 9), None),
            (vec![put_of_size(11, CommitExpectation::Absent)], (90, 9), Some("bytes")),
            (vec![put_of_size(0, CommitExpectation::Absent)], (90, 10), Some("files")),
            (vec![put_of_size(20, expect_file_of_size(10))], (90, 10), None),
            (vec![put_of_size(21, expect_file_of_size(10))], (90, 10), Some("bytes")),
            // If usage exceeds the quota, changes that free space are still allowed.
            (vec![put_of_size(9, expect_file_of_size(10))], (500, 50), None),
            (vec![put_of_size(10, expect_file_of_size(10))], (500, 50), None),
            (vec![remove(10)], (500, 50), None),
            (vec![rename(CommitExpectation::Absent)], (500, 50), None),
            (vec![rename(expect_file_of_size(5))], (500, 50), None),
            (vec![remove(11)], (0, 0), Some("trash_bytes")),
            (vec![directory()], (0, 10), Some("files")),
            (vec![restore(10)], (90, 7), None),
            (vec![restore(11)], (90, 7), Some("bytes")),
            (vec![restore(1)], (0, 8), Some("files")),
            // The changes of one call are counted together.
            (vec![remove(10), put_of_size(12, CommitExpectation::Absent)], (98, 10), None),
            (
                vec![put_of_size(5, CommitExpectation::Absent), put_of_size(6, CommitExpectation::Absent)],
                (90, 0),
                Some("bytes"),
            ),
            (vec![put_of_size(u64::MAX, CommitExpectation::Absent)], (1, 0), Some("bytes")),
        ] {
            let got = rejected_measure(changes.clone(), JournalEntryRelation::None, used, None);
            assert_eq!(got.as_deref(), expected, "{changes:?} with usage {used:?}");
        }
    }

    #[test]
    fn undo_may_exceed_the_quota_only_up_to_the_earlier_usage() {
        let back = || vec![put_of_size(50, CommitExpectation::Absent)];
        let before = |bytes, files| Some(WorkspaceUsage { bytes, files });
        let undone = |used, before| rejected_measure(back(), JournalEntryRelation::Undoes(1), used, before);
        assert_eq!(undone((450, 20), before(500, 21)), None);
        assert_eq!(undone((451, 20), before(500, 21)).as_deref(), Some("bytes"));
        assert_eq!(undone((450, 21), before(500, 21)).as_deref(), Some("files"));
        assert_eq!(undone((60, 1), None).as_deref(), Some("bytes"));
    }
}
