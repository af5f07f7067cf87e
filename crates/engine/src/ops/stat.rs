//! `stat` returns the metadata of a path without the file's content, and does not follow a symbolic link.

use serde::Deserialize;
use stead_text::visible::escape_deceptive_line;

use super::{
    outcome_builder::{OutcomeBuilder, format_iso_utc},
    planning::require_present,
};
use crate::{
    call_context::CallContext,
    call_options::BeforeAfterContentInclusion,
    engine::CallOutcome,
    errors::{Error, ErrorKind},
    limits,
    operation::{
        Operation, OperationPlanningResult, PlanResult, RequestedPath, RequestedPathAccessKind, RequestedPathIndex,
        RequestedPaths, ResolvedTarget, ResolvedTargets,
    },
    plan::FileKind,
    workspace::{BytesToRead, FileStat, FinalSymlink},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatArgs {
    path: String,
}

/// The text shown for a link target outside the workspace, because outcomes never reveal such paths.
const OUTSIDE_LINK_TARGET: &str = "(outside)";
const MODE_MASK: u32 = 0o7777;

impl Operation for StatArgs {
    type Resolved = RequestedPathIndex;
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, paths: &mut RequestedPaths) -> Result<Self::Resolved, Error> {
        Ok(paths.add(RequestedPath::from_argument(&self.path, RequestedPathAccessKind::Read, FinalSymlink::Keep)))
    }

    fn plan(&self, context: &CallContext<'_>, path: RequestedPathIndex, targets: &ResolvedTargets) -> PlanResult<Self> {
        let target = &targets[path];
        let path = &target.path;
        let stat = require_present(target)?;
        let size = context.readable_unsaved_file(path).map_or(stat.size, |unsaved| unsaved.text.len() as u64);
        let stat = FileStat { size, ..stat };
        let kind = file_kind_name(stat.kind);
        let mode = format!("{:04o}", stat.mode & MODE_MASK);
        let modified = format_iso_utc(stat.modified_ms);
        let mut text = format!("{}: {kind}", escape_deceptive_line(&path.to_wire()));
        if stat.kind == FileKind::File {
            text.push_str(&format!(", {} bytes", stat.size));
        }
        text.push_str(&format!(", mode {mode}, modified {modified}"));
        let mut fields = OutcomeBuilder::new()
            .with_field("path", path.to_string())
            .with_field("type", kind)
            .with_field("size", stat.size)
            .with_field("modified", modified)
            .with_field("mode", mode);
        if context.options.before_after == BeforeAfterContentInclusion::Include {
            let details = context.workspace().file_details(path)?;
            fields =
                fields.with_some("created", details.created_ms.map(format_iso_utc)).with_some("owner", details.owner);
        }
        match stat.kind {
            FileKind::File => fields = with_version(context, target, &stat, fields, &mut text)?,
            FileKind::Link => {
                let link_target = visible_link_target(context, target)?;
                text.push_str(&format!(", points to {}", escape_deceptive_line(&link_target)));
                fields = fields.with_field("target", link_target);
            }
            FileKind::Directory | FileKind::Special => {}
        }
        Ok(OperationPlanningResult::Read { outcome: fields.build(text), bytes: 0 })
    }
}

pub(crate) fn file_kind_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Link => "link",
        FileKind::Special => "other",
    }
}

fn with_version(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    stat: &FileStat,
    fields: OutcomeBuilder,
    text: &mut String,
) -> Result<OutcomeBuilder, Error> {
    let fields = if stat.size > limits::STAT_VERSION_BYTES_MAX {
        text.push_str(", too large to hash: read it to get its version");
        fields
    } else {
        let file = context.read(&target.path, BytesToRead::VersionOnly)?;
        let rev = context.revision_name(&target.path, &file.version);
        text.push_str(&format!(", {rev}"));
        fields.with_version(&file.version, rev)
    };
    if stat.link_count <= 1 {
        return Ok(fields);
    }
    text.push_str(&format!(", {} hard links", stat.link_count));
    Ok(fields.with_field("links", stat.link_count))
}

/// An absolute link target in the workspace becomes a path relative to the workspace root.
fn visible_link_target(context: &CallContext<'_>, target: &ResolvedTarget) -> Result<String, Error> {
    let workspace = context.workspace();
    let written = workspace.read_link(&target.path)?;
    match workspace.locate(&target.path, FinalSymlink::Follow) {
        Ok(path) if written.starts_with(b"/") => Ok(path.to_string()),
        Ok(_) => Ok(String::from_utf8_lossy(&written).into_owned()),
        Err(error) if matches!(error.kind, ErrorKind::LinkLoop | ErrorKind::NotFound | ErrorKind::NotDirectory) => {
            let inside = !written.starts_with(b"/") && !written.split(|byte| *byte == b'/').any(|part| part == b"..");
            Ok(if inside { String::from_utf8_lossy(&written).into_owned() } else { OUTSIDE_LINK_TARGET.to_owned() })
        }
        Err(_) => Ok(OUTSIDE_LINK_TARGET.to_owned()),
    }
}
