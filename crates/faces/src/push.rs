//! Events on their way to a client that did not ask for each: a thread that hears what the watches of one conversation
//! tell, and hands it over. A client that does not read holds up its own events and nobody else's; none is lost.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use engine::{Answer, Caller, Cancel, Engine, Follower, Heard};
use serde_json::{Map, Value};
use tokio::sync::mpsc::Sender;

use crate::dialect::Dialects;

/// The notification that carries an event of a watch.
pub(crate) const EVENT_METHOD: &str = "filesystem.event";
/// Events that wait for the client.
pub(crate) const PUSHED_WAITING_MAX: usize = 256;
/// How long the thread waits before it looks whether anybody is still there.
const WAIT: Duration = Duration::from_secs(60);
/// How long it waits after a failure before it tries again.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// What a call does about watches.
pub(crate) enum Watching {
    Begins,
    Ends,
    Neither,
}

impl Watching {
    /// What a call of this operation does.
    pub(crate) fn of(operation: &str) -> Self {
        match operation {
            "watch" => Watching::Begins,
            "unwatch" => Watching::Ends,
            _ => Watching::Neither,
        }
    }
}

/// An event on its way, and the name of the dialect whose words it is told in.
pub(crate) struct Pushed {
    pub(crate) heard: Heard,
    pub(crate) dialect: String,
}

impl Pushed {
    /// The event in the words of whoever began the watch.
    pub(crate) fn told(&self, dialects: &Dialects) -> Map<String, Value> {
        let event = &self.heard.event;
        dialects.called(&self.dialect).map_or_else(|| event.clone(), |dialect| dialect.event(event))
    }
}

/// The watches of one conversation, and the thread that listens for them while there are any.
#[derive(Clone)]
pub(crate) struct Push {
    to: Sender<Pushed>,
    /// Each watch with the dialect it was begun in.
    ids: Arc<Mutex<Vec<(String, String)>>>,
    listening: Arc<AtomicBool>,
    cancel: Cancel,
}

impl Push {
    /// Events go to this channel.
    pub(crate) fn new(to: Sender<Pushed>) -> Self {
        Self { to, ids: Arc::default(), listening: Arc::default(), cancel: Cancel::default() }
    }

    /// Does what a call that was answered says: events of a watch that is begun here are pushed here, until it is ended.
    pub(crate) fn follow(
        &self,
        watching: &Watching,
        answer: &Answer,
        engine: &Engine,
        caller: &Caller,
        dialect: &str,
    ) {
        match (watching, answer.json.get("watch").and_then(Value::as_str)) {
            (Watching::Begins, Some(id)) => self.begin(engine, caller, id, dialect),
            (Watching::Ends, Some(id)) => self.end(id),
            (Watching::Begins | Watching::Ends | Watching::Neither, _) => {}
        }
    }

    /// A watch was begun in this conversation, in this dialect.
    pub(crate) fn begin(&self, engine: &Engine, caller: &Caller, id: &str, dialect: &str) {
        let mut ids = self.ids();
        ids.push((id.to_owned(), dialect.to_owned()));
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
        self.ids().retain(|(known, _)| known != id);
    }

    /// Nobody listens any more.
    pub(crate) fn close(&self) {
        self.ids().clear();
        self.cancel.cancel();
    }

    fn ids(&self) -> std::sync::MutexGuard<'_, Vec<(String, String)>> {
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
            let ids = || self.ids().iter().map(|(id, _)| id.clone()).collect();
            let heard = follower.wait(&ids, Instant::now() + WAIT, &self.cancel);
            let Ok(heard) = heard else {
                // What fails now may work again, and the client believes that it is told. Whoever closed has no watches left.
                if !self.ids().is_empty() {
                    std::thread::sleep(AFTER_FAILURE);
                }
                continue;
            };
            for heard in heard {
                let known = self.ids().iter().find(|(id, _)| *id == heard.watch).cloned();
                // One that was ended meanwhile has nothing more to say.
                let Some((_, dialect)) = known else { continue };
                if self.to.blocking_send(Pushed { heard, dialect }).is_err() {
                    return;
                }
            }
        }
    }
}
