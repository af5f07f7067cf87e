//! Finishes what a dead process left, entry by entry. What was done stays, whatever anybody did to the places since;
//! what was begun is finished; what cannot be finished because somebody else's work is in the way is taken back whole,
//! while ours is kept aside and the journal says so. Idempotent, and may itself be killed at any point.

use std::time::Instant;

use engine::Failure;
use journal::{Digest, Link};
use path::RelPath;
use rusqlite::params;

use crate::{
    apply::{Hands, Trouble},
    failure,
    group::{Outcome, Work},
    intent::Step,
    locks,
    open::LocalWorkspace,
    resume::Boot,
    since::Since,
    store::{self, Sync, hold, sql},
};

/// What a recovery did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Entries whose steps were looked at.
    pub entries: u64,
    /// Steps that had to be done again.
    pub replayed: u64,
    /// Entries that met somebody else's edit; theirs was kept, ours set aside.
    pub conflicts: u64,
}

/// The pending steps of one entry.
pub(crate) struct Pending {
    number: u64,
    boot: String,
    steps: Vec<Step>,
}

impl Pending {
    fn places(&self) -> Vec<RelPath> {
        self.steps.iter().flat_map(Step::places).cloned().collect()
    }

    /// The places that nobody else could get at meanwhile, and the new directories. Those are shared: calls that arrive
    /// together may all need one, and each of them makes it unless it is there. A call that makes nothing else has none that
    /// are shared.
    fn own_and_shared(&self) -> (Vec<RelPath>, Vec<RelPath>) {
        let (made, own): (Vec<&Step>, Vec<&Step>) =
            self.steps.iter().partition(|step| matches!(step, Step::MakeDirectory { .. }));
        let places = |steps: Vec<&Step>| -> Vec<RelPath> {
            steps.into_iter().flat_map(Step::places).cloned().collect()
        };
        if own.is_empty() { (places(made), Vec::new()) } else { (places(own), places(made)) }
    }

    /// Whether it touches one of these places, something above or something below.
    fn is_near(&self, paths: &[RelPath]) -> bool {
        let near = |place: &RelPath| paths.iter().any(|path| overlaps(place, path));
        self.steps.iter().flat_map(Step::places).any(near)
    }
}

/// Whether one place is the other or lies above it.
pub(crate) fn overlaps(a: &RelPath, b: &RelPath) -> bool {
    a.is_within(b) || b.is_within(a)
}

impl LocalWorkspace {
    /// Finishes what other processes left and nobody works on now.
    pub(crate) fn recover(&self) -> Result<Recovery, Failure> {
        let mut report = Recovery::default();
        let waiting = self.unfinished()?;
        for (at, pending) in waiting.iter().enumerate() {
            // A live process holds its places until its steps are done.
            let Some(_mine) = self.locks.try_take(locks::slots(&pending.places()))? else { continue };
            self.finish(pending, &waiting[at + 1..], &mut report)?;
        }
        Ok(report)
    }

    /// What a dead process left at these places or around them. The caller has them locked.
    pub(crate) fn unfinished_near(&self, paths: &[RelPath]) -> Result<Vec<Pending>, Failure> {
        let mut waiting = self.unfinished()?;
        waiting.retain(|pending| pending.is_near(paths));
        Ok(waiting)
    }

    /// Finishes these entries, waiting for their places until the deadline.
    pub(crate) fn finish_all(&self, waiting: &[Pending], deadline: Instant) -> Result<(), Failure> {
        for (at, pending) in waiting.iter().enumerate() {
            let _mine = self.locks.take(locks::slots(&pending.places()), deadline)?;
            self.finish(pending, &waiting[at + 1..], &mut Recovery::default())?;
        }
        Ok(())
    }

    fn finish(&self, pending: &Pending, later: &[Pending], report: &mut Recovery) -> Result<(), Failure> {
        // Somebody may have finished it before the places were free.
        if !self.is_pending(pending.number)? {
            return Ok(());
        }
        let kept = |version: &Digest| self.kept_bytes(&engine::Version(*version)).ok().flatten();
        let hands = self.hands(&kept);
        let boot = if pending.boot == self.clock.now().boot { Boot::Same } else { Boot::Other };
        report.entries += 1;
        if let Some(since) = self.since(pending, later, &hands, boot)? {
            let resumed = hands.resume(&pending.steps, boot, &since);
            match resumed.map_err(|error| failure::own(&error))? {
                Ok(replayed) => report.replayed += replayed,
                Err(blocked) => {
                    report.conflicts += 1;
                    return self.give_way(pending, blocked.at, &hands);
                }
            }
        }
        hold(&self.stuck).remove(&pending.number);
        hold(&self.verified).insert(pending.number);
        self.applied(pending.number);
        Ok(())
    }

