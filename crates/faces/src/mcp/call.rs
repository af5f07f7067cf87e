//! One call on its way: on a thread of its own, so that the conversation goes on; stopped when the client cancels;
//! telling its progress when the client asked for it.

use std::{
    convert::Infallible,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use engine::{Answer, Call, Caller, Cancel, Control, Engine, Failure, Pace, Progress, Terms};

use rmcp::{
    ErrorData, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, watch};

use super::transport::{Closed, is_alone};
use crate::limits::{CALLS_WAITING_MAX, CALLS_WORKING_MAX, PROGRESS_INTERVAL};

/// Time a call of this pace may take.
fn deadline(pace: Pace) -> Duration {
    match pace {
        Pace::Brief | Pace::Short | Pace::Work => engine::limits::CALL_DEADLINE,
        Pace::Wait => {
            engine::limits::CALL_DEADLINE + Duration::from_millis(engine::limits::CHANGES_WAIT_MS_MAX)
        }
    }
}

/// One call as the client made it.
pub(super) struct Asked {
    pub(super) caller: Caller,
    pub(super) operation: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) terms: Terms,
    pub(super) key: Option<String>,
}

/// Runs calls, a bounded number at once.
pub(super) struct Runner {
    engine: Engine,
    working: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    closed: Closed,
}

impl Runner {
    pub(super) fn new(engine: Engine, closed: Closed) -> Self {
        Self {
            engine,
            working: Arc::new(Semaphore::new(CALLS_WORKING_MAX)),
            waiting: Arc::new(Semaphore::new(CALLS_WAITING_MAX)),
            closed,
        }
    }

    /// Runs one call to its end.
    pub(super) async fn run(
        &self,
        asked: Asked,
        context: &RequestContext<RoleServer>,
    ) -> Result<Result<Answer, Failure>, ErrorData> {
        let broke_off =
            || ErrorData::internal_error("the call broke off; what it changed is in history", None);
        let pace = self.engine.pace(&asked.operation, &asked.arguments, &asked.terms);
        // Handing over costs more than such a call itself; but when others wait, threads let them be made true together.
        let here = pace == Pace::Brief || (pace == Pace::Short && is_alone(&context.extensions));
        if here {
            let job = Job { engine: self.engine.clone(), asked, cancel: Cancel::default(), pace, told: None };
            return std::panic::catch_unwind(AssertUnwindSafe(|| job.run())).map_err(|_| broke_off());
        }
        let slots = match pace {
            Pace::Brief | Pace::Short | Pace::Work => &self.working,
            Pace::Wait => &self.waiting,
        };
        let broken = |_| ErrorData::internal_error("the server is closing", None);
        let permit = slots.clone().acquire_owned().await.map_err(broken)?;
        let cancel = Cancel::default();
        let (told, progress) = Teller::new(context);
        let job = Job { engine: self.engine.clone(), asked, cancel: cancel.clone(), pace, told };
        let mut task = tokio::task::spawn_blocking(move || {
            let outcome = job.run();
            drop(permit);
            outcome
        });
        let outcome = tokio::select! {
            biased;
            outcome = &mut task => outcome,
            () = self.stopped(pace, context) => {
                cancel.cancel();
                task.await
            }
            never = progress.tell() => match never {},
        };
        outcome.map_err(|_| broke_off())
    }

    /// Resolves once nobody wants the call any more. A client that is gone still gets its changes made, but nobody is
    /// left to wait.
    async fn stopped(&self, pace: Pace, context: &RequestContext<RoleServer>) {
        let mut closed = self.closed.clone();
        let gone = async {
            match pace {
                Pace::Brief | Pace::Short | Pace::Work => std::future::pending().await,
                Pace::Wait => drop(closed.wait_for(|closed| *closed).await),
            }
        };
        tokio::select! {
            () = context.ct.cancelled() => {}
            () = gone => {}
        }
    }
}

/// A call that owns what it needs.
struct Job {
    engine: Engine,
    asked: Asked,
    cancel: Cancel,
    pace: Pace,
    told: Option<watch::Sender<u64>>,
}

impl Job {
    fn run(self) -> Result<Answer, Failure> {
        let tell = |progress: Progress| {
            if let Some(told) = &self.told {
                told.send_replace(progress.done);
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
            control: Control::new(Instant::now() + deadline(self.pace), self.cancel, listen),
        })
    }
}

/// Tells a client how far its call has come.
struct Teller(Option<(ProgressToken, Peer<RoleServer>, watch::Receiver<u64>)>);

impl Teller {
    /// Where a call puts its progress, and who tells it; both idle when the client did not ask.
    fn new(context: &RequestContext<RoleServer>) -> (Option<watch::Sender<u64>>, Self) {
        match context.meta.get_progress_token() {
            Some(token) => {
                let (told, seen) = watch::channel(0);
                (Some(told), Self(Some((token, context.peer.clone(), seen))))
            }
            None => (None, Self(None)),
        }
    }

    /// Tells as long as the call runs, at most once an interval, and only what is new.
    async fn tell(self) -> Infallible {
        if let Some((token, peer, mut seen)) = self.0 {
            let mut told = 0;
            while seen.changed().await.is_ok() {
                let done = *seen.borrow_and_update();
                // A call may go over its places twice; what a client sees only grows.
                if done <= told {
                    continue;
                }
                told = done;
                #[expect(clippy::cast_precision_loss, reason = "the protocol counts in floating point")]
                let shown = done as f64;
                if peer.notify_progress(ProgressNotificationParam::new(token.clone(), shown)).await.is_err() {
                    break;
                }
                tokio::time::sleep(PROGRESS_INTERVAL).await;
            }
        }
        std::future::pending().await
    }
}
