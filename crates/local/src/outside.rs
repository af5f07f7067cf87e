//! Changes that other programs make, as entries of the journal. A thread listens while there is any watch; among several
//! processes the one that holds a lock records, and the kernel gives the lock to another when it dies.
//!
//! Promises: what happens at a watched place is recorded, or a rescan says that something may have been missed; what was
//! done through here is recorded once, as what it was. Never changes a file, and costs nothing while nothing happens.

mod append;
mod attach;
mod batch;
mod judge;
mod known;
mod recorder;
mod rows;
mod scopes;
mod seen;
mod tree;
mod watched;

use std::{
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use disk::{ErrorKind, watch::Bell};
use engine::{Committed, Failure, Kind, Lasting, Presence, Principal, Record, Watch, WatchAsk};
use journal::Link;
use rows::{By, Stage};

use crate::{
    commit::recorded,
    failure,
    group::{Outcome, Work},
    open::{LocalWorkspace, random_name},
    options::Listening,
    store::{self, Sync, hold},
};

/// Longest time a new watch waits for whoever records.
const ATTACH_WAIT: Duration = Duration::from_secs(10);
/// How often a waiting caller looks whether its watch is attached, when nobody tells it.
const ATTACH_PAUSE: Duration = Duration::from_millis(20);
/// How often the store is told that a principal still wants its watches.
const HEARD_EVERY_MS: i64 = 60 * 60 * 1000;

/// The listening thread of one open workspace, if it runs.
#[derive(Default)]
pub(crate) struct Outside {
    /// For the thread, which must not keep the workspace open.
    workspace: OnceLock<Weak<LocalWorkspace>>,
    running: Mutex<Option<Running>>,
    /// Whether it is told when another process writes to the store.
    listening: AtomicBool,
    rounds: AtomicU64,
}

struct Running {
    bell: Bell,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Outside {
    pub(crate) fn belongs_to(&self, workspace: &Arc<LocalWorkspace>) {
        self.workspace.get_or_init(|| Arc::downgrade(workspace));
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.listening.load(Ordering::Acquire)
    }

    /// Ends the thread, and waits for it unless it is the one that asks.
    pub(crate) fn stop(&self) {
        let Some(running) = hold(&self.running).take() else { return };
        running.stop.store(true, Ordering::Release);
        running.bell.ring();
        if running.thread.thread().id() != std::thread::current().id() {
            // A recorder that panicked has nothing to say here; the next one tells of the gap.
            match running.thread.join() {
                Ok(()) | Err(_) => {}
            }
        }
    }
}

impl LocalWorkspace {
    /// How often the listening thread has woken up so far.
    pub fn listening_rounds(&self) -> u64 {
        self.outside.rounds.load(Ordering::Relaxed)
    }

    /// Starts listening if there is anything to listen for and the workspace was opened for it.
    pub(crate) fn listen_if_watched(&self) -> Result<(), Failure> {
        if self.listening == Listening::AtOnce && self.store.look(rows::any)? {
            self.listen()?;
        }
        Ok(())
    }

    /// Starts the thread, or wakes it.
    fn listen(&self) -> Result<(), Failure> {
        let Some(workspace) = self.outside.workspace.get() else { return Ok(()) };
        let mut running = hold(&self.outside.running);
        if let Some(running) = running.as_ref().filter(|running| !running.thread.is_finished()) {
            running.bell.ring();
            return Ok(());
        }
        let bell = Bell::new().map_err(|error| deaf(error.kind))?;
        let recorder = recorder::Recorder::new(self, bell.clone()).map_err(|error| deaf(error.kind))?;
        let stop = Arc::new(AtomicBool::new(false));
        let (weak, stopped) = (Weak::clone(workspace), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("outside".to_owned())
            .spawn(move || recorder.run(&weak, &stopped))
            .map_err(|_| Failure::new(Kind::Busy, "no thread could be started").hint("call again"))?;
        *running = Some(Running { bell, stop, thread });
        Ok(())
    }

    /// Tells whoever waits for entries to look again.
    pub(crate) fn hear(&self) {
        *hold(&self.news.0) += 1;
        self.news.1.notify_all();
    }

    pub(crate) fn change_watch(
        &self,
        ask: &WatchAsk,
        record: &Record<'_>,
        deadline: Instant,
    ) -> Result<(Watch, Committed), Failure> {
        match ask {
            WatchAsk::Begin { .. } => self.begin_watch(ask, record, deadline),
            WatchAsk::End { id } => self.end_watch(id, record),
        }
    }

    pub(crate) fn watches_of(&self, owner: &Principal) -> Result<Vec<Watch>, Failure> {
        let (owner, now_ms) = (owner.to_string(), self.clock.now().wall_ms);
        let (watches, unheard) = self.store.look(|connection| {
            let unheard = rows::unheard_since(connection, &owner, now_ms - HEARD_EVERY_MS)?;
            Ok((rows::of(connection, &owner)?, unheard))
        })?;
        if unheard {
            self.write_rows(|connection| rows::heard(connection, &owner, now_ms))?;
        }
        if !watches.is_empty() {
            self.listen_if_watched()?;
        }
        Ok(watches)
    }

    fn begin_watch(
        &self,
        ask: &WatchAsk,
        record: &Record<'_>,
        deadline: Instant,
    ) -> Result<(Watch, Committed), Failure> {
        let id = random_name("w-").map_err(|error| failure::own(&error))?;
        let caller = record.caller;
        if let WatchAsk::Begin { lasting: Lasting::Process, .. } = ask {
            self.lives.show(&Presence::Process)?;
        }
        let (owner, now_ms) = (caller.principal.to_string(), self.clock.now().wall_ms);
        let by = By { owner: &owner, session: &caller.session, process: &self.process };
        self.write_rows(|connection| rows::ask(connection, &id, &by, ask, now_ms))??;
        let begun = self
            .listen()
            .and_then(|()| self.wait_attached(&id, deadline.min(Instant::now() + ATTACH_WAIT)))
            .and_then(|()| self.record_begin(&id, record));
        match begun {
            Ok(committed) => {
                let kept = self.store.look(|connection| rows::one(connection, &id))?;
                let gone = || Failure::new(Kind::NotFound, "the watch was ended at once");
                Ok((kept.ok_or_else(gone)?.watch, committed))
            }
            Err(failure) => {
                self.write_rows(|connection| rows::end(connection, &id))?;
                // What could be ended to make room, if this caller has anything.
                let oldest = self.store.look(|connection| rows::of(connection, &owner))?.into_iter().next();
                Err(match oldest {
                    Some(watch) if failure.kind == Kind::TooMany => failure.fact("oldest", watch.id),
                    Some(_) | None => failure,
                })
            }
        }
    }

    /// Waits until whoever records listens there.
    fn wait_attached(&self, id: &str, deadline: Instant) -> Result<(), Failure> {
        loop {
            let heard = *hold(&self.news.0);
            match self.store.look(|connection| rows::one(connection, id))?.map(|kept| kept.stage) {
                Some(Stage::Attached) => return Ok(()),
                Some(Stage::Full) => return Err(full()),
                Some(Stage::Deaf) => return Err(deaf(ErrorKind::Unsupported)),
                Some(Stage::Asked) => {}
                None => return Err(Failure::new(Kind::NotFound, "the watch was ended at once")),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Failure::new(Kind::Busy, "nobody could listen there in time").hint("call again"));
            }
            let same = |news: &mut u64| *news == heard;
            let news = hold(&self.news.0);
            drop(self.news.1.wait_timeout_while(news, left.min(ATTACH_PAUSE), same));
        }
    }

    fn record_begin(&self, id: &str, record: &Record<'_>) -> Result<Committed, Failure> {
        let mut draft = self.draft(record, Vec::new(), Link::None, 0);
        let id = id.to_owned();
        let work: Work = Box::new(move |transaction, tip| {
            store::append(transaction, tip, &mut draft)?;
            rows::begin(transaction, &id, draft.entry.number)?;
            Ok(recorded(&draft, tip))
        });
        self.submit_watch(work)
    }

    fn end_watch(&self, id: &str, record: &Record<'_>) -> Result<(Watch, Committed), Failure> {
        let mut draft = self.draft(record, Vec::new(), Link::None, 0);
        let (owner, wanted) = (record.caller.principal.to_string(), id.to_owned());
        let found = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&found);
        let work: Work = Box::new(move |transaction, tip| {
            let kept = rows::one(transaction, &wanted)?.filter(|kept| kept.watch.owner == owner);
            let Some(kept) = kept else {
                return Ok(Outcome::Refused(
                    Failure::new(Kind::NotFound, "you have no watch of that name")
                        .hint("call watched to hear of those you have"),
                ));
            };
            store::append(transaction, tip, &mut draft)?;
            rows::end(transaction, &wanted)?;
            *hold(&filled) = Some(kept.watch);
            Ok(recorded(&draft, tip))
        });
        let committed = self.submit_watch(work)?;
        if let Some(running) = hold(&self.outside.running).as_ref() {
            running.bell.ring();
        }
        let watch = hold(&found).take();
        watch.map(|watch| (watch, committed)).ok_or_else(unrecorded)
    }

    fn submit_watch(&self, work: Work) -> Result<Committed, Failure> {
        match self.group.submit(&self.store, self.durability, Sync::Now, work)? {
            Outcome::Recorded(number, hash) => {
                self.announce();
                Ok(Committed { number, hash, trash: Vec::new(), notices: Vec::new() })
            }
            Outcome::Refused(failure) => Err(failure),
            Outcome::Replayed(_) => Err(unrecorded()),
        }
    }

    fn write_rows<T>(
        &self,
        write: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Failure> {
        self.store.transact(Sync::Later, self.durability, |transaction| {
            write(transaction).map_err(|error| failure::store(&error))
        })
    }
}

fn unrecorded() -> Failure {
    Failure::new(Kind::AuditUnavailable, "the watch was not recorded")
}

/// The failure where the kernel allows no more.
fn full() -> Failure {
    Failure::new(Kind::TooMany, "this machine allows its user no more watches")
        .hint("watch fewer directories or without recursive, or call unwatch on a watch you no longer need")
        .fact("watches_max", disk::watch::watches_max())
}

/// The failure where changes cannot be heard.
fn deaf(kind: ErrorKind) -> Failure {
    if matches!(kind, ErrorKind::NoSpace | ErrorKind::TooManyOpen) {
        return full();
    }
    Failure::new(Kind::Denied, "changes by other programs cannot be heard on this file system")
        .hint("call changes for what is done through here, and list or stat again for the rest")
}
