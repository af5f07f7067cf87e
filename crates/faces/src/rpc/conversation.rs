//! What one client has under way: the calls that run, by their ids, so that it can cancel them; and whether it is still
//! there.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use engine::{Caller, Pace, Presence};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::notice::Out;
use crate::{
    push::Push,
    run::{Company, Seat},
};

/// One client's conversation.
pub struct Conversation {
    running: Mutex<HashMap<String, Vec<Arc<Notify>>>>,
    admitted: AtomicUsize,
    closed: watch::Sender<bool>,
    seat: Seat,
    /// How long whoever speaks here is there; nothing where that was said of the caller.
    presence: Option<Presence>,
    /// The key that the only call of this conversation came with, beside its message.
    key: Option<String>,
    push: Option<Push>,
    out: Option<Arc<dyn Out>>,
}

impl Default for Conversation {
    fn default() -> Self {
        let (closed, _) = watch::channel(false);
        Self {
            running: Mutex::default(),
            admitted: AtomicUsize::new(0),
            closed,
            seat: Seat::default(),
            presence: Some(Presence::connected()),
            key: None,
            push: None,
            out: None,
        }
    }
}

impl Conversation {
    /// One whose client can be told more than answers: events through the one, progress through the other.
    pub(super) fn telling(push: Push, out: Arc<dyn Out>) -> Self {
        let mut conversation = Self::default();
        (conversation.push, conversation.out) = (Some(push), Some(out));
        conversation
    }

    /// One that begins in this session, and whose one call has this key unless it brings one itself.
    pub(crate) fn of(session: Option<String>, key: Option<String>) -> Self {
        let mut conversation = Self::default();
        (conversation.seat, conversation.presence, conversation.key) = (Seat::of(session), None, key);
        conversation
    }

    /// The key that came beside the message.
    pub(super) fn key(&self) -> Option<&String> {
        self.key.as_ref()
    }

    /// How notices reach the client, if they can.
    pub(super) fn out(&self) -> Option<Arc<dyn Out>> {
        self.out.clone()
    }

    /// How events reach the client, if they can.
    pub(super) fn push(&self) -> Option<&Push> {
        self.push.as_ref()
    }

    /// Takes a message in, before it is answered.
    pub fn admit(self: &Arc<Self>) -> Admitted {
        self.admitted.fetch_add(1, Ordering::Relaxed);
        Admitted(self.clone())
    }

    /// The client is gone: nobody is left to wait for something to happen. Changes under way are still made.
    pub fn close(&self) {
        self.closed.send_replace(true);
        if let Some(push) = &self.push {
            push.close();
        }
    }

    /// Stops every running call of this id.
    pub(super) fn cancel(&self, id: &Value) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.get(&id.to_string()).into_iter().flatten().for_each(|call| call.notify_one());
    }
}

impl Drop for Conversation {
    /// Nothing of it runs any more: what the client had open is left behind.
    fn drop(&mut self) {
        self.presence.iter().for_each(Presence::end);
    }
}

/// One message that was taken in and is not answered yet.
pub struct Admitted(Arc<Conversation>);

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.admitted.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Admitted {
    /// Which session the conversation is in.
    pub(super) fn seat(&self) -> &Seat {
        &self.0.seat
    }

    /// Who asks here: in the session of the conversation, and there as long as it is.
    pub(super) fn take(&self, caller: &Caller) -> Caller {
        let mut caller = self.0.seat.take(caller.clone());
        if let Some(presence) = &self.0.presence {
            caller.presence = presence.clone();
        }
        caller
    }

    pub(super) fn conversation(&self) -> &Conversation {
        &self.0
    }

    /// Whether other messages wait beside this one.
    pub(super) fn company(&self) -> Company {
        if self.0.admitted.load(Ordering::Relaxed) <= 1 { Company::Alone } else { Company::Others }
    }

    /// Makes a call known under its id for as long as it runs. A notification has none, and cannot be cancelled.
    pub(super) fn enlist(&self, id: Option<&Value>) -> Enlisted<'_> {
        let stop = Arc::new(Notify::new());
        let id = id.map(Value::to_string);
        if let Some(id) = &id {
            let mut running = self.0.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.entry(id.clone()).or_default().push(stop.clone());
        }
        Enlisted { conversation: &self.0, id, stop }
    }
}

/// A running call.
pub(super) struct Enlisted<'a> {
    conversation: &'a Conversation,
    id: Option<String>,
    stop: Arc<Notify>,
}

impl Enlisted<'_> {
    /// Resolves once nobody wants the call any more.
    pub(super) async fn unwanted(&self, pace: Pace) {
        let mut closed = self.conversation.closed.subscribe();
        let gone = async {
            match pace {
                Pace::Brief | Pace::Short | Pace::Work => std::future::pending().await,
                Pace::Wait => drop(closed.wait_for(|closed| *closed).await),
            }
        };
        tokio::select! {
            () = self.stop.notified() => {}
            () = gone => {}
        }
    }
}

impl Drop for Enlisted<'_> {
    fn drop(&mut self) {
        let Some(id) = &self.id else { return };
        let mut running = self.conversation.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(calls) = running.get_mut(id) {
            calls.retain(|call| !Arc::ptr_eq(call, &self.stop));
            if calls.is_empty() {
                running.remove(id);
            }
        }
    }
}
