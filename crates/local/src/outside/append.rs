//! Writes what others did into the journal. Inside the transaction every change is held once more against the last entry
//! about its places, so that nothing done through here meanwhile is told twice or in the wrong order.

use std::sync::{Arc, Mutex};

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
    /// Records what others did. What somebody changed through here meanwhile comes back, to be judged again.
    pub(crate) fn record_outside(&self, news: Vec<Judged>) -> Result<Vec<Item>, Failure> {
        let again = Arc::new(Mutex::new(Vec::new()));
        let mut news = news.into_iter().peekable();
        while news.peek().is_some() {
            let some: Vec<Judged> = news.by_ref().take(CHANGES_MAX).collect();
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
        Ok(std::mem::take(&mut *hold(&again)))
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

fn work(mut draft: Draft, news: Vec<Judged>, again: Arc<Mutex<Vec<Item>>>) -> Work {
    Box::new(move |transaction, tip| {
        let mut kept_bytes = 0;
        let mut kept = Vec::new();
        for judged in news {
            let mut moved = false;
            for (path, number) in &judged.against {
                moved |= known::last(transaction, &path.to_string())? != *number;
            }
            if moved {
                hold(&again).push(judged.item);
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
