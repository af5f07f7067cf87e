//! The expected cost of a call, so that a host can choose a thread for it. Only a hint: the pipeline decides whether
//! the call may run and what it returns.

use serde_json::{Map, Value};
use stead_path::PathSyntax;

use crate::{
    limits,
    plan::FileKind,
    workspace::{FinalSymlink, Workspace},
};

/// The expected duration of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostClass {
    /// Reads one small file: faster than a thread switch.
    Inline,
    /// Changes one small file: worth another thread only under load.
    Short,
    /// Takes long.
    Long,
    /// Mostly waits for an event.
    Waiting,
}

/// How the cost of an operation follows from its arguments. Declared in the operation table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CostModel {
    /// By the size of the file at `path`.
    ByFileSize,
    /// By the size of `content`.
    ByContentSize,
    AlwaysLong,
    /// By `wait_ms`.
    ByWaitTime,
}

pub(crate) fn classify_cost(
    workspace: &dyn Workspace,
    cost_model: CostModel,
    arguments: &Map<String, Value>,
    syntax: &PathSyntax,
) -> CostClass {
    match cost_model {
        CostModel::AlwaysLong => CostClass::Long,
        CostModel::ByFileSize if is_small_file(workspace, arguments, syntax) => CostClass::Inline,
        CostModel::ByFileSize => CostClass::Long,
        CostModel::ByContentSize if has_small_content(arguments) => CostClass::Short,
        CostModel::ByContentSize => CostClass::Long,
        CostModel::ByWaitTime if arguments.get("wait_ms").is_some_and(|wait| wait.as_u64() != Some(0)) => {
            CostClass::Waiting
        }
        CostModel::ByWaitTime => CostClass::Long,
    }
}

/// The number of bytes a call is likely to load, as far as it is known beforehand.
pub(crate) fn estimate_bytes(
    workspace: &dyn Workspace,
    cost_model: CostModel,
    arguments: &Map<String, Value>,
    syntax: &PathSyntax,
) -> u64 {
    match cost_model {
        CostModel::ByFileSize => {
            let size = file_size(workspace, arguments, syntax).unwrap_or_default();
            requested_length(arguments).map_or(size, |part| part.min(size))
        }
        CostModel::ByContentSize | CostModel::AlwaysLong | CostModel::ByWaitTime => 0,
    }
}

/// The length of the requested byte range, if any.
fn requested_length(arguments: &Map<String, Value>) -> Option<u64> {
    let (first, last) = arguments.get("bytes")?.as_str()?.split_once('-')?;
    let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
    Some(last.saturating_sub(first).saturating_add(1))
}

fn has_small_content(arguments: &Map<String, Value>) -> bool {
    let content = arguments.get("content").and_then(Value::as_str);
    content.is_some_and(|content| content.len() as u64 <= limits::INLINE_FILE_BYTES_MAX)
}

fn is_small_file(workspace: &dyn Workspace, arguments: &Map<String, Value>, syntax: &PathSyntax) -> bool {
    file_size(workspace, arguments, syntax).is_some_and(|size| size <= limits::INLINE_FILE_BYTES_MAX)
}

fn file_size(workspace: &dyn Workspace, arguments: &Map<String, Value>, syntax: &PathSyntax) -> Option<u64> {
    let text = arguments.get("path").and_then(Value::as_str)?;
    let parsed = stead_path::parse_path(text, &workspace.profile().root_spellings, syntax).ok()?;
    let (found, seen) = workspace.locate_and_stat(&parsed.path, FinalSymlink::Follow).ok()?;
    let node = match seen {
        Some(node) => node,
        None => workspace.stat(&found).ok()??,
    };
    (node.kind == FileKind::File).then_some(node.size)
}
