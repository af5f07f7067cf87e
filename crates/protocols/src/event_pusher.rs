//! Pushes the events of watches to a client. One thread per connection follows the watches of the connection, and runs
//! only while there are watches. A slow client delays only its own events, and no event is lost.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use stead_engine::{
    Caller, CallerWatchEventReader, CancelToken, Engine,
    ops::{BegunOrEndedWatch, WatchEventRow},
};
use tokio::sync::mpsc::Sender;

use crate::dialect::DialectSet;

pub(crate) const EVENT_METHOD: &str = "filesystem.event";
/// The time after which the event thread checks again whether the client is still connected.
const FOLLOW_TIMEOUT: Duration = Duration::from_secs(60);
const RETRY_DELAY: Duration = Duration::from_secs(1);

pub(crate) struct PushedEvent {
    pub(crate) event: WatchEventRow,
    pub(crate) dialect: String,
}

impl PushedEvent {
    /// A watch event is rendered in the dialect in which the watch was started.
    pub(crate) fn render(&self, dialects: &DialectSet) -> Value {
        match dialects.by_name(&self.dialect) {
            Some(dialect) => dialect.render_event(&self.event),
            None => json!(self.event),
        }
    }
}

#[derive(Clone)]
pub(crate) struct EventPusher {
    sender: Sender<PushedEvent>,
    /// The id of each watch, and the name of the dialect in which the watch was started.
    watches: Arc<Mutex<Vec<(String, String)>>>,
    is_running: Arc<AtomicBool>,
    cancel: CancelToken,
}

impl EventPusher {
    pub(crate) fn new(sender: Sender<PushedEvent>) -> Self {
        Self { sender, watches: Arc::default(), is_running: Arc::default(), cancel: CancelToken::default() }
    }

    pub(crate) fn apply_call(
        &self,
        (change, id): &(BegunOrEndedWatch, String),
        engine: &Engine,
        caller: &Caller,
        dialect: &str,
    ) {
        match change {
            BegunOrEndedWatch::Started => self.add_watch(engine, caller, id, dialect),
            BegunOrEndedWatch::Ended => self.remove_watch(id),
        }
    }

    pub(crate) fn add_watch(&self, engine: &Engine, caller: &Caller, id: &str, dialect: &str) {
        let mut watches = crate::lock(&self.watches);
        watches.push((id.to_owned(), dialect.to_owned()));
        if self.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        let (follower, pusher) = (CallerWatchEventReader::new(engine.clone(), caller.clone()), self.clone());
        let thread = std::thread::Builder::new().name("push".to_owned()).spawn(move || pusher.follow_events(follower));
        if thread.is_err() {
            // The thread could not be started, so no events are pushed. The client can still poll for events.
            self.is_running.store(false, Ordering::Release);
        }
    }

    pub(crate) fn remove_watch(&self, id: &str) {
        crate::lock(&self.watches).retain(|(known, _)| known != id);
    }

    pub(crate) fn close(&self) {
        crate::lock(&self.watches).clear();
        self.cancel.cancel();
    }

    fn follow_events(&self, mut follower: CallerWatchEventReader) {
        loop {
            let watches = crate::lock(&self.watches);
            if watches.is_empty() || self.sender.is_closed() {
                // The lock is held while the flag is cleared, so that `add_watch` does not rely on a thread that is
                // about to end.
                self.is_running.store(false, Ordering::Release);
                return;
            }
            drop(watches);
            let ids = || crate::lock(&self.watches).iter().map(|(id, _)| id.clone()).collect();
            let Ok(events) = follower.wait_for_events(&ids, Instant::now() + FOLLOW_TIMEOUT, &self.cancel) else {
                // The error may be temporary and the client relies on the events, so the thread retries. After `close`
                // no watch is left, and the thread ends.
                if !crate::lock(&self.watches).is_empty() {
                    std::thread::sleep(RETRY_DELAY);
                }
                continue;
            };
            for event in events {
                let known = crate::lock(&self.watches).iter().find(|(id, _)| *id == event.watch).cloned();
                // A watch that is no longer in the list has ended in the meantime.
                let Some((_, dialect)) = known else { continue };
                if self.sender.blocking_send(PushedEvent { event, dialect }).is_err() {
                    return;
                }
            }
        }
    }
}
