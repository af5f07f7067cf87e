//! How much there may be: what a workspace holds, what a plan adds to it, and whether that fits. Pure; who counts is the
//! workspace.
//!
//! Promises: what takes away more than it adds is never refused for what the workspace holds; an undo is refused only if
//! there would be more than the quota and more than before the call that it undoes.

use journal::Link;
use serde_json::{Map, Value, json};

use crate::{
    caller::Principal,
    failure::{Failure, Kind},
    operation::Effect,
    plan::{Change, Expect, Plan, Tree},
    view::View,
};

/// How much there may be. Nothing is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// Bytes of all files of the workspace, by their length.
    pub bytes: Option<u64>,
    /// Files, links and directories of the workspace.
    pub files: Option<u64>,
    /// Bytes in the trash of one principal.
    pub trash_bytes: Option<u64>,
    /// Bytes kept of what one principal wrote and overwrote.
    pub history_bytes: Option<u64>,
}

impl Quota {
    /// The smaller of each.
    #[must_use]
    pub(crate) fn stricter(self, other: Self) -> Self {
        let least = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        Self {
            bytes: least(self.bytes, other.bytes),
            files: least(self.files, other.files),
            trash_bytes: least(self.trash_bytes, other.trash_bytes),
            history_bytes: least(self.history_bytes, other.history_bytes),
        }
    }
}

/// What a workspace holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stock {
    /// Bytes of all files, by their length; a link counts what it says.
    pub bytes: u64,
    /// Files, links and directories, the root not counted.
    pub files: u64,
}

impl Stock {
    fn of(tree: &Tree) -> Self {
        Self { bytes: tree.bytes, files: tree.files.saturating_add(tree.directories) }
    }

    fn one(bytes: u64) -> Self {
        Self { bytes, files: 1 }
    }

    fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.files = self.files.saturating_add(other.files);
    }
}

/// What is held, as far as it bears on one principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holding {
    /// In the workspace.
    pub stock: Stock,
    /// Bytes in this principal's trash.
    pub trash_bytes: u64,
}

/// How much trouble is worth taking over what is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// What is known now; nothing is counted.
    Known,
    /// What is known, counted first where nothing is known or it is too old.
    Due,
    /// Counted anew unless that was done a moment ago; what is past its time leaves the trash first.
    Fresh,
}

/// What one plan asks for, and what bounds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    quota: Quota,
    added: Stock,
    freed: Stock,
    trash_bytes: u64,
    undoes: Option<u64>,
}

impl Charge {
    /// Of a plan under a quota.
    pub fn of(plan: &Plan, quota: Quota) -> Self {
        let undoes = match &plan.link {
            Link::Undoes(number) => Some(*number),
            Link::None | Link::Redoes(_) | Link::Restores(_) | Link::Amends(_) => None,
        };
        let (added, freed) = (Stock::default(), Stock::default());
        let mut charge = Self { quota, added, freed, trash_bytes: 0, undoes };
        for change in &plan.changes {
            charge.count(change);
        }
        charge
    }

    fn count(&mut self, change: &Change) {
        match change {
            Change::Put { expect, size, .. } => {
                self.added.add(Stock::one(*size));
                self.replace(expect);
            }
            Change::MakeDirectory { .. } => self.added.add(Stock::one(0)),
            Change::MakeLink { target, .. } => self.added.add(Stock::one(target.len() as u64)),
            Change::Move { over, .. } => self.replace(over),
            Change::Remove { tree, .. } => {
                self.freed.add(Stock::of(tree));
                self.trash_bytes = self.trash_bytes.saturating_add(tree.bytes);
            }
            Change::RemoveDirectory { .. } => self.freed.add(Stock::one(0)),
            Change::Restore { tree, .. } => self.added.add(Stock::of(tree)),
        }
    }

    /// What is replaced is not there any more.
    fn replace(&mut self, over: &Expect) {
        match over {
            Expect::File(seen) => self.freed.add(Stock::one(seen.stamp.size)),
            Expect::Node(_) => self.freed.add(Stock::one(0)),
            Expect::Absent => {}
        }
    }

    /// The entry that it takes back, for which more may be allowed.
    pub fn undoes(&self) -> Option<u64> {
        self.undoes
    }

    /// What is held once it is done.
    pub fn after(&self, held: Stock) -> Stock {
        let settle = |now: u64, added: u64, freed: u64| now.saturating_add(added).saturating_sub(freed);
        Stock {
            bytes: settle(held.bytes, self.added.bytes, self.freed.bytes),
            files: settle(held.files, self.added.files, self.freed.files),
        }
    }

