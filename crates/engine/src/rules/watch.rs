//! Watches. A watch is first stored without an entry, then the process that records changes by other programs attaches
//! to its directories, and only then does a journal entry begin the watch.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use stead_journal::Digest;
use stead_path::RelPath;

use crate::{
    caller::{CallerResourceLifetime, Principal},
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    ops::{ListArgs, PollWatchEventsArgs, UnwatchArgs, WatchArgs},
    rows::{RowBodySelection, RowFamily, RowKey, RowSelection, RowValue, RowWrite, TypedRow, TypedRowSet},
    transaction::{Expectation, Transaction, TransactionDurability},
    watches::{Watch, WatchBeginOrEndRequest, WatchDepth, WatchEventKind, WatchLifetimeKind},
    workspace::{CommitReceipt, ExternalChangeListening, HolderPresence, JournalCallRecord, Workspace},
};

/// How far a requested watch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchAttachStage {
    Requested,
    Attached,
    /// The system allows this number of file watches.
    LimitReached {
        watches_max: usize,
    },
    /// The watch is refused, because the file system does not report changes.
    Unsupported,
}

/// A stored watch.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchRow {
    pub owner: String,
    pub session: String,
    pub path: RelPath,
    pub depth: WatchDepth,
    pub event_kinds: Vec<WatchEventKind>,
    pub glob: Option<String>,
    pub stage: WatchAttachStage,
    pub created_ms: i64,
    /// The time at which the owner last fetched events.
    pub polled_ms: i64,
    /// The process with which the watch ends; `None` if it survives restarts.
    pub process: Option<String>,
}

impl RowValue for WatchRow {
    const FAMILY: RowFamily = RowFamily::Watch;

    fn owner(&self) -> &str {
        &self.owner
    }
}

/// A watch with its stage, as the recorder of external changes sees it.
#[derive(Debug, Clone)]
pub struct WatchWithStage {
    pub watch: Watch,
    pub stage: WatchAttachStage,
    /// The process with which the watch ends; `None` if it survives restarts.
    pub process: Option<String>,
}

/// The watches of a workspace, and the generation at which they were read.
#[derive(Debug, Clone, Default)]
pub struct WatchesAtGeneration {
    pub watches: Vec<WatchWithStage>,
    pub generation: u64,
}

impl TypedRow<WatchRow> {
    fn to_watch(&self) -> Watch {
        let WatchRow { owner, session, path, depth, event_kinds, glob, .. } = self.value.clone();
        let started_at_entry = self.first.map_or(0, |stamp| stamp.entry);
        Watch { id: self.id.clone(), owner, session, path, depth, event_kinds, glob, started_at_entry }
    }

    fn put(&self, value: &WatchRow) -> Result<RowWrite, Error> {
        RowWrite::put(RowKey::Named(self.id.clone()), value, Vec::new())
    }

    fn is_expired(&self, now_ms: i64) -> bool {
        self.value.polled_ms < now_ms - limits::WATCH_IDLE_MS_MAX
            || (self.first.is_none() && self.value.created_ms < now_ms - UNSTARTED_WATCH_MS_MAX)
    }
}

const ATTACH_WAIT: Duration = Duration::from_secs(10);
const ATTACH_POLL_INTERVAL: Duration = Duration::from_millis(20);
const UNSTARTED_WATCH_MS_MAX: i64 = 60_000;
/// The least time between two updates of the stored time at which a principal last polled.
const POLL_RECORD_INTERVAL_MS: i64 = 60 * 60 * 1000;

