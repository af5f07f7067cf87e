//! The only writer. Takes a plan whose places are locked and makes it true, all or nothing: stage, record (the moment
//! of truth, one sync), apply by rename, answer. Never decides: policy and content were settled before.

use engine::{CommitError, Committed, Failure, Fault, Kind, Plan, Record, Tier};
use journal::{Decision, Entry, Link};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    apply::{Hands, Trouble},
    buffers,
    group::{Outcome, Work},
    holding::Booking,
    intent::Step,
    open::LocalWorkspace,
    query,
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
            Ok(Outcome::Refused(failure)) => {
                prepared.discard();
                return Err(failure.into());
            }
            Err(failure) => {
                // After a failed sync nobody knows whether the journal has it. If it turns out to have it, opening the
                // workspace again finishes the change, and for that the staged files must be there.
                match self.store.usable() {
                    Ok(()) => prepared.discard(),
                    Err(_) => prepared.recorded(),
                }
                return Err(failure.into());
            }
        };
        prepared.recorded();
        self.make_true(number, &prepared)?;
        self.applied(number);
        self.announce();
        self.keep_within(record, prepared.kept.iter().map(|(_, size, _)| size).sum());
        let trash = prepared.trashed.iter().map(|item| item.id.clone()).collect();
        Ok(Committed { number, hash, trash, notices: prepared.notices })
    }

    /// Applies the recorded steps; if one cannot be, takes back those before it and says so in the journal.
    fn make_true(&self, number: u64, prepared: &Prepared) -> Result<(), CommitError> {
        let kept = |version: &journal::Digest| {
            let found = prepared.kept.iter().find(|(kept, _, _)| kept.0 == *version);
            found.and_then(|(_, _, bytes)| bytes.clone())
        };
        let hands = self.hands(&kept);
        let steps = &prepared.steps;
        let failing = |(at, step)| hands.apply(step).err().map(|trouble| (at, trouble));
        let (done, failed, trouble) = match steps.iter().enumerate().find_map(failing) {
            Some((at, trouble)) => (&steps[..at], steps.get(at), trouble),
            None => match steps.iter().find_map(|step| hands.let_go(step).err()) {
                Some(trouble) => (&steps[..], None, trouble),
                None => return Ok(()),
            },
        };
        let taken_back = hands.take_back(done, failed).map_err(|error| crate::failure::own(&error));
        match taken_back.and_then(|()| self.amend(number, steps, "amend", &trouble)) {
            Ok(()) => {
                hands.drop_staged(steps);
                self.announce();
                Err(CommitError::Amended(after_the_fact(&trouble)))
            }
            Err(_) => {
                // The journal has it, so it stays pending: the next to lock these places finishes it.
                store::hold(&self.stuck).insert(number);
                Err(CommitError::Amended(unfinished()))
            }
        }
    }

    pub(crate) fn hands<'a>(&'a self, kept: &'a dyn Fn(&journal::Digest) -> Option<Vec<u8>>) -> Hands<'a> {
        Hands { root: &self.root, state: &self.state, trash: &self.trash_place, kept }
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
        let ticket = self.ticket(record);
        let booking = record.quota.map(|quota| Booking::new(plan, quota, &record.caller.principal));
        let (buffers, now_ms) = (plan.buffers.clone(), self.clock.now().wall_ms);
        Ok(Box::new(move |transaction, tip| {
            if let Some(number) = used_key(transaction, &draft, key.as_deref())? {
                return Ok(Outcome::Replayed(number));
            }
            if let Some(failure) =
                ticket.as_ref().map(|ticket| ticket.check(transaction)).transpose()?.flatten()
            {
                return Ok(Outcome::Refused(failure));
            }
            let last = match &booking {
                None => 0,
                Some(booking) => {
                    if let Some(failure) = booking.check(transaction)? {
                        return Ok(Outcome::Refused(failure));
                    }
                    query::last_change(transaction)?
                }
            };
            if let Some(failure) = buffers::moved_on(transaction, &buffers)? {
                return Ok(Outcome::Refused(failure));
            }
            store::append(transaction, tip, &mut draft)?;
            if let Some(booking) = &booking {
                booking.carry(transaction, last, draft.entry.number)?;
            }
            let number = sql(draft.entry.number);
            buffers::follow(transaction, &buffers, draft.entry.number, now_ms)?;
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
            if let Some(ticket) = &ticket {
                ticket.consume(transaction, draft.entry.number)?;
            }
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
            touched.extend(store::touched(change));
        }
        // A change is about what it changed; a call that changed nothing is about what it asked for.
        if changes.is_empty() {
            touched.extend(record.paths.iter().map(|path| (path.to_string(), None)));
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
            tool: record.tool.map(str::to_owned),
            arguments: record.arguments.clone(),
            decision,
            reason: record.reason.map(|kind| kind.code().to_owned()),
            policy: record.policy,
            tier: (record.tier != Tier::Autonomous).then(|| record.tier.word().to_owned()),
            approval: record.approval.clone(),
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
            tool: None,
            arguments,
            decision: Decision::Allowed,
            reason: None,
            policy: self.policy_version(),
            tier: None,
            approval: None,
            changes: Vec::new(),
            link,
            bytes: 0,
            duration_us: 0,
        };
        Draft { entry, touched: Vec::new() }
    }
}

/// What a caller hears when a recorded plan could neither be applied nor taken back now.
fn unfinished() -> Failure {
    Failure::new(Kind::Io, "the change could not be completed and will be finished later")
        .hint("call stat to see what is there before you go on")
}

/// What a caller hears when a recorded plan could not be applied and was taken back.
pub(crate) fn after_the_fact(trouble: &Trouble) -> Failure {
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
            transaction.execute("INSERT INTO undone VALUES (?1, ?2, NULL)", params![sql(*undone), number])?;
        }
        Link::Redoes(redone) => {
            transaction.execute(
                "UPDATE undone SET redone = ?2 WHERE number = ?1 AND redone IS NULL",
                params![sql(*redone), number],
            )?;
        }
        Link::None | Link::Restores(_) | Link::Amends(_) => {}
    }
    Ok(())
}

/// Takes back what the transaction of an entry wrote beside the chain.
pub(crate) fn forget(transaction: &Connection, number: u64, steps: &[Step]) -> rusqlite::Result<()> {
    let number = sql(number);
    for statement in [
        "DELETE FROM pending WHERE number = ?1",
        "DELETE FROM undone WHERE by = ?1",
        "UPDATE undone SET redone = NULL WHERE redone = ?1",
        "DELETE FROM keys WHERE number = ?1",
        "UPDATE entries SET changed = 0 WHERE number = ?1",
        "DELETE FROM touched WHERE number = ?1 AND version IS NOT NULL",
    ] {
        transaction.execute(statement, params![number])?;
    }
    crate::approval::give_back(transaction, number)?;
    crate::holding::give_back(transaction, number)?;
    buffers::take_back(transaction, number)?;
    for step in steps {
        match step {
            Step::Remove { trash, .. } => {
                transaction.execute("DELETE FROM trash WHERE id = ?1", params![trash])?;
            }
            Step::Restore { trash, .. } => {
                transaction.execute("UPDATE trash SET state = 0 WHERE id = ?1", params![trash])?;
            }
            Step::Put { .. }
            | Step::MakeDirectory { .. }
            | Step::MakeLink { .. }
            | Step::Move { .. }
            | Step::RemoveDirectory { .. } => {}
        }
    }
    Ok(())
}
