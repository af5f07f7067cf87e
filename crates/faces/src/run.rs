//! One call on its way: on a thread of its own, so that the conversation goes on; stopped when nobody wants it any more.
//! Every face runs its calls here, so that each bounds them alike.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use engine::{Answer, Call, Caller, Cancel, Control, Engine, Failure, Pace, Progress, Switch, Terms};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use crate::{
    limits::{CALLS_WAITING_MAX, CALLS_WORKING_MAX},
    notes,
    progress::Told,
};

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

/// Runs calls, a bounded number at once.
pub(crate) struct Runner {
    engine: Engine,
    working: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    share: Option<Share>,
}

impl Runner {
    pub(crate) fn new(engine: Engine) -> Self {
        Self {
            engine,
            working: Arc::new(Semaphore::new(CALLS_WORKING_MAX)),
            waiting: Arc::new(Semaphore::new(CALLS_WAITING_MAX)),
            share: None,
        }
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
        let slots = match pace {
            Pace::Brief | Pace::Short | Pace::Work => &self.working,
            Pace::Wait => &self.waiting,
        };
        let permit = slots.clone().acquire_owned().await.map_err(|_| Broken::Closing)?;
        let shared = match &self.share {
            Some(share) => Some(share.of(pace).clone().acquire_owned().await.map_err(|_| Broken::Closing)?),
            None => None,
        };
        let mut task = tokio::task::spawn_blocking(move || {
            let outcome = job.run();
            drop((permit, shared));
            outcome
        });
        let outcome = tokio::select! {
            biased;
            outcome = &mut task => outcome,
            () = unwanted => {
                cancel.cancel();
                task.await
            }
        };
        outcome.map_err(|_| Broken::Off)
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