impl dyn Workspace + '_ {
    fn watch_rows(&self, selection: RowSelection) -> Result<TypedRowSet<WatchRow>, Error> {
        self.typed_rows(selection, RowBodySelection::None)
    }

    /// The watches of a principal, sorted from the oldest to the newest. The call counts as interest in their events.
    pub fn watches(&self, owner: &Principal) -> Result<Vec<Watch>, Error> {
        let stored = self.watch_rows(RowSelection::Owner(owner.to_string()))?;
        let now_ms = self.now().wall_ms;
        if stored.rows.iter().any(|row| row.value.polled_ms < now_ms - POLL_RECORD_INTERVAL_MS) {
            self.change_watches(|row| {
                (row.value.owner == owner.to_string())
                    .then(|| row.put(&WatchRow { polled_ms: now_ms, ..row.value.clone() }))
            })?;
        }
        let mut watches: Vec<Watch> =
            stored.rows.iter().filter(|row| row.first.is_some()).map(TypedRow::to_watch).collect();
        watches.sort_by_key(|watch| watch.started_at_entry);
        if !watches.is_empty() {
            self.listen_for_external_changes(ExternalChangeListening::IfAlreadyWatched)?;
        }
        Ok(watches)
    }

    /// Every watch, for the recorder of external changes.
    pub fn all_watches(&self) -> Result<WatchesAtGeneration, Error> {
        let stored = self.watch_rows(RowSelection::All)?;
        let with_stage = |row: &TypedRow<WatchRow>| WatchWithStage {
            watch: row.to_watch(),
            stage: row.value.stage,
            process: row.value.process.clone(),
        };
        Ok(WatchesAtGeneration { watches: stored.rows.iter().map(with_stage).collect(), generation: stored.generation })
    }

    /// Stores how far the recorder of external changes is with a watch.
    pub fn set_watch_stage(&self, id: &str, stage: WatchAttachStage) -> Result<(), Error> {
        self.change_watches(|row| (row.id == id).then(|| row.put(&WatchRow { stage, ..row.value.clone() })))
    }

    /// Deletes watches that no client has polled for long, that have not started in time, or whose process is gone.
    pub fn delete_ended_watches(&self) -> Result<(), Error> {
        let now_ms = self.now().wall_ms;
        let mut gone = Vec::new();
        for row in self.watch_rows(RowSelection::All)?.rows {
            if let Some(process) = row.value.process
                && self.presence(&process)? == HolderPresence::Gone
            {
                gone.push(process);
            }
        }
        self.change_watches(|row| {
            let is_gone = row.value.process.as_ref().is_some_and(|process| gone.contains(process));
            (is_gone || row.is_expired(now_ms)).then(|| Ok(RowWrite::delete::<WatchRow>(&row.id)))
        })
    }

    /// Writes watches without a journal entry.
    fn change_watches(
        &self,
        change: impl Fn(&TypedRow<WatchRow>) -> Option<Result<RowWrite, Error>>,
    ) -> Result<(), Error> {
        self.commit_rows(None, || {
            let stored = self.watch_rows(RowSelection::All)?;
            let mut transaction = Transaction::of_rows(TransactionDurability::Later);
            transaction.expect_family(RowFamily::Watch, stored.generation);
            transaction.rows = stored.rows.iter().filter_map(&change).collect::<Result<_, _>>()?;
            Ok(((), transaction))
        })
        .map(drop)
    }

    /// Begins or ends a watch and records the call. While a watch exists, the journal gets an entry for every change by
    /// other programs. If watch events were lost, the journal gets a rescan entry instead of entries for the changes. A
    /// request to begin a watch waits until the watcher has started, or until the deadline.
    pub fn execute_watch_request(
        &self,
        request: &WatchBeginOrEndRequest,
        record: &JournalCallRecord<'_>,
        deadline: Instant,
    ) -> Result<(Watch, CommitReceipt), Error> {
        match request {
            WatchBeginOrEndRequest::Begin { .. } => self.begin_watch(request, record, deadline),
            WatchBeginOrEndRequest::End { id } => self.end_watch(id, record),
        }
    }

    fn begin_watch(
        &self,
        request: &WatchBeginOrEndRequest,
        record: &JournalCallRecord<'_>,
        deadline: Instant,
    ) -> Result<(Watch, CommitReceipt), Error> {
        let id = self.reserve_watch(request, record)?;
        let started = self
            .listen_for_external_changes(ExternalChangeListening::Start)
            .and_then(|()| self.wait_until_attached(&id, deadline.min(Instant::now() + ATTACH_WAIT)))
            .and_then(|()| {
                self.commit_recorded(record, || {
                    let row = self.typed_row::<WatchRow>(&id, RowBodySelection::None)?.ok_or_else(watch_ended_error)?;
                    let mut transaction = Transaction::of_rows(TransactionDurability::Now);
                    let (family, id, revision) = (RowFamily::Watch, row.id.clone(), row.revision);
                    transaction.expect.push(Expectation::Row { family, id, revision });
                    transaction.rows.push(row.put(&row.value)?);
                    Ok((row.to_watch(), transaction))
                })
            });
        match started {
            Ok((watch, receipt)) => Ok((Watch { started_at_entry: receipt.entry, ..watch }, receipt)),
            Err(error) => {
                self.change_watches(|row| (row.id == id).then(|| Ok(RowWrite::delete::<WatchRow>(&id))))?;
                // The error names the oldest watch of the caller, because the caller can end that watch and try again.
                let watches = self.watches(&record.caller.principal)?;
                Err(match watches.into_iter().next() {
                    Some(watch) if error.kind == ErrorKind::TooMany => error.with_oldest(watch.id),
                    Some(_) | None => error,
                })
            }
        }
    }

    fn reserve_watch(&self, request: &WatchBeginOrEndRequest, record: &JournalCallRecord<'_>) -> Result<String, Error> {
        let WatchBeginOrEndRequest::Begin { path, depth, event_kinds, glob, lifetime } = request else {
            return Err(watch_ended_error());
        };
        let process = match lifetime {
            WatchLifetimeKind::Persistent => None,
            WatchLifetimeKind::Process => Some(self.hold_presence(&CallerResourceLifetime::Process)?),
        };
        let (id, _) = self.commit_rows(None, || {
            let (owner, now_ms) = (record.caller.principal.to_string(), self.now().wall_ms);
            let stored = self.watch_rows(RowSelection::Owner(owner.clone()))?;
            check_watch_limit(&stored.rows)?;
            let id = watch_id(&owner, path, stored.generation);
            let value = WatchRow {
                owner,
                session: record.caller.session.clone(),
                path: path.clone(),
                depth: *depth,
                event_kinds: event_kinds.clone(),
                glob: glob.clone(),
                stage: WatchAttachStage::Requested,
                created_ms: now_ms,
                polled_ms: now_ms,
                process: process.clone(),
            };
            let mut transaction = Transaction::of_rows(TransactionDurability::Later);
            transaction.expect_family(RowFamily::Watch, stored.generation);
            transaction.rows.push(RowWrite::put(RowKey::Named(id.clone()), &value, Vec::new())?);
            Ok((id, transaction))
        })?;
        Ok(id)
    }

    fn wait_until_attached(&self, id: &str, deadline: Instant) -> Result<(), Error> {
        loop {
            let mut found = self.watch_rows(RowSelection::Id(id.to_owned()))?;
            let row = found.rows.pop().ok_or_else(watch_ended_error)?;
            match row.value.stage {
                WatchAttachStage::Attached => return Ok(()),
                WatchAttachStage::LimitReached { watches_max } => return Err(watch_limit_error(watches_max)),
                WatchAttachStage::Unsupported => return Err(watching_unsupported_error()),
                WatchAttachStage::Requested => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::new(ErrorKind::Busy, "the watch did not start in time, so there is no watch")
                    .with_next_step(NextStep::repeat()));
            }
            self.wait_for_rows(RowFamily::Watch, found.generation, Instant::now() + left.min(ATTACH_POLL_INTERVAL))?;
        }
    }

    fn end_watch(&self, id: &str, record: &JournalCallRecord<'_>) -> Result<(Watch, CommitReceipt), Error> {
        let ended = self.commit_recorded(record, || {
            let row = self.typed_row::<WatchRow>(id, RowBodySelection::None)?;
            let owner = record.caller.principal.to_string();
            let row = row.filter(|row| row.value.owner == owner).ok_or_else(|| unknown_watch_error(id))?;
            let mut transaction = Transaction::of_rows(TransactionDurability::Now);
            let (family, id, revision) = (RowFamily::Watch, row.id.clone(), row.revision);
            transaction.expect.push(Expectation::Row { family, id, revision });
            transaction.rows.push(RowWrite::delete::<WatchRow>(&row.id));
            Ok((row.to_watch(), transaction))
        })?;
        self.listen_for_external_changes(ExternalChangeListening::Reconsider)?;
        Ok(ended)
    }
}

