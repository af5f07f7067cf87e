//! The walk that fills one page of a directory listing. The walk visits directories in listing order and stops when the
//! page is full. A subdirectory that cannot be listed appears in the listing with the reason.

use std::cmp::Ordering;

use stead_path::{FileName, RelPath};

use crate::{
    call_context::CallContext,
    call_options::ListingPageSizeAndDetail,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    ops::{
        list::{HiddenFileFilter, ListedEntryRow, ListedLinkTarget},
        text_pages::shorten_for_error,
    },
    outcome::UtcTime,
    plan::FileKind,
    tree::{DirectoryEntry, FileStatLookupResult, FinalSymlink},
};

/// The relative path after which the next page of a listing continues, even if the path no longer exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListCursor(Vec<Vec<u8>>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EntryListedEarlierStatus {
    Listed,
    /// Earlier pages list the directory and, up to the cursor, its descendants; `None` means no descendants.
    PartlyListed(Option<ListCursor>),
    NotListed,
}

impl ListCursor {
    pub(super) fn parse(cursor: &str, top: &RelPath) -> Result<Self, Error> {
        let path =
            RelPath::from_wire(cursor).ok().and_then(|path| path.strip_prefix(top)).filter(|rest| !rest.is_root());
        match path {
            Some(rest) => Ok(Self(rest.components().map(<[u8]>::to_vec).collect())),
            None => Err(Error::new(
                ErrorKind::BadRequest,
                format!("'{}' is not a cursor of this listing", shorten_for_error(cursor)),
            )
            .with_next_step(
                NextStep::repeat_without("cursor").or("pass the cursor of the previous page with the same path"),
            )),
        }
    }

    pub(super) fn listing_status(&self, name: &FileName) -> EntryListedEarlierStatus {
        let Some((first, rest)) = self.0.split_first() else { return EntryListedEarlierStatus::NotListed };
        match name.as_bytes().cmp(first.as_slice()) {
            Ordering::Less => EntryListedEarlierStatus::Listed,
            Ordering::Equal if rest.is_empty() => EntryListedEarlierStatus::PartlyListed(None),
            Ordering::Equal => EntryListedEarlierStatus::PartlyListed(Some(Self(rest.to_vec()))),
            Ordering::Greater => EntryListedEarlierStatus::NotListed,
        }
    }
}

struct ListingDirectory {
    path: RelPath,
    /// The entries of the directory that are not visited yet, in reverse order.
    remaining: Vec<DirectoryEntry>,
    after: Option<ListCursor>,
    /// The metadata of the next entries to visit, which are the last entries of `remaining`.
    stats_ahead: Vec<FileStatLookupResult>,
}

impl ListingDirectory {
    fn next_entry(
        &mut self,
        context: &CallContext<'_>,
    ) -> Result<Option<(DirectoryEntry, FileStatLookupResult)>, Error> {
        if self.stats_ahead.is_empty() {
            let start = self.remaining.len().saturating_sub(STAT_BATCH);
            let names: Vec<FileName> = self.remaining[start..].iter().map(|listed| listed.name.clone()).collect();
            self.stats_ahead = context.stat_names(&self.path, &names)?;
        }
        Ok(self.remaining.pop().zip(self.stats_ahead.pop()))
    }

    /// Drops the entries that earlier pages already list, so that their metadata need not be read.
    fn skip_listed(&mut self) {
        let Some(after) = &self.after else { return };
        let is_listed = |entry: &DirectoryEntry| after.listing_status(&entry.name) == EntryListedEarlierStatus::Listed;
        while self.remaining.pop_if(|entry| is_listed(entry)).is_some() {}
    }
}

const STAT_BATCH: usize = 128;

