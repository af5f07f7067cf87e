//! `remove`: moves a file, link or tree to the remover's trash, where it can be restored until it expires. Nothing is
//! deleted at once.

use serde::Deserialize;

use super::{outcome_builder::OutcomeBuilder, outcome_builder::format_iso_utc, planning};
use crate::{
    call_context::CallContext,
    call_options::{BeforeAfterInclusion, DirectoryRemovalPolicy, RemovalRetention},
    engine::BeforeAfterBytes,
    errors::{Error, ErrorKind},
    limits,
    operation::{Operation, PathAccess, PlannedEffect, RequestedPath, ResolvedTarget},
    plan::{FileKind, Plan, PlannedChange},
    workspace::{BytesToRead, FileStat, FinalSymlink},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoveArgs {
    path: String,
    base: Option<String>,
    #[serde(default)]
    recursive: bool,
}

impl Operation for RemoveArgs {
    fn requested_paths(&self, _context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        let request =
            RequestedPath::from_argument(&self.path, PathAccess::Remove, FinalSymlink::Keep).including_subtree();
        Ok(vec![request.with_base(self.base.as_deref())?])
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let target = &targets[0];
        let stat = planning::require_present(target)?;
        let path = target.path.clone();
        if stat.kind == FileKind::Directory && context.options.directory_removal == DirectoryRemovalPolicy::Refuse {
            return Err(Error::new(ErrorKind::IsDirectory, format!("{path} is a directory"))
                .with_next_step("only files can be removed here"));
        }
        if stat.kind == FileKind::Directory && !self.recursive && !context.workspace().list(&path)?.is_empty() {
            return Err(Error::new(ErrorKind::NotEmpty, format!("{path} is not empty"))
                .with_next_step("pass recursive: true to remove it with its contents"));
        }
        let expect = planning::expectation_at(context, &path, stat, target.observed)?;
        let tree = planning::count_tree(context, &path, stat)?;
        let retention_ms = match context.options.removal_retention {
            RemovalRetention::PrincipalDefault => context.policy.policy.trash_retention_ms(&context.caller.principal),
            RemovalRetention::None => 0,
        };
        let keep_until_ms = context.workspace().now_ms().saturating_add(retention_ms);
        let before_after = bytes_before(context, target, stat)?;
        let shown = path.to_string();
        let plan =
            Plan::new(vec![PlannedChange::Remove { path, expectation: expect, retain_until_ms: keep_until_ms, tree }]);
        Ok(PlannedEffect::Files {
            plan,
            build_outcome: Box::new(move |receipt| {
                let trash = receipt.trash_ids.first().cloned();
                let until = format_iso_utc(keep_until_ms);
                let id = trash.as_deref().unwrap_or("unknown");
                let text = format!(
                    "removed {shown} ({}, r{}); restore with trash {id} until {until}",
                    planning::describe_tree_size(&tree),
                    receipt.entry
                );
                OutcomeBuilder::new()
                    .with_field("path", shown)
                    .with_some("trash", trash)
                    .with_field("recoverable_until", until)
                    .with_field("files", tree.files)
                    .with_field("bytes", tree.bytes)
                    .with_receipt(receipt)
                    .build_one_line(text)
                    .with_before_after(before_after)
            }),
        })
    }
}

/// The removed bytes, if the call options ask for them and they fit the limit.
fn bytes_before(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    stat: FileStat,
) -> Result<Option<BeforeAfterBytes>, Error> {
    if context.options.before_after == BeforeAfterInclusion::Omit
        || stat.kind != FileKind::File
        || stat.size > limits::DIFF_BYTES_MAX
    {
        return Ok(None);
    }
    let file = context.read(&target.path, BytesToRead::Whole { limit_bytes: limits::DIFF_BYTES_MAX })?;
    Ok(context.before_after(&target.path, Some(&file.bytes), None))
}
