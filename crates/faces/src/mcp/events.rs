//! Events of watches that a client began with a tool, told as notifications while the conversation lasts. Only clients of
//! the `initialize` era are told this way: later ones hear nothing that they did not subscribe to, and ask by cursor.

use std::sync::{Arc, Mutex, PoisonError};

use engine::{Answer, Caller, Engine};
use rmcp::{
    RoleServer,
    model::{CustomNotification, ProtocolVersion, ServerNotification},
    service::{Peer, RequestContext},
};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{
    dialect::Dialects,
    push::{EVENT_METHOD, PUSHED_WAITING_MAX, Push, Pushed, Watching},
};

/// What is pushed to one client.
#[derive(Default)]
pub(super) struct Events(Mutex<Option<Push>>);

impl Events {
    /// Begins or ends to push, as a call that was answered says.
    pub(super) fn follow(
        &self,
        watching: &Watching,
        answer: &Answer,
        (engine, caller): (&Engine, &Caller),
        (dialects, dialect): (&Arc<Dialects>, &str),
        context: &RequestContext<RoleServer>,
    ) {
        let is_modern =
            context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        if is_modern || matches!(watching, Watching::Neither) {
            return;
        }
        let mut push = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let push = push.get_or_insert_with(|| {
            let (to, events) = mpsc::channel(PUSHED_WAITING_MAX);
            tokio::spawn(tell(events, context.peer.clone(), dialects.clone()));
            Push::new(to)
        });
        push.follow(watching, answer, engine, caller, dialect);
    }

    /// Nobody listens any more. The watches stay: their owner can ask for what they hear.
    pub(super) fn close(&self) {
        if let Some(push) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            push.close();
        }
    }
}

/// Tells events as they come, in the words of the dialect that began the watch.
async fn tell(mut events: mpsc::Receiver<Pushed>, peer: Peer<RoleServer>, dialects: Arc<Dialects>) {
    while let Some(pushed) = events.recv().await {
        let told = Value::Object(pushed.told(&dialects));
        let notification = CustomNotification::new(EVENT_METHOD, Some(told));
        if peer.send_notification(ServerNotification::CustomNotification(notification)).await.is_err() {
            return;
        }
    }
}
