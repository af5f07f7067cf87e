//! The only writer. Takes a plan whose places are locked and makes it true, all or nothing: stage, record (the moment
//! of truth, one sync), apply by rename, answer. Never decides: policy and content were settled before.

use engine::{CommitError, Committed, Failure, Fault, Kind, Plan, Record};
use journal::{Decision, Entry, Link, State};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    apply::{Hands, Trouble},
    group::{Outcome, Work},
    intent::Step,
    open::LocalWorkspace,
    stage::{self, Prepared},
    store::{self, Draft, Sync, Tip, sql},
};

impl LocalWorkspace {
    pub(crate) fn commit_plan(&self, plan: &Plan, record: &Record<'_>) -> Result<Committed, CommitError> {
        self.store.usable()?;
        let mut prepared = stage::prepare(self, plan)?;
        let draft =
            self.draft(record, std::mem::take(&mut prepared.changes), plan.link.clone(), prepared.bytes);
        let work = match self.record_work(draft, plan, record, &mut prepared) {
            Ok(work) => work,
            Err(failure) => {
                prepared.discard();
                return Err(failure.into());
            }
        };
        let outcome = self.group.submit(&self.store, self.durability, Sync::Now, work);
        let (number, hash) = match outcome {
            Ok(Outcome::Recorded(number, hash)) => (number, hash),
            Ok(Outcome::Replayed(number)) => {
                prepared.discard();
                return Err(CommitError::Replayed(number));
            }
            Ok(Outcome::Refused(failure)) | Err(failure) => {
                prepared.discard();
                return Err(failure.into());
            }
        };
        prepared.recorded();
        self.make_true(number, &prepared)?;
        self.applied(number);
        self.announce();
        let trash = prepared.trashed.iter().map(|item| item.id.clone()).collect();
        Ok(Committed { number, hash, trash, notices: prepared.notices })
    }

    /// Applies the recorded steps; if one cannot be, takes back those before it and says so in the journal.
    fn make_true(&self, number: u64, prepared: &Prepared) -> Result<(), CommitError> {
        let kept = |version: &journal::Digest| {
            let found = prepared.kept.iter().find(|(kept, _, _)| kept.0 == *version);
            found.and_then(|(_, _, bytes)| bytes.clone())
        };
        let hands = Hands { root: &self.root, state: &self.state, trash: &self.trash_place, kept: &kept };
        for (done, step) in prepared.steps.iter().enumerate() {
            let Err(trouble) = hands.apply(step) else { continue };
            let undone =
                prepared.steps[..done].iter().rev().map(|step| hands.revert(step)).fold(true, settled);
            self.drop_staged(&hands, &prepared.steps);
            if undone {
                self.amend(number, prepared, &trouble)?;
                return Err(after_the_fact(&trouble).into());
            }
            // What could not be taken back stays pending: the next to lock these places finishes it.
            return Err(Failure::new(
                Kind::Io,
                "the change could not be completed and will be finished later",
            )
            .hint("call stat to see what is there before you go on")
            .into());
        }
        Ok(())
    }

    fn drop_staged(&self, hands: &Hands<'_>, steps: &[Step]) {
        for step in steps {
            let Step::Put { staged, .. } = step else { continue };
            let Ok((directory, name)) = hands.staged_in(staged) else { continue };
            // Only our own staged inode; under that name there may by now be the file that was swapped out.
            if matches!(directory.stat(&name), Ok(Some(stat)) if staged.is(&stat)) {
                match directory.remove_file(&name) {
                    Ok(()) | Err(_) => {}
                }
            }
        }
    }

