//! `stat` returns the metadata of a path without the file's content, and does not follow a symbolic link.

use serde::{Deserialize, Serialize};
use stead_path::RelPath;

use super::planning::require_present;
use crate::{
    call_context::CallContext,
    call_options::BeforeAfterContentInclusion,
    errors::{Error, ErrorKind},
    limits,
    operation::{
        CallDurationFactor, Operation, OperationPlanningResult, PathAccessRequest, PlanResult, RequestedAccessKind,
        ResolvedTarget,
    },
    outcome::{FileShownInOutcome, FileVersionFields, OperationOutcome, UtcTime},
    plan::FileKind,
    tree::{BytesToRead, FinalSymlink},
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatArgs {
    pub path: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct StatOutcome {
    pub path: RelPath,
    #[serde(rename = "type")]
    pub kind: FileKind,
    pub size: u64,
    pub modified: UtcTime,
    /// The permission bits in octal.
    pub mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<UtcTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The version of a file; `None` for other entries and for files that are too large to hash.
    #[serde(flatten)]
    pub version: Option<FileVersionFields>,
    /// The number of hard links of a file; `None` if the file has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl OperationOutcome for StatOutcome {
    fn main_file(&mut self) -> Option<FileShownInOutcome<'_>> {
        Some(FileShownInOutcome::new(&self.path, self.version.as_mut()?))
    }
}

/// The text shown for a link target outside the workspace, because outcomes never reveal such paths.
const OUTSIDE_LINK_TARGET: &str = "(outside)";
const MODE_MASK: u32 = 0o7777;

impl Operation for StatArgs {
    type Paths = PathAccessRequest;
    type Outcome = StatOutcome;

    fn duration_factor(&self) -> CallDurationFactor<'_> {
        CallDurationFactor::FileSize { path: &self.path, bytes: None }
    }

    fn resolve(&self, _context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        Ok(PathAccessRequest::from_argument(&self.path, RequestedAccessKind::Read, FinalSymlink::Keep))
    }

    fn plan(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        let path = &target.path;
        let stat = require_present(target)?;
        let mut outcome = StatOutcome {
            path: path.clone(),
            kind: stat.kind,
            size: context.readable_unsaved_file(path).map_or(stat.size, |unsaved| unsaved.text.len() as u64),
            modified: UtcTime { unix_ms: stat.modified_ms },
            mode: format!("{:04o}", stat.mode & MODE_MASK),
            created: None,
            owner: None,
            version: None,
            links: None,
            target: None,
        };
        if context.options.before_after == BeforeAfterContentInclusion::Include {
            let details = context.workspace().file_details(path)?;
            outcome.created = details.created_ms.map(|unix_ms| UtcTime { unix_ms });
            outcome.owner = details.owner;
        }
        match stat.kind {
            FileKind::File => {
                if outcome.size <= limits::STAT_VERSION_BYTES_MAX {
                    let version = context.read(path, BytesToRead::VersionOnly)?.version;
                    outcome.version = Some(FileVersionFields::new(version, context.revision_name(path, &version)));
                }
                outcome.links = (stat.link_count > 1).then_some(stat.link_count);
            }
            FileKind::Link => outcome.target = Some(visible_link_target(context, target)?),
            FileKind::Directory | FileKind::Special => {}
        }
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

pub fn file_kind_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Link => "link",
        FileKind::Special => "other",
    }
}

/// An absolute link target in the workspace becomes a path relative to the workspace root.
fn visible_link_target(context: &CallContext<'_>, target: &ResolvedTarget) -> Result<String, Error> {
    let workspace = context.workspace();
    let written = workspace.read_link(&target.path)?;
    match workspace.locate(&target.path, FinalSymlink::Follow) {
        Ok(located) if written.starts_with(b"/") => Ok(located.path.to_string()),
        Ok(_) => Ok(String::from_utf8_lossy(&written).into_owned()),
        Err(error) if matches!(error.kind, ErrorKind::LinkLoop | ErrorKind::NotFound | ErrorKind::NotDirectory) => {
            let inside = !written.starts_with(b"/") && !written.split(|byte| *byte == b'/').any(|part| part == b"..");
            Ok(if inside { String::from_utf8_lossy(&written).into_owned() } else { OUTSIDE_LINK_TARGET.to_owned() })
        }
        Err(_) => Ok(OUTSIDE_LINK_TARGET.to_owned()),
    }
}
