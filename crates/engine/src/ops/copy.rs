//! `copy` copies a file or a whole tree. A symbolic link is skipped if it would point outside the workspace from its
//! new path. Pipes, sockets and devices are never copied, and the outcome lists skipped entries.

use serde::{Deserialize, Serialize};
use stead_path::RelPath;

use super::{
    r#move::{OverwriteAllowed, require_replaceable},
    planning::{self, PERMISSION_BITS},
};
use crate::{
    call_context::{CallContext, TooDeepEntryPolicy},
    errors::{Error, ErrorKind},
    limits,
    operation::{
        Operation, OperationPlanningResult, PathAccessRequest, PlanResult, RequestedAccessKind, ResolvedTarget,
    },
    outcome::{FileShownInOutcome, FileVersionFields, OperationOutcome, RecordedEntryFields, is_default},
    plan::{
        CommitExpectation, FileKind, FileModeSource, Plan, PlanTimeFileVersion, PlannedChange, PlannedContent,
        TreeSummary,
    },
    tree::{FileStat, FinalSymlink},
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CopyArgs {
    pub from: String,
    pub to: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overwrite: bool,
    #[serde(skip)]
    pub files_only: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum CopyOutcome {
    File(CopiedFile),
    Tree(CopiedTree),
}

impl OperationOutcome for CopyOutcome {
    fn main_file(&mut self) -> Option<FileShownInOutcome<'_>> {
        match self {
            CopyOutcome::File(file) => Some(FileShownInOutcome::new(&file.path, &mut file.version)),
            CopyOutcome::Tree(_) => None,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct CopiedFile {
    pub from: RelPath,
    pub path: RelPath,
    #[serde(flatten)]
    pub version: FileVersionFields,
    pub size: u64,
    pub created: bool,
    pub changed: bool,
    #[serde(flatten)]
    pub recorded: Option<RecordedEntryFields>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct CopiedTree {
    pub from: RelPath,
    pub path: RelPath,
    pub rev: String,
    pub created: bool,
    pub changed: bool,
    pub files: u64,
    pub directories: u64,
    pub bytes: u64,
    pub skipped: Vec<SkippedCopyEntry>,
    #[serde(skip_serializing_if = "is_default")]
    pub skipped_omitted: usize,
    #[serde(flatten)]
    pub recorded: RecordedEntryFields,
}

impl Operation for CopyArgs {
    type Paths = (PathAccessRequest, PathAccessRequest);
    type Outcome = CopyOutcome;

    fn resolve(&self, _context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        let from = PathAccessRequest::read(&self.from);
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
        context.require_readable(&source.path)?;
        match stat.kind {
            FileKind::File => self.plan_file_copy(context, source, stat, destination),
            FileKind::Directory => plan_tree_copy(context, source, stat, destination),
            // The links in the path were resolved before, so a link at this path is dangling or was created after the
            // resolution.
            FileKind::Link | FileKind::Special => {
                Err(Error::new(ErrorKind::NotRegular, format!("{} is neither a file nor a directory", source.path))
                    .with_next_step("only files and directories can be copied"))
            }
        }
    }
}

impl CopyArgs {
    fn plan_file_copy(
        &self,
        context: &CallContext<'_>,
        source: &ResolvedTarget,
        stat: FileStat,
        destination: &ResolvedTarget,
    ) -> Result<OperationPlanningResult<CopyOutcome>, Error> {
        let (from, to) = (source.path.clone(), destination.path.clone());
        let observed = match source.observed {
            Some(observed) => observed,
            None => context.observe_version(&from)?,
        };
        let (expectation, mode) = match destination.stat {
            None => (CommitExpectation::Absent, FileModeSource::Set(stat.mode & PERMISSION_BITS)),
            Some(existing) => {
                require_replaceable(&to, stat.kind, existing.kind, self.overwrite.into())?;
                (CommitExpectation::File(context.observe_version(&to)?), FileModeSource::KeepExisting)
            }
        };
        if planning::expected_version(&expectation).is_some_and(|existing| existing.version == observed.version) {
            return Ok(unchanged_outcome(context, &from, &to, &observed));
        }
        let created = expectation == CommitExpectation::Absent;
        let size = observed.size;
        check_copy_size(size)?;
        let mut changes = planning::create_missing_parents(context, &to)?;
        let (path, content) = (to.clone(), PlannedContent::CopyOf(from.clone(), observed));
        changes.push(PlannedChange::Put { path, expectation, content, version: observed.version, size, mode });
        Ok(OperationPlanningResult::Files {
            plan: Plan::new(changes),
            build_outcome: Box::new(move |receipt| {
                let version = FileVersionFields::written(observed.version, receipt);
                let recorded = Some(receipt.into());
                CopyOutcome::File(CopiedFile { from, path: to, version, size, created, changed: true, recorded })
            }),
        })
    }
}

fn unchanged_outcome(
    context: &CallContext<'_>,
    from: &RelPath,
    to: &RelPath,
    observed: &PlanTimeFileVersion,
) -> OperationPlanningResult<CopyOutcome> {
    let rev = context.revision_name(to, &observed.version);
    let outcome = CopyOutcome::File(CopiedFile {
        from: from.clone(),
        path: to.clone(),
        version: FileVersionFields::new(observed.version, rev),
        size: observed.size,
        created: false,
        changed: false,
        recorded: None,
    });
    OperationPlanningResult::Read { outcome, bytes: 0 }
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct SkippedCopyEntry {
    pub path: RelPath,
    pub reason: &'static str,
}

struct PlannedTreeCopy {
    changes: Vec<PlannedChange>,
    skipped: Vec<SkippedCopyEntry>,
    tree: TreeSummary,
}

fn plan_tree_copy(
    context: &CallContext<'_>,
    source: &ResolvedTarget,
    stat: FileStat,
    destination: &ResolvedTarget,
) -> Result<OperationPlanningResult<CopyOutcome>, Error> {
    let (from, to) = (source.path.clone(), destination.path.clone());
    // Only the root may be copied into itself, because every path of the workspace is inside the root.
    if to.is_within(&from) && !from.is_root() {
        return Err(Error::new(ErrorKind::InvalidPath, format!("{from} cannot be copied into itself"))
            .with_next_step("choose a destination outside of it"));
    }
    if let Some(existing) = destination.stat {
        require_replaceable(&to, stat.kind, existing.kind, OverwriteAllowed::No)?;
    }
    let PlannedTreeCopy { changes, skipped, tree } = collect_tree(context, &from, stat, &to)?;
    let mut all = planning::create_missing_parents(context, &to)?;
    all.extend(changes);
    Ok(OperationPlanningResult::Files {
        plan: Plan::new(all),
        build_outcome: Box::new(move |receipt| {
            CopyOutcome::Tree(CopiedTree {
                from,
                path: to,
                rev: format!("r{}", receipt.entry),
                created: true,
                changed: true,
                files: tree.files,
                directories: tree.directories,
                bytes: tree.bytes,
                skipped_omitted: skipped.len().saturating_sub(limits::REPORTED_PATHS_MAX),
                skipped: skipped.into_iter().take(limits::REPORTED_PATHS_MAX).collect(),
                recorded: receipt.into(),
            })
        }),
    })
}

/// Plans the copy of a tree, without the destination if the destination is inside the tree.
fn collect_tree(
    context: &CallContext<'_>,
    from: &RelPath,
    stat: FileStat,
    to: &RelPath,
) -> Result<PlannedTreeCopy, Error> {
    let empty = TreeSummary { kind: FileKind::Directory, files: 0, directories: 0, bytes: 0 };
    let mut copied = PlannedTreeCopy { changes: Vec::new(), skipped: Vec::new(), tree: empty };
    context.walk(from, stat, TooDeepEntryPolicy::Fail, &mut |entry| {
        let Some(rest) = entry.path.strip_prefix(from) else { return Ok(()) };
        if entry.path.is_within(to) {
            return Ok(());
        }
        let path = to.append(&rest)?;
        let tree = &mut copied.tree;
        match entry.stat.kind {
            FileKind::Directory => {
                tree.directories += 1;
                // The owner needs write permission to fill the copied directory, even if the source directory does not
                // grant it.
                let mode = entry.stat.mode & PERMISSION_BITS | OWNER_MODE_BITS;
                copied.changes.push(PlannedChange::MakeDirectory { path, mode });
            }
            FileKind::File => {
                let observed = context.observe_version(entry.path)?;
                let size = observed.size;
                tree.files += 1;
                tree.bytes = tree.bytes.saturating_add(size);
                check_copy_size(tree.bytes)?;
                copied.changes.push(PlannedChange::Put {
                    path,
                    expectation: CommitExpectation::Absent,
                    content: PlannedContent::CopyOf(entry.path.clone(), observed),
                    version: observed.version,
                    size,
                    mode: FileModeSource::Set(entry.stat.mode & PERMISSION_BITS),
                });
            }
            FileKind::Link => {
                let target = context.workspace().read_link(entry.path)?;
                if link_stays_inside(&path, &target) {
                    tree.files += 1;
                    copied.changes.push(PlannedChange::MakeLink { path, target });
                } else {
                    let (path, reason) = (entry.path.clone(), "the link target is outside the workspace");
                    copied.skipped.push(SkippedCopyEntry { path, reason });
                }
            }
            FileKind::Special => {
                let (path, reason) = (entry.path.clone(), "it is a pipe, socket or device");
                copied.skipped.push(SkippedCopyEntry { path, reason });
            }
        }
        Ok(())
    })?;
    Ok(copied)
}

const OWNER_MODE_BITS: u32 = 0o700;

fn check_copy_size(bytes: u64) -> Result<(), Error> {
    if bytes <= limits::COPY_BYTES_MAX {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::TooLarge,
        format!("the copy would exceed {} bytes, the limit of one call", limits::COPY_BYTES_MAX),
    )
    .with_next_step("copy a smaller subtree")
    .with_limit_bytes(limits::COPY_BYTES_MAX))
}

/// Whether a symbolic link at `path` has a relative target that never leads above the workspace root. Symbolic links on
/// the way to the target are not resolved.
fn link_stays_inside(path: &RelPath, target: &[u8]) -> bool {
    if target.starts_with(b"/") {
        return false;
    }
    let mut depth = path.depth().saturating_sub(1);
    for component in target.split(|byte| *byte == b'/') {
        match component {
            b"" | b"." => {}
            b".." => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return false,
            },
            _ => depth += 1,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_leaving_the_workspace_are_not_copied() {
        let inside =
            |path: &str, target: &str| link_stays_inside(&RelPath::from_wire(path).unwrap(), target.as_bytes());
        assert!(inside("cp/link", "pipe"));
        assert!(inside("cp/link", "../f"));
        assert!(inside("a/b/link", "../../f"));
        assert!(!inside("cp/link", "../../f"));
        assert!(!inside("link", "../out/secret"));
        assert!(!inside("link", "a/../../out"));
        assert!(!inside("link", "/etc/passwd"));
    }
}