    /// Records that an entry did not come true, and forgets its pending steps, in one transaction.
    pub(crate) fn amend(&self, number: u64, prepared: &Prepared, trouble: &Trouble) -> Result<(), Failure> {
        let trash: Vec<String> = prepared.trashed.iter().map(|item| item.id.clone()).collect();
        let restored = prepared.restored.clone();
        let kind = after_the_fact(trouble).kind;
        let mut draft = self.system_draft("amend", format!("{{\"entry\":{number}}}"), Link::Amends(number));
        draft.entry.decision = Decision::Failed;
        draft.entry.reason = Some(kind.code().to_owned());
        let work: Work = Box::new(move |transaction, tip| {
            store::append(transaction, tip, &mut draft)?;
            forget(transaction, number, &trash, &restored)?;
            Ok(Outcome::Recorded(draft.entry.number, tip.hash))
        });
        self.group.submit(&self.store, self.durability, Sync::Now, work).map(|_| ())
    }

    /// What the transaction writes for one plan.
    fn record_work(
        &self,
        mut draft: Draft,
        plan: &Plan,
        record: &Record<'_>,
        prepared: &mut Prepared,
    ) -> Result<Work, Failure> {
        let intents = prepared.steps.iter().map(Step::to_text).collect::<Result<Vec<_>, _>>()?;
        let kept = prepared.kept.clone();
        let trashed: Vec<_> = prepared.trashed.iter().map(crate::trash::Row::of).collect();
        let restored = prepared.restored.clone();
        let key = record.key.map(str::to_owned);
        let agent = i64::from(matches!(record.caller.principal, engine::Principal::Agent(_)));
        let (process, boot) = (self.process.clone(), self.clock.now().boot);
        let link = plan.link.clone();
        Ok(Box::new(move |transaction, tip| {
            if let Some(number) = used_key(transaction, &draft, key.as_deref())? {
                return Ok(Outcome::Replayed(number));
            }
            store::append(transaction, tip, &mut draft)?;
            let number = sql(draft.entry.number);
            for (step, intent) in intents.iter().enumerate() {
                transaction
                    .prepare_cached("INSERT INTO pending VALUES (?1, ?2, ?3, ?4, ?5)")?
                    .execute(params![number, sql(step as u64), process, boot, intent])?;
            }
            for (version, size, bytes) in &kept {
                transaction
                    .prepare_cached("INSERT INTO kept VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (version) DO UPDATE SET number = ?4, agent = min(agent, ?5)")?
                    .execute(params![version.0.as_bytes().as_slice(), sql(*size), bytes, number, agent])?;
            }
            for item in &trashed {
                item.insert(transaction, &draft.entry)?;
            }
            for id in &restored {
                transaction.execute("UPDATE trash SET state = 1 WHERE id = ?1", params![id])?;
            }
            if let Some(key) = &key {
                let principal = &draft.entry.caller.principal;
                transaction
                    .execute("INSERT INTO keys VALUES (?1, ?2, ?3)", params![principal, key, number])?;
            }
            mark_undone(transaction, &link, number)?;
            Ok(recorded(&draft, tip))
        }))
    }

    /// The entry of a call, before it has a number.
    pub(crate) fn draft(
        &self,
        record: &Record<'_>,
        changes: Vec<journal::Change>,
        link: Link,
        bytes: u64,
    ) -> Draft {
        let mut touched: Vec<(String, Option<journal::Digest>)> = Vec::new();
        for change in &changes {
            let left = match &change.after {
                State::File { version, .. } => Some(*version),
                State::Absent | State::Directory { .. } | State::Link { .. } | State::Tree { .. } => None,
            };
            match &change.to {
                Some(to) => {
                    touched.push((change.path.clone(), None));
                    touched.push((to.clone(), left));
                }
                None => touched.push((change.path.clone(), left)),
            }
        }
        for path in &record.paths {
            let wire = path.to_string();
            if !touched.iter().any(|(known, _)| *known == wire) {
                touched.push((wire, None));
            }
        }
        let decision = match record.reason.map(engine::Kind::fault) {
            None => Decision::Allowed,
            Some(Fault::Refusal) => Decision::Refused,
            Some(Fault::World | Fault::Machine) => Decision::Failed,
        };
        let entry = Entry {
            number: 0,
            time_ms: self.clock.now().wall_ms,
            caller: journal::Caller {
                principal: record.caller.principal.to_string(),
                on_behalf_of: record.caller.on_behalf_of.as_ref().map(ToString::to_string),
                session: record.caller.session.clone(),
                face: record.caller.face.to_owned(),
            },
            request: record.key.map(str::to_owned),
            operation: record.operation.to_owned(),
            arguments: record.arguments.clone(),
            decision,
            reason: record.reason.map(|kind| kind.code().to_owned()),
            policy: self.profile.policy,
            changes,
            link,
            bytes: bytes.max(record.bytes),
            duration_us: u64::try_from(record.started.elapsed().as_micros()).unwrap_or(u64::MAX),
        };
        Draft { entry, touched }
    }

