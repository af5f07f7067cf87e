//! `list` returns the entries below a directory by page, in byte order, parents before children. The next page of a
//! listing starts after the path of the last listed entry. An unchanged entry is therefore neither repeated nor
//! omitted, even if other entries change between two pages.

mod walk;

use serde::Deserialize;
use serde_json::{Map, Value};
use stead_path::RelPath;
use stead_text::visible::escape_deceptive_line;
use walk::{ListCursor, ListWalk, ListingEntry};

use super::{
    outcome_builder::{OutcomeBuilder, format_iso_utc},
    planning::not_found_error,
    stat::file_kind_name,
};
use crate::{
    call_context::CallContext,
    call_notation::CallNotation,
    engine::CallOutcome,
    errors::{Error, ErrorKind},
    limits,
    operation::{
        Operation, OperationPlanningResult, PlanResult, RequestedPath, RequestedPathIndex, RequestedPaths,
        ResolvedTarget, ResolvedTargets,
    },
    plan::FileKind,
    workspace::FileStat,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListArgs {
    path: Option<String>,
    depth: Option<u64>,
    all: Option<bool>,
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HiddenFileFilter {
    Include,
    Exclude,
}

impl ListArgs {
    fn path_argument(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }

    fn depth(&self) -> Result<usize, Error> {
        let depth = self.depth.unwrap_or(1);
        match usize::try_from(depth) {
            Ok(depth) if (1..=limits::LIST_DEPTH_MAX).contains(&depth) => Ok(depth),
            Ok(_) | Err(_) => Err(Error::new(ErrorKind::BadRequest, format!("depth cannot be {depth}"))
                .with_next_step(format!("pass a depth from 1 to {}", limits::LIST_DEPTH_MAX))),
        }
    }

    fn hidden_file_filter(&self) -> HiddenFileFilter {
        if self.all == Some(true) { HiddenFileFilter::Include } else { HiddenFileFilter::Exclude }
    }
}

impl Operation for ListArgs {
    type Resolved = RequestedPathIndex;
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, paths: &mut RequestedPaths) -> Result<Self::Resolved, Error> {
        self.depth()?;
        Ok(paths.add(RequestedPath::read(self.path_argument())))
    }

    fn plan(&self, context: &CallContext<'_>, path: RequestedPathIndex, targets: &ResolvedTargets) -> PlanResult<Self> {
        let target = &targets[path];
        let top = &target.path;
        require_directory(target)?;
        let after = self.cursor.as_deref().map(|cursor| ListCursor::parse(cursor, top)).transpose()?;
        let mut walk = ListWalk::new(context, top, self.depth()?, self.hidden_file_filter());
        walk.run(after.as_ref())?;
        let next = walk.next_cursor.as_ref().map(|last| self.continuation_args(top, last));
        let text = render_text(top, &walk, next.as_ref(), context.options.call_notation);
        let entries: Vec<_> = walk.entries.iter().map(entry_json).collect();
        let outcome = OutcomeBuilder::new()
            .with_field("path", top.to_string())
            .with_field("entries", entries)
            .with_some("total", (walk.depth == 1).then_some(walk.total))
            .with_some("hidden", (walk.hidden_count > 0).then_some(walk.hidden_count))
            .with_field("truncated", next.is_some())
            .with_some("next", next)
            .build(text);
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

impl ListArgs {
    fn continuation_args(&self, top: &RelPath, last: &RelPath) -> Map<String, Value> {
        OutcomeBuilder::new()
            .with_field("path", top.to_string())
            .with_field("depth", self.depth.unwrap_or(1))
            .with_some("all", self.all)
            .with_field("cursor", last.to_string())
            .into_json()
    }
}

pub(super) fn require_directory(target: &ResolvedTarget) -> Result<(), Error> {
    let path = &target.path;
    match target.stat.map(|stat| stat.kind) {
        Some(FileKind::Directory) => Ok(()),
        Some(FileKind::File | FileKind::Link | FileKind::Special) => {
            Err(Error::new(ErrorKind::NotDirectory, format!("{path} is not a directory"))
                .with_next_step(format!("call read or stat with path {path}")))
        }
        None if path.is_root() => Err(Error::workspace_missing()),
        None => Err(not_found_error(path)),
    }
}

fn entry_json(entry: &ListingEntry) -> Map<String, Value> {
    OutcomeBuilder::new()
        .with_field("path", entry.path.to_string())
        .with_field("type", file_kind_name(entry.kind))
        .with_some("size", entry.size)
        .with_some("error", entry.error.map(ErrorKind::code))
        .with_some("modified", entry.details.as_ref().map(|details| format_iso_utc(details.modified_ms)))
        .with_some("leads_to", entry.details.as_ref().and_then(|details| details.link_target).map(link_target_json))
        .into_json()
}

fn link_target_json(stat: FileStat) -> Value {
    let fields = OutcomeBuilder::new().with_field("type", file_kind_name(stat.kind)).with_field("size", stat.size);
    Value::Object(fields.into_json())
}

fn render_text(
    top: &RelPath,
    walk: &ListWalk<'_, '_>,
    next: Option<&Map<String, Value>>,
    notation: CallNotation,
) -> String {
    let mut text = String::with_capacity(walk.chars + 128);
    for entry in &walk.entries {
        text.push_str(&entry.line);
        if let Some(kind) = entry.error {
            text.push_str(&format!("  ({})", kind.code()));
        }
        text.push('\n');
    }
    let path = top.to_wire();
    let count = match (walk.depth, &walk.next_cursor) {
        (1, Some(_)) => format!("{} of {} entries", walk.entries.len(), walk.total),
        (_, _) if walk.entries.is_empty() && walk.hidden_count == 0 => "empty".to_owned(),
        (_, _) => format!("{} entries", walk.entries.len()),
    };
    let hidden = match walk.hidden_count {
        0 => String::new(),
        hidden => format!(", {hidden} hidden ({} shows them)", notation.render_switch("all")),
    };
    text.push_str(&format!("[{}: {count}{hidden}]", escape_deceptive_line(&path)));
    if let Some(next) = next {
        text.push_str(&format!("\n… truncated: {}", notation.render_call("list", next)));
    }
    text
}
