//! One entry taken back, or made again by taking its undoing back. Owns what `undo` and `redo` share: finding the
//! entry, whose it is, the plan, and the answer.

use journal::{Entry, Link};
use serde_json::{Value, json};
use text::visible::visible_line;

use super::{
    answer::Facts,
    inverse::{self, Inverse, Policy, Reason, Step},
};
use crate::{
    caller::Principal,
    engine::Answer,
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Planned, Target},
    plan::{Change, Expect, Plan},
    view::View,
    workspace::{EntryFilter, Order, Stored, Which},
};

/// Whether the caller only wants to see what would happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    Real,
    Dry,
}

impl From<bool> for Run {
    fn from(dry: bool) -> Self {
        if dry { Run::Dry } else { Run::Real }
    }
}

/// Which way an entry goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Undo,
    Redo,
}

/// An entry that will be undone or redone.
#[derive(Debug)]
pub(crate) struct Reversal {
    direction: Direction,
    /// The entry that is undone or redone.
    number: u64,
    /// The entry whose changes are taken back: the one that last did it, or the one that undid it.
    source: u64,
    steps: Vec<Step>,
}

impl Reversal {
    /// Takes back what `source` did: `number` itself, or the latest entry that did it again.
    pub(crate) fn undo(view: &View<'_>, number: u64, source: &Entry) -> Result<Self, Failure> {
        let steps = inverse::steps(view, source)?;
        Ok(Self { direction: Direction::Undo, number, source: source.number, steps })
    }

    /// Does `number` again by taking back `undoing`, the entry that undid it.
    pub(crate) fn redo(view: &View<'_>, number: u64, undoing: &Entry) -> Result<Self, Failure> {
        let steps = inverse::steps(view, undoing)?;
        Ok(Self { direction: Direction::Redo, number, source: undoing.number, steps })
    }

    pub(crate) fn asks(&self) -> Vec<Ask> {
        inverse::asks(&self.steps)
    }

    pub(crate) fn plan(&self, view: &View<'_>, targets: &[Target], run: Run) -> Result<Planned, Failure> {
        self.still_due(view)?;
        let policy = match self.direction {
            Direction::Undo => Policy::Merge,
            Direction::Redo => Policy::Exact,
        };
        let inverse = inverse::plan(view, &self.steps, targets, policy)?;
        let blocked = match self.direction {
            Direction::Undo => false,
            Direction::Redo => inverse.kept.iter().any(|kept| kept.reason.blocks()),
        };
        if inverse.changes.is_empty() || blocked {
            return Err(self.refused(&inverse));
        }
        let report = Report::of(self.direction, self.number, &inverse);
        let link = match self.direction {
            Direction::Undo => Link::Undoes(self.number),
            Direction::Redo => Link::Redoes(self.number),
        };
        match run {
            Run::Dry => Ok(Planned::Preview(report.preview())),
            Run::Real => Ok(Planned::Change {
                plan: Plan::linked(inverse.changes, link),
                finish: Box::new(move |committed| {
                    let text = report.text(report.done(), &format!(" by r{}", committed.number));
                    report.facts().committed(committed).answer(text)
                }),
            }),
        }
    }

    /// Somebody else may have undone or redone it while this call waited for its turn.
    fn still_due(&self, view: &View<'_>) -> Result<(), Failure> {
        let undone = view.workspace().undone(self.number)?;
        let due = match self.direction {
            Direction::Undo => undone.is_none(),
            Direction::Redo => undone == Some(self.source),
        };
        if due {
            return Ok(());
        }
        Err(Failure::new(
            Kind::Conflict,
            format!("r{} was undone or redone by another call meanwhile", self.number),
        )
        .hint("call history to see what happened"))
    }

    fn refused(&self, inverse: &Inverse) -> Failure {
        let number = self.number;
        let expired = |reason: Reason| reason == Reason::NotInTrash || reason == Reason::NotKept;
        let kind = if !inverse.kept.is_empty() && inverse.kept.iter().all(|kept| expired(kept.reason)) {
            Kind::Expired
        } else {
            Kind::Conflict
        };
        let (detail, hint) = match self.direction {
            Direction::Undo => (
                format!("nothing of r{number} can be undone; nothing was changed"),
                "look at the paths in kept with read or diff, or pass entry to undo another one",
            ),
            Direction::Redo => (
                format!("r{number} cannot be redone because of later changes; nothing was changed"),
                "look at the paths in kept with read or diff, and make the change by hand",
            ),
        };
        Failure::new(kind, detail).hint(hint).fact("of", number).fact("kept", shown_kept(inverse))
    }
}

/// The first paths that were left alone, with the reason.
fn shown_kept(inverse: &Inverse) -> Vec<Value> {
    let shown = inverse.kept.iter().take(limits::REPORTED_PATHS_MAX);
    shown.map(|kept| json!({ "path": kept.path.to_string(), "reason": kept.reason.to_string() })).collect()
}

/// What the answer says, taken from the inverse before the commit consumes it.
struct Report {
    direction: Direction,
    number: u64,
    changed: Vec<Value>,
    changed_total: usize,
    kept: Vec<Value>,
    kept_total: usize,
    merged: Vec<String>,
    lines: Vec<String>,
}

impl Report {
    fn of(direction: Direction, number: u64, inverse: &Inverse) -> Self {
        let max = limits::REPORTED_PATHS_MAX;
        let changed = inverse.changes.iter().take(max);
        let mut lines: Vec<String> = changed.clone().map(line).collect();
        lines.extend(inverse.merged.iter().take(max).map(|path| format!("merged {path} with later changes")));
        lines
            .extend(inverse.kept.iter().take(max).map(|kept| format!("kept {}: {}", kept.path, kept.reason)));
        Self {
            direction,
            number,
            changed: changed.map(shown_change).collect(),
            changed_total: inverse.changes.len(),
            kept: shown_kept(inverse),
            kept_total: inverse.kept.len(),
            merged: inverse.merged.iter().take(max).map(ToString::to_string).collect(),
            lines: lines.iter().map(|line| visible_line(line).into_owned()).collect(),
        }
    }

