//! Quotas: workspace usage, the usage that a plan adds, and whether it fits. Pure; the workspace does the counting.
//!
//! A call that frees more than it adds is never refused because of the workspace quota. An undo is refused only if
//! usage would exceed both the quota and the usage before the undone call.

use serde_json::{Map, Value, json};
use stead_journal::EntryRelation;

use crate::{
    call_context::CallContext,
    caller::Principal,
    errors::{Error, ErrorKind},
    operation::FileEffect,
    plan::{CommitExpectation, Plan, PlannedChange, TreeSummary},
};

/// Limits on usage. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// Total size of all files of the workspace.
    pub bytes: Option<u64>,
    /// Files, symlinks and directories of the workspace.
    pub files: Option<u64>,
    /// Bytes in the trash of one principal.
    pub trash_bytes: Option<u64>,
    /// Bytes of stored versions written or overwritten by one principal.
    pub history_bytes: Option<u64>,
}

impl Quota {
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

/// The usage of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkspaceUsage {
    /// Total size of all files; a symlink counts the length of its target.
    pub bytes: u64,
    /// Files, symlinks and directories, without the root.
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

/// The usage that limits one principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PrincipalUsage {
    /// Usage of the workspace.
    pub workspace: WorkspaceUsage,
    /// Bytes in this principal's trash.
    pub trash_bytes: u64,
}

/// How current the usage must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageFreshness {
    /// The cached usage; never counts.
    Cached,
    /// The cached usage, counted first if missing or too old.
    RecountIfStale,
    /// Counts anew unless that was done a moment ago; expired trash is purged first.
    Recount,
}

/// The usage that one plan adds, and its quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaCharge {
    quota: Quota,
    added: WorkspaceUsage,
    freed: WorkspaceUsage,
    trash_bytes: u64,
    undone_entry: Option<u64>,
}

