//! The walk for one page. Descends in order with a stack of directories, stops when the page is full, and keeps the
//! last listed entry. A subdirectory that cannot be listed is shown with the reason.

use stead_path::{FileName, RelPath};
use stead_text::visible::escape_deceptive_line;

use super::{
    HiddenFileFilter,
    cursor::{ListCursor, ListingStatus},
};
use crate::{
    call_context::CallContext,
    call_options::ListingStyle,
    errors::{Error, ErrorKind},
    limits,
    plan::FileKind,
    workspace::{DirectoryEntry, FileStat, FinalSymlink, StatResult},
};

pub(super) struct ListingEntry {
    pub(super) path: RelPath,
    pub(super) kind: FileKind,
    pub(super) size: Option<u64>,
    /// Why the names of a directory or the size of a file are missing.
    pub(super) error: Option<ErrorKind>,
    /// The text line.
    pub(super) line: String,
    /// Set only for a detailed listing.
    pub(super) details: Option<ListingEntryDetails>,
}

pub(super) struct ListingEntryDetails {
    pub(super) modified_ms: i64,
    /// The stat of the link target, if it is inside and visible.
    pub(super) link_target: Option<FileStat>,
}

/// A directory with the names still to visit, in reverse order.
struct ListingDirectory {
    path: RelPath,
    remaining: Vec<DirectoryEntry>,
    after: Option<ListCursor>,
    /// Stats of the next names, in reverse order, for the last names in `rest`.
    stats_ahead: Vec<StatResult>,
}

impl ListingDirectory {
    /// The next name and its stat.
    fn next_entry(&mut self, context: &CallContext<'_>) -> Result<Option<(DirectoryEntry, StatResult)>, Error> {
        if self.stats_ahead.is_empty() {
            let start = self.remaining.len().saturating_sub(STAT_BATCH);
            let names: Vec<FileName> = self.remaining[start..].iter().map(|listed| listed.name.clone()).collect();
            self.stats_ahead = context.stat_names(&self.path, &names)?;
        }
        Ok(self.remaining.pop().zip(self.stats_ahead.pop()))
    }

    /// Skips a name of an earlier page without a stat.
    fn skip_name(&mut self) {
        let Some(after) = &self.after else { return };
        while self
            .remaining
            .last()
            .is_some_and(|listed| matches!(after.listing_status(&listed.name), ListingStatus::Listed))
        {
            self.remaining.pop();
        }
    }
}

/// Names that one stat batch covers.
const STAT_BATCH: usize = 128;

pub(super) struct ListWalk<'v, 'a> {
    context: &'v CallContext<'a>,
    top: &'v RelPath,
    hidden_files: HiddenFileFilter,
    open: Vec<ListingDirectory>,
    pub(super) depth: usize,
    pub(super) entries: Vec<ListingEntry>,
    pub(super) chars: usize,
    /// Names in the top directory, without hidden ones.
    pub(super) total: usize,
    /// Names omitted because of a leading dot.
    pub(super) hidden_count: usize,
    /// The last listed entry, if there are more.
    pub(super) next_cursor: Option<RelPath>,
}

impl<'v, 'a> ListWalk<'v, 'a> {
    pub(super) fn new(
        context: &'v CallContext<'a>,
        top: &'v RelPath,
        depth: usize,
        hidden_files: HiddenFileFilter,
    ) -> Self {
        Self {
            context,
            top,
            hidden_files,
            open: Vec::new(),
            depth,
            entries: Vec::new(),
            chars: 0,
            total: 0,
            hidden_count: 0,
            next_cursor: None,
        }
    }

    pub(super) fn run(&mut self, after: Option<&ListCursor>) -> Result<(), Error> {
        self.open_directory(self.top, after.cloned())?;
        while let Some(open) = self.open.last_mut() {
            self.context.control.check()?;
            let Some((listed, stat)) = open.next_entry(self.context)? else {
                self.open.pop();
                continue;
            };
            let path = open.path.join(&listed.name)?;
            match open.after.as_ref().map_or(ListingStatus::NotListed, |after| after.listing_status(&listed.name)) {
                ListingStatus::Listed => {}
                ListingStatus::PartlyListed(after) => self.descend(&path, listed.kind, after)?,
                ListingStatus::NotListed => {
                    if !self.add_entry(&path, listed.kind, stat) {
                        return Ok(());
                    }
                    self.descend(&path, listed.kind, None)?;
                }
            }
        }
        Ok(())
    }

