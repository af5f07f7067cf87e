//! Writes what others did into the journal. Inside the transaction every change is held once more against the last entry
//! about its places, so that nothing done through here meanwhile is told twice or in the wrong order.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use engine::{Failure, Kind, Principal};
use journal::{Change, ChangeKind, Link, State};
use path::RelPath;
use rusqlite::params;

use super::{
    batch::Item,
    judge::Judged,
    known::{self, RESCAN},
};
use crate::{
    commit::recorded,
    group::{Outcome, Work},
    open::LocalWorkspace,
    store::{self, Draft, Sync, hold, sql},
};

/// Most changes in one entry.
pub(crate) const CHANGES_MAX: usize = 500;
/// Most bytes that one entry keeps of what others wrote.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Most entries that are looked through for one that is not true yet.
const PENDING_LOOKS_MAX: usize = 1_000;
/// The operation of what others did.
const OUTSIDE: &str = "outside";
/// How others' changes came to be known.
const FACE: &str = "watch";

/// Why nobody saw what happened at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blind {
    /// More happened at once than the kernel keeps.
    Overflow,
    /// Nobody listened for a while: the recorder was started anew, or another process took over.
    Gap,
    /// The kernel allows no more watches.
    Limit,
    /// The directory is closed to the server.
    Denied,
}

impl Blind {
    fn word(self) -> &'static str {
        match self {
            Blind::Overflow => "overflow",
            Blind::Gap => "gap",
            Blind::Limit => "limit",
            Blind::Denied => "denied",
        }
    }
}

impl LocalWorkspace {
    /// Records what others did. What somebody changed through here meanwhile comes back, to be judged again; when that is a
    /// move, so does everything after it.
    pub(crate) fn record_outside(&self, news: Vec<Judged>, head: u64) -> Result<Vec<Item>, Failure> {
        let again = Arc::new(Mutex::new(Again { head, ..Again::default() }));
        let mut news = news.into_iter().peekable();
        while news.peek().is_some() {
            let some: Vec<Judged> = news.by_ref().take(CHANGES_MAX).collect();
            if hold(&again).stopped {
                hold(&again).items.extend(some.into_iter().map(|judged| judged.item));
                continue;
            }
            let draft = self.outside_draft(OUTSIDE, "{}".to_owned());
            let outcome = self.group.submit(
                &self.store,
                self.durability,
                Sync::Now,
                work(draft, some, Arc::clone(&again)),
            )?;
            match outcome {
                Outcome::Recorded(..) => self.announce(),
                Outcome::Replayed(_) | Outcome::Refused(_) => {}
            }
        }
        Ok(std::mem::take(&mut hold(&again).items))
    }

    /// The last entry.
    pub(crate) fn head_number(&self) -> Result<u64, Failure> {
        Ok(self.store.look(|connection| store::tip(connection, &self.store.origin))?.number)
    }

    /// An entry that is true in the directory, as are all before it.
    pub(crate) fn settled_number(&self) -> Result<u64, Failure> {
        let (head, pending) = self.store.look(|connection| {
            let head = store::tip(connection, &self.store.origin)?.number;
            Ok((head, known::first_pending(connection, PENDING_LOOKS_MAX)?))
        })?;
        // What this process has applied waits only for the device.
        let applied: HashSet<u64> = hold(&self.applied).iter().copied().collect();
        let beyond = pending.last().copied().filter(|_| pending.len() == PENDING_LOOKS_MAX);
        let open = pending.into_iter().find(|number| !applied.contains(number)).or(beyond);
        Ok(open.map_or(head, |number| head.min(number.saturating_sub(1))))
    }

