//! The rows of the memory workspace, and the presence of their holders.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use stead_engine::{
    CallerResourceLifetime, ClockReading, CommitError, ConnectionScopedResources, Error, Expectation,
    FailedExpectation, HolderPresence, RowBodySelection, RowChange, RowFamily, RowQuery, RowSelection, RowSet,
    RowStamp, RowWrite, StoredRow,
};

#[derive(Default)]
pub(super) struct MemoryRows {
    rows: BTreeMap<RowFamily, Vec<StoredRow>>,
    generations: BTreeMap<RowFamily, u64>,
}

impl MemoryRows {
    fn family(&self, family: RowFamily) -> &[StoredRow] {
        self.rows.get(&family).map_or(&[], Vec::as_slice)
    }

    pub(super) fn generation(&self, family: RowFamily) -> u64 {
        self.generations.get(&family).copied().unwrap_or(0)
    }

    pub(super) fn query(&self, query: &RowQuery) -> RowSet {
        let is_selected = |row: &&StoredRow| match &query.selection {
            RowSelection::All => true,
            RowSelection::Id(id) => row.id == *id,
            RowSelection::Owner(owner) => row.owner == *owner,
            RowSelection::OwnerAndSubject(owner, subject) => row.owner == *owner && row.subject == *subject,
        };
        let mut rows: Vec<StoredRow> = self.family(query.family).iter().filter(is_selected).cloned().collect();
        if query.bodies == RowBodySelection::None {
            rows.iter_mut().for_each(|row| row.bodies.clear());
        }
        RowSet { generation: self.generation(query.family), rows }
    }

    pub(super) fn check(&self, expect: &[Expectation], now: &ClockReading) -> Result<(), CommitError> {
        let failed = expect.iter().find_map(|expectation| match expectation {
            Expectation::Family { family, generation } => {
                (self.generation(*family) != *generation).then_some(FailedExpectation::Family(*family))
            }
            Expectation::Row { family, id, revision } => {
                let found = self.family(*family).iter().find(|row| row.id == *id).map_or(0, |row| row.revision);
                (found != *revision).then(|| FailedExpectation::Row(*family, id.clone()))
            }
            Expectation::Running(deadline, set_back) => {
                (!deadline.is_running(now, *set_back)).then_some(FailedExpectation::Running)
            }
        });
        failed.map_or(Ok(()), |failed| Err(CommitError::ExpectationFailed(failed)))
    }

    pub(super) fn write(&mut self, writes: &[RowWrite], stamp: Option<RowStamp>) {
        for write in writes {
            let revision = self.generation(write.family) + 1;
            self.generations.insert(write.family, revision);
            let rows = self.rows.entry(write.family).or_default();
            let id = write.key.id(stamp.map_or(0, |stamp| stamp.entry));
            let existing = rows.iter().position(|row| row.id == id);
            match &write.change {
                RowChange::Delete => drop(existing.map(|position| rows.remove(position))),
                RowChange::Put { owner, subject, value, bodies } => {
                    let position = existing.unwrap_or(rows.len());
                    if existing.is_none() {
                        let (owner, subject, value) = (owner.clone(), subject.clone(), value.clone());
                        let (first, last, bodies) = (None, None, Vec::new());
                        rows.push(StoredRow { id, owner, subject, revision, first, last, value, bodies });
                    }
                    let row = &mut rows[position];
                    (row.owner, row.subject, row.value) = (owner.clone(), subject.clone(), value.clone());
                    row.revision = revision;
                    row.first = row.first.or(stamp);
                    row.last = stamp.or(row.last);
                    row.bodies.retain(|body| bodies.iter().all(|new| new.slot != body.slot));
                    row.bodies.extend(bodies.iter().cloned());
                }
            }
        }
    }
}

/// The holders of rows. All calls of a memory workspace come from one process, which a test can end.
#[derive(Default)]
pub(super) struct MemoryRowHolders {
    ended_processes: u64,
    connections: BTreeMap<String, Arc<ConnectionScopedResources>>,
}

impl MemoryRowHolders {
    fn process(&self) -> String {
        format!("process {}", self.ended_processes)
    }

    pub(super) fn end_process(&mut self) {
        self.ended_processes += 1;
        self.connections.clear();
    }

    pub(super) fn hold(&mut self, lifetime: &CallerResourceLifetime) -> Result<String, Error> {
        match lifetime {
            CallerResourceLifetime::Process | CallerResourceLifetime::SingleCall => Ok(self.process()),
            CallerResourceLifetime::Connection(connection) => {
                connection.attach_resource("memory", || Ok(Box::new(())))?;
                let name = format!("{} connection {}", self.process(), connection.number());
                self.connections.insert(name.clone(), Arc::clone(connection));
                Ok(name)
            }
        }
    }

    pub(super) fn presence(&self, holder: &str) -> HolderPresence {
        let is_connected = || self.connections.get(holder).is_some_and(|connection| !connection.has_ended());
        if holder == self.process() || is_connected() { HolderPresence::Here } else { HolderPresence::Gone }
    }
}

/// The time until a deadline; `None` if it has passed.
pub(super) fn time_left(deadline: Instant) -> Option<Duration> {
    deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}