pub(super) struct ListWalk<'v, 'a> {
    context: &'v CallContext<'a>,
    top: &'v RelPath,
    hidden_files: HiddenFileFilter,
    open: Vec<ListingDirectory>,
    pub(super) depth: usize,
    pub(super) entries: Vec<ListedEntryRow>,
    chars: usize,
    /// The number of entries directly in the top directory, without omitted hidden entries.
    pub(super) total: usize,
    pub(super) hidden_count: usize,
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
            match open
                .after
                .as_ref()
                .map_or(EntryListedEarlierStatus::NotListed, |after| after.listing_status(&listed.name))
            {
                EntryListedEarlierStatus::Listed => {}
                EntryListedEarlierStatus::PartlyListed(after) => self.descend(&path, listed.kind, after),
                EntryListedEarlierStatus::NotListed => {
                    if !self.add_entry(&path, listed.kind, stat) {
                        return Ok(());
                    }
                    self.descend(&path, listed.kind, None);
                }
            }
        }
        Ok(())
    }

    /// Adds an entry to the page of the listing; returns false if the page is full.
    fn add_entry(&mut self, path: &RelPath, kind: FileKind, stat: FileStatLookupResult) -> bool {
        let (mut modified, mut leads_to) = (None, None);
        if let (ListingPageSizeAndDetail::DetailedEntries(_), Ok(Some(stat))) =
            (self.context.options.listing_style, &stat)
        {
            modified = Some(UtcTime { unix_ms: stat.modified_ms });
            leads_to = (stat.kind == FileKind::Link).then(|| self.stat_link_target(path)).flatten();
        }
        let (size, error) = match kind {
            FileKind::File if self.context.may_read(path) => match stat {
                Ok(Some(stat)) => (Some(stat.size), None),
                // The file was removed after the directory was listed.
                Ok(None) => return true,
                // One inaccessible entry, such as a file on another mount, must not prevent the listing of others.
                Err(failure) => (None, Some(failure.kind.code())),
            },
            FileKind::File | FileKind::Directory | FileKind::Link | FileKind::Special => (None, None),
        };
        let entry = ListedEntryRow { path: path.clone(), kind, size, error, modified, leads_to };
        let chars = entry.render_line(self.top).chars().count() + 1;
        let full = match self.context.options.listing_style {
            ListingPageSizeAndDetail::NativePage => self.chars + chars > limits::OUTCOME_PAGE_CHARS,
            ListingPageSizeAndDetail::DetailedEntries(most) => self.entries.len() >= most,
        };
        if full && let Some(last) = self.entries.last() {
            self.next_cursor = Some(last.path.clone());
            return false;
        }
        self.chars += chars;
        self.entries.push(entry);
        true
    }

    fn stat_link_target(&self, link: &RelPath) -> Option<ListedLinkTarget> {
        let target = self.context.workspace().locate(link, FinalSymlink::Follow).ok()?;
        let stat = target.stat().filter(|_| self.context.may_read(&target.path))?;
        Some(ListedLinkTarget { kind: stat.kind, size: stat.size })
    }

    fn descend(&mut self, path: &RelPath, kind: FileKind, after: Option<ListCursor>) {
        if kind != FileKind::Directory || self.open.len() >= self.depth {
            return;
        }
        if let Err(error) = self.open_directory(path, after)
            && let Some(entry) = self.entries.last_mut().filter(|entry| entry.path == *path)
        {
            entry.error = Some(error.kind.code());
        }
    }

    fn open_directory(&mut self, path: &RelPath, after: Option<ListCursor>) -> Result<(), Error> {
        let mut names = self.context.list_visible(path)?;
        let all = names.len();
        if self.hidden_files == HiddenFileFilter::Exclude {
            names.retain(|listed| !listed.name.as_bytes().starts_with(b"."));
        }
        // Only the first page counts the hidden entries of a directory; the top directory is counted on every page.
        if after.is_none() || self.open.is_empty() {
            self.hidden_count += all - names.len();
        }
        names.reverse();
        let mut open = ListingDirectory { path: path.clone(), remaining: names, after, stats_ahead: Vec::new() };
        let total = open.remaining.len();
        open.skip_listed();
        if self.open.is_empty() {
            self.total = total;
        }
        self.open.push(open);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_classified_against_cursor() {
        let top = RelPath::from_wire("src").unwrap();
        let after = ListCursor::parse("src/m/x", &top).unwrap();
        let status = |after: &ListCursor, name: &str| after.listing_status(&FileName::new(name.as_bytes()).unwrap());
        assert_eq!(status(&after, "a"), EntryListedEarlierStatus::Listed);
        assert_eq!(status(&after, "n"), EntryListedEarlierStatus::NotListed);
        let EntryListedEarlierStatus::PartlyListed(Some(inner)) = status(&after, "m") else { panic!("inside") };
        assert_eq!(status(&inner, "x"), EntryListedEarlierStatus::PartlyListed(None));
        assert_eq!(status(&inner, "y"), EntryListedEarlierStatus::NotListed);
    }

    #[test]
    fn cursor_outside_directory_is_rejected() {
        let top = RelPath::from_wire("src").unwrap();
        for cursor in ["", "src", "docs/x", "../x", "src/../x", "a\\b"] {
            assert_eq!(ListCursor::parse(cursor, &top).unwrap_err().kind, ErrorKind::BadRequest, "{cursor}");
        }
    }
}
