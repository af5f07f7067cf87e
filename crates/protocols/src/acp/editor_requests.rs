//! Requests of the proxy to the editor, with ids that start with a random prefix. The random prefix ensures that a
//! response to the proxy is never mistaken for a response to the agent.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::Value;
use tokio::sync::oneshot;

use super::message::AcpMessageId;

pub(super) type EditorResponse = Result<Value, Value>;

type EditorResponseSenders = HashMap<AcpMessageId, oneshot::Sender<EditorResponse>>;

pub(super) struct PendingEditorRequestTable {
    id_prefix: String,
    next_id: AtomicU64,
    /// The requests to the editor that wait for a response, or `None` after the editor has disconnected.
    pending: Mutex<Option<EditorResponseSenders>>,
}

pub(super) struct PendingRequestToEditor {
    pub(super) id: String,
    pub(super) response: oneshot::Receiver<EditorResponse>,
}

impl PendingEditorRequestTable {
    pub(super) fn new() -> Self {
        // The keys of the standard hasher are random in every process, so the hash of a constant is a random number.
        let random = RandomState::new().hash_one(0);
        Self {
            id_prefix: format!("stead-{random:016x}-"),
            next_id: AtomicU64::new(0),
            pending: Mutex::new(Some(HashMap::new())),
        }
    }

    pub(super) fn register(&self) -> Option<PendingRequestToEditor> {
        let id = format!("{}{}", self.id_prefix, self.next_id.fetch_add(1, Ordering::Relaxed));
        let (sender, response) = oneshot::channel();
        crate::lock(&self.pending).as_mut()?.insert(AcpMessageId::from_json(&Value::from(id.as_str())), sender);
        Some(PendingRequestToEditor { id, response })
    }

    /// Delivers the editor's response to the pending request with the same id, and returns whether the response
    /// belongs to the proxy. A response whose id has the proxy's prefix belongs to the proxy, even if its request is no
    /// longer pending.
    pub(super) fn resolve(&self, id: &AcpMessageId, response: impl FnOnce() -> EditorResponse) -> bool {
        if !id.0.trim_start_matches('"').starts_with(&self.id_prefix) {
            return false;
        }
        if let Some(sender) = crate::lock(&self.pending).as_mut().and_then(|pending| pending.remove(id)) {
            // A send error means that the request was cancelled.
            drop(sender.send(response()));
        }
        true
    }

    pub(super) fn cancel(&self, id: &str) {
        if let Some(pending) = crate::lock(&self.pending).as_mut() {
            pending.remove(&AcpMessageId::from_json(&Value::from(id)));
        }
    }

    pub(super) fn close(&self) {
        *crate::lock(&self.pending) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn responses_reach_only_their_requester() {
        let requests = PendingEditorRequestTable::new();
        let (one, two) = (requests.register().unwrap(), requests.register().unwrap());
        let id = |text: &str| AcpMessageId::from_json(&Value::from(text));
        assert!(!requests.resolve(&id("stead-1"), || Ok(1.into())));
        assert!(!requests.resolve(&AcpMessageId("7".to_owned()), || Ok(1.into())));
        assert!(requests.resolve(&id(&two.id), || Ok(2.into())));
        assert!(requests.resolve(&id(&two.id), || Ok(3.into())));
        assert_eq!(two.response.await, Ok(Ok(2.into())));
        requests.close();
        assert!(one.response.await.is_err());
        assert!(requests.register().is_none());
    }
}