    fn done(&self) -> &'static str {
        match self.direction {
            Direction::Undo => "undone",
            Direction::Redo => "redone",
        }
    }

    fn facts(&self) -> Facts {
        let changed_omitted = self.changed_total - self.changed.len();
        let kept_omitted = self.kept_total - self.kept.len();
        Facts::new()
            .with(self.done(), self.number)
            .with("changed", self.changed.clone())
            .maybe("changed_omitted", (changed_omitted > 0).then_some(changed_omitted))
            .with("kept", self.kept.clone())
            .maybe("kept_omitted", (kept_omitted > 0).then_some(kept_omitted))
            .with("merged", self.merged.clone())
    }

    fn text(&self, verb: &str, tail: &str) -> String {
        let mut text = format!(
            "r{} {verb}{tail}: {} changed, {} kept",
            self.number, self.changed_total, self.kept_total
        );
        for line in &self.lines {
            text.push_str("\n  ");
            text.push_str(line);
        }
        text
    }

    fn preview(&self) -> Answer {
        let verb = match self.direction {
            Direction::Undo => "would be undone",
            Direction::Redo => "would be redone",
        };
        self.facts().with("dry_run", true).answer(self.text(verb, ""))
    }
}

/// The word for a change, the same that history uses.
fn kind(change: &Change) -> &'static str {
    match change {
        Change::Put { expect: Expect::Absent, .. } | Change::Restore { .. } => "create",
        Change::Put { .. } => "modify",
        Change::MakeDirectory { .. } => "make_dir",
        Change::MakeLink { .. } => "make_link",
        Change::Move { .. } => "rename",
        Change::Remove { .. } | Change::RemoveDirectory { .. } => "remove",
    }
}

fn shown_change(change: &Change) -> Value {
    let mut paths = change.paths().map(ToString::to_string);
    Facts::new()
        .maybe("path", paths.next())
        .with("kind", kind(change))
        .maybe("to", paths.next())
        .object()
        .into()
}

fn line(change: &Change) -> String {
    let paths: Vec<String> = change.paths().map(ToString::to_string).collect();
    format!("{} {}", kind(change), paths.join(" -> "))
}

/// The entry of this number.
pub(crate) fn entry(view: &View<'_>, number: u64) -> Result<Stored, Failure> {
    view.workspace().entry(number)?.ok_or_else(|| {
        Failure::new(Kind::NotFound, format!("there is no entry r{number}")).hint("call history to find one")
    })
}

/// Agents answer for their own entries; people may take back anybody's.
pub(crate) fn owned(view: &View<'_>, entry: &Entry) -> Result<(), Failure> {
    if is_outside(entry) {
        return Err(Failure::new(
            Kind::NotOwner,
            format!("r{} was done by other programs, not through here", entry.number),
        )
        .hint("read the file, or use diff against an older entry, and write what it shall hold"));
    }
    match &view.caller.principal {
        Principal::User(_) | Principal::System | Principal::Outside => Ok(()),
        Principal::Agent(_) if entry.caller.principal == view.caller.principal.to_string() => Ok(()),
        Principal::Agent(_) => Err(Failure::new(
            Kind::NotOwner,
            format!("r{} was made by {}", entry.number, entry.caller.principal),
        )
        .hint("undo your own entries; a person can undo any")),
    }
}

/// Whether an entry tells what other programs did. Nobody asked for it here, so nobody takes it back.
pub(crate) fn is_outside(entry: &Entry) -> bool {
    entry.caller.principal == Principal::Outside.to_string()
}

/// Whose entries are looked through when the caller names none.
pub(crate) fn own_only(view: &View<'_>) -> Option<String> {
    match &view.caller.principal {
        Principal::User(_) | Principal::System | Principal::Outside => None,
        Principal::Agent(_) => Some(view.caller.principal.to_string()),
    }
}

/// Entries looked through at once.
const PAGE_ENTRIES: usize = 64;

/// The newest entry that changed something and that `pick` wants, looked for page by page.
pub(crate) fn newest<T>(
    view: &View<'_>,
    filter: EntryFilter,
    mut pick: impl FnMut(Stored) -> Result<Option<T>, Failure>,
) -> Result<Option<T>, Failure> {
    let mut filter =
        EntryFilter { what: Which::Changes, order: Order::NewestFirst, limit: PAGE_ENTRIES, ..filter };
    loop {
        view.control.check()?;
        let page = view.workspace().entries(&filter)?;
        let Some(last) = page.last() else { return Ok(None) };
        filter.before = Some(last.entry.number);
        for stored in page {
            if let Some(picked) = pick(stored)? {
                return Ok(Some(picked));
            }
        }
    }
}

/// The entry that last made this one again, if any did: it knows where things are in the trash now.
pub(crate) fn latest_redo(view: &View<'_>, number: u64) -> Result<Option<Entry>, Failure> {
    let mut latest: Option<Entry> = None;
    for operation in ["redo", "undo"] {
        let after = latest.as_ref().map_or(number, |entry| entry.number);
        let filter = EntryFilter {
            operation: Some(operation.to_owned()),
            after: Some(after),
            ..EntryFilter::default()
        };
        let found = newest(view, filter, |stored| {
            Ok((stored.entry.link == Link::Redoes(number)).then_some(stored.entry))
        })?;
        latest = found.or(latest);
    }
    Ok(latest)
}
