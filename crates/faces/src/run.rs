//! One call on its way: on a thread of its own, so that the conversation goes on; stopped when nobody wants it any more.
//! Every face runs its calls here, so that each bounds them alike.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use engine::{Answer, Call, Caller, Cancel, Control, Engine, Failure, Pace, Progress, Switch, Terms};
use serde_json::{Map, Value};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::{
    limits::{CALLS_WAITING_MAX, CALLS_WORKING_MAX},
    notes,
    progress::Told,
};

/// Bytes in memory are counted in pieces of this size.
const BULK_PIECE_BYTES: usize = 1 << 10;

/// Time a call of this pace may take.
fn deadline(pace: Pace) -> Duration {
    match pace {
        Pace::Brief | Pace::Short | Pace::Work => engine::limits::CALL_DEADLINE,
        Pace::Wait => {
            engine::limits::CALL_DEADLINE + Duration::from_millis(engine::limits::CHANGES_WAIT_MS_MAX)
        }
    }
}

/// One call as a client made it.
pub(crate) struct Asked {
    pub(crate) caller: Caller,
    pub(crate) operation: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) terms: Terms,
    pub(crate) key: Option<String>,
    /// How long it waits for a person, when one has to approve it.
    pub(crate) hold_ms: u64,
}

/// Which session a conversation is in: the one it came with, or one that was begun on the way.
#[derive(Debug, Default)]
pub(crate) struct Seat(Mutex<Option<String>>);

impl Seat {
    /// In this session, if one is named.
    pub(crate) fn of(session: Option<String>) -> Self {
        Self(Mutex::new(session))
    }

    /// The caller in the session the conversation is in.
    pub(crate) fn take(&self, mut caller: Caller) -> Caller {
        if let Some(session) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            caller.session.clone_from(session);
        }
        caller
    }

    /// Follows a call that begun or ended a session.
    pub(crate) fn follow(&self, outcome: &Result<Answer, Failure>) {
        let session = match outcome.as_ref().ok().and_then(|answer| answer.switch.as_ref()) {
            None => return,
            Some(Switch::To(session)) => Some(session.clone()),
            Some(Switch::Back) => None,
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }
}

/// Whether other requests wait beside a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Company {
    Alone,
    Others,
}

/// Why a call has no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    #[error("the call broke off; what it changed is in history")]
    Off,
    #[error("the server is closing")]
    Closing,
}

/// What all clients of one workspace may take together.
#[derive(Clone)]
pub(crate) struct Share {
    working: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Share {
    /// So many calls that work at a time, and as many that wait.
    pub(crate) fn new(calls_max: usize) -> Self {
        Self { working: Arc::new(Semaphore::new(calls_max)), waiting: Arc::new(Semaphore::new(calls_max)) }
    }

    /// Whether anybody has a part of it.
    pub(crate) fn is_used(&self) -> bool {
        Arc::strong_count(&self.working) > 1
    }

    fn of(&self, pace: Pace) -> &Arc<Semaphore> {
        match pace {
            Pace::Brief | Pace::Short | Pace::Work => &self.working,
            Pace::Wait => &self.waiting,
        }
    }
}

/// How many calls run at once.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    working: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// What this client has together with all others, where there are others.
    among: Option<Among>,
}

/// What a client among others is bounded by besides.
#[derive(Debug, Clone)]
struct Among {
    /// Calls that wait, of everybody: a thread each, which others need for work.
    waiting: Arc<Semaphore>,
    /// Bytes that calls bring into memory while they run, of this client and of everybody, in pieces.
    bulk: [Arc<Semaphore>; 2],
    /// Pieces that this client may have.
    pieces: u32,
}

/// Calls of all clients that wait, and the bytes of those that work.
#[derive(Debug, Clone)]
pub(crate) struct Everybody {
    waiting: Arc<Semaphore>,
    bulk: Arc<Semaphore>,
}

impl Everybody {
    /// With room for as many.
    pub(crate) fn new(waiting: usize, bulk_bytes: usize) -> Self {
        let room = |count| Arc::new(Semaphore::new(count));
        Self { waiting: room(waiting), bulk: room(bulk_bytes / BULK_PIECE_BYTES) }
    }
}

/// A place for a call, until it is dropped.
type Place = Vec<OwnedSemaphorePermit>;

impl Slots {
    /// Of one client among others: with room for its own bytes, and bounded together with everybody.
    pub(crate) fn among(everybody: &Everybody, bulk_bytes: usize) -> Self {
        let pieces = bulk_bytes / BULK_PIECE_BYTES;
        let bulk = [Arc::new(Semaphore::new(pieces)), everybody.bulk.clone()];
        let pieces = u32::try_from(pieces).unwrap_or(u32::MAX);
        Self { among: Some(Among { waiting: everybody.waiting.clone(), bulk, pieces }), ..Self::default() }
    }
}