impl QuotaCharge {
    /// The charge of a plan under a quota.
    pub fn for_plan(plan: &Plan, quota: Quota) -> Self {
        let undoes = match &plan.link {
            EntryRelation::Undoes(number) => Some(*number),
            EntryRelation::None | EntryRelation::Redoes(_) | EntryRelation::Restores(_) | EntryRelation::Amends(_) => {
                None
            }
        };
        let (added, freed) = (WorkspaceUsage::default(), WorkspaceUsage::default());
        let mut charge = Self { quota, added, freed, trash_bytes: 0, undone_entry: undoes };
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
            CommitExpectation::File(seen) => self.freed.add(WorkspaceUsage::one_file(seen.identity.size)),
            CommitExpectation::SameEntry(_) => self.freed.add(WorkspaceUsage::one_file(0)),
            CommitExpectation::Absent => {}
        }
    }

    /// The entry that the plan undoes, if any; its earlier usage may be restored.
    pub fn undone_entry(&self) -> Option<u64> {
        self.undone_entry
    }

    /// The usage after the plan.
    pub fn usage_after(&self, held: WorkspaceUsage) -> WorkspaceUsage {
        let apply = |now: u64, added: u64, freed: u64| now.saturating_add(added).saturating_sub(freed);
        WorkspaceUsage {
            bytes: apply(held.bytes, self.added.bytes, self.freed.bytes),
            files: apply(held.files, self.added.files, self.freed.files),
        }
    }

    /// Whether the plan fits. `before` is the usage before the call that the plan undoes.
    pub fn check(&self, usage: &PrincipalUsage, before: Option<WorkspaceUsage>) -> Result<(), Error> {
        let (now, then) = (usage.workspace, self.usage_after(usage.workspace));
        let before = before.unwrap_or_default();
        let tree = [
            (QuotaMeasure::Bytes, self.quota.bytes, now.bytes, then.bytes, before.bytes),
            (QuotaMeasure::Files, self.quota.files, now.files, then.files, before.files),
        ];
        for (measure, limit, used, then, before) in tree {
            let Some(limit) = limit else { continue };
            if then > used && then > limit.max(before) {
                return Err(measure.exceeded_error(limit, used, then - used));
            }
        }
        let (used, asked) = (usage.trash_bytes, self.trash_bytes);
        match self.quota.trash_bytes {
            Some(limit) if asked > 0 && used.saturating_add(asked) > limit => {
                Err(QuotaMeasure::Trash.exceeded_error(limit, used, asked))
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuotaMeasure {
    Bytes,
    Files,
    Trash,
    History,
}

impl QuotaMeasure {
    /// The key in the policy.
    fn as_str(self) -> &'static str {
        match self {
            QuotaMeasure::Bytes => "bytes",
            QuotaMeasure::Files => "files",
            QuotaMeasure::Trash => "trash_bytes",
            QuotaMeasure::History => "history_bytes",
        }
    }

    fn exceeded_error(self, limit: u64, used: u64, asked: u64) -> Error {
        let (detail, hint) = match self {
            QuotaMeasure::Bytes | QuotaMeasure::History => (
                format!("workspace quota exceeded: {used} of {limit} bytes used, this call adds {asked}"),
                "remove or shrink files, then call again; call usage to see what is left",
            ),
            QuotaMeasure::Files => (
                format!(
                    "workspace quota exceeded: {used} of {limit} files and directories used, this call adds {asked}"
                ),
                "remove files, then call again; call usage to see what is left",
            ),
            QuotaMeasure::Trash => (
                format!("trash quota exceeded: {used} of {limit} bytes used, this call adds {asked}"),
                "nothing was removed, because it could not be restored afterwards; shrink the file instead, or ask a person \
                 to run `stead trash purge --all`",
            ),
        };
        Error::new(ErrorKind::QuotaExceeded, detail)
            .with_next_step(hint)
            .with_detail("quota", self.as_str())
            .with_detail("limit", limit)
            .with_detail("used", used)
            .with_detail("asked", asked)
            .with_detail("left", limit.saturating_sub(used))
    }
}

/// Counts usage before anything is locked. Free if no quota is set.
pub(crate) fn ensure_usage_counted(context: &CallContext<'_>, effect: FileEffect) -> Result<(), Error> {
    if effect != FileEffect::None && context.policy.policy.has_quota() {
        context.workspace().principal_usage(&context.caller.principal, UsageFreshness::RecountIfStale)?;
    }
    Ok(())
}

/// Recounts usage before a call is refused: others may have freed space.
pub(crate) fn recount_usage(context: &CallContext<'_>) -> Result<(), Error> {
    context.workspace().principal_usage(&context.caller.principal, UsageFreshness::Recount).map(|_| ())
}

/// Checks a plan. The commit checks it again under its lock.
pub(crate) fn check_plan(context: &CallContext<'_>, plan: &Plan) -> Result<(), Error> {
    let Some(quota) = context.policy.policy.quota(&context.caller.principal) else { return Ok(()) };
    let charge = QuotaCharge::for_plan(plan, quota);
    let usage = context
        .workspace()
        .principal_usage(&context.caller.principal, UsageFreshness::Cached)?
        .ok_or_else(usage_not_counted)?;
    let before = match charge.undone_entry() {
        Some(number) => context.workspace().usage_before_entry(number)?,
        None => None,
    };
    charge.check(&usage, before)
}

/// The error for usage that was never counted.
pub fn usage_not_counted() -> Error {
    Error::new(ErrorKind::QuotaExceeded, "workspace usage has not been counted yet").with_next_step("call again")
}

/// The limits of a principal with used and remaining amounts; `None` if there is no limit.
pub(crate) fn report_quota(context: &CallContext<'_>, principal: &Principal) -> Result<Option<Value>, Error> {
    let Some(quota) = context.policy.policy.quota(principal) else { return Ok(None) };
    if quota == Quota::default() {
        return Ok(None);
    }
    let usage = context
        .workspace()
        .principal_usage(principal, UsageFreshness::RecountIfStale)?
        .ok_or_else(usage_not_counted)?;
    let mut limits = Map::new();
    let mut report = |measure: QuotaMeasure, limit: Option<u64>, used: u64| {
        if let Some(limit) = limit {
            let left = limit.saturating_sub(used);
            let fields = json!({ "limit": limit, "used": used, "left": left });
            limits.insert(measure.as_str().to_owned(), fields);
        }
    };
    report(QuotaMeasure::Bytes, quota.bytes, usage.workspace.bytes);
    report(QuotaMeasure::Files, quota.files, usage.workspace.files);
    report(QuotaMeasure::Trash, quota.trash_bytes, usage.trash_bytes);
    if quota.history_bytes.is_some() {
        report(QuotaMeasure::History, quota.history_bytes, context.workspace().history_bytes(principal)?);
    }
    Ok(Some(Value::Object(limits)))
}

/// The same as text, one line per limit.
pub(crate) fn render_quota_lines(limits: Option<&Value>) -> String {
    let limits = limits.and_then(Value::as_object).into_iter().flatten();
    limits.map(|(name, limit)| format!("\nquota {name}: {} of {} used", limit["used"], limit["limit"])).collect()
}

#[cfg(test)]
mod tests {
    use stead_path::RelPath;

    use super::*;
    use crate::{
        plan::{FileKind, FileModeSource, ObservedVersion, PlannedContent},
        version::Version,
        workspace::FileIdentity,
    };

    fn rel_path(name: &str) -> RelPath {
        RelPath::from_wire(name).expect("a path")
    }

    fn expect_file_of_size(size: u64) -> CommitExpectation {
        let stamp = FileIdentity { device_and_inode: (1, 1), size, modified_ns: 0, changed_ns: 0 };
        CommitExpectation::File(ObservedVersion { version: Version::hash_bytes(b""), identity: stamp })
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

    const TIGHT_QUOTA: Quota = Quota { bytes: Some(100), files: Some(10), trash_bytes: Some(50), history_bytes: None };

    fn rejected_measure(
        changes: Vec<PlannedChange>,
        link: EntryRelation,
        held: (u64, u64),
        before: Option<WorkspaceUsage>,
    ) -> Option<String> {
        let charge = QuotaCharge::for_plan(&Plan::with_link(changes, link), TIGHT_QUOTA);
        let held = WorkspaceUsage { bytes: held.0, files: held.1 };
        let error = charge.check(&PrincipalUsage { workspace: held, trash_bytes: 40 }, before).err()?;
        Some(error.details["quota"].as_str().unwrap_or_default().to_owned())
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
        for (changes, held, expected) in [
            (vec![put_of_size(10, CommitExpectation::Absent)], (90, 9), None),
            (vec![put_of_size(11, CommitExpectation::Absent)], (90, 9), Some("bytes")),
            (vec![put_of_size(0, CommitExpectation::Absent)], (90, 10), Some("files")),
            (vec![put_of_size(20, expect_file_of_size(10))], (90, 10), None),
            (vec![put_of_size(21, expect_file_of_size(10))], (90, 10), Some("bytes")),
            // Usage over the quota: changes that free space stay possible.
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
            // The changes of one call count together.
            (vec![remove(10), put_of_size(12, CommitExpectation::Absent)], (98, 10), None),
            (
                vec![put_of_size(5, CommitExpectation::Absent), put_of_size(6, CommitExpectation::Absent)],
                (90, 0),
                Some("bytes"),
            ),
            (vec![put_of_size(u64::MAX, CommitExpectation::Absent)], (1, 0), Some("bytes")),
        ] {
            let got = rejected_measure(changes.clone(), EntryRelation::None, held, None);
            assert_eq!(got.as_deref(), expected, "{changes:?} over {held:?}");
        }
    }

    #[test]
    fn undo_may_restore_earlier_usage_only() {
        let back = || vec![put_of_size(50, CommitExpectation::Absent)];
        let before = |bytes, files| Some(WorkspaceUsage { bytes, files });
        let undone = |held, before| rejected_measure(back(), EntryRelation::Undoes(1), held, before);
        assert_eq!(undone((450, 20), before(500, 21)), None);
        assert_eq!(undone((451, 20), before(500, 21)).as_deref(), Some("bytes"));
        assert_eq!(undone((450, 21), before(500, 21)).as_deref(), Some("files"));
        assert_eq!(undone((60, 1), None).as_deref(), Some("bytes"));
    }
}
