//! Requests of the proxy to the editor. Their ids have an unguessable prefix, so that their responses are never confused
//! with responses to the agent's requests.

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

use super::message::AcpMessageId;

/// The result or the error of a request to the editor.
pub(super) type EditorResponse = Result<Value, Value>;

/// The pending requests.
pub(super) struct EditorRequests {
    id_prefix: String,
    next_id: AtomicU64,
    pending: Mutex<Option<HashMap<AcpMessageId, oneshot::Sender<EditorResponse>>>>,
}

/// One pending request.
pub(super) struct PendingEditorRequest {
    pub(super) id: String,
    /// Resolves with the response; fails once the editor is gone.
    pub(super) response: oneshot::Receiver<EditorResponse>,
}

impl EditorRequests {
    pub(super) fn new() -> Self {
        // The standard hasher's keys are random in every process.
        let random = RandomState::new().hash_one(0);
        Self {
            id_prefix: format!("stead-{random:016x}-"),
            next_id: AtomicU64::new(0),
            pending: Mutex::new(Some(HashMap::new())),
        }
    }

    /// Registers a new request; `None` once the editor is gone.
    pub(super) fn register(&self) -> Option<PendingEditorRequest> {
        let id = format!("{}{}", self.id_prefix, self.next_id.fetch_add(1, Ordering::Relaxed));
        let (sender, response) = oneshot::channel();
        self.lock_pending().as_mut()?.insert(AcpMessageId::from_json(&Value::from(id.as_str())), sender);
        Some(PendingEditorRequest { id, response })
    }

    /// Delivers a response to its waiter. Ids with the proxy's prefix belong to the proxy, even if nothing waits for them.
    pub(super) fn resolve(&self, id: &AcpMessageId, response: impl FnOnce() -> EditorResponse) -> ResponseOwner {
        if !id.0.trim_start_matches('"').starts_with(&self.id_prefix) {
            return ResponseOwner::Other;
        }
        if let Some(sender) = self.lock_pending().as_mut().and_then(|pending| pending.remove(id)) {
            // The waiter may be gone.
            drop(sender.send(response()));
        }
        ResponseOwner::Proxy
    }

    /// Stops pending for a response.
    pub(super) fn cancel(&self, id: &str) {
        if let Some(pending) = self.lock_pending().as_mut() {
            pending.remove(&AcpMessageId::from_json(&Value::from(id)));
        }
    }

    /// Drops all pending requests: the editor is gone.
    pub(super) fn close(&self) {
        *self.lock_pending() = None;
    }

    fn lock_pending(
        &self,
    ) -> std::sync::MutexGuard<'_, Option<HashMap<AcpMessageId, oneshot::Sender<EditorResponse>>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The side whose request a response answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseOwner {
    Proxy,
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn responses_reach_only_their_requester() {
        let requests = EditorRequests::new();
        let (one, two) = (requests.register().unwrap(), requests.register().unwrap());
        let id = |text: &str| AcpMessageId::from_json(&Value::from(text));
        assert_eq!(requests.resolve(&id("stead-1"), || Ok(1.into())), ResponseOwner::Other);
        assert_eq!(requests.resolve(&AcpMessageId("7".to_owned()), || Ok(1.into())), ResponseOwner::Other);
        assert_eq!(requests.resolve(&id(&two.id), || Ok(2.into())), ResponseOwner::Proxy);
        assert_eq!(requests.resolve(&id(&two.id), || Ok(3.into())), ResponseOwner::Proxy);
        assert_eq!(two.response.await, Ok(Ok(2.into())));
        requests.close();
        assert!(one.response.await.is_err());
        assert!(requests.register().is_none());
    }
}
