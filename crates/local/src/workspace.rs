//! The engine's trait on a local workspace: every verb handed to the module that owns it.

use std::time::Instant;

use engine::{
    Approval, ApprovalAnswer, ApprovalAsk, ApprovalFilter, CommitError, Committed, Entered, EntryFilter,
    Failure, FileBytes, Guard, Head, InForce, Last, Lease, LeaseAsk, Listed, LockAsk, Looked, Node,
    Particulars, Pieces, Plan, Principal, Profile, Record, Stored, Trashed, Version, Want, Watch, WatchAsk,
    Workspace,
    index::{Need, Sieve, Survey},
};
use path::{Name, RelPath};
use serde_json::Value;

use crate::{
    failure,
    group::{Outcome, Work},
    keeper, locks,
    open::LocalWorkspace,
    store::{self, Sync},
};

impl Workspace for LocalWorkspace {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn now_ms(&self) -> i64 {
        self.clock.now().wall_ms
    }

    fn locate(&self, path: &RelPath, last: Last) -> Result<RelPath, Failure> {
        self.find_place(path, last).map(|(place, _)| place)
    }

    fn find(&self, path: &RelPath, last: Last) -> Result<(RelPath, Option<Node>), Failure> {
        self.find_place(path, last)
    }

    fn stat(&self, path: &RelPath) -> Result<Option<Node>, Failure> {
        self.stat_place(path)
    }

    fn particulars(&self, path: &RelPath) -> Result<Particulars, Failure> {
        self.particulars_of(path)
    }

    fn stat_names(&self, directory: &RelPath, names: &[Name]) -> Result<Vec<Looked>, Failure> {
        self.stat_names_in(directory, names)
    }

    fn read(&self, path: &RelPath, want: Want) -> Result<FileBytes, Failure> {
        self.read_place(path, want)
    }

    fn scan(&self, path: &RelPath, limit_bytes: u64) -> Result<Vec<u8>, Failure> {
        self.scan_place(path, limit_bytes)
    }

    fn pieces(&self, path: &RelPath) -> Result<Box<dyn Pieces>, Failure> {
        self.pieces_of(path)
    }