    /// What later changes show of each step of this entry. While the machine has not been started again they show all
    /// or nothing: nobody gets at a place before what is pending there is finished, so whatever was built upon is done.
    fn since<'a>(
        &self,
        pending: &Pending,
        later: &'a [Pending],
        hands: &Hands<'_>,
        boot: Boot,
    ) -> Result<Option<Vec<Since<'a>>>, Failure> {
        if boot == Boot::Same {
            let (own, shared) = pending.own_and_shared();
            let built_upon =
                self.changed_after(pending.number, &own)? || self.unmade_after(pending.number, &shared)?;
            return Ok((!built_upon).then(|| vec![Since::Unknown; pending.steps.len()]));
        }
        let later: Vec<&Step> = later.iter().flat_map(|other| &other.steps).collect();
        let survived = |step: &Step| hands.has_survived(step).map_err(|error| failure::own(&error));
        pending.steps.iter().map(|step| Since::of(step, &later, survived)).collect::<Result<_, _>>().map(Some)
    }

    /// Somebody else's edit is in the way: keep theirs, take back what was done of ours, set our bytes aside, and say
    /// so in the journal. An entry that was not done to the end was never acknowledged.
    fn give_way(&self, pending: &Pending, at: usize, hands: &Hands<'_>) -> Result<(), Failure> {
        let (done, rest) = pending.steps.split_at(at);
        hands.take_back(done, rest.first()).map_err(|error| failure::own(&error))?;
        self.amend(pending.number, &pending.steps, "recover", &Trouble::Foreign)?;
        hands.set_aside(&pending.steps);
        hands.drop_staged(&pending.steps);
        hold(&self.stuck).remove(&pending.number);
        Ok(())
    }

    /// Records that an entry did not come true, and forgets its pending steps, in one transaction.
    pub(crate) fn amend(
        &self,
        number: u64,
        steps: &[Step],
        operation: &str,
        trouble: &Trouble,
    ) -> Result<(), Failure> {
        let steps = steps.to_vec();
        let mut draft = self.system_draft(operation, format!("{{\"entry\":{number}}}"), Link::Amends(number));
        draft.entry.decision = journal::Decision::Failed;
        draft.entry.reason = Some(crate::commit::after_the_fact(trouble).kind.code().to_owned());
        let work: Work = Box::new(move |transaction, tip| {
            store::append(transaction, tip, &mut draft)?;
            crate::commit::forget(transaction, number, &steps)?;
            Ok(Outcome::Recorded(draft.entry.number, tip.hash))
        });
        self.group.submit(&self.store, self.durability, Sync::Now, work).map(|_| ())
    }

    /// Pending entries of other processes, and of this one those it could neither finish nor take back; oldest first,
    /// without those already seen to be done.
    fn unfinished(&self) -> Result<Vec<Pending>, Failure> {
        let mut numbers: Vec<u64> = self.store.look(|connection| {
            connection
                // Two ranges instead of an inequality: the index alone answers, and skips our own steps.
                .prepare_cached(
                    "SELECT number FROM pending INDEXED BY pending_processes WHERE process < ?1
                     UNION SELECT number FROM pending INDEXED BY pending_processes WHERE process > ?1",
                )?
                .query_map(params![self.process], |row| row.get::<_, i64>(0).map(i64::unsigned_abs))?
                .collect()
        })?;
        let verified = hold(&self.verified);
        numbers.retain(|number| !verified.contains(number));
        drop(verified);
        numbers.extend(hold(&self.stuck).iter());
        numbers.sort_unstable();
        numbers.into_iter().filter_map(|number| self.pending(number).transpose()).collect()
    }

    /// The pending steps of one entry, if it has any.
    fn pending(&self, number: u64) -> Result<Option<Pending>, Failure> {
        let rows: Vec<(String, String)> = self.store.look(|connection| {
            connection
                .prepare_cached("SELECT boot, intent FROM pending WHERE number = ?1 ORDER BY step")?
                .query_map(params![sql(number)], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })?;
        let Some(boot) = rows.first().map(|(boot, _)| boot.clone()) else { return Ok(None) };
        let steps = rows.iter().map(|(_, intent)| Step::from_text(intent)).collect::<Result<_, _>>()?;
        Ok(Some(Pending { number, boot, steps }))
    }

    fn is_pending(&self, number: u64) -> Result<bool, Failure> {
        self.store.look(|connection| {
            connection.prepare_cached("SELECT 1 FROM pending WHERE number = ?1")?.exists(params![sql(number)])
        })
    }
}