    /// Adds an entry; returns false if the page is full.
    fn add_entry(&mut self, path: &RelPath, top: FileKind, stat: StatResult) -> bool {
        let more = self.entry_details(path, &stat);
        let (size, unlisted) = match top {
            FileKind::File if self.context.may_read(path) => match stat {
                Ok(Some(stat)) => (Some(stat.size), None),
                // Removed since it was listed.
                Ok(None) => return true,
                // One inaccessible entry, such as a file on another mount, does not hide the others.
                Err(failure) => (None, Some(failure.kind)),
            },
            FileKind::File | FileKind::Directory | FileKind::Link | FileKind::Special => (None, None),
        };
        let line = render_line(self.top, path, top, size);
        let chars = line.chars().count() + 1;
        let full = match self.context.options.listing_style {
            ListingStyle::NativePage => self.chars + chars > limits::OUTCOME_PAGE_CHARS,
            ListingStyle::DetailedEntries(most) => self.entries.len() >= most,
        };
        if full && let Some(last) = self.entries.last() {
            self.next_cursor = Some(last.path.clone());
            return false;
        }
        self.chars += chars;
        self.entries.push(ListingEntry { path: path.clone(), kind: top, size, error: unlisted, line, details: more });
        true
    }

    fn entry_details(&self, path: &RelPath, stat: &StatResult) -> Option<ListingEntryDetails> {
        match (self.context.options.listing_style, stat) {
            (ListingStyle::NativePage, _) | (ListingStyle::DetailedEntries(_), Ok(None) | Err(_)) => None,
            (ListingStyle::DetailedEntries(_), Ok(Some(stat))) => {
                let leads_to = (stat.kind == FileKind::Link).then(|| self.stat_link_target(path)).flatten();
                Some(ListingEntryDetails { modified_ms: stat.modified_ms, link_target: leads_to })
            }
        }
    }

    fn stat_link_target(&self, link: &RelPath) -> Option<FileStat> {
        let workspace = self.context.workspace();
        let path = workspace.locate(link, FinalSymlink::Follow).ok().filter(|path| self.context.may_read(path))?;
        workspace.stat(&path).ok()?
    }

    /// Enters a directory, unless it is at the maximum depth.
    fn descend(&mut self, path: &RelPath, top: FileKind, after: Option<ListCursor>) -> Result<(), Error> {
        if top != FileKind::Directory || self.open.len() >= self.depth {
            return Ok(());
        }
        match self.open_directory(path, after) {
            Ok(()) => Ok(()),
            Err(error) => {
                if let Some(shown) = self.entries.last_mut().filter(|shown| shown.path == *path) {
                    shown.error = Some(error.kind);
                }
                Ok(())
            }
        }
    }

    fn open_directory(&mut self, path: &RelPath, after: Option<ListCursor>) -> Result<(), Error> {
        let mut names = self.context.list_visible(path)?;
        let all = names.len();
        if self.hidden_files == HiddenFileFilter::Exclude {
            names.retain(|listed| !listed.name.as_bytes().starts_with(b"."));
        }
        // Later pages count hidden names only for new directories, and for the top always.
        if after.is_none() || self.open.is_empty() {
            self.hidden_count += all - names.len();
        }
        names.reverse();
        let mut open = ListingDirectory { path: path.clone(), remaining: names, after, stats_ahead: Vec::new() };
        let total = open.remaining.len();
        open.skip_name();
        if self.open.is_empty() {
            self.total = total;
        }
        self.open.push(open);
        Ok(())
    }
}

/// The path below the top, a type marker and the size.
fn render_line(top: &RelPath, path: &RelPath, kind: FileKind, size: Option<u64>) -> String {
    let below = path.strip_prefix(top).unwrap_or_default();
    let wire = below.to_wire();
    let name = escape_deceptive_line(&wire);
    match (kind, size) {
        (FileKind::Directory, _) => format!("{name}/"),
        (FileKind::Link, _) => format!("{name}@"),
        (FileKind::Special, _) => format!("{name}  (other)"),
        (FileKind::File, Some(size)) => format!("{name}  {size}"),
        (FileKind::File, None) => name.into_owned(),
    }
}
