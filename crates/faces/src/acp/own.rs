//! Requests of our own to the editor. Their ids carry a word that no peer can guess, so that an answer to one of ours
//! and an answer to one of the agent's are never mixed up.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::Value;
use tokio::sync::oneshot;

use super::message::Id;

/// What the editor said to a request of ours: its result, or its error.
pub(super) type Said = Result<Value, Value>;

/// The requests that wait.
pub(super) struct Own {
    prefix: String,
    counter: AtomicU64,
    waiting: Mutex<Option<HashMap<Id, oneshot::Sender<Said>>>>,
}

/// One request that waits for its answer.
pub(super) struct Waiting {
    /// Its id.
    pub(super) id: String,
    /// Resolves with what was said; fails once nobody is left to say anything.
    pub(super) said: oneshot::Receiver<Said>,
}

impl Own {
    pub(super) fn new() -> Self {
        // The standard hasher's keys are random in every process.
        let word = RandomState::new().hash_one(0);
        Self {
            prefix: format!("stead-{word:016x}-"),
            counter: AtomicU64::new(0),
            waiting: Mutex::new(Some(HashMap::new())),
        }
    }

    /// A new request; nothing once the editor is gone.
    pub(super) fn begin(&self) -> Option<Waiting> {
        let id = format!("{}{}", self.prefix, self.counter.fetch_add(1, Ordering::Relaxed));
        let (sender, said) = oneshot::channel();
        self.waiting().as_mut()?.insert(Id::of(&Value::from(id.as_str())), sender);
        Some(Waiting { id, said })
    }

    /// Hands an answer to whoever waits for it. Whatever carries our word is ours, even when nobody waits any more.
    pub(super) fn settle(&self, id: &Id, said: impl FnOnce() -> Said) -> Mine {
        if !id.0.trim_start_matches('"').starts_with(&self.prefix) {
            return Mine::No;
        }
        if let Some(sender) = self.waiting().as_mut().and_then(|waiting| waiting.remove(id)) {
            // Whoever asked may have stopped waiting.
            drop(sender.send(said()));
        }
        Mine::Yes
    }

    /// Stops waiting for one.
    pub(super) fn forget(&self, id: &str) {
        if let Some(waiting) = self.waiting().as_mut() {
            waiting.remove(&Id::of(&Value::from(id)));
        }
    }

    /// The editor is gone: nothing will be said any more.
    pub(super) fn close(&self) {
        *self.waiting() = None;
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Option<HashMap<Id, oneshot::Sender<Said>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an answer was to a request of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mine {
    Yes,
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_reach_whoever_asked_and_nobody_else() {
        let own = Own::new();
        let (one, two) = (own.begin().unwrap(), own.begin().unwrap());
        let id = |text: &str| Id::of(&Value::from(text));
        assert_eq!(own.settle(&id("stead-1"), || Ok(1.into())), Mine::No);
        assert_eq!(own.settle(&Id("7".to_owned()), || Ok(1.into())), Mine::No);
        assert_eq!(own.settle(&id(&two.id), || Ok(2.into())), Mine::Yes);
        assert_eq!(own.settle(&id(&two.id), || Ok(3.into())), Mine::Yes);
        assert_eq!(two.said.await, Ok(Ok(2.into())));
        own.close();
        assert!(one.said.await.is_err());
        assert!(own.begin().is_none());
    }
}
