//! Finishes what a dead process left. For every pending step: already true, done; still as before, done now; our own
//! inode with torn bytes after a power cut, written again; anything else is somebody's edit, which stays, while ours
//! is kept aside and the journal says so. Idempotent, and may itself be killed at any point.

use disk::{Attributes, Directory, Source};
use engine::Failure;
use journal::{Digest, Link};
use path::{Name, RelPath};
use rusqlite::params;

use crate::{
    apply::{Hands, Trouble, trash_name},
    group::{Outcome, Work},
    intent::{Id, Kept, Place, Replaced, Step, Temporary},
    locks::{self, Held},
    open::LocalWorkspace,
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
struct Pending {
    number: u64,
    boot: String,
    steps: Vec<Step>,
}

/// What was found of a step.
enum Found {
    Done,
    Replayed,
}

impl LocalWorkspace {
    /// Finishes what other processes left and nobody else is working on. `held` are locks the caller has already.
    pub(crate) fn recover(&self, held: Option<&Held>) -> Result<Recovery, Failure> {
        let mut report = Recovery::default();
        for pending in self.foreign_pending()? {
            let places: Vec<RelPath> = pending.steps.iter().flat_map(Step::places).cloned().collect();
            let mut wanted = locks::slots(&places);
            wanted.retain(|(slot, _)| !held.is_some_and(|held| held.holds(*slot)));
            // A live process holds its places until its steps are done.
            let Some(_mine) = self.locks.try_take(wanted) else { continue };
            if !self.is_pending(pending.number)? {
                continue;
            }
            self.finish(&pending, &mut report)?;
        }
        Ok(report)
    }

    fn finish(&self, pending: &Pending, report: &mut Recovery) -> Result<(), Failure> {
        let kept = |version: &Digest| self.kept_bytes(&engine::Version(*version)).ok().flatten();
        let hands = Hands { root: &self.root, state: &self.state, trash: &self.trash_place, kept: &kept };
        let same_boot = pending.boot == self.clock.now().boot;
        report.entries += 1;
        for step in &pending.steps {
            match hands.resume(step, same_boot) {
                Ok(Found::Done) => {}
                Ok(Found::Replayed) => report.replayed += 1,
                Err(Trouble::Foreign) => {
                    report.conflicts += 1;
                    return self.give_way(pending, &hands);
                }
                Err(Trouble::Disk(error)) => return Err(crate::failure::own(&error)),
            }
        }
        hold(&self.verified).insert(pending.number);
        self.applied(pending.number);
        Ok(())
    }

    /// Somebody else's edit is in the way: keep theirs, set ours aside, and say so in the journal.
    fn give_way(&self, pending: &Pending, hands: &Hands<'_>) -> Result<(), Failure> {
        for step in &pending.steps {
            if let Step::Put { staged, version, after, .. } = step {
                hands.set_aside(staged, version, *after);
            }
        }
        let number = pending.number;
        let mut draft = self.system_draft("recover", format!("{{\"entry\":{number}}}"), Link::Amends(number));
        draft.entry.decision = journal::Decision::Failed;
        draft.entry.reason = Some(engine::Kind::Conflict.code().to_owned());
        let work: Work = Box::new(move |transaction, tip| {
            store::append(transaction, tip, &mut draft)?;
            transaction.execute("DELETE FROM pending WHERE number = ?1", params![sql(number)])?;
            Ok(Outcome::Recorded(draft.entry.number, tip.hash))
        });
        self.group.submit(&self.store, self.durability, Sync::Now, work).map(|_| ())
    }

    /// Pending entries of other processes, oldest first, without those already seen to be done.
    fn foreign_pending(&self) -> Result<Vec<Pending>, Failure> {
        let rows: Vec<(i64, String, String)> = self.store.look(|connection| {
            connection
                // Two ranges instead of an inequality, so that the index skips our own steps.
                .prepare_cached(
                    "SELECT number, boot, intent, step FROM pending WHERE process < ?1
                     UNION ALL SELECT number, boot, intent, step FROM pending WHERE process > ?1 ORDER BY 1, 4",
                )?
                .query_map(params![self.process], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect()
        })?;
        let verified = hold(&self.verified).clone();
        let mut found: Vec<Pending> = Vec::new();
        for (number, boot, intent) in rows {
            let number = number.unsigned_abs();
            if verified.contains(&number) {
                continue;
            }
            let step = Step::from_text(&intent)?;
            match found.last_mut() {
                Some(last) if last.number == number => last.steps.push(step),
                Some(_) | None => found.push(Pending { number, boot, steps: vec![step] }),
            }
        }
        Ok(found)
    }

    fn is_pending(&self, number: u64) -> Result<bool, Failure> {
        self.store.look(|connection| {
            connection.prepare_cached("SELECT 1 FROM pending WHERE number = ?1")?.exists(params![sql(number)])
        })
    }
}

impl Hands<'_> {
    /// Finishes one step, whatever state it was left in.
    fn resume(&self, step: &Step, same_boot: bool) -> Result<Found, Trouble> {
        match step {
            Step::Put { path, staged, over, version, mode, .. } => {
                let put = Putting { path, staged, over: over.as_ref(), version, mode: *mode };
                self.resume_put(&put, same_boot)
            }
            Step::MakeDirectory { .. } => self.apply(step).map(|()| Found::Done),
            Step::MakeLink { path, .. } => match self.id_at(&path.0)? {
                Some(_) => Ok(Found::Done),
                None => self.apply(step).map(|()| Found::Replayed),
            },
            Step::Move { from, to, id, .. } => {
                self.resume_rename(step, self.id_at(&from.0)?, self.id_at(&to.0)?, *id)
            }
            Step::Remove { path, id, trash } => {
                self.resume_rename(step, self.id_at(&path.0)?, self.trash_id(trash)?, *id)
            }
            Step::Restore { path, id, trash } => {
                self.resume_rename(step, self.trash_id(trash)?, self.id_at(&path.0)?, *id)
            }
            Step::RemoveDirectory { path } => match self.id_at(&path.0)? {
                None => Ok(Found::Done),
                Some(_) => self.apply(step).map(|()| Found::Replayed),
            },
        }
    }

    fn resume_rename(&self, step: &Step, old: Option<Id>, new: Option<Id>, id: Id) -> Result<Found, Trouble> {
        if new == Some(id) {
            return Ok(Found::Done);
        }
        if old == Some(id) { self.apply(step).map(|()| Found::Replayed) } else { Err(Trouble::Foreign) }
    }

    fn resume_put(&self, put: &Putting<'_>, same_boot: bool) -> Result<Found, Trouble> {
        let (parent, name) = self.parent(&put.path.0)?;
        let current = parent.stat(&name)?;
        let ours = current.is_some_and(|stat| put.staged.is(&stat));
        if ours && same_boot {
            self.tidy(put)?;
            return Ok(Found::Done);
        }
        let version = match current {
            Some(_) => Some(Digest(parent.open_file(&name)?.hash()?.0)),
            None => None,
        };
        if version == Some(*put.version) {
            self.tidy(put)?;
            return Ok(Found::Done);
        }
        let before = match (put.over, version) {
            (Some(replaced), Some(version)) => replaced.version == version,
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        // A renamed but unsynced file is torn after a power cut; it is our own inode, so it is ours to write again.
        if !before && !ours {
            return Err(Trouble::Foreign);
        }
        self.write_again(put, &parent, &name)?;
        self.tidy(put)?;
        Ok(Found::Replayed)
    }

    /// Puts the bytes in place from wherever they survived.
    fn write_again(&self, put: &Putting<'_>, parent: &Directory, name: &Name) -> Result<(), Trouble> {
        let over = if parent.stat(name)?.is_some() { disk::Over::Replace } else { disk::Over::Refuse };
        if let Some((source, temporary)) = self.intact(put)? {
            if let (Some(replaced), disk::Over::Replace) = (put.over, over) {
                self.save_replaced(parent, name, replaced)?;
            }
            return Ok(source.rename(&temporary, parent, name, over)?);
        }
        let bytes = (self.kept)(put.version).ok_or(Trouble::Foreign)?;
        let old = if over == disk::Over::Replace { Some(parent.open_file(name)?) } else { None };
        let attributes = old.as_ref().map_or(Attributes::New { mode: put.mode }, Attributes::Like);
        let staged = parent.stage(Source::Bytes(&bytes), attributes)?;
        Ok(parent.rename(staged.name(), parent, name, over)?)
    }

    fn save_replaced(&self, parent: &Directory, name: &Name, replaced: &Replaced) -> Result<(), Trouble> {
        if replaced.kept == Kept::File {
            let old = parent.open_file(name)?;
            self.state.put_blob(&replaced.version.to_string(), Source::File(&old), disk::Durable::Now)?;
        }
        Ok(())
    }

    /// The staged file, if it is still there and whole.
    fn intact(&self, put: &Putting<'_>) -> Result<Option<(Directory, Name)>, Trouble> {
        let (source, temporary) = self.staged_in(put.staged)?;
        if !source.stat(&temporary)?.is_some_and(|stat| put.staged.is(&stat)) {
            return Ok(None);
        }
        let whole = source.open_file(&temporary)?.hash()?.0 == *put.version.as_bytes();
        if whole {
            return Ok(Some((source, temporary)));
        }
        source.remove_file(&temporary)?;
        Ok(None)
    }

    /// Deals with what still lies under the temporary name: our unused copy, or the file that was swapped out.
    fn tidy(&self, put: &Putting<'_>) -> Result<(), Trouble> {
        let (source, temporary) = self.staged_in(put.staged)?;
        let Some(stat) = source.stat(&temporary)? else { return Ok(()) };
        match put.over {
            Some(replaced) if Id::from(stat.stamp.id) == replaced.id => {
                self.let_go(&source, &temporary, replaced)
            }
            Some(_) | None if put.staged.is(&stat) => Ok(source.remove_file(&temporary)?),
            Some(_) | None => Ok(()),
        }
    }

    /// Keeps our bytes by version when they may not go to their place.
    fn set_aside(&self, staged: &Temporary, version: &Digest, after: Kept) {
        let Ok((source, temporary)) = self.staged_in(staged) else { return };
        let ours = matches!(source.stat(&temporary), Ok(Some(stat)) if staged.is(&stat));
        if !ours {
            return;
        }
        // Best effort: small bytes are in the database already, and a failure leaves the hidden file where it is.
        let result = match after {
            Kept::Row => source.remove_file(&temporary),
            Kept::File => self.state.adopt_blob(&version.to_string(), &source, &temporary),
        };
        match result {
            Ok(()) | Err(_) => {}
        }
    }

    fn id_at(&self, path: &RelPath) -> Result<Option<Id>, Trouble> {
        Ok(self.root.stat(path)?.map(|stat| stat.stamp.id.into()))
    }

    fn trash_id(&self, trash: &str) -> Result<Option<Id>, Trouble> {
        Ok(self.trash.stat(&trash_name(trash)?)?.map(|stat| stat.stamp.id.into()))
    }
}

/// A pending write.
struct Putting<'a> {
    path: &'a Place,
    staged: &'a Temporary,
    over: Option<&'a Replaced>,
    version: &'a Digest,
    mode: u32,
}
