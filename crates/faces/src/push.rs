//! Events on their way to a client that did not ask for each: a thread that hears what the watches of one conversation
//! tell, and hands it over. A client that does not read holds up its own events and nobody else's; none is lost.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use engine::{Caller, Cancel, Engine, Follower, Heard};
use tokio::sync::mpsc::Sender;

/// Events that wait for the client.
pub(crate) const PUSHED_WAITING_MAX: usize = 256;
/// How long the thread waits before it looks whether anybody is still there.
const WAIT: Duration = Duration::from_secs(60);

/// The watches of one conversation, and the thread that listens for them while there are any.
#[derive(Clone)]
pub(crate) struct Push {
    to: Sender<Heard>,
    ids: Arc<Mutex<Vec<String>>>,
    listening: Arc<AtomicBool>,
    cancel: Cancel,
}

impl Push {
    /// Events go to this channel.
    pub(crate) fn new(to: Sender<Heard>) -> Self {
        Self { to, ids: Arc::default(), listening: Arc::default(), cancel: Cancel::default() }
    }

    /// A watch was begun in this conversation.
    pub(crate) fn begin(&self, engine: &Engine, caller: &Caller, id: &str) {
        let mut ids = self.ids();
        ids.push(id.to_owned());
        if self.listening.swap(true, Ordering::AcqRel) {
            return;
        }
        let (follower, push) = (Follower::new(engine.clone(), caller.clone()), self.clone());
        let thread = std::thread::Builder::new().name("push".to_owned()).spawn(move || push.run(follower));
        if thread.is_err() {
            // Nothing is pushed then; asking still works.
            self.listening.store(false, Ordering::Release);
        }
    }

    /// A watch was ended.
    pub(crate) fn end(&self, id: &str) {
        self.ids().retain(|known| known != id);
    }

    /// Nobody listens any more.
    pub(crate) fn close(&self) {
        self.ids().clear();
        self.cancel.cancel();
    }

    fn ids(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, mut follower: Follower) {
        loop {
            {
                let ids = self.ids();
                if ids.is_empty() || self.to.is_closed() {
                    // Under this mutex nobody can believe that the thread still runs.
                    self.listening.store(false, Ordering::Release);
                    return;
                }
            }
            let heard = follower.wait(&|| self.ids().clone(), Instant::now() + WAIT, &self.cancel);
            let Ok(heard) = heard else {
                self.listening.store(false, Ordering::Release);
                return;
            };
            for heard in heard {
                if self.to.blocking_send(heard).is_err() {
                    return;
                }
            }
        }
    }
}