    fn branch(&self, path: &RelPath) -> Result<Option<Entered<'_>>, Failure> {
        self.branch_at(path).map(Some)
    }

    fn sieve(&self, need: &Need) -> Option<Box<dyn Sieve + '_>> {
        self.sieve_for(need)
    }

    fn survey(&self, start: &RelPath, need: &Need) -> Option<Survey> {
        self.survey_for(start, need)
    }

    fn searched(&self, files: u64) {
        self.note_search(files);
    }

    fn read_link(&self, path: &RelPath) -> Result<Vec<u8>, Failure> {
        self.root.read_link(path).map_err(|error| failure::at(path, &error))
    }

    fn list(&self, path: &RelPath) -> Result<Vec<Listed>, Failure> {
        self.list_place(path)
    }

    fn lock(&self, asks: &[LockAsk], deadline: Instant) -> Result<Box<dyn Guard>, Failure> {
        self.store.usable()?;
        let paths: Vec<RelPath> = asks.iter().map(|ask| ask.path.clone()).collect();
        loop {
            let held = self.locks.take(locks::slots(&paths), deadline)?;
            let waiting = self.unfinished_near(&paths)?;
            if waiting.is_empty() {
                return Ok(Box::new(held));
            }
            // What a dead process left may reach further than these places, so its own are locked instead.
            drop(held);
            self.finish_all(&waiting, deadline)?;
        }
    }

    fn commit(&self, plan: &Plan, record: &Record<'_>) -> Result<Committed, CommitError> {
        self.commit_plan(plan, record)
    }

    fn note(&self, record: &Record<'_>) -> Result<(), Failure> {
        let mut draft = self.draft(record, Vec::new(), journal::Link::None, 0);
        let ticket = self.ticket(record);
        if record.reason.is_none() && ticket.is_none() {
            // A read does not depend on its record being written: a full disk must not stop it.
            let lost = |count| {
                self.system_draft("records_lost", format!("{{\"count\":{count}}}"), journal::Link::None)
            };
            // Only now and then: where nothing can be written, every try is in vain and a reader waits for it.
            if self.group.note(draft, lost).is_multiple_of(keeper::NOTES_MAX) {
                self.flush_if_possible();
            }
            self.ring_keeper();
            return Ok(());
        }
        let sync = if ticket.is_some() { Sync::Now } else { Sync::Later };
        let work: Work = Box::new(move |transaction, tip| {
            if let Some(failure) =
                ticket.as_ref().map(|ticket| ticket.check(transaction)).transpose()?.flatten()
            {
                return Ok(Outcome::Refused(failure));
            }
            store::append(transaction, tip, &mut draft)?;
            if let Some(ticket) = &ticket {
                ticket.consume(transaction, draft.entry.number)?;
            }
            Ok(Outcome::Recorded(draft.entry.number, tip.hash))
        });
        match self.group.submit(&self.store, self.durability, sync, work)? {
            Outcome::Refused(failure) => Err(failure),
            Outcome::Recorded(..) | Outcome::Replayed(_) => Ok(()),
        }
    }

    fn head(&self) -> Result<Head, Failure> {
        self.flush_if_possible();
        let tip = self.store.look(|connection| store::tip(connection, &self.store.origin))?;
        Ok(Head { number: tip.number, hash: tip.hash })
    }

    fn entry(&self, number: u64) -> Result<Option<Stored>, Failure> {
        self.entry_by_number(number)
    }

    fn entries(&self, filter: &EntryFilter) -> Result<Vec<Stored>, Failure> {
        self.find_entries(filter)
    }

    fn wait_after(&self, number: u64, deadline: Instant) -> Result<(), Failure> {
        self.wait_for_news(number, deadline)
    }

    fn news(&self) -> Result<u64, Failure> {
        self.count_news()
    }

    fn rev_of(&self, path: &RelPath, version: &Version) -> Result<Option<u64>, Failure> {
        self.last_rev(&path.to_wire(), version)
    }

    fn replayed(&self, principal: &Principal, key: &str) -> Result<Option<u64>, Failure> {
        self.entry_of_key(&principal.to_string(), key)
    }

    fn kept(&self, version: &Version) -> Result<Option<Vec<u8>>, Failure> {
        self.kept_bytes(version)
    }

    fn trashed(&self, id: &str) -> Result<Option<Trashed>, Failure> {
        self.trashed_item(id)
    }

    fn trash(&self, owner: Option<&Principal>) -> Result<Vec<Trashed>, Failure> {
        self.trash_items(owner)
    }

    fn lease(&self, ask: &LeaseAsk, record: &Record<'_>) -> Result<(Lease, Committed), Failure> {
        self.change_lease(ask, record)
    }

    fn leases(&self, paths: &[RelPath]) -> Result<Vec<Lease>, Failure> {
        self.leases_on(paths)
    }

    fn in_force(&self) -> Result<InForce, Failure> {
        self.policy_now()
    }

    fn approval(&self, id: &str) -> Result<Option<Approval>, Failure> {
        self.approval_by_id(id)
    }

    fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, Failure> {
        self.find_approvals(filter)
    }

    fn ask(&self, ask: &ApprovalAsk) -> Result<Approval, Failure> {
        self.keep_question(ask)
    }

    fn answer(&self, answer: &ApprovalAnswer, record: &Record<'_>) -> Result<(Approval, Committed), Failure> {
        self.keep_answer(answer, record)
    }

    fn watch(
        &self,
        ask: &WatchAsk,
        record: &Record<'_>,
        deadline: Instant,
    ) -> Result<(Watch, Committed), Failure> {
        self.change_watch(ask, record, deadline)
    }

    fn watches(&self, owner: &Principal) -> Result<Vec<Watch>, Failure> {
        self.watches_of(owner)
    }

    fn undone(&self, number: u64) -> Result<Option<u64>, Failure> {
        self.undone_by(number)
    }

    fn describe(&self) -> Value {
        serde_json::json!(self.facts())
    }
}