impl Slots {
    /// A place for a call. What is its own comes first: who waits for it holds nobody up.
    async fn take(
        &self,
        pace: Pace,
        share: Option<&Share>,
        weight: impl FnOnce() -> u64,
    ) -> Result<Place, AcquireError> {
        let own = match pace {
            Pace::Brief | Pace::Short | Pace::Work => &self.working,
            Pace::Wait => &self.waiting,
        };
        let mut place = vec![own.clone().acquire_owned().await?];
        if let Some(share) = share {
            place.push(share.of(pace).clone().acquire_owned().await?);
        }
        let Some(among) = &self.among else { return Ok(place) };
        match pace {
            Pace::Brief | Pace::Short => {}
            Pace::Wait => place.push(among.waiting.clone().acquire_owned().await?),
            Pace::Work => {
                let pieces = usize::try_from(weight()).unwrap_or(usize::MAX).div_ceil(BULK_PIECE_BYTES);
                // What is larger than all there is has it alone.
                let pieces = u32::try_from(pieces).unwrap_or(u32::MAX).min(among.pieces);
                for room in among.bulk.iter().filter(|_| pieces > 0) {
                    place.push(room.clone().acquire_many_owned(pieces).await?);
                }
            }
        }
        Ok(place)
    }
}

impl Default for Slots {
    fn default() -> Self {
        Self {
            working: Arc::new(Semaphore::new(CALLS_WORKING_MAX)),
            waiting: Arc::new(Semaphore::new(CALLS_WAITING_MAX)),
            among: None,
        }
    }
}

/// Runs calls, a bounded number at once.
pub(crate) struct Runner {
    engine: Engine,
    slots: Slots,
    share: Option<Share>,
}

impl Runner {
    pub(crate) fn new(engine: Engine) -> Self {
        Self::sharing(engine, Slots::default())
    }

    /// One that has these slots together with others.
    pub(crate) fn sharing(engine: Engine, slots: Slots) -> Self {
        Self { engine, slots, share: None }
    }

    /// The same, bounded also by what others on the workspace leave.
    pub(crate) fn within(mut self, share: Share) -> Self {
        self.share = Some(share);
        self
    }

    /// What calls run on.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// How long a call is likely to take.
    pub(crate) fn pace(&self, asked: &Asked) -> Pace {
        if asked.hold_ms > 0 {
            return Pace::Wait;
        }
        self.engine.pace(&asked.operation, &asked.arguments, &asked.terms)
    }

    /// Runs one call to its end, and notes it. It is stopped when `unwanted` resolves; its progress goes to `told`.
    pub(crate) async fn run(
        &self,
        asked: Asked,
        pace: Pace,
        company: Company,
        told: Option<Told>,
        unwanted: impl Future<Output = ()>,
    ) -> Result<Result<Answer, Failure>, Broken> {
        let operation = notes::named(&asked.operation);
        let outcome = self.carry(asked, pace, company, told, unwanted).await;
        notes::note(operation, &outcome);
        outcome
    }

    async fn carry(
        &self,
        asked: Asked,
        pace: Pace,
        company: Company,
        told: Option<Told>,
        unwanted: impl Future<Output = ()>,
    ) -> Result<Result<Answer, Failure>, Broken> {
        let cancel = Cancel::default();
        // Whoever stops waiting for the outcome does not want it any more.
        let _dropped = CancelOnDrop(cancel.clone());
        let job = Job { engine: self.engine.clone(), asked, cancel: cancel.clone(), pace, told };
        // Handing over costs more than such a call itself; but when others wait, threads let them be made true together.
        let here = pace == Pace::Brief || (pace == Pace::Short && company == Company::Alone);
        if here {
            return std::panic::catch_unwind(AssertUnwindSafe(|| job.run())).map_err(|_| Broken::Off);
        }
        let weight = || job.engine.weight(&job.asked.operation, &job.asked.arguments, &job.asked.terms);
        let permit = self.slots.take(pace, self.share.as_ref(), weight).await.map_err(|_| Broken::Closing)?;
        // The place is given back when the answer is in the hands of who asked, and not before: answers that wait to be fetched
        // are in memory too.
        let mut task = tokio::task::spawn_blocking(move || (job.run(), permit));
        let outcome = tokio::select! {
            biased;
            outcome = &mut task => outcome,
            () = unwanted => {
                cancel.cancel();
                task.await
            }
        };
        outcome.map(|(outcome, _permit)| outcome).map_err(|_| Broken::Off)
    }
}

/// Cancels a call when it is dropped; for one that has ended that means nothing.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// A call that owns what it needs.
struct Job {
    engine: Engine,
    asked: Asked,
    cancel: Cancel,
    pace: Pace,
    told: Option<Told>,
}

impl Job {
    fn run(self) -> Result<Answer, Failure> {
        let tell = |progress: Progress| {
            if let Some(told) = &self.told {
                told.send_replace(progress);
            }
        };
        let listen: Option<&(dyn Fn(Progress) + Sync)> = self.told.is_some().then_some(&tell);
        let asked = self.asked;
        self.engine.call(&Call {
            caller: &asked.caller,
            operation: &asked.operation,
            arguments: asked.arguments,
            key: asked.key.as_deref(),
            terms: asked.terms,
            control: Control::new(Instant::now() + deadline(self.pace), self.cancel, listen)
                .holding(asked.hold_ms),
        })
    }
}