fn check_watch_limit(own: &[TypedRow<WatchRow>]) -> Result<(), Error> {
    if own.len() < limits::WATCHES_PER_PRINCIPAL_MAX {
        return Ok(());
    }
    let oldest = own.iter().min_by_key(|row| row.first.map_or(u64::MAX, |stamp| stamp.entry));
    let oldest = oldest.map(|row| row.id.clone()).unwrap_or_default();
    let step = NextStep::call(UnwatchArgs { watch: oldest.clone() }, "end the oldest one")
        .or("watch a common parent directory");
    Err(Error::new(ErrorKind::TooMany, format!("you have {} watches, which is the limit", own.len()))
        .with_next_step(step)
        .with_oldest(oldest))
}

/// Two watches never get the same id, because the generation differs.
fn watch_id(owner: &str, path: &RelPath, generation: u64) -> String {
    format!("w-{}", &Digest::sha256(format!("{owner} {path} {generation}").as_bytes()).to_string()[..16])
}

fn unknown_watch_error(id: &str) -> Error {
    let step = NextStep::call(PollWatchEventsArgs::default(), "see your watches: each event has the id of its watch")
        .or("continue if the watch has already ended");
    Error::new(ErrorKind::NotFound, format!("you have no watch '{id}'")).with_next_step(step)
}

fn watch_ended_error() -> Error {
    Error::new(ErrorKind::NotFound, "the watch was ended by another call before it started")
        .with_next_step(NextStep::call(WatchArgs::default(), "start another one"))
}

/// The error for a watch that would exceed the system limit on file watches.
pub fn watch_limit_error(watches_max: usize) -> Error {
    Error::new(ErrorKind::TooMany, "the system limit on file watches is reached")
        .with_next_step(
            NextStep::repeat_without("recursive")
                .or(NextStep::call(UnwatchArgs { watch: "ID".to_owned() }, "end a watch that you no longer need")),
        )
        .with_watches_max(watches_max)
}

/// The error for a watch on a file system that does not report changes.
pub fn watching_unsupported_error() -> Error {
    Error::new(ErrorKind::SystemDenied, "this file system does not report changes made by other programs")
        .with_next_step(NextStep::call(ListArgs::default(), "see changes that were not made through stead"))
}