    /// The entry of something the server does by itself.
    pub(crate) fn system_draft(&self, operation: &str, arguments: String, link: Link) -> Draft {
        let entry = Entry {
            number: 0,
            time_ms: self.clock.now().wall_ms,
            caller: journal::Caller {
                principal: engine::Principal::System.to_string(),
                on_behalf_of: None,
                session: self.process.clone(),
                face: "server".to_owned(),
            },
            request: None,
            operation: operation.to_owned(),
            arguments,
            decision: Decision::Allowed,
            reason: None,
            policy: self.profile.policy,
            changes: Vec::new(),
            link,
            bytes: 0,
            duration_us: 0,
        };
        Draft { entry, touched: Vec::new() }
    }
}

fn settled(so_far: bool, reverted: Result<(), Trouble>) -> bool {
    so_far && reverted.is_ok()
}

/// What a caller hears when a recorded plan could not be applied and was taken back.
fn after_the_fact(trouble: &Trouble) -> Failure {
    match trouble {
        Trouble::Foreign => Failure::new(
            Kind::Conflict,
            "somebody else changed the place at the same moment; nothing was changed",
        )
        .hint("read it again, then repeat the call"),
        Trouble::Disk(error) => crate::failure::at(&path::RelPath::root(), error),
    }
}

/// How a recorded request ended.
pub(crate) fn recorded(draft: &Draft, tip: &Tip) -> Outcome {
    Outcome::Recorded(draft.entry.number, tip.hash)
}

fn used_key(transaction: &Connection, draft: &Draft, key: Option<&str>) -> rusqlite::Result<Option<u64>> {
    let Some(key) = key else { return Ok(None) };
    transaction
        .query_row(
            "SELECT number FROM keys WHERE principal = ?1 AND key = ?2",
            params![draft.entry.caller.principal, key],
            |row| row.get::<_, i64>(0),
        )
        .optional()
        .map(|found| found.map(i64::unsigned_abs))
}

fn mark_undone(transaction: &Connection, link: &Link, number: i64) -> rusqlite::Result<()> {
    match link {
        Link::Undoes(undone) => {
            transaction
                .execute("INSERT OR REPLACE INTO undone VALUES (?1, ?2)", params![sql(*undone), number])?;
        }
        Link::Redoes(redone) => {
            transaction.execute("DELETE FROM undone WHERE number = ?1", params![sql(*redone)])?;
        }
        Link::None | Link::Restores(_) | Link::Amends(_) => {}
    }
    Ok(())
}

/// Takes back what the transaction of an entry wrote beside the chain.
fn forget(
    transaction: &Connection,
    number: u64,
    trash: &[String],
    restored: &[String],
) -> rusqlite::Result<()> {
    let number = sql(number);
    transaction.execute("DELETE FROM pending WHERE number = ?1", params![number])?;
    transaction.execute("DELETE FROM undone WHERE by = ?1", params![number])?;
    transaction.execute("DELETE FROM keys WHERE number = ?1", params![number])?;
    transaction.execute("UPDATE entries SET changed = 0 WHERE number = ?1", params![number])?;
    transaction.execute("DELETE FROM touched WHERE number = ?1 AND version IS NOT NULL", params![number])?;
    for id in trash {
        transaction.execute("DELETE FROM trash WHERE id = ?1", params![id])?;
    }
    for id in restored {
        transaction.execute("UPDATE trash SET state = 0 WHERE id = ?1", params![id])?;
    }
    Ok(())
}
