//! What the journal knows about a quote or a file that is not there: the revision that held it, who changed it since,
//! the place it went to. Only looks at what this caller may read, and at a bounded number of revisions.

use std::ops::RangeInclusive;

use journal::ChangeKind;
use path::RelPath;
use serde_json::{Value, json};
use text::{
    edit::whereabouts,
    locate::{Borders, Counting, Finder, Matching, Pass},
    unified::{Labels, unified},
};

use super::diff::text_of;
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::Target,
    version::Version,
    view::View,
    workspace::{EntryFilter, Order, Stored, Which},
};

/// An older revision that holds a quote.
pub(crate) struct Older {
    rev: String,
    /// Who made the first change after it, and as which entry.
    by: Option<(String, u64)>,
    diff: String,
    /// The current lines at the place of the quote; nothing when they went away.
    lines: Option<RangeInclusive<usize>>,
}

impl Older {
    /// The revision's short name.
    pub(crate) fn rev(&self) -> &str {
        &self.rev
    }

    /// The current lines at the place of the quote.
    pub(crate) fn lines(&self) -> Option<&RangeInclusive<usize>> {
        self.lines.as_ref()
    }

    /// In one sentence.
    pub(crate) fn sentence(&self) -> String {
        match &self.by {
            Some((principal, number)) => {
                format!("your text is that of {}, which {principal} changed in r{number}", self.rev)
            }
            None => format!("your text is that of {}", self.rev),
        }
    }

    /// For machines.
    pub(crate) fn fact(&self) -> Value {
        let mut fact = json!({ "rev": self.rev, "diff": self.diff });
        if let Some((principal, number)) = &self.by {
            fact["changed_by"] = json!(principal);
            fact["changed_in"] = json!(format!("r{number}"));
        }
        fact
    }

    /// What changed since.
    pub(crate) fn diff(&self) -> &str {
        &self.diff
    }
}

/// A file as it is.
#[derive(Clone, Copy)]
pub(crate) struct Now<'a> {
    pub(crate) path: &'a RelPath,
    pub(crate) version: Version,
    pub(crate) text: &'a str,
}

/// The newest kept revision of a file that holds `quote`.
pub(crate) fn holding(view: &View<'_>, now: Now<'_>, quote: &str, borders: Borders) -> Option<Older> {
    let entries = entries(view, now.path)?;
    let passes = &[Pass::Exact, Pass::Endings];
    let how = Matching { passes, counting: Counting::Separate, borders };
    let mut tried = vec![now.version];
    let mut newer: Option<(String, u64)> = None;
    for stored in &entries {
        for (version, left_by) in versions(stored, now.path) {
            if tried.contains(&version) {
                continue;
            }
            if tried.len() > limits::OLDER_REVISIONS_MAX {
                return None;
            }
            tried.push(version);
            let Some(text) = kept(view, &version) else { continue };
            if let Some(place) = Finder::new(&text).find(quote, how).places.first() {
                let rev = view.rev(now.path, &version);
                // The bytes before an entry were changed by that entry; those it left, by the next one.
                let by = if left_by { newer } else { Some(author(stored)) };
                let labels = Labels { old: &rev, new: "now" };
                let lines = limits::FAILURE_LINES_MAX;
                let diff = unified(&text, now.text, labels, limits::DIFF_CONTEXT_LINES, lines);
                let lines = whereabouts(&text, now.text, &place.lines);
                return Some(Older { diff: shown(&diff), lines, by, rev });
            }
        }
        newer = Some(author(stored));
    }
    None
}

/// A bounded diff with a word about what was left out.
pub(crate) fn shown(diff: &text::unified::Unified) -> String {
    match diff.omitted_lines {
        0 => diff.text.clone(),
        lines => format!("{}… and {lines} more lines\n", diff.text),
    }
}

fn author(stored: &Stored) -> (String, u64) {
    (stored.entry.caller.principal.clone(), stored.entry.number)
}

