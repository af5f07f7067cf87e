//! Pushes watch events to a client. One thread per connection follows the watches of that connection. A slow client
//! delays only its own events; no event is lost.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Map, Value};
use stead_engine::{CallOutcome, Caller, CancelToken, Engine, WatchFollower, WatchNotification};
use tokio::sync::mpsc::Sender;

use crate::dialect::DialectSet;

/// Method of the notification that carries a watch event.
pub(crate) const EVENT_METHOD: &str = "filesystem.event";
/// Events queued for the client.
pub(crate) const QUEUED_EVENTS_MAX: usize = 256;
/// How long the thread waits before it checks whether the client still listens.
const FOLLOW_TIMEOUT: Duration = Duration::from_secs(60);
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Effect of a call on watches.
pub(crate) enum WatchEffect {
    Starts,
    Ends,
    None,
}

impl WatchEffect {
    pub(crate) fn for_operation(operation: &str) -> Self {
        match operation {
            "watch" => WatchEffect::Starts,
            "unwatch" => WatchEffect::Ends,
            _ => WatchEffect::None,
        }
    }
}

/// A queued event and the dialect that renders it.
pub(crate) struct PushedEvent {
    pub(crate) notification: WatchNotification,
    pub(crate) dialect: String,
}

impl PushedEvent {
    /// Renders the event in the dialect that began the watch.
    pub(crate) fn render(&self, dialects: &DialectSet) -> Map<String, Value> {
        let event = &self.notification.event;
        dialects.by_name(&self.dialect).map_or_else(|| event.clone(), |dialect| dialect.render_event(event))
    }
}

/// The watches of one connection, and the thread that follows them while there are any.
#[derive(Clone)]
pub(crate) struct EventPusher {
    sender: Sender<PushedEvent>,
    /// Id of each watch, and the dialect that began it.
    watches: Arc<Mutex<Vec<(String, String)>>>,
    is_running: Arc<AtomicBool>,
    cancel: CancelToken,
}

impl EventPusher {
    pub(crate) fn new(sender: Sender<PushedEvent>) -> Self {
        Self { sender, watches: Arc::default(), is_running: Arc::default(), cancel: CancelToken::default() }
    }

    /// Applies a successful call: starts pushing events of a watch it began, stops for one it ended.
    pub(crate) fn apply_call(
        &self,
        effect: &WatchEffect,
        outcome: &CallOutcome,
        engine: &Engine,
        caller: &Caller,
        dialect: &str,
    ) {
        match (effect, outcome.json.get("watch").and_then(Value::as_str)) {
            (WatchEffect::Starts, Some(id)) => self.add_watch(engine, caller, id, dialect),
            (WatchEffect::Ends, Some(id)) => self.remove_watch(id),
            (WatchEffect::Starts | WatchEffect::Ends | WatchEffect::None, _) => {}
        }
    }

    pub(crate) fn add_watch(&self, engine: &Engine, caller: &Caller, id: &str, dialect: &str) {
        let mut ids = self.lock_watches();
        ids.push((id.to_owned(), dialect.to_owned()));
        if self.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        let (follower, pusher) = (WatchFollower::new(engine.clone(), caller.clone()), self.clone());
        let thread = std::thread::Builder::new().name("push".to_owned()).spawn(move || pusher.follow_events(follower));
        if thread.is_err() {
            // Events are not pushed then; polling still works.
            self.is_running.store(false, Ordering::Release);
        }
    }

    pub(crate) fn remove_watch(&self, id: &str) {
        self.lock_watches().retain(|(known, _)| known != id);
    }

    /// Stops pushing.
    pub(crate) fn close(&self) {
        self.lock_watches().clear();
        self.cancel.cancel();
    }

    fn lock_watches(&self) -> std::sync::MutexGuard<'_, Vec<(String, String)>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow_events(&self, mut follower: WatchFollower) {
        loop {
            {
                let ids = self.lock_watches();
                if ids.is_empty() || self.sender.is_closed() {
                    // The lock keeps `add_watch` from relying on a thread that is about to end.
                    self.is_running.store(false, Ordering::Release);
                    return;
                }
            }
            let ids = || self.lock_watches().iter().map(|(id, _)| id.clone()).collect();
            let events = follower.wait_for_events(&ids, Instant::now() + FOLLOW_TIMEOUT, &self.cancel);
            let Ok(events) = events else {
                // The error may be temporary, and the client relies on the events. After `close` there are no watches
                // left.
                if !self.lock_watches().is_empty() {
                    std::thread::sleep(RETRY_DELAY);
                }
                continue;
            };
            for event in events {
                let known = self.lock_watches().iter().find(|(id, _)| *id == event.watch_id).cloned();
                // The watch was ended in the meantime.
                let Some((_, dialect)) = known else { continue };
                if self.sender.blocking_send(PushedEvent { notification: event, dialect }).is_err() {
                    return;
                }
            }
        }
    }
}
