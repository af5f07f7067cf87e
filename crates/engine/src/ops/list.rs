//! `list` returns the entries below a directory by page, in byte order, parents before children. The next page of a
//! listing starts after the path of the last listed entry. An unchanged entry is neither repeated nor omitted if other
//! entries change between two pages of a listing.

mod walk;

use serde::{Deserialize, Serialize};
use stead_path::RelPath;
use stead_text::visible::escape_deceptive_line;
use walk::{ListCursor, ListWalk};

use super::planning::not_found_error;
use crate::{
    call_context::CallContext,
    call_options::ListingPageSizeAndDetail,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{Operation, OperationPlanningResult, PathAccessRequest, PlanResult, ResolvedTarget},
    ops::ReadArgs,
    outcome::{Completeness, OperationOutcome, UtcTime, is_default},
    plan::FileKind,
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ListOutcome {
    pub path: RelPath,
    pub entries: Vec<ListedEntryRow>,
    /// The number of entries on all pages of the listing; `None` if the depth is greater than 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
    #[serde(skip_serializing_if = "is_default")]
    pub hidden: usize,
    #[serde(flatten)]
    pub completeness: Completeness<ListArgs>,
}

impl OperationOutcome for ListOutcome {}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedEntryRow {
    pub path: RelPath,
    #[serde(rename = "type")]
    pub kind: FileKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The error code of a directory that could not be listed, or of a file whose size could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<UtcTime>,
    /// The target of a link; `None` if the target is outside the workspace or the caller may not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leads_to: Option<ListedLinkTarget>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedLinkTarget {
    #[serde(rename = "type")]
    pub kind: FileKind,
    pub size: u64,
}

impl ListedEntryRow {
    /// Renders the line of an entry in the text of a listing of `top`, without the entry's error. The lengths of the
    /// rendered lines decide how many entries fit on a page.
    pub fn render_line(&self, top: &RelPath) -> String {
        let below = self.path.strip_prefix(top).unwrap_or_default();
        let wire = below.to_wire();
        let name = escape_deceptive_line(&wire);
        match (self.kind, self.size) {
            (FileKind::Directory, _) => format!("{name}/"),
            (FileKind::Link, _) => format!("{name}@"),
            (FileKind::Special, _) => format!("{name}  (other)"),
            (FileKind::File, Some(size)) => format!("{name}  {size}"),
            (FileKind::File, None) => name.into_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HiddenFileFilter {
    Include,
    Exclude,
}

impl ListArgs {
    fn depth(&self) -> Result<usize, Error> {
        let depth = self.depth.unwrap_or(1);
        match usize::try_from(depth) {
            Ok(depth) if (1..=limits::LIST_DEPTH_MAX).contains(&depth) => Ok(depth),
            Ok(_) | Err(_) => Err(Error::new(ErrorKind::BadRequest, format!("depth cannot be {depth}"))
                .with_next_step(NextStep::repeat_with_such("depth", format!("from 1 to {}", limits::LIST_DEPTH_MAX)))),
        }
    }

    fn hidden_file_filter(&self) -> HiddenFileFilter {
        if self.all == Some(true) { HiddenFileFilter::Include } else { HiddenFileFilter::Exclude }
    }
}

impl Operation for ListArgs {
    type Paths = PathAccessRequest;
    type Outcome = ListOutcome;

    fn resolve(&self, _context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        self.depth()?;
        Ok(PathAccessRequest::read(self.path.as_deref().unwrap_or(".")))
    }

    fn plan(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        let top = &target.path;
        require_directory(target)?;
        let after = self.cursor.as_deref().map(|cursor| ListCursor::parse(cursor, top)).transpose()?;
        let mut walk = ListWalk::new(context, top, self.depth()?, self.hidden_file_filter());
        walk.run(after.as_ref())?;
        let completeness = match walk.next_cursor {
            None => Completeness::Complete,
            Some(last) => {
                let limit = match context.options.listing_style {
                    ListingPageSizeAndDetail::NativePage => "OUTCOME_PAGE_CHARS",
                    ListingPageSizeAndDetail::DetailedEntries(_) => "DetailedEntries",
                };
                let (path, cursor) = (Some(top.to_string()), Some(last.to_string()));
                let next = Self { path, depth: Some(self.depth.unwrap_or(1)), all: self.all, cursor };
                Completeness::continued_by(next, limit)
            }
        };
        let outcome = ListOutcome {
            path: top.clone(),
            entries: walk.entries,
            total: (walk.depth == 1).then_some(walk.total),
            hidden: walk.hidden_count,
            completeness,
        };
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

pub(super) fn require_directory(target: &ResolvedTarget) -> Result<(), Error> {
    let path = &target.path;
    match target.stat.map(|stat| stat.kind) {
        Some(FileKind::Directory) => Ok(()),
        Some(FileKind::File | FileKind::Link | FileKind::Special) => {
            Err(Error::new(ErrorKind::NotDirectory, format!("{path} is not a directory"))
                .with_next_step(NextStep::call(ReadArgs::new(path), "see the file")))
        }
        None if path.is_root() => Err(Error::workspace_missing()),
        None => Err(not_found_error(path)),
    }
}