fn kept(view: &View<'_>, version: &Version) -> Option<String> {
    // What cannot be read back is as good as not kept: this is a courtesy.
    let bytes = view.workspace().kept(version).ok().flatten()?;
    (bytes.len() as u64 <= limits::OLDER_BYTES_MAX)
        .then(|| text_of(&bytes).map(std::borrow::Cow::into_owned))
        .flatten()
}

fn entries(view: &View<'_>, path: &RelPath) -> Option<Vec<Stored>> {
    let filter = EntryFilter {
        path: Some(path.clone()),
        what: Which::Changes,
        order: Order::NewestFirst,
        limit: limits::OLDER_REVISIONS_MAX,
        ..EntryFilter::default()
    };
    view.workspace().entries(&filter).ok()
}

/// The versions of a file that an entry names, the one it left first; and whether it left it.
fn versions(stored: &Stored, path: &RelPath) -> Vec<(Version, bool)> {
    let wire = path.to_wire();
    let mut found = Vec::new();
    for change in &stored.entry.changes {
        if change.to.as_deref().unwrap_or(&change.path) == wire
            && let journal::State::File { version, .. } = &change.after
        {
            found.push((Version(*version), true));
        }
        if change.path == wire
            && let journal::State::File { version, .. } = &change.before
        {
            found.push((Version(*version), false));
        }
    }
    found
}

/// The last change that began at a place, and its entry.
fn last_change(view: &View<'_>, path: &RelPath) -> Option<(Stored, journal::Change)> {
    let wire = path.to_wire();
    entries(view, path)?.into_iter().find_map(|stored| {
        let change = stored.entry.changes.iter().find(|change| change.path == wire)?.clone();
        Some((stored, change))
    })
}

/// How something left its place last, as far as the journal knows.
pub(crate) enum Left {
    /// It was taken away.
    Removed,
    /// It got this name.
    To(RelPath),
}

/// How what was at `path`, where nothing is now, left it.
pub(crate) fn left(view: &View<'_>, path: &RelPath) -> Option<Left> {
    let (_, change) = last_change(view, path)?;
    match change.kind {
        ChangeKind::Remove => Some(Left::Removed),
        ChangeKind::Rename => RelPath::from_wire(change.to.as_deref()?).ok().map(Left::To),
        ChangeKind::Create
        | ChangeKind::Modify
        | ChangeKind::MakeDir
        | ChangeKind::MakeLink
        | ChangeKind::Copy
        | ChangeKind::SetMode
        | ChangeKind::Rescan => None,
    }
}

/// The failure when no file is there, with the place it went to if the journal knows it.
pub(crate) fn gone(view: &View<'_>, target: &Target, base: Option<&str>) -> Failure {
    let path = &target.path;
    let (kind, detail) = match base {
        Some(_) => (Kind::Stale, format!("{path} does not exist any more; nothing was written")),
        None => (Kind::NotFound, format!("there is no file {path}; nothing was written")),
    };
    let failure = Failure::new(kind, detail).fact("path", path.to_string());
    let last = last_change(view, path);
    let moved =
        last.as_ref().filter(|(_, change)| change.kind == ChangeKind::Rename).and_then(|(stored, change)| {
            let to = RelPath::from_wire(change.to.as_deref()?).ok()?;
            view.may_read(&to).then_some((author(stored), to))
        });
    if let Some(((principal, number), to)) = moved {
        return failure
            .hint(format!("{principal} moved it to {to} in r{number}: edit {to}"))
            .fact("moved_to", to.to_string())
            .fact("changed_by", principal);
    }
    match last.filter(|(_, change)| change.kind == ChangeKind::Remove) {
        Some((stored, _)) => {
            let (principal, number) = author(&stored);
            failure
                .hint(format!("{principal} removed it in r{number}: undo that, or create it with write"))
                .fact("changed_by", principal)
        }
        None => failure.hint("list the directory to see what is there, or create it with write"),
    }
}