    /// Whether it fits. `before` is what was held before the call that this one takes back.
    pub fn judge(&self, holding: &Holding, before: Option<Stock>) -> Result<(), Failure> {
        let (now, then) = (holding.stock, self.after(holding.stock));
        let before = before.unwrap_or_default();
        let tree = [
            (Measure::Bytes, self.quota.bytes, now.bytes, then.bytes, before.bytes),
            (Measure::Files, self.quota.files, now.files, then.files, before.files),
        ];
        for (measure, limit, used, then, before) in tree {
            let Some(limit) = limit else { continue };
            if then > used && then > limit.max(before) {
                return Err(measure.refusal(limit, used, then - used));
            }
        }
        let (used, asked) = (holding.trash_bytes, self.trash_bytes);
        match self.quota.trash_bytes {
            Some(limit) if asked > 0 && used.saturating_add(asked) > limit => {
                Err(Measure::Trash.refusal(limit, used, asked))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Bytes,
    Files,
    Trash,
    History,
}

impl Measure {
    /// As the policy names it.
    fn word(self) -> &'static str {
        match self {
            Measure::Bytes => "bytes",
            Measure::Files => "files",
            Measure::Trash => "trash_bytes",
            Measure::History => "history_bytes",
        }
    }

    fn refusal(self, limit: u64, used: u64, asked: u64) -> Failure {
        let (detail, hint) = match self {
            Measure::Bytes | Measure::History => (
                format!("the workspace may hold {limit} bytes and holds {used}; this adds {asked}"),
                "remove or shrink files, then call again; usage tells what is left",
            ),
            Measure::Files => (
                format!(
                    "the workspace may hold {limit} files and directories and holds {used}; this adds {asked}"
                ),
                "remove files, then call again; usage tells what is left",
            ),
            Measure::Trash => (
                format!("your trash may hold {limit} bytes and holds {used}; this adds {asked}"),
                "nothing was removed, because it could not come back; write less into the file, or ask the person \
                 you work for to run `stead trash purge --all`",
            ),
        };
        Failure::new(Kind::Quota, detail)
            .hint(hint)
            .fact("quota", self.word())
            .fact("limit", limit)
            .fact("used", used)
            .fact("asked", asked)
            .fact("left", limit.saturating_sub(used))
    }
}

/// Sees to it that what is held is known before anything is locked. Free where no quota is set.
pub(crate) fn prepare(view: &View<'_>, effect: Effect) -> Result<(), Failure> {
    if effect != Effect::Read && view.in_force.policy.has_quota() {
        view.workspace().holding(&view.caller.principal, Look::Due)?;
    }
    Ok(())
}

/// Looks again before a call is refused: others may have made room.
pub(crate) fn refresh(view: &View<'_>) -> Result<(), Failure> {
    view.workspace().holding(&view.caller.principal, Look::Fresh).map(|_| ())
}

/// Judges a plan. The commit judges it once more, where nobody can come between.
pub(crate) fn judge(view: &View<'_>, plan: &Plan) -> Result<(), Failure> {
    let Some(quota) = view.in_force.policy.quota(&view.caller.principal) else { return Ok(()) };
    let charge = Charge::of(plan, quota);
    let holding = view.workspace().holding(&view.caller.principal, Look::Known)?.ok_or_else(uncounted)?;
    let before = match charge.undoes() {
        Some(number) => view.workspace().held_before(number)?,
        None => None,
    };
    charge.judge(&holding, before)
}

/// The refusal where nobody knows what is held.
pub fn uncounted() -> Failure {
    Failure::new(Kind::Quota, "what the workspace holds has not been counted yet").hint("call again")
}

/// The limits of a principal, each with what is used and left; nothing where there is none.
pub(crate) fn told(view: &View<'_>, principal: &Principal) -> Result<Option<Value>, Failure> {
    let Some(quota) = view.in_force.policy.quota(principal) else { return Ok(None) };
    if quota == Quota::default() {
        return Ok(None);
    }
    let holding = view.workspace().holding(principal, Look::Due)?.ok_or_else(uncounted)?;
    let mut limits = Map::new();
    let mut tell = |measure: Measure, limit: Option<u64>, used: u64| {
        if let Some(limit) = limit {
            let left = limit.saturating_sub(used);
            let shown = json!({ "limit": limit, "used": used, "left": left });
            limits.insert(measure.word().to_owned(), shown);
        }
    };
    tell(Measure::Bytes, quota.bytes, holding.stock.bytes);
    tell(Measure::Files, quota.files, holding.stock.files);
    tell(Measure::Trash, quota.trash_bytes, holding.trash_bytes);
    if quota.history_bytes.is_some() {
        tell(Measure::History, quota.history_bytes, view.workspace().history_bytes(principal)?);
    }
    Ok(Some(Value::Object(limits)))
}

/// The same in words, one line for each.
pub(crate) fn lines(told: Option<&Value>) -> String {
    let limits = told.and_then(Value::as_object).into_iter().flatten();
    limits
        .map(|(name, limit)| format!("\nquota {name}: {} of {} used", limit["used"], limit["limit"]))
        .collect()
}

#[cfg(test)]
mod tests {
    use path::RelPath;

    use super::*;
    use crate::{
        plan::{Content, Mode, Seen, Top},
        version::Version,
        workspace::Stamp,
    };

    fn at(name: &str) -> RelPath {
        RelPath::from_wire(name).expect("a path")
    }

    fn seen(size: u64) -> Expect {
        let stamp = Stamp { identity: (1, 1), size, modified_ns: 0, changed_ns: 0 };
        Expect::File(Seen { version: Version::of(b""), stamp })
    }

    fn put(size: u64, expect: Expect) -> Change {
        let (content, version) = (Content::Bytes(Vec::new()), Version::of(b""));
        Change::Put { path: at("a"), expect, content, version, size, mode: Mode::Keep }
    }

    fn tree(files: u64, directories: u64, bytes: u64) -> Tree {
        Tree { top: Top::Directory, files, directories, bytes }
    }

    const TIGHT: Quota =
        Quota { bytes: Some(100), files: Some(10), trash_bytes: Some(50), history_bytes: None };

    fn refused(changes: Vec<Change>, link: Link, held: (u64, u64), before: Option<Stock>) -> Option<String> {
        let charge = Charge::of(&Plan::linked(changes, link), TIGHT);
        let held = Stock { bytes: held.0, files: held.1 };
        let failure = charge.judge(&Holding { stock: held, trash_bytes: 40 }, before).err()?;
        Some(failure.facts["quota"].as_str().unwrap_or_default().to_owned())
    }

    #[test]
    fn a_plan_fits_or_is_refused_by_the_measure_it_breaks() {
        let remove = |bytes| Change::Remove {
            path: at("d"),
            expect: Expect::Absent,
            keep_until_ms: 0,
            tree: tree(2, 1, bytes),
        };
        let restore = |bytes| Change::Restore { trash: "t".into(), path: at("d"), tree: tree(2, 1, bytes) };
        let directory = || Change::MakeDirectory { path: at("d"), mode: 0o755 };
        let rename = |over| Change::Move {
            from: at("a"),
            to: at("b"),
            expect: seen(1),
            over,
            tree: Tree { top: Top::File, files: 1, directories: 0, bytes: 1 },
        };
        for (changes, held, expected) in [
            (vec![put(10, Expect::Absent)], (90, 9), None),
            (vec![put(11, Expect::Absent)], (90, 9), Some("bytes")),
            (vec![put(0, Expect::Absent)], (90, 10), Some("files")),
            (vec![put(20, seen(10))], (90, 10), None),
            (vec![put(21, seen(10))], (90, 10), Some("bytes")),
            // More is there than may be: whatever takes away stays possible.
            (vec![put(9, seen(10))], (500, 50), None),
            (vec![put(10, seen(10))], (500, 50), None),
            (vec![remove(10)], (500, 50), None),
            (vec![rename(Expect::Absent)], (500, 50), None),
            (vec![rename(seen(5))], (500, 50), None),
            (vec![remove(11)], (0, 0), Some("trash_bytes")),
            (vec![directory()], (0, 10), Some("files")),
            (vec![restore(10)], (90, 7), None),
            (vec![restore(11)], (90, 7), Some("bytes")),
            (vec![restore(1)], (0, 8), Some("files")),
            // One call is one sum.
            (vec![remove(10), put(12, Expect::Absent)], (98, 10), None),
            (vec![put(5, Expect::Absent), put(6, Expect::Absent)], (90, 0), Some("bytes")),
            (vec![put(u64::MAX, Expect::Absent)], (1, 0), Some("bytes")),
        ] {
            let got = refused(changes.clone(), Link::None, held, None);
            assert_eq!(got.as_deref(), expected, "{changes:?} over {held:?}");
        }
    }

    #[test]
    fn an_undo_may_bring_back_what_there_was_and_no_more() {
        let back = || vec![put(50, Expect::Absent)];
        let before = |bytes, files| Some(Stock { bytes, files });
        let undone = |held, before| refused(back(), Link::Undoes(1), held, before);
        assert_eq!(undone((450, 20), before(500, 21)), None);
        assert_eq!(undone((451, 20), before(500, 21)).as_deref(), Some("bytes"));
        assert_eq!(undone((450, 21), before(500, 21)).as_deref(), Some("files"));
        assert_eq!(undone((60, 1), None).as_deref(), Some("bytes"));
    }
}