    /// Records that anything may have happened at these places.
    pub(crate) fn record_rescan(&self, places: &[RelPath], blind: Blind) -> Result<(), Failure> {
        if places.is_empty() {
            return Ok(());
        }
        let mut draft = self.outside_draft(RESCAN, format!("{{\"reason\":\"{}\"}}", blind.word()));
        for place in places {
            let unknown = State::Unknown { size: None };
            let (path, kind) = (place.to_string(), ChangeKind::Rescan);
            draft.touched.push((path.clone(), None));
            draft.entry.changes.push(Change {
                path,
                kind,
                to: None,
                before: unknown.clone(),
                after: unknown,
            });
        }
        let work: Work = Box::new(move |transaction, tip| {
            store::append(transaction, tip, &mut draft)?;
            Ok(recorded(&draft, tip))
        });
        self.group.submit(&self.store, self.durability, Sync::Now, work)?;
        self.announce();
        Ok(())
    }

    fn outside_draft(&self, operation: &str, arguments: String) -> Draft {
        let mut draft = self.system_draft(operation, arguments, Link::None);
        draft.entry.caller.principal = Principal::Outside.to_string();
        FACE.clone_into(&mut draft.entry.caller.face);
        draft
    }
}

/// What comes back from a transaction.
#[derive(Default)]
struct Again {
    items: Vec<Item>,
    /// A move came back, so nothing after it may be told.
    stopped: bool,
    /// The entries that were made of one batch: what they say is no news to it.
    own: Vec<u64>,
    /// The last entry that was known when the batch was judged.
    head: u64,
}

/// Whether callers changed something since a batch was judged that a move would take along.
fn takes_along(since: Option<&HashSet<RelPath>>, item: &Item) -> bool {
    match (item, since) {
        (Item::Touched { .. }, _) => false,
        (Item::Moved(_), None) => true,
        (Item::Moved(moved), Some(places)) => places.iter().any(|place| place.is_within(&moved.from)),
    }
}

fn work(mut draft: Draft, news: Vec<Judged>, again: Arc<Mutex<Again>>) -> Work {
    Box::new(move |transaction, tip| {
        let mut again = hold(&again);
        let last = again.own.last().copied().unwrap_or(again.head);
        let since =
            if tip.number > last { known::changed_since(transaction, last)? } else { Some(HashSet::new()) };
        if again.own.last().is_some_and(|own| *own != tip.number) {
            // Somebody else wrote in between, perhaps about the same places.
            again.own.clear();
        }
        let mut kept_bytes = 0;
        let mut kept = Vec::new();
        let mut looked_up = HashMap::new();
        for judged in news {
            let mut fits = !again.stopped && !takes_along(since.as_ref(), &judged.item);
            for (path, number, above) in &judged.against {
                let last = known::last(transaction, &path.to_string())?;
                let last_above = known::last_above(transaction, path, &mut looked_up)?;
                fits &= last == *number || again.own.contains(&last);
                fits &= last_above == *above || again.own.contains(&last_above);
            }
            if !fits {
                again.stopped |= matches!(judged.item, Item::Moved(_));
                again.items.push(judged.item);
                continue;
            }
            let change = judged.change;
            draft.touched.extend(store::touched(&change));
            if let Some((version, bytes)) = judged.kept
                && kept_bytes + bytes.len() <= KEPT_BYTES_MAX
            {
                kept_bytes += bytes.len();
                kept.push((version, bytes));
            }
            draft.entry.changes.push(change);
        }
        if draft.entry.changes.is_empty() {
            return Ok(Outcome::Refused(Failure::new(Kind::NothingToDo, "the journal knows it all")));
        }
        store::append(transaction, tip, &mut draft)?;
        again.own.push(draft.entry.number);
        for (version, bytes) in kept {
            // Of all that is kept this is worth the least, so it goes first.
            transaction.prepare_cached("INSERT OR IGNORE INTO kept VALUES (?1, ?2, ?3, ?4, 1)")?.execute(
                params![
                    version.0.as_bytes().as_slice(),
                    sql(bytes.len() as u64),
                    bytes,
                    sql(draft.entry.number)
                ],
            )?;
        }
        Ok(recorded(&draft, tip))
    })
}
